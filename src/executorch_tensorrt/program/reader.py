"""Reads what a `.pte` file holds without running it and without torch.

ExecuTorch's own runtime verifies the file first; then the accessors that `flatc` generated from the schema of the
`executorch` wheel read it.
"""

from __future__ import annotations

import math
import mmap
import os
import struct
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from executorch_tensorrt import _native
from executorch_tensorrt import _program_schema as schema
from executorch_tensorrt.files import program_file

BACKEND_ID = "TensorRTBackend"

_IDENTIFIER = b"ET12"
_HEADER_MAGIC = b"eh00"
_MAX_RANK = 16  # ExecuTorch's

_KINDS = (
    "nothing", "none", "int", "bool", "double", "tensor", "string", "int_list", "double_list", "bool_list",
    "tensor_list", "optional_tensor_list",
)  # fmt: skip
_DTYPES = {
    0: "uint8", 1: "int8", 2: "int16", 3: "int32", 4: "int64", 5: "float16", 6: "float32", 7: "float64", 11: "bool",
    12: "qint8", 13: "quint8", 14: "qint32", 15: "bfloat16", 27: "uint16", 28: "uint32", 29: "uint64",
}  # fmt: skip
_ITEM_BYTES = {
    "uint8": 1, "int8": 1, "bool": 1, "qint8": 1, "quint8": 1, "int16": 2, "float16": 2, "bfloat16": 2, "uint16": 2,
    "int32": 4, "float32": 4, "qint32": 4, "uint32": 4, "int64": 8, "float64": 8, "uint64": 8,
}  # fmt: skip


@dataclass(frozen=True)
class Value:
    """What instructions read and write: a tensor, a number and so on.

    Attributes:
        kind: "tensor", "int", "double", "bool", "none" and so on.
        dtype: of a tensor, such as "float32"; else empty.
        sizes: of a tensor: its shape, or the largest one where `dynamic`; else empty.
        dynamic: whether the shape may differ from call to call.
        bounded: whether a dynamic tensor's `sizes` limit it.
        constant: whether a tensor's data is part of the program.
        arena: index in the method's `planned_bytes` of the arena that holds a tensor; -1 for a constant, and where
            memory is the caller's.
        index: its place among the method's values; inputs, outputs and arguments with one index are one value.
    """

    kind: str
    dtype: str = ""
    sizes: tuple[int, ...] = ()
    dynamic: bool = False
    bounded: bool = True
    constant: bool = False
    arena: int = field(default=-1, compare=False)
    index: int = field(default=-1, compare=False)

    def bytes_of(self, sizes: Sequence[int]) -> int:
        """What a tensor of this element type and another shape takes; 0 for an unknown type."""
        return _ITEM_BYTES.get(self.dtype, 0) * math.prod(sizes)


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
        arguments: indices of the values that a kernel or delegate reads and writes, in order; a kernel's outputs are
            there twice.
    """

    kind: Literal["kernel", "delegate", "control"]
    name: str = ""
    delegate: int = -1
    arguments: tuple[int, ...] = ()


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
        values: inputs, outputs and the arguments of delegates, by index.
    """

    name: str
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    delegates: tuple[Delegate, ...]
    instructions: tuple[Instruction, ...]
    operators: Mapping[str, int]
    planned_bytes: tuple[int, ...]
    devices: Mapping[int, str]
    values: Mapping[int, Value] = field(default_factory=dict[int, Value])


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


def read_program(source: str | os.PathLike[str] | bytes | bytearray) -> Program:
    """Reads a `.pte` file, or its bytes. A file is mapped, so only what is looked at is read.

    Blobs are views: those of a `bytearray` can be written.

    Raises:
        FileNotFoundError: there is no file at that path.
        IsADirectoryError: there is a folder.
        ValueError: it is no ExecuTorch program, or is truncated or damaged.
        OSError: it cannot be read.
    """
    if isinstance(source, (bytes, bytearray)):
        return _read("the program", memoryview(source), lambda: _native.Module(bytes(source), False, {}))
    path = program_file(source)
    with path.open("rb") as file:
        # An empty file cannot be mapped.
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if path.stat().st_size else b""
    return _read(f"'{path}'", memoryview(data), lambda: _native.Module(str(path), "mmap", False, {}))


