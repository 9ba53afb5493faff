"""`engine_options` of the TensorRT kinds."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from executorch_tensorrt.engines.tensorrt.options import BuildOptions, read_options
from executorch_tensorrt.engines.tensorrt.target import Target

MODULE = SimpleNamespace(ComputeCapability=SimpleNamespace(__members__={"NONE": 0, "SM75": 1, "SM89": 2, "SM120": 3}))


def read(options: dict[str, Any], kind: str = "tensorrt_rtx") -> BuildOptions:
    return read_options(Target(kind, "10.9.0", MODULE), options)


def test_options_have_defaults() -> None:
    assert read({}) == BuildOptions()


@pytest.mark.parametrize(("value", "targets"), [("8.9", ("8.9",)), (["7.5", "12.0"], ("7.5", "12.0"))])
def test_options_take_one_compute_capability_or_several(value: object, targets: tuple[str, ...]) -> None:
    options = read({"compute_capability": value})
    assert options.compute_capability == targets
    assert options.target == f" for compute capability {' and '.join(targets)}"


def test_options_take_every_entry_of_their_kind(tmp_path: Path) -> None:
    entries: dict[str, Any] = {
        "precision": "bf16",
        "workspace_size": 1 << 20,
        "optimization_level": 5,
        "profiling_verbosity": "detailed",
        "hardware_compatible": True,
        "timing_cache_path": str(tmp_path / "timings"),
    }
    assert read(entries, "tensorrt") == BuildOptions(**entries)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("tensorrt_rtx", "hardware_compatible"),
        ("tensorrt_rtx", "timing_cache_path"),
        ("tensorrt", "compute_capability"),
        ("tensorrt", "enabled_precisions"),
    ],
)
def test_options_refuse_an_entry_of_another_kind(kind: str, name: str) -> None:
    with pytest.raises(ValueError, match=f"unknown entry: got '{name}', allowed precision, .* for engine '{kind}'"):
        read({name: True}, kind)


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("precision", "int8", "'fp32', 'tf32', 'fp16', 'bf16'"),
        ("workspace_size", 0, "a number of bytes from 1"),
        ("workspace_size", True, "a number of bytes from 1"),
        ("optimization_level", 6, "an int from 0 to 5"),
        ("optimization_level", "3", "an int from 0 to 5"),
        ("profiling_verbosity", None, "'none', 'layer_names_only', 'detailed'"),
        ("compute_capability", 8.9, "'7.5', '8.9', '12.0', or a list of them"),
        ("compute_capability", "9.0", "'7.5', '8.9', '12.0', or a list of them"),
        ("compute_capability", [], "'7.5', '8.9', '12.0', or a list of them"),
        ("compute_capability", ["8.9", "8.9"], "'7.5', '8.9', '12.0', or a list of them"),
        ("compute_capability", [["8.9"]], "'7.5', '8.9', '12.0', or a list of them"),
    ],
)
def test_options_refuse_a_wrong_value(name: str, value: object, allowed: str) -> None:
    text = f"engine_options {name} is not valid: got {value!r}, allowed {allowed}; correct it."
    with pytest.raises(ValueError, match=re.escape(text)):
        read({name: value})


@pytest.mark.parametrize(("name", "value"), [("hardware_compatible", 1), ("timing_cache_path", Path("timings"))])
def test_options_refuse_a_wrong_value_of_tensorrt(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"engine_options {name} is not valid"):
        read({name: value}, "tensorrt")


def test_options_refuse_a_timing_cache_in_no_folder(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="in a folder that exists"):
        read({"timing_cache_path": str(tmp_path / "none" / "timings")}, "tensorrt")
