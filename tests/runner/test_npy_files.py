"""etrt_runner: which .npy files it reads, and how it refuses others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from models import rows as rows_model
from models import stock_program

from executorch_tensorrt import Input, export

if TYPE_CHECKING:
    from conftest import Runner

Report = Callable[..., dict[str, Any]]
Npy = Callable[[object], Path]

DATA = np.arange(12, dtype=np.float32).tobytes()


def header(text: str, version: tuple[int, int] = (1, 0)) -> bytes:
    length = len(text).to_bytes(2 if version == (1, 0) else 4, "little")
    return b"\x93NUMPY" + bytes(version) + length + text.encode()


def file(descr: str = "'<f4'", order: str = "False", shape: str = "(3, 4)", data: bytes = DATA) -> bytes:
    return header(f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n") + data


def expected(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return rows_model().eager(torch.from_numpy(np.ascontiguousarray(x)))[0].numpy()


READ = np.frombuffer(DATA, np.float32).reshape(3, 4)


@pytest.mark.parametrize(
    "content",
    [
        file(),
        header("{'shape':(3,4),'fortran_order':False,'descr':'<f4'}") + DATA,
        header('{"descr": "<f4", "fortran_order": False, "shape": (3, 4)}', (2, 0)) + DATA,
        header("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4,), }   \n", (3, 0)) + DATA,
        file(order="True", data=READ.tobytes(order="F")),
    ],
    ids=["numpy", "other order and no spaces", "2.0", "3.0", "fortran order"],
)
def test_file_is_read(content: bytes, rows: Path, report: Report, npy: Npy, tmp_path: Path) -> None:
    told = report(rows, "--input", npy(content), "--save-outputs", tmp_path)
    np.testing.assert_allclose(np.load(told["saved"][0]), expected(READ), rtol=1e-5)


def test_fortran_order_as_numpy_saves_it_is_read(rows: Path, report: Report, npy: Npy, tmp_path: Path) -> None:
    x = np.asfortranarray(np.random.default_rng(0).standard_normal((5, 4)).astype(np.float32))
    told = report(rows, "--input", npy(x), "--save-outputs", tmp_path)
    np.testing.assert_allclose(np.load(told["saved"][0]), expected(x), rtol=1e-5)


class _Twice(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.neg(x)


@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_are_brought_into_the_methods_dim_order_and_back(
    order: Any, report: Report, npy: Npy, tmp_path: Path
) -> None:
    x = np.random.default_rng(0).standard_normal((2, 3, 4, 5)).astype(np.float32)
    example = torch.from_numpy(x).to(memory_format=torch.channels_last)
    (tmp_path / "last.pte").write_bytes(stock_program(_Twice(), example))
    told = report("last.pte", "--input", npy(np.asarray(x, order=order)), "--save-outputs", tmp_path)
    np.testing.assert_array_equal(np.load(told["saved"][0]), -x)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "bool"])
def test_every_dtype_is_read_and_saved(dtype: str, report: Report, npy: Npy, tmp_path: Path) -> None:
    x = np.array([[0, 1, 2], [3, 4, 5]]).astype(dtype)
    (tmp_path / "same.pte").write_bytes(stock_program(_Clone(), torch.from_numpy(x)))
    told = report("same.pte", "--input", npy(x), "--save-outputs", tmp_path / "out")
    saved = np.load(told["saved"][0])
    assert saved.dtype == x.dtype
    np.testing.assert_array_equal(saved, x)


class _Clone(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.clone()


def test_numbers_are_read_for_inputs_that_are_no_tensors(
    report: Report, runner: Runner, npy: Npy, tmp_path: Path
) -> None:
    class Scaled(torch.nn.Module):
        def forward(self, x: torch.Tensor, factor: int) -> torch.Tensor:
            return x * factor

    (tmp_path / "scaled.pte").write_bytes(stock_program(Scaled(), torch.ones(2), 3))
    x = npy(np.ones(2, np.float32))
    told = report("scaled.pte", "--input", x, "--input", npy(np.int64(3)), "--save-outputs", tmp_path)
    np.testing.assert_array_equal(np.load(told["saved"][0]), [3, 3])
    refused = runner("scaled.pte", "--input", x, "--input", npy(np.float32(3)), code=2).stderr
    assert "method 'forward' input 1: got float32 (), allowed a number for its kind Int" in refused


PLAIN = "its header is not of one array of plain numbers"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "it does not begin with NumPy's magic bytes"),
        (b"PK\x03\x04", "it does not begin with NumPy's magic bytes"),
        (b"\x93NUMPY", "got format version 0.0, allowed 1.0, 2.0, 3.0"),
        (header("{}", (4, 0)), "got format version 4.0, allowed 1.0, 2.0, 3.0"),
        (header("{}", (1, 1)), "got format version 1.1, allowed 1.0, 2.0, 3.0"),
        (file()[:9], "it ends in its header"),
        (file()[:40], "it ends in its header"),
        (file()[:-1], "got 47 bytes of data, allowed 48 for float32 (3, 4)"),
        (file(data=b""), "got 0 bytes of data, allowed 48 for float32 (3, 4)"),
        (file(data=DATA + b"\0"), "got 49 bytes of data, allowed 48 for float32 (3, 4)"),
        (file("'>f4'"), "got dtype '>f4', allowed '<f4', '<f8'"),
        (file("'<c8'"), "got dtype '<c8', allowed '<f4', '<f8'"),
        (file("'|O'"), "got dtype '|O', allowed '<f4', '<f8'"),
        (file("[('x', '<f4')]"), PLAIN),
        (file("'<f4"), PLAIN),
        (file(order="0"), PLAIN),
        (file(shape="(3, -4)"), PLAIN),
        (file(shape="(12)"), PLAIN),
        (file(shape="(,)"), PLAIN),
        (file(shape="(99999999999999999999,)"), PLAIN),
        (file(shape="(4294967296, 4294967296)"), "no memory holds float32 (4294967296, 4294967296)"),
        (file(shape=f"({'1, ' * 17})", data=b"1234"), "got rank 17, allowed at most 16"),
        (header("{'descr': '<f4', 'fortran_order': False, }") + DATA, PLAIN),
        (header("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (3, 4)}") + DATA, PLAIN),
        (header("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), 'more': 1}") + DATA, PLAIN),
        (header("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4)} x") + DATA, PLAIN),
        (header("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4)") + DATA, PLAIN),
        (header("['descr']"), PLAIN),
        (header(""), PLAIN),
    ],
)
def test_file_is_refused(content: bytes, told: str, rows: Path, runner: Runner, npy: Npy) -> None:
    path = npy(content)
    line = runner(rows, "--input", path, code=2).stderr
    assert f"--input 0 is no array: got '{path}', allowed a .npy file of numbers: {told}" in line


def test_big_endian_files_work_after_the_advice(rows: Path, runner: Runner, npy: Npy) -> None:
    x = np.ones((3, 4), ">f4")
    assert "save it again" in runner(rows, "--input", npy(x), code=2).stderr
    runner(rows, "--input", npy(x.astype("<f4")))


def test_archives_of_arrays_are_refused(rows: Path, runner: Runner, tmp_path: Path) -> None:
    np.savez(tmp_path / "two.npz", np.ones(1), np.ones(1))
    assert "magic bytes" in runner(rows, "--input", "two.npz", code=2).stderr


def test_bfloat16_inputs_have_no_file(runner: Runner, npy: Npy, tmp_path: Path) -> None:
    export(_Clone().eval(), [Input((2,), dtype=torch.bfloat16)]).save(tmp_path / "half.pte")
    line = runner("half.pte", "--input", npy(np.ones(2, np.float16)), code=2).stderr
    assert "input 0: got dtype float16, allowed bfloat16" in line
