"""The Python bindings of TensorRT and TensorRT-RTX, which differ in their names and in what a release has."""

# The bindings come without types, and under two names.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import importlib
import logging
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

from executorch_tensorrt.engines.tensorrt.target import NAMES, Target, is_release_of

_log = logging.getLogger(__name__)

_INSTALL = {
    "tensorrt": "install NVIDIA's tensorrt package of the version that the target machine has",
    "tensorrt_rtx": "pip install 'executorch-tensorrt[tensorrt]'",
}


@dataclass(frozen=True)
class Bindings(Target):
    """One of the two that is installed here.

    Attributes:
        log: where its messages go.
    """

    log: Any = None


@dataclass(frozen=True)
class Library(Bindings):
    """One of the two that is installed here, and a builder of it.

    Attributes:
        builder: its `Builder`.
    """

    builder: Any = None

    def network(self) -> Any:
        """An empty network."""
        flags = self.module.NetworkDefinitionCreationFlag.__members__
        # Until version 10 a batch dim was implicit unless asked for.
        names = ("STRONGLY_TYPED", "EXPLICIT_BATCH") if self.major < 10 else ("STRONGLY_TYPED",)
        return self.builder.create_network(sum(1 << int(flags[name]) for name in names if name in flags))


@cache
def load_bindings(kind: str) -> Bindings:
    """Import a kind's bindings; once, because TensorRT keeps the first logger that it gets.

    Raises:
        ImportError: they are not installed.
        OSError: TensorRT itself is not.
    """
    module = importlib.import_module(kind)
    return Bindings(kind, str(module.__version__), module, _logger(module))


@cache
def load_library(kind: str) -> Library:
    """Import a kind's bindings and make a builder.

    Raises:
        RuntimeError: they are not installed, or can't work on this machine.
    """
    try:
        bindings = load_bindings(kind)
    except (ImportError, OSError) as error:
        raise RuntimeError(
            f"engine '{kind}' can't be built here: got no Python module '{kind}' ({error}), wanted {NAMES[kind]}; "
            f"{_INSTALL[kind]}, or export with engine_cache=DIR, or with another engine."
        ) from error
    try:
        builder = bindings.module.Builder(bindings.log)
    except Exception as error:
        raise RuntimeError(
            f"engine '{kind}' can't be built here: got no builder from {bindings.label} "
            f"({bindings.log.text() or error}), wanted a machine with an NVIDIA GPU and its driver; export there, with "
            "engine_cache=DIR, or with another engine."
        ) from error
    return Library(kind, bindings.version, bindings.module, bindings.log, builder)


def find_target(kind: str, version: str, elsewhere: bool) -> Target:
    """The TensorRT to make engines for.

    Args:
        kind: the engine kind.
        version: its version, or the first numbers of it; empty for the one that is here.
        elsewhere: whether it may be on another machine.

    Raises:
        ValueError: it can only be elsewhere, and nothing says its version.
        RuntimeError: it has to be here, and is not.
    """
    try:
        library = load_library(kind)
    except RuntimeError:
        if not elsewhere:
            raise
        return _target_elsewhere(kind, version)
    if is_release_of(library.version, version):
        return library
    if not elsewhere:
        raise RuntimeError(
            f"engine '{kind}' can't be built here: got {library.label}, wanted {NAMES[kind]} {version}; install that, "
            "or export with engine_cache=DIR and build the engines where it is."
        )
    return Target(kind, version)


def _target_elsewhere(kind: str, version: str) -> Target:
    with suppress(ImportError, OSError):
        here = load_bindings(kind)
        if is_release_of(here.version, version):
            return here
    if kind == "tensorrt" and not version:
        raise ValueError(
            "engine_options tensorrt_version is missing: got none, and no TensorRT is installed here that has one, "
            "allowed the version of the machine that builds the engines, such as '8.6' or '10.9'; add it."
        )
    return Target(kind, version)


def _logger(module: Any) -> Any:
    """TensorRT's messages to this module's logger; errors are kept for who asks, since its calls just return None."""
    levels = {"WARNING": logging.INFO, "INFO": logging.DEBUG}

    class Log(module.ILogger):
        def __init__(self) -> None:
            module.ILogger.__init__(self)
            self.errors: list[str] = []

        def log(self, severity: Any, msg: str) -> None:
            if severity.name in ("ERROR", "INTERNAL_ERROR"):
                self.errors.append(msg)
            _log.log(levels.get(severity.name, logging.DEBUG), "%s: %s", severity.name.lower(), msg)

        def text(self) -> str:
            """The errors since the last call, in one line."""
            # These repeat what other errors say, unless there is no other.
            telling = [error for error in self.errors if "checkMacros" not in error] or self.errors
            found = dict.fromkeys(" ".join(error.split()) for error in telling)
            self.errors.clear()
            return "; ".join(found)

    return Log()
