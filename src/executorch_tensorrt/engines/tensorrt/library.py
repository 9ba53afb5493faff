"""The Python bindings of TensorRT and TensorRT-RTX, which differ in their names and in what a release has."""

# The bindings come without types, and under two names.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import importlib
import logging
from dataclasses import dataclass
from functools import cache
from typing import Any

_log = logging.getLogger(__name__)

# An engine kind has the name of its Python module.
_NAMES = {"tensorrt": "TensorRT", "tensorrt_rtx": "TensorRT-RTX"}
_INSTALL = {
    "tensorrt": "install NVIDIA's tensorrt package of the version that the target machine has",
    "tensorrt_rtx": "pip install 'executorch-tensorrt[tensorrt]'",
}


@dataclass(frozen=True)
class Library:
    """One of the two, and a builder of it.

    Attributes:
        kind: the engine kind.
        module: the Python module.
        builder: its `Builder`.
        log: where its messages go.
    """

    kind: str
    module: Any
    builder: Any
    log: Any

    @property
    def name(self) -> str:
        """What it is called."""
        return _NAMES[self.kind]

    @property
    def label(self) -> str:
        """Its name and version."""
        return f"{self.name} {self.module.__version__}"

    @property
    def opset(self) -> int:
        """The newest ONNX operator set that the parser of this version and the exporter both know well."""
        return 20 if self.kind == "tensorrt_rtx" or _major(self.module) >= 10 else 17

    @property
    def strongly_typed(self) -> bool:
        """Whether the types of a network are those of its model, so that precision is the model's business."""
        return hasattr(self.module.NetworkDefinitionCreationFlag, "STRONGLY_TYPED")

    @property
    def narrows_int64(self) -> bool:
        """Whether it has no int64, and its parser makes int32 of it."""
        return "INT64" not in self.module.DataType.__members__

    def network(self) -> Any:
        """An empty network."""
        flags = self.module.NetworkDefinitionCreationFlag.__members__
        # Until version 10 a batch dim was implicit unless asked for.
        names = ("STRONGLY_TYPED", "EXPLICIT_BATCH") if _major(self.module) < 10 else ("STRONGLY_TYPED",)
        return self.builder.create_network(sum(1 << int(flags[name]) for name in names if name in flags))


@cache
def load_library(kind: str) -> Library:
    """Import a kind's bindings and make a builder; once, because TensorRT keeps the first logger that it gets.

    Raises:
        RuntimeError: they are not installed, or can't work on this machine.
    """
    try:
        module = importlib.import_module(kind)
    except ImportError as error:
        raise RuntimeError(
            f"engine '{kind}' can't be built here: got no Python module '{kind}' ({error}), wanted {_NAMES[kind]}; "
            f"{_INSTALL[kind]}, or export with another engine."
        ) from error
    log = _logger(module)
    try:
        builder = module.Builder(log)
    except Exception as error:
        raise RuntimeError(
            f"engine '{kind}' can't be built here: got no builder from {_NAMES[kind]} {module.__version__} "
            f"({log.text() or error}), wanted a machine with an NVIDIA GPU and its driver; export there, or with "
            "another engine."
        ) from error
    return Library(kind, module, builder, log)


def _major(module: Any) -> int:
    return int(str(module.__version__).partition(".")[0])


def _logger(module: Any) -> Any:
    """TensorRT's messages to this module's logger; errors are kept for who asks, since its calls just return None."""
    levels = {"WARNING": logging.INFO, "INFO": logging.DEBUG}

    class Log(module.ILogger):
        def __init__(self) -> None:
            module.ILogger.__init__(self)
            self.errors: list[str] = []

        def log(self, severity: Any, msg: str) -> None:
            if severity.name == "ERROR":
                self.errors.append(msg)
            _log.log(levels.get(severity.name, logging.DEBUG), "%s: %s", severity.name.lower(), msg)

        def text(self) -> str:
            """The errors since the last call, in one line."""
            found = dict.fromkeys(" ".join(error.split()) for error in self.errors if "checkMacros" not in error)
            self.errors.clear()
            return "; ".join(found)

    return Log()
