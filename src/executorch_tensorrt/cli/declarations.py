"""`etrt export --input`: from a text to an `Input` with its optimization profiles."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from executorch_tensorrt.inputs import Input

GRAMMAR = """\
[NAME=]DTYPE[DIM,DIM,...]. A DIM is a size, or one range min:opt:max per optimization profile, separated by '|'. \
LABEL=RANGES gives a dim a name; LABEL alone is that same dim in another place."""

EXAMPLE = "int64[1,S=2:16:32|33:128:256]"

_INPUT = re.compile(r"(?:(?P<name>[A-Za-z_]\w*)=)?(?P<dtype>\w+)\[(?P<dims>[^\[\]]*)\]")
_DIM = re.compile(r"(?:(?P<label>[A-Za-z_]\w*)=)?(?P<ranges>[\d:|\s]+)")
_RANGE = re.compile(r"\d+|\d+:\d+:\d+")


class _Span(NamedTuple):
    min: int
    opt: int
    max: int


def parse_declarations(texts: Sequence[str]) -> list[Input] | dict[str, Input]:
    """The inputs of a method, in order, or by argument name if the texts have names.

    Raises:
        ValueError: a text is not as the grammar says. The message names the text and the part of it.
    """
    labels: dict[str, list[_Span]] = {}
    found = [_declaration(text, labels) for text in texts]
    names = [name for name, _ in found]
    if not any(names):
        return [item for _, item in found]
    if not all(names) or len(set(names)) < len(names):
        raise ValueError(
            f"--input has names in part: got {', '.join(repr(name) for name in names)}, allowed a different NAME= for "
            "every input, or none; name all of them."
        )
    return dict(found)


def parse_engine_options(texts: Sequence[str]) -> dict[str, object]:
    """Options written name=value. Numbers without a point, true and false are meant as such; a repeated name is a list.

    Raises:
        ValueError: a text is not of that form.
    """
    found: dict[str, list[object]] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise ValueError(f"--engine-option is not valid: got '{text}', allowed NAME=VALUE; correct it.")
        words: dict[str, object] = {"true": True, "false": False}
        found.setdefault(name, []).append(int(value) if re.fullmatch(r"-?\d+", value) else words.get(value, value))
    return {name: values if len(values) > 1 else values[0] for name, values in found.items()}


def _declaration(text: str, labels: dict[str, list[_Span]]) -> tuple[str, Input]:
    match = _INPUT.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"--input is not a declaration: got '{text}', allowed {GRAMMAR} Write it as '{EXAMPLE}'.")
    name = match["name"] or ""
    dims = [part.strip() for part in match["dims"].split(",")] if match["dims"].strip() else []
    spans: list[list[_Span]] = []
    shared: dict[int, str] = {}
    for axis, dim in enumerate(dims):
        label, ranges = _dim(f"--input '{text}' dim {axis}", dim, labels)
        spans.append(ranges)
        if label:
            shared[axis] = label
    count = _profile_count(text, spans)
    profiles = [
        {f"{field}_shape": [getattr(_of(dim, index), field) for dim in spans] for field in _Span._fields}
        for index in range(count)
    ]
    try:
        return name, Input(profiles=profiles, dtype=match["dtype"], shared_dims=shared, name=name)
    except ValueError as error:
        raise ValueError(f"--input '{text}': {error}") from error


def _dim(where: str, text: str, labels: dict[str, list[_Span]]) -> tuple[str, list[_Span]]:
    if text.isidentifier():
        if text not in labels:
            known = ", ".join(labels) or "none"
            raise ValueError(f"{where} is not declared: got '{text}', allowed {known}; write {text}=min:opt:max first.")
        return text, labels[text]
    match = _DIM.fullmatch(text)
    parts = [part.strip() for part in match["ranges"].split("|")] if match else []
    if match is None or not all(_RANGE.fullmatch(part) for part in parts):
        raise ValueError(
            f"{where} is not valid: got '{text}', allowed a size, or min:opt:max for each optimization profile with "
            "'|' between, or the label of a dim before; write it as 2:16:32|33:128:256."
        )
    sizes = [[int(size) for size in part.split(":")] for part in parts]
    ranges = [_Span(*(size if len(size) == 3 else size * 3)) for size in sizes]
    label = match["label"] or ""
    if label and labels.setdefault(label, ranges) != ranges:
        raise ValueError(f"{where} declares '{label}' again: got '{text}', allowed '{label}' alone; drop its ranges.")
    return label, ranges


def _profile_count(text: str, spans: Sequence[Sequence[_Span]]) -> int:
    counts = {len(ranges) for ranges in spans} - {1}
    if len(counts) > 1:
        raise ValueError(
            f"--input '{text}' has dims with different numbers of optimization profiles: got "
            f"{', '.join(map(str, sorted(counts)))}, allowed 1 or one other number; give every range a twin."
        )
    return counts.pop() if counts else 1


def _of(ranges: Sequence[_Span], index: int) -> _Span:
    return ranges[index] if len(ranges) > 1 else ranges[0]
