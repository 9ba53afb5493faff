"""What a method's inputs may look like: `Input` and the optimization profiles it declares."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

_FIELDS = ("min_shape", "opt_shape", "max_shape")

DTYPES = (
    "float32",
    "float16",
    "bfloat16",
    "float64",
    "int64",
    "int32",
    "int16",
    "int8",
    "uint8",
    "bool",
)

# Torch-TensorRT's dtype enum (`torch_tensorrt.dtype.f32`) names its members this way.
_TORCH_TENSORRT_DTYPES = {
    "f32": "float32",
    "f16": "float16",
    "bf16": "bfloat16",
    "f64": "float64",
    "i64": "int64",
    "i32": "int32",
    "i8": "int8",
    "u8": "uint8",
    "b": "bool",
    "unknown": "float32",
}


class ShapeRange(NamedTuple):
    """The shapes one optimization profile allows for one input."""

    min: tuple[int, ...]
    opt: tuple[int, ...]
    max: tuple[int, ...]


class Input:
    """One input of a method: its data type and the shapes of each optimization profile.

    Give either `shape` (static), or `min_shape`, `opt_shape` and `max_shape` (one range), or `profiles`, a list of
    dicts with those three keys. The position in the list is the optimization profile's index. An input with one range
    beside inputs with N profiles is the same in all N.

    Args:
        shape: a static shape, such as (1, 64).
        profiles: one dict per optimization profile, for example
            `[{"min_shape": (1, 1), "opt_shape": (1, 1), "max_shape": (1, 1)}, ...]`.
        min_shape, opt_shape, max_shape: the ends of a single range and the shape to tune for.
        dtype: a torch dtype, a NumPy dtype or a name such as "int64".
        shared_dims: axis to name. Axes with one name are one dimension: always equal, in every input.
        name: how messages call this input.

    Raises:
        ValueError: a shape or a range is not valid. The message names profile, field and dim.
        TypeError: an argument is not of the right kind.
    """

    profiles: tuple[ShapeRange, ...]
    dtype: str
    shared_dims: dict[int, str]
    name: str

    def __init__(
        self,
        shape: Sequence[int] | None = None,
        *,
        profiles: Sequence[Mapping[str, Sequence[int]]] | None = None,
        min_shape: Sequence[int] | None = None,
        opt_shape: Sequence[int] | None = None,
        max_shape: Sequence[int] | None = None,
        dtype: object = "float32",
        shared_dims: Mapping[int, str] | None = None,
        name: str = "",
    ) -> None:
        self.name = name
        label = f"input '{name}'" if name else "input"
        given = {"min_shape": min_shape, "opt_shape": opt_shape, "max_shape": max_shape}
        given = {field: value for field, value in given.items() if value is not None}
        if (shape is not None) + (profiles is not None) + bool(given) != 1:
            raise ValueError(
                f"{label} needs exactly one declaration of its shapes: got "
                f"{_listing(['shape'] * (shape is not None) + list(given) + ['profiles'] * (profiles is not None))}, "
                "allowed shape, or min_shape with opt_shape and max_shape, or profiles; keep one of them."
            )
        if shape is not None:
            static = _shape(shape, f"{label} shape")
            self.profiles = (ShapeRange(static, static, static),)
        elif profiles is not None:
            self.profiles = _profiles(profiles, label)
        else:
            self.profiles = (_range(given, label),)
        self.dtype = dtype_name(dtype, label)
        self.shared_dims = _shared_dims(shared_dims, self.rank, label)

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.profiles[0].min)

    @property
    def is_static(self) -> bool:
        """Whether every profile allows one and the same shape."""
        return self.union.min == self.union.max

    @property
    def union(self) -> ShapeRange:
        """The smallest range that holds every profile; `opt` is the first profile's."""
        lows = zip(*(profile.min for profile in self.profiles), strict=True)
        highs = zip(*(profile.max for profile in self.profiles), strict=True)
        return ShapeRange(tuple(map(min, lows)), self.profiles[0].opt, tuple(map(max, highs)))

    def __repr__(self) -> str:
        parts = [f"dtype='{self.dtype}'"]
        if len(self.profiles) == 1 and self.is_static:
            parts.insert(0, str(self.profiles[0].min))
        else:
            ranges = [dict(zip(_FIELDS, profile, strict=True)) for profile in self.profiles]
            parts.insert(0, f"profiles={ranges}")
        if self.shared_dims:
            parts.append(f"shared_dims={self.shared_dims}")
        if self.name:
            parts.append(f"name='{self.name}'")
        return f"Input({', '.join(parts)})"


