"""The tensors of a method that engines read and write, and what each optimization profile needs of their memory."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from executorch_tensorrt.program.blobs import EngineBlob, Span
from executorch_tensorrt.program.declaration import Dim, declare
from executorch_tensorrt.program.reader import Method, Value
from executorch_tensorrt.program.spans import input_spans, output_spans


@dataclass(frozen=True)
class Use:
    """A tensor as an argument of a call of an engine.

    Attributes:
        delegate: index of the engine's delegate.
        binding: what the engine calls it.
        is_input: whether the engine reads it.
        value: what is planned for it.
        spans: per optimization profile of the method, the smallest and largest size of each dim; empty where the
            engine alone knows.
    """

    delegate: int
    binding: str
    is_input: bool
    value: Value
    spans: Sequence[Sequence[Span]]

    @property
    def label(self) -> str:
        """As messages name it."""
        return f"{'input' if self.is_input else 'output'} '{self.binding}'"


@dataclass(frozen=True)
class Slot:
    """A tensor of the memory plan.

    Attributes:
        name: "input 0", "output 1", or for what only engines see "delegate 0 x".
        value: what is planned.
        largest: its largest shape in each optimization profile; empty where that is not known.
    """

    name: str
    value: Value
    largest: Sequence[Sequence[int]]

    @property
    def is_known(self) -> bool:
        """Whether each optimization profile's need is known."""
        return bool(self.largest)

    def fits(self, profile: int) -> bool:
        """Whether the memory holds what an optimization profile needs at its maximum."""
        return math.prod(self.largest[profile]) <= math.prod(self.value.sizes)

    def bytes_needed(self, profile: int) -> int:
        """At the maximum of an optimization profile."""
        return self.value.bytes_of(self.largest[profile])

    @property
    def bytes_planned(self) -> int:
        """What the memory plan, or else the caller, provides."""
        return self.value.bytes_of(self.value.sizes)


def profile_count(engines: Sequence[EngineBlob]) -> int:
    """How many optimization profiles a method has: 1 if all its engines are static, 0 if engines alone know."""
    if not any(engine.profiles for engine in engines):
        return 1 if engines and all(engine.is_static for engine in engines) else 0
    return max(len(engine.profiles or ()) for engine in engines)


def uses_of(method: Method, engines: Sequence[EngineBlob]) -> list[Use]:
    """The arguments of every call of an engine. A call with another number of arguments than the engine's has none."""
    by_index = {engine.index: engine for engine in engines}
    count = profile_count(engines)
    found: list[Use] = []
    for step in method.instructions:
        engine = by_index.get(step.delegate) if step.kind == "delegate" else None
        if engine is None or not takes(engine, step.arguments):
            continue
        spans = _spans_by_binding(engine, count)
        for is_input, bindings in ((True, engine.inputs), (False, engine.outputs)):
            for item in bindings:
                if item.argument is not None:
                    value = method.values[step.arguments[item.argument]]
                    found.append(Use(engine.index, item.name, is_input, value, spans.get(item.name, ())))
    return found


def takes(engine: EngineBlob, arguments: Sequence[int]) -> bool:
    """Whether a call has as many arguments as the engine."""
    return len(arguments) == engine.header.metadata.num_arguments


def slots_of(method: Method, engines: Sequence[EngineBlob]) -> list[Slot]:
    """A method's inputs and outputs, then what lies between engines, each once and without constants."""
    count, uses = profile_count(engines), uses_of(method, engines)
    origin = origins(method)
    largest: dict[int, Sequence[Sequence[int]]] = {}
    for use in uses:
        if use.spans:
            shapes = [[high for _, high in dims] for dims in use.spans]
            place = origin.get(use.value.index, use.value.index)
            largest[place] = [max(pair, key=math.prod) for pair in zip(shapes, largest.get(place, shapes), strict=True)]
    largest = {**_declared(method, count), **largest}
    slots: dict[int, Slot] = {}
    for name, value in _named_values(method, uses):
        if value.kind == "tensor" and not value.constant and value.index not in slots:
            known = largest.get(origin.get(value.index, value.index), ())
            slots[value.index] = Slot(name, value, known if value.dynamic else [value.sizes] * count)
    return list(slots.values())


def _declared(method: Method, count: int) -> Mapping[int, Sequence[Sequence[int]]]:
    """The largest shape of each input in each optimization profile, by index of its value, where it was recorded."""
    declaration = declare(method)
    if len(declaration.profiles) != count:
        return {}
    return {
        value.index: [[_largest(dim, profile) for dim in item.dims] for profile in declaration.profiles]
        for item, value in zip(declaration.inputs, method.inputs, strict=True)
        if all(not dim.symbol or dim.symbol in profile for dim in item.dims for profile in declaration.profiles)
    }


def _largest(dim: Dim, profile: Mapping[str, tuple[int, int, int]]) -> int:
    if not dim.symbol:
        return dim.offset
    low, _, high = profile[dim.symbol]
    return max(dim.scale * low, dim.scale * high) + dim.offset


def origins(method: Method) -> Mapping[int, int]:
    """For copies between host and device, of which the shapes are equal: index of the value to index of its origin."""
    found: dict[int, int] = {}
    for step in method.instructions:
        if step.name.startswith("et_copy::") and step.arguments:
            source, copied = step.arguments[0], step.arguments[-1]
            found[copied] = found.get(source, source)
    return found


def _named_values(method: Method, uses: Sequence[Use]) -> Iterator[tuple[str, Value]]:
    yield from ((f"input {place}", value) for place, value in enumerate(method.inputs))
    yield from ((f"output {place}", value) for place, value in enumerate(method.outputs))
    yield from ((f"delegate {use.delegate} {use.binding}", use.value) for use in uses)


def _spans_by_binding(engine: EngineBlob, count: int) -> Mapping[str, list[Sequence[Span]]]:
    found: dict[str, list[Sequence[Span]]] = {}
    for bindings, spans_of in ((engine.inputs, input_spans), (engine.outputs, output_spans)):
        per_profile = [spans_of(engine, profile) for profile in range(count)]
        if known := [spans for spans in per_profile if spans is not None]:
            found |= {item.name: [spans[place] for spans in known] for place, item in enumerate(bindings)}
    return {name: spans for name, spans in found.items() if len(spans) == count}
