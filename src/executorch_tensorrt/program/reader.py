"""Reads what a `.pte` file holds without running it and without torch.

ExecuTorch's own runtime verifies the file first; then the accessors that `flatc` generated from the schema of the
`executorch` wheel read it.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import struct
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from executorch_tensorrt import _native
from executorch_tensorrt import _program_schema as schema

BACKEND_ID = "TensorRTBackend"

_IDENTIFIER = b"ET12"
_HEADER_MAGIC = b"eh00"

_KINDS = (
    "nothing", "none", "int", "bool", "double", "tensor", "string", "int_list", "double_list", "bool_list",
    "tensor_list", "optional_tensor_list",
)  # fmt: skip
_DTYPES = {
    0: "uint8", 1: "int8", 2: "int16", 3: "int32", 4: "int64", 5: "float16", 6: "float32", 7: "float64", 11: "bool",
    12: "qint8", 13: "quint8", 14: "qint32", 15: "bfloat16", 27: "uint16", 28: "uint32", 29: "uint64",
}  # fmt: skip


@dataclass(frozen=True)
class Value:
    """An input or output of a method.

    Attributes:
        kind: "tensor", "int", "double", "bool", "none" and so on.
        dtype: of a tensor, such as "float32"; else empty.
        sizes: of a tensor: its shape, or the largest one where `dynamic`; else empty.
        dynamic: whether the shape may differ from call to call.
    """

    kind: str
    dtype: str = ""
    sizes: tuple[int, ...] = ()
    dynamic: bool = False


@dataclass(frozen=True)
class Delegate:
    """One lowered partition of a method.

    Attributes:
        index: its place among the method's delegates.
        backend_id: which backend runs it, "TensorRTBackend" for engines.
        blob: what the backend gets; a view of the file.
        compile_specs: key and value in the file's order.
    """

    index: int
    backend_id: str
    blob: memoryview
    compile_specs: tuple[tuple[str, bytes], ...]


@dataclass(frozen=True)
class Instruction:
    """One step of a method.

    Attributes:
        kind: "kernel", "delegate", or "control" for moves, jumps and frees.
        name: of a kernel's operator, such as "aten::cumsum.out"; else empty.
        delegate: index of the delegate that it calls; else -1.
    """

    kind: Literal["kernel", "delegate", "control"]
    name: str = ""
    delegate: int = -1


@dataclass(frozen=True)
class Method:
    """An entry point of a program.

    Attributes:
        name: "forward" by default.
        inputs, outputs: in order.
        delegates: in order of their index.
        instructions: in the order in which they run; events name them by index.
        operators: operators that run outside delegates: name to number of calls.
        planned_bytes: sizes of the memory arenas that one loaded method needs.
        devices: where an arena lies elsewhere than in host memory: index in `planned_bytes` to "cuda:0" and so on.
    """

    name: str
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    delegates: tuple[Delegate, ...]
    instructions: tuple[Instruction, ...]
    operators: Mapping[str, int]
    planned_bytes: tuple[int, ...]
    devices: Mapping[int, str]


@dataclass(frozen=True)
class Program:
    """What a `.pte` file holds.

    Attributes:
        file_bytes: size of the file.
        constant_bytes: size of the weights that lie outside delegates.
        methods: in the file's order.
    """

    file_bytes: int
    constant_bytes: int
    methods: tuple[Method, ...]


def read_program(source: str | os.PathLike[str] | bytes) -> Program:
    """Reads a `.pte` file, or its bytes. A file is mapped, so only what is looked at is read.

    Raises:
        FileNotFoundError: there is no file at that path.
        ValueError: it is no file, no ExecuTorch program, or is truncated or damaged.
        OSError: it cannot be read.
    """
    if isinstance(source, bytes):
        return _read("the program", memoryview(source), lambda: _native.Module(source, False, {}))
    path = Path(source)
    if path.exists() and not path.is_file():
        raise ValueError(f"'{path}' is no file; give a .pte file")
    if not path.is_file():
        raise FileNotFoundError(f"no program at '{path}'")
    with path.open("rb") as file:
        # An empty file cannot be mapped.
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if path.stat().st_size else b""
    return _read(f"'{path}'", memoryview(data), lambda: _native.Module(str(path), "mmap", False, {}))


def verify_engines(path: str | os.PathLike[str]) -> None:
    """Reads a `.pte` file and compares every engine's bytes with the id that its exporter gave it; loading does not.

    Raises:
        FileNotFoundError: there is no file at that path.
        ValueError: as for :func:`read_program`, or an engine has other bytes than its id says, or its blob is damaged.
        OSError: it cannot be read.
    """
    for method in read_program(path).methods:
        for delegate in method.delegates:
            if delegate.backend_id == BACKEND_ID:
                data = bytes(delegate.blob)
                blob = _native.parse_blob(data)
                record = blob.metadata.record
                if record is not None and not engine_is_intact(data, blob, record.engine_id):
                    raise ValueError(
                        f"'{path}' is damaged: engine {record.engine_id} has other bytes than its id says; export or "
                        "copy it again."
                    )


def engine_is_intact(data: bytes, blob: _native.Blob, engine_id: str) -> bool:
    """Whether the engine's SHA-256 begins with its id."""
    engine = memoryview(data)[blob.engine_offset : blob.engine_offset + blob.engine_size]
    return hashlib.sha256(engine).hexdigest().startswith(engine_id)


