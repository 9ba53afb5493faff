"""Lowering methods of a program: what `export` and PyTorch packages have in common."""

# torch's graphs and sympy's expressions carry few types.
# pyright: reportMissingTypeStubs=false, reportPrivateUsage=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import torch
from executorch.exir import EdgeCompileConfig, EdgeProgramManager, to_edge_transform_and_lower
from executorch.exir.backend.partitioner import Partitioner
from executorch.exir.delegate import executorch_call_delegate
from torch.export import ExportedProgram

from executorch_tensorrt.engines.blob import unpack_metadata
from executorch_tensorrt.engines.builder import OperatorsRefusedError
from executorch_tensorrt.exporter.backend import TensorRTBackend
from executorch_tensorrt.exporter.examples import Inputs
from executorch_tensorrt.exporter.partitioner import TensorRTPartitioner
from executorch_tensorrt.exporter.torch_tensorrt.wrapped import wrap_engines
from executorch_tensorrt.exporter.tracing import declared_inputs, in_signature_order, trace
from executorch_tensorrt.inputs import Input

_log = logging.getLogger(__name__)

Model: TypeAlias = "torch.nn.Module | ExportedProgram"

MakePartitioner: TypeAlias = "Callable[[Sequence[Input] | Mapping[str, Input] | None], TensorRTPartitioner]"

# The checks run the whole graph after every pass; what they find, lowering finds too.
_CONFIG = EdgeCompileConfig(_check_ir_validity=False)


@dataclass(frozen=True)
class Method:
    """What becomes a method, and the partitioner that it gets for itself."""

    model: object
    inputs: Inputs | None
    declared: Sequence[Input]
    partitioner: TensorRTPartitioner


def methods_of(
    model: object,
    inputs: Inputs | None,
    partitioner: MakePartitioner,
) -> dict[str, Method]:
    """What to export by method name, each with a partitioner of its own."""
    if not isinstance(model, Mapping):
        return {"forward": method_of(model, inputs, partitioner)}
    models = cast("Mapping[str, object]", model)
    if not models or not all(isinstance(name, str) and name.isidentifier() for name in models):
        raise ValueError(
            f"model does not name its methods: got {list(models)}, allowed a dict of method name to model; use "
            "identifiers such as 'prefill'."
        )
    given = cast("Mapping[str, Inputs | None]", dict.fromkeys(models) if inputs is None else inputs)
    if not isinstance(given, Mapping) or set(given) != set(models):
        got = ", ".join(map(str, given)) if isinstance(given, Mapping) else type(given).__name__
        raise ValueError(
            f"inputs do not name the model's methods: got {got}, allowed exactly {', '.join(models)}; give each method "
            "its inputs."
        )
    return {name: method_of(item, given[name], partitioner) for name, item in models.items()}


def method_of(
    model: object,
    inputs: Inputs | None,
    partitioner: MakePartitioner,
) -> Method:
    if isinstance(inputs, Input):
        raise TypeError("inputs is not a list: got Input, allowed one for each argument; write [Input(...)].")
    if isinstance(model, torch.nn.Module) and inputs is not None:
        inputs = in_signature_order(model, inputs)
    declared = None if inputs is None else declared_inputs(inputs)
    named = inputs if isinstance(model, ExportedProgram) and isinstance(inputs, Mapping) else declared
    return Method(model, inputs, declared or [], partitioner(named))


def program_of(method: Method, strict: bool) -> ExportedProgram:
    """The program of a method before lowering."""
    model, inputs = method.model, method.inputs
    if isinstance(model, ExportedProgram):
        model = wrap_engines(model)
        # Lowering takes constants out of the program that it gets.
        return model._update(
            model.graph_module,
            model.graph_signature,
            state_dict=dict(model.state_dict),
            constants=dict(model.constants),
        )
    if not isinstance(model, torch.nn.Module):
        raise TypeError(
            f"model is not a model: got {type(model).__name__}, allowed torch.nn.Module or "
            "torch.export.ExportedProgram; wrap a function in a module."
        )
    if inputs is None:
        raise ValueError("inputs is missing: got None, allowed a list of Input; declare the module's inputs.")
    return trace(model, inputs, strict)


def lower(
    programs: dict[str, ExportedProgram],
    methods: Mapping[str, Method],
    partitioners: Sequence[Partitioner],
    generate_etrecord: bool,
) -> EdgeProgramManager:
    """Lower until no engine refuses an operator: most refusals are known before, but not all."""
    while True:
        try:
            return to_edge_transform_and_lower(
                programs,
                partitioner={name: [method.partitioner, *partitioners] for name, method in methods.items()},
                compile_config=_CONFIG,
                generate_etrecord=generate_etrecord,
            )
        except OperatorsRefusedError as refusal:
            _log.info("lowering again without %s", ", ".join(entry.node for entry in refusal.operators))
            methods[refusal.method].partitioner.keep_outside(refusal)


def left_outside(methods: Mapping[str, Method]) -> dict[str, str]:
    if len(methods) == 1:
        return next(iter(methods.values())).partitioner.left_outside
    return {
        f"{name}/{node}": reason
        for name, method in methods.items()
        for node, reason in method.partitioner.left_outside.items()
    }


def describe_delegates(edge: EdgeProgramManager) -> list[dict[str, Any]]:
    names = sorted(edge.methods)
    return [delegate for name in names for delegate in _delegates_of(name, edge.exported_program(name))]


def _delegates_of(method: str, program: ExportedProgram) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for node in program.graph.nodes:
        if node.op != "call_function" or node.target is not executorch_call_delegate:
            continue
        lowered: Any = getattr(program.graph_module, node.args[0].target)
        if lowered.backend_id != TensorRTBackend.__name__:
            continue
        metadata = unpack_metadata(lowered.processed_bytes)
        ours = metadata["executorch_tensorrt"]
        bindings = metadata["io_bindings"]
        found.append(
            {
                "method": method,
                "engine_id": ours["engine_id"],
                "engine_kind": ours["engine_kind"],
                "bytes": len(lowered.processed_bytes),
                "profiles": ours.get("profiles"),
                "signature": ours["signature"],
                "inputs": [item["name"] for item in bindings if item["is_input"]],
                "outputs": [item["name"] for item in bindings if not item["is_input"]],
                "state": [item["name"] for item in ours.get("state", [])],
            }
        )
    return found


@contextmanager
def quiet() -> Generator[None]:
    """Without the warnings that torch's own deep copies raise by the hundred, and one about what `export` sees to: the
    initial values of buffers."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r".*isinstance\(treespec, LeafSpec\).*", category=FutureWarning)
        warnings.filterwarnings("ignore", message="Mutation on a buffer in the model is detected", category=UserWarning)
        yield
