"""Runs a method a few times and keeps what its calls did."""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Literal, cast, get_args

from executorch_tensorrt.files import sha256_of
from executorch_tensorrt.profiling.etdump import Block, read_etdump
from executorch_tensorrt.profiling.join import (
    EXECUTE_BLOCK,
    Call,
    check_places,
    describe_delegates,
    host_us,
    join_runs,
)
from executorch_tensorrt.profiling.machine import describe_machine, describe_versions
from executorch_tensorrt.profiling.session import Delegate, Session, Startup
from executorch_tensorrt.profiling.traced_shapes import shape_finder
from executorch_tensorrt.program import BACKEND_ID, Method, Program, read_program
from executorch_tensorrt.program.declaration import declare
from executorch_tensorrt.runtime.module import Module

CaptureLevel = Literal["delegate", "phases", "layers"]
TRACE_FILE = "trace.etdp"

Inputs = tuple[Any, ...]


def capture(
    program: str | os.PathLike[str] | bytes,
    inputs: Inputs | Sequence[Inputs],
    *,
    method: str = "forward",
    runs: int = 20,
    warmup: int = 3,
    level: CaptureLevel = "layers",
    optimization_profile: int | Literal["auto"] | None = "auto",
    format: Literal["etdump", "perfetto", "trex"] | None = None,
    output: str | os.PathLike[str] | None = None,
) -> Session:
    """Runs a method with profiling, and joins what it traced with the program.

    The method is loaded for the capture alone, and runs on the calling thread.

    Args:
        program: A path of a `.pte` file, or its bytes.
        inputs: The method's inputs as a tuple, as `Module.run_method` takes them; or a list of such tuples, which
            take turns.
        method: The method.
        runs: Calls to keep.
        warmup: Calls before those, with each of the tuples.
        level: "delegate", "phases" or "layers".
        optimization_profile: What delegates use: "auto" for what fits the shapes, an index, or None for profile 0. A
            guard of the calling thread goes before it.
        format: "perfetto" or "trex" has each engine write a trace file of its own to `output` as well; it holds the
            warm-up calls too.
        output: A folder, made if need be, for the session (session.json), the ETDump of the kept calls (trace.etdp) and
            the engines' trace files. None keeps no files.

    Raises:
        FileNotFoundError: There is no program at that path.
        ValueError: The program is damaged or has no such method, an argument is wrong, or inputs do not fit the method.
        ExecuTorchError: The method failed, or cannot be loaded here.
        OSError: `output` cannot be written.
    """
    sets = _input_sets(inputs)
    _check(runs=runs, warmup=warmup, level=level, format=format, output=output)
    contents = read_program(program)
    described = _method(contents, method)
    delegates = describe_delegates(described)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) if output is None else make_output_folder(output)
        module = Module(
            program,
            optimization_profile=optimization_profile,
            profile_level=level,
            profile_format=format,
            profile_path_prefix=None if format in (None, "etdump") else folder,
            etdump=True,
        )
        recorded = _record(module, method, sets, runs, warmup, folder / TRACE_FILE)
        module.unload_method(method)
        session = Session(
            program=_identify(program, contents),
            level=level,
            machine=describe_machine(),
            versions=describe_versions(),
            created=datetime.now(timezone.utc).isoformat(timespec="seconds"),
            delegates=delegates,
            runs=join_runs(method, recorded.blocks, recorded.calls, delegates),
            notes=_notes(recorded.dropped, delegates),
            startup=[recorded.startup],
            declarations=[declare(described)],
        )
        if output is not None:
            session.save(folder)
    return session


def from_etdump(
    program: str | os.PathLike[str] | bytes, etdump: str | os.PathLike[str] | bytes, *, method: str = "forward"
) -> Session:
    """A session from an ETDump that another process wrote, such as a C++ runner on a device.

    What an ETDump does not hold is missing: the time of a run is that of the method itself, and its shapes are empty
    unless they follow from those that engines traced.

    Args:
        program: The program that ran: a path of a `.pte` file, or its bytes.
        etdump: A path of the ETDump, or its bytes. It may hold calls of one method alone: it has no names of methods.
        method: That method.

    Raises:
        FileNotFoundError: There is no file at one of the paths.
        ValueError: A file is damaged, the program has no such method, or the ETDump is of another program or method.
        OSError: A file cannot be read.
    """
    contents = read_program(program)
    described = _method(contents, method)
    delegates, declaration = describe_delegates(described), declare(described)
    blocks = [block for block in read_etdump(etdump) if block.name == EXECUTE_BLOCK]
    check_places(blocks, delegates)
    calls = [Call(host_us(block), [], []) for block in blocks]
    runs = list(map(shape_finder(described, declaration), join_runs(method, blocks, calls, delegates)))
    if not runs:
        raise ValueError("the ETDump has no calls of a method: got none, allowed one or more; write it after a call")
    kinds = {event.kind for run in runs for event in run.events}
    return Session(
        program=_identify(program, contents),
        level="layers" if "layer" in kinds else "phases" if "phase" in kinds else "delegate",
        machine={"processor": "unknown: another process wrote the ETDump"},
        versions={},
        created=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        delegates=delegates,
        runs=runs,
        notes=_notes(0, delegates),
        declarations=[declaration],
    )


