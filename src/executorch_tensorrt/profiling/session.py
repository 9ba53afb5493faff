"""Session: what a capture found, joined and named, as versioned JSON.

The pipeline is capture -> session -> processors -> renderers. A session is plain data: it is loaded and rendered
without the program, torch or a GPU.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

from executorch_tensorrt.files import write_atomically
from executorch_tensorrt.profiling.bulk import without_garbage_collection
from executorch_tensorrt.program.declaration import Declaration
from executorch_tensorrt.records import MismatchError, build, parse

SESSION_VERSION = 1
SESSION_FILE = "session.json"

EventKind = Literal["method", "call", "operator", "delegate", "phase", "layer", "other"]
Clock = Literal["host", "device"]


@dataclass(frozen=True)
class Source:
    """Where an operator of the exported program comes from.

    Attributes:
        op: the operator, such as "aten.linear.default".
        module: the path of the module that called it, such as "encoder.layer.3.attention"; empty where unknown.
        location: file and line of the model's source, such as "bert/modeling_bert.py:512"; empty where unknown.
    """

    op: str
    module: str = ""
    location: str = ""


@dataclass(frozen=True)
class Engine:
    """The engine of a TensorRT delegate.

    Attributes:
        engine_id: 12 hex digits; empty for engines that Torch-TensorRT exported.
        kind: "cpu", "tensorrt" or "tensorrt_rtx".
        size_bytes: size of the engine.
        signature: the method's profile list, in canonical form.
        input_names: in binding order.
        profiles: per optimization profile and input, (min, opt, max) per dim.
        sources: operators of the partition by debug handle (as text, because JSON has no other keys).
        layer_handles: per optimization profile, debug handles of a layer's operators by the layer's instruction.
    """

    engine_id: str
    kind: str
    size_bytes: int
    signature: str
    input_names: list[str]
    profiles: list[list[list[tuple[int, int, int]]]]
    sources: dict[str, Source] = field(default_factory=dict[str, Source])
    layer_handles: list[dict[str, list[int]]] = field(default_factory=list[dict[str, list[int]]])


@dataclass(frozen=True)
class Delegate:
    """One lowered partition of a method, or one operator that runs outside of all of them.

    Attributes:
        method: the method.
        instruction: its place in the method's instructions; events are joined by it.
        index: its place among the method's delegates; -1 for an operator.
        backend_id: which backend runs it; empty for an operator.
        name: what to call it: "TensorRTBackend 0", "XnnpackBackend 1", "aten::cumsum.out".
        engine: for TensorRT delegates.
    """

    method: str
    instruction: int
    index: int
    backend_id: str
    name: str
    engine: Engine | None = None

    @property
    def place(self) -> tuple[str, int]:
        """Its method and instruction, which nothing else in a session has."""
        return self.method, self.instruction


@dataclass(frozen=True)
class Event:
    """One span of one run.

    Attributes:
        name: as traced: "torchtrt.enqueue_host", "DELEGATE_CALL", a layer's name.
        kind: "method" (the whole run), "call" (ExecuTorch's span around a delegate), "operator" (around a kernel),
            "delegate" (torchtrt.delegate), "phase" (the other torchtrt events), "layer" (of an engine), "other" (a
            foreign delegate's own).
        start_us: microseconds after the run's start, on the event's clock.
        duration_us: microseconds.
        clock: "host" or "device". Device times are laid end to end; they do not add up with host times.
        instruction: of the method; -1 for the method itself. See `Delegate.instruction`.
        layer_instruction: of the engine's nested program, for layers of a cpu engine; else -1.
        metadata: what the delegate said with it.
    """

    name: str
    kind: EventKind
    start_us: float
    duration_us: float
    clock: Clock = "host"
    instruction: int = -1
    layer_instruction: int = -1
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])


def traced_shapes(event: Event) -> list[list[int]]:
    """The shapes of an engine's inputs, as its call traced them; empty where it did not."""
    try:
        return build(list[list[int]], event.metadata.get("shapes"))
    except MismatchError:
        return []


@dataclass(frozen=True)
class Run:
    """One call of a method.

    Attributes:
        method: the method.
        number: from 0, in the order of the capture; warm-up runs are not counted.
        wall_us: microseconds from the caller's side.
        shapes: of the inputs, in order.
        dtypes: of the inputs, in order.
        profiles: the optimization profile that each TensorRT delegate used, by instruction (as text).
        events: in order of their start.
    """

    method: str
    number: int
    wall_us: float
    shapes: list[list[int]]
    dtypes: list[str]
    profiles: dict[str, int]
    events: list[Event] = field(default_factory=list[Event])


@dataclass(frozen=True)
class Startup:
    """What a method cost before its first run that counts.

    Attributes:
        method: the method.
        load_us: microseconds to load it, engines included.
        first_calls_us: microseconds of the first call with each tuple of inputs, in order, from the caller's side.
    """

    method: str
    load_us: float
    first_calls_us: list[float]


@dataclass(frozen=True)
class Session:
    """Runs of one program.

    Attributes:
        program: "name" of the file, "size_bytes", and "sha256": the first 12 hex digits.
        level: what was traced: "delegate", "phases" or "layers".
        machine: processor, cores, platform.
        versions: of the packages that took part.
        created: ISO 8601, UTC.
        delegates: of every method that ran, in order of methods and instructions.
        runs: in order.
        notes: what a reader has to know: events that were dropped, sources that are missing.
        startup: of each method that ran; may lack some.
        declarations: of each method that ran; sessions of earlier versions have none.
        version: of this format.
    """

    program: dict[str, str | int]
    level: str
    machine: dict[str, str | int]
    versions: dict[str, str]
    created: str
    delegates: list[Delegate]
    runs: list[Run]
    notes: list[str] = field(default_factory=list[str])
    startup: list[Startup] = field(default_factory=list[Startup])
    declarations: list[Declaration] = field(default_factory=list[Declaration])
    version: int = SESSION_VERSION

    def __repr__(self) -> str:
        methods = sorted({run.method for run in self.runs})
        return f"Session({self.program['name']!r}, methods={methods}, runs={len(self.runs)}, level={self.level!r})"

    def delegates_by_place(self) -> dict[tuple[str, int], Delegate]:
        """What events belong to, by the method of their run and their instruction."""
        return {delegate.place: delegate for delegate in self.delegates}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the session to a file, or to `session.json` in a folder. A reader sees the whole file or none.

        Raises:
            OSError: it cannot be written.
        """
        target = Path(path)
        if target.is_dir():
            target /= SESSION_FILE
        write_atomically(target, json.dumps(self, default=vars, allow_nan=False).encode())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Session:
        """Read a session from a file, or from `session.json` in a folder.

        Raises:
            FileNotFoundError: there is none.
            ValueError: it is no session, is damaged, or has another version.
        """
        target = Path(path)
        if target.is_dir():
            target /= SESSION_FILE
        if not target.is_file():
            raise FileNotFoundError(f"no session at '{target}'")
        try:
            data: object = parse(target.read_bytes())
        except ValueError:
            raise ValueError(
                f"'{target}' is no session, or is cut short: got no whole JSON, allowed what Session.save wrote; "
                "capture it again"
            ) from None
        fields = cast("dict[str, Any]", data) if isinstance(data, dict) else {}
        if fields.get("version") != SESSION_VERSION:
            raise ValueError(
                f"'{target}' is no session that this version reads: got version {fields.get('version')!r:.40}, allowed "
                f"{SESSION_VERSION}; capture it again"
            )
        try:
            with without_garbage_collection():
                session = build(cls, fields)
            _check_size(session)
            _check_instructions(session)
            _check_scales(session)
            return session
        except MismatchError as error:
            raise ValueError(f"'{target}' is damaged: {error}; capture it again") from None


def _check_size(session: Session) -> None:
    size = session.program.get("size_bytes", 0)
    if not isinstance(size, int):
        raise MismatchError(size, "int").inside("program.size_bytes")


def _check_instructions(session: Session) -> None:
    for index, run in enumerate(session.runs):
        for key in run.profiles:
            if not (key.isascii() and key.isdecimal() and len(key) < 10):
                raise MismatchError(key, "instruction numbers as keys").inside(f"runs[{index}].profiles")


def _check_scales(session: Session) -> None:
    for index, declaration in enumerate(session.declarations):
        for dim in (dim for item in declaration.inputs for dim in item.dims):
            if dim.symbol and not dim.scale:
                raise MismatchError(dim.scale, "another number").inside(f"declarations[{index}], scale of {dim.symbol}")


__all__ = [
    "Clock",
    "Delegate",
    "Engine",
    "Event",
    "EventKind",
    "Run",
    "Session",
    "Source",
    "Startup",
]
