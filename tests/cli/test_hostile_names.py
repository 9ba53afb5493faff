"""Names from files are data: no terminal, log or page obeys them. Every renderer, error and log of the Python side."""

from __future__ import annotations

import json
import logging
import os
import pty
import subprocess
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from engines.cache_entries import JOB, PLAN
from profiling.advice_factory import hostile
from profiling.session_factory import encoder_session, renamed, tiny_session

from executorch_tensorrt import Input, _native, export
from executorch_tensorrt.cli import app
from executorch_tensorrt.cli import console as cli_console
from executorch_tensorrt.engines.tensorrt.cache import Refused, entry_for
from executorch_tensorrt.profiling.processors import compare
from executorch_tensorrt.profiling.renderers import RENDERERS, console, render
from executorch_tensorrt.profiling.renderers.advice import code, page
from executorch_tensorrt.profiling.renderers.advice import console as advice_console
from executorch_tensorrt.runtime.log import forward_messages
from executorch_tensorrt.words import printable

if TYPE_CHECKING:
    from conftest import Etrt

# The title of a terminal, its clipboard, colours and cursor; a second line; order of text; markup of rich and of HTML.
NAME = (
    "\x1b]0;owned\x07\x1b]52;c;b3duZWQ=\x07\x1b[2J\x9b31m\r\nCRITICAL root: [/x][bold]\u2028\u202e\x00\x7f</td><script>"
)
ARGUMENT = NAME.replace("\x00", "")
FILE = ARGUMENT.replace("/", "")
OBEYED = ("\x1b]", "\x1b[2J", "\x9b", "\x07", "\u202e", "\u2028", "\x00", "\x7f", "\nCRITICAL", "\rCRITICAL")


def assert_data(text: str) -> None:
    assert not [part for part in OBEYED if part in text], text


def one_method(name: str) -> bytes:
    """A program whose method has a name that `export` would not give it."""
    stand_in = "m" * len(name.encode())
    inputs = [Input(profiles=[{"min_shape": (1, 4), "opt_shape": (2, 4), "max_shape": (8, 4)}])]
    buffer = export({stand_in: torch.nn.Linear(4, 4).eval()}, {stand_in: inputs}).buffer
    return buffer.replace(stand_in.encode(), name.encode())


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hostile") / "hostile.pte"
    path.write_bytes(one_method(ARGUMENT))
    return path


@pytest.fixture
def session(tmp_path: Path) -> Path:
    path = tmp_path / "session.json"
    renamed(encoder_session(runs=2), NAME).save(path)
    return path


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """An engine cache with a refusal, a request that can't be read, and one that fails."""
    model = tmp_path / "model"
    model.mkdir()
    (model / "model.onnx").write_bytes(b"graph")
    entry = entry_for(tmp_path / "cache", JOB, model)
    entry.put_request(JOB, model)
    entry.put_refusal(Refused(NAME, {NAME: NAME}))
    other = entry.folder.with_name("e" * 64)
    other.mkdir()
    (other / "request.json").write_text(json.dumps({"format": 1, "kind": NAME}))
    broken = entry.folder.with_name("f" * 64)
    broken.mkdir()
    (broken / "request.json").write_text(json.dumps({**json.loads(JOB.to_json()), "options": {NAME: NAME}}))
    return tmp_path / "cache"


@pytest.mark.parametrize("renderer", RENDERERS)
def test_renderer_shows_hostile_names_as_data(renderer: str) -> None:
    for kind in ("cpu", "tensorrt"):
        for text in render(renamed(encoder_session(runs=2, kind=kind), NAME), renderer).values():  # type: ignore[arg-type]
            assert_data(text)


@pytest.mark.parametrize("color", [False, True])
def test_console_shows_hostile_names_as_data(color: bool) -> None:
    session = renamed(encoder_session(runs=2), NAME)
    assert_data(console.render(session, color=color))
    assert_data(console.render_comparison(compare(session, tiny_session()), color=color))
    assert_data(advice_console.render(hostile(NAME), color=color))


def test_advice_shows_hostile_names_as_data() -> None:
    advice = hostile(NAME)
    for text in (page.render(advice), code.python_code(advice)):
        assert_data(text)


COMMANDS: dict[str, Callable[[Path, Path, Path], Sequence[object]]] = {
    "inspect": lambda program, session, cache: ["inspect", program],
    "inspect --check": lambda program, session, cache: ["inspect", "--check", program],
    "inspect --json": lambda program, session, cache: ["inspect", "--json", program],
    "run of another method": lambda program, session, cache: ["run", program, "--method", "nope"],
    "run with another input": lambda program, session, cache: ["run", program, "--method", ARGUMENT[:-1]],
    "run without inputs": lambda program, session, cache: ["run", program, "--method", ARGUMENT],
    "run": lambda program, session, cache: [
        "run", program, "--method", ARGUMENT, "--input", "ones:float32[2,4]", "--iterations", 2,
    ],
    "profile": lambda program, session, cache: [
        "profile", program, "--method", ARGUMENT, "--input", "ones:float32[2,4]", "--runs", 2, "-o",
        session.parent / f"run{FILE}",
    ],
    "report": lambda program, session, cache: ["report", session],
    "report --compare": lambda program, session, cache: ["report", "--compare", session, session],
    "report -o": lambda program, session, cache: [
        "report", session, "-r", "html", "-o", session.parent / FILE,
    ],
    "report of nothing": lambda program, session, cache: ["report", ARGUMENT],
    "report of a program": lambda program, session, cache: ["report", session, "--program", program],
    "advise": lambda program, session, cache: ["advise", session],
    "an option": lambda program, session, cache: ["report", f"--{ARGUMENT}"],
    "a command": lambda program, session, cache: [ARGUMENT],
    "export": lambda program, session, cache: ["export", f"{ARGUMENT}:x", "-o", session.parent / "x.pte"],
    "build-engines": lambda program, session, cache: ["build-engines", cache],
    "build-engines --json": lambda program, session, cache: ["build-engines", cache, "--json"],
    "--debug": lambda program, session, cache: ["--debug", "report", "--compare", ARGUMENT, session],
}  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_command_shows_hostile_names_as_data(command: str, program: Path, session: Path, cache: Path) -> None:
    arguments = [str(argument) for argument in COMMANDS[command](program, session, cache)]
    result = CliRunner().invoke(app, arguments, prog_name="etrt")
    assert result.exit_code in (0, 1, 2)
    assert result.stdout or result.stderr
    assert "MarkupError" not in result.stderr
    assert_data(result.stdout)
    assert_data(result.stderr)
    if not arguments[0].startswith("--debug"):
        assert "CRITICAL" not in [line[:8] for line in result.stderr.splitlines()]


