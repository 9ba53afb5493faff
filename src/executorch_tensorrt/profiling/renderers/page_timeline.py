"""What timeline.js gets: spans as short rows, names and sources by number. And the strip plots."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, get_args

from markupsafe import Markup

from executorch_tensorrt.events import EVENT_PREFIX, PHASES
from executorch_tensorrt.profiling.processors.timeline import Lane, RunGroup, Span, SpanKind, Timeline, Timelines
from executorch_tensorrt.profiling.processors.times import Times, grouped
from executorch_tensorrt.profiling.renderers.page_format import duration, shown
from executorch_tensorrt.profiling.renderers.page_scale import place_on, ticks_for
from executorch_tensorrt.profiling.session import Run, Source
from executorch_tensorrt.words import shapes_text

MAX_COLOURS = 7
MAX_DOTS = 400

_LANES: tuple[str, ...] = get_args(Lane)
_SCRIPT_ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})

T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True)
class Colour:
    """A line of the legend for layers: the style that it has, and the operator type or kernel that it stands for."""

    style: str
    label: str


@dataclass(frozen=True)
class Dot:
    """A run in a strip plot: its place from left and from top in percent, and which timeline shows it, -1 for none."""

    left: float
    top: float
    timeline: int
    run: Run


@dataclass(frozen=True)
class Strip:
    """Runs of a group on a scale of wall time.

    Attributes:
        group: the runs.
        dots: some of them, where there are many.
        ticks: places in percent, with microseconds.
        logarithmic: the scale.
        wall: times of its runs that took any.
    """

    group: RunGroup
    dots: list[Dot]
    ticks: list[tuple[float, float]]
    logarithmic: bool
    wall: Times

    def place(self, microseconds: float) -> float:
        """Percent from the left."""
        return place_on(microseconds, self.ticks[0][1], self.ticks[-1][1], self.logarithmic)


def in_script(data: Any) -> Markup:
    """JSON for a script element: no text in it can end the element."""
    return Markup(json.dumps(data, allow_nan=False, separators=(",", ":")).translate(_SCRIPT_ESCAPES))


def layer_kind(name: str, sources: Sequence[Source]) -> str:
    """What colours a layer: its operator type where there is one, else its name without the numbers of repetitions."""
    operators = {source.op for source in sources}
    return operators.pop() if len(operators) == 1 else _without_repetitions(name)


def _without_repetitions(name: str) -> str:
    """Without " #1" and the like at its end. A regular expression takes time quadratic in the length of the name."""
    end = len(name)
    while (begin := name.rfind(" #", 0, end)) >= 0 and name[begin + 2 : end].isdecimal():
        end = begin
    return name[:end]


def phase_style(name: str) -> str:
    """The style of a phase, by its name as traced; "outside" for what lies in none."""
    if name in PHASES:
        return name.removeprefix(EVENT_PREFIX).replace("_", "-")
    return "phase-rest" if name else "outside"


def layer_colours(shown_runs: Timelines) -> list[Colour]:
    """The operator types with the most time, a colour each."""
    times: Counter[str] = Counter()
    for timeline in shown_runs.timelines:
        for span in timeline.spans:
            if span.kind == "layer":
                times[layer_kind(span.name, span.sources)] += round(span.duration_us * 1000) + 1
    return [Colour(f"layer-{k}", kind) for k, (kind, _) in enumerate(times.most_common(MAX_COLOURS))]


def timeline_data(shown_runs: Timelines, colours: Sequence[Colour]) -> dict[str, Any]:
    """The runs for timeline.js, by the page's names: see `unpack` there."""
    names, styles, sources, facts = _Numbers[str](), _Numbers[str](), _Numbers[tuple[str, ...]](), _Numbers[Any]()
    by_kind = {colour.label: colour.style for colour in colours}

    def row(span: Span) -> list[Any]:
        said = tuple((shown(key), _fact(value)) for key, value in span.metadata.items() if key not in _TOLD)
        return [
            _LANES.index(span.lane),
            span.depth,
            names.of(shown(span.name)),
            round(span.start_us, 3),
            round(span.duration_us, 3),
            styles.of(_style(span, by_kind)),
            [sources.of((shown(s.op), shown(s.module), shown(s.location))) for s in span.sources],
            facts.of(said) if said else None,
        ]

    runs = [
        {
            "host_us": _of_kind(timeline, "method"),
            "title": f"Run {timeline.run.number} of {shown(timeline.run.method)}",
            "facts": _run_facts(timeline),
            "spans": [row(span) for span in timeline.spans],
        }
        for timeline in shown_runs.timelines
    ]
    return {
        "selected": shown_runs.selected,
        "runs": runs,
        "lanes": _LANES,
        "names": names.values,
        "styles": styles.values,
        "sources": sources.values,
        "facts": facts.values,
    }


