"""The first lines about a method: how long a call takes, and where that time goes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from executorch_tensorrt.profiling.processors.gaps import Gap
from executorch_tensorrt.profiling.processors.layers import Layer
from executorch_tensorrt.profiling.processors.phases import DelegatePhases
from executorch_tensorrt.profiling.processors.regions import Region
from executorch_tensorrt.profiling.processors.times import Times, grouped, share_of
from executorch_tensorrt.profiling.session import Session

PartKind = Literal["phase", "outside phases", "delegate", "foreign delegate", "operators", "orchestration"]


@dataclass(frozen=True)
class Part:
    """A part of a method's host time.

    Attributes:
        kind: "phase" of TensorRT delegates, their time "outside phases", a "delegate" whose phases were not traced,
            a "foreign delegate", "operators" outside delegates, and "orchestration": what is ExecuTorch's own.
        name: the phase as traced, the foreign delegate's backend, else empty.
        label: in words.
        share: 0 to 1; the parts of a method add up to 1.
    """

    kind: PartKind
    name: str
    label: str
    share: float


@dataclass(frozen=True)
class Summary:
    """A method in short.

    Attributes:
        method: the method.
        wall: its calls from the caller's side.
        parts: in the order in which a call goes through them; none where nothing was traced.
        layer: the one with the most time, if layers were traced.
    """

    method: str
    wall: Times
    parts: list[Part]
    layer: Layer | None

    def share_of(self, *kinds: PartKind, names: Sequence[str] = ()) -> float:
        """Of parts of these kinds, with one of these names where names are given."""
        return sum(part.share for part in self.parts if part.kind in kinds and (not names or part.name in names))


def summaries(
    session: Session,
    regions: Sequence[Region],
    phases: Sequence[DelegatePhases],
    gaps: Sequence[Gap],
    layers: Sequence[Layer],
) -> list[Summary]:
    """Every method that ran, in order of first runs, from what the other processors found."""
    found: list[Summary] = []
    regions_of, phases_of = grouped(regions, _method), grouped(phases, _method)
    gaps_of, layers_of = grouped(gaps, lambda gap: gap.method), grouped(layers, _method)
    for method, runs in grouped(session.runs, lambda run: run.method).items():
        splits = {split.delegate.instruction: split for split in phases_of.get(method, [])}
        parts = _parts(regions_of.get(method, []), splits, gaps_of.get(method, []))
        layer = next(iter(layers_of.get(method, [])), None)
        found.append(Summary(method, Times.of([run.wall_us for run in runs]), parts, layer))
    return found


def _method(item: Region | DelegatePhases | Layer) -> str:
    return item.delegate.method


def _parts(regions: Sequence[Region], phases: dict[int, DelegatePhases], gaps: Sequence[Gap]) -> list[Part]:
    totals: defaultdict[tuple[PartKind, str, str], float] = defaultdict(float)
    for region in regions:
        split = phases.get(region.delegate.instruction)
        named = [phase for phase in split.phases if phase.name] if split else []
        for phase in named:
            totals["phase", phase.name, phase.label] += phase.time.total_us
        rest = max(region.time.total_us - sum(phase.time.total_us for phase in named), 0.0)
        if named:
            totals["outside phases", "", "outside phases"] += rest
        elif region.delegate.engine is not None:
            totals["delegate", "", "TensorRT delegates"] += rest
        else:
            totals["foreign delegate", region.delegate.backend_id, region.delegate.backend_id] += rest
    for gap in gaps:
        totals["operators", "", "operators outside delegates"] += sum(each.time.total_us for each in gap.operators)
        totals["orchestration", "", "ExecuTorch between delegates"] += gap.orchestration.total_us
    whole = sum(totals.values())
    return [Part(kind, name, label, share_of(us, whole)) for (kind, name, label), us in totals.items() if us > 0]


__all__ = ["Part", "PartKind", "Summary", "summaries"]
