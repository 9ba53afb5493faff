"""Builds the engines that exports on other machines asked for, without torch and without ONNX packages."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

from executorch_tensorrt.engines.tensorrt.cache import Entry, Refused, requested
from executorch_tensorrt.engines.tensorrt.entry_folder import require_own_cache
from executorch_tensorrt.engines.tensorrt.gpu import current_gpu
from executorch_tensorrt.engines.tensorrt.job import MODEL, BuildJob
from executorch_tensorrt.engines.tensorrt.library import Library, find_target
from executorch_tensorrt.engines.tensorrt.network import BuildError, Plan, build_plan
from executorch_tensorrt.engines.tensorrt.options import read_options
from executorch_tensorrt.engines.tensorrt.target import Target


@dataclass(frozen=True)
class Outcome:
    """What became of a request.

    Attributes:
        key: the request's.
        wanted: the TensorRT that it is for; empty if the request can't be read.
        status: "built"; "present", if it was built before; "refused", if operators have to stay outside, which the next
            export sees to; "failed".
        builder: what built the engine.
        gpu: the GPU that it was built on, where known.
        bytes: its size.
        profiles: how many optimization profiles it has.
        seconds: how long it took.
        error: why there is no engine.
        operators: those refused, with the reasons.
        is_new: whether this is about something that was done now.
    """

    key: str
    wanted: str = ""
    status: str = "failed"
    builder: str = ""
    gpu: str = ""
    bytes: int = 0
    profiles: int = 0
    seconds: float = 0.0
    error: str = ""
    operators: Mapping[str, str] = field(default_factory=dict[str, str])
    is_new: bool = True


def build_requests(cache: Path, tell: Callable[[str], None]) -> Iterator[Outcome]:
    """Build what is missing of an engine cache, one after another, whatever becomes of the others.

    Args:
        cache: the folder.
        tell: called with what is being done.

    Raises:
        OSError: the folder can't be read.
        ValueError: nothing was asked for in it, or others may write it.
    """
    require_own_cache(cache)
    entries = requested(cache)
    if not entries:
        raise ValueError(
            f"nothing to build: got no build request in '{cache}', wanted the folder of an export with engine_cache; "
            "run the export first, and give its folder."
        )
    for index, entry in enumerate(entries):
        started = time.perf_counter()
        outcome = _outcome(entry, _Steps(tell, f"engine {index + 1} of {len(entries)}"))
        yield replace(outcome, seconds=time.perf_counter() - started)


@dataclass(frozen=True)
class _Steps:
    tell: Callable[[str], None]
    engine: str

    def __call__(self, phase: str) -> None:
        self.tell(f"{self.engine}: {phase}")


def _outcome(entry: Entry, tell: Callable[[str], None]) -> Outcome:
    outcome = Outcome(entry.key)
    try:
        job = entry.request()
        assert job is not None
        outcome = replace(outcome, wanted=Target(job.kind, job.version).label, profiles=len(job.profiles))
        kept = entry.plan()
        if kept is not None:
            _check_machine(entry, job, kept)
            return _with_plan(replace(outcome, status="present", is_new=False), kept)
        refused = entry.refused()
        if refused is not None:
            return replace(_with_refusal(outcome, job, refused), is_new=False)
        try:
            return _with_plan(replace(outcome, status="built"), _build(entry, job, tell))
        except BuildError as error:
            refused = Refused(str(error), _blamable(job, error.reasons))
            if not refused.reasons:
                raise
            entry.put_refusal(refused)
            return _with_refusal(outcome, job, refused)
    except Exception as error:  # the others can still be built
        text = " ".join(str(error).split())
        known = isinstance(error, (RuntimeError, ValueError))
        return replace(outcome, error=text if known and text else f"{type(error).__name__}: {text}")


def _build(entry: Entry, job: BuildJob, tell: Callable[[str], None]) -> Plan:
    library = cast(Library, find_target(job.kind, job.version, elsewhere=False))
    options = read_options(library, job.options)
    nodes = [(name, operator) for name, operator, _ in job.nodes]

    def build() -> Plan:
        tell("reading the model")
        with tempfile.TemporaryDirectory(prefix="etrt-") as folder:
            entry.copy_model(job, Path(folder))
            return build_plan(library, Path(folder) / MODEL, job.profiles, job.dtypes, options, nodes, tell)

    return entry.plan_or_build(build, tell)


def _check_machine(entry: Entry, job: BuildJob, kept: Plan) -> None:
    """Refuse an engine that can't run here, though this machine is what the request is for."""
    gpu, library = current_gpu(), ""
    with suppress(RuntimeError, ValueError):
        library = find_target(job.kind, job.version, elsewhere=False).label
    differs = job.is_for_one_gpu and gpu and kept.gpu not in ("", gpu)
    if differs or (library and kept.builder != library):
        raise RuntimeError(
            f"the engine is for another machine: got one for {' and '.join(filter(None, (kept.builder, kept.gpu)))}, "
            f"here are {library or 'no TensorRT'} and {gpu or 'no GPU'}; use a folder for each kind of machine, or "
            f"remove '{entry.folder}' and export again."
        )


def _blamable(job: BuildJob, reasons: Mapping[str, str]) -> dict[str, str]:
    """The reasons that an export can do something about."""
    outputs = set(job.dtypes) - set(job.profiles[0])
    known = {name for name, _, origin in job.nodes if origin} | outputs
    return {name: reason for name, reason in reasons.items() if name in known}


def _with_plan(outcome: Outcome, plan: Plan) -> Outcome:
    return replace(outcome, builder=plan.builder, gpu=plan.gpu, bytes=len(plan.data))


def _with_refusal(outcome: Outcome, job: BuildJob, refused: Refused) -> Outcome:
    origins = {name: origin for name, _, origin in job.nodes}
    found = {origins.get(name) or f"output '{name}'": reason for name, reason in refused.reasons.items()}
    return replace(outcome, status="refused", error=refused.message, operators=found)
