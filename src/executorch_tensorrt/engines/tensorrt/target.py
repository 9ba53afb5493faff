"""A TensorRT that engines are built with: one that is here, or one on another machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

# An engine kind has the name of its Python module.
NAMES = {"tensorrt": "TensorRT", "tensorrt_rtx": "TensorRT-RTX"}


@dataclass(frozen=True)
class Target:
    """What its version tells of a TensorRT.

    Attributes:
        kind: the engine kind.
        version: such as "8.6.1", or "8.6" for any 8.6; empty for any at all.
        module: its Python module, where that is installed.
    """

    kind: str
    version: str
    module: Any = None

    @property
    def name(self) -> str:
        """What it is called."""
        return NAMES[self.kind]

    @property
    def label(self) -> str:
        """Its name and version."""
        return f"{self.name} {self.version}".rstrip()

    @property
    def opset(self) -> int:
        """The newest ONNX operator set that the parser of this version and the exporter both know well."""
        return 17 if self._is_old else 20

    @property
    def strongly_typed(self) -> bool:
        """Whether the types of a network are those of its model, so that precision is the model's business."""
        return not self._is_old

    @property
    def narrows_int64(self) -> bool:
        """Whether it has no int64, and its parser makes int32 of it."""
        return self._is_old

    @property
    def has_bfloat16(self) -> bool:
        """Whether it has bfloat16."""
        return not self._is_old

    @property
    def has_formats_by_profile(self) -> bool:
        """Whether an engine can be asked for the format of a tensor in each optimization profile."""
        return not self._is_old  # 8.6.1's bindings have the call, 8.6.0's library does not

    @property
    def major(self) -> int:
        """The first number of its version; 0 where that may be any."""
        return int(self.version.partition(".")[0] or 0)

    @property
    def _is_old(self) -> bool:
        return self.kind == "tensorrt" and self.major < 10


def is_release_of(version: str, wanted: str) -> bool:
    """Whether a version is one that is wanted: 8.6.1 is an 8.6."""
    return not wanted or f"{version}.".startswith(f"{wanted}.")