def on_a_terminal(arguments: Sequence[object]) -> tuple[int, str]:
    """What a command shows on one, where progress is drawn and text has colours."""
    controller, terminal = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", "from executorch_tensorrt.cli import main; main()", *map(str, arguments)],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "200", "PYTHONWARNINGS": "ignore"},
    ) as process:
        os.close(terminal)
        shown = b""
        try:
            while part := os.read(controller, 65536):
                shown += part
        except OSError:  # the other end is closed
            pass
        finally:
            os.close(controller)
    # A terminal's own line ends are \r\n.
    return process.returncode, shown.decode(errors="surrogateescape").replace("\r\n", "\n")


@pytest.mark.parametrize("command", ["inspect", "run of another method", "profile", "report", "build-engines"])
def test_terminal_shows_hostile_names_as_data(command: str, program: Path, session: Path, cache: Path) -> None:
    code, text = on_a_terminal(COMMANDS[command](program, session, cache))
    assert code == {"run of another method": 2, "build-engines": 1}.get(command, 0), text
    assert "owned" in text
    assert_data(text)


def test_progress_takes_no_markup(program: Path, tmp_path: Path) -> None:
    """rich would end the command: closing tag '[/x]' doesn't match any open tag."""
    path = tmp_path / "markup.pte"
    path.write_bytes(one_method("[/x][bold]" + "y" * 30))
    arguments = [
        "profile",
        path,
        "--method",
        "[/x][bold]" + "y" * 30,
        "--input",
        "ones:float32[2,4]",
        "-o",
        tmp_path / "run",
    ]
    code, text = on_a_terminal(arguments)
    assert (code, "MarkupError" in text, "[/x][bold]yy" in text) == (0, False, True)


def test_log_of_the_native_library_has_one_line_a_message(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(_native, "has_messages", lambda: True)
    monkeypatch.setattr(_native, "take_messages", lambda: [(logging.ERROR, f"method '{NAME}' failed")])
    forward_messages()
    assert caplog.messages == [printable(f"method '{NAME}' failed")]
    assert_data(caplog.text)


def test_log_of_a_cache_has_one_line_a_message(cache: Path, caplog: pytest.LogCaptureFixture) -> None:
    entry = entry_for(cache.rename(cache.with_name("cache\n\x1b]0;owned\x07")), JOB, cache.parent / "model")
    entry.plan_or_build(lambda: PLAN)
    (entry.folder / "engine.json").write_text(json.dumps({"key": NAME}))
    (entry.folder / "refusal.json").write_text(json.dumps({"message": [NAME]}))
    assert (entry.plan(), entry.refused()) == (None, None)
    assert len(caplog.messages) == 2
    assert all(message.isprintable() for message in caplog.messages)


def test_warning_has_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with cli_console.only_our_warnings(debug=False):
        warnings.showwarning(UserWarning(NAME), UserWarning, str(Path(cli_console.__file__)), 1)
    assert capsys.readouterr().err == printable(f"etrt: warning: {NAME}") + "\n"


def test_saved_and_written_files_are_named_as_data(program: Path, tmp_path: Path, etrt: Etrt) -> None:
    folder = tmp_path / "out\n\x1b]0;owned\x07"
    inputs = ["--input", "ones:float32[2,4]", "--save-outputs", folder, "--etdump", tmp_path / "a\n\x9b31m"]
    result = etrt("run", program, "--method", ARGUMENT, *inputs)
    assert np.load(folder / "output_0.npy").shape == (2, 4)
    assert_data(result.stdout)
    assert "Saved" in result.stdout
    assert "Events in" in result.stdout


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("encoder.layer.0 µs → 日本", "encoder.layer.0 µs → 日本"),
        ("\x1b[31m\x9b\x07", "\\x1b[31m\\x9b\\x07"),
        ("a\r\n\tb\u2028c\x85", "a\\r\\n\\tb\\u2028c\\x85"),
        ("\u202egnp\u2066\u200b\ufeff", "\\u202egnp\\u2066\\u200b\\ufeff"),
        ("\ud800\U000e0001", "\\ud800\\U000e0001"),
    ],
)
def test_printable_writes_out_what_does_not_show(text: str, shown: str) -> None:
    assert printable(text) == shown
