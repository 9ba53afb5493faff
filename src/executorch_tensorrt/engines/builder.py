"""What an engine builder gets and what it returns."""

# torch's graphs and sympy's expressions carry few types.
# pyright: reportMissingTypeStubs=false, reportPrivateUsage=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol, TypeAlias

import torch
from torch.export import ExportedProgram

from executorch_tensorrt.engines.blob import PLATFORM, Binding
from executorch_tensorrt.graphs.shapes import DimRange

InputBounds: TypeAlias = "Sequence[Sequence[DimRange]]"
"""The ranges of one optimization profile: those of every dim of every input."""


@dataclass(frozen=True)
class BuildRequest:
    """One partition to build an engine from.

    Attributes:
        program: the partition in the edge dialect. It is shared with the caller: do not change it.
        profiles: the range of each shape symbol, one mapping per optimization profile.
        bindings: inputs in the order of the program's, then outputs. An engine with named bindings has these names.
        bounds: what the inputs may be in each optimization profile.
        aliases: outputs that the engine writes in place of an input: position among the outputs to that among the
            inputs. Only for builders that `updates_in_place`.
    """

    program: ExportedProgram
    profiles: Sequence[Mapping[str, DimRange]]
    bindings: Sequence[Binding]
    bounds: Sequence[InputBounds]
    aliases: Mapping[int, int]


@dataclass(frozen=True)
class BuiltEngine:
    """What a builder returns.

    Attributes:
        data: the engine.
        layer_handles: per optimization profile, the debug handles of the partition's operators that a layer runs, by
            what the engine reports of the layer: its instruction, or its name; empty where the conversion recorded no
            link.
        bounds: what the engine itself says it accepts in each optimization profile; None where it can't be asked here.
        builder: what built it, such as "TensorRT-RTX 1.7.1".
        hardware_compatible: whether it runs on other GPUs than the one that it was built for.
        target_platform: the operating system and processor that it is for.
    """

    data: bytes
    layer_handles: Sequence[Mapping[int | str, Sequence[int]]] = ()
    bounds: Sequence[InputBounds] | None = None
    builder: str = ""
    hardware_compatible: bool = False
    target_platform: str = PLATFORM


class EnginesMissingError(RuntimeError):
    """Engines have to be built on another machine, and were asked for in an engine cache.

    Attributes:
        cache: its folder.
        target: the TensorRT to build them with.
        count: how many.
    """

    def __init__(self, cache: Path, target: str, count: int) -> None:
        requests = "1 build request" if count == 1 else f"{count} build requests"
        super().__init__(
            f"engines are missing: got {requests} in '{cache}', wanted the engines; run 'etrt build-engines {cache}' "
            f"on a machine with {target} (take the folder there and back), then export again."
        )
        self.cache = cache
        self.target = target
        self.count = count


class RefusedOperator(NamedTuple):
    """A node of a partition that its engine can't be built with, by name and operator, and why."""

    node: str
    operator: str
    reason: str


class OperatorsRefusedError(RuntimeError):
    """An engine can't be built because of some operators, which can stay outside.

    Attributes:
        operators: these operators.
        method: the method that they are in; empty until the exporter's backend has said it.
    """

    def __init__(self, message: str, operators: Sequence[RefusedOperator]) -> None:
        super().__init__(message)
        self.operators = tuple(operators)
        self.method = ""


class EngineBuilder(Protocol):
    """Builds one kind of engine."""

    kind: str
    magic: bytes
    updates_in_place: bool
    """Whether its engines can write an output in place of an input. Others have their own buffers at two addresses, in
    turn."""

    def unsupported_reason(self, node: torch.fx.Node) -> str | None:
        """Why this engine can't run an edge operator; None if it can."""
        ...

    def ops_to_preserve(self, program: ExportedProgram) -> Sequence[torch._ops.OpOverload]:
        """Operators of an ATen program that `build` wants to see whole, not decomposed."""
        ...

    def build(self, request: BuildRequest) -> BuiltEngine:
        """Build an engine with one optimization profile per entry of `request.profiles`.

        Raises:
            EnginesMissingError: it has to be built elsewhere.
            OperatorsRefusedError: an engine with these operators can't be built; `unsupported_reason` did not know.
            RuntimeError: it can't be built.
        """
        ...
