"""Damaged engines and machines that lack something: a clear error, and the next good call works.

TensorRT may end the process on a damaged plan, so each runs in a process of its own.
"""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from edited_programs import engine_blob, with_metadata
from gpu.cuda import to_device
from gpu.prepared import Case

from executorch_tensorrt import ExecuTorchError, Module

Cases = Callable[[str], Case]
RunPython = Callable[..., "subprocess.CompletedProcess[str]"]

# Prints what loading the first program says; then runs the second.
TRY = """
import sys
import numpy as np
from gpu.prepared import load_case
from pathlib import Path
from executorch_tensorrt import ExecuTorchError, Module
good = load_case(Path(sys.argv[2]), "mlp")
values = good.calls["first"]
try:
    Module(sys.argv[1]).forward(*values.inputs)
    print("it ran")
except (ValueError, ExecuTorchError) as error:
    print(type(error).__name__, error)
values.assert_is(Module(good.path).forward(*values.inputs))
"""


def said_of(program: bytes, good: Path, tmp_path: Path, run_python: RunPython) -> str:
    path = tmp_path / "bad.pte"
    path.write_bytes(program)
    result = run_python(TRY, str(path), str(good.parent))
    assert result.returncode == 0, result.stderr[-2000:]
    return result.stdout


def with_engine_bytes(program: bytes, change: Callable[[bytearray], None]) -> bytes:
    """The program with other bytes in its plan."""
    at, blob = engine_blob(program)
    (start,) = struct.unpack_from("<I", blob, 12)
    plan = bytearray(blob[start:])
    change(plan)
    return program[: at + start] + bytes(plan) + program[at + len(blob) :]


def with_engine_size(program: bytes, change: Callable[[int], int]) -> bytes:
    """The program with a plan that ends earlier."""
    at, blob = engine_blob(program)
    (size,) = struct.unpack_from("<Q", blob, 16)
    return program[: at + 16] + struct.pack("<Q", change(size)) + program[at + 24 :]


@pytest.mark.parametrize("size", [24, 1000, -1])
def test_truncated_plan_is_refused(size: int, case: Cases, tmp_path: Path, run_python: RunPython) -> None:
    good = case("mlp").path
    cut = with_engine_size(good.read_bytes(), lambda whole: size if size > 0 else whole + size)
    text = said_of(cut, good, tmp_path, run_python)
    assert "refuses the engine" in text, text
    assert "build it for this machine" in text


@pytest.mark.parametrize("offset", [0, 4, 8, 24])
def test_plan_with_a_changed_header_is_refused_or_runs(
    offset: int, case: Cases, tmp_path: Path, run_python: RunPython
) -> None:
    """The format of a plan is TensorRT's own: one of these bytes is of its version, and not all of them matter."""
    good = case("mlp").path

    def flip(plan: bytearray) -> None:
        plan[offset] ^= 0xFF

    text = said_of(with_engine_bytes(good.read_bytes(), flip), good, tmp_path, run_python)
    assert "refuses the engine" in text or text == "it ran\n", text


def test_plan_with_another_magic_names_the_versions(case: Cases, tmp_path: Path, run_python: RunPython) -> None:
    import tensorrt

    good = case("mlp").path

    def no_plan(plan: bytearray) -> None:
        plan[:4] = b"none"

    text = said_of(with_engine_bytes(good.read_bytes(), no_plan), good, tmp_path, run_python)
    assert text.count(f"TensorRT {tensorrt.__version__}") >= 2, text
    assert "compute capability" in text


def test_device_that_does_not_exist_is_named(case: Cases, tmp_path: Path, run_python: RunPython) -> None:
    good = case("mlp").path
    moved = with_metadata(good.read_bytes(), lambda metadata: metadata.update(device_id=99))
    text = said_of(moved, good, tmp_path, run_python)
    assert "99" in text, text
    assert "device" in text


# Takes nearly all device memory, loads a program, gives the memory back, and loads it again.
EXHAUST = """
import sys
from pathlib import Path
from gpu.cuda import DeviceArray, free_memory
from gpu.prepared import load_case
from executorch_tensorrt import ExecuTorchError, Module
case = load_case(Path(sys.argv[1]), sys.argv[2])
values = case.calls["largest"]
Module(case.path, optimization_profile="auto").forward(*values.inputs)  # what CUDA takes for itself is taken
leave = int(sys.argv[3])
taken = []
for step in (1 << 30, 1 << 26, 1 << 21):
    while free_memory() > leave + step:
        try:
            taken.append(DeviceArray((step,), "u1"))
        except RuntimeError:
            break
try:
    Module(case.path, optimization_profile="auto").forward(*values.inputs)
    print("it ran")
except (ValueError, MemoryError, ExecuTorchError) as error:
    print(type(error).__name__, error)
taken.clear()
values.assert_is(Module(case.path, optimization_profile="auto").forward(*values.inputs))
"""


@pytest.mark.parametrize("leave", [0, 8 << 20, 60 << 20])
def test_device_without_memory_is_told(leave: int, case: Cases, run_python: RunPython) -> None:
    """For the engine, for a context, for what is staged: wherever it runs out."""
    result = run_python(EXHAUST, str(case("encoder").path.parent), "encoder", str(leave))
    assert result.returncode == 0, result.stderr[-2000:]
    assert result.stdout == "it ran\n" or ("Error" in result.stdout and "memory" in result.stdout)


def test_device_array_of_a_wrong_type_leaves_the_module_usable(case: Cases) -> None:
    values = case("mlp").calls["first"]
    module = Module(case("mlp").path)
    with pytest.raises(ValueError, match="float64"):
        module.forward(to_device(values.inputs[0].astype(np.float64)))
    values.assert_is(module.forward(*values.inputs))


class HostArray:
    """Claims that memory of the host lies on the device."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self._array = array
        shape, data = array.shape, (array.ctypes.data, False)
        self.__cuda_array_interface__ = {"shape": shape, "typestr": array.dtype.str, "data": data, "version": 3}


def test_host_memory_in_a_device_array_is_refused(case: Cases) -> None:
    values = case("mlp").calls["first"]
    module = Module(case("mlp").path)
    with pytest.raises((ValueError, ExecuTorchError), match="host"):
        module.forward(HostArray(values.inputs[0]))
    values.assert_is(module.forward(*values.inputs))
