"""A folder that keeps engines, and requests for engines to build, by what they are built from."""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import shutil
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, cast

from executorch_tensorrt.engines.tensorrt.job import MODEL, WEIGHTS, BuildJob, ranges_of
from executorch_tensorrt.engines.tensorrt.network import Plan
from executorch_tensorrt.files import replacing, write_atomically

_log = logging.getLogger(__name__)

_REQUEST = "request.json"
_PLAN = "engine.plan"
_RECORD = "engine.json"
_REFUSAL = "refusal.json"


class Refused(NamedTuple):
    """Why an engine can't be built: the whole message, and reasons by the names of the model's nodes or outputs."""

    message: str
    reasons: Mapping[str, str]


@dataclass(frozen=True)
class Entry:
    """What is kept under one key, in a folder of that name.

    A file is written whole or not at all, and the one that others are judged by is written last: a reader needs no
    lock. A writer of an engine holds one, which ends with its process.
    """

    folder: Path

    @property
    def key(self) -> str:
        """The key."""
        return self.folder.name

    def plan(self) -> Plan | None:
        """The engine; None if there is none, or a damaged one."""
        try:
            data = (self.folder / _PLAN).read_bytes()
        except FileNotFoundError:
            return None
        record = _read_json(self.folder / _RECORD)
        try:
            if record["sha256"] != hashlib.sha256(data).hexdigest():
                raise ValueError("its checksum is another")
            bounds = None if record["bounds"] is None else ranges_of(record["bounds"])
            return Plan(data, bounds, record["builder"], record["platform"], record["gpu"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            _log.warning("'%s' is no whole engine, and built again: %s", self.folder / _PLAN, error)
            return None

    def plan_or_build(self, build: Callable[[], Plan]) -> Plan:
        """The engine that is there, or one that is built and kept. Who comes while it is built waits for it."""
        kept = self.plan()
        if kept is not None:
            return kept
        with self._lock():
            kept = self.plan()
            if kept is None:
                for left in self.folder.glob(f".{_PLAN}.*"):  # of a build that was killed
                    left.unlink()
                kept = build()
                self._keep(kept)
        return kept

    def request(self) -> BuildJob | None:
        """What to build; None if nobody asked for it.

        Raises:
            ValueError: it can't be read, or its files are not what it was made with.
        """
        path = self.folder / _REQUEST
        if not path.exists():
            return None
        job = BuildJob.from_json(path.read_text(encoding="utf-8", errors="replace"))
        if job.key(self.folder) != self.key:
            raise ValueError("its files are damaged: got other content than its name says; copy them or export again.")
        return job

    def put_request(self, job: BuildJob, model: Path) -> None:
        """Ask for an engine; `model` is the folder with the job's files."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for name in (WEIGHTS, MODEL):
            if (model / name).exists():
                with replacing(self.folder / name) as temporary:
                    shutil.copyfile(model / name, temporary)
        write_atomically(self.folder / _REQUEST, job.to_json().encode())

    def refused(self) -> Refused | None:
        """Why it can't be built, if that was found."""
        record = _read_json(self.folder / _REFUSAL)
        return Refused(record["message"], record["reasons"]) if record else None

    def put_refusal(self, refused: Refused) -> None:
        """Keep why it can't be built."""
        write_atomically(self.folder / _REFUSAL, json.dumps(refused._asdict(), indent=2).encode())

    def _keep(self, plan: Plan) -> None:
        record = {**plan._asdict(), "sha256": hashlib.sha256(plan.data).hexdigest(), "bytes": len(plan.data)}
        del record["data"]
        write_atomically(self.folder / _PLAN, plan.data)
        write_atomically(self.folder / _RECORD, json.dumps(record, indent=2).encode())

    @contextmanager
    def _lock(self) -> Generator[None]:
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "lock").open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def entry_for(cache: Path, job: BuildJob, model: Path) -> Entry:
    """The entry of a job whose files are in the folder `model`."""
    return Entry(cache / job.key(model))


def requested(cache: Path) -> Sequence[Entry]:
    """The entries that somebody asked for, built or not.

    Raises:
        OSError: the folder can't be read.
    """
    return [Entry(path) for path in sorted(cache.iterdir()) if (path / _REQUEST).exists()]


def _read_json(path: Path) -> dict[str, Any]:
    """The object in a file; empty if there is none, or no such file."""
    try:
        found = json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}
