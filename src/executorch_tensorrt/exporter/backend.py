"""The ahead-of-time half of TensorRTBackend: from one partition to the bytes of one delegate."""

# torch's graphs and sympy's expressions carry few types.
# pyright: reportMissingTypeStubs=false, reportPrivateUsage=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Sequence
from typing import Any, cast, final

import torch
from executorch.exir.backend.backend_details import BackendDetails, PreprocessResult
from executorch.exir.backend.compile_spec_schema import CompileSpec
from torch.export import ExportedProgram

from executorch_tensorrt import _build_info
from executorch_tensorrt.engines import engine_builder
from executorch_tensorrt.engines.builder import BuildRequest
from executorch_tensorrt.exporter.blob import Binding, engine_id, pack_blob
from executorch_tensorrt.exporter.shapes import ProfileTable, describe_shapes, range_of, symbols_of, tensor_exprs
from executorch_tensorrt.exporter.sources import handles_of, sources_of
from executorch_tensorrt.exporter.tracing import unnarrowed

_log = logging.getLogger(__name__)

ENGINE_SPEC = "etrt.engine"
PROFILES_SPEC = "etrt.profiles"

EVENTS = (
    "torchtrt.delegate",
    "torchtrt.input_binding",
    "torchtrt.shape_inference",
    "torchtrt.output_binding",
    "torchtrt.enqueue_host",
    "torchtrt.output_staging",
    "torchtrt.synchronize",
)

# Torch-TensorRT's C++ reader finds its keys by searching the text for them.
_RESERVED_NAMES = ("io_bindings", "aliased_io", "hardware_compatible", "device_id", "serialized_metadata")


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
        """See `BackendDetails`."""
        specs = {spec.key: bytes(spec.value) for spec in compile_specs}
        engine_spec = json.loads(specs[ENGINE_SPEC])
        table = ProfileTable.from_json(specs[PROFILES_SPEC].decode())
        builder = engine_builder(engine_spec["kind"])
        inputs, outputs = _bindings(edge_program)
        static = not any(symbols_of(expr) for node in inputs for expr in tensor_exprs(node.meta["val"]))
        profiles = table.profiles[:1] if static else table.profiles
        started = time.perf_counter()
        with torch.no_grad(), unnarrowed():
            built = builder.build(BuildRequest(edge_program, profiles, engine_spec["options"]))
        _log.info(
            "engine of %d operators, %d profiles: %.1f MB in %.1f s",
            len(edge_program.graph.nodes),
            len(profiles),
            len(built.data) / 1e6,
            time.perf_counter() - started,
        )
        shapes = describe_shapes(
            [tensor_exprs(node.meta["val"]) for node in inputs], [tensor_exprs(node.meta["val"]) for node in outputs]
        )
        sources = sources_of(edge_program.graph)
        ours: dict[str, Any] = {
            "version": 1,
            "engine_kind": builder.kind,
            "engine_id": engine_id(built.data),
            "builder": f"executorch-tensorrt {_build_info.VERSION}, executorch {_build_info.EXECUTORCH_VERSION}",
            "signature": "" if static else table.signature,
            "profiles": [{"inputs": [_ranges(node, profile) for node in inputs]} for profile in profiles],
            "symbols": shapes.symbols,
            "shapes": {"inputs": shapes.inputs, "outputs": shapes.outputs},
            "sources": sources,
            "layers": [
                {str(k): [h for h in dict.fromkeys(handles) if str(h) in sources] for k, handles in layers.items()}
                for layers in built.layer_handles
            ],
        }
        blob = pack_blob(builder.magic, _describe(inputs, outputs), ours, built.data)
        return PreprocessResult(processed_bytes=blob, debug_handle_map=cast(Any, _handles(edge_program)))


def _bindings(program: ExportedProgram) -> tuple[list[torch.fx.Node], list[torch.fx.Node]]:
    nodes = {node.name: node for node in program.graph.nodes}
    inputs = [nodes[name] for name in cast("Sequence[str]", program.graph_signature.user_inputs)]
    outputs = [nodes[name] for name in cast("Sequence[str]", program.graph_signature.user_outputs)]
    return inputs, outputs


def _describe(inputs: Sequence[torch.fx.Node], outputs: Sequence[torch.fx.Node]) -> list[Binding]:
    taken: set[str] = set(_RESERVED_NAMES)
    bindings: list[Binding] = []
    for position, node in enumerate([*inputs, *outputs]):
        name = re.sub(r"[^A-Za-z0-9_.]", "_", node.name)
        while name in taken:
            name += "_"
        taken.add(name)
        value = node.meta["val"]
        shape = [-1 if symbols_of(expr) else int(expr) for expr in tensor_exprs(value)]
        bindings.append(Binding(name, str(value.dtype).removeprefix("torch."), shape, position < len(inputs)))
    return bindings


def _ranges(node: torch.fx.Node, profile: Any) -> dict[str, list[int]]:
    spans = [range_of(expr, profile) for expr in tensor_exprs(node.meta["val"])]
    return {field: [getattr(span, field) for span in spans] for field in ("min", "opt", "max")}


def _handles(program: ExportedProgram) -> dict[str, tuple[int, ...]]:
    return dict.fromkeys(EVENTS, tuple(handles_of(program.graph.nodes)))
