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
from typing import Any

import torch
from executorch.exir import EdgeCompileConfig, EdgeProgramManager, ExecutorchProgramManager, to_edge_transform_and_lower
from executorch.exir.backend.partitioner import Partitioner
from executorch.exir.delegate import executorch_call_delegate
from torch.export import ExportedProgram

from executorch_tensorrt.exporter.backend import TensorRTBackend
from executorch_tensorrt.exporter.blob import unpack_metadata
from executorch_tensorrt.exporter.boundary import check_plan
from executorch_tensorrt.exporter.partitioner import TensorRTPartitioner
from executorch_tensorrt.exporter.tracing import (
    Inputs,
    declared_inputs,
    in_signature_order,
    sizes_of_one,
    trace,
    unnarrowed,
)
from executorch_tensorrt.files import replacing

_log = logging.getLogger(__name__)

# The checks run the whole graph after every pass; what they find, lowering finds too.
_CONFIG = EdgeCompileConfig(_check_ir_validity=False)


@dataclass(frozen=True)
class ExportedEngineProgram:
    """What `export` returns.

    Attributes:
        program: ExecuTorch's own manager of the program.
        delegates: for each engine in order: `engine_id`, `engine_kind`, `bytes`, `profiles`, `signature`, `inputs` and
            `outputs` (names).
        left_outside: operators outside engines: node name to reason. Operators that another partitioner took are here.
        seconds: duration of each step.
    """

    program: ExecutorchProgramManager
    delegates: Sequence[Mapping[str, Any]]
    left_outside: Mapping[str, str]
    seconds: Mapping[str, float] = field(default_factory=dict[str, float])

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
    model: torch.nn.Module | ExportedProgram,
    inputs: Inputs | None = None,
    *,
    engine: str = "cpu",
    torch_executed_ops: Iterable[object] = (),
    min_block_size: int = 1,
    partitioners: Sequence[Partitioner] = (),
    profiling: str | Mapping[str, str] | None = None,
    engine_options: Mapping[str, Any] | None = None,
    generate_etrecord: bool = False,
    strict: bool = False,
    progress: Callable[[str], None] | None = None,
) -> ExportedEngineProgram:
    """Export a model as an ExecuTorch program with engines inside.

    Args:
        model: a module in evaluation mode, or a program from `torch.export.export`.
        inputs: an `Input` for each argument in order, or a dict of argument name to `Input`; tuples, lists and dicts
            may nest, constants stand for themselves. May be None for an exported program: one optimization profile
            with its own ranges.
        engine: the engine kind; "cpu" needs no GPU.
        torch_executed_ops: operators to keep out of engines.
        min_block_size: the smallest number of operators worth an engine.
        partitioners: further partitioners for what is left outside.
        profiling: what the engines trace by default: a level, or a dict; see `TensorRTPartitioner`.
        engine_options: options of the engine kind.
        generate_etrecord: keep what `save_etrecord` needs.
        strict: trace with TorchDynamo, see `torch.export.export`.
        progress: called with a line of text when a step begins.

    Raises:
        ValueError: the declared inputs are not valid, or do not fit the model.
        TypeError: an argument is not of the right kind.
    """
    clock = _Clock(progress)
    if isinstance(model, torch.nn.Module) and inputs is not None:
        inputs = in_signature_order(model, inputs)
    declared = None if inputs is None else declared_inputs(inputs)
    named = inputs if isinstance(model, ExportedProgram) and isinstance(inputs, Mapping) else declared
    partitioner = TensorRTPartitioner(
        named,
        engine=engine,
        torch_executed_ops=torch_executed_ops,
        min_block_size=min_block_size,
        profiling=profiling,
        engine_options=engine_options,
    )
    with torch.no_grad(), _quiet():
        with clock.step("trace", "tracing the model"):
            program = _program(model, inputs, strict)
        with clock.step("lower", "building engines"), sizes_of_one(), unnarrowed():
            edge = to_edge_transform_and_lower(
                program,
                partitioner=[partitioner, *partitioners],
                compile_config=_CONFIG,
                generate_etrecord=generate_etrecord,
            )
        delegates = _delegates(edge)
        with clock.step("emit", "writing the program"), unnarrowed():
            lowered = edge.to_executorch()
            check_plan(lowered, declared or [])
    if not delegates:
        warnings.warn("no operator went into an engine; see left_outside for the reasons.", stacklevel=2)
    return ExportedEngineProgram(lowered, delegates, partitioner.left_outside, clock.seconds)


def _program(model: object, inputs: Inputs | None, strict: bool) -> ExportedProgram:
    if isinstance(model, ExportedProgram):
        return model
    if not isinstance(model, torch.nn.Module):
        raise TypeError(
            f"model is not a model: got {type(model).__name__}, allowed torch.nn.Module or "
            "torch.export.ExportedProgram; wrap a function in a module."
        )
    if inputs is None:
        raise ValueError("inputs is missing: got None, allowed a list of Input; declare the module's inputs.")
    return trace(model, inputs, strict)


def _delegates(edge: EdgeProgramManager) -> list[dict[str, Any]]:
    program = edge.exported_program()
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
                "engine_id": ours["engine_id"],
                "engine_kind": ours["engine_kind"],
                "bytes": len(lowered.processed_bytes),
                "profiles": ours["profiles"],
                "signature": ours["signature"],
                "inputs": [item["name"] for item in bindings if item["is_input"]],
                "outputs": [item["name"] for item in bindings if not item["is_input"]],
            }
        )
    return found


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


@contextmanager
def _quiet() -> Generator[None]:
    """Without the warnings that torch's own deep copies raise by the hundred."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r".*isinstance\(treespec, LeafSpec\).*", category=FutureWarning)
        yield
