"""From a lowered program to one of ATen operators that AOTInductor compiles: delegates become calls of our operator."""

# torch's graphs and sympy's expressions carry few types.
# pyright: reportMissingTypeStubs=false, reportPrivateUsage=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, cast

import torch
from executorch.exir.delegate import executorch_call_delegate
from torch._export.verifier import TrainingIRVerifier
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.export import ExportedProgram
from torch.export.graph_signature import (
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
)

from executorch_tensorrt.aoti.operator import EXECUTE_ENGINE, EXECUTE_IN_PLACE, describe_output, engine_tensor
from executorch_tensorrt.engines.blob import unpack_metadata
from executorch_tensorrt.graphs.edge_to_aten import edge_to_aten
from executorch_tensorrt.graphs.shapes import OPERATIONS, JsonExpr


def with_operators(edge: ExportedProgram, traced: ExportedProgram, request: int) -> ExportedProgram:
    """A copy of a lowered program with the operator in the place of delegates, and with the ranges of the traced one.

    Raises:
        ValueError: an engine does not say what shapes its outputs have, as those that Torch-TensorRT built.
    """
    program = edge_to_aten(edge)
    graph = program.graph
    engines: dict[str, torch.Tensor] = {}
    for call in [node for node in graph.nodes if node.target is executorch_call_delegate]:
        holder = cast(torch.fx.Node, call.args[0])
        blob = bytes(getattr(program.graph_module, cast(str, holder.target)).processed_bytes)
        name = f"etrt_engine_{len(engines)}"
        engines[name] = engine_tensor(blob, request)
        _Call(graph, call, _placeholder(program, name, engines[name]), _metadata(blob)).replace()
        if not holder.users:
            graph.erase_node(holder)
            delattr(program.graph_module, cast(str, holder.target))
    ranges = {**program.range_constraints, **traced.range_constraints}
    made = _program(
        program,
        graph_signature=_signature(program),
        range_constraints={symbol: ranges[symbol] for symbol in program.range_constraints},
        example_inputs=traced.example_inputs,
        constants={**program.constants, **engines},
    )
    return with_own_buffers(made)


def engines_of(program: ExportedProgram) -> dict[str, torch.Tensor]:
    """The engines of a program that `with_operators` made, by name."""
    places = {EXECUTE_ENGINE: 1, EXECUTE_IN_PLACE: 2}
    names = [node.args[places[node.target]].name for node in program.graph.nodes if node.target in places]
    return {name: cast(torch.Tensor, program.constants[name]) for name in names}


def with_engines(program: ExportedProgram, engines: Mapping[str, torch.Tensor]) -> ExportedProgram:
    """A copy of a program with other tensors for some engines."""
    module = copy.copy(program.graph_module)
    module.graph = copy.deepcopy(program.graph)
    for node in module.graph.nodes:
        if node.op == "placeholder" and node.name in engines:
            node.meta["val"] = node.meta["val"].fake_mode.from_tensor(engines[node.name])
    return _program(program, graph_module=module, constants={**program.constants, **engines})


def _program(program: ExportedProgram, **changed: Any) -> ExportedProgram:
    """A program with some parts changed. Engines may write buffers, so it is not functional."""

    def part(name: str) -> Any:
        return changed.get(name, getattr(program, name))

    module = part("graph_module")
    return ExportedProgram(
        root=module,
        graph=module.graph,
        graph_signature=part("graph_signature"),
        state_dict=part("state_dict"),
        range_constraints=part("range_constraints"),
        module_call_graph=program.module_call_graph,
        example_inputs=part("example_inputs"),
        constants=part("constants"),
        verifiers=[TrainingIRVerifier],
    )


def _signature(program: ExportedProgram) -> ExportGraphSignature:
    """That of a changed graph: with engines among the inputs, and without the buffers that engines write in place."""
    graph, signature = program.graph, program.graph_signature
    inputs = {spec.arg.name: spec for spec in signature.input_specs}
    input_specs = [
        inputs.get(node.name) or InputSpec(InputKind.CONSTANT_TENSOR, TensorArgument(node.name), node.name)
        for node in graph.nodes
        if node.op == "placeholder"
    ]
    output = graph.output_node()
    kept: list[Any] = []
    output_specs: list[OutputSpec] = []
    for value, spec in zip(cast("Sequence[Any]", output.args[0]), signature.output_specs, strict=True):
        if isinstance(value, torch.fx.Node):
            if spec.kind == OutputKind.BUFFER_MUTATION and value.op == "placeholder":
                continue
            if value.name != spec.arg.name:
                spec = OutputSpec(spec.kind, TensorArgument(value.name), spec.target)
        kept.append(value)
        output_specs.append(spec)
    output.args = (tuple(kept),)
    return ExportGraphSignature(input_specs, output_specs)


def with_own_buffers(program: ExportedProgram) -> ExportedProgram:
    """A copy of a program with copies of the buffers that it updates."""
    signature = program.graph_signature
    updated = set(signature.buffers_to_mutate.values())
    for node in program.graph.nodes:
        if node.target is EXECUTE_IN_PLACE:
            updated |= {signature.inputs_to_buffers[buffer.name] for buffer in node.args[0]}

    def copied(tensors: Mapping[str, Any]) -> dict[str, Any]:
        return {name: value.clone() if name in updated else value for name, value in tensors.items()}

    return _program(program, state_dict=copied(program.state_dict), constants=copied(program.constants))


