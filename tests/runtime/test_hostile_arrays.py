"""Arrays that lie: about what they are, or in what their methods give. Never read beyond, and a TypeError."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from models import rows

from executorch_tensorrt import Module

WIDE = np.ones((4, 2), np.float32).T  # not contiguous: its library is asked for a copy
SHAPE = (2, 4)


@pytest.fixture(scope="module")
def module() -> Module:
    return Module(rows().buffer)


class Array:
    """An array with DLPack that says more."""

    def __init__(self, array: np.ndarray[Any, Any] = WIDE, **says: Any) -> None:
        self.array = array
        vars(self).update(says)

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


class Permuted(Array):
    """Whose copy is another array."""

    def __init__(self, copy: Any) -> None:
        super().__init__()
        self.copy = copy

    def permute(self, _order: list[int]) -> Permuted:
        return self

    def contiguous(self) -> Any:
        return self.copy


def result(module: Module, array: Any) -> Any:
    return module.forward(array)[0]


def test_array_that_is_honest_runs(module: Module) -> None:
    expected = result(module, np.ones(SHAPE, np.float32))
    np.testing.assert_array_equal(result(module, Permuted(np.ones(SHAPE, np.float32))), expected)


@pytest.mark.parametrize(
    "copy",
    [
        np.ones((1, 1), np.float32),
        np.ones((4, 2), np.float32),
        np.ones(SHAPE, np.float64),
        np.ones(8, np.float32),
        WIDE,
        None,
        "text",
    ],
    ids=["smaller", "turned", "wider", "flat", "not contiguous", "none", "text"],
)
def test_copy_that_is_another_array_is_refused(module: Module, copy: Any) -> None:
    with pytest.raises(TypeError, match="method 'forward' input 0: got Permuted, allowed"):
        result(module, Permuted(copy))


def test_array_that_detaches_to_itself_runs(module: Module) -> None:
    array = Array(np.ones(SHAPE, np.float32), requires_grad=True)
    array.detach = lambda: array  # type: ignore[attr-defined]
    np.testing.assert_array_equal(result(module, array), result(module, np.ones(SHAPE, np.float32)))


@pytest.mark.parametrize(
    "says",
    [
        {"requires_grad": "yes"},
        {"is_neg": lambda: "no"},
        {"requires_grad": True, "detach": lambda: None},
        {"is_neg": lambda: True, "resolve_neg": lambda: 3},
    ],
    ids=["requires_grad", "is_neg", "detach", "resolve_neg"],
)
def test_array_that_says_what_none_says_is_refused(module: Module, says: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="method 'forward' input 0: got Array.*, allowed a NumPy array"):
        result(module, Array(**says))


def test_error_has_no_control_characters_of_a_type(module: Module) -> None:
    kind = type("Red\x1b[31m\nINFO forged", (), {"dtype": "\u202efloat"})
    with pytest.raises(TypeError, match="input 0: got ") as error:
        result(module, kind())
    assert str(error.value).isprintable()
    assert r"Red\x1b[31m\x0aINFO forged of dtype \u202efloat" in str(error.value)
