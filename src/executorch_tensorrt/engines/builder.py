"""What an engine builder gets and what it returns."""

# torch's graphs and sympy's expressions carry few types.
# pyright: reportMissingTypeStubs=false, reportPrivateUsage=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch.export import ExportedProgram

from executorch_tensorrt.exporter.shapes import DimRange


@dataclass(frozen=True)
class BuildRequest:
    """One partition to build an engine from.

    Attributes:
        program: the partition in the edge dialect. It is shared with the caller: do not change it.
        profiles: the range of each shape symbol, one mapping per optimization profile.
        options: the exporter's `engine_options`.
    """

    program: ExportedProgram
    profiles: Sequence[Mapping[str, DimRange]]
    options: Mapping[str, Any]


@dataclass(frozen=True)
class BuiltEngine:
    """What a builder returns.

    Attributes:
        data: the engine.
        layer_handles: per optimization profile, the debug handles of the partition's operators that a layer runs, by
            what the engine reports as the layer's instruction; empty where the conversion recorded no link.
    """

    data: bytes
    layer_handles: Sequence[Mapping[int, Sequence[int]]] = ()


class EngineBuilder(Protocol):
    """Builds one kind of engine."""

    kind: str
    magic: bytes

    def check_options(self, options: Mapping[str, Any]) -> None:
        """Raise ValueError for an `engine_options` entry that this kind does not take."""
        ...

    def unsupported_reason(self, node: torch.fx.Node) -> str | None:
        """Why this engine can't run an edge operator; None if it can."""
        ...

    def ops_to_preserve(self, program: ExportedProgram) -> Sequence[torch._ops.OpOverload]:
        """Operators of an ATen program that `build` wants to see whole, not decomposed."""
        ...

    def build(self, request: BuildRequest) -> BuiltEngine:
        """Build an engine with one optimization profile per entry of `request.profiles`."""
        ...