def _read(name: str, data: memoryview, verify: Callable[[], object]) -> Program:
    if bytes(data[4:8]) != _IDENTIFIER:
        raise ValueError(
            f"{name} is no ExecuTorch program: got {bytes(data[4:8])!r} at byte 4, allowed {_IDENTIFIER!r}; give a "
            ".pte file."
        )
    damaged = f"{name} is damaged or truncated"
    try:
        verify()
    except (ValueError, RuntimeError) as error:
        _, found, why = str(error).partition(" or is damaged: ")
        raise ValueError(f"{damaged}{': ' if found else ''}{why}; export or copy it again.") from None
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
        # Tables may be shared, so that a small file could unfold into any number of arguments.
        self._room = len(data) // 4

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
        devices = [plan.NonConstBufferDevice(index) for index in range(plan.NonConstBufferDeviceLength())]
        instructions = self._instructions(plan)
        inputs = [plan.Inputs(k) for k in range(plan.InputsLength())]
        outputs = [plan.Outputs(k) for k in range(plan.OutputsLength())]
        arguments = [index for step in instructions if step.kind == "delegate" for index in step.arguments]
        values = {index: _value(plan, index) for index in dict.fromkeys([*inputs, *outputs, *arguments])}
        return Method(
            name=_text(plan.Name()),
            inputs=tuple(values[index] for index in inputs),
            outputs=tuple(values[index] for index in outputs),
            delegates=tuple(self._delegate(index, plan.Delegates(index)) for index in range(plan.DelegatesLength())),
            instructions=instructions,
            operators=dict(Counter(step.name for step in instructions if step.kind == "kernel").most_common()),
            # Entry 0 stands for constants and is always 0.
            planned_bytes=tuple(plan.NonConstBufferSizes(k) for k in range(1, plan.NonConstBufferSizesLength())),
            devices={d.BufferIdx() - 1: f"cuda:{d.DeviceIndex()}" for d in devices if d.DeviceType()},
            values=values,
        )

    def _instructions(self, plan: Any) -> tuple[Instruction, ...]:
        operators = [plan.Operators(index) for index in range(plan.OperatorsLength())]
        names = [".".join(filter(None, (_text(op.Name()), _text(op.Overload())))) for op in operators]
        found: list[Instruction] = []
        for chain in (plan.Chains(index) for index in range(plan.ChainsLength())):
            for step in (chain.Instructions(index) for index in range(chain.InstructionsLength())):
                if step.InstrArgsType() == schema.InstructionArguments.KernelCall:
                    call = _union(schema.KernelCall(), step.InstrArgs())
                    name = _at(names, call.OpIndex(), "operator")
                    found.append(Instruction("kernel", name=name, arguments=self._arguments(call)))
                elif step.InstrArgsType() == schema.InstructionArguments.DelegateCall:
                    call = _union(schema.DelegateCall(), step.InstrArgs())
                    index = _at(range(plan.DelegatesLength()), call.DelegateIndex(), "delegate")
                    found.append(Instruction("delegate", delegate=index, arguments=self._arguments(call)))
                else:
                    found.append(Instruction("control"))
        return tuple(found)

    def _arguments(self, call: Any) -> tuple[int, ...]:
        count = call.ArgsLength()
        self._room -= count
        if self._room < 0:
            raise IndexError("more arguments than the file has room for")
        return tuple(call.ArgsAsNumpy().tolist()) if count else ()

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


def _at(items: Sequence[Any], index: int, what: str) -> Any:
    if not 0 <= index < len(items):
        raise IndexError(f"{what} {index}: got {len(items)} {what}s")
    return items[index]


def _union(table: Any, union: Any) -> Any:
    """A union's member as the table that its type says it is."""
    table.Init(union.Bytes, union.Pos)
    return table


def _value(plan: Any, index: int) -> Value:
    value = plan.Values(_at(range(plan.ValuesLength()), index, "value"))
    number: int = value.ValType()
    kind = _KINDS[number] if number < len(_KINDS) else f"kind {number}"
    if kind != "tensor":
        return Value(kind, index=index)
    tensor = _union(schema.Tensor(), value.Val())
    if tensor.SizesLength() > _MAX_RANK:
        raise IndexError(f"value {index}: got rank {tensor.SizesLength()}, allowed 0..{_MAX_RANK}")
    place = tensor.AllocationInfo()
    return Value(
        kind,
        _DTYPES.get(tensor.ScalarType(), f"scalar type {tensor.ScalarType()}"),
        tuple(tensor.Sizes(k) for k in range(tensor.SizesLength())),
        tensor.ShapeDynamism() != schema.TensorShapeDynamism.STATIC,
        tensor.ShapeDynamism() != schema.TensorShapeDynamism.DYNAMIC_UNBOUND,
        place is None and tensor.DataBufferIdx() > 0,
        -1 if place is None else _at(range(plan.NonConstBufferSizesLength()), place.MemoryId(), "arena") - 1,
        index,
    )
