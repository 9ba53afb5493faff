"""The ahead-of-time half of TensorRTBackend: from partitions to the bytes of delegates."""

# torch's graphs and sympy's expressions carry few types.
# pyright: reportMissingTypeStubs=false, reportPrivateUsage=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any, cast, final

import torch
from executorch.exir.backend.backend_details import BackendDetails, PreprocessResult
from executorch.exir.backend.compile_spec_schema import CompileSpec
from torch.export import ExportedProgram

from executorch_tensorrt import _build_info
from executorch_tensorrt.engines import engine_builder
from executorch_tensorrt.engines.builder import BuildRequest, BuiltEngine
from executorch_tensorrt.exporter.blob import BlobMetadata, engine_id, pack_blob
from executorch_tensorrt.exporter.boundary import check_bounds, check_partitions
from executorch_tensorrt.exporter.partition import Partition
from executorch_tensorrt.exporter.shapes import DimRange, describe_shapes, tensor_exprs
from executorch_tensorrt.exporter.sources import handles_of, sources_of
from executorch_tensorrt.exporter.tracing import unnarrowed

_log = logging.getLogger(__name__)

EVENTS = (
    "torchtrt.delegate",
    "torchtrt.input_binding",
    "torchtrt.shape_inference",
    "torchtrt.output_binding",
    "torchtrt.enqueue_host",
    "torchtrt.output_staging",
    "torchtrt.synchronize",
)


@final
class TensorRTBackend(BackendDetails):
    """Turns partitions into engines."""

    @classmethod
    def copy_exported_program_for_preprocess(
        cls, edge_program: ExportedProgram, compile_specs: list[CompileSpec]
    ) -> ExportedProgram:
        """Engine builders do not change the program that they get, so no weight is copied here."""
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
            method: [
                Partition.read(index, program, specs)
                for index, (program, specs) in enumerate(zip(programs, compile_specs[method], strict=True))
            ]
            for method, programs in edge_programs.items()
        }
        check_partitions(methods)
        return {
            method: [_delegate(method, partition) for partition in partitions] for method, partitions in methods.items()
        }


def _delegate(method: str, partition: Partition) -> PreprocessResult:
    """Build a partition's engine."""
    builder = engine_builder(partition.kind)
    started = time.perf_counter()
    request = BuildRequest(
        partition.program, partition.profiles, partition.options, partition.bindings, partition.derived_bounds()
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
    check_bounds(method, partition, built.bounds)
    metadata = BlobMetadata(partition.bindings, hardware_compatible=built.hardware_compatible)
    blob = pack_blob(builder.magic, metadata, _record(partition, built), built.data)
    return PreprocessResult(processed_bytes=blob, debug_handle_map=cast(Any, _handles(partition.program)))


def _record(partition: Partition, built: BuiltEngine) -> dict[str, Any]:
    """What only this project's runtime reads of a blob."""
    shapes = describe_shapes(
        [tensor_exprs(node.meta["val"]) for node in partition.inputs],
        [tensor_exprs(node.meta["val"]) for node in partition.outputs],
    )
    sources = sources_of(partition.program.graph)
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
        "profiles": [{"inputs": [_fields(ranges) for ranges in bounds]} for bounds in partition.derived_bounds()],
        "symbols": shapes.symbols,
        "shapes": {"inputs": shapes.inputs, "outputs": shapes.outputs},
        "sources": sources,
        "layers": [
            {
                str(key): [handle for handle in dict.fromkeys(handles) if str(handle) in sources]
                for key, handles in layers.items()
            }
            for layers in built.layer_handles
        ],
    }


def _fields(ranges: Sequence[DimRange]) -> Mapping[str, list[int]]:
    return {field: [getattr(span, field) for span in ranges] for field in ("min", "opt", "max")}


def _handles(program: ExportedProgram) -> dict[str, tuple[int, ...]]:
    return dict.fromkeys(EVENTS, tuple(handles_of(program.graph.nodes)))
