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
from typing import Any, TypeAlias, cast

import torch
from executorch.exir import (
    EdgeCompileConfig,
    EdgeProgramManager,
    ExecutorchProgramManager,
    to_edge_transform_and_lower,
)
from executorch.exir.backend.partitioner import Partitioner
from executorch.exir.delegate import executorch_call_delegate
from torch.export import ExportedProgram

from executorch_tensorrt.engines.blob import unpack_metadata
from executorch_tensorrt.engines.builder import OperatorsRefusedError
from executorch_tensorrt.exporter.backend import TensorRTBackend
from executorch_tensorrt.exporter.boundary import check_plan
from executorch_tensorrt.exporter.examples import Inputs
from executorch_tensorrt.exporter.partitioner import TensorRTPartitioner
from executorch_tensorrt.exporter.planning import planning_config
from executorch_tensorrt.exporter.torch_tensorrt.wrapped import wrap_engines
from executorch_tensorrt.exporter.tracing import declared_inputs, in_signature_order, trace
from executorch_tensorrt.files import replacing
from executorch_tensorrt.graphs.leftovers import forget
from executorch_tensorrt.graphs.shape_env import sizes_of_one, unnarrowed
from executorch_tensorrt.inputs import Input

_log = logging.getLogger(__name__)

Model: TypeAlias = "torch.nn.Module | ExportedProgram"

# The checks run the whole graph after every pass; what they find, lowering finds too.
_CONFIG = EdgeCompileConfig(_check_ir_validity=False)


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
    methods = _methods(model, inputs, partitioner)
    with torch.no_grad(), quiet():
        with clock.step("trace", "tracing the model"):
            programs = {name: program_of(method.model, method.inputs, strict) for name, method in methods.items()}
        with clock.step("lower", "building engines"), sizes_of_one(), unnarrowed():
            edge = lower(programs, methods, partitioners, generate_etrecord)
        delegates = describe_delegates(edge)
        with clock.step("emit", "writing the program"), unnarrowed():
            lowered = edge.to_executorch(planning_config(edge, device, host_io))
            check_plan(lowered, {name: method.declared for name, method in methods.items()})
    forget([*programs.values(), *(edge.exported_program(name) for name in programs)])
    if not delegates:
        warnings.warn("no operator went into an engine; see left_outside for the reasons.", stacklevel=2)
    return ExportedEngineProgram(lowered, delegates, _left_outside(methods), clock.seconds)


def lower(
    programs: dict[str, ExportedProgram],
    methods: Mapping[str, _Method],
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


@dataclass(frozen=True)
class _Method:
    model: object
    inputs: Inputs | None
    declared: Sequence[Input]
    partitioner: TensorRTPartitioner


def _methods(
    model: object,
    inputs: Inputs | None,
    partitioner: Callable[[Sequence[Input] | Mapping[str, Input] | None], TensorRTPartitioner],
) -> dict[str, _Method]:
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
    partitioner: Callable[[Sequence[Input] | Mapping[str, Input] | None], TensorRTPartitioner],
) -> _Method:
    if isinstance(model, torch.nn.Module) and inputs is not None:
        inputs = in_signature_order(model, inputs)
    declared = None if inputs is None else declared_inputs(inputs)
    named = inputs if isinstance(model, ExportedProgram) and isinstance(inputs, Mapping) else declared
    return _Method(model, inputs, declared or [], partitioner(named))


def _left_outside(methods: Mapping[str, _Method]) -> dict[str, str]:
    if len(methods) == 1:
        return next(iter(methods.values())).partitioner.left_outside
    return {
        f"{name}/{node}": reason
        for name, method in methods.items()
        for node, reason in method.partitioner.left_outside.items()
    }


def program_of(model: object, inputs: Inputs | None, strict: bool) -> ExportedProgram:
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
def quiet() -> Generator[None]:
    """Without the warnings that torch's own deep copies raise by the hundred."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r".*isinstance\(treespec, LeafSpec\).*", category=FutureWarning)
        yield
