"""The command line in this process."""

from __future__ import annotations

from typing import Protocol

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
            told = [line for line in result.stderr.splitlines() if not line.startswith(("[", "Note: "))]
            assert len(told) == 1, result.stderr
            assert told[0].startswith("etrt")
        assert "Traceback" not in result.stderr
        return result

    return run
