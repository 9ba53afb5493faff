"""Names that another chose: in errors, in logs they are text, and one line."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from models import profiles, rows

from executorch_tensorrt import ExecuTorchError, Input, Module, OptimizationProfileGuard, export

HOSTILE = "a\n\x1b]0;title\x07\x9b2J\u202e[/b]<script>\r\x7fCRITICAL root: in"
ESCAPED = r"a\x0a\x1b]0;title\x07\x9b2J\u202e[/b]<script>\x0d\x7fCRITICAL root: in"
X = np.ones((2, 4), np.float32)


@pytest.fixture(scope="module")
def program() -> bytes:
    """Whose method has a name that this project's exporter would refuse."""
    honest = "m" * len(HOSTILE.encode())
    buffer = export({honest: rows().module}, {honest: [Input(profiles=profiles((1, 2, 8), tail=(4,)))]}).buffer
    assert buffer.count(honest.encode()) >= 1
    return buffer.replace(honest.encode(), HOSTILE.encode())


def unknown_method(module: Module) -> None:
    module.run_method("none")


def wrong_number_of_inputs(module: Module) -> None:
    module.run_method(HOSTILE)


def wrong_type(module: Module) -> None:
    module.run_method(HOSTILE, ["text"])


def wrong_element_type(module: Module) -> None:
    module.run_method(HOSTILE, [X.astype(np.int64)])


def wrong_rank(module: Module) -> None:
    module.run_method(HOSTILE, [X[0]])


def too_large(module: Module) -> None:
    module.run_method(HOSTILE, [np.ones((9, 4), np.float32)])


def no_such_profile(module: Module) -> None:
    with OptimizationProfileGuard(7):
        module.run_method(HOSTILE, [X])


def loaded_twice(module: Module) -> None:
    module.load_method(HOSTILE)
    module.load_method(HOSTILE)


def wrong_option(module: Module) -> None:
    module.load_method(HOSTILE, profile_level="phases", profile_format="trex")


@pytest.mark.parametrize(
    "mistake",
    [
        unknown_method,
        wrong_number_of_inputs,
        wrong_type,
        wrong_element_type,
        wrong_rank,
        too_large,
        no_such_profile,
        loaded_twice,
        wrong_option,
    ],
)
def test_error_and_log_show_a_hostile_name_as_text(
    program: bytes, mistake: Callable[[Module], None], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "executorch_tensorrt.runtime")
    with pytest.raises((ValueError, TypeError, ExecuTorchError)) as error:
        mistake(Module(program))
    assert str(error.value).isprintable()
    assert ESCAPED in str(error.value)
    told = [record.getMessage() for record in caplog.records if record.name == "executorch_tensorrt.runtime"]
    assert all(text.isprintable() for text in told), told


def test_representation_of_a_module_is_one_line(program: bytes) -> None:
    assert repr(Module(program)).isprintable()


def test_sidecar_has_a_name_without_its_characters(program: bytes, tmp_path: Path) -> None:
    module = Module(program, profile_level="phases", profile_format="perfetto", profile_path_prefix=tmp_path)
    module.run_method(HOSTILE, [X])
    del module
    (file,) = tmp_path.iterdir()
    assert file.name.replace("-", "").replace("_", "").replace(".", "").isalnum()


def test_bytes_that_are_no_text_are_shown(program: bytes) -> None:
    """Python would refuse the message."""
    name = HOSTILE.encode()
    module = Module(program.replace(name, b"\xff\xc3\xed\xa0\x80" + name[5:]))
    with pytest.raises(ValueError, match=r"allowed '\\xff\\xc3\\xed\\xa0\\x80") as error:
        module.run_method("none")
    assert str(error.value).isprintable()