def merge(sessions: Sequence[Session]) -> Session:
    """Captures of different methods of one program, on one machine, as one session. It was created when the last was.

    Raises:
        ValueError: there is none, they are of several programs, levels, machines or versions of packages, or two are of
            one method.
    """
    if not sessions:
        raise ValueError("sessions: got none, allowed one or more; capture a method first")
    first = sessions[0]
    if any((item.program, item.level) != (first.program, first.level) for item in sessions):
        raise ValueError("sessions: got several programs or levels, allowed one; report them apart, or compare them")
    if differing := _differing([{**item.machine, **item.versions} for item in sessions]):
        raise ValueError(
            f"sessions: got several machines or versions, {differing}, allowed one; report them apart, or compare them"
        )
    methods = [name for item in sessions for name in sorted({run.method for run in item.runs})]
    if len(set(methods)) < len(methods):
        got = ", ".join(methods)
        raise ValueError(f"sessions: got methods {got}, allowed each once; give one of them, or compare two")
    return replace(
        first,
        created=max(item.created for item in sessions),
        delegates=[delegate for item in sessions for delegate in item.delegates],
        runs=[run for item in sessions for run in item.runs],
        notes=list(dict.fromkeys(note for item in sessions for note in item.notes)),
        startup=[startup for item in sessions for startup in item.startup],
        declarations=[declaration for item in sessions for declaration in item.declarations],
    )


def _differing(described: Sequence[Mapping[str, str | int]]) -> str:
    """The first name that does not mean the same everywhere, with what it means."""
    for name in dict.fromkeys(name for item in described for name in item):
        values = list(dict.fromkeys(str(item.get(name, "unknown")) for item in described))
        if len(values) > 1:
            return f"{name} {' and '.join(values)}"
    return ""


@dataclass(frozen=True)
class _Recorded:
    startup: Startup
    calls: list[Call]
    blocks: list[Block]
    dropped: int


def _record(module: Module, method: str, sets: list[Inputs], runs: int, warmup: int, trace: Path) -> _Recorded:
    described = [_describe(inputs) for inputs in sets]
    load_us = _timed(partial(module.load_method, method))
    first_calls: list[float] = []
    for values in sets if warmup else []:
        first_calls += [_timed(partial(module.run_method, method, values)) for _ in range(warmup)][:1]
    if warmup:
        module.write_etdump(trace)  # takes these calls out of the dump, which is written again after the others
    calls: list[Call] = []
    for values, (shapes, dtypes) in islice(cycle(zip(sets, described, strict=True)), runs):
        calls.append(Call(_timed(partial(module.run_method, method, values)), shapes, dtypes))
    dropped = module.write_etdump(trace)
    first_calls = first_calls or [call.wall_us for call in calls[: len(sets)]]
    return _Recorded(Startup(method, load_us, first_calls), calls, read_etdump(trace), dropped)


def _timed(call: Callable[[], object]) -> float:
    """Microseconds."""
    begin = time.perf_counter_ns()
    call()
    return (time.perf_counter_ns() - begin) / 1e3


def _input_sets(inputs: Inputs | Sequence[Inputs]) -> list[Inputs]:
    if isinstance(inputs, tuple):
        return [cast("Inputs", inputs)]
    sets = list(inputs) if isinstance(inputs, list) else []
    if not sets or not all(isinstance(item, tuple) for item in sets):
        raise ValueError(
            f"inputs: got {type(inputs).__name__}, allowed a tuple of the method's inputs or a list of such tuples; "
            "write (x,) for one input"
        )
    return sets


def _check(*, runs: int, warmup: int, level: str, format: str | None, output: object) -> None:
    if runs < 1:
        raise ValueError(f"runs: got {runs}, allowed 1 or more")
    if warmup < 0:
        raise ValueError(f"warmup: got {warmup}, allowed 0 or more")
    if level not in get_args(CaptureLevel):
        raise ValueError(f"level: got {level!r}, allowed {', '.join(map(repr, get_args(CaptureLevel)))}")
    if format in ("perfetto", "trex") and output is None:
        raise ValueError(f"output: got none, allowed a folder with format={format!r}; say where its files go")


def _method(program: Program, name: str) -> Method:
    for method in program.methods:
        if method.name == name:
            return method
    known = ", ".join(f"'{method.name}'" for method in program.methods)
    raise ValueError(f"the program has no such method: got '{name:.80}', allowed {known}")


def make_output_folder(output: str | os.PathLike[str]) -> Path:
    """The folder, made if need be and found to take files, before the runs and not after them.

    Raises:
        ValueError: it is no folder, or the empty path.
        OSError: it cannot be made or written.
    """
    if not os.fspath(output):
        raise ValueError("the output is the empty path: got '', allowed a folder; name one")
    folder = Path(output)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"the output '{folder}' is a file; give a folder")
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError as error:  # it would name the temporary file
        raise type(error)(error.errno, error.strerror, str(folder)) from None


def _describe(inputs: Inputs) -> tuple[list[list[int]], list[str]]:
    """Shapes and element types."""
    shapes = [list(map(int, getattr(value, "shape", ()))) for value in inputs]
    dtypes = [str(getattr(value, "dtype", type(value).__name__)).removeprefix("torch.") for value in inputs]
    return shapes, dtypes


def _identify(program: str | os.PathLike[str] | bytes, contents: Program) -> dict[str, str | int]:
    if isinstance(program, bytes):
        name, digest = "", hashlib.sha256(program).hexdigest()
    else:
        name = Path(program).name
        with Path(program).open("rb") as file:
            digest = sha256_of(file)
    return {"name": name, "size_bytes": contents.file_bytes, "sha256": digest[:12]}


def _notes(dropped: int, delegates: list[Delegate]) -> list[str]:
    notes: list[str] = []
    if dropped:
        notes.append(f"{dropped} events did not fit into the ETDump, so the last runs lack some.")
    engines = [delegate.engine for delegate in delegates if delegate.engine is not None]
    if not engines:
        notes.append(f"The method has no {BACKEND_ID} delegate, so there are no phases and layers.")
    if any(not engine.sources for engine in engines):
        notes.append("The program does not say which operators its engines come from. Export it again.")
    return notes


__all__ = ["CaptureLevel", "capture", "from_etdump", "merge"]
