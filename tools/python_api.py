"""What Python modules offer, a line for each name: signatures, fields and members."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from importlib import import_module
from typing import Any

_WIDTH = 110
_SPECIAL = ("__enter__", "__exit__", "__call__", "__len__", "__iter__", "__getitem__")


class _Verbatim(str):
    """An annotation that is shown without quotation marks."""

    def __repr__(self) -> str:
        return str(self)


def describe_modules(names: Iterable[str]) -> Iterator[str]:
    """The public names of modules; a name that an earlier one has is not told again."""
    seen: dict[int, str] = {}
    for module_name in names:
        module = import_module(module_name)
        for name in sorted(module.__all__):
            value, path = getattr(module, name), f"{module_name}.{name}"
            if (first := seen.get(id(value))) is not None:
                yield f"{path} is {first}"
                continue
            seen[id(value)] = path
            yield from _describe(path, value)


def _describe(path: str, value: Any) -> Iterator[str]:
    if getattr(value, "__module__", "") == "executorch_tensorrt._native":
        yield f"{path} is executorch_tensorrt._native.{value.__name__}"
    elif inspect.isclass(value):
        yield from _class(path, value)
    elif inspect.isfunction(value):
        yield from _callable(path, value)
    elif path.endswith("__version__"):
        yield path
    else:
        yield f"{path} = {value}"


def _class(path: str, cls: type) -> Iterator[str]:
    bases = [base.__name__ for base in cls.__bases__ if base is not object]
    yield f"class {path}({', '.join(bases)})" if bases else f"class {path}"
    if is_dataclass(cls):
        yield from (f"    {_field(field)}" for field in fields(cls))
    elif "__init__" in vars(cls):
        yield from _indented(_callable("__init__", cls.__init__))
    for name, value in _members(cls):
        if isinstance(value, property):
            assert value.fget is not None
            yield f"    {name}: {_text(inspect.signature(value.fget).return_annotation)}"
        elif isinstance(value, (staticmethod, classmethod)):
            yield from _indented(_callable(f"{type(value).__name__} {name}", value.__func__))
        elif inspect.isfunction(value):
            yield from _indented(_callable(name, value))


def _members(cls: type) -> list[tuple[str, Any]]:
    """Those that a class of this package defines, the most derived first."""
    found: dict[str, Any] = {}
    for base in cls.__mro__:
        if base.__module__.startswith("executorch_tensorrt"):
            found = {**vars(base), **found}
    return sorted((name, value) for name, value in found.items() if not name.startswith("_") or name in _SPECIAL)


def _field(field: Field[Any]) -> str:
    text = f"{field.name}: {_text(field.type)}"
    if field.default is not MISSING:
        return f"{text} = {field.default!r}"
    return text if field.default_factory is MISSING else f"{text} = ..."


def _callable(name: str, function: Callable[..., Any]) -> Iterator[str]:
    """One line, or where it is too long, one for each parameter."""
    signature = inspect.signature(function)
    shown = signature.replace(
        parameters=[p.replace(annotation=_annotation(p.annotation)) for p in signature.parameters.values()],
        return_annotation=_annotation(signature.return_annotation),
    )
    text = re.sub(r" at 0x[0-9a-f]+", "", f"{name}{shown}")
    if len(text) <= _WIDTH:
        yield text
        return
    yield f"{name}("
    for parameter in shown.parameters.values():
        star = {inspect.Parameter.KEYWORD_ONLY: "keyword ", inspect.Parameter.POSITIONAL_ONLY: "positional "}
        yield f"    {star.get(parameter.kind, '')}{parameter}"
    yield f") -> {_text(signature.return_annotation)}"


def _annotation(annotation: Any) -> Any:
    return annotation if annotation is inspect.Signature.empty else _Verbatim(_text(annotation))


def _text(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"    {line}" for line in lines)
