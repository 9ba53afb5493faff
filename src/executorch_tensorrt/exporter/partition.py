"""One partition of a method, as the exporter's backend gets it."""

# torch's graphs and sympy's expressions carry few types.
# pyright: reportMissingTypeStubs=false, reportPrivateUsage=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
from executorch.exir.backend.compile_spec_schema import CompileSpec
from torch.export import ExportedProgram

from executorch_tensorrt.engines.blob import AliasedIo, Binding
from executorch_tensorrt.engines.builder import InputBounds
from executorch_tensorrt.exporter.buffers import OwnedBuffer, with_buffers_as_arguments
from executorch_tensorrt.exporter.device import device_index
from executorch_tensorrt.exporter.torch_tensorrt.wrapped import WrappedEngine, read_wrapped
from executorch_tensorrt.graphs.shapes import DimRange, ProfileTable, range_of, symbols_of, tensor_exprs

# What the partitioner tells the backend of each partition.
ENGINE_SPEC = "etrt.engine"
PROFILES_SPEC = "etrt.profiles"
ALIASES_SPEC = "etrt.aliases"


class EngineText(bytes):
    """The value of `ENGINE_SPEC`. A program gets the bytes alone: the engine cache is a folder of this machine."""

    cache: Path | None = None


def engine_spec(kind: str, options: Mapping[str, Any], cache: Path | None) -> CompileSpec:
    """What a partition's engine is asked for with."""
    text = EngineText(json.dumps({"kind": kind, "options": options}).encode())
    text.cache = cache
    return CompileSpec(ENGINE_SPEC, text)


# Torch-TensorRT's C++ reader finds its keys by searching the text for them.
_RESERVED_NAMES = ("io_bindings", "aliased_io", "hardware_compatible", "device_id", "serialized_metadata")


@dataclass(frozen=True)
class Partition:
    """A partition and what its engine must take.

    Attributes:
        index: its place among the method's partitions.
        program: the partition in the edge dialect.
        inputs, outputs: its user inputs and outputs, in order.
        bindings: how the engine calls them, inputs first.
        table: the method's optimization profiles.
        profiles: the engine's: the method's, or one if no input varies.
        kind: the engine kind.
        options: the exporter's `engine_options`.
        cache: the folder of the engine cache, if there is one.
        aliases: outputs that are written in place of inputs, position to position.
        owned: the buffers that the engine owns; their inputs and outputs come after the others.
        wrapped: its engine, if that was built elsewhere.
        device: the index of the CUDA device that its engine is for.
    """

    index: int
    program: ExportedProgram
    inputs: Sequence[torch.fx.Node]
    outputs: Sequence[torch.fx.Node]
    bindings: Sequence[Binding]
    table: ProfileTable
    profiles: Sequence[Mapping[str, DimRange]]
    kind: str
    options: Mapping[str, Any]
    cache: Path | None
    aliases: Mapping[int, int]
    owned: Sequence[OwnedBuffer]
    wrapped: WrappedEngine | None = None
    device: int = 0

    @staticmethod
    def read(index: int, program: ExportedProgram, compile_specs: Sequence[CompileSpec]) -> Partition:
        """Put together what ExecuTorch hands to a backend."""
        specs = {spec.key: bytes(spec.value) for spec in compile_specs}
        engine = json.loads(specs[ENGINE_SPEC])
        table = ProfileTable.from_json(specs[PROFILES_SPEC].decode())
        program, owned = with_buffers_as_arguments(program)
        nodes = {node.name: node for node in program.graph.nodes}
        inputs = [nodes[name] for name in cast("Sequence[str]", program.graph_signature.user_inputs)]
        outputs = [nodes[name] for name in cast("Sequence[str]", program.graph_signature.user_outputs)]
        pairs = [(buffer.output, buffer.input) for buffer in owned]
        pairs += json.loads(specs.get(ALIASES_SPEC, b"[]"))
        wrapped = read_wrapped(program)
        varies = any(symbols_of(expr) for node in inputs for expr in tensor_exprs(node.meta["val"]))
        return Partition(
            index,
            program,
            inputs,
            outputs,
            _bindings(inputs, outputs, wrapped),
            table,
            table.profiles if varies else table.profiles[:1],
            engine["kind"],
            engine["options"],
            next((spec.value.cache for spec in compile_specs if isinstance(spec.value, EngineText)), None),
            {outputs.index(nodes[output]): inputs.index(nodes[source]) for output, source in pairs},
            owned,
            wrapped,
            device_index(compile_specs),
        )

    @property
    def declared(self) -> bool:
        """Whether the method's profiles were declared. Else only an engine that was built elsewhere knows its own."""
        return self.wrapped is None or bool(self.table.signature) or self.is_static

    @property
    def is_static(self) -> bool:
        """Whether no dim of an input varies; such an engine has one optimization profile."""
        return not any(-1 in binding.shape for binding in self.bindings if binding.is_input)

    @property
    def signature(self) -> str:
        """The canonical signature of the engine's optimization profiles; empty if it is static."""
        return "" if self.is_static else self.table.signature

    def aliased_io(self) -> list[AliasedIo]:
        """The outputs that are written in place of inputs, by binding name."""
        names = [binding.name for binding in self.bindings]
        return [
            AliasedIo(names[len(self.inputs) + output], names[source], "kv_cache_update")
            for output, source in self.aliases.items()
        ]

    def derived_bounds(self) -> list[InputBounds]:
        """What the engine's inputs may be in each optimization profile, derived from the method's inputs."""
        return [[ranges_of(node, profile) for node in self.inputs] for profile in self.profiles]


def ranges_of(node: torch.fx.Node, profile: Mapping[str, DimRange]) -> list[DimRange]:
    """The range of every dim of a node's tensor in one optimization profile."""
    return [range_of(expr, profile) for expr in tensor_exprs(node.meta["val"])]


def range_fields(ranges: Sequence[DimRange]) -> dict[str, list[int]]:
    """Ranges as the blob's record has them."""
    return {field: [getattr(span, field) for span in ranges] for field in ("min", "opt", "max")}


def binding_of(name: str, value: torch.Tensor, is_input: bool) -> Binding:
    """The binding of a tensor."""
    shape = [-1 if symbols_of(expr) else int(expr) for expr in tensor_exprs(value)]
    return Binding(name, str(value.dtype).removeprefix("torch."), shape, is_input)


def _bindings(
    inputs: Sequence[torch.fx.Node], outputs: Sequence[torch.fx.Node], wrapped: WrappedEngine | None
) -> list[Binding]:
    if wrapped is not None:
        names = [wrapped.record.inputs[wrapped.inputs.index(node)] for node in inputs]
        names += [wrapped.record.outputs[wrapped.results[node]] for node in outputs]
    else:
        names = _names([*inputs, *outputs])
    nodes = zip(names, [*inputs, *outputs], strict=True)
    return [binding_of(name, node.meta["val"], place < len(inputs)) for place, (name, node) in enumerate(nodes)]


def _names(nodes: Sequence[torch.fx.Node]) -> list[str]:
    taken: set[str] = set(_RESERVED_NAMES)
    names: list[str] = []
    for node in nodes:
        name = re.sub(r"[^A-Za-z0-9_.]", "_", node.name)
        while name in taken:
            name += "_"
        taken.add(name)
        names.append(name)
    return names
