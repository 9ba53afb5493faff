"""The ExecuTorch partitioner that sends a method's operators to TensorRTBackend."""

# torch's graphs and sympy's expressions carry few types.
# pyright: reportMissingTypeStubs=false, reportPrivateUsage=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from executorch.exir.backend.compile_spec_schema import CompileSpec
from executorch.exir.backend.partitioner import DelegationSpec, Partitioner, PartitionResult
from executorch.exir.backend.utils import tag_constant_data
from torch.export import ExportedProgram

from executorch_tensorrt.engines import engine_builder
from executorch_tensorrt.exporter.backend import TensorRTBackend
from executorch_tensorrt.exporter.binding import bind_inputs, tensor_inputs
from executorch_tensorrt.exporter.partition import ENGINE_SPEC, PROFILES_SPEC
from executorch_tensorrt.exporter.shapes import ProfileTable, tensor_exprs
from executorch_tensorrt.exporter.sizes import DeferredTags
from executorch_tensorrt.exporter.support import Support, delegated_ops, is_size, op_name, propose
from executorch_tensorrt.inputs import Input
from executorch_tensorrt.runtime.module import PROFILE_FORMATS, PROFILE_LEVELS

_log = logging.getLogger(__name__)


class TensorRTPartitioner(Partitioner):
    """Partitions a program into engines, each with the method's optimization profiles.

    Use it in `executorch.exir.to_edge_transform_and_lower(program, partitioner=[TensorRTPartitioner(...), ...])`, alone
    or beside other partitioners.

    Args:
        inputs: the method's inputs, an `Input` for each in order, or a dict of input name to `Input`. None: one
            optimization profile with the exported program's own ranges.
        engine: the engine kind; "cpu" needs no GPU.
        torch_executed_ops: operators to keep out of engines: `torch.ops.aten.linear.default`, `torch.ops.aten.linear`
            or "aten.linear".
        min_block_size: the smallest number of operators worth an engine.
        profiling: what the engines trace unless they are loaded with other options: a level ("off", "delegate",
            "phases" or "layers"), or a dict with `level`, `format` ("etdump", "perfetto", "trex") and `path_prefix`.
        engine_options: options of the engine kind.

    Raises:
        ValueError: an argument is out of range, or does not match the program that is partitioned.
        TypeError: an argument is not of the right kind.
    """

    def __init__(
        self,
        inputs: Sequence[Input] | Mapping[str, Input] | None = None,
        *,
        engine: str = "cpu",
        torch_executed_ops: Iterable[object] = (),
        min_block_size: int = 1,
        profiling: str | Mapping[str, str] | None = None,
        engine_options: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        if type(min_block_size) is not int or min_block_size < 1:
            raise ValueError(f"min_block_size is not valid: got {min_block_size!r}, allowed an int from 1; correct it.")
        self._builder = engine_builder(engine)
        self._options = dict(engine_options or {})
        self._builder.check_options(self._options)
        self._inputs = inputs
        self._excluded = frozenset(op_name(op) for op in torch_executed_ops)
        self._min_block_size = min_block_size
        self._profiling = _profiling_specs(profiling)
        self._preserved: set[object] = set()
        self._tables: dict[object, ProfileTable] = {}
        self.left_outside: dict[str, str] = {}
        """Operators that the last call of `partition` kept out of engines: node name to reason."""

    def transform_for_pre_decomposition(self, exported_program: ExportedProgram) -> ExportedProgram:
        """See `Partitioner`. Changes nothing, but finds wrong inputs before the slow steps."""
        self._tables[_domain(exported_program)] = bind_inputs(exported_program, self._inputs)
        return exported_program

    def ops_to_not_decompose(
        self, ep: ExportedProgram
    ) -> tuple[list[torch._ops.OpOverload], Callable[[torch.fx.Node], bool] | None]:
        """See `Partitioner`. An operator that would be left outside an engine is decomposed, or it could not run."""
        wanted = self._builder.ops_to_preserve(ep)
        preserved = delegated_ops(ep, self._support(), self._min_block_size, wanted)
        self._preserved.update(preserved)
        return preserved, None

    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        """See `Partitioner`."""
        table = self._tables.get(_domain(exported_program)) or bind_inputs(exported_program, self._inputs)
        module = exported_program.graph_module
        support = self._support()
        blocks = propose(module, support, self._min_block_size, self._preserved)
        while support.exclude_layouts_at_borders(blocks):
            blocks = propose(module, support, self._min_block_size, self._preserved)
        spec = DelegationSpec(TensorRTBackend.__name__, self._compile_specs(table.to_json()))
        tags: dict[str, DelegationSpec] = {}
        for index, block in enumerate(blocks):
            tags[f"tensorrt_{index}"] = spec
            for node in block:
                node.meta["delegation_tag"] = f"tensorrt_{index}"
        _tag_constants(exported_program)
        self.left_outside = {
            node.name: support.reason(node) or f"its block has fewer than {self._min_block_size} operators"
            for node in module.graph.nodes
            if node.op == "call_function" and "delegation_tag" not in node.meta and not is_size(node)
        }
        _log.info("%d partitions, %d operators outside", len(blocks), len(self.left_outside))
        dynamic = bool(exported_program.range_constraints)
        return PartitionResult(exported_program, DeferredTags(tags, module) if dynamic else tags)

    def _support(self) -> Support:
        return Support(self._builder, self._excluded)

    def _compile_specs(self, table: str) -> list[CompileSpec]:
        specs = [
            CompileSpec(ENGINE_SPEC, json.dumps({"kind": self._builder.kind, "options": self._options}).encode()),
            CompileSpec(PROFILES_SPEC, table.encode()),
        ]
        return specs + self._profiling


_PROFILING_WORDS: Mapping[str, tuple[str, ...]] = {
    "level": PROFILE_LEVELS,
    "format": PROFILE_FORMATS,
    "path_prefix": (),
}


def _profiling_specs(profiling: str | Mapping[str, str] | None) -> list[CompileSpec]:
    """The defaults that a program carries for its engines' profiling options."""
    options = {"level": profiling} if isinstance(profiling, str) else dict(profiling or {})
    for key, value in options.items():
        if key not in _PROFILING_WORDS:
            allowed = ", ".join(map(repr, _PROFILING_WORDS))
            raise ValueError(f"profiling has an unknown key: got {key!r}, allowed {allowed}; correct it.")
        words = _PROFILING_WORDS[key]
        if not isinstance(value, str) or not value or (words and value not in words):
            allowed = ", ".join(map(repr, words)) or "a folder"
            raise ValueError(f"profiling {key} is not valid: got {value!r}, allowed {allowed}; choose one of them.")
    return [CompileSpec(f"torchtrt_profile_{key}", value.encode()) for key, value in options.items()]


def _domain(program: ExportedProgram) -> object:
    """What identifies a program's inputs before and after decomposition, which forgets lower bounds of 1."""
    shapes = tuple((node.name, tuple(map(str, tensor_exprs(node.meta["val"])))) for node in tensor_inputs(program))
    return shapes, tuple(sorted((str(symbol), str(span.upper)) for symbol, span in program.range_constraints.items()))


def _tag_constants(program: ExportedProgram) -> None:
    """Put weights into the partitions that use them, except those that the method also returns."""
    tag_constant_data(program)
    for node in program.graph.output_node().all_input_nodes:
        if node.op == "placeholder":
            node.meta.pop("delegation_tag", None)