def run_label(timeline: Timeline, several_methods: bool) -> str:
    """How the list of runs names one."""
    run = timeline.run
    parts = [f"run {run.number}"]
    if several_methods:
        parts.insert(0, run.method)
    profiles = sorted(set(run.profiles.values()))
    if profiles:
        parts.append(f"profile {', '.join(map(str, profiles))}")
    parts.append(shapes_text(run.shapes[:3]))
    return " · ".join(filter(None, parts))


def strips(groups: Sequence[RunGroup], shown_runs: Timelines) -> list[Strip]:
    """A strip plot per group; groups of one method share a scale."""
    place = {(t.run.method, t.run.number): index for index, t in enumerate(shown_runs.timelines)}
    plotted: list[Strip] = []
    extent = {method: _extent(own) for method, own in grouped(groups, lambda group: group.method).items()}
    for group in groups:
        least, most = extent[group.method]
        own = [run.wall_us for run in group.runs if math.isfinite(run.wall_us) and run.wall_us > 0]
        if not own:
            continue
        logarithmic = most > 8 * least
        ticks = ticks_for(least, most, logarithmic)
        lower, upper = ticks[0][1], ticks[-1][1]
        every = math.ceil(len(group.runs) / MAX_DOTS)
        kept = [r for k, r in enumerate(group.runs) if k % every == 0 or r is group.fastest or r is group.slowest]
        dots = [
            Dot(place_on(r.wall_us, lower, upper, logarithmic), _jitter(k), place.get((r.method, r.number), -1), r)
            for k, r in enumerate(kept)
            if math.isfinite(r.wall_us) and r.wall_us > 0
        ]
        plotted.append(Strip(group, dots, ticks, logarithmic, Times.of(own)))
    return plotted


def _extent(groups: Sequence[RunGroup]) -> tuple[float, float]:
    """The smallest and the largest wall time; 0 and 0 where there is none."""
    walls = [run.wall_us for group in groups for run in group.runs if math.isfinite(run.wall_us) and run.wall_us > 0]
    return (min(walls), max(walls)) if walls else (0.0, 0.0)


_TOLD = frozenset({"instruction", "clock"})  # Said elsewhere, or of no use to a reader.


class _Numbers(Generic[T]):
    """Numbers for values, in order of their first use."""

    def __init__(self) -> None:
        self._numbers: dict[T, int] = {}

    def of(self, value: T) -> int:
        return self._numbers.setdefault(value, len(self._numbers))

    @property
    def values(self) -> list[T]:
        return list(self._numbers)


def _style(span: Span, by_kind: dict[str, str]) -> str:
    if span.kind == "phase":
        return phase_style(span.name)
    if span.kind == "layer":
        return by_kind.get(layer_kind(span.name, span.sources), "layer-rest")
    if span.kind == "call" and "engine_kind" not in span.metadata:
        return "foreign"
    if span.kind == "other" and span.lane == "operators":
        return "operator"
    return span.kind


def _fact(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return shown(value if isinstance(value, (str, int)) else json.dumps(value, ensure_ascii=False, default=str))


def _run_facts(timeline: Timeline) -> list[tuple[str, str]]:
    run = timeline.run
    facts = [
        ("From the caller's side", duration(run.wall_us).striptags()),
        ("In ExecuTorch", duration(_of_kind(timeline, "method")).striptags()),
        ("In delegates", duration(_of_kind(timeline, "call")).striptags()),
        ("Between delegates", duration(_of_kind(timeline, "gap")).striptags()),
        ("Inputs", shapes_text(run.shapes[:8])),
        ("Optimization profile", ", ".join(map(str, sorted(set(run.profiles.values()))))),
    ]
    return [(key, shown(value)) for key, value in facts if value]


def _of_kind(timeline: Timeline, kind: SpanKind) -> float:
    return round(sum(span.duration_us for span in timeline.spans if span.kind == kind), 3)


def _jitter(k: int) -> float:
    """Heights that keep neighbours apart; the golden ratio spreads them evenly."""
    return round(22 + 56 * math.modf(k * 0.6180339887)[0], 1)


__all__ = [
    "Colour",
    "Dot",
    "Strip",
    "in_script",
    "layer_colours",
    "layer_kind",
    "phase_style",
    "run_label",
    "strips",
    "timeline_data",
]
