"""The report as text for a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from executorch_tensorrt.profiling.processors import (
    Change,
    Comparison,
    Gap,
    Layer,
    Region,
    Times,
    device_times,
    findings,
    gaps,
    layers,
    phases,
    profile_costs,
    regions,
    spread,
)
from executorch_tensorrt.profiling.renderers.text_report import TIMES, WIDTH, TextReport
from executorch_tensorrt.profiling.session import Delegate, Session
from executorch_tensorrt.words import (
    bytes_text,
    count_text,
    microseconds_text,
    ranges_text,
    shapes_text,
    share_text,
    short_text,
)

_TOP_LAYERS = 15


def render(session: Session, *, width: int = WIDTH, color: bool = False) -> str:
    """The six questions, what profiles cost, the spread over runs, and findings.

    Args:
        session: the session.
        width: in characters.
        color: whether to use terminal colours.
    """
    report = TextReport(width, color)
    calls = count_text(len(session.runs), "run")
    program = short_text(str(session.program.get("name") or "program"))
    report.line(f"{program}: {calls} at level {session.level}, {session.created}")
    places = {**session.machine, **session.versions}.items()
    report.line(", ".join(short_text(f"{name} {value}", 100) for name, value in places))
    found = regions(session)
    _regions(report, session, found)
    _host_times(report, found)
    _phases(report, session)
    _device_times(report, session)
    _layers(report, session)
    _gaps(report, session)
    _graph(report, found)
    _profiles(report, session)
    _spread(report, session)
    _findings(report, session)
    return report.text()


def render_comparison(comparison: Comparison, *, width: int = WIDTH, color: bool = False) -> str:
    """What changed, the largest changes first."""
    report = TextReport(width, color)
    report.heading("Before and after")
    for difference in comparison.differences:
        report.line(f"Not the same: {difference}")
    titles = {"run": "Runs", "delegate": "Delegates", "phase": "Phases"}
    titles |= {"device": "Device time of engines' work", "layer": "Layers", "operator": "Operators"}
    for kind, title in titles.items():
        rows = [_change(change) for change in comparison.changes if change.kind == kind]
        if rows:
            columns = ("method", "delegate", "name", "profile", "before", "after", "ratio")
            report.table(title, columns, rows, right=("profile", "before", "after", "ratio"))
    report.line("Times are medians; a ratio below 1 is faster.")
    return report.text()


def _change(change: Change) -> tuple[str, ...]:
    times = ("" if item is None else microseconds_text(item.median_us) for item in (change.before, change.after))
    ratio = "" if change.ratio is None else f"{change.ratio:.2f}" if change.ratio >= 0.1 else f"{change.ratio:.2g}"
    profile = str(change.profile) if change.profile >= 0 else ""
    return change.method, change.place, change.name, profile, *times, ratio


def _times(time: Times) -> tuple[str, ...]:
    if not time.count:
        return "", "", ""
    return tuple(microseconds_text(value) for value in (time.median_us, time.p90_us, time.p99_us))


def _place(delegate: Delegate) -> tuple[str, str]:
    return delegate.method, delegate.name


def _regions(report: TextReport, session: Session, found: Sequence[Region]) -> None:
    used: dict[tuple[str, str], set[int]] = {}
    for run in session.runs:
        for instruction, profile in run.profiles.items():
            used.setdefault((run.method, instruction), set()).add(profile)
    rows: list[tuple[str, ...]] = []
    for region in found:
        delegate, engine = region.delegate, region.delegate.engine
        profiles = sorted(used.get((delegate.method, str(delegate.instruction)), ()))
        described = f"{engine.kind} {engine.engine_id}" if engine else ""
        if engine and engine.size_bytes:  # a trace of a package does not tell it
            described += f", {bytes_text(engine.size_bytes)}"
        ran = count_text(region.time.count, "call") if region.time.count else "did not run"
        rows.append((*_place(delegate), described, ", ".join(map(str, profiles)), ran))
    report.table("Which delegate regions ran", ("method", "delegate", "engine", "profiles", "ran"), rows, ())


def _host_times(report: TextReport, found: Sequence[Region]) -> None:
    rows = [(*_place(item.delegate), *_times(item.time), share_text(item.share)) for item in found]
    columns = ("method", "delegate", *TIMES, "share")
    report.table("Host time of each delegate", columns, rows, (*TIMES, "share"))


def _phases(report: TextReport, session: Session) -> None:
    rows: list[tuple[str, ...]] = []
    staged: list[str] = []
    for item in phases(session):
        for phase in item.phases:
            rows.append((*_place(item.delegate), phase.label, *_times(phase.time), share_text(phase.share)))
        if item.staged_bytes:
            staged.append(
                f"{short_text(item.delegate.name)}: {bytes_text(item.staged_bytes)} copied to or from the device a call"
            )
    title = "Binding, staging, enqueue and synchronisation"
    report.table(title, ("method", "delegate", "phase", *TIMES, "share"), rows, (*TIMES, "share"))
    for line in staged or ["No copies to or from a device."] if rows else ["Not traced: needs level phases or layers."]:
        report.line(line)


def _device_times(report: TextReport, session: Session) -> None:
    found = device_times(session)
    if not found:
        return  # a section of its own for engines on a device alone
    rows = [
        (*_place(item.delegate), str(item.profile), str(item.calls), str(item.returned_early), *_times(item.time))
        for item in found
    ]
    columns = ("method", "delegate", "profile", "calls", "returned early", *TIMES)
    report.table("Device time of engines' work", columns, rows, ("profile", "calls", "returned early", *TIMES))
    report.line("By the device's clock, without copies. Device times do not add up with host times.")


def _layers(report: TextReport, session: Session) -> None:
    found = layers(session)
    rows = [
        (
            *_place(item.delegate), str(item.profile), item.name, item.clock, microseconds_text(item.time.median_us),
            share_text(item.share), *_sources(item),
        )
        for item in found[:_TOP_LAYERS]
    ]  # fmt: skip
    columns = ("method", "delegate", "profile", "layer", "clock", "median", "share", "operator", "module", "line")
    report.table("Dominant layers", columns, rows, ("profile", *TIMES, "share"), ("method", "delegate", "clock"))
    if not found:
        report.line("Not traced: needs level layers and an engine that reports them.")
    elif len(found) > _TOP_LAYERS:
        report.line(f"The first {_TOP_LAYERS} of {len(found)}.")
    if found:
        clocks = " and ".join(sorted({item.clock for item in found}))
        report.line(f"On the clock of the {clocks}. Shares are of all layer time of the method on that clock.")
        report.line("Layer times do not add up to the call.")
    if any(len(item.sources) > 1 for item in found[:_TOP_LAYERS]):
        report.line("+N: the engine runs the layer in one step with N more operators.")


def _sources(layer: Layer) -> tuple[str, str, str]:
    """Operator, module and line of the first one; the end of a path tells most."""
    if not layer.sources:
        return "not recorded", "", ""
    first, more = layer.sources[0], len(layer.sources) - 1
    operator = short_text(first.op.removeprefix("aten.").removesuffix(".default"), 40)
    return operator + (f" +{more}" if more else ""), _tail(first.module), first.location.rpartition("/")[2][-30:]


def _tail(path: str, limit: int = 28) -> str:
    """The last parts of a module's path: "layer.4.intermediate.dense"."""
    end = path[-limit:]
    return end if len(path) <= limit else end.partition(".")[2] or end


