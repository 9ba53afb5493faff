"""Intervals of output sizes hold every size that the runtime infers."""

from __future__ import annotations

from itertools import product
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from executorch_tensorrt.engines.blob import Binding, BlobMetadata, pack_blob
from executorch_tensorrt.program import Delegate
from executorch_tensorrt.program.blobs import EngineBlob, read_engine
from executorch_tensorrt.program.spans import input_spans, output_spans

Dim = Any

numbers = st.integers(-4, 9)
dims = st.recursive(
    numbers | st.sampled_from(["s0", "s1"]),
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(["add", "mul", "min", "max"]), inner, inner).map(list),
        st.tuples(st.sampled_from(["floordiv", "mod"]), inner, st.integers(1, 7)).map(list),
    ),
    max_leaves=6,
)
ranges = st.tuples(st.integers(0, 6), st.integers(0, 4)).map(lambda pair: (pair[0], pair[0] + pair[1]))


def engine(ranges: list[tuple[int, int]], output: Dim, scale: int = 1, offset: int = 0) -> EngineBlob:
    """An engine whose input has dims scale * s<k> + offset, with these ranges, and whose output has one dim."""
    axes = range(len(ranges))
    fields = {
        "min": [low for low, _ in ranges],
        "opt": [low for low, _ in ranges],
        "max": [high for _, high in ranges],
    }
    formulas = [["add", offset, ["mul", scale, f"s{dim}"]] for dim in axes]
    record = {
        "version": 1,
        "engine_kind": "cpu",
        "engine_id": "0123456789ab",
        "profiles": [{"inputs": [fields]}],
        "symbols": [{"input": 0, "dim": dim, "scale": scale, "offset": offset} for dim in axes],
        "shapes": {"inputs": [formulas], "outputs": [[output]]},
    }
    bindings = [Binding("x", "float32", [-1] * len(ranges), True), Binding("y", "float32", [-1], False)]
    blob = pack_blob(b"ETC1", BlobMetadata(bindings), record, b"engine")
    return read_engine(Delegate(0, "TensorRTBackend", memoryview(blob), ()))


@settings(deadline=None, derandomize=True)
@given(st.lists(ranges, min_size=2, max_size=2), dims)
def test_spans_hold_every_size_that_the_runtime_infers(ranges: list[tuple[int, int]], output: Dim) -> None:
    blob = engine(ranges, output)
    spans = output_spans(blob, 0)
    assert spans is not None
    ((low, high),) = spans[0]
    for point in product(*(range(a, b + 1) for a, b in ranges)):
        try:
            ((size,),) = blob.header.metadata.infer_output_shapes([list(point)])
        except ValueError:  # a negative size
            continue
        assert low <= size <= high


@settings(deadline=None, derandomize=True)
@given(ranges, st.sampled_from([-2, -1, 1, 3]), st.integers(-3, 40))
def test_spans_follow_symbols_through_scale_and_offset(span: tuple[int, int], scale: int, offset: int) -> None:
    sizes = sorted(scale * end + offset for end in span)
    assume(sizes[0] >= 0)
    blob = engine([(sizes[0], sizes[1])], "s0", scale, offset)
    assert output_spans(blob, 0) == [[span]]
    assert input_spans(blob, 0) == [[(sizes[0], sizes[1])]]


def test_spans_are_not_known_where_a_divisor_may_be_zero() -> None:
    assert output_spans(engine([(0, 4)], ["floordiv", 8, "s0"]), 0) is None
    assert output_spans(engine([(1, 4)], ["floordiv", 8, "s0"]), 0) == [[(2, 8)]]


def test_spans_are_not_known_of_a_profile_that_the_engine_lacks() -> None:
    blob = engine([(1, 4)], "s0")
    assert input_spans(blob, 1) is output_spans(blob, 1) is None


def test_spans_take_whole_numbers_written_with_a_point() -> None:
    assert output_spans(engine([(1, 4)], ["mul", 2.0, "s0"]), 0) == [[(2, 8)]]


def test_spans_of_a_formula_that_explodes_are_bounded() -> None:
    assert output_spans(engine([(2, 9)], ["mul", *["s0"] * 250]), 0) == [[(2**63 - 1, 2**63 - 1)]]
