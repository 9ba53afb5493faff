"""Input objects of Torch-TensorRT, releases 2.8 to 2.14, are input declarations."""

from __future__ import annotations

from enum import Enum, auto
from typing import Any

import pytest
import torch

from executorch_tensorrt.inputs import Input, as_input


class Dtype(Enum):
    """`torch_tensorrt.dtype`: its members, which compare with anything that is a data type and with nothing else."""

    unknown = auto()
    u8 = auto()
    i8 = auto()
    i32 = auto()
    i64 = auto()
    f16 = auto()
    f32 = auto()
    f64 = auto()
    b = auto()
    bf16 = auto()
    f8 = auto()
    f4 = auto()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Dtype):
            raise TypeError(f"no data type: {other}")
        return self.value == other.value

    def __hash__(self) -> int:
        return hash(self.value)


class Layout(Enum):
    """`torch_tensorrt.memory_format`."""

    linear = auto()
    chw2 = auto()
    hwc = auto()


class TheirInput:
    """`torch_tensorrt.Input`: the attributes that its constructor leaves, without the checks.

    `shared_dims` came with 2.13, `profiles` with 2.14.
    """

    class _ShapeMode(Enum):
        STATIC = 0
        DYNAMIC = 1

    def __init__(self, shape: Any = None, *, new: bool = True, **declared: Any) -> None:
        profiles = declared.get("profiles")
        if profiles:
            union = {
                "min_shape": tuple(map(min, *(entry["min_shape"] for entry in profiles))),
                "opt_shape": profiles[0]["opt_shape"],
                "max_shape": tuple(map(max, *(entry["max_shape"] for entry in profiles))),
            }
        else:
            union = {field: declared.get(field) for field in ("min_shape", "opt_shape", "max_shape")}
        self.shape_mode = self._ShapeMode.DYNAMIC if shape is None else self._ShapeMode.STATIC
        self.shape = union if shape is None else tuple(shape)
        self.dtype = declared.get("dtype", Dtype.unknown)
        self.format = declared.get("format", Layout.linear)
        self.tensor_domain = declared.get("tensor_domain", (0.0, 2.0))
        self.torch_tensor = torch.zeros(1)
        self.is_shape_tensor = declared.get("is_shape_tensor", False)
        self.name = declared.get("name", "")
        if new:
            self.profiles = profiles
            self.shared_dims = declared.get("shared_dims", {})


def span(low: Any, opt: Any, high: Any) -> dict[str, Any]:
    return {"min_shape": low, "opt_shape": opt, "max_shape": high}


@pytest.mark.parametrize("new", [False, True], ids=["2.8", "2.14"])
def test_static_input_is_accepted(new: bool) -> None:
    item = as_input(TheirInput((1, 2), dtype=Dtype.f16, name="x", new=new), "input 0")
    assert item.profiles == (((1, 2), (1, 2), (1, 2)),)
    assert (item.dtype, item.name, item.shared_dims) == ("float16", "x", {})


@pytest.mark.parametrize("new", [False, True], ids=["2.8", "2.14"])
def test_dynamic_input_is_one_profile(new: bool) -> None:
    item = as_input(TheirInput(**span((1, 2), (4, 2), (8, 2)), new=new), "input 0")
    assert item.profiles == (((1, 2), (4, 2), (8, 2)),)
    assert item.dtype == "float32"


def test_profiles_are_taken_over_in_their_order() -> None:
    theirs = TheirInput(profiles=[span((1, 1), (1, 1), (1, 1)), span((1, 2), (1, 8), (1, 32))], shared_dims={1: "s"})
    item = as_input(theirs, "input 0")
    assert item.profiles == (((1, 1), (1, 1), (1, 1)), ((1, 2), (1, 8), (1, 32)))
    assert item.shared_dims == {1: "s"}
    assert item.union.max == theirs.shape["max_shape"]


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        (Dtype.u8, "uint8"),
        (Dtype.i8, "int8"),
        (Dtype.i32, "int32"),
        (Dtype.i64, "int64"),
        (Dtype.f16, "float16"),
        (Dtype.f32, "float32"),
        (Dtype.f64, "float64"),
        (Dtype.b, "bool"),
        (Dtype.bf16, "bfloat16"),
    ],
)
def test_every_data_type_is_known(dtype: Dtype, name: str) -> None:
    assert as_input(TheirInput((1,), dtype=dtype), "input 0").dtype == name


@pytest.mark.parametrize("dtype", [Dtype.f8, Dtype.f4])
def test_data_type_that_executorch_lacks_is_refused(dtype: Dtype) -> None:
    with pytest.raises(ValueError, match="unknown dtype: got <Dtype"):
        as_input(TheirInput((1,), dtype=dtype), "input 0")


def test_tensor_domain_is_passed_over() -> None:
    assert as_input(TheirInput((2,), tensor_domain=(5.0, 9.0)), "input 0").profiles[0].max == (2,)


@pytest.mark.parametrize("layout", [Layout.hwc, Layout.chw2])
def test_other_layout_is_refused(layout: Layout) -> None:
    with pytest.raises(ValueError, match=f"input 0 has a memory layout .*: got format {layout.name}, allowed linear"):
        as_input(TheirInput((1, 3, 8, 8), format=layout), "input 0")


def test_shape_tensor_is_refused() -> None:
    with pytest.raises(ValueError, match="input 0 is a shape tensor: got is_shape_tensor=True"):
        as_input(TheirInput((2,), is_shape_tensor=True), "input 0")


def test_empty_range_is_refused() -> None:
    with pytest.raises(ValueError, match="got 0, allowed an int from 1"):
        as_input(TheirInput(**span((0, 2), (4, 2), (8, 2))), "input 0")


def test_own_input_is_itself() -> None:
    item = Input(shape=(1,))
    assert as_input(item, "input 0") is item
