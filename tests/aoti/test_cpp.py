"""A C++ program that runs a package: with libtorch, without Python."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import executorch
import pytest
import torch
from pages import blocks
from pt2_packages import Package
from torch.utils import cpp_extension

from executorch_tensorrt import OptimizationProfileGuard, _native

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE = REPOSITORY / "docs" / "guide" / "pt2.md"


def test_program_of_the_guide_runs_a_package(mixed: Package, tmp_path: Path) -> None:
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("there is no g++")
    (program,) = blocks(PAGE, "cpp")
    (tmp_path / "main.cpp").write_text(program)
    executorch_folder = Path(next(iter(executorch.__path__)))
    includes = [REPOSITORY / "native" / "include", executorch_folder / "include", *cpp_extension.include_paths()]
    folders = [Path(_native.__file__).parent / "lib", executorch_folder / "lib", *cpp_extension.library_paths()]
    command = [compiler, "-std=c++20", "main.cpp", "-o", "main", *(f"-I{folder}" for folder in includes)]
    command += [item for folder in folders for item in (f"-L{folder}", f"-Wl,-rpath,{folder}")]
    command += ["-Wl,--no-as-needed", "-ltorch_cpu", "-lc10", "-lexecutorch_tensorrt"]
    built = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    ran = subprocess.run([tmp_path / "main", mixed.path], capture_output=True, text=True, check=False, env={})
    assert ran.returncode == 0, ran.stderr
    with torch.no_grad(), OptimizationProfileGuard(1):
        expected = float(mixed.compiled(torch.ones(20, 8))[0].sum())
    assert float(ran.stdout) == pytest.approx(expected, rel=1e-4)
