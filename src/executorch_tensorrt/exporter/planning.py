"""Memory planning: an engine's update of a buffer is the buffer, and values may lie on a CUDA device."""

# torch's graphs carry few types.
# pyright: reportMissingTypeStubs=false, reportPrivateUsage=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from typing import Any, cast

import torch
from executorch.exir import EdgeProgramManager, ExecutorchBackendConfig
from executorch.exir.delegate import executorch_call_delegate
from executorch.exir.passes import MemoryPlanningPass
from executorch.exir.passes.propagate_device_config import PropagateDeviceConfig
from torch.export import ExportedProgram, ExportGraphSignature
from torch.fx.passes.infra.pass_base import PassResult

from executorch_tensorrt.engines.blob import unpack_metadata
from executorch_tensorrt.exporter.backend import TensorRTBackend
from executorch_tensorrt.exporter.buffers import initial_value, mutable_buffers


class InPlaceMemoryPlanningPass(MemoryPlanningPass):
    """ExecuTorch's memory planning, with the updates that engines write in place put where their buffers are.

    ExecuTorch copies the update of a buffer into the buffer after the call. With both in one place it copies nothing.
    `export` uses it; with `to_edge_transform_and_lower`, give it to `ExecutorchBackendConfig(memory_planning_pass=…)`.
    """

    def run(
        self, graph_module: torch.fx.GraphModule, graph_signature: ExportGraphSignature | None = None
    ) -> PassResult:
        """See `MemoryPlanningPass`."""
        result = super().run(graph_module, graph_signature)
        for call in graph_module.graph.nodes:
            for output, source in _aliases(graph_module, call):
                buffer = cast(torch.fx.Node, call.args[1 + source])
                for user in call.users:
                    if user.target is operator.getitem and user.args[1] == output and buffer.op == "placeholder":
                        spec, planned = user.meta["spec"], buffer.meta["spec"]
                        spec.mem_id, spec.mem_offset = planned.mem_id, planned.mem_offset
        return result


def _aliases(module: torch.fx.GraphModule, call: torch.fx.Node) -> Iterator[tuple[int, int]]:
    """Outputs of a delegate call that its engine writes in place of an argument, position to position."""
    if call.op != "call_function" or call.target is not executorch_call_delegate:
        return
    lowered: Any = getattr(module, cast(str, cast(torch.fx.Node, call.args[0]).target))
    if lowered.backend_id != TensorRTBackend.__name__:
        return
    metadata = unpack_metadata(lowered.processed_bytes)
    if "state" in metadata["executorch_tensorrt"]:
        return
    inputs = [item["name"] for item in metadata["io_bindings"] if item["is_input"]]
    outputs = [item["name"] for item in metadata["io_bindings"] if not item["is_input"]]
    for alias in metadata["aliased_io"]:
        yield outputs.index(alias["output"]), inputs.index(alias["input"])


def keep_initial_values(edge: EdgeProgramManager) -> None:
    """Have the program keep what its own mutable buffers begin with: ExecuTorch lets them begin with zeros."""
    for name in edge.methods:
        program = edge.exported_program(name)
        for buffer in mutable_buffers(program):
            if initial_value(program, buffer).any():
                buffer.placeholder.meta["et_init_buffer"] = True


def planning_config(edge: EdgeProgramManager, device: str | None, host_io: bool) -> ExecutorchBackendConfig:
    """How to plan a program's memory: with a device and no host I/O, callers give and get device memory."""
    if device is None or host_io:
        return ExecutorchBackendConfig(memory_planning_pass=InPlaceMemoryPlanningPass())
    return ExecutorchBackendConfig(
        memory_planning_pass=InPlaceMemoryPlanningPass(alloc_graph_input=False, alloc_graph_output=False),
        # ExecuTorch takes a dict of methods within a config for True.
        propagate_device_config={
            name: PropagateDeviceConfig(
                skip_h2d_for_method_inputs=not _shared_inputs(edge.exported_program(name)),
                skip_d2h_for_method_outputs=True,
            )
            for name in edge.methods
        },
    )


def _shared_inputs(program: ExportedProgram) -> list[str]:
    """Inputs that a delegate shares with others, an updated buffer with the copy of its update: ExecuTorch has these on
    the host, with a copy for the delegate."""
    inputs = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    names = cast("Sequence[Any]", program.graph_signature.user_inputs)
    found = [buffer.placeholder.name for buffer in mutable_buffers(program)]
    for node in (inputs[name] for name in names if isinstance(name, str)):
        users: list[torch.fx.Node] = list(node.users)
        if len(users) > 1 and any(user.target is executorch_call_delegate for user in users):
            found.append(node.name)
    return found
