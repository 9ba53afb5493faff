"""`compile`: from a PyTorch model to a module that runs engines through our operator."""

# torch's graphs carry few types.
# pyright: reportMissingTypeStubs=false, reportPrivateUsage=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import torch
from torch.export import ExportedProgram

from executorch_tensorrt.aoti.graph import with_operators, with_own_buffers
from executorch_tensorrt.exporter import lowering
from executorch_tensorrt.exporter.examples import Inputs
from executorch_tensorrt.exporter.partitioner import TensorRTPartitioner
from executorch_tensorrt.graphs.leftovers import forget
from executorch_tensorrt.graphs.shape_env import sizes_of_one, unnarrowed
from executorch_tensorrt.runtime.log import forward_messages


class CompiledModule(torch.nn.Module):
    """A model whose engines run through `torch.ops.executorch_tensorrt.execute_engine`; `save` makes a package of it.

    Attributes:
        program: the exported program.
        engines: for each engine in order, as `ExportedEngineProgram.delegates` says.
        left_outside: operators outside engines, which AOTInductor compiles: node name to reason.
    """

    def __init__(
        self, program: ExportedProgram, engines: Sequence[Mapping[str, Any]], left_outside: Mapping[str, str]
    ) -> None:
        super().__init__()
        self.program = program
        self.engines = engines
        self.left_outside = left_outside
        self._module: torch.nn.Module = with_own_buffers(program).module(check_guards=False)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the model. An `OptimizationProfileGuard` of the calling thread chooses the optimization profile."""
        try:
            return self._module(*args, **kwargs)
        finally:
            forward_messages()


def compile(
    model: lowering.Model,
    inputs: Inputs | None = None,
    *,
    engine: str = "cpu",
    optimization_profile: int | Literal["auto"] = 0,
    torch_executed_ops: Iterable[object] = (),
    min_block_size: int = 1,
    engine_options: Mapping[str, Any] | None = None,
    engine_cache: str | os.PathLike[str] | None = None,
    strict: bool = False,
) -> CompiledModule:
    """Compile a model for PyTorch: engines for what they take, ATen operators for the rest.

    Args:
        model: a module in evaluation mode, or a program from `torch.export.export`.
        inputs: as `executorch_tensorrt.export` takes them.
        engine: the engine kind; "cpu" needs no GPU.
        optimization_profile: what calls without an `OptimizationProfileGuard` use: an index, or "auto" for the lowest
            that accepts the shapes. A package keeps it.
        torch_executed_ops: operators to keep out of engines.
        min_block_size: the smallest number of operators worth an engine.
        engine_options: options of the engine kind.
        engine_cache: a folder that keeps TensorRT engines; see `TensorRTPartitioner`.
        strict: trace with TorchDynamo, see `torch.export.export`.

    Raises:
        ValueError: the declared inputs are not valid, or do not fit the model.
        TypeError: an argument is not of the right kind.
    """
    request = _request(optimization_profile)

    partitioner = partial(
        TensorRTPartitioner,
        engine=engine,
        torch_executed_ops=torch_executed_ops,
        min_block_size=min_block_size,
        engine_options=engine_options,
        engine_cache=engine_cache,
    )
    method = lowering.method_of(model, inputs, partitioner)
    with torch.no_grad(), lowering.quiet():
        traced = lowering.program_of(method, strict)
        with sizes_of_one(), unnarrowed():
            edge = lowering.lower({"forward": traced}, {"forward": method}, (), generate_etrecord=False)
            program = with_operators(edge.exported_program(), traced, request)
        engines = lowering.describe_delegates(edge)
    forget([traced, edge.exported_program()])
    if not engines:
        warnings.warn("no operator went into an engine; see left_outside for the reasons.", stacklevel=2)
    return CompiledModule(program, engines, method.partitioner.left_outside)


def _request(optimization_profile: object) -> int:
    """What an engine's header has."""
    if optimization_profile == "auto":
        return -1
    if type(optimization_profile) is int and 0 <= optimization_profile < 2**31:
        return optimization_profile
    raise ValueError(
        f"optimization_profile is not valid: got {optimization_profile!r}, allowed 'auto' or an index from 0; choose "
        "one of them."
    )
