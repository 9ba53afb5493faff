"""`etrt run --input`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from executorch_tensorrt.cli.values import DTYPES, KINDS, parse_value


def value_of(text: object, seed: int = 0) -> Any:
    return parse_value(str(text), 0, np.random.default_rng(seed))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_parse_value_makes_every_kind_in_every_dtype(kind: str, dtype: str) -> None:
    array = value_of(f"{kind}:{dtype}[2,3]")
    assert (array.shape, array.dtype) == ((2, 3), dtype)


def test_parse_value_fills_as_the_kind_says() -> None:
    np.testing.assert_array_equal(value_of("zeros:int64[2]"), [0, 0])
    np.testing.assert_array_equal(value_of("ones:float32[2]"), [1, 1])
    np.testing.assert_array_equal(value_of("arange:int32[2,2]"), [[0, 1], [2, 3]])
    integers = value_of("random:int64[1000]")
    assert integers.min() >= 0
    assert integers.max() < 100


def test_parse_value_takes_scalars_and_empty_shapes() -> None:
    assert value_of("ones:float32[]").shape == ()
    assert value_of("ones:float32[0,4]").shape == (0, 4)


def test_parse_value_repeats_random_values_for_a_seed() -> None:
    spec = "random:float32[8]"
    np.testing.assert_array_equal(value_of(spec, 3), value_of(spec, 3))
    assert not np.array_equal(value_of(spec, 3), value_of(spec, 4))


@pytest.mark.parametrize(
    ("text", "value"), [("5", 5), ("-2.5", -2.5), ("1e3", 1000.0), ("true", True), ("false", False)]
)
def test_parse_value_takes_numbers(text: str, value: object) -> None:
    assert value_of(text) == value
    assert type(value_of(text)) is type(value)


def test_parse_value_reads_a_file(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(6, dtype=np.int64).reshape(2, 3))
    np.testing.assert_array_equal(value_of(tmp_path / "x.npy"), [[0, 1, 2], [3, 4, 5]])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("nonsense", "--input 0 is not valid: got 'nonsense', allowed a .npy file, KIND:DTYPE[DIM,DIM,...]"),
        ("twos:float32[1]", "unknown kind: got 'twos', allowed zeros, ones, arange, random"),
        ("ones:bfloat16[1]", "unknown dtype: got 'bfloat16', allowed float32, "),
        ("ones:float32[1,-1]", "wrong dim: got '[1,-1]', allowed sizes from 0"),
        ("ones:float32[a]", "wrong dim: got '[a]'"),
        ("ones:float32", "is not valid: got 'ones:float32'"),
    ],
)
def test_parse_value_names_what_is_wrong(text: str, told: str) -> None:
    with pytest.raises(ValueError, match=re.escape(told)):
        value_of(text)


def test_parse_value_refuses_files_without_an_array(tmp_path: Path) -> None:
    (tmp_path / "text.npy").write_text("no array")
    (tmp_path / "empty.npy").touch()
    np.savez(tmp_path / "several.npz", a=np.ones(1), b=np.ones(1))
    np.save(tmp_path / "objects.npy", np.array([{}], dtype=object))
    for name in ("text.npy", "empty.npy", "several.npz", "objects.npy"):
        with pytest.raises(ValueError, match=rf"--input 0 is no array: got '.*{name}'"):
            value_of(tmp_path / name)
    with pytest.raises(FileNotFoundError, match=r"--input 0: no file at '.*missing.npy'"):
        value_of(tmp_path / "missing.npy")


def test_parse_value_does_not_need_more_memory_than_there_is() -> None:
    with pytest.raises(MemoryError, match="--input 0 does not fit into memory: got 'zeros:"):
        value_of("zeros:float32[100000,100000,100000]")


@pytest.mark.parametrize(
    "header", [b"{'descr': '<f4', 'shape': (", b"{\x00", b"(" * 200, b"\xff\xfe", b"{'descr': '<f4'}\n'''"]
)
def test_array_with_a_broken_header_is_refused_in_words(header: bytes, tmp_path: Path) -> None:
    """NumPy reads it as Python does, and fails as Python does."""
    path = tmp_path / "x.npy"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    with pytest.raises(ValueError, match=r"--input 0 is no array: got '.*', allowed a .npy file of numbers"):
        parse_value(str(path), 0, np.random.default_rng(0))
