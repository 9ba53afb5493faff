"""What must hold for the engines of a method, seen from a finished program: the rules of the export boundary.

Each rule is a function of a method and its engines. None needs torch, a GPU or the engine's runtime.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from executorch_tensorrt import _native
from executorch_tensorrt.program.blobs import DamagedBlob, EngineBlob, Span
from executorch_tensorrt.program.plan import Use, origins, slots_of, takes, uses_of
from executorch_tensorrt.program.reader import Method, Value
from executorch_tensorrt.program.signatures import signature_difference, signature_entries
from executorch_tensorrt.words import shape_text

# ExecuTorch keeps sizes in int32.
LARGEST_DIM = 2**31 - 1


Kind = Literal["blob", "id", "arguments", "profiles", "memory", "bounds", "ranges", "devices", "origin"]


@dataclass(frozen=True)
class Finding:
    """Something about a program.

    Attributes:
        severity: "error" for what goes wrong sooner or later, "note" for what can't be known here or depends on the
            machine.
        kind: which rule found it.
        method: its name.
        delegates: indices of those that it concerns; none if it concerns the method.
        text: what there is, said of the delegates: "has an output ...".
    """

    severity: Literal["error", "note"]
    kind: Kind
    method: str
    delegates: tuple[int, ...]
    text: str

    def __str__(self) -> str:
        where = f"delegate{'s' if len(self.delegates) > 1 else ''} {' and '.join(map(str, self.delegates))}"
        return f"method '{self.method}' {f'{where} ' if self.delegates else ''}{self.text}"


Rule = Callable[[Method, Sequence[EngineBlob]], Iterator[Finding]]


def check_method(method: Method, blobs: Sequence[EngineBlob | DamagedBlob]) -> list[Finding]:
    """All findings of a method, errors first."""
    found = [
        Finding("error", "blob", method.name, (blob.index,), f"has a blob that can't be read: {blob.problem}.")
        for blob in blobs
        if isinstance(blob, DamagedBlob)
    ]
    engines = [blob for blob in blobs if isinstance(blob, EngineBlob)]
    found += [finding for rule in RULES for finding in rule(method, engines)]
    return sorted(found, key=lambda finding: finding.severity)


def check_ids(method: Method, engines: Sequence[EngineBlob]) -> Iterator[Finding]:
    """Whether engines have the bytes that were exported."""
    for engine in engines:
        if engine.is_intact is False:
            got = engine.sha256[: len(engine.engine_id)]
            yield _error(
                "id",
                method,
                engine,
                f"has an engine with other bytes than its id says: got {got}, wanted {engine.engine_id}; export or "
                "copy the program again.",
            )


def check_arguments(method: Method, engines: Sequence[EngineBlob]) -> Iterator[Finding]:
    """Whether calls give an engine the tensors that it takes."""
    for engine in engines:
        for step in method.instructions:
            if step.kind == "delegate" and step.delegate == engine.index and not takes(engine, step.arguments):
                yield _error(
                    "arguments",
                    method,
                    engine,
                    "is called with another number of tensors than its engine takes: got "
                    f"{len(step.arguments)}, wanted {engine.header.metadata.num_arguments}; export the program again.",
                )


def check_signatures(method: Method, engines: Sequence[EngineBlob]) -> Iterator[Finding]:
    """Whether all engines mean the same by an index. A static engine runs with each."""
    dynamic = [engine for engine in engines if engine.record and not engine.is_static]
    for engine in dynamic:
        counts = {len(ranges) for ranges in signature_entries(engine.signature).values()}
        if engine.profiles and counts - {len(engine.profiles)}:
            yield _error(
                "profiles",
                method,
                engine,
                f"has an engine with another number of optimization profiles than its signature: got "
                f"{len(engine.profiles)}, wanted {max(counts)}; export the program again.",
            )
    for engine in dynamic[1:]:
        if difference := signature_difference(dynamic[0].signature, engine.signature):
            text = f"have engines with {difference}; give both the same inputs."
            yield Finding("error", "profiles", method.name, (dynamic[0].index, engine.index), text)


def check_shared_tensors(method: Method, engines: Sequence[EngineBlob]) -> Iterator[Finding]:
    """Whether engines that share a tensor take the same sizes of it in each optimization profile.

    Of engines whose signatures differ, `check_signatures` tells.
    """
    origin = origins(method)
    signatures = {engine.index: engine.signature for engine in engines}
    sharing: dict[int, list[Use]] = {}
    for use in uses_of(method, engines):
        if use.spans and use.value.dynamic:
            sharing.setdefault(origin.get(use.value.index, use.value.index), []).append(use)
    for uses in sharing.values():
        one = next((use for use in uses if not use.is_input), uses[0])
        for other in uses:
            if signatures[one.delegate] != signatures[other.delegate]:
                continue
            differing = [index for index, spans in enumerate(other.spans) if not _agrees(one, spans, index)]
            for index in differing[:1]:
                ours, theirs = _spans_text(one.spans[index]), _spans_text(other.spans[index])
                text = (
                    f"have engines with different meanings of profile {index}: got {ours} for {one.label} and {theirs} "
                    f"for {other.label}, which are one tensor, allowed one meaning for a method; give both the same "
                    "inputs."
                )
                yield Finding("error", "profiles", method.name, (one.delegate, other.delegate), text)


def _agrees(one: Use, spans: Sequence[Span], index: int) -> bool:
    """Whether an engine takes exactly what another takes, or at least what another gives."""
    if one.is_input:
        return list(one.spans[index]) == list(spans)
    ours = one.spans[index]
    return len(ours) == len(spans) and all(b[0] <= a[0] and a[1] <= b[1] for a, b in zip(ours, spans, strict=True))


def check_memory(method: Method, engines: Sequence[EngineBlob]) -> Iterator[Finding]:
    """Whether what an optimization profile takes and gives at its maximum fits the planned memory."""
    found: set[int] = set()
    for use in _tensors(method, engines):
        for profile, dims in enumerate(use.spans):
            if problem := _misfit(use.label, profile, [high for _, high in dims], use.value):
                found.add(use.value.index)
                yield _error("memory", method, use, f"has an {'input' if use.is_input else 'output'} {problem}")
    for slot in slots_of(method, engines):
        for profile, largest in enumerate(slot.largest if slot.value.index not in found else ()):
            if problem := _misfit(slot.name, profile, largest, slot.value):
                yield Finding("error", "memory", method.name, (), f"has an {slot.name.split()[0]} {problem}")


def _misfit(name: str, profile: int, largest: Sequence[int], value: Value) -> str | None:
    got = f"got {shape_text(largest)} for {name} at the maximum of profile {profile}"
    if max(largest, default=0) > LARGEST_DIM:
        return f"that is too large for ExecuTorch: {got}, allowed {LARGEST_DIM} a dim; narrow the profile."
    if math.prod(largest) > math.prod(value.sizes):
        return (
            f"that does not fit the memory planned for it: {got}, allowed {shape_text(value.sizes)}; narrow the "
            "profile, or export the program with a wider range."
        )
    return None


def check_output_shapes(method: Method, engines: Sequence[EngineBlob]) -> Iterator[Finding]:
    """Whether the shapes of outputs follow from the inputs'. Others need an output allocator."""
    for use in _tensors(method, engines):
        if not use.is_input and not use.value.bounded:
            yield _error(
                "bounds",
                method,
                use,
                f"has an output whose shape depends on data: got no largest shape for {use.label}, allowed shapes that "
                "follow from the inputs' (an engine with an output allocator can't run in ExecuTorch); keep the "
                "operator out of engines.",
            )


