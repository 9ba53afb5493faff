"""The ahead-of-time half of TensorRTBackend: from partitions to the bytes of delegates."""

# torch's graphs and sympy's expressions carry few types.
# pyright: reportMissingTypeStubs=false, reportPrivateUsage=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import logging
import time
from typing import Any, cast, final

import torch
from executorch.exir.backend.backend_details import BackendDetails, PreprocessResult
from executorch.exir.backend.compile_spec_schema import CompileSpec
from torch.export import ExportedProgram

from executorch_tensorrt import _build_info
from executorch_tensorrt.engines import engine_builder
from executorch_tensorrt.engines.blob import BlobMetadata, engine_id, pack_blob
from executorch_tensorrt.engines.builder import (
    BuildRequest,
    BuiltEngine,
    EngineBuilder,
    EnginesMissingError,
    OperatorsRefusedError,
)
from executorch_tensorrt.events import EVENTS
from executorch_tensorrt.exporter.boundary import check_bounds, check_partitions
from executorch_tensorrt.exporter.partition import Partition, range_fields
from executorch_tensorrt.exporter.torch_tensorrt.blob import built_engine, magic_of, metadata_of, record_of
from executorch_tensorrt.exporter.torch_tensorrt.namesake import is_ours, namesake
from executorch_tensorrt.graphs.shape_env import unnarrowed
from executorch_tensorrt.graphs.shapes import describe_shapes, tensor_exprs
from executorch_tensorrt.graphs.sources import handles_of, operator_counts, sources_of

_log = logging.getLogger(__name__)


@final
class TensorRTBackend(BackendDetails):
    """Turns partitions into engines."""

    @classmethod
    def copy_exported_program_for_preprocess(
        cls, edge_program: ExportedProgram, compile_specs: list[CompileSpec]
    ) -> ExportedProgram:
        """Engine builders do not change the program that they get, so no weight is copied here."""
        if not is_ours(compile_specs):
            return namesake(cls).copy_exported_program_for_preprocess(edge_program, compile_specs)
        return edge_program

    @staticmethod
    def preprocess(edge_program: ExportedProgram, compile_specs: list[CompileSpec]) -> PreprocessResult:
        """See `BackendDetails`: the way of a single partition. `preprocess_multimethod` is the way of a program."""
        return TensorRTBackend.preprocess_multimethod({"forward": [edge_program]}, {"forward": [compile_specs]})[
            "forward"
        ][0]

    @classmethod
    def preprocess_multimethod(
        cls, edge_programs: dict[str, list[ExportedProgram]], compile_specs: dict[str, list[list[CompileSpec]]]
    ) -> dict[str, list[PreprocessResult]]:
        """See `BackendDetails`."""
        methods = {
            method: {
                index: Partition.read(index, program, specs)
                for index, (program, specs) in enumerate(zip(programs, compile_specs[method], strict=True))
                if is_ours(specs)
            }
            for method, programs in edge_programs.items()
        }
        check_partitions({method: list(partitions.values()) for method, partitions in methods.items()})
        delegates = _delegates(methods)
        return {
            method: [
                delegates[method][index]
                if index in methods[method]
                else namesake(cls).preprocess(program, compile_specs[method][index])
                for index, program in enumerate(programs)
            ]
            for method, programs in edge_programs.items()
        }


def _delegates(methods: dict[str, dict[int, Partition]]) -> dict[str, dict[int, PreprocessResult]]:
    """The delegates of partitions. Before it fails for a missing engine, every engine that is missing was asked for."""
    found: dict[str, dict[int, PreprocessResult]] = {method: {} for method in methods}
    missing: list[EnginesMissingError] = []
    for method, partitions in methods.items():
        for index, partition in partitions.items():
            try:
                found[method][index] = _delegate(method, partition)
            except EnginesMissingError as error:
                missing.append(error)
    if missing:
        raise EnginesMissingError(missing[0].cache, missing[0].target, sum(error.count for error in missing))
    return found


