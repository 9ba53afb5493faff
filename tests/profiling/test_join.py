"""From traced events to runs: by instruction, with clocks, kinds and sources."""

from __future__ import annotations

import json

import models
import numpy as np
import pytest
from profiling.etdump_factory import Span, delegate_span, etdump_of

from executorch_tensorrt import Module
from executorch_tensorrt import program as pte
from executorch_tensorrt.profiling import from_etdump
from executorch_tensorrt.profiling.etdump import read_etdump
from executorch_tensorrt.profiling.join import Call, check_places, describe_delegates, join_runs
from executorch_tensorrt.profiling.session import Delegate, Run

DELEGATES = [
    Delegate("forward", 0, 0, "TensorRTBackend", "TensorRTBackend 0"),
    Delegate("forward", 1, -1, "", "aten::cumsum.out"),
    Delegate("forward", 2, 1, "CudaBackend", "CudaBackend 1"),
]
CALL = Call(9.0, [[1, 4]], ["float32"])


def described(profile: int, **more: object) -> bytes:
    return json.dumps({"profile": profile, "clock": "host", **more}).encode()


def joined(*spans: Span, calls: int = 1) -> list[Run]:
    blocks = read_etdump(etdump_of([("Default", []), ("Execute", list(spans))]))
    return join_runs("forward", blocks, [CALL] * calls, DELEGATES)


def test_join_tells_kinds_apart() -> None:
    (run,) = joined(
        delegate_span("torchtrt.enqueue_host", 3_000, 4_000),
        delegate_span("conv", 3_100, 3_900, metadata=b'{"clock":"device","instruction":5}'),
        delegate_span("torchtrt.delegate", 2_500, 5_000, metadata=described(1)),
        Span("DELEGATE_CALL", 2_000, 5_500, 0),
        Span("native_call_cumsum.out", 6_100, 6_900, 1),
        Span("OPERATOR_CALL", 6_000, 7_000, 1),
        delegate_span("kernel", 7_300, 7_400, 2),
        Span("DELEGATE_CALL", 7_200, 7_500, 2),
        Span("Method::execute", 1_000, 8_000, chain=-1),
    )
    found = [(event.kind, event.name, event.instruction, event.start_us, event.duration_us) for event in run.events]
    assert found == [
        ("method", "Method::execute", -1, 0.0, 7.0),
        ("call", "DELEGATE_CALL", 0, 1.0, 3.5),
        ("delegate", "torchtrt.delegate", 0, 1.5, 2.5),
        ("phase", "torchtrt.enqueue_host", 0, 2.0, 1.0),
        ("layer", "conv", 0, 2.1, 0.8),
        ("operator", "OPERATOR_CALL", 1, 5.0, 1.0),
        ("other", "native_call_cumsum.out", 1, 5.1, 0.8),
        ("call", "DELEGATE_CALL", 2, 6.2, 0.3),
        ("other", "kernel", 2, 6.3, 0.1),
    ]
    (layer,) = (event for event in run.events if event.kind == "layer")
    assert (layer.clock, layer.layer_instruction, layer.metadata) == ("device", 5, {})
    assert run.profiles == {"0": 1}
    assert (run.wall_us, run.shapes, run.dtypes, run.number) == (9.0, [[1, 4]], ["float32"], 0)


def test_join_gives_runs_without_events_where_they_were_not_kept() -> None:
    first, second = joined(Span("Method::execute", 0, 5, chain=-1), calls=2)
    assert (len(first.events), second.events, second.number) == (1, [], 1)


def test_join_takes_an_end_before_its_begin_for_no_time() -> None:
    (run,) = joined(Span("Method::execute", 1_000, 3_000, chain=-1), delegate_span("conv", 2_500, 2_000))
    assert [event.duration_us for event in run.events] == [2.0, 0.0]


@pytest.mark.parametrize("metadata", [b"", b"{", b"[1]", b"7", b'{"profile":"x","clock":3}', b"\xff", b"[" * 100_000])
def test_join_passes_over_metadata_that_is_none(metadata: bytes) -> None:
    (run,) = joined(delegate_span("torchtrt.delegate", 0, 10, metadata=metadata))
    assert run.profiles == {}
    assert run.events[0].clock == "host"


def test_join_takes_instructions_not_order() -> None:
    """An event belongs to the delegate at its instruction, also if that ran first or twice."""
    spans = [Span("DELEGATE_CALL", begin, begin + 100, place) for begin, place in ((0, 2), (200, 0), (400, 2))]
    (run,) = joined(*spans)
    assert [event.instruction for event in run.events] == [2, 0, 2]


