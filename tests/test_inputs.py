"""Input: declarations that are accepted, and what is said of those that are not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from executorch_tensorrt import Input
from executorch_tensorrt.inputs import as_input, profile_count, profile_of


def span(low: Any, opt: Any, high: Any) -> dict[str, Any]:
    return {"min_shape": low, "opt_shape": opt, "max_shape": high}


def test_input_holds_a_static_shape() -> None:
    item = Input((1, 64))
    assert item.is_static
    assert item.profiles == (((1, 64), (1, 64), (1, 64)),)
    assert item.dtype == "float32"
    assert repr(item) == "Input((1, 64), dtype='float32')"


def test_input_holds_profiles_in_list_order() -> None:
    item = Input(profiles=[span((1, 1), (1, 1), (1, 1)), span([1, 2], [1, 8], [1, 64])], dtype="int64", name="ids")
    assert [entry.max for entry in item.profiles] == [(1, 1), (1, 64)]
    assert item.union == ((1, 1), (1, 1), (1, 64))
    assert not item.is_static
    assert repr(item).startswith("Input(profiles=[{'min_shape': (1, 1)")


def test_input_holds_one_range() -> None:
    assert Input(min_shape=(1,), opt_shape=(2,), max_shape=(3,)).profiles == (((1,), (2,), (3,)),)


def test_input_accepts_a_scalar_and_numpy_dims() -> None:
    assert Input(()).rank == 0
    assert Input(np.array([2, 3]).tolist()).profiles[0].min == (2, 3)
    assert Input((np.int64(2),)).profiles[0].min == (2,)


@pytest.mark.parametrize("dtype", ["int64", "torch.int64", np.int64, np.dtype("int64")])
def test_input_accepts_dtypes_by_any_name(dtype: object) -> None:
    assert Input((1,), dtype=dtype).dtype == "int64"


def test_input_accepts_torch_dtypes() -> None:
    torch = pytest.importorskip("torch")
    assert Input((1,), dtype=torch.bool).dtype == "bool"
    assert Input((1,), dtype=torch.bfloat16).dtype == "bfloat16"
    assert Input(torch.Size([1, 2])).profiles[0].min == (1, 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, r"exactly one declaration of its shapes: got nothing"),
        ({"shape": (1,), "profiles": []}, r"got shape, profiles"),
        ({"profiles": []}, r"input 'ids' profiles is empty: got \[\]"),
        (
            {"profiles": [span((1, 2), (1, 1), (1, 3))]},
            r"input 'ids' profile 0 dim 1 has min_shape above opt_shape: got 2 > 1 in \(1, 2\) and \(1, 1\)",
        ),
        (
            {"profiles": [span((1,), (1,), (1,)), span((1,), (9,), (3,))]},
            r"input 'ids' profile 1 dim 0 has opt_shape above max_shape: got 9 > 3 in \(9,\) and \(3,\)",
        ),
        ({"profiles": [span((0,), (1,), (2,))]}, r"input 'ids' profile 0 min_shape dim 0 is not valid: got 0, allowed"),
        ({"profiles": [span((1,), (-1,), (2,))]}, r"profile 0 opt_shape dim 0 is not valid: got -1"),
        ({"profiles": [span((1,), (True,), (2,))]}, r"profile 0 opt_shape dim 0 is not valid: got True"),
        ({"profiles": [span((1,), (1,), (2.0,))]}, r"profile 0 max_shape dim 0 is not valid: got 2.0"),
        (
            {"shape": (2**31,)},
            r"input 'ids' shape dim 0 is not valid: got 2147483648, allowed an int from 1 to 2147483647",
        ),
        ({"profiles": [span((1,), (1, 1), (2,))]}, r"profile 0 has shapes of different rank: got min_shape \(1,\)"),
        ({"profiles": [span((1,), (1,), (1,)), span((1, 1), (1, 1), (1, 1))]}, r"profile 1 has another rank"),
        ({"profiles": [{"min_shape": (1,), "opt_shape": (1,)}]}, r"profile 0 has the wrong fields: got no max_shape"),
        ({"profiles": [{**span((1,), (1,), (1,)), "best": (1,)}]}, r"profile 0 has the wrong fields: got unknown best"),
        ({"min_shape": (1,), "max_shape": (2,)}, r"input 'ids' has the wrong fields: got no opt_shape"),
        ({"shape": (1,), "dtype": "float8"}, r"input 'ids' has an unknown dtype: got 'float8', allowed float32"),
        ({"shape": (1,), "shared_dims": {1: "s"}}, r"shared_dims has a wrong axis: got 1, allowed 0 to 0"),
        ({"shape": (1,), "shared_dims": {0: "a b"}}, r"shared_dims\[0\] has a wrong name: got 'a b'"),
    ],
)
def test_input_refuses_values(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Input(**arguments, name="ids")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"shape": 3}, r"input shape is not a shape: got int, allowed a tuple or list of ints"),
        ({"shape": "12"}, r"input shape is not a shape: got str"),
        ({"profiles": "all"}, r"input profiles is not a list: got str"),
        ({"profiles": [(1, 2, 3)]}, r"input profile 0 is not a dict: got tuple"),
        ({"shape": (1,), "shared_dims": ["s"]}, r"input shared_dims is not a dict: got list"),
    ],
)
def test_input_refuses_kinds(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        Input(**arguments)


def test_input_counts_axes_from_the_end() -> None:
    assert Input((1, 2), shared_dims={-1: "s"}).shared_dims == {1: "s"}


def test_profile_count_lets_one_range_stand_for_all() -> None:
    two = Input(profiles=[span((1,), (1,), (1,)), span((2,), (3,), (4,))])
    one = Input((5,))
    assert profile_count([("a", one), ("b", two)]) == 2
    assert profile_of(one, 1).min == (5,)
    assert profile_of(two, 1).max == (4,)


def test_profile_count_refuses_unequal_counts() -> None:
    one = span((1,), (1,), (1,))
    with pytest.raises(
        ValueError, match=r"input 1 'b' has another number of optimization profiles than input 0 'a': got 3"
    ):
        profile_count([("input 0 'a'", Input(profiles=[one] * 2)), ("input 1 'b'", Input(profiles=[one] * 3))])


def test_as_input_refuses_other_things() -> None:
    with pytest.raises(TypeError, match=r"input 2 is not an input declaration: got tuple, allowed Input"):
        as_input((1, 2), "input 2")