def _delegate(method: str, partition: Partition) -> PreprocessResult:
    """The delegate of a partition: with the engine that it holds, or with one that is built for it."""
    if partition.wrapped is not None:
        built = built_engine(partition, partition.wrapped)
        magic, metadata = magic_of(partition.wrapped), metadata_of(partition, partition.wrapped)
        record = {**_common(partition, built), **record_of(partition, partition.wrapped)}
    else:
        builder = engine_builder(partition.kind, partition.options, partition.cache)
        try:
            built = _build(builder, partition)
        except OperatorsRefusedError as refusal:
            refusal.method = method
            raise
        magic = builder.magic
        metadata = BlobMetadata(
            partition.bindings,
            partition.aliased_io() if builder.updates_in_place else (),
            hardware_compatible=built.hardware_compatible,
            device_id=partition.device,
            target_platform=built.target_platform,
        )
        record = _record(partition, built, builder.updates_in_place)
    check_bounds(method, partition, built.bounds)
    blob = pack_blob(magic, metadata, record, built.data)
    return PreprocessResult(processed_bytes=blob, debug_handle_map=cast(Any, _handles(partition.program)))


def _build(builder: EngineBuilder, partition: Partition) -> BuiltEngine:
    started = time.perf_counter()
    request = BuildRequest(
        partition.program,
        partition.profiles,
        partition.bindings,
        partition.derived_bounds(),
        partition.aliases,
    )
    with torch.no_grad(), unnarrowed():
        built = builder.build(request)
    _log.info(
        "engine of %d operators, %d profiles: %.1f MB in %.1f s",
        len(partition.program.graph.nodes),
        len(partition.profiles),
        len(built.data) / 1e6,
        time.perf_counter() - started,
    )
    return built


def _common(partition: Partition, built: BuiltEngine) -> dict[str, Any]:
    """What every record has."""
    made_by = [
        f"executorch-tensorrt {_build_info.VERSION}",
        f"executorch {_build_info.EXECUTORCH_VERSION}",
        built.builder,
    ]
    return {
        "version": 1,
        "engine_kind": partition.kind,
        "engine_id": engine_id(built.data),
        "builder": ", ".join(filter(None, made_by)),
        "signature": partition.signature,
        "operators": operator_counts(partition.program.graph),
        "sources": sources_of(partition.program.graph),
        "layers": [],
    }


def _record(partition: Partition, built: BuiltEngine, in_place: bool) -> dict[str, Any]:
    """What only this project's runtime reads of a blob."""
    shapes = describe_shapes(
        [tensor_exprs(node.meta["val"]) for node in partition.inputs],
        [tensor_exprs(node.meta["val"]) for node in partition.outputs],
    )
    common = _common(partition, built)
    record = {
        **common,
        "profiles": [{"inputs": [range_fields(ranges) for ranges in bounds]} for bounds in partition.derived_bounds()],
        "symbols": shapes.symbols,
        "shapes": {"inputs": shapes.inputs, "outputs": shapes.outputs},
        "layers": [
            {
                str(key): [handle for handle in dict.fromkeys(handles) if str(handle) in common["sources"]]
                for key, handles in layers.items()
            }
            for layers in built.layer_handles
        ],
    }
    return {**record, **_state(partition, in_place)} if partition.owned else record


def _state(partition: Partition, in_place: bool) -> dict[str, Any]:
    """What a record says of the buffers that an engine owns; the delegate's arguments are without them."""
    owned, inputs, outputs = partition.owned, len(partition.inputs), len(partition.outputs)
    given = inputs - len(owned)
    taken = outputs - len(owned)
    names = [binding.name for binding in partition.bindings]
    return {
        "arguments": {
            "inputs": [*range(given), *[None] * len(owned)],
            "outputs": [*range(given, given + taken), *[None] * len(owned)],
        },
        "state": [
            {
                "name": buffer.name,
                "input": names[given + place],
                **({} if in_place else {"output": names[inputs + taken + place]}),
                "initial": buffer.initial_text(),
            }
            for place, buffer in enumerate(owned)
        ],
    }


def _handles(program: ExportedProgram) -> dict[str, tuple[int, ...]]:
    return dict.fromkeys(EVENTS, tuple(handles_of(program.graph.nodes)))