def _read(name: str, data: memoryview, verify: Callable[[], object]) -> Program:
    if bytes(data[4:8]) != _IDENTIFIER:
        raise ValueError(
            f"{name} is no ExecuTorch program: got {bytes(data[4:8])!r} at byte 4, allowed {_IDENTIFIER!r}; give a "
            ".pte file."
        )
    damaged = f"{name} is damaged or truncated"
    try:
        verify()
    except (ValueError, RuntimeError):
        raise ValueError(f"{damaged}; export or copy it again.") from None
    try:
        return _Reader(data).program()
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError, struct.error) as error:
        raise ValueError(f"{damaged}: {error}; export or copy it again.") from None


class _Reader:
    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._base = 0
        if bytes(data[8:12]) == _HEADER_MAGIC:  # older files have no header, and no segments
            (self._base,) = struct.unpack_from("<Q", data, 24)
        self._root: Any = schema.Program.GetRootAs(data, 0)

    def program(self) -> Program:
        plans = [self._root.ExecutionPlan(index) for index in range(self._root.ExecutionPlanLength())]
        return Program(len(self._data), self._constant_bytes(), tuple(self._method(plan) for plan in plans))

    def _segment(self, index: int) -> memoryview:
        if not 0 <= index < self._root.SegmentsLength():
            raise IndexError(f"segment {index}: got {self._root.SegmentsLength()} segments")
        segment = self._root.Segments(index)
        begin, size = self._base + segment.Offset(), segment.Size()
        if begin + size > len(self._data):
            raise IndexError(f"segment {index} ends at byte {begin + size}: got a file of {len(self._data)} bytes")
        return self._data[begin : begin + size]

    def _constant_bytes(self) -> int:
        segment = self._root.ConstantSegment()
        if segment is not None and segment.OffsetsLength():
            return len(self._segment(segment.SegmentIndex()))
        buffers = range(self._root.ConstantBufferLength())
        return sum(self._root.ConstantBuffer(index).StorageLength() for index in buffers)

    def _method(self, plan: Any) -> Method:
        values = [plan.Values(index) for index in range(plan.ValuesLength())]
        devices = [plan.NonConstBufferDevice(index) for index in range(plan.NonConstBufferDeviceLength())]
        instructions = _instructions(plan)
        return Method(
            name=_text(plan.Name()),
            inputs=tuple(_value(_at(values, plan.Inputs(k))) for k in range(plan.InputsLength())),
            outputs=tuple(_value(_at(values, plan.Outputs(k))) for k in range(plan.OutputsLength())),
            delegates=tuple(self._delegate(index, plan.Delegates(index)) for index in range(plan.DelegatesLength())),
            instructions=instructions,
            operators=dict(Counter(step.name for step in instructions if step.kind == "kernel").most_common()),
            # Entry 0 stands for constants and is always 0.
            planned_bytes=tuple(plan.NonConstBufferSizes(k) for k in range(1, plan.NonConstBufferSizesLength())),
            devices={d.BufferIdx() - 1: f"cuda:{d.DeviceIndex()}" for d in devices if d.DeviceType()},
        )

    def _delegate(self, index: int, delegate: Any) -> Delegate:
        place = delegate.Processed()
        specs = [delegate.CompileSpecs(k) for k in range(delegate.CompileSpecsLength())]
        return Delegate(
            index=index,
            backend_id=_text(delegate.Id()),
            blob=memoryview(b"") if place is None else self._blob(place),
            compile_specs=tuple((_text(spec.Key()), spec.ValueAsNumpy().tobytes()) for spec in specs),
        )

    def _blob(self, place: Any) -> memoryview:
        if place.Location() == schema.DataLocation.SEGMENT:
            return self._segment(place.Index())
        if not place.Index() < self._root.BackendDelegateDataLength():
            raise IndexError(f"inline data {place.Index()}: got {self._root.BackendDelegateDataLength()}")
        return memoryview(self._root.BackendDelegateData(place.Index()).DataAsNumpy())


def _text(value: bytes | None) -> str:
    return (value or b"").decode()


def _at(items: Sequence[Any], index: int) -> Any:
    if not 0 <= index < len(items):
        raise IndexError(f"value {index}: got {len(items)} values")
    return items[index]


def _union(table: Any, union: Any) -> Any:
    """A union's member as the table that its type says it is."""
    table.Init(union.Bytes, union.Pos)
    return table


def _value(value: Any) -> Value:
    number: int = value.ValType()
    kind = _KINDS[number] if number < len(_KINDS) else f"kind {number}"
    if kind != "tensor":
        return Value(kind)
    tensor = _union(schema.Tensor(), value.Val())
    return Value(
        kind,
        _DTYPES.get(tensor.ScalarType(), f"scalar type {tensor.ScalarType()}"),
        tuple(tensor.Sizes(k) for k in range(tensor.SizesLength())),
        tensor.ShapeDynamism() != schema.TensorShapeDynamism.STATIC,
    )


def _instructions(plan: Any) -> tuple[Instruction, ...]:
    operators = [plan.Operators(index) for index in range(plan.OperatorsLength())]
    names = [".".join(filter(None, (_text(op.Name()), _text(op.Overload())))) for op in operators]
    found: list[Instruction] = []
    for chain in (plan.Chains(index) for index in range(plan.ChainsLength())):
        for step in (chain.Instructions(index) for index in range(chain.InstructionsLength())):
            if step.InstrArgsType() == schema.InstructionArguments.KernelCall:
                call = _union(schema.KernelCall(), step.InstrArgs())
                found.append(Instruction("kernel", name=_at(names, call.OpIndex())))
            elif step.InstrArgsType() == schema.InstructionArguments.DelegateCall:
                call = _union(schema.DelegateCall(), step.InstrArgs())
                found.append(Instruction("delegate", delegate=call.DelegateIndex()))
            else:
                found.append(Instruction("control"))
    return tuple(found)
