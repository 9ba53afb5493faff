"""Mutable buffers (KV caches): which engine updates one in place, and who owns its memory."""

# torch's graphs and sympy's expressions carry few types.
# pyright: reportMissingTypeStubs=false, reportPrivateUsage=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import torch
from executorch.exir import EdgeCompileConfig
from executorch.exir.verification.verifier import EXIREdgeDialectVerifier
from torch.export import ExportedProgram
from torch.export.graph_signature import (
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
)
from torch.utils import _pytree as pytree

TAG = "delegation_tag"

_LARGEST_INITIAL = 1 << 20


@dataclass(frozen=True)
class MutableBuffer:
    """A buffer that a method updates.

    Attributes:
        name: its qualified name in the model.
        placeholder: its value when the method begins.
        update: its value when the method ends.
        returned: whether the method returns that value as well.
    """

    name: str
    placeholder: torch.fx.Node
    update: torch.fx.Node
    returned: bool

    def readers(self) -> Iterator[torch.fx.Node]:
        """What uses the value of the beginning."""
        return (user for user in self.placeholder.users if user.op != "output")

    def update_readers(self) -> Iterator[torch.fx.Node]:
        """What uses the value of the end."""
        return (user for user in self.update.users if user.op != "output")


def mutable_buffers(program: ExportedProgram) -> list[MutableBuffer]:
    """The buffers that a program updates, in the order of its outputs."""
    signature = program.graph_signature
    nodes = {node.name: node for node in program.graph.nodes}
    placeholders = {name: nodes[node] for node, name in signature.inputs_to_buffers.items()}
    return [
        MutableBuffer(name, placeholders[name], nodes[update], update in signature.user_outputs)
        for update, name in signature.buffers_to_mutate.items()
    ]


def initial_value(program: ExportedProgram, buffer: MutableBuffer) -> torch.Tensor:
    """What a buffer of a program has in the model. One that is not persistent is among the constants."""
    values = program.state_dict if buffer.name in program.state_dict else program.constants
    return cast(torch.Tensor, values[buffer.name])


def tag_owned(program: ExportedProgram) -> None:
    """Put every mutable buffer into the engine that uses it.

    Raises:
        ValueError: a buffer is used by several engines, or outside of them, or the method returns it.
    """
    for buffer in mutable_buffers(program):
        users = {buffer.update: buffer.update.meta.get(TAG)}
        users |= {node: node.meta.get(TAG) for node in [*buffer.readers(), *buffer.update_readers()]}
        tags = set(users.values())
        if len(tags) > 1 or None in tags:
            places = ", ".join(f"{node.name} {f'in {tag}' if tag else 'outside'}" for node, tag in users.items())
            raise ValueError(
                f"mutable buffer '{buffer.name}' can't be owned by an engine: got uses by {places}, allowed uses by "
                "one engine; let the engine take these operators too, or leave take_over_mutable_buffer off."
            )
        if buffer.returned:
            raise ValueError(
                f"mutable buffer '{buffer.name}' can't be owned by an engine: got a method that returns it, allowed "
                "one that does not; return a clone of it, or leave take_over_mutable_buffer off."
            )
        buffer.placeholder.meta[TAG] = tags.pop()


def aliases_by_tag(program: ExportedProgram) -> dict[str, list[tuple[str, str]]]:
    """For each engine, the updates that it may write in place of a buffer of the caller's: (output, input).

    Nothing outside the engine may look at the buffer's old value, which is then gone.
    """
    found: dict[str, list[tuple[str, str]]] = {}
    for buffer in mutable_buffers(program):
        tag = buffer.update.meta.get(TAG)
        inside = all(node.meta.get(TAG) == tag for node in buffer.readers())
        untouched = buffer.update is not buffer.placeholder and TAG not in buffer.placeholder.meta
        if tag and inside and untouched and not buffer.returned and any(buffer.readers()):
            found.setdefault(tag, []).append((buffer.update.name, buffer.placeholder.name))
    return found


