"""What an engine is built from, in a form that another machine can read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from executorch_tensorrt.engines.tensorrt.network import Range
from executorch_tensorrt.engines.tensorrt.target import NAMES

MODEL = "model.onnx"
WEIGHTS = "model.onnx.data"

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
        decisive = {name: value for name, value in self._fields().items() if name != "nodes"}
        files = {name: _sha256(folder / name) for name in (MODEL, WEIGHTS) if (folder / name).exists()}
        text = json.dumps({**decisive, "files": files}, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def to_json(self) -> str:
        """Text to read, and for `from_json`."""
        lines = (f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in self._fields().items())
        return "{\n" + ",\n".join(lines) + "\n}\n"

    @staticmethod
    def from_json(text: str) -> BuildJob:
        """Inverse of `to_json`.

        Raises:
            ValueError: it is no such text, or that of another release.
        """
        try:
            fields = json.loads(text)
            if fields.pop("format") != _FORMAT:
                raise ValueError("another format")
            if fields["kind"] not in NAMES:
                raise ValueError(f"engine kind {fields['kind']!r}")
            fields["profiles"] = ranges_of(fields["profiles"])
            fields["nodes"] = [(name, operator, origin) for name, operator, origin in fields["nodes"]]
            return BuildJob(**fields)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"the build request can't be read: got {error}; export again with one release.") from error

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


def ranges_of(profiles: Any) -> list[dict[str, list[Range]]]:
    """Ranges that come from JSON, which has no tuples."""
    return [{name: [(low, opt, high) for low, opt, high in dims] for name, dims in each.items()} for each in profiles]


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        found = hashlib.sha256()
        while part := file.read(1 << 20):
            found.update(part)
    return found.hexdigest()
