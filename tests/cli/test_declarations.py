"""`etrt export --input`."""

from __future__ import annotations

import re

import pytest

from executorch_tensorrt.cli.declarations import parse_declarations, parse_engine_options
from executorch_tensorrt.inputs import Input, ShapeRange


def only(text: str) -> Input:
    declared = parse_declarations([text])
    assert isinstance(declared, list)
    (item,) = declared
    return item


def test_parse_declarations_takes_a_static_shape() -> None:
    item = only("float32[1, 64]")
    assert (item.dtype, item.profiles) == ("float32", (ShapeRange((1, 64), (1, 64), (1, 64)),))


def test_parse_declarations_takes_a_scalar() -> None:
    assert only("bool[]").profiles == (ShapeRange((), (), ()),)


def test_parse_declarations_takes_a_range_per_profile() -> None:
    item = only("int64[1,2:16:32|33:128:256]")
    assert item.profiles == (ShapeRange((1, 2), (1, 16), (1, 32)), ShapeRange((1, 33), (1, 128), (1, 256)))
    assert item.shared_dims == {}


def test_parse_declarations_takes_a_size_as_a_range() -> None:
    assert only("int64[1|2:4:8]").profiles == (ShapeRange((1,), (1,), (1,)), ShapeRange((2,), (4,), (8,)))


def test_parse_declarations_shares_labelled_dims() -> None:
    first, second = parse_declarations(["int64[1,S=2:4:8|9:16:32]", "float32[S,S]"])
    assert isinstance(first, Input)
    assert isinstance(second, Input)
    assert (first.shared_dims, second.shared_dims) == ({1: "S"}, {0: "S", 1: "S"})
    assert second.profiles[1] == ShapeRange((9, 9), (16, 16), (32, 32))


def test_parse_declarations_takes_names() -> None:
    declared = parse_declarations(["mask=int64[1,S=1:2:3]", "ids=int64[1,S]"])
    assert isinstance(declared, dict)
    assert list(declared) == ["mask", "ids"]
    assert declared["ids"].name == "ids"


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        (["float32"], "--input is not a declaration: got 'float32', allowed [NAME=]DTYPE[DIM,DIM,...]"),
        (["[1,2]"], "--input is not a declaration: got '[1,2]'"),
        (["half[1]"], "--input 'half[1]': input has an unknown dtype: got 'half', allowed float32, "),
        (["float32[1,x]"], "--input 'float32[1,x]' dim 1 is not declared: got 'x', allowed none"),
        (["float32[1:2]"], "dim 0 is not valid: got '1:2', allowed a size, or min:opt:max"),
        (["float32[-1]"], "dim 0 is not valid: got '-1'"),
        (["float32[1,]"], "dim 1 is not valid: got ''"),
        (["float32[1.5]"], "dim 0 is not valid: got '1.5'"),
        (["float32[0]"], "dim 0 is not valid: got 0, allowed an int from 1"),
        (["float32[4:2:8]"], "min_shape above opt_shape: got 4 > 2"),
        (["float32[1:9:8]"], "opt_shape above max_shape: got 9 > 8"),
        (["float32[1|2,1|2|3]"], "different numbers of optimization profiles: got 2, 3"),
        (["float32[S=1:2:3]", "float32[S=1:2:4]"], "dim 0 declares 'S' again: got 'S=1:2:4', allowed 'S' alone"),
        (["a=float32[1]", "float32[1]"], "--input has names in part: got 'a', ''"),
        (["a=float32[1]", "a=float32[1]"], "--input has names in part: got 'a', 'a'"),
    ],
)
def test_parse_declarations_names_what_is_wrong(texts: list[str], told: str) -> None:
    with pytest.raises(ValueError, match=re.escape(told)):
        parse_declarations(texts)


def test_parse_engine_options_reads_numbers_words_and_lists() -> None:
    texts = [
        "optimization_level=3",
        "hardware_compatible=true",
        "precision=fp16",
        "target=8.9",
        "target=12.0",
        "path=a=b",
    ]
    assert parse_engine_options(texts) == {
        "optimization_level": 3,
        "hardware_compatible": True,
        "precision": "fp16",
        "target": ["8.9", "12.0"],
        "path": "a=b",
    }


@pytest.mark.parametrize("text", ["precision", "=fp16", "precision="])
def test_parse_engine_options_names_what_is_wrong(text: str) -> None:
    with pytest.raises(ValueError, match=f"--engine-option is not valid: got '{text}', allowed NAME=VALUE"):
        parse_engine_options([text])
