"""The binaries of the wheel: what they need, what they export, and that they can be moved."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest
from wheels import REPOSITORY

BINARIES = ("_native.cpython-*.so", "lib/libexecutorch_tensorrt.so", "bin/etrt_runner")
MARK = re.compile(r"^ *ETRT_(API|INTERNAL) [^(;]*?(~?\w+)[(;]", re.MULTILINE)
EXPORTED = (22, 57)  # for programs, and for this project's own binaries


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


def test_binary_tells_no_folder_of_its_build(binary: Path, sources: Path) -> None:
    data = binary.read_bytes()
    assert [folder for folder in (str(sources), sys.prefix) if folder.encode() in data] == []


def test_binaries_of_the_build_tree_look_for_libraries_in_named_folders_alone(build_dir: Path) -> None:
    """An empty entry of a RUNPATH, which CMake's padding makes, is the current folder."""
    files = [path for path in build_dir.glob("**/*") if path.is_file() and path.read_bytes()[:4] == b"\x7fELF"]
    linked = [path for path in files if path.suffix not in (".o", ".a")]
    found = {path.name: re.findall(r"R(?:UN)?PATH.*\[(.*)\]", told("readelf", "-d", path)) for path in linked}
    assert {"etrt_runner", "libexecutorch_tensorrt.so", "etrt_guard_program"} <= found.keys()
    entries = [(name, entry) for name, paths in found.items() for path in paths for entry in path.split(":")]
    assert [name for name, entry in entries if not entry.startswith(("/", "$ORIGIN"))] == []


def test_binary_has_no_executable_stack(binary: Path) -> None:
    assert re.findall(r"GNU_STACK(?:\s+0x\w+){5}\s+(\w+)", told("readelf", "-lW", binary)) == ["RW"]


@dataclass(frozen=True)
class Marked:
    """The functions of the headers that the library exports, by name."""

    public: Counter[str]
    internal: Counter[str]


@pytest.fixture(scope="module")
def marked() -> Marked:
    native = REPOSITORY / "native"
    found: dict[str, Counter[str]] = {"API": Counter(), "INTERNAL": Counter()}
    for header in native.rglob("*.h"):
        for macro, name in MARK.findall(header.read_text()):
            assert (macro == "API") == header.is_relative_to(native / "include"), header
            found[macro][name] += 1
    return Marked(found["API"], found["INTERNAL"])


@pytest.fixture(scope="module")
def exported(site: Path) -> set[str]:
    library = site / "executorch_tensorrt" / "lib" / "libexecutorch_tensorrt.so"
    return {line.split(maxsplit=2)[2] for line in told("nm", "-DC", "--defined-only", library).splitlines()}


def names(symbols: Iterable[str]) -> Counter[str]:
    """Without scopes and parameters."""
    return Counter(re.sub(r"(\[abi:\w+\])?(\(.*)?$", "", symbol).rpartition("::")[2] for symbol in symbols)


def test_library_exports_what_is_marked_and_nothing_else(exported: set[str], marked: Marked) -> None:
    assert not [symbol for symbol in exported if not symbol.startswith("executorch_tensorrt::")]
    assert names(exported) == marked.public + marked.internal
    assert (marked.public.total(), marked.internal.total()) == EXPORTED


def test_internal_exports_are_what_our_binaries_use(site: Path, exported: set[str], marked: Marked) -> None:
    package = site / "executorch_tensorrt"
    binaries = [*package.glob("_native.cpython-*.so"), package / "bin" / "etrt_runner"]
    undefined = [line.split(maxsplit=1)[1] for line in told("nm", "-DCu", *binaries).splitlines() if " U " in line]
    assert not [symbol for symbol in undefined if symbol.startswith("executorch_tensorrt::") and symbol not in exported]
    assert not marked.internal - names(exported.intersection(undefined))


def test_extension_module_exports_its_entry_point_alone(site: Path) -> None:
    (module,) = (site / "executorch_tensorrt").glob("_native.cpython-*.so")
    exported = [line.split()[1:] for line in told("nm", "-D", "--defined-only", module).splitlines()]
    assert [name for kind, name in exported if kind == "T"] == ["PyInit__native"]
