"""Fixtures that every test may use, and what every test must leave as it was."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import executorch_tensorrt
from executorch_tensorrt import _native

REPOSITORY = Path(__file__).resolve().parents[1]


@pytest.fixture(autouse=True)
def _no_guard_is_left() -> Iterator[None]:
    yield
    left = (_native.current_request(), _native.current_state(), _native.current_stream())
    assert left == (_native.Request(), 0, None), f"the test left guards open on this thread: {left}"


@pytest.fixture(scope="session", autouse=True)
def _compilers_leave_nothing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """PyTorch's compilers would keep what they made in a folder of their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path_factory.mktemp("inductor")))
        yield


@pytest.fixture
def umask() -> Iterator[Callable[[int], int]]:
    """Sets it for the test; first it is 022."""
    set_umask = os.umask
    before = set_umask(0o022)
    yield set_umask
    set_umask(before)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--build-dir", type=Path, default=REPOSITORY / "build" / "editable", help="of native tests")


@pytest.fixture(scope="session")
def build_dir(request: pytest.FixtureRequest) -> Path:
    """The build folder with the native test programs: this checkout's editable install, or one with sanitizers."""
    folder = request.config.getoption("--build-dir").resolve()
    if not (folder / "CMakeCache.txt").is_file():
        pytest.skip(f"no native test programs in {folder}: run `make build`")
    return folder


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with rows.pte, two_inputs.pte, mixed.pte, static_beside_dynamic.pte; see `models`."""
    import models

    folder = tmp_path_factory.mktemp("programs")
    for model in (models.rows, models.two_inputs, models.mixed, models.static_beside_dynamic):
        (folder / f"{model.__name__}.pte").write_bytes(model().buffer)
    return folder


@pytest.fixture(scope="session")
def rows(programs: Path) -> Path:
    return programs / "rows.pte"


@pytest.fixture(scope="session")
def run_python() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs code in a fresh interpreter of this environment."""

    def run(code: str, *args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", code, *args],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            env={**os.environ, "PYTHONWARNINGS": "ignore"},
        )

    return run


@pytest.fixture(scope="session")
def package_root() -> Path:
    return Path(executorch_tensorrt.__file__).parent
