"""`export`: from a PyTorch model to a `.pte` file in one call."""

# torch's graphs and sympy's expressions carry few types.
# pyright: reportMissingTypeStubs=false, reportPrivateUsage=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import logging
import os
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from executorch.exir import ExecutorchProgramManager
from executorch.exir.backend.partitioner import Partitioner

from executorch_tensorrt.engines.kernels import warn_of_missing_kernels
from executorch_tensorrt.exporter import lowering
from executorch_tensorrt.exporter.boundary import check_plan
from executorch_tensorrt.exporter.branches import copy_branch_outputs
from executorch_tensorrt.exporter.examples import Inputs
from executorch_tensorrt.exporter.lowering import Model
from executorch_tensorrt.exporter.partitioner import TensorRTPartitioner
from executorch_tensorrt.exporter.planning import keep_initial_values, planning_config
from executorch_tensorrt.files import replacing
from executorch_tensorrt.graphs.leftovers import forget
from executorch_tensorrt.graphs.shape_env import sizes_of_one, unnarrowed
from executorch_tensorrt.words import bytes_text

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ExportedEngineProgram:
    """What `export` returns.

    Attributes:
        program: ExecuTorch's own manager of the program.
        delegates: for each engine in order: `method`, `engine_id`, `engine_kind`, `bytes`, `profiles`, `signature`,
            `inputs` and `outputs` (names), and `state` (the buffers that it owns). For an engine that Torch-TensorRT
            built, `engine_kind` is empty, and `profiles` is None unless inputs were declared.
        left_outside: operators outside engines: node name to reason; with several methods, "method/node" to reason.
            Operators that another partitioner took are here.
        seconds: duration of each step.
    """

    program: ExecutorchProgramManager
    delegates: Sequence[Mapping[str, Any]]
    left_outside: Mapping[str, str]
    seconds: Mapping[str, float] = field(default_factory=dict[str, float])

    def __repr__(self) -> str:
        size = bytes_text(len(self.program.buffer))
        return f"ExportedEngineProgram(methods={sorted(self.program.methods)}, engines={len(self.delegates)}, {size})"

    @property
    def buffer(self) -> bytes:
        """The bytes of the `.pte` file."""
        return bytes(self.program.buffer)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the `.pte` file. A reader sees the old file or the new one, never a part."""
        with replacing(path) as temporary, temporary.open("wb") as file:
            self.program.write_to_file(file)

    def save_etrecord(self, path: str | os.PathLike[str]) -> None:
        """Write the ETRecord, which ExecuTorch's Inspector needs to tie events to the model's operators.

        Raises:
            RuntimeError: the program was exported with `generate_etrecord=False`.
        """
        if getattr(self.program, "_etrecord", None) is None:
            raise RuntimeError(
                "the program has no ETRecord: got generate_etrecord=False, allowed True; export it again with that."
            )
        with replacing(path) as temporary:
            self.program.get_etrecord().save(str(temporary))


def export(
    model: Model | Mapping[str, Model],
    inputs: Inputs | None = None,
    *,
    engine: str = "cpu",
    torch_executed_ops: Iterable[object] = (),
    min_block_size: int = 1,
    partitioners: Sequence[Partitioner] = (),
    profiling: str | Mapping[str, str] | None = None,
    engine_options: Mapping[str, Any] | None = None,
    engine_cache: str | os.PathLike[str] | None = None,
    device: str | None = None,
    host_io: bool = False,
    use_cuda_graphs: bool = False,
    take_over_mutable_buffer: bool = False,
    generate_etrecord: bool = False,
    strict: bool = False,
    progress: Callable[[str], None] | None = None,
) -> ExportedEngineProgram:
    """Export a model as an ExecuTorch program with engines inside.

    Args:
        model: a module in evaluation mode, or a program from `torch.export.export`; or a dict of method name to one of
            these, for a program with several methods.
        inputs: an `Input` for each argument in order, or a dict of argument name to `Input`; tuples, lists and dicts
            may nest, constants stand for themselves. May be None for an exported program: one optimization profile
            with its own ranges. For several methods, a dict of method name to such inputs.
        engine: the engine kind; "cpu" needs no GPU.
        torch_executed_ops: operators to keep out of engines.
        min_block_size: the smallest number of operators worth an engine.
        partitioners: further partitioners for what is left outside.
        profiling: what the engines trace by default: a level, or a dict; see `TensorRTPartitioner`.
        engine_options: options of the engine kind.
        engine_cache: a folder that keeps TensorRT engines, so that none is built twice, and in which build requests are
            left where engines can't be built; see `TensorRTPartitioner`.
        device: "cuda:0" and so on: plan memory on that device: what passes between engines, and the inputs and outputs
            of methods that engines read and write. Callers give and get device memory then; `Module` takes host arrays
            as well, and copies them.
        host_io: with `device`, leave the inputs and outputs of methods on the host; the program copies them.
        use_cuda_graphs: replay calls of engines on a GPU as CUDA graphs, unless they are loaded with another choice.
        take_over_mutable_buffer: let engines own the buffers that the model updates; see `TensorRTPartitioner`.
        generate_etrecord: keep what `save_etrecord` needs.
        strict: trace with TorchDynamo, see `torch.export.export`.
        progress: called with a line of text when a step begins.

    Raises:
        ValueError: the declared inputs are not valid, or do not fit the model.
        TypeError: an argument is not of the right kind.
        RuntimeError: engines can't be built here; with `engine_cache`, all of them are asked for in it by then.
    """
    clock = _Clock(progress)

    partitioner = partial(
        TensorRTPartitioner,
        engine=engine,
        torch_executed_ops=torch_executed_ops,
        min_block_size=min_block_size,
        profiling=profiling,
        engine_options=engine_options,
        engine_cache=engine_cache,
        device=device,
        use_cuda_graphs=use_cuda_graphs,
        take_over_mutable_buffer=take_over_mutable_buffer,
    )
    methods = lowering.methods_of(model, inputs, partitioner)
    with torch.no_grad(), lowering.quiet():
        with clock.step("trace", "tracing the model"):
            programs = {name: lowering.program_of(method, strict) for name, method in methods.items()}
        with clock.step("lower", "building engines"), sizes_of_one(), unnarrowed():
            edge = lowering.lower(programs, methods, partitioners, generate_etrecord)
        delegates = lowering.describe_delegates(edge)
        with clock.step("emit", "writing the program"), unnarrowed():
            copy_branch_outputs(edge)
            keep_initial_values(edge)
            lowered = edge.to_executorch(planning_config(edge, device, host_io))
            warn_of_missing_kernels(lowered.executorch_program.execution_plan)
            check_plan(lowered, {name: method.declared for name, method in methods.items()})
    forget([*programs.values(), *(edge.exported_program(name) for name in programs)])
    if not delegates:
        warnings.warn("no operator went into an engine; see left_outside for the reasons.", stacklevel=2)
    return ExportedEngineProgram(lowered, delegates, lowering.left_outside(methods), clock.seconds)


class _Clock:
    def __init__(self, progress: Callable[[str], None] | None) -> None:
        self._progress = progress
        self.seconds: dict[str, float] = {}

    @contextmanager
    def step(self, name: str, text: str) -> Generator[None]:
        _log.info("%s", text)
        if self._progress is not None:
            self._progress(text)
        started = time.perf_counter()
        yield
        self.seconds[name] = time.perf_counter() - started