def early(start: int, **more: object) -> list[Span]:
    """Events of a call that returned early."""
    return [
        Span("Method::execute", start, start + 100, -1, chain=-1),
        delegate_span("torchtrt.delegate", start, start + 50, metadata=described(0, returned_early=True, **more)),
    ]


def device_times_of(*runs: list[Span]) -> list[dict[str, object]]:
    blocks = read_etdump(etdump_of([("Execute", spans) for spans in runs]))
    joined_runs = join_runs("forward", blocks, [CALL] * len(runs), DELEGATES)
    said = [[event.metadata for event in run.events if event.kind == "delegate"] for run in joined_runs]
    return [{key: value for key, value in (item[0] if item else {}).items() if "ns" in key} for item in said]


def test_join_gives_device_times_to_the_calls_they_are_of() -> None:
    """That of a warm-up call is nobody's, and of the last call it is not known yet."""
    times = device_times_of(
        early(0, device_ns_of_last_call=1), early(1000, device_ns_of_last_call=2), early(2000), early(3000),
        early(4000, device_ns_of_last_call=5),
    )  # fmt: skip
    assert times == [{"device_ns": 2}, {}, {}, {"device_ns": 5}, {}]


def test_join_passes_over_calls_that_did_not_come_to_the_delegate() -> None:
    failed = [Span("Method::execute", 1000, 1100, -1, chain=-1)]
    assert device_times_of(early(0), failed, early(2000, device_ns_of_last_call=3)) == [{"device_ns": 3}, {}, {}]


def test_join_gives_no_device_time_across_calls_that_were_not_kept() -> None:
    assert device_times_of(early(0), [], early(2000, device_ns_of_last_call=3)) == [{}, {}, {}]


def test_join_gives_no_device_time_to_a_call_that_waited() -> None:
    waited = [delegate_span("torchtrt.delegate", 0, 50, metadata=described(0, device_ns=7))]
    assert device_times_of(waited, early(1000, device_ns_of_last_call=3)) == [{"device_ns": 7}, {}]


def test_describe_names_delegates_and_operators() -> None:
    (method,) = pte.read_program(models.mixed().buffer).methods
    found = describe_delegates(method)
    names = ["TensorRTBackend 0", "XnnpackBackend 1", "aten::cumsum.out", "TensorRTBackend 2"]
    assert [(item.instruction, item.name) for item in found] == list(enumerate(names))
    engine = found[0].engine
    assert engine is not None
    assert (engine.kind, len(engine.engine_id), engine.input_names) == ("cpu", 12, ["x", "w"])
    assert engine.profiles[1][0] == [(5, 8, 32), (4, 4, 4)]
    assert engine.signature == "x[0]=1:2:4|5:8:32"
    assert [item.engine is None for item in found] == [False, True, True, False]


def test_check_places_refuses_another_program() -> None:
    blocks = read_etdump(etdump_of([("Execute", [Span("OPERATOR_CALL", 0, 1, 2)])]))
    with pytest.raises(ValueError, match="of another program or method: got OPERATOR_CALL at instruction 2"):
        check_places(blocks, DELEGATES)


def test_from_etdump_joins_what_another_process_wrote(tmp_path) -> None:
    buffer = models.mixed().buffer
    module = Module(buffer, profile_level="layers")
    for rows in (2, 4):
        module.forward(np.ones((rows, 4), np.float32), np.ones((1, 4), np.float32))
    module.write_etdump(tmp_path / "mixed.etdp")
    session = from_etdump(buffer, tmp_path / "mixed.etdp")
    assert [run.profiles for run in session.runs] == [{"0": 0, "3": 0}] * 2
    assert session.level == "layers"
    assert all(run.wall_us > 0 for run in session.runs)
    assert [run.shapes for run in session.runs] == [[[2, 4], [1, 4]], [[4, 4], [1, 4]]]
    with pytest.raises(ValueError, match="of another program or method"):
        from_etdump(models.rows().buffer, tmp_path / "mixed.etdp")
    with pytest.raises(ValueError, match="no such method: got 'decode', allowed 'forward'"):
        from_etdump(buffer, tmp_path / "mixed.etdp", method="decode")
    with pytest.raises(ValueError, match="no calls of a method"):
        from_etdump(buffer, etdump_of([("Default", [])]))
