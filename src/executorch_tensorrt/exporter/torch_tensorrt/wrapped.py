"""Programs with engines that Torch-TensorRT built, made ready for lowering.

Its own operators do not survive that: ExecuTorch's passes can't take an engine object, and the fake kernels unpickle
the engine's metadata. So each engine node is replaced, in a copy of the program, by this project's operator, and the
engine's bytes become a constant of the program.
"""

# torch's graphs and sympy's expressions carry few types.
# pyright: reportMissingTypeStubs=false, reportPrivateUsage=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import copy
import itertools
import json
import operator
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import cast

import torch
from torch._guards import detect_fake_mode
from torch.export import ExportedProgram
from torch.export.graph_signature import ExportGraphSignature, InputKind, InputSpec, OutputSpec, TensorArgument

from executorch_tensorrt.engines.blob import AliasedIo
from executorch_tensorrt.exporter.torch_tensorrt.engine_op import describe_results, engine_op, is_engine
from executorch_tensorrt.exporter.torch_tensorrt.records import EngineRecord, engine_nodes, read_engine, resolve
from executorch_tensorrt.graphs.nodes import aten_op
from executorch_tensorrt.graphs.shapes import has_unbacked


@dataclass(frozen=True)
class WrappedEngine:
    """An engine in a program that is lowered.

    Attributes:
        record: what its builder says of it.
        inputs: what it gets, in the order of the record's input names.
        results: the nodes that take one output each, with the place of its name in the record.
        values: the outputs, taken or not.
        data: its bytes.
    """

    record: EngineRecord
    inputs: Sequence[torch.fx.Node]
    results: dict[torch.fx.Node, int]
    values: Sequence[torch.Tensor]
    data: bytes


def read_wrapped(program: ExportedProgram) -> WrappedEngine | None:
    """The engine that a partition consists of; None if its engine is still to be built."""
    node = next((node for node in program.graph.nodes if is_engine(node)), None)
    if node is None:
        return None
    fields = json.loads(cast(str, node.args[2]))["record"]
    aliases = [AliasedIo(**alias) for alias in fields.pop("aliased_io")]
    return WrappedEngine(
        EngineRecord(aliased_io=aliases, **fields),
        cast("Sequence[torch.fx.Node]", node.args[0]),
        {user: cast(int, user.args[1]) for user in node.users},
        node.meta["val"],
        cast(torch.Tensor, resolve(program, node.args[1])).numpy().tobytes(),
    )


def device_of(node: torch.fx.Node) -> int:
    """The GPU that a wrapped engine is for."""
    return json.loads(cast(str, node.args[2]))["record"]["device_id"]


def check_wrapped(program: ExportedProgram) -> None:
    """See that lowering began with :func:`wrap_engines`.

    Raises:
        ValueError: engine nodes came into the edge dialect as they were.
    """
    for node in engine_nodes(program.graph.nodes):
        raise ValueError(
            f"node '{node.name}' runs an engine of Torch-TensorRT: got it in the edge dialect, allowed an exported "
            "program; give that to export or to_edge_transform_and_lower."
        )


def wrap_engines(program: ExportedProgram) -> ExportedProgram:
    """Replace the engine nodes of Torch-TensorRT by this project's operator; the given program stays as it is.

    Raises:
        ValueError: an engine can't be wrapped. The message names it.
    """
    nodes = engine_nodes(program.graph.nodes)
    return _Wrapper(program).run(nodes) if nodes else program


