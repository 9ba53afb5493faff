"""What stands out, one rule at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from profiling.session_factory import encoder_session, tiny_session

from executorch_tensorrt.profiling.processors import Finding, findings
from executorch_tensorrt.profiling.session import Delegate, Event, Run, Session, Startup


def found(session: Session, kind: str) -> list[Finding]:
    return [finding for finding in findings(session) if finding.kind == kind]


def changed(session: Session, change: Callable[[Event], Event]) -> Session:
    return replace(session, runs=[replace(run, events=[change(event) for event in run.events]) for run in session.runs])


def with_shape(rows: int) -> Session:
    session = tiny_session()
    return replace(session, runs=[replace(session.runs[0], shapes=[[rows, 4]])])


def test_findings_tell_staged_copies() -> None:
    (finding,) = found(tiny_session(), "staged copies")
    assert (finding.subject, finding.share) == ("forward, TensorRTBackend 0", 0.08)
    assert finding.fact == "64 B are copied between host and device in each call."


def test_findings_tell_waiting() -> None:
    assert found(tiny_session(), "synchronisation") == []
    longer = changed(
        tiny_session(),
        lambda event: replace(event, duration_us=39.0) if event.name == "torchtrt.synchronize" else event,
    )
    (finding,) = found(longer, "synchronisation")
    assert "50.0 % of its host time is spent waiting for the device (39 µs a call)" in finding.fact


def test_findings_tell_calls_whose_launch_takes_as_long_as_their_work() -> None:
    def on_device(device_us: int) -> Session:
        def say(event: Event) -> Event:
            said = {**event.metadata, "device_ns": 1000 * device_us}
            return replace(event, metadata=said) if event.kind == "delegate" else event

        return changed(tiny_session(), say)

    (finding,) = found(on_device(70), "launch-bound")
    assert finding.subject == "forward, TensorRTBackend 0, profile 0"
    assert "takes 60 µs to queue the engine's work, and the device 70 µs" in finding.fact
    assert finding.share == 0.6
    assert found(on_device(80), "launch-bound") == []
    assert found(on_device(4), "launch-bound") == []  # too short to be sure
    assert found(tiny_session(), "launch-bound") == []


def test_findings_tell_a_dominant_layer_and_its_source() -> None:
    def slow(event: Event) -> Event:
        return replace(event, duration_us=1e5) if event.kind == "layer" and event.layer_instruction == 8 else event

    first, *_ = found(changed(encoder_session(runs=3), slow), "dominant layer")
    assert "It comes from aten.linear.default in encoder.layer." in first.fact
    assert "modeling_bert.py:325" in first.advice
    assert found(encoder_session(runs=3), "dominant layer") == []


def test_findings_say_that_a_dominant_layer_is_more_than_one_operator() -> None:
    def slow(event: Event) -> Event:
        return replace(event, duration_us=1e5) if event.kind == "layer" and event.layer_instruction == 8 else event

    session = changed(encoder_session(runs=3), slow)
    for delegate in session.delegates:
        if delegate.engine:
            for handles in delegate.engine.layer_handles:
                handles["8"] = [108, 109]
    first, *_ = found(session, "dominant layer")
    assert "intermediate.dense and 1 more operator, which the engine runs in one step." in first.fact
    assert first.advice.startswith("Start with these operators (bert/modeling_bert.py:325): ")


def test_findings_tell_shapes_far_from_opt() -> None:
    (finding,) = found(with_shape(1), "far from opt")
    assert finding.fact == (
        "Calls with (1, 4) have 1 in dim 0 of input 0, where the profile is tuned for 4; its ranges are (1:4:8, 4)."
    )
    assert finding.share == 0.8
    assert found(with_shape(2), "far from opt") == []
    assert found(with_shape(9), "far from opt") == []  # not the engine's input: its profile does not take 9


def test_findings_tell_profiles_that_no_run_used() -> None:
    session = encoder_session(runs=2)
    assert [finding.subject for finding in found(session, "unused profile")] == [
        "forward, TensorRTBackend 0, profile 1",
        "forward, TensorRTBackend 2, profile 1",
    ]
    assert found(tiny_session(), "unused profile") == []


def test_findings_tell_operators_outside_and_many_delegates() -> None:
    delegates = [Delegate("forward", 2 * k, k, "XnnpackBackend", f"XnnpackBackend {k}") for k in range(4)]
    delegates += [Delegate("forward", 2 * k + 1, -1, "", f"aten::op{k}.out") for k in range(4)]
    events = [Event("Method::execute", "method", 0, 100)]
    for k in range(4):
        events.append(Event("DELEGATE_CALL", "call", 25 * k, 10, instruction=2 * k))
        events.append(Event("OPERATOR_CALL", "operator", 25 * k + 10, 10, instruction=2 * k + 1))
    run = Run("forward", 0, 100, [], [], {}, events)
    session = tiny_session(delegates=delegates, runs=[run])
    (outside,) = found(session, "operators outside")
    assert outside.fact == (
        "40.0 % of its time goes to operators outside delegates: "
        "aten::op0.out, aten::op1.out, aten::op2.out and others."
    )
    (many,) = found(session, "many delegates")
    assert many.fact == "It is split into 4 delegates; 60.0 % of its time lies between them."


def test_findings_tell_orchestration() -> None:
    (finding,) = found(tiny_session(), "orchestration")
    assert finding.fact == "20.0 % of its time is ExecuTorch's own work around delegates and operators."


def test_findings_tell_slow_first_calls() -> None:
    session = tiny_session(startup=[Startup("forward", 2000.0, [1100.0])])
    (finding,) = found(session, "first call")
    assert finding.fact == "A first call took 1.1 ms, later ones like it 110 µs; loading took 2 ms."
    assert found(tiny_session(startup=[Startup("forward", 2000.0, [200.0])]), "first call") == []


def test_findings_tell_unstable_runs() -> None:
    run = tiny_session().runs[0]
    runs = [replace(run, number=k, wall_us=300.0 if k > 7 else 100.0) for k in range(10)]
    (finding,) = found(tiny_session(runs=runs), "unstable runs")
    assert "One run in ten takes 300 µs or more, the median 100 µs; the slowest is run 8." in finding.fact
    assert found(tiny_session(runs=runs[:9]), "unstable runs") == []


def test_findings_tell_dropped_events_first() -> None:
    session = tiny_session()
    lost = replace(session, runs=[*session.runs, replace(session.runs[0], events=[])])
    first = findings(lost)[0]
    assert (first.kind, first.fact) == ("dropped events", "The events of 1 of 2 runs were not kept.")

    def drop(event: Event) -> Event:
        return replace(event, metadata={**event.metadata, "layers_dropped": 3}) if event.kind == "delegate" else event

    assert findings(changed(session, drop))[0].fact == "3 layer records did not fit into the ETDump."


def test_findings_come_by_share_and_say_what_to_do() -> None:
    every = findings(tiny_session())
    assert [finding.share for finding in every] == sorted((finding.share for finding in every), reverse=True)
    for finding in every:
        texts: list[Any] = [finding.fact, finding.meaning, finding.advice]
        assert all(text.endswith(".") for text in texts)


def test_findings_of_a_session_without_runs_are_none() -> None:
    assert findings(tiny_session(runs=[], delegates=[])) == []
