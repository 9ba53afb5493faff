"""C++ programs against the installed wheel, and what runs where there is no Python."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from models import rows
from pages import blocks
from wheels import REPOSITORY, run_there, shell_there

EXAMPLE = REPOSITORY / "examples" / "4_native"
GUIDE = REPOSITORY / "docs" / "guide" / "native.md"
SYSTEM = r"(ld-linux.*|linux-vdso|lib(c|dl|gcc_s|m|pthread|rt|stdc\+\+))\.so"


def needed(binary: Path) -> set[str]:
    dynamic = subprocess.run(["readelf", "-d", binary], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"NEEDED.*\[(.*)\]", dynamic))


def loaded(program: Path) -> dict[str, str]:
    """Where the loader finds each library for a program, in an empty environment."""
    told = subprocess.run(["ldd", program], capture_output=True, text=True, check=True, env={"PATH": "/usr/bin:/bin"})
    return dict(re.findall(r"^\s*(\S+) => (.*?)(?: \(0x\w+\))?$", told.stdout, re.MULTILINE))


def check_is_self_contained(program: Path, folder: Path) -> None:
    libraries = loaded(program)
    ours = {name: path for name, path in libraries.items() if not re.match(SYSTEM, name)}
    assert len(ours) == 6
    for name, path in ours.items():
        assert re.match(r"libexecutorch(_\w+)?\.so$", name), name
        assert Path(path).resolve().is_relative_to(folder), path


def run_alone(program: Path, *arguments: str) -> str:
    result = subprocess.run([program, *arguments], capture_output=True, text=True, check=False, timeout=60, env={})
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def example(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example, after the commands of its README."""
    folder = tmp_path_factory.mktemp("example")
    shutil.copytree(EXAMPLE, folder, dirs_exist_ok=True)
    readme = EXAMPLE / "README.md"
    (folder / "make_model.py").write_text("\n".join(blocks(readme, "python")))
    script = "python make_model.py\n" + "\n".join(blocks(readme, "console"))
    result = shell_there(site, script, folder)
    assert result.returncode == 0, result.stdout + result.stderr
    (folder / "stdout").write_text(result.stdout)
    return folder


def test_example_builds_and_runs_as_its_readme_says(example: Path) -> None:
    lines = re.findall(
        r"^(\d+) rows on profile (\d): first element -?\d\.\d{4}$", (example / "stdout").read_text(), re.M
    )
    assert lines == [("100", "1"), ("1", "0"), ("1", "0")] * 2


def test_installed_example_runs_without_python(example: Path) -> None:
    program = example / "device" / "bin" / "two_profiles"
    check_is_self_contained(program, example / "device")
    assert run_alone(program, str(example / "model.pte")).startswith("100 rows on profile 1")


def test_example_names_a_file_that_is_no_program(example: Path) -> None:
    program = example / "build" / "two_profiles"
    result = subprocess.run([program, "README.md"], cwd=example, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert result.stderr.endswith("'README.md' can't be loaded: Error::InvalidProgram; give the path of a program.\n")


def test_runner_copied_as_the_guide_says_runs_without_python(site: Path, tmp_path: Path) -> None:
    (script,) = (block for block in blocks(GUIDE, "console") if "mkdir device" in block)
    result = shell_there(site, script, tmp_path)
    assert result.returncode == 0, result.stderr
    folder = tmp_path / "elsewhere"
    (tmp_path / "device").rename(folder)
    check_is_self_contained(folder / "etrt_runner", folder)
    (tmp_path / "rows.pte").write_bytes(rows().buffer)
    np.save(tmp_path / "x.npy", np.ones((40, 4), np.float32))
    given = (str(tmp_path / "rows.pte"), "--input", str(tmp_path / "x.npy"), "--optimization-profile", "auto")
    assert "auto     (40, 4)" in run_alone(folder / "etrt_runner", *given)


def test_runner_and_library_need_neither_python_nor_torch(site: Path) -> None:
    package = site / "executorch_tensorrt"
    for binary in (package / "bin" / "etrt_runner", package / "lib" / "libexecutorch_tensorrt.so"):
        names = needed(binary) | loaded(binary).keys()
        assert not [name for name in names if re.match(r"lib(torch|c10|python)", name)], names


def test_etrt_runner_is_a_command_of_the_wheel(site: Path) -> None:
    result = run_there(site, str(site / "bin" / "etrt_runner"), "--version")
    assert result.stdout.startswith("etrt_runner "), result.stderr


BUILD = """
cmake_minimum_required(VERSION 3.28)
project(two LANGUAGES CXX)
find_package(executorch_tensorrt REQUIRED)
add_executable(nothing nothing.cpp)
target_link_options(nothing BEFORE PRIVATE LINKER:--as-needed)
add_library(guide OBJECT guide.cpp)
target_compile_options(guide PRIVATE -Werror)
foreach(target nothing guide)
  target_link_libraries(${target} PRIVATE executorch_tensorrt::executorch_tensorrt)
endforeach()
"""


def test_guides_blocks_compile_and_the_delegate_stays_where_nothing_is_called(site: Path, tmp_path: Path) -> None:
    lines = "".join(blocks(GUIDE, "cpp")).splitlines()
    includes = [line for line in lines if line.startswith("#include")]
    statements = [line for line in lines if not line.startswith("#include")]
    function = ["void guide() {", *statements, "}"]
    (tmp_path / "guide.cpp").write_text("\n".join([*includes, *function]))
    (tmp_path / "nothing.cpp").write_text("int main() {}\n")
    (tmp_path / "CMakeLists.txt").write_text(BUILD)
    build = 'cmake -S . -B build -DCMAKE_PREFIX_PATH="$(etrt --cmake-prefix-path)"\ncmake --build build\n'
    result = shell_there(site, build, tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "libexecutorch_tensorrt.so" in needed(tmp_path / "build" / "nothing")
