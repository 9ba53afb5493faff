"""The binaries of the wheel: what they need, what they export, and that they can be moved."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

BINARIES = ("_native.cpython-*.so", "lib/libexecutorch_tensorrt.so", "bin/etrt_runner")


@pytest.fixture(params=BINARIES)
def binary(request: pytest.FixtureRequest, site: Path) -> Path:
    (path,) = (site / "executorch_tensorrt").glob(request.param)
    return path


def told(*command: str | Path) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_binary_has_relative_runpaths_and_needs_neither_torch_nor_python(binary: Path) -> None:
    dynamic = told("readelf", "-d", binary)
    (runpath,) = re.findall(r"R(?:UN)?PATH.*\[(.*)\]", dynamic)
    assert all(re.match(r"\$ORIGIN(/|$)", entry) for entry in runpath.split(":")), runpath
    needed = re.findall(r"NEEDED.*\[(.*)\]", dynamic)
    assert not [name for name in needed if re.match(r"lib(torch|c10|python)", name)], needed


def test_binary_has_no_executable_stack(binary: Path) -> None:
    assert re.findall(r"GNU_STACK(?:\s+0x\w+){5}\s+(\w+)", told("readelf", "-lW", binary)) == ["RW"]


def test_library_exports_what_is_of_this_project_alone(site: Path) -> None:
    library = site / "executorch_tensorrt" / "lib" / "libexecutorch_tensorrt.so"
    exported = told("nm", "-DC", "--defined-only", library).splitlines()
    assert len(exported) > 100
    assert not [line for line in exported if "executorch_tensorrt::" not in line]
    # Templates of the standard library over our types are weak; everything else is in our namespace.
    strong = [line.split(maxsplit=2)[2] for line in exported if line.split(maxsplit=2)[1] in "TDB"]
    assert not [name for name in strong if name.startswith(("boost::", "std::", "executorch::"))]


def test_extension_module_exports_its_entry_point_alone(site: Path) -> None:
    (module,) = (site / "executorch_tensorrt").glob("_native.cpython-*.so")
    exported = [line.split()[1:] for line in told("nm", "-D", "--defined-only", module).splitlines()]
    assert [name for kind, name in exported if kind == "T"] == ["PyInit__native"]
