"""From a session to figures, in round numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from profiling.session_factory import encoder_session, tiny_session

from executorch_tensorrt.profiling.processors import (
    Times,
    compare,
    device_times,
    gaps,
    layers,
    phases,
    profile_costs,
    regions,
    spread,
    typical_run,
)
from executorch_tensorrt.profiling.session import Delegate, Engine, Event, Run, Session, Source

ENGINE = Engine(
    "0123456789ab",
    "cpu",
    1000,
    "x[0]=1:2:4|5:8:32",
    ["x"],
    [[[(1, 2, 4)]], [[(5, 8, 32)]]],
    sources={
        "12": Source("aten.relu.default", "encoder.act", "model.py:8"),
        "7": Source("aten.linear.default", "encoder.proj", "model.py:7"),
        "13": Source("aten.linear.default", "encoder.proj", "model.py:9"),
    },
    layer_handles=[{"0": [7], "1": [12, 13]}, {"0": [13]}],
)


def a_run(number: int = 0, scale: float = 1.0, profile: int = 0, shape: int = 4, method: str = "forward") -> Run:
    """100 µs: delegate 0 in 10..40, an operator in 45..55, delegate 1 in 60..90. Times `scale`."""

    def event(name: str, kind: Any, begin: float, duration: float, place: int = -1, **more: Any) -> Event:
        return Event(name, kind, begin * scale, duration * scale, instruction=place, **more)

    described = {"profile": profile, "staged_bytes": 256 * (number + 1), "layers_dropped": number}
    events = [
        event("Method::execute", "method", 0, 100),
        event("DELEGATE_CALL", "call", 10, 30, 0),
        event("torchtrt.delegate", "delegate", 11, 28, 0, metadata=described),
        event("torchtrt.synchronize", "phase", 30, 7, 0),
        event("torchtrt.input_binding", "phase", 12, 7, 0),
        event("conv #1", "layer", 20, 6, 0, layer_instruction=0),
        event("conv #2", "layer", 26, 3, 0, layer_instruction=1),
        event("kernel", "layer", 20, 9, 0, clock="device"),
        event("OPERATOR_CALL", "operator", 45, 10, 1),
        event("DELEGATE_CALL", "call", 60, 30, 2),
        event("other", "other", 61, 20, 2),
    ]
    return Run(method, number, 110 * scale, [[shape]], ["float32"], {"0": profile}, events)


def delegates_of(method: str = "forward") -> list[Delegate]:
    return [
        Delegate(method, 0, 0, "TensorRTBackend", "TensorRTBackend 0", ENGINE),
        Delegate(method, 1, -1, "", "aten::cumsum.out"),
        Delegate(method, 2, 1, "XnnpackBackend", "XnnpackBackend 1"),
        Delegate(method, 3, 2, "XnnpackBackend", "XnnpackBackend 2"),
    ]


def session_of(*runs: Run) -> Session:
    return tiny_session(level="layers", runs=list(runs), delegates=delegates_of())


TWO = session_of(a_run(), a_run(1, 3.0))


def test_times_of_calls() -> None:
    times = Times.of([4.0, 1.0, 2.0, 3.0])
    assert (times.count, times.median_us, times.minimum_us, times.maximum_us, times.total_us) == (
        4,
        2.5,
        1.0,
        4.0,
        10.0,
    )
    assert times.p90_us == pytest.approx(3.7)
    assert Times.of([]) == Times(0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


def test_regions_give_host_time_and_graph_region() -> None:
    first, second, third = regions(TWO)
    assert (first.delegate.name, first.time.count, first.time.median_us, first.share) == (
        "TensorRTBackend 0",
        2,
        60,
        0.3,
    )
    assert [source.location for source in first.sources] == ["model.py:7", "model.py:8", "model.py:9"]
    assert first.modules == ["encoder.proj", "encoder.act"]
    assert (second.share, second.sources) == (0.3, [])
    assert (third.time.count, third.share) == (0, 0.0)  # it never ran


def test_phases_come_in_the_order_in_which_they_run() -> None:
    (item,) = phases(TWO)
    assert [(phase.label, phase.time.median_us, phase.share) for phase in item.phases] == [
        ("input binding", 14, 0.25),
        ("synchronisation", 14, 0.25),
        ("outside phases", 28, 0.5),
    ]
    assert (item.time.median_us, item.staged_bytes, item.layers_dropped) == (56, 384, 1)


def test_phases_are_none_below_their_level() -> None:
    session = session_of(replace(a_run(), events=[event for event in a_run().events if event.kind != "phase"]))
    assert [item.phases for item in phases(session)] == [[]]


def on_device(run: Run, **said: object) -> Run:
    """The run, with what a delegate on a device says."""
    enqueue = Event("torchtrt.enqueue_host", "phase", 20, 4.0, instruction=0)
    events = [
        replace(event, metadata={**event.metadata, **said}) if event.kind == "delegate" else event
        for event in run.events
    ]
    return replace(run, events=[*events, enqueue])


def test_device_times_are_by_profile_of_the_calls_whose_time_is_known() -> None:
    early = on_device(a_run(1), returned_early=True)
    first, second = device_times(
        session_of(on_device(a_run(), device_ns=5000), early, on_device(a_run(2, profile=1), device_ns=9000))
    )
    assert (first.delegate.name, first.profile, first.calls, first.returned_early) == ("TensorRTBackend 0", 0, 2, 1)
    assert (first.time.count, first.time.median_us, first.enqueue.total_us) == (1, 5, 4)
    assert (second.profile, second.calls, second.returned_early, second.time.median_us) == (1, 1, 0, 9)


@pytest.mark.parametrize("device_ns", ["5", True, -1, 10**400, 5.0, None])
def test_device_times_are_whole_numbers(device_ns: object) -> None:
    assert device_times(session_of(on_device(a_run(), device_ns=device_ns))) == []


def test_device_times_are_no_part_of_host_times() -> None:
    timed = session_of(on_device(a_run(), device_ns=5000))
    untimed = session_of(on_device(a_run()))
    assert device_times(untimed) == []
    assert (phases(timed), regions(timed), gaps(timed)) == (phases(untimed), regions(untimed), gaps(untimed))


def test_compare_tells_device_times_apart() -> None:
    sessions = [session_of(on_device(a_run(), device_ns=time)) for time in (4000, 8000)]
    (change,) = [change for change in compare(*sessions).changes if change.kind == "device"]
    assert (change.name, change.profile, change.ratio) == ("TensorRTBackend 0", 0, 2.0)


def test_layers_give_shares_by_clock_and_sources() -> None:
    rows = {row.name: row for row in layers(TWO)}
    assert list(rows) == ["kernel", "conv #1", "conv #2"]
    assert [(row.clock, row.share) for row in rows.values()] == [
        ("device", 1.0),
        ("host", pytest.approx(2 / 3)),
        ("host", pytest.approx(1 / 3)),
    ]
    assert [source.op for source in rows["conv #2"].sources] == ["aten.relu.default", "aten.linear.default"]
    assert rows["kernel"].sources == []


def test_layers_are_told_apart_by_profile() -> None:
    rows = [row for row in layers(session_of(a_run(), a_run(1, profile=1))) if row.name == "conv #1"]
    assert [(row.profile, row.time.count, row.sources[0].location) for row in rows] == [
        (0, 1, "model.py:7"),
        (1, 1, "model.py:9"),
    ]


def test_gaps_give_operators_and_the_rest() -> None:
    begin, middle, end = gaps(TWO)
    assert (begin.before, begin.after and begin.after.name) == (None, "TensorRTBackend 0")
    assert (begin.time.median_us, begin.orchestration.median_us, begin.operators) == (20, 20, [])
    assert (middle.time.median_us, middle.share, middle.orchestration.median_us) == (40, 0.2, 20)
    assert [(item.operator.name, item.time.median_us, item.share) for item in middle.operators] == [
        ("aten::cumsum.out", 20, 0.1)
    ]
    assert (end.before and end.before.name, end.after, end.time.median_us) == ("XnnpackBackend 1", None, 20)


def test_gaps_of_a_method_without_delegates_are_all_of_it() -> None:
    run = replace(a_run(), events=[event for event in a_run().events if event.kind in ("method", "operator")])
    (gap,) = gaps(session_of(run))
    assert (gap.before, gap.after, gap.time.median_us, gap.orchestration.median_us) == (None, None, 100, 90)


def test_host_time_is_delegates_and_gaps() -> None:
    session = encoder_session(runs=10)
    total = sum(region.share for region in regions(session)) + sum(gap.share for gap in gaps(session))
    assert total == pytest.approx(1)


def test_profile_costs_name_profiles_that_no_run_used() -> None:
    first, second = profile_costs(session_of(a_run(shape=2), a_run(1, 3.0, shape=3), a_run(2, shape=2)))
    assert (first.profile, first.ranges, first.time.count) == (0, [[(1, 2, 4)]], 3)
    assert [(item.shapes, item.time.median_us) for item in first.shapes] == [([[2]], 30), ([[3]], 90)]
    assert (second.profile, second.time.count, second.shapes) == (1, 0, [])


def test_profile_costs_include_profiles_that_the_program_does_not_record() -> None:
    delegate = replace(delegates_of()[0], engine=replace(ENGINE, profiles=[]))
    session = replace(session_of(a_run(profile=2)), delegates=[delegate])
    assert [(cost.profile, cost.ranges, cost.time.count) for cost in profile_costs(session)] == [(2, [], 1)]


def test_spread_groups_runs_by_shapes() -> None:
    runs = [a_run(k, scale, shape=4 + k % 2) for k, scale in enumerate((1, 1, 2, 3, 6, 2))]
    first, second = spread(session_of(*runs))
    assert (first.shapes, first.runs, first.wall.median_us, first.host.maximum_us) == ([[4]], [0, 2, 4], 220, 600)
    assert (first.slowest, first.typical) == (4, 2)
    assert (second.shapes, second.runs) == ([[5]], [1, 3, 5])


def test_typical_run_is_nearest_to_the_median() -> None:
    session = session_of(a_run(0, 5), a_run(1, 2), a_run(2, 1))
    assert typical_run(session, "forward").number == 1
    lost = replace(a_run(1, 2), events=[])
    assert typical_run(session_of(a_run(0, 5), lost, a_run(2, 1)), "forward").number == 2
    with pytest.raises(ValueError, match="got 'decode', allowed 'forward'"):
        typical_run(session, "decode")


def test_methods_are_kept_apart() -> None:
    runs = [a_run(), a_run(0, 2.0, method="decode")]
    session = tiny_session(runs=runs, delegates=[*delegates_of(), *delegates_of("decode")])
    shares = {(region.delegate.method, region.delegate.name): region.share for region in regions(session)}
    assert shares["forward", "TensorRTBackend 0"] == shares["decode", "TensorRTBackend 0"] == 0.3
    assert [group.method for group in spread(session)] == ["forward", "decode"]
    assert [layer.delegate.method for layer in layers(session)] == ["forward"] * 3 + ["decode"] * 3
    assert [gap.method for gap in gaps(session)] == ["forward"] * 3 + ["decode"] * 3


def test_compare_gives_ratios_the_largest_change_first() -> None:
    comparison = compare(session_of(a_run()), session_of(a_run(0, 0.5), a_run(1, 0.5)))
    assert comparison.differences == []
    kinds = [change.kind for change in comparison.changes]
    assert kinds == sorted(kinds, key=("run", "delegate", "phase", "layer", "operator").index)
    assert {change.ratio for change in comparison.changes if change.name != "XnnpackBackend 2"} == {0.5}
    named = [change.name for change in comparison.changes if change.kind == "layer"]
    assert named == ["kernel (device)", "conv #1 (host)", "conv #2 (host)"]


def test_compare_shows_what_only_one_has() -> None:
    slim = replace(a_run(), events=[event for event in a_run().events if event.name != "conv #2"])
    (change,) = (
        item for item in compare(session_of(a_run()), session_of(slim)).changes if item.name.startswith("conv #2")
    )
    assert (change.before and change.before.median_us, change.after, change.ratio) == (3, None, None)


def test_compare_tells_what_else_differs() -> None:
    other = replace(
        session_of(a_run(shape=2)),
        level="phases",
        program={"name": "b.pte", "sha256": "b"},
        machine={"cores": 8},
        versions={"executorch": "1.6"},
    )
    differences = "\n".join(compare(session_of(a_run()), other).differences)
    for text in ("tiny.pte (0123456789ab), then b.pte (b)", "layers, then phases", "cores 2, then 8", "1.6", "shapes"):
        assert text in differences
