"""Files of programs that change while they are in use."""

from __future__ import annotations

from pathlib import Path

import models
import numpy as np
import pytest

from executorch_tensorrt import ExecuTorchError, Module

X = np.ones((2, 4), np.float32)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "x.pte").write_bytes(models.rows().buffer)
    return tmp_path / "x.pte"


def cut_short(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(64)


def test_module_of_bytes_needs_the_file_no_more(path: Path) -> None:
    module = Module(path.read_bytes())
    cut_short(path)
    np.testing.assert_array_equal(module.forward(X)[0], Module(models.rows().buffer).forward(X)[0])


def test_loaded_module_that_reads_its_file_needs_it_no_more(path: Path) -> None:
    module = Module(path, load_mode="file")
    module.load_method()
    cut_short(path)
    np.testing.assert_array_equal(module.forward(X)[0], Module(models.rows().buffer).forward(X)[0])


def test_module_that_reads_its_file_refuses_one_that_was_cut_short(path: Path) -> None:
    module = Module(path, load_mode="file")
    cut_short(path)
    with pytest.raises(ExecuTorchError):
        module.load_method()
