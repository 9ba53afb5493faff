"""From JSON to dataclasses, with every field checked: what is read may be damaged, or made to do harm."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from types import UnionType
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

_T = TypeVar("_T")
_Build = Callable[[Any], Any]
_LARGEST = 1e18
_LARGEST_INT = 1 << 63
_DEEPEST = 20


class MismatchError(ValueError):
    """A value is not as its field says."""

    def __init__(self, got: object, allowed: str) -> None:
        super().__init__(got, allowed)
        self.path = ""
        self._got = _shortened(got)
        self._allowed = allowed

    def __str__(self) -> str:
        return f"{self.path.lstrip('.') or 'all of it'}: got {self._got}, allowed {self._allowed}"

    def inside(self, step: str) -> MismatchError:
        """The same, told from one level further out."""
        self.path = step + self.path
        return self


def parse(text: str | bytes, parse_float: Callable[[str], object] | None = None) -> Any:
    """JSON of which nothing is known.

    Raises:
        ValueError: it is none, or Python does not read it: nested a thousand deep, numbers of thousands of digits.
    """
    try:
        return json.loads(text, parse_float=parse_float)
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"it is no whole JSON: {error}") from None
    except RecursionError:
        raise ValueError("its JSON is nested too deeply") from None
    except ValueError:
        raise ValueError("its JSON has a number with thousands of digits") from None


def build(kind: type[_T], value: object) -> _T:
    """A dataclass from what `json.loads` gave. Keys that it lacks are passed over; absent ones take their defaults.

    Raises:
        MismatchError: a field is missing or has another type; the message names it.
    """
    return _builder(kind)(value)


@lru_cache(None)
def _builder(hint: Any) -> _Build:
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return _anything
    if dataclasses.is_dataclass(hint):
        return _dataclass(hint)
    if origin in (Union, UnionType):
        return _union(arguments)
    if origin is Literal:
        return _literal(arguments)
    if origin in (list, Sequence):
        return _list(_builder(arguments[0]))
    if origin is tuple:
        return _tuple([_builder(argument) for argument in arguments])
    if origin in (dict, Mapping):
        return _dict(_builder(arguments[1]))
    return _scalar(hint)


def _dataclass(kind: Any) -> _Build:
    hints = get_type_hints(kind)
    fields = dataclasses.fields(kind)
    builders = [(field.name, _builder(hints[field.name])) for field in fields]
    absent = dataclasses.MISSING
    required = {field.name for field in fields if field.default is absent and field.default_factory is absent}

    def make(value: Any) -> Any:
        _expect(isinstance(value, dict), value, "an object")
        if missing := required - value.keys():
            raise MismatchError("nothing", "a value").inside(f".{min(missing)}")
        found: dict[str, Any] = {}
        name = ""
        try:
            for name, inner in builders:
                if name in value:
                    found[name] = inner(value[name])
        except MismatchError as error:
            raise error.inside(f".{name}") from None
        return kind(**found)

    return make


def _list(inner: _Build) -> _Build:
    def make(value: Any) -> list[Any]:
        _expect(isinstance(value, list), value, "a list")
        found: list[Any] = []
        try:
            for item in value:
                found.append(inner(item))  # its length says where it failed
        except MismatchError as error:
            raise error.inside(f"[{len(found)}]") from None
        return found

    return make


def _tuple(inners: list[_Build]) -> _Build:
    def make(value: Any) -> tuple[Any, ...]:
        if type(value) is not list or len(cast("list[Any]", value)) != len(inners):
            raise MismatchError(cast("object", value), f"a list of {len(inners)}")
        return tuple(inner(item) for inner, item in zip(inners, cast("list[Any]", value), strict=True))

    return make


def _union(arguments: tuple[Any, ...]) -> _Build:
    """Of None and one type, or of plain types."""
    inners = [_builder(argument) for argument in arguments if argument is not type(None)]
    if len(inners) == 1:
        return lambda value: None if value is None and type(None) in arguments else inners[0](value)

    by_type = dict(zip(arguments, inners, strict=True))

    def make(value: Any) -> Any:
        _expect(type(value) in by_type, value, " or ".join(argument.__name__ for argument in arguments))
        return by_type[type(value)](value)

    return make


def _dict(inner: _Build) -> _Build:
    def make(value: Any) -> dict[str, Any]:
        _expect(isinstance(value, dict), value, "an object")
        found: dict[str, Any] = {}
        key = ""
        try:
            for key, item in value.items():
                found[key] = inner(item)
        except MismatchError as error:
            raise error.inside(f".{key:.40}") from None
        return found

    return make


def _literal(allowed: tuple[Any, ...]) -> _Build:
    def make(value: Any) -> Any:
        # A list is no key.
        _expect(isinstance(value, str) and value in allowed, value, ", ".join(map(repr, allowed)))
        return value

    return make


def _scalar(kind: type) -> _Build:
    if kind is float:
        return _number
    if kind is int:
        return _integer

    def make(value: Any) -> Any:
        _expect(type(value) is kind, value, kind.__name__)
        return value

    return make


def _number(value: Any) -> float:
    if type(value) in (float, int) and abs(value) < _LARGEST:  # infinite ones and NaN are not
        return value
    raise MismatchError(value, f"a number below {_LARGEST:g}")


def _integer(value: Any) -> int:
    if type(value) is int and abs(value) < _LARGEST_INT:  # bool is an int, and not allowed as one
        return value
    raise MismatchError(value, "int" if type(value) is not int else "an int of 64 bits")


def _anything(value: Any, depth: int = 0) -> Any:
    """A JSON value that everything can be done with: written again, shown, counted with."""
    if type(value) is str or type(value) is bool or value is None:
        return value
    if type(value) is int:
        return _integer(value)
    if type(value) is float:
        _expect(math.isfinite(value), value, "a finite number")
        return value
    _expect(depth < _DEEPEST, value, f"values nested at most {_DEEPEST} deep")
    items = cast("dict[str, Any]", value).values() if isinstance(value, dict) else cast("list[Any]", value)
    for item in items:
        _anything(item, depth + 1)
    return cast("object", value)


def _shortened(got: object) -> str:
    try:
        return f"{got!r:.40}"
    except RecursionError:
        return type(got).__name__


def _expect(condition: bool, got: object, allowed: str) -> None:
    if not condition:
        raise MismatchError(got, allowed)
