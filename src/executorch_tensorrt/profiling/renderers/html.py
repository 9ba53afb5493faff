"""The report as a page: one file that needs no network."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from executorch_tensorrt.profiling import processors
from executorch_tensorrt.profiling.processors import DelegatePhases, Finding, Layer
from executorch_tensorrt.profiling.processors.modules import module_tree
from executorch_tensorrt.profiling.processors.summary import Part, summaries
from executorch_tensorrt.profiling.processors.timeline import (
    MAX_RUNS,
    MAX_SPANS,
    MAX_SPANS_PER_RUN,
    run_groups,
    timelines,
)
from executorch_tensorrt.profiling.processors.times import grouped, share_of
from executorch_tensorrt.profiling.renderers import page, page_format, page_timeline
from executorch_tensorrt.profiling.session import Session

MAX_ROWS = 300

_PART_STYLES = {
    "outside phases": "outside",
    "delegate": "call",
    "foreign delegate": "foreign",
    "operators": "operator",
    "orchestration": "gap",
}


@dataclass(frozen=True)
class OperatorType:
    """Layers of one operator type on one clock: `share` is of all layer time on that clock."""

    name: str
    style: str
    clock: str
    layers: int
    share: float


@dataclass(frozen=True)
class Advice:
    """Findings that mean the same and call for the same, in one place or several."""

    title: str
    items: list[Finding]
    meaning: str
    advice: str


def render(session: Session) -> str:
    """The session as an HTML page: style, scripts and data are in it, and it opens from disk.

    Names are shown on one line of 200 characters at most. Tables have 300 rows at most, and the timeline as many runs
    and spans as `processors.timeline` allows; where something is left out, the page says so.
    """
    return page.render("report.html.jinja", _page(session))


def _page(session: Session) -> dict[str, Any]:
    regions, layers = processors.regions(session), processors.layers(session)
    phases, gaps = processors.phases(session), processors.gaps(session)
    shown_runs, groups = timelines(session), run_groups(session)
    layers_of = grouped(layers, lambda layer: layer.delegate.place)
    colours = page_timeline.layer_colours(shown_runs)
    data = page_timeline.timeline_data(shown_runs, colours)
    several = len(groups) > 0 and len({group.method for group in groups}) > 1
    return {
        "session": session,
        "part_style": _part_style,
        "several_methods": several,
        "summaries": summaries(session, regions, phases, gaps, layers),
        "regions": regions,
        "runs_of": Counter(run.method for run in session.runs),
        "profiles_used": _profiles_used(session),
        "phases": phases,
        "phase_columns": _phase_columns(phases),
        "device_times": processors.device_times(session),
        "layers": layers,
        "operator_types": _operator_types(layers, colours),
        "gaps": gaps,
        "trees": [module_tree(region, layers_of.get(region.delegate.place, [])) for region in regions],
        "profile_costs": processors.profile_costs(session),
        "spread": processors.spread(session),
        "strips": page_timeline.strips(groups, shown_runs),
        "findings": _by_advice(processors.findings(session)),
        "timelines": shown_runs,
        "run_labels": [page_timeline.run_label(timeline, several) for timeline in shown_runs.timelines],
        "timeline_data": page_timeline.in_script(data),
        "key": _key(data["styles"], _phase_columns(phases), colours),
        "limits": {"runs": MAX_RUNS, "spans": MAX_SPANS, "spans_per_run": MAX_SPANS_PER_RUN},
        "max_rows": MAX_ROWS,
        "max_text": page_format.MAX_TEXT,
    }


def _by_advice(findings: Sequence[Finding]) -> list[Advice]:
    grouped: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in findings:
        grouped.setdefault((finding.kind, finding.meaning, finding.advice), []).append(finding)
    return [
        Advice(f"{kind[:1].upper()}{kind[1:]}", items, meaning, todo)
        for (kind, meaning, todo), items in grouped.items()
    ]


def _part_style(part: Part) -> str:
    return page_timeline.phase_style(part.name) if part.kind == "phase" else _PART_STYLES[part.kind]


def _profiles_used(session: Session) -> dict[tuple[str, int], list[tuple[int, int]]]:
    """By method and instruction: optimization profiles with the number of runs that used each."""
    used: defaultdict[tuple[str, int], Counter[int]] = defaultdict(Counter)
    for run in session.runs:
        for instruction, profile in run.profiles.items():
            used[run.method, int(instruction)][profile] += 1
    return {place: sorted(counts.items()) for place, counts in used.items()}


def _phase_columns(phases: Sequence[DelegatePhases]) -> list[tuple[str, str, str]]:
    """Name, style and label of every phase, in the order in which they run."""
    columns = {phase.name: phase.label for split in phases for phase in split.phases}
    unsplit = columns.pop("", None)
    if unsplit is not None:
        columns[""] = unsplit
    return [(name, page_timeline.phase_style(name), label) for name, label in columns.items()]


def _key(
    styles: Sequence[str], phase_columns: Sequence[tuple[str, str, str]], colours: Sequence[page_timeline.Colour]
) -> list[tuple[str, str]]:
    """Styles with labels, of those that occur in the timeline."""
    known = [
        ("call", "TensorRT delegate"),
        ("foreign", "other delegate"),
        ("operator", "operator"),
        ("gap", "between delegates"),
        *((style, label) for name, style, label in phase_columns if name),
        *((colour.style, colour.label) for colour in colours),
        ("layer-rest", "other layers"),
    ]
    return [(style, label) for style, label in known if style in styles]


def _operator_types(layers: Sequence[Layer], colours: Sequence[page_timeline.Colour]) -> list[OperatorType]:
    styles = {colour.label: colour.style for colour in colours}
    times: defaultdict[tuple[str, str], float] = defaultdict(float)
    counts: Counter[tuple[str, str]] = Counter()
    wholes: defaultdict[str, float] = defaultdict(float)
    for layer in layers:
        kind = page_timeline.layer_kind(layer.name, layer.sources)
        times[kind, layer.clock] += layer.time.total_us
        counts[kind, layer.clock] += 1
        wholes[layer.clock] += layer.time.total_us
    rows = [
        OperatorType(kind, styles.get(kind, "layer-rest"), clock, counts[kind, clock], share_of(us, wholes[clock]))
        for (kind, clock), us in times.items()
    ]
    return sorted(rows, key=lambda row: -row.share)


__all__ = ["MAX_ROWS", "render"]
