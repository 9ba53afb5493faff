"""Blobs against the page that describes them, docs/reference/wire-format.md."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import models
import pytest
from wire_format import parse

from executorch_tensorrt._native import parse_blob
from executorch_tensorrt.program import BACKEND_ID, read_program

TESTS = Path(__file__).parents[1]
DATA = TESTS / "data"
PAGE = (TESTS.parent / "docs" / "reference" / "wire-format.md").read_text()

PROGRAMS: dict[str, Callable[[], bytes]] = {
    "rows": lambda: models.rows().buffer,
    "decode_first": lambda: models.decode_first().buffer,
    "mixed": lambda: models.mixed().buffer,
    "static_beside_dynamic": lambda: models.static_beside_dynamic().buffer,
    "two_inputs": lambda: models.two_inputs().buffer,
    "edge_shapes": lambda: models.edge_shapes().buffer,
    "no_inputs": lambda: models.no_inputs().buffer,
    "cached_rows": lambda: models.cached_rows().buffer,
}


def blobs_in(program: bytes | Path) -> Iterator[bytes]:
    for method in read_program(program).methods:
        for delegate in method.delegates:
            if delegate.backend_id == BACKEND_ID:
                yield bytes(delegate.blob)


@pytest.fixture(params=PROGRAMS, scope="module")
def blobs(request: pytest.FixtureRequest) -> list[bytes]:
    return list(blobs_in(PROGRAMS[request.param]()))


def keys(rows: str) -> set[str]:
    """What a table of the page describes: the code in its first column."""
    return {key for row in re.findall(r"^\| (`.*?) \|", rows, re.M) for key in re.findall(r"`(\w+)`", row)}


THEIRS, OURS = (
    keys(PAGE[PAGE.index(begin) :].split("\n\n")[0]) for begin in ("| key | ", "| key of `executorch_tensorrt` | ")
)


def test_page_has_every_key_of_a_blob_in_its_order(blobs: list[bytes]) -> None:
    for blob in map(parse, blobs):
        assert list(blob.metadata) == [key for key in re.findall(r"^\| `(\w+)` \|", PAGE, re.M) if key in THEIRS]
        assert set(blob.ours) <= OURS
        for item in blob.metadata["io_bindings"]:
            assert list(item) == ["name", "dtype", "shape", "is_input"]


def test_page_has_no_key_that_no_blob_has() -> None:
    found = {key for make in PROGRAMS.values() for blob in blobs_in(make()) for key in parse(blob).ours}
    assert found == OURS


def test_our_blobs_are_read_by_the_page_as_by_the_library(blobs: list[bytes]) -> None:
    for data in blobs:
        blob, known = parse(data), parse_blob(data)
        assert (blob.magic, len(blob.engine)) == (known.magic, known.engine_size)
        for is_input, bindings in ((True, known.metadata.inputs), (False, known.metadata.outputs)):
            assert [(item["name"], item["dtype"]) for item in blob.bindings(is_input)] == [
                (binding.name, binding.dtype) for binding in bindings
            ]
            assert blob.arguments[not is_input] == [binding.argument for binding in bindings]
        record = known.metadata.record
        assert record is not None
        assert (blob.ours["engine_kind"], blob.ours["signature"]) == (record.engine_kind, record.signature)


def test_our_shapes_and_profiles_mean_what_the_page_says(blobs: list[bytes]) -> None:
    for data in blobs:
        blob, known = parse(data), parse_blob(data).metadata
        for number, profile in enumerate(blob.ours["profiles"]):
            for field in ("min", "opt", "max"):
                shapes = [span[field] for span in profile["inputs"]]
                assert blob.accepts(number, shapes)
                assert blob.output_shapes(shapes) == known.infer_output_shapes(shapes)
        for binding, span in zip(blob.bindings(True), blob.ours["profiles"][0]["inputs"], strict=True):
            fixed = [
                size for size, low in zip(binding["shape"], span["min"], strict=True) if size != -1 and size != low
            ]
            assert not fixed


def test_our_states_layers_and_sources_mean_what_the_page_says(blobs: list[bytes]) -> None:
    for blob in map(parse, blobs):
        inputs = {item["name"]: place for place, item in enumerate(blob.bindings(True))}
        for buffer in blob.ours.get("state", []):
            assert blob.arguments[0][inputs[buffer["input"]]] is None
            assert buffer["input"] in [alias["input"] for alias in blob.metadata["aliased_io"]]
            assert bytes.fromhex(buffer["initial"]) == b""  # the models' buffers begin with zeros
        assert len(blob.ours["layers"]) == len(blob.ours["profiles"])
        for handles in (handle for layers in blob.ours["layers"] for handle in layers.values()):
            assert {str(handle) for handle in handles} <= set(blob.ours["sources"])
        counts = blob.ours["operators"]
        assert 0 <= counts["with_source"] <= counts["total"]


def test_cpu_engine_is_the_program_that_the_page_says(blobs: list[bytes]) -> None:
    for blob in map(parse, blobs):
        methods = read_program(blob.engine).methods
        assert {method.name for method in methods} == {f"profile_{k}" for k in range(len(blob.ours["profiles"]))}
        for method in methods:
            assert len(method.inputs) == len(blob.bindings(True))
            assert len(method.outputs) == len(blob.bindings(False))


# What Torch-TensorRT wrote, with the values that data/README.md documents.


def test_file_of_two_profiles_reads_as_documented() -> None:
    (data,) = blobs_in(DATA / "torch_tensorrt_2.14_two_profiles.pte")
    blob, known = parse(data), parse_blob(data).metadata
    assert blob.magic == "TR01"
    assert "executorch_tensorrt" not in blob.metadata
    assert ([b.name for b in known.inputs], [b.name for b in known.outputs]) == (["x"], ["output0"])
    assert (known.hardware_compatible, known.device_id, known.target_platform) == (
        blob.metadata["hardware_compatible"],
        blob.metadata["device_id"],
        blob.metadata["target_platform"],
    )
    assert blob.engine.startswith(b"vtrt")  # a plan


def test_file_with_odd_names_reads_as_documented() -> None:
    data = (DATA / "tr01_odd_names.blob").read_bytes()
    blob, known = parse(data), parse_blob(data).metadata
    assert [item["name"] for item in blob.bindings(True)] == ['café "q"', "back\\slash"]
    assert [b.name for b in known.inputs] == ['café "q"', "back\\slash"]
    assert [b.name for b in known.outputs] == ["aliased_io"]
    assert (known.hardware_compatible, known.device_id, blob.engine) == (True, 3, bytes(17))


def test_file_with_an_alias_reads_as_documented() -> None:
    data = (DATA / "tr02_aliased.blob").read_bytes()
    blob, known = parse(data), parse_blob(data).metadata
    assert blob.magic == "TR02"
    assert blob.engine == bytes(range(64))
    assert (len(known.inputs), len(known.outputs)) == (2, 2)
    (alias,) = known.aliased_io
    assert (alias.output, alias.input, alias.kind) == ("k_cache_out", "k_cache", "kv_cache_update")
