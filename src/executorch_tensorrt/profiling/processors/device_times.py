"""Work of engines on a device, by the device's own clock."""

from __future__ import annotations

from dataclasses import dataclass, field

from executorch_tensorrt.events import ENQUEUE
from executorch_tensorrt.profiling.processors.times import Times, grouped
from executorch_tensorrt.profiling.session import Delegate, Event, Session

_LONGEST_NS = 1 << 63  # what a session says is not trusted


@dataclass(frozen=True)
class DeviceTime:
    """Calls of one engine on a device, on one optimization profile.

    Attributes:
        delegate: the delegate.
        profile: the optimization profile.
        calls: how many.
        returned_early: how many of them returned before their work was done.
        time: device time of the engine's work, without copies, in the calls whose time is known: that of a call which
            returned early comes with the next one. It does not add up with host times.
        enqueue: host time of queueing that work, in the same calls.
    """

    delegate: Delegate
    profile: int
    calls: int
    returned_early: int
    time: Times
    enqueue: Times


def device_times(session: Session) -> list[DeviceTime]:
    """Every delegate whose device was timed, in order of methods and instructions, by optimization profile."""
    seen: dict[tuple[str, int, int], _Calls] = {}
    for run in session.runs:
        enqueue = {event.instruction: event for event in run.events if event.name == ENQUEUE}
        for event in run.events:
            if event.kind == "delegate":
                profile = run.profiles.get(str(event.instruction), 0)
                calls = seen.setdefault((run.method, event.instruction, profile), _Calls())
                calls.add(event, enqueue.get(event.instruction))
    timed = grouped(sorted(key for key, calls in seen.items() if calls.device_us), lambda key: key[:2])
    return [
        DeviceTime(
            delegate, key[2], calls.count, calls.returned_early, Times.of(calls.device_us), Times.of(calls.enqueue_us)
        )
        for delegate in session.delegates
        for key in timed.get(delegate.place, [])
        for calls in (seen[key],)
    ]


@dataclass
class _Calls:
    count: int = 0
    returned_early: int = 0
    device_us: list[float] = field(default_factory=list[float])
    enqueue_us: list[float] = field(default_factory=list[float])

    def add(self, event: Event, enqueue: Event | None) -> None:
        self.count += 1
        self.returned_early += event.metadata.get("returned_early") is True
        device_ns = event.metadata.get("device_ns")
        if type(device_ns) is int and 0 <= device_ns < _LONGEST_NS:
            self.device_us.append(device_ns / 1e3)
            self.enqueue_us += [enqueue.duration_us] if enqueue else []