def _gaps(report: TextReport, session: Session) -> None:
    rows = [
        (item.method, _side(item.before, "begin"), _side(item.after, "end"), *_times(item.time), share_text(item.share),
         microseconds_text(item.orchestration.median_us), _operators(item))
        for item in gaps(session)
    ]  # fmt: skip
    columns = ("method", "from", "to", *TIMES, "share", "ExecuTorch", "operators")
    report.table("Time between delegates", columns, rows, (*TIMES, "share", "ExecuTorch"))


def _side(delegate: Delegate | None, edge: str) -> str:
    return delegate.name if delegate else edge


def _operators(gap: Gap) -> str:
    shown = [f"{short_text(item.operator.name)} {microseconds_text(item.time.median_us)}" for item in gap.operators[:3]]
    return ", ".join([*shown, *([f"{len(gap.operators) - 3} more"] if len(gap.operators) > 3 else [])])


def _graph(report: TextReport, found: Sequence[Region]) -> None:
    rows: list[tuple[str, ...]] = []
    for region in found:
        operators = Counter(source.op for source in region.sources)
        shown = _first(f"{name} x{count}" for name, count in operators.most_common())
        locations = _first(dict.fromkeys(source.location for source in region.sources if source.location))
        modules = _first(region.modules)
        rows.append((*_place(region.delegate), shown or "not recorded", modules, locations))
    report.table("Graph regions", ("method", "delegate", "operators", "modules", "source lines"), rows, ())


def _first(items: Iterable[str], limit: int = 2) -> str:
    every = list(items)
    return ", ".join(map(short_text, every[:limit])) + (f" and {len(every) - limit} more" if len(every) > limit else "")


def _profiles(report: TextReport, session: Session) -> None:
    rows: list[tuple[str, ...]] = []
    for cost in profile_costs(session):
        place = (*_place(cost.delegate), str(cost.profile), " ".join(map(ranges_text, cost.ranges)))
        rows += [(*place, _inputs(item.shapes), *_times(item.time)) for item in cost.shapes] or [
            (*place, "no run used it", "", "", "")
        ]
    columns = ("method", "delegate", "profile", "accepts", "method inputs", *TIMES)
    report.table("What each optimization profile cost", columns, rows, ("profile", *TIMES))


def _inputs(shapes: Sequence[Sequence[int]]) -> str:
    return shapes_text(shapes) or "not recorded"


def _spread(report: TextReport, session: Session) -> None:
    rows = [
        (item.method, _inputs(item.shapes), str(len(item.runs)), *_times(item.wall), str(item.slowest))
        for item in spread(session)
    ]
    columns = ("method", "inputs", "runs", *TIMES, "slowest run")
    report.table("Spread over runs", columns, rows, ("runs", *TIMES, "slowest run"))


def _findings(report: TextReport, session: Session) -> None:
    report.heading("Findings")
    found = findings(session)
    for item in found:
        report.line(f"- {short_text(item.subject)}: {item.fact}")
        report.line(f"  {item.meaning} {item.advice}")
    if not found:
        report.line("Nothing stands out.")
    for note in session.notes:
        report.line(f"Note: {note}")
