"""Packages: what a process does with one that has imported no more than `executorch_tensorrt` beside torch."""

from __future__ import annotations

import copy
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
import torch
from pt2_packages import Package

from executorch_tensorrt import OptimizationProfileGuard, _native, aoti
from executorch_tensorrt.aoti.loading import stored_engines

RunPython = Callable[..., "CompletedProcess[str]"]


def load(package: Package) -> Callable[..., list[torch.Tensor]]:
    return torch._inductor.aoti_load_package(str(package.path))


def assert_equal(package: Package, got: object, *inputs: torch.Tensor) -> None:
    with torch.no_grad():
        torch.testing.assert_close(got, list(package.model(*inputs)))


def test_package_gives_the_models_numbers(mixed: Package) -> None:
    runner = load(mixed)
    for rows, profile in ((1, 0), (4, 0), (3, 1), (32, 1)):
        with OptimizationProfileGuard(profile):
            assert_equal(mixed, runner(x := torch.randn(rows, 8)), x)


def test_guard_and_shapes_choose_the_profile_of_a_package(mixed: Package) -> None:
    runner = load(mixed)
    with OptimizationProfileGuard.auto():
        assert_equal(mixed, runner(x := torch.randn(20, 8)), x)
        with pytest.raises(RuntimeError, match=r"no optimization profile accepts 'x' \(33, 8\)"):
            runner(torch.ones(33, 8))
    with OptimizationProfileGuard(1), pytest.raises(RuntimeError, match=r"got 2, allowed 3\.\.32 in profile 1"):
        runner(torch.ones(2, 8))
    with OptimizationProfileGuard(2), pytest.raises(RuntimeError, match="2"):
        runner(torch.ones(2, 8))
    with pytest.raises(RuntimeError, match=r"got 20, allowed 1\.\.4 in profile 0"):
        runner(torch.ones(20, 8))
    assert_equal(mixed, runner(x := torch.randn(2, 8)), x)


@pytest.mark.parametrize("order", ["torch, executorch_tensorrt", "executorch_tensorrt, torch"])
def test_package_runs_in_a_process_that_imported_no_more(mixed: Package, run_python: RunPython, order: str) -> None:
    code = f"""
import sys, {order}
runner = torch._inductor.aoti_load_package(sys.argv[1])
first, second = runner(torch.ones(2, 8))
print(*first.shape, *second.shape, float(first.sum()), "executorch_tensorrt.aoti" in sys.modules)
"""
    result = run_python(code, str(mixed.path))
    with torch.no_grad():
        total = float(mixed.model(torch.ones(2, 8))[0].sum())
    assert result.returncode == 0, result.stderr
    *sizes, got, imported = result.stdout.split()
    assert (sizes, imported) == (["2", "4", "4", "8"], "False")
    assert float(got) == pytest.approx(total, rel=1e-4)


def test_importing_the_package_imports_no_torch(run_python: RunPython) -> None:
    code = "import executorch_tensorrt, sys; print('torch' in sys.modules)"
    assert run_python(code).stdout == "False\n"


def test_runners_are_called_by_threads_at_once(mixed: Package) -> None:
    runner = aoti.load(mixed.path, num_runners=2)
    failures: list[BaseException] = []

    def call(rows: int, profile: int) -> None:
        try:
            with OptimizationProfileGuard(profile):
                for _ in range(50):
                    assert_equal(mixed, runner(x := torch.randn(rows, 8)), x)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=call, args=args) for args in ((2, 0), (16, 1), (3, 0), (32, 1))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_engine_outlives_the_package_that_it_came_with(mixed: Package, tmp_path: Path) -> None:
    copied = tmp_path / "copy.pt2"
    copied.write_bytes(mixed.path.read_bytes())
    first = torch._inductor.aoti_load_package(str(copied))
    first(torch.ones(2, 8))
    del first
    copied.unlink()
    assert_equal(mixed, load(mixed)(x := torch.randn(2, 8)), x)


def test_large_engine_lies_beside_the_code_and_is_mapped(cache: Package, run_python: RunPython) -> None:
    code = """
import sys, torch, executorch_tensorrt.aoti
runner = executorch_tensorrt.aoti.load(sys.argv[1])
for step in range(3):
    runner(torch.full((1, 1, 4), 0.5), torch.tensor([step]))
print(float(runner(torch.full((1, 2, 4), 0.5), torch.tensor([5, 6])).sum()))
print(any(sys.argv[1] in line for line in open("/proc/self/maps")))
"""
    result = run_python(code, str(cache.path))
    assert result.returncode == 0, result.stderr
    total, mapped = result.stdout.split()
    assert float(total) == pytest.approx(4 * torch.tensor(2.5).sin().item(), rel=1e-5)
    assert mapped == "True"


def test_large_engine_is_aligned_in_the_package(cache: Package) -> None:
    (stored,) = stored_engines(cache.path)
    assert stored.offset % 64 == 0
    data = cache.path.read_bytes()[stored.offset :][: stored.size]
    assert data[:4] == b"ETC1"
    with zipfile.ZipFile(cache.path) as package:
        assert package.testzip() is None


def test_package_with_a_large_engine_says_how_to_load_it(cache: Package, run_python: RunPython) -> None:
    code = """
import sys, torch, executorch_tensorrt
runner = torch._inductor.aoti_load_package(sys.argv[1])
try:
    runner(torch.ones(1, 1, 4), torch.tensor([0]))
except RuntimeError as error:
    print(error)
"""
    assert "load the package with executorch_tensorrt.aoti.load()" in run_python(code, str(cache.path)).stdout


def test_package_updates_its_buffers_in_place(cache: Package) -> None:
    runner, twin = aoti.load(cache.path), copy.deepcopy(cache.model)
    for at in ([0], [1, 2], [3, 4, 5, 6], [7]):
        x, places = torch.randn(1, len(at), 4), torch.tensor(at)
        torch.testing.assert_close(runner(x, places), twin(x, places))


def test_two_runners_of_a_package_have_buffers_of_their_own(cache: Package) -> None:
    one, other = aoti.load(cache.path), aoti.load(cache.path)
    one(torch.ones(1, 1, 4), torch.tensor([0]))
    assert not other(torch.zeros(1, 1, 4), torch.tensor([1])).any()


def test_save_refuses_another_name(mixed: Package, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"allowed '\*\.pt2'"):
        aoti.save(mixed.compiled, tmp_path / "model.pte")


def test_load_refuses_what_is_no_package(tmp_path: Path) -> None:
    (file := tmp_path / "model.pt2").write_bytes(b"PK")
    with pytest.raises(ValueError, match="is no package"):
        aoti.load(file)


def test_load_refuses_a_package_that_was_cut(cache: Package) -> None:
    size = cache.path.stat().st_size
    with pytest.raises(ValueError, match="it is shorter than the engine in it"):
        _native.map_packaged_engine(str(cache.path), size - 10, 11, "0" * 64)


def test_load_refuses_an_engine_of_another_digest(cache: Package) -> None:
    """Every package that names the digest gets the engine that was mapped for it first."""
    with pytest.raises(ValueError, match="is damaged: engine 000000000000 has other bytes than its digest says"):
        _native.map_packaged_engine(str(cache.path), 0, 100, "0" * 64)