def as_input(value: object, label: str) -> Input:
    """Accept an `Input`, or an object with the attributes of `torch_tensorrt.Input`.

    Its `tensor_domain` and `torch_tensor`, which serve to make examples, are passed over.

    Raises:
        TypeError: `value` is neither.
        ValueError: it declares what engines do not take here.
    """
    if isinstance(value, Input):
        return value
    if not hasattr(value, "shape_mode") or not hasattr(value, "dtype"):
        raise TypeError(
            f"{label} is not an input declaration: got {type(value).__name__}, allowed Input or "
            "torch_tensorrt.Input; wrap the shape in Input(...)."
        )
    theirs = cast(Any, value)
    layout = str(getattr(getattr(theirs, "format", None), "name", "linear"))
    if layout not in ("linear", "contiguous"):
        raise ValueError(
            f"{label} has a memory layout that engines do not exchange: got format {layout}, allowed linear; declare "
            "it without format."
        )
    if getattr(theirs, "is_shape_tensor", False):
        raise ValueError(
            f"{label} is a shape tensor: got is_shape_tensor=True, allowed tensors of data; pass the size as a dim of "
            "a tensor."
        )
    shapes: dict[str, Any] = {}
    if getattr(theirs, "profiles", None):
        shapes["profiles"] = theirs.profiles
    elif isinstance(cast(object, theirs.shape), Mapping):
        shapes.update(theirs.shape)
    else:
        shapes["shape"] = theirs.shape
    return Input(
        **shapes,
        dtype=theirs.dtype,
        shared_dims=getattr(theirs, "shared_dims", None),
        name=getattr(theirs, "name", "") or "",
    )


def profile_count(inputs: Sequence[tuple[str, Input]]) -> int:
    """The number of optimization profiles that labelled inputs declare together.

    Raises:
        ValueError: two inputs declare different numbers of profiles, both above one.
    """
    count, first = 1, ""
    for label, item in inputs:
        own = len(item.profiles)
        if own == 1 or own == count:
            continue
        if count > 1:
            raise ValueError(
                f"{label} has another number of optimization profiles than {first}: got {own}, allowed 1 or {count}; "
                "declare one range per profile for each input."
            )
        count, first = own, label
    return count


def profile_of(item: Input, index: int) -> ShapeRange:
    """The range of profile `index`; an input with one range has it in every profile."""
    return item.profiles[index if len(item.profiles) > 1 else 0]


def dtype_name(dtype: object, label: str = "input") -> str:
    """The name of a torch, NumPy or Torch-TensorRT data type: "float32" and so on.

    Raises:
        ValueError: the type is not one that engines take.
    """
    if isinstance(dtype, type):
        name = dtype.__name__
    else:
        name = _TORCH_TENSORRT_DTYPES.get(str(getattr(dtype, "name", "")), str(dtype))
    name = {"bool_": "bool", "float": "float32", "int": "int64"}.get(name, name.removeprefix("torch."))
    if name not in DTYPES:
        raise ValueError(f"{label} has an unknown dtype: got {dtype!r}, allowed {', '.join(DTYPES)}; use one of them.")
    return name


