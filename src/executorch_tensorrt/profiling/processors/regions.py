"""Which delegate regions ran, the host time of each, and which part of the graph each is."""

from __future__ import annotations

from dataclasses import dataclass

from executorch_tensorrt.profiling.processors.times import Times, delegate_calls, host_us_by_method, share_of
from executorch_tensorrt.profiling.session import Delegate, Session, Source


@dataclass(frozen=True)
class Region:
    """One delegate, over all runs of its method.

    Attributes:
        delegate: the delegate; `delegate.method` says whose.
        time: host time of ExecuTorch's call of it. `time.count` of 0 means that it never ran.
        share: of the host time of all runs of its method, 0 to 1.
        sources: operators of the graph that it runs, in order of their debug handles; empty where not recorded.
        modules: paths of the modules that those operators come from, each once, in order.
    """

    delegate: Delegate
    time: Times
    share: float
    sources: list[Source]
    modules: list[str]


def regions(session: Session) -> list[Region]:
    """Every delegate, in order of methods and instructions. Operators are in `gaps`."""
    durations: dict[tuple[str, int], list[float]] = {}
    for run in session.runs:
        for event in delegate_calls(run.events):
            durations.setdefault((run.method, event.instruction), []).append(event.duration_us)
    totals = host_us_by_method(session)
    found: list[Region] = []
    for delegate in session.delegates:
        if delegate.index < 0:
            continue
        time = Times.of(durations.get(delegate.place, []))
        sources = graph_sources(delegate)
        modules = list(dict.fromkeys(source.module for source in sources if source.module))
        share = share_of(time.total_us, totals.get(delegate.method, 0.0))
        found.append(Region(delegate, time, share, sources, modules))
    return found


def graph_sources(delegate: Delegate) -> list[Source]:
    """The operators of the graph that a delegate runs, in order of their debug handles."""
    sources = delegate.engine.sources if delegate.engine else {}
    return [sources[handle] for handle in sorted(sources, key=lambda handle: (len(handle), handle))]
