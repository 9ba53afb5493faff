"""A library with event tracing compiled out works, and says in one line that events were asked for in vain."""

from __future__ import annotations

from pathlib import Path
from zipfile import ZipFile

import pytest
from models import rows
from wheels import build_wheel, install_beside_executorch, run_there

RUN = """
import sys
import numpy as np
import executorch_tensorrt
from executorch_tensorrt import Module, _native

assert executorch_tensorrt.__file__.startswith(sys.argv[1])
assert not _native.tracing_compiled_in()
module = Module(sys.argv[2], profile_level="phases")
for _ in range(5):
    module.forward(np.ones((2, 4), np.float32))
"""


@pytest.fixture(scope="module")
def wheel_without(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"), "ETRT_EVENT_TRACING=OFF", "ETRT_WERROR=ON")


@pytest.fixture(scope="module")
def site(wheel_without: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install_beside_executorch(wheel_without, tmp_path_factory.mktemp("site"))


def test_wheel_of_the_checkout_holds_the_files_of_that_of_the_sdist(wheel_without: Path, wheel: Path) -> None:
    assert sorted(ZipFile(wheel_without).namelist()) == sorted(ZipFile(wheel).namelist())


def test_functional_tests_pass_without_event_tracing(site: Path) -> None:
    tests = ["tests/runtime/test_guard.py", "tests/runtime/test_selection.py", "tests/runtime/test_module.py"]
    result = run_there(site, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests, timeout=300)
    assert result.returncode == 0, result.stdout[-3000:]


def test_events_that_are_not_compiled_in_are_told_of_once(site: Path, tmp_path: Path) -> None:
    (tmp_path / "rows.pte").write_bytes(rows().buffer)
    result = run_there(site, "-c", RUN, str(site), str(tmp_path / "rows.pte"))
    assert result.returncode == 0, result.stderr
    assert result.stderr.count("event tracing is not compiled in") == 1


def test_sidecars_work_without_event_tracing(site: Path, tmp_path: Path) -> None:
    (tmp_path / "rows.pte").write_bytes(rows().buffer)
    code = RUN.replace(
        'profile_level="phases"',
        'profile_level="phases", profile_format="perfetto", profile_path_prefix=sys.argv[3]',
    )
    folder = tmp_path / "traces"
    folder.mkdir()
    result = run_there(site, "-c", code, str(site), str(tmp_path / "rows.pte"), str(folder))
    assert result.returncode == 0, result.stderr
    assert "not compiled in" not in result.stderr
    assert len(list(folder.iterdir())) == 1