def _profiles(profiles: object, label: str) -> tuple[ShapeRange, ...]:
    if not isinstance(profiles, Sequence) or isinstance(profiles, (str, bytes)):
        raise TypeError(
            f"{label} profiles is not a list: got {type(profiles).__name__}, allowed a list of dicts with "
            f"{_listing(_FIELDS)}; give one dict per optimization profile."
        )
    entries = cast("Sequence[object]", profiles)
    if not entries:
        raise ValueError(
            f"{label} profiles is empty: got [], allowed one or more dicts with {_listing(_FIELDS)}; "
            "declare at least one optimization profile."
        )
    ranges = tuple(_range(entry, f"{label} profile {index}") for index, entry in enumerate(entries))
    for index, entry in enumerate(ranges):
        if len(entry.min) != len(ranges[0].min):
            raise ValueError(
                f"{label} profile {index} has another rank than profile 0: got {entry.min} of rank {len(entry.min)}, "
                f"allowed rank {len(ranges[0].min)}; give all profiles of an input the same rank."
            )
    return ranges


def _range(entry: object, label: str) -> ShapeRange:
    if not isinstance(entry, Mapping):
        raise TypeError(
            f"{label} is not a dict: got {type(entry).__name__}, allowed a dict with {_listing(_FIELDS)}; "
            "name the three shapes."
        )
    fields = cast("Mapping[object, object]", entry)
    unknown = [key for key in fields if key not in _FIELDS]
    missing = [key for key in _FIELDS if key not in fields]
    if unknown or missing:
        what = f"unknown {_listing(unknown)}" if unknown else f"no {_listing(missing)}"
        raise ValueError(
            f"{label} has the wrong fields: got {what}, allowed exactly {_listing(_FIELDS)}; give all three shapes."
        )
    low, opt, high = (_shape(fields[field], f"{label} {field}") for field in _FIELDS)
    if not len(low) == len(opt) == len(high):
        raise ValueError(
            f"{label} has shapes of different rank: got min_shape {low}, opt_shape {opt}, max_shape {high}, "
            "allowed one rank; give the three shapes the same number of dims."
        )
    for dim, (lowest, tuned, highest) in enumerate(zip(low, opt, high, strict=True)):
        if lowest > tuned:
            raise ValueError(
                f"{label} dim {dim} has min_shape above opt_shape: got {lowest} > {tuned} in {low} and {opt}, "
                f"allowed min at most {tuned}; lower min_shape or raise opt_shape."
            )
        if tuned > highest:
            raise ValueError(
                f"{label} dim {dim} has opt_shape above max_shape: got {tuned} > {highest} in {opt} and {high}, "
                f"allowed opt at most {highest}; lower opt_shape or raise max_shape."
            )
    return ShapeRange(low, opt, high)


def _shape(value: object, label: str) -> tuple[int, ...]:
    if not isinstance(value, Sequence) or isinstance(value, (str, bytes)):
        raise TypeError(
            f"{label} is not a shape: got {type(value).__name__}, allowed a tuple or list of ints; write it as (1, 64)."
        )
    return tuple(_dim(dim, f"{label} dim {axis}") for axis, dim in enumerate(cast("Sequence[object]", value)))


def _dim(value: object, label: str) -> int:
    try:
        dim = 0 if isinstance(value, bool) else operator.index(cast(Any, value))
    except TypeError:
        dim = 0
    if dim < 1 or dim > 2**31 - 1:
        raise ValueError(f"{label} is not valid: got {value!r}, allowed an int from 1 to 2147483647; correct it.")
    return dim


def _shared_dims(shared: object, rank: int, label: str) -> dict[int, str]:
    if shared is None:
        return {}
    if not isinstance(shared, Mapping):
        raise TypeError(
            f"{label} shared_dims is not a dict: got {type(shared).__name__}, allowed a dict of axis to name; "
            'write it as {1: "seq"}.'
        )
    result: dict[int, str] = {}
    for axis, name in cast("Mapping[object, object]", shared).items():
        if isinstance(axis, bool) or not isinstance(axis, int) or not -rank <= axis < rank:
            raise ValueError(
                f"{label} shared_dims has a wrong axis: got {axis!r}, allowed 0 to {rank - 1}; name an existing dim."
            )
        if not isinstance(name, str) or not name.isidentifier():
            raise ValueError(
                f"{label} shared_dims[{axis}] has a wrong name: got {name!r}, allowed an identifier; "
                'write it as {1: "seq"}.'
            )
        result[axis % rank] = name
    return result


def _listing(names: Sequence[object]) -> str:
    return ", ".join(str(name) for name in names) or "nothing"