def _metadata(blob: bytes) -> dict[str, Any]:
    metadata = unpack_metadata(blob)
    if "shapes" not in metadata["executorch_tensorrt"]:
        raise ValueError(
            "the model holds an engine that Torch-TensorRT built: got one without output shapes, allowed engines that "
            "are built here; give the PyTorch model itself, or save it with torch_tensorrt.save."
        )
    return metadata


def _placeholder(program: ExportedProgram, name: str, value: torch.Tensor) -> torch.fx.Node:
    """A new input of a graph, before those that callers give."""
    given = set(map(str, program.graph_signature.user_inputs))
    placeholders = [node for node in program.graph.nodes if node.op == "placeholder"]
    first = next((node for node in placeholders if node.name in given), None)
    before = first if first is not None else next(node for node in program.graph.nodes if node.op != "placeholder")
    with program.graph.inserting_before(before):
        node = program.graph.placeholder(name)
    node.meta["val"] = _mode(program).from_tensor(value)
    return node


def _mode(program: ExportedProgram) -> FakeTensorMode:
    values = (node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder")
    return next((value.fake_mode for value in values if hasattr(value, "fake_mode")), None) or FakeTensorMode()


class _Call:
    """One delegate call, and what becomes of it."""

    def __init__(
        self, graph: torch.fx.Graph, call: torch.fx.Node, engine: torch.fx.Node, metadata: Mapping[str, Any]
    ) -> None:
        self._graph = graph
        self._call = call
        self._engine = engine
        self._inputs = cast("Sequence[torch.fx.Node]", call.args[1:])
        self._values = cast("Sequence[torch.Tensor]", call.meta["val"])
        record = metadata["executorch_tensorrt"]
        self._shapes: Sequence[Sequence[JsonExpr]] = record["shapes"]["outputs"]
        self._symbols: Sequence[Mapping[str, int]] = record["symbols"]
        names = [
            [item["name"] for item in metadata["io_bindings"] if item["is_input"] is side] for side in (True, False)
        ]
        self._aliases = {
            names[1].index(alias["output"]): names[0].index(alias["input"]) for alias in metadata["aliased_io"]
        }
        self._known: dict[str, Any] = {}

    def replace(self) -> None:
        with self._graph.inserting_before(self._call):
            outputs = self._in_place() if self._aliases else self._functional()
        for user in list(self._call.users):
            user.replace_all_uses_with(outputs[cast(int, user.args[1])])
            self._graph.erase_node(user)
        self._graph.erase_node(self._call)

    def _functional(self) -> list[torch.fx.Node]:
        described = [
            item
            for value, shape in zip(self._values, self._shapes, strict=True)
            for item in describe_output(value.dtype, [self._size(expr) for expr in shape])
        ]
        made = self._operator(EXECUTE_ENGINE, (list(self._inputs), self._engine, described))
        made.meta["val"] = list(self._values)
        return [self._node(operator.getitem, (made, place), value) for place, value in enumerate(self._values)]

    def _in_place(self) -> list[torch.fx.Node]:
        """The buffers that the engine writes are their own new values: no one else reads the old ones."""
        outputs = [
            self._inputs[self._aliases[place]]
            if place in self._aliases
            else self._node(
                torch.ops.aten.empty.memory_format,
                ([self._size(expr) for expr in shape],),
                value,
                {"dtype": value.dtype, "device": value.device},
            )
            for place, (value, shape) in enumerate(zip(self._values, self._shapes, strict=True))
        ]
        others = [node for place, node in enumerate(self._inputs) if place not in self._aliases.values()]
        buffers = [outputs[place] for place in sorted(self._aliases)]
        fresh = [node for place, node in enumerate(outputs) if place not in self._aliases]
        made = self._operator(EXECUTE_IN_PLACE, (buffers, others, self._engine, fresh))
        made.meta["val"] = None
        return outputs

    def _operator(self, operation: Any, args: tuple[Any, ...]) -> torch.fx.Node:
        made = self._graph.call_function(operation, args)
        made.meta = {key: value for key, value in self._call.meta.items() if key in ("stack_trace", "nn_module_stack")}
        return made

    def _node(
        self, function: Callable[..., Any], args: tuple[Any, ...], value: object, kwargs: dict[str, Any] | None = None
    ) -> torch.fx.Node:
        node = self._graph.call_function(function, args, kwargs)
        node.meta["val"] = value
        return node

    def _size(self, expr: JsonExpr) -> Any:
        """A number, or the node that computes it."""
        if isinstance(expr, int):
            return expr
        if isinstance(expr, str):
            if expr not in self._known:
                self._known[expr] = self._symbol(self._symbols[int(expr[1:])])
            return self._known[expr]
        fold = OPERATIONS[cast(str, expr[0])]
        return reduce(lambda left, right: self._compute(fold, left, right), map(self._size, expr[1:]))

    def _symbol(self, symbol: Mapping[str, int]) -> Any:
        source, dim = self._inputs[symbol["input"]], symbol["dim"]
        size = self._node(torch.ops.aten.sym_size.int, (source, dim), source.meta["val"].shape[dim])
        shifted = self._compute(operator.sub, size, symbol["offset"]) if symbol["offset"] else size
        return self._compute(operator.floordiv, shifted, symbol["scale"]) if symbol["scale"] != 1 else shifted

    def _compute(self, function: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
        values = [side.meta["val"] if isinstance(side, torch.fx.Node) else side for side in (left, right)]
        if not any(isinstance(side, torch.fx.Node) for side in (left, right)):
            return function(*values)
        return self._node(function, (left, right), function(*values))
