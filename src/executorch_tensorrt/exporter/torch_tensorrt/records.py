"""Graphs that Torch-TensorRT compiled: their engine nodes, and what those say of their engines.

An engine travels as a record of texts with one layout that only grew: releases 2.8 to 2.14 write 10 to 13 of the fields
below. Two operators carry it. `tensorrt::execute_engine` has an engine object, which gives the record as its pickle
state and the engine as base64 text. `tensorrt::no_op_placeholder_for_execute_engine` has the fields as its arguments,
and the engine as base64 text (2.8 to 2.12, and all cross-compiled programs) or as a uint8 tensor (2.13 on).
"""

# torch's graphs and sympy's expressions carry few types.
# pyright: reportMissingTypeStubs=false, reportPrivateUsage=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch._library.fake_class_registry import FakeScriptObject
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind

from executorch_tensorrt.engines.blob import AliasedIo
from executorch_tensorrt.graphs.nodes import aten_op

EXECUTE_ENGINE = "tensorrt::execute_engine"
PLACEHOLDER = "tensorrt::no_op_placeholder_for_execute_engine"

# Places in the record. The first is the version of the layout, which says no more than the number of fields does; the
# second is a name for messages.
_NAME, _DEVICE, _ENGINE, _INPUTS, _OUTPUTS, _HARDWARE_COMPATIBLE, _METADATA, _PLATFORM, _ALLOCATOR = range(1, 10)
_ALIASED_IO = 12
_FEWEST_FIELDS = 10

# Torch-TensorRT joins lists with the first, and what an alias consists of with the second.
_LISTS, _FIELDS = "%", "@"


@dataclass(frozen=True)
class EngineRecord:
    """What Torch-TensorRT says of an engine.

    Attributes:
        name: for messages.
        inputs, outputs: binding names, in the order of the node's arguments and results.
        aliased_io: outputs that the engine writes in place of inputs.
        hardware_compatible: whether the engine runs on other GPUs than the one that it was built for.
        device_id: the GPU that the engine was built on.
        serialized_metadata: a base64 pickle, kept as it is and never read.
        target_platform: such as "linux_x86_64".
    """

    name: str
    inputs: Sequence[str]
    outputs: Sequence[str]
    aliased_io: Sequence[AliasedIo]
    hardware_compatible: bool
    device_id: int
    serialized_metadata: str
    target_platform: str


def op_schema_name(node: torch.fx.Node) -> str:
    """The name of a node's operator without overload, such as "aten::linear"; empty if it calls none."""
    op = aten_op(node.target) if node.op == "call_function" else None
    return "" if op is None else op._schema.name


def engine_nodes(nodes: Iterable[torch.fx.Node]) -> list[torch.fx.Node]:
    """The nodes that run engines which Torch-TensorRT built."""
    return [node for node in nodes if op_schema_name(node) in (EXECUTE_ENGINE, PLACEHOLDER)]


def read_engine(program: ExportedProgram, node: torch.fx.Node) -> tuple[EngineRecord, torch.Tensor]:
    """The record and the bytes of the engine that a node runs.

    Raises:
        ValueError: the node's engine is in no form that Torch-TensorRT 2.8 to 2.14 writes, or can't run in ExecuTorch.
    """
    is_placeholder = op_schema_name(node) == PLACEHOLDER
    fields = list(node.args[1:]) if is_placeholder else _state(program, node)
    if len(fields) < _FEWEST_FIELDS:
        raise ValueError(
            f"node '{node.name}' has an engine in an unknown form: got {len(fields)} fields, allowed {_FEWEST_FIELDS} "
            "or more (Torch-TensorRT 2.8 or later); compile the model again."
        )
    record = _read(node, fields)
    _check_aliases(record)
    if _text(fields[_ALLOCATOR]) == "1":
        raise ValueError(
            f"engine '{record.name}' has outputs whose shapes depend on data: got one that needs an output allocator, "
            "allowed engines without; keep such operators out of it with torch_executed_ops when compiling."
        )
    given = len(cast("Sequence[object]", node.args[0]))
    if given != len(record.inputs):
        raise ValueError(
            f"engine '{record.name}' does not match its node '{node.name}': got {len(record.inputs)} input names "
            f"({', '.join(record.inputs)}), wanted {given}; a name with '{_LISTS}' or an empty one is lost in "
            "Torch-TensorRT's lists: rename the model's inputs and compile it again."
        )
    return record, _engine(program, node, fields[_ENGINE])


