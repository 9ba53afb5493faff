"""Runs the native test programs that the build made."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import torch
from edited_programs import engine_blob
from models import cached_rows, rows


@pytest.mark.parametrize("program", ["etrt_core_tests", "etrt_runtime_tests", "etrt_thread_tests", "etrt_cuda_tests"])
def test_native_tests_pass(build_dir: Path, program: str) -> None:
    command = [build_dir / "tests" / "native" / program]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def test_cpu_engine_survives_failing_allocations_and_refuses_damage(build_dir: Path, tmp_path: Path) -> None:
    blobs = []
    for model in (rows, cached_rows):
        path = tmp_path / f"{model.__name__}.blob"
        path.write_bytes(engine_blob(model().buffer)[1])
        blobs.append(path)
    command = [build_dir / "tests" / "native" / "etrt_cpu_engine_tests", "--", *blobs]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, result.stdout + result.stderr[-10000:]


@pytest.fixture(scope="module")
def cached_blob(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("native") / "cached_rows.blob"
    path.write_bytes(engine_blob(cached_rows().buffer)[1])
    return path


@pytest.mark.parametrize("kind", ["device", "cpu_threads"])
def test_random_sequences_give_what_arithmetic_gives(build_dir: Path, cached_blob: Path, kind: str) -> None:
    command = [build_dir / "tests" / "native" / "etrt_random_tests", "--kind", kind, cached_blob]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert result.returncode == 0, result.stdout + result.stderr[-20000:]


def run_guard_program(build_dir: Path, model: Path, size: int, *requests: str) -> list[str]:
    command = [build_dir / "tests" / "native" / "etrt_guard_program", model, str(size), *requests]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("native") / "rows.pte"
    path.write_bytes(rows().buffer)
    return path


def expected(size: int) -> str:
    return f"sum {rows().eager(torch.ones(size, 4))[0].sum().item():.4f}"


def rounded(line: str) -> str:
    return f"sum {float(line.removeprefix('sum ')):.4f}"


def test_guard_works_around_a_cpp_module(build_dir: Path, model: Path) -> None:
    lines = run_guard_program(build_dir, model, 6, "default", "1", "0", "auto", "1")
    assert [rounded(line) for line in lines] == [expected(6)] * 5


def test_cpp_modules_of_three_threads_run_one_file_each_by_its_guard(build_dir: Path, model: Path) -> None:
    command = [build_dir / "tests" / "native" / "etrt_thread_program", model, "6"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert [rounded(line) for line in result.stdout.splitlines()] == [expected(6)] * 3, result.stdout


def test_cpp_module_gets_an_error_and_stays_usable(build_dir: Path, model: Path) -> None:
    lines = run_guard_program(build_dir, model, 20, "0", "1", "default", "auto", "7", "1")
    assert [line.split()[0] for line in lines] == ["error", "sum", "error", "sum", "error", "sum"]
    assert "dim 0: got 20, allowed 1..8 in profile 0" in lines[0]
    assert "use OptimizationProfileGuard(1)" in lines[0]
    assert "optimization profile index: got 7, allowed 0..1" in lines[4]
    assert rounded(lines[5]) == expected(20)