class _Wrapper:
    """Builds the copy of one program."""

    def __init__(self, program: ExportedProgram) -> None:
        self._program = program
        self._graph = copy.deepcopy(program.graph)
        # A copied graph renames what is called like one of Python's own functions, and signatures go by names.
        self._copies: dict[torch.fx.Node, torch.fx.Node] = {}
        for node, fresh in zip(program.graph.nodes, self._graph.nodes, strict=True):
            fresh.name = node.name
            self._copies[node] = fresh
        signature = program.graph_signature
        self._inputs = [
            InputSpec(spec.kind, copy.copy(spec.arg), spec.target, spec.persistent) for spec in signature.input_specs
        ]
        self._outputs = [OutputSpec(spec.kind, copy.copy(spec.arg), spec.target) for spec in signature.output_specs]
        self._constants = dict(program.constants)
        self._state = dict(program.state_dict)
        self._engines: dict[torch.fx.Node, torch.fx.Node] = {}

    def run(self, nodes: Sequence[torch.fx.Node]) -> ExportedProgram:
        carriers = {arg for node in nodes for arg in node.all_input_nodes if arg not in node.args[0]}  # pyright: ignore[reportOperatorIssue]
        for node in nodes:
            self._replace(node)
        for carrier in carriers:
            self._drop(self._copies[carrier])
        self._graph.lint()
        program = self._program
        return ExportedProgram(
            root=program.graph_module,
            graph=self._graph,
            graph_signature=ExportGraphSignature(self._inputs, self._outputs),
            state_dict=self._state,
            range_constraints=program.range_constraints,
            module_call_graph=program.module_call_graph,
            example_inputs=program.example_inputs,
            constants=self._constants,
            verifiers=program.verifiers,
        )

    def _replace(self, node: torch.fx.Node) -> None:
        record, data = read_engine(self._program, node)
        values = _results(node, record)
        inputs = cast("Sequence[torch.fx.Node]", node.args[0])
        try:
            described = describe_results([arg.meta["val"] for arg in inputs], values)
        except ValueError as error:
            raise ValueError(
                f"engine '{record.name}' can't be wrapped: got an output whose shape follows from more than the "
                f"engine's inputs ({error}), allowed formulas over their dims; compile the model again, with bounded "
                "dims."
            ) from None
        old = self._copies[node]
        with self._graph.inserting_before(old):
            fresh = self._graph.call_function(
                engine_op(),
                (
                    [self._argument(arg, old) for arg in inputs],
                    self._constant(data),
                    json.dumps({"record": asdict(record), **described}),
                ),
            )
        fresh.meta = {**old.meta, "val": values}
        for result in list(old.users):
            if not result.users:
                self._graph.erase_node(result)
                continue
            result.args = (fresh, result.args[1])
            # Torch-TensorRT leaves a list of one on an only result.
            result.meta["val"] = values[cast(int, result.args[1])]
        self._graph.erase_node(old)

    def _argument(self, node: torch.fx.Node, before: torch.fx.Node) -> torch.fx.Node:
        """An engine's input. A constant is copied first, because ExecuTorch can't move constants to a device."""
        signature, fresh = self._program.graph_signature, self._copies[node]
        # Until a program is made functional, its signature does not tell what it updates.
        updated = signature.inputs_to_buffers.get(node.name) in signature.buffers_to_mutate.values() or any(
            op is not None and op._schema.is_mutable for op in (aten_op(user.target) for user in node.users)
        )
        if node.op != "placeholder" or node.name in signature.user_inputs or updated:
            return fresh
        with self._graph.inserting_before(before):
            clone = self._graph.call_function(torch.ops.aten.clone.default, (fresh,))
        clone.meta = dict(fresh.meta)
        return clone

    def _constant(self, data: torch.Tensor) -> torch.fx.Node:
        """A new constant of the program, before the method's own inputs."""
        taken = {*self._constants, *self._state}
        target = next(name for name in (f"engine_{k}" for k in itertools.count()) if name not in taken)
        place = next((k for k, spec in enumerate(self._inputs) if spec.kind is InputKind.USER_INPUT), len(self._inputs))
        with self._graph.inserting_before(list(self._graph.nodes)[place]):
            node = self._graph.placeholder(f"c_{target}")
        mode = detect_fake_mode([other.meta.get("val") for other in self._graph.nodes])
        node.meta["val"] = mode.from_tensor(data, static_shapes=True) if mode else data
        self._inputs.insert(place, InputSpec(InputKind.CONSTANT_TENSOR, TensorArgument(node.name), target))
        self._constants[target] = data
        return node

    def _drop(self, carrier: torch.fx.Node) -> None:
        """Remove what held an engine, if nothing else uses it."""
        if carrier.users:
            return
        self._graph.erase_node(carrier)
        for spec in [spec for spec in self._inputs if getattr(spec.arg, "name", None) == carrier.name]:
            self._inputs.remove(spec)
            if all(other.target != spec.target for other in self._inputs):
                self._constants.pop(spec.target or "", None)
                self._state.pop(spec.target or "", None)


def _results(node: torch.fx.Node, record: EngineRecord) -> list[torch.Tensor]:
    """The fake tensors of an engine's outputs, in the order of their names."""
    values = list(cast("Sequence[torch.Tensor]", node.meta.get("val") or ()))
    label = f"engine '{record.name}'"
    aliased = {alias.output for alias in record.aliased_io}
    taken = [
        user.args[1] if user.target is operator.getitem else None
        for user in node.users
        if user.users or user.target is not operator.getitem
    ]
    if not all(isinstance(index, int) and index < len(values) for index in taken):
        raise ValueError(
            f"{label} has results that can't be told apart: got uses of node '{node.name}' other than its "
            f"{len(values)} outputs, one by one; compile the model again."
        )
    lost = [name for index, name in enumerate(record.outputs) if name in aliased and index not in taken]
    if lost:
        raise ValueError(
            f"{label} updates an input in place, and the program does not take the update: got output '{lost[0]}' "
            "unused, wanted a buffer mutation; save the program with Torch-TensorRT's retrace=False, which declares it."
        )
    if len(values) != len(record.outputs):
        raise ValueError(
            f"{label} does not match its node '{node.name}': got {len(record.outputs)} output names "
            f"({', '.join(record.outputs)}), wanted {len(values)}; a name with '%' or an empty one is lost in "
            "Torch-TensorRT's lists: rename the model's outputs and compile it again."
        )
    for name, value in zip(record.outputs, values, strict=True):
        if has_unbacked(value):
            raise ValueError(
                f"{label} has an output whose shape depends on data: got {tuple(value.shape)} for '{name}', allowed "
                "shapes that follow from the inputs'; keep such operators out of it with torch_executed_ops when "
                "compiling."
            )
    return values