def _read(node: torch.fx.Node, fields: Sequence[Any]) -> EngineRecord:
    texts = [_text(field) if place != _ENGINE else "" for place, field in enumerate(fields)]
    inputs, outputs = texts[_INPUTS].split(_LISTS), texts[_OUTPUTS].split(_LISTS)
    device = texts[_DEVICE].split(_LISTS)[0]
    names = [*filter(None, inputs), *filter(None, outputs)]
    doubled = next((name for name in names if names.count(name) > 1), None)
    if doubled is not None:
        raise ValueError(
            f"engine of node '{node.name}' has two bindings of one name: got '{doubled}' twice, allowed once; compile "
            "the model again."
        )
    return EngineRecord(
        name=texts[_NAME] or node.name,
        inputs=[name for name in inputs if name],
        outputs=[name for name in outputs if name],
        aliased_io=_aliases(texts[_ALIASED_IO]) if len(texts) > _ALIASED_IO else [],
        hardware_compatible=texts[_HARDWARE_COMPATIBLE] == "1",
        device_id=int(device) if device.isdecimal() else 0,
        serialized_metadata=texts[_METADATA],
        target_platform=texts[_PLATFORM],
    )


def _aliases(text: str) -> list[AliasedIo]:
    entries = [entry.split(_FIELDS) for entry in text.split(_LISTS) if entry]
    for entry in entries:
        if len(entry) != 3:
            raise ValueError(
                f"an engine's aliased outputs can't be read: got {_FIELDS.join(entry)!r}, wanted "
                f"output{_FIELDS}input{_FIELDS}kind; compile the model again."
            )
    return [AliasedIo(*entry) for entry in entries]


def _check_aliases(record: EngineRecord) -> None:
    outputs, inputs = ([getattr(alias, side) for alias in record.aliased_io] for side in ("output", "input"))
    for alias in record.aliased_io:
        known = alias.output in record.outputs and alias.input in record.inputs
        if not known or outputs.count(alias.output) > 1 or inputs.count(alias.input) > 1:
            raise ValueError(
                f"engine '{record.name}' has an aliased output that makes no sense: got '{alias.output}' in place of "
                f"'{alias.input}', allowed one of its outputs ({', '.join(record.outputs)}) in place of an input of "
                f"its own ({', '.join(record.inputs)}); compile the model again."
            )


def _text(field: Any) -> str:
    return field.decode() if isinstance(field, bytes) else str(field or "")


def _state(program: ExportedProgram, node: torch.fx.Node) -> list[Any]:
    """The record of an engine object. A C++ object wraps it in a tuple."""
    engine = resolve(program, node.args[1])
    if isinstance(engine, FakeScriptObject):
        engine = engine.real_obj
    if not hasattr(engine, "__getstate__"):
        raise ValueError(
            f"node '{node.name}' has no engine: got {type(engine).__name__} for {node.args[1]}, wanted a "
            "tensorrt.Engine; compile the model again."
        )
    state: Any = engine.__getstate__()
    return list(state[0] if isinstance(state, tuple) else state or ())


def resolve(program: ExportedProgram, source: Any) -> Any:
    """What a node's argument stands for: an attribute, a lifted constant or a buffer; itself if it is no node."""
    if not isinstance(source, torch.fx.Node):
        return source
    if source.op == "get_attr":
        value: Any = program.graph_module
        for part in str(source.target).split("."):
            value = getattr(value, part, None)
        return value
    for spec in program.graph_signature.input_specs:
        if getattr(spec.arg, "name", None) == source.name and spec.kind is not InputKind.USER_INPUT:
            name = spec.target or source.name
            return program.state_dict.get(name, program.constants.get(name))
    return None


def _engine(program: ExportedProgram, node: torch.fx.Node, field: Any) -> torch.Tensor:
    engine = resolve(program, field)
    if isinstance(engine, str):
        try:
            engine = base64.b64decode(engine, validate=True)
        except binascii.Error as error:
            raise ValueError(
                f"node '{node.name}' has a damaged engine: got text that is no base64 ({error}), wanted an engine; "
                "compile the model again."
            ) from None
    if isinstance(engine, (bytes, bytearray)) and engine:
        return torch.frombuffer(bytearray(engine), dtype=torch.uint8)
    if isinstance(engine, torch.Tensor) and engine.dtype == torch.uint8 and engine.numel():
        return engine.detach().cpu().contiguous().flatten()
    raise ValueError(
        f"node '{node.name}' has an engine in an unknown form: got {type(engine).__name__} for {field}, allowed base64 "
        "text, bytes or a uint8 tensor; compile the model again."
    )
