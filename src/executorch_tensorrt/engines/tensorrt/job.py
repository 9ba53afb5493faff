"""What an engine is built from, in a form that another machine can read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from executorch_tensorrt.engines.tensorrt.network import Range
from executorch_tensorrt.engines.tensorrt.options import written_names
from executorch_tensorrt.engines.tensorrt.target import NAMES
from executorch_tensorrt.files import sha256_of
from executorch_tensorrt.records import build, parse

MODEL = "model.onnx"
WEIGHTS = "model.onnx.data"
FILES = (MODEL, WEIGHTS)

_FORMAT = 1


@dataclass(frozen=True)
class BuildJob:
    """An engine to build from the files `MODEL` and, if it is there, `WEIGHTS` of a folder.

    Attributes:
        kind: the engine kind.
        version: the TensorRT that builds it: "8.6.1", or "8.6" for any 8.6, or empty for any.
        gpu: the GPU that it is for; empty where it is for others too, or for the one of the machine that builds.
        options: `engine_options` that make a difference to the engine.
        profiles: for each optimization profile the range of each dim of each input.
        dtypes: the types that inputs and outputs must have, by name.
        nodes: the model's nodes in order: name, operator, and PyTorch's operator that it comes from, where known.
    """

    kind: str
    version: str
    gpu: str
    options: Mapping[str, Any]
    profiles: Sequence[Mapping[str, Sequence[Range]]]
    dtypes: Mapping[str, str]
    nodes: Sequence[tuple[str, str, str]]

    @property
    def is_for_one_gpu(self) -> bool:
        """Whether its engine runs on the GPU that it was built on alone."""
        return self.kind == "tensorrt" and not self.options.get("hardware_compatible", False)

    def key(self, folder: Path) -> str:
        """The SHA-256 of everything that decides what the engine will be, with the files in a folder."""
        return self.key_with({name: _sha256(folder / name) for name in FILES if (folder / name).exists()})

    def key_with(self, files: Mapping[str, str]) -> str:
        """The key, from the SHA-256 of each file."""
        decisive = {name: value for name, value in self._fields().items() if name != "nodes"}
        text = json.dumps({**decisive, "files": files}, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def to_json(self) -> str:
        """Text to read, and for `from_json`."""
        lines = (f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in self._fields().items())
        return "{\n" + ",\n".join(lines) + "\n}\n"

    @staticmethod
    def from_json(text: str | bytes) -> BuildJob:
        """Inverse of `to_json`.

        Raises:
            ValueError: it is no such text, that of another release, or has options that no export writes.
        """
        try:
            return _job(parse(text))
        except ValueError as error:
            raise ValueError(f"the build request can't be read: got {error}; export again with one release.") from None

    def _fields(self) -> dict[str, Any]:
        return {
            "format": _FORMAT,
            "kind": self.kind,
            "version": self.version,
            "gpu": self.gpu,
            "options": dict(self.options),
            "profiles": [dict(ranges) for ranges in self.profiles],
            "dtypes": dict(self.dtypes),
            "nodes": [list(node) for node in self.nodes],
        }


def _job(written: Any) -> BuildJob:
    fields = build(dict[str, Any], written)
    if fields.pop("format", None) != _FORMAT:
        raise ValueError("another format")
    kind = fields.get("kind")
    if not isinstance(kind, str) or kind not in NAMES:
        raise ValueError(f"engine kind {kind!r:.40}")
    request = build(BuildJob, fields)
    unknown = [*(fields.keys() - vars(request).keys()), *(request.options.keys() - set(written_names(request.kind)))]
    if unknown:
        raise ValueError(f"{min(unknown)!r}, which no build request has")
    if not request.profiles:
        raise ValueError("no optimization profile")
    return request


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return sha256_of(file)
