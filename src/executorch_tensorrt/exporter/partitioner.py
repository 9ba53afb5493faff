"""The ExecuTorch partitioner that sends a method's operators to TensorRTBackend."""

# torch's graphs and sympy's expressions carry few types.
# pyright: reportMissingTypeStubs=false, reportPrivateUsage=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import torch
from executorch.exir.backend.compile_spec_schema import CompileSpec
from executorch.exir.backend.partitioner import DelegationSpec, Partitioner, PartitionResult
from executorch.exir.backend.utils import tag_constant_data
from executorch.exir.passes.propagate_device_pass import TARGET_DEVICE_COMPILE_SPEC_KEY
from torch.export import ExportedProgram

from executorch_tensorrt.engines import engine_builder
from executorch_tensorrt.engines.builder import OperatorsRefusedError
from executorch_tensorrt.exporter.backend import TensorRTBackend
from executorch_tensorrt.exporter.binding import bind_inputs, tensor_inputs
from executorch_tensorrt.exporter.buffers import TAG, aliases_by_tag, tag_owned
from executorch_tensorrt.exporter.device import device_specs
from executorch_tensorrt.exporter.graph_checks import check_lowered, check_values
from executorch_tensorrt.exporter.partition import ALIASES_SPEC, PROFILES_SPEC, engine_spec
from executorch_tensorrt.exporter.sizes import DeferredTags
from executorch_tensorrt.exporter.support import Support, delegated_ops, op_name, propose
from executorch_tensorrt.exporter.torch_tensorrt.engine_op import is_engine
from executorch_tensorrt.exporter.torch_tensorrt.namesake import claim_name
from executorch_tensorrt.exporter.torch_tensorrt.wrapped import check_wrapped, device_of, wrap_engines
from executorch_tensorrt.graphs.nodes import is_size
from executorch_tensorrt.graphs.shape_env import keep_ranges
from executorch_tensorrt.graphs.shapes import ProfileTable, tensor_exprs
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
            "phases" or "layers"), or a dict with `level` and `format` ("etdump", "perfetto", "trex"). Where files are
            written to is said where the program is loaded: whoever makes a program has no say in it.
        engine_options: options of the engine kind.
        engine_cache: a folder that keeps TensorRT engines, so that none is built twice; it is made if it is missing.
            Where engines can't be built, build requests are left in it, and lowering stops with RuntimeError.
        device: "cuda:0" and so on: plan the engines' inputs and outputs in the memory of that device; what passes from
            engine to engine stays there. None: on the host, from where engines on a GPU copy them in each call.
        use_cuda_graphs: replay the engines' calls as CUDA graphs, unless they are loaded with another choice.
        take_over_mutable_buffer: let engines own the buffers that the method updates (KV caches): they keep them
            between calls, on the GPU if they run there, and no call copies them. Else they stay in the program's own
            memory, where engines update them in place if they can.

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
        engine_cache: str | os.PathLike[str] | None = None,
        device: str | None = None,
        use_cuda_graphs: bool = False,
        take_over_mutable_buffer: bool = False,
    ) -> None:
        super().__init__()
        if type(min_block_size) is not int or min_block_size < 1:
            raise ValueError(f"min_block_size is not valid: got {min_block_size!r}, allowed an int from 1; correct it.")
        self._options = dict(engine_options or {})
        self._cache = None if engine_cache is None else Path(engine_cache)
        if self._cache is not None and self._cache.exists() and not self._cache.is_dir():
            raise ValueError(f"engine_cache is no folder: got '{self._cache}', which is a file; name a folder.")
        self._builder = engine_builder(engine, self._options, self._cache)
        self._inputs = inputs
        if isinstance(torch_executed_ops, str):
            raise TypeError(
                f"torch_executed_ops is not a list: got {torch_executed_ops!r}, allowed a list of operators; write "
                f"[{torch_executed_ops!r}]."
            )
        self._excluded = frozenset(op_name(op) for op in torch_executed_ops)
        self._min_block_size = min_block_size
        self._profiling = _profiling_specs(profiling)
        self._device = device_specs(device, engine)
        self._replay = [CompileSpec("use_cuda_graphs", b"true")] if use_cuda_graphs else []
        self._owns_buffers = take_over_mutable_buffer
        self._preserved: set[object] = set()
        self._refused: dict[str, str] = {}
        self._refused_operators: set[str] = set()
        self._tables: dict[object, ProfileTable] = {}
        self.left_outside: dict[str, str] = {}
        """Operators that the last call of `partition` kept out of engines: node name to reason."""

    def transform_for_pre_decomposition(self, exported_program: ExportedProgram) -> ExportedProgram:
        """See `Partitioner`. Makes ready the engines that are there, and finds wrong inputs before the slow steps."""
        keep_ranges(exported_program)
        check_values(exported_program)
        exported_program = wrap_engines(exported_program)
        self._tables[_domain(exported_program)] = self._bind(exported_program)
        return exported_program

    def ops_to_not_decompose(
        self, ep: ExportedProgram
    ) -> tuple[list[torch._ops.OpOverload], Callable[[torch.fx.Node], bool] | None]:
        """See `Partitioner`. An operator that would be left outside an engine is decomposed, or it could not run."""
        if any(map(is_engine, ep.graph.nodes)):
            return [], None
        # One that was refused is not preserved either: what it consists of may do better.
        wanted = [op for op in self._builder.ops_to_preserve(ep) if str(op) not in self._refused_operators]
        preserved = delegated_ops(ep, self._support(), self._min_block_size, wanted)
        self._preserved.update(preserved)
        return preserved, None

    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        """See `Partitioner`."""
        claim_name(TensorRTBackend)
        check_wrapped(exported_program)
        table = self._tables.get(_domain(exported_program)) or self._bind(exported_program)
        keep_ranges(exported_program)
        check_lowered(exported_program, table)
        if any(map(is_engine, exported_program.graph.nodes)):
            return self._partition_engines(exported_program, table)
        module = exported_program.graph_module
        support = self._support()
        blocks = propose(module, support, self._min_block_size, self._preserved)
        for index, block in enumerate(blocks):
            for node in block:
                node.meta[TAG] = f"tensorrt_{index}"
        _tag_constants(exported_program)
        if self._owns_buffers:
            tag_owned(exported_program)
        aliases = aliases_by_tag(exported_program) if self._builder.updates_in_place else {}
        specs = [*self._compile_specs(table.to_json()), *self._device]
        tags = {
            tag: DelegationSpec(TensorRTBackend.__name__, specs + _alias_specs(aliases.get(tag)))
            for tag in (f"tensorrt_{index}" for index in range(len(blocks)))
        }
        self.left_outside = {
            node.name: support.reason(node) or f"its block has fewer than {self._min_block_size} operators"
            for node in module.graph.nodes
            if node.op == "call_function" and TAG not in node.meta and not is_size(node)
        }
        _log.info("%d partitions, %d operators outside", len(blocks), len(self.left_outside))
        dynamic = bool(exported_program.range_constraints)
        return PartitionResult(exported_program, DeferredTags(tags, module) if dynamic else tags)

    def _partition_engines(self, program: ExportedProgram, table: ProfileTable) -> PartitionResult:
        """Engines that are there get a partition each; what their builder left outside of them stays there."""
        tags: dict[str, DelegationSpec] = {}
        for index, node in enumerate(filter(is_engine, program.graph.nodes)):
            tag = f"tensorrt_{index}"
            for member in (node, *node.users, cast(torch.fx.Node, node.args[1])):
                member.meta[TAG] = tag
            device = CompileSpec(TARGET_DEVICE_COMPILE_SPEC_KEY, f"cuda:{device_of(node)}".encode())
            specs = [*self._compile_specs(table.to_json(), wrapped=True), device]
            tags[tag] = DelegationSpec(TensorRTBackend.__name__, specs)
        self.left_outside = {
            node.name: "the engines were built without it"
            for node in program.graph.nodes
            if node.op == "call_function" and TAG not in node.meta and not is_size(node)
        }
        _log.info("%d engines, %d operators outside", len(tags), len(self.left_outside))
        return PartitionResult(program, tags)

    def _bind(self, program: ExportedProgram) -> ProfileTable:
        table = bind_inputs(program, self._inputs)
        if self._inputs is None and any(map(is_engine, program.graph.nodes)):
            # What the engines accept is not declared; the program's own ranges are no profiles of theirs.
            return ProfileTable(table.profiles, signature="")
        return table

    def keep_outside(self, refusal: OperatorsRefusedError) -> None:
        """Leave operators out of engines from now on that one could not be built with.

        Raises:
            RuntimeError: they are outside already.
        """
        fresh = {entry.node: entry.reason for entry in refusal.operators if entry.node not in self._refused}
        if not fresh:
            raise refusal
        self._refused.update(fresh)
        self._refused_operators.update(entry.operator for entry in refusal.operators)

    def _support(self) -> Support:
        return Support(self._builder, self._excluded, self._refused)

    def _compile_specs(self, table: str, wrapped: bool = False) -> list[CompileSpec]:
        engine = engine_spec("", {}, None) if wrapped else engine_spec(self._builder.kind, self._options, self._cache)
        return [engine, CompileSpec(PROFILES_SPEC, table.encode()), *self._profiling, *self._replay]


def _alias_specs(pairs: Sequence[tuple[str, str]] | None) -> list[CompileSpec]:
    return [CompileSpec(ALIASES_SPEC, json.dumps(pairs).encode())] if pairs else []


_PROFILING_WORDS: Mapping[str, tuple[str, ...]] = {
    "level": PROFILE_LEVELS,
    "format": PROFILE_FORMATS,
}


def _profiling_specs(profiling: str | Mapping[str, str] | None) -> list[CompileSpec]:
    """The defaults that a program carries for its engines' profiling options."""
    options = {"level": profiling} if isinstance(profiling, str) else dict(profiling or {})
    for key, value in options.items():
        if key == "path_prefix":
            raise ValueError(
                f"profiling names a folder: got path_prefix {value!r}, allowed 'level' and 'format', since a program "
                "may not say where files are written; give profile_path_prefix to Module()."
            )
        if key not in _PROFILING_WORDS:
            allowed = ", ".join(map(repr, _PROFILING_WORDS))
            raise ValueError(f"profiling has an unknown key: got {key!r}, allowed {allowed}; correct it.")
        words = _PROFILING_WORDS[key]
        if value not in words:
            allowed = ", ".join(map(repr, words))
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
            node.meta.pop(TAG, None)
