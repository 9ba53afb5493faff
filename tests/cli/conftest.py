"""The command line in this process, and programs for it."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import models
import pytest
from click.testing import CliRunner, Result

from executorch_tensorrt.cli import app


class Etrt(Protocol):
    def __call__(self, *arguments: object, code: int = 0) -> Result: ...


@pytest.fixture
def etrt() -> Etrt:
    """Runs a command and checks its exit code. A mistake must be told in one line, without a traceback."""

    def run(*arguments: object, code: int = 0) -> Result:
        result = CliRunner().invoke(app, [str(argument) for argument in arguments], prog_name="etrt")
        assert result.exit_code == code, f"{result.output}\n{result.exception!r}"
        if code == 2:
            told = [line for line in result.stderr.splitlines() if not line.startswith("[")]
            assert len(told) == 1, result.stderr
            assert told[0].startswith("etrt")
        assert "Traceback" not in result.stderr
        return result

    return run


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with rows.pte, two_inputs.pte, mixed.pte, static_beside_dynamic.pte; see `models`."""
    folder = tmp_path_factory.mktemp("programs")
    for model in (models.rows, models.two_inputs, models.mixed, models.static_beside_dynamic):
        (folder / f"{model.__name__}.pte").write_bytes(model().buffer)
    return folder


@pytest.fixture(scope="session")
def rows(programs: Path) -> Path:
    return programs / "rows.pte"