def note_unknown_ranges(method: Method, engines: Sequence[EngineBlob]) -> Iterator[Finding]:
    """Which engines say nothing about optimization profiles."""
    for engine in engines:
        if engine.profiles is None and not engine.is_static:
            text = "has an engine whose ranges are known to the engine alone; they could not be checked."
            yield Finding("note", "ranges", method.name, (engine.index,), text)


def note_origins(method: Method, engines: Sequence[EngineBlob]) -> Iterator[Finding]:
    """Which engines are native code for a GPU, which nothing ties to a model: an id is that of the bytes alone."""
    for engine in engines:
        if not engine.record or engine.record.engine_kind.startswith("tensorrt"):
            text = (
                "has a TensorRT engine, which runs as native code, and whose origin can't be checked: its id says "
                "nothing of the model that it was built from; run it if you trust who built it."
            )
            yield Finding("note", "origin", method.name, (engine.index,), text)


def note_devices(method: Method, engines: Sequence[EngineBlob]) -> Iterator[Finding]:
    """Whether memory is planned on a device that this process can't allocate on."""
    if method.devices and not _native.device_memory_available():
        devices = ", ".join(sorted(set(method.devices.values())))
        text = f"has memory planned on {devices}, for which this environment has no allocator; it can't be loaded here."
        yield Finding("note", "devices", method.name, (), text)


RULES: Sequence[Rule] = (
    check_ids,
    check_arguments,
    check_signatures,
    check_shared_tensors,
    check_memory,
    check_output_shapes,
    note_unknown_ranges,
    note_origins,
    note_devices,
)


def _error(kind: Kind, method: Method, of: EngineBlob | Use, text: str) -> Finding:
    return Finding("error", kind, method.name, (of.delegate if isinstance(of, Use) else of.index,), text)


def _tensors(method: Method, engines: Sequence[EngineBlob]) -> list[Use]:
    return [use for use in uses_of(method, engines) if use.value.kind == "tensor"]


def _spans_text(dims: Sequence[Span]) -> str:
    return shape_text([low if low == high else f"{low}..{high}" for low, high in dims])
