"""The graph region of a delegate as a tree of the model's modules, with the time of their layers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from executorch_tensorrt.profiling.processors.layers import Layer
from executorch_tensorrt.profiling.processors.regions import Region
from executorch_tensorrt.profiling.processors.times import share_of
from executorch_tensorrt.profiling.session import Source

_DEEPEST = 64  # what lies below counts as one module: the tree is walked by recursion


@dataclass(frozen=True)
class ModuleTime:
    """A module of the model and what is below it.

    Attributes:
        name: its path from the parent: "encoder.layer" where nothing branches off before "layer". "" for the root.
        operators: how many operators of the region come from it and from what is below.
        share: its part of the region's layer time, 0 to 1; 0 where layers are not tied to sources.
        sources: its own operators with how often each occurs, in order.
        children: in order of the graph.
    """

    name: str
    operators: int
    share: float
    sources: list[tuple[Source, int]]
    children: list[ModuleTime]


@dataclass
class _Node:
    sources: Counter[Source] = field(default_factory=Counter[Source])
    time_us: float = 0.0
    children: dict[str, _Node] = field(default_factory=dict[str, "_Node"])

    def at(self, path: str) -> _Node:
        node = self
        for part in filter(None, path.split(".", _DEEPEST)):
            node = node.children.setdefault(part, _Node())
        return node


def module_tree(region: Region, layers: Sequence[Layer]) -> ModuleTime:
    """Sorts a region's operators and its layers' time by module.

    Args:
        region: the region.
        layers: the region's layers. A layer that comes from several modules counts for what they have in common.
    """
    root = _Node()
    for source in region.sources:
        root.at(source.module).sources[source] += 1
    total = 0.0
    for layer in layers:
        total += layer.time.total_us
        if layer.sources:
            root.at(_common(source.module for source in layer.sources)).time_us += layer.time.total_us
    return _finished("", root, total)


def _common(modules: Iterable[str]) -> str:
    levels = zip(*(module.split(".") for module in modules), strict=False)
    return ".".join(parts[0] for parts in takewhile(lambda parts: len(set(parts)) == 1, levels))


def _finished(name: str, node: _Node, total: float) -> ModuleTime:
    children = [_finished(part, child, total) for part, child in node.children.items()]
    if name and len(children) == 1 and not node.sources and not node.time_us:
        only = children[0]
        return ModuleTime(f"{name}.{only.name}", only.operators, only.share, only.sources, only.children)
    return ModuleTime(
        name=name,
        operators=node.sources.total() + sum(child.operators for child in children),
        share=share_of(node.time_us, total) + sum(child.share for child in children),
        sources=list(node.sources.items()),
        children=children,
    )


__all__ = ["ModuleTime", "module_tree"]
