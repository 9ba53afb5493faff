"""`engine_options` of the TensorRT kinds."""

# The bindings come without types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from executorch_tensorrt.engines.tensorrt.target import Target

_WORDS: Mapping[str, tuple[object, ...]] = {
    "precision": ("fp32", "tf32", "fp16", "bf16"),
    "profiling_verbosity": ("none", "layer_names_only", "detailed"),
}


@dataclass(frozen=True)
class BuildOptions:
    """What a caller may choose.

    Attributes:
        precision: what floats are computed in: "fp32"; "tf32", which rounds the factors of products to 10 bits; "fp16";
            "bf16". Inputs and outputs keep their types.
        workspace_size: bytes of device memory that a layer may use for itself; None leaves it to TensorRT.
        optimization_level: 0 to 5: how long to look for a faster engine; None leaves it to TensorRT.
        profiling_verbosity: what an engine tells of its layers.
        hardware_compatible: make an engine for GPUs of compute capability 8.0 and later, not for this one alone.
        timing_cache_path: a file that keeps measurements of layers from build to build.
        compute_capability: the GPUs that an engine is for; none: 8.0 and later.
        tensorrt_version: the version of the machine that builds, or the first numbers of it.
    """

    precision: str = "fp32"
    workspace_size: int | None = None
    optimization_level: int | None = None
    profiling_verbosity: str = "layer_names_only"
    hardware_compatible: bool = False
    timing_cache_path: str | None = None
    compute_capability: tuple[str, ...] = ()
    tensorrt_version: str = ""

    @property
    def target(self) -> str:
        """The GPUs that an engine is for, if they were named, to put behind the builder's name."""
        return f" for compute capability {' and '.join(self.compute_capability)}" if self.compute_capability else ""


_DECISIVE = ("precision", "workspace_size", "optimization_level", "profiling_verbosity")
_EVERYWHERE = (*_DECISIVE, "tensorrt_version")
_WRITTEN = (*_DECISIVE, "hardware_compatible", "compute_capability")
_KIND_OPTIONS = {
    "tensorrt": (*_EVERYWHERE, "hardware_compatible", "timing_cache_path"),
    "tensorrt_rtx": (*_EVERYWHERE, "compute_capability"),
}


def read_options(target: Target, options: Mapping[str, Any]) -> BuildOptions:
    """Check an exporter's `engine_options`.

    Raises:
        ValueError: an entry is unknown, or its value is not allowed.
    """
    kind = target.kind
    for name, value in options.items():
        if name not in _KIND_OPTIONS[kind]:
            allowed = ", ".join(_KIND_OPTIONS[kind])
            raise ValueError(
                f"engine_options has an unknown entry: got {name!r}, allowed {allowed} for engine '{kind}'; remove it."
            )
        _check(name, value, _fault(target, name, value))
    targets = options.get("compute_capability", ())
    several = (targets,) if isinstance(targets, str) else tuple(targets)
    return replace(BuildOptions(**options), compute_capability=several)


def read_version(options: Mapping[str, Any]) -> str:
    """The version that the options want, before it is known whether they suit it; empty if they want none.

    Raises:
        ValueError: it is no version.
    """
    version = options.get("tensorrt_version", "")
    _check("tensorrt_version", version, _no_version(version))
    return version


def written_names(kind: str) -> list[str]:
    """The options that a plan depends on: what another machine is told, and takes. None names a file."""
    return [name for name in _KIND_OPTIONS[kind] if name in _WRITTEN]


def written_options(kind: str, options: BuildOptions) -> dict[str, Any]:
    """The entries that a plan depends on, for `read_options` on another machine."""
    values = {name: getattr(options, name) for name in written_names(kind)}
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in values.items()
        if value not in (None, ())
    }


def _check(name: str, value: object, allowed: str | None) -> None:
    if allowed:
        raise ValueError(f"engine_options {name} is not valid: got {value!r}, allowed {allowed}; correct it.")


def _fault(target: Target, name: str, value: object) -> str | None:
    """What is allowed for an option, if its value is not."""
    if name in _WORDS:
        words = [word for word in _WORDS[name] if word != "bf16" or target.has_bfloat16]
        return None if value in words else ", ".join(map(repr, words))
    if name == "tensorrt_version":
        return _no_version(value)
    if name == "compute_capability":
        if target.module is None:
            return None if _are_capabilities(value) else "such as '8.9', or a list of them"
        known = list(compute_capabilities(target.module))
        return None if _are_among(known, value) else f"{', '.join(map(repr, known))}, or a list of them"
    fine, allowed = {
        "hardware_compatible": (type(value) is bool, "True, False"),
        "workspace_size": (type(value) is int and value > 0, "a number of bytes from 1"),
        "optimization_level": (type(value) is int and 0 <= value <= 5, "an int from 0 to 5"),
        "timing_cache_path": (_is_file(value), "the path of a file, as text, in a folder that exists"),
    }[name]
    return None if fine else allowed


def _no_version(value: object) -> str | None:
    fine = isinstance(value, str) and (not value or re.fullmatch(r"\d+(\.\d+){1,3}", value))
    return None if fine else "text such as '8.6' or '10.9.0'"


def _are_capabilities(value: object) -> bool:
    texts = value if isinstance(value, (list, tuple)) else [value]
    found = [text for text in texts if isinstance(text, str) and re.fullmatch(r"\d+\.\d", text)]
    return len({*found}) == len(texts) > 0


def _are_among(known: Sequence[str], value: Any) -> bool:
    """Whether a value is one of those known, or a list of several different ones."""
    if not isinstance(value, (list, tuple)):
        return value in known
    return bool(value) and all(target in known for target in value) and len({*value}) == len(value)


def _is_file(value: object) -> bool:
    return isinstance(value, str) and bool(value) and Path(value).parent.is_dir() and not Path(value).is_dir()


def compute_capabilities(module: Any) -> dict[str, Any]:
    """The compute capabilities that a release of TensorRT-RTX builds for: "8.9" to its own constant."""
    members = module.ComputeCapability.__members__
    return {f"{name[2:-1]}.{name[-1]}": value for name, value in members.items() if name.startswith("SM")}
