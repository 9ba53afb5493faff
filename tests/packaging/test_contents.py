"""What the source distribution and the wheel hold, and what they don't."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from zipfile import ZipFile

import pytest
from wheels import REPOSITORY

# Every file of the wheel is of one of these kinds, and there is at least one of each.
KINDS = (
    r"executorch_tensorrt/(\w+/)*\w+\.py",
    r"executorch_tensorrt/(_native|_program_schema|_build_info)\.pyi",
    r"executorch_tensorrt/py\.typed",
    r"executorch_tensorrt/_native\.cpython-\w+-x86_64-linux-gnu\.so",
    r"executorch_tensorrt/lib/libexecutorch_tensorrt\.so",
    r"executorch_tensorrt/bin/etrt_runner",
    r"executorch_tensorrt/include/executorch_tensorrt/\w+\.h",
    r"executorch_tensorrt/share/cmake/executorch_tensorrt/executorch_tensorrt-[\w-]+\.cmake",
    r"executorch_tensorrt/profiling/renderers/templates/\w+(\.html)?\.(css|jinja|js)",
    r"executorch_tensorrt-[\d.]+\.dist-info/(METADATA|RECORD|WHEEL|entry_points\.txt|licenses/LICENSE)",
    r"executorch_tensorrt-[\d.]+\.dist-info/sboms/executorch_tensorrt\.cdx\.json",
)
# Written by the build.
GENERATED = {"_build_info.py", "_program_schema.py"}


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def names(wheel: Path) -> list[str]:
    return ZipFile(wheel).namelist()


def test_wheel_holds_files_of_known_kinds_alone(names: list[str]) -> None:
    assert not [name for name in names if not any(re.fullmatch(kind, name) for kind in KINDS)]


@pytest.mark.parametrize("kind", KINDS)
def test_wheel_holds_files_of_every_kind(kind: str, names: list[str]) -> None:
    assert any(re.fullmatch(kind, name) for name in names)


@pytest.mark.parametrize(
    ("packed", "folder"),
    [("", "src/executorch_tensorrt"), ("include/executorch_tensorrt/", "native/include/executorch_tensorrt")],
)
def test_wheel_holds_sources_as_the_sdist_has_them(packed: str, folder: str, wheel: Path, sources: Path) -> None:
    archive = ZipFile(wheel)
    for name, data in contents(sources / folder).items():
        assert archive.read(f"executorch_tensorrt/{packed}{name}") == data, name


def test_wheel_holds_no_python_module_that_the_sdist_lacks(names: list[str], sources: Path) -> None:
    modules = {name.partition("/")[2] for name in names if name.endswith(".py")}
    assert modules - contents(sources / "src" / "executorch_tensorrt").keys() == GENERATED


def test_wheel_is_small(wheel: Path) -> None:
    assert wheel.stat().st_size < 2_000_000


def test_sdist_holds_what_the_repository_has(sources: Path) -> None:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True, cwd=REPOSITORY).stdout.splitlines()
    kept = {name for name in listed if (REPOSITORY / name).is_file() and not name.startswith((".ci/", ".gpu/"))}
    assert contents(sources).keys() ^ kept == {"PKG-INFO"}


def test_sdist_is_small(sdist: Path) -> None:
    assert sdist.stat().st_size < 2_000_000
