"""A folder that keeps engines, and requests for engines to build, by what they are built from."""

from __future__ import annotations

import hashlib
import json
import logging
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from executorch_tensorrt.engines.tensorrt.entry_folder import EntryFolder
from executorch_tensorrt.engines.tensorrt.job import FILES, MODEL, WEIGHTS, BuildJob
from executorch_tensorrt.engines.tensorrt.network import Plan, Range
from executorch_tensorrt.records import build, parse
from executorch_tensorrt.words import printable

_log = logging.getLogger(__name__)

_REQUEST = "request.json"
_PLAN = "engine.plan"
_RECORD = "engine.json"
_REFUSAL = "refusal.json"


@dataclass(frozen=True)
class Refused:
    """Why an engine can't be built: the whole message, and reasons by the names of the model's nodes or outputs."""

    message: str
    reasons: dict[str, str]


@dataclass(frozen=True)
class _Record:
    """What is written beside a plan."""

    key: str
    sha256: str
    bytes: int
    bounds: list[dict[str, list[Range]]] | None
    builder: str
    platform: str
    gpu: str


def _warn(text: str) -> None:
    warnings.warn(text, stacklevel=2)


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

    @property
    def _files(self) -> EntryFolder:
        return EntryFolder(self.folder)

    def plan(self) -> Plan | None:
        """The engine; None if there is none, or a damaged one.

        Raises:
            ValueError: others could have written it.
            OSError: it can't be read.
        """
        data, written = self._files.read(_PLAN), self._files.read_text(_RECORD)
        if data is None:
            return None
        try:
            record = build(_Record, parse(written or b""))
            if (record.key, record.sha256) != (self.key, hashlib.sha256(data).hexdigest()):
                raise ValueError("its checksum or its key is another")
            return Plan(data, record.bounds, record.builder, record.platform, record.gpu)
        except ValueError as error:
            path = self.folder / _PLAN
            _log.warning("%s", printable(f"'{path}' is no whole engine, and built again: {error}"))
            return None

    def plan_or_build(self, build: Callable[[], Plan], tell: Callable[[str], None] = _warn) -> Plan:
        """The engine that is there, or one that is built and kept. Who comes while it is built waits for it.

        Args:
            build: builds it.
            tell: called with a line that says so where one waits.

        Raises:
            ValueError: others could have written what is there.
            RuntimeError: the wait is over, and the other's build is not.
        """
        kept = self.plan()
        if kept is not None:
            return kept
        with self._files.lock(tell):
            kept = self.plan()
            if kept is None:
                self._files.remove_left(_PLAN)
                kept = build()
                self._keep(kept)
        return kept

    def request(self) -> BuildJob | None:
        """What to build; None if nobody asked for it.

        Raises:
            ValueError: it can't be read, its files are not what it was made with, or others could have written it.
        """
        text = self._files.read_text(_REQUEST)
        if text is None:
            return None
        job = BuildJob.from_json(text)
        found = {name: self._files.sha256(name) for name in FILES}
        self._check(job.key_with({name: digest for name, digest in found.items() if digest is not None}))
        return job

    def copy_model(self, job: BuildJob, folder: Path) -> None:
        """The request's files in a folder of the caller's, where nobody changes them any more.

        Raises:
            ValueError: they are not what the request was made with.
        """
        for name in FILES:
            self._files.copy_out(name, folder / name)
        self._check(job.key(folder))

    def _check(self, key: str) -> None:
        if key != self.key:
            raise ValueError("its files are damaged: got other content than its name says; copy them or export again.")

    def put_request(self, job: BuildJob, model: Path) -> None:
        """Ask for an engine; `model` is the folder with the job's files."""
        for name in (WEIGHTS, MODEL):
            if (model / name).exists():
                self._files.write(name, model / name)
        self._files.write(_REQUEST, job.to_json().encode())

    def refused(self) -> Refused | None:
        """Why it can't be built, if that was found."""
        written = self._files.read_text(_REFUSAL)
        try:
            return None if written is None else build(Refused, parse(written))
        except ValueError as error:
            path = self.folder / _REFUSAL
            _log.warning("%s", printable(f"'{path}' can't be read, and is passed over: {error}"))
            return None

    def put_refusal(self, refused: Refused) -> None:
        """Keep why it can't be built."""
        self._files.write(_REFUSAL, json.dumps(asdict(refused), indent=2).encode())

    def _keep(self, plan: Plan) -> None:
        digest = hashlib.sha256(plan.data).hexdigest()
        record = _Record(self.key, digest, len(plan.data), plan.bounds, plan.builder, plan.platform, plan.gpu)
        self._files.write(_PLAN, plan.data)
        self._files.write(_RECORD, json.dumps(asdict(record), indent=2).encode())


def entry_for(cache: Path, job: BuildJob, model: Path) -> Entry:
    """The entry of a job whose files are in the folder `model`."""
    return Entry(cache / job.key(model))


def requested(cache: Path) -> Sequence[Entry]:
    """The entries that somebody asked for, built or not.

    Raises:
        OSError: the folder can't be read.
    """
    return [Entry(path) for path in sorted(cache.iterdir()) if EntryFolder(path).exists(_REQUEST)]