@dataclass(frozen=True)
class OwnedBuffer:
    """A buffer that an engine owns.

    Attributes:
        name: its qualified name in the model.
        input, output: the nodes of its value before and after a call.
        initial: its value before the first.
    """

    name: str
    input: str
    output: str
    initial: torch.Tensor

    def initial_text(self) -> str:
        """The initial value in hexadecimal; empty for zeros.

        Raises:
            ValueError: it is neither zero nor small.
        """
        value = self.initial.detach().contiguous()
        data = value.reshape(-1).view(torch.uint8).numpy().tobytes()
        if not any(data):
            return ""
        if len(data) > _LARGEST_INITIAL:
            raise ValueError(
                f"mutable buffer '{self.name}' begins with too much data to keep with its engine: got {len(data)} "
                f"bytes that are not all zero, allowed {_LARGEST_INITIAL}; let it begin with zeros, and write it after "
                "loading."
            )
        return data.hex()


def with_buffers_as_arguments(program: ExportedProgram) -> tuple[ExportedProgram, list[OwnedBuffer]]:
    """A partition whose owned buffers are further inputs and outputs, after the others, and what they are.

    A partition that owns none is returned as it is.
    """
    owned = [
        OwnedBuffer(buffer.name, buffer.placeholder.name, buffer.update.name, initial_value(program, buffer))
        for buffer in mutable_buffers(program)
    ]
    if not owned:
        return program, []
    graph = copy.deepcopy(program.graph)
    nodes = {node.name: node for node in graph.nodes}
    signature = _signature(program.graph_signature, owned)
    placeholders = [node for node in graph.nodes if node.op == "placeholder"]
    for buffer in owned:
        placeholders[-1].append(nodes[buffer.input])
        placeholders.remove(nodes[buffer.input])
        placeholders.append(nodes[buffer.input])
    output = graph.output_node()
    output.args = (tuple(nodes[spec.arg.name] for spec in signature.output_specs),)
    module = torch.fx.GraphModule(program.graph_module, graph)
    return (
        ExportedProgram(
            root=module,
            graph=module.graph,
            graph_signature=signature,
            state_dict=program.state_dict,
            range_constraints=program.range_constraints,
            module_call_graph=_call_graph(program, signature),
            constants=program.constants,
            verifiers=[EXIREdgeDialectVerifier(EdgeCompileConfig(_check_ir_validity=False), class_only=True)],  # pyright: ignore[reportArgumentType]
        ),
        owned,
    )


def _signature(signature: ExportGraphSignature, owned: Sequence[OwnedBuffer]) -> ExportGraphSignature:
    inputs = {spec.arg.name: spec for spec in signature.input_specs}
    outputs = {spec.arg.name: spec for spec in signature.output_specs if spec.kind == OutputKind.BUFFER_MUTATION}
    names = {buffer.name for buffer in owned}
    return ExportGraphSignature(
        [spec for spec in signature.input_specs if spec.kind != InputKind.BUFFER or spec.target not in names]
        + [InputSpec(InputKind.USER_INPUT, inputs[buffer.input].arg, None) for buffer in owned],
        [spec for spec in signature.output_specs if spec.kind != OutputKind.BUFFER_MUTATION]
        + [OutputSpec(OutputKind.USER_OUTPUT, outputs[buffer.output].arg, None) for buffer in owned],
    )


def _call_graph(program: ExportedProgram, signature: ExportGraphSignature) -> list[torch.export.ModuleCallEntry]:
    """How the program is called, as ExecuTorch writes it for a partition."""
    entry = copy.copy(program.module_call_graph[0])
    call = copy.copy(entry.signature)
    assert call is not None
    call.in_spec = pytree.tree_flatten((tuple(signature.user_inputs), {}))[1]
    call.out_spec = pytree.tree_flatten(tuple(signature.user_outputs))[1]
    entry.signature = call
    return [entry]
