"""Proposed optimization profiles as declarations: Python for `export`, and texts for `etrt export --input`."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from executorch_tensorrt.inputs import DTYPES
from executorch_tensorrt.profiling.processors import Advice
from executorch_tensorrt.program.declaration import Dim, MethodInput
from executorch_tensorrt.words import count_text, share_text

_Span = tuple[int, int, int]
_FIELDS = ("min_shape", "opt_shape", "max_shape")


def python_code(advice: Advice) -> str:
    """A module that defines `inputs`, the list to give to `export`. Names are literals in it, whatever they hold."""
    head = [
        f"# Optimization profiles for method {json.dumps(advice.calls.method)}, proposed by 'etrt advise' from "
        f"{count_text(len(advice.served), 'call')}.",
        "from executorch_tensorrt import Input",
        "",
        "inputs = [",
    ]
    shares = [share_text(item.share) for item in advice.profiles]
    return "\n".join(
        [*head, *(line for k in range(len(advice.calls.inputs)) for line in _input(advice, k, shares)), "]\n"]
    )


def command_line(advice: Advice) -> list[str]:
    """A text for each `--input` of `etrt export`; none where an input is no tensor."""
    if not all(map(_is_tensor, advice.calls.inputs)):
        return []
    labels: set[str] = set()
    texts: list[str] = []
    for k, item in enumerate(advice.calls.inputs):
        shared, dims = _shared(advice, k), list[str]()
        for axis, spans in enumerate(_spans(advice, item)):
            label = shared.get(axis, "")
            written = "|".join(_range_text(span) for span in (spans if len(set(spans)) > 1 else spans[:1]))
            dims.append(label if label in labels else f"{label}={written}" if label else written)
            labels |= {label} - {""}
        texts.append(f"{item.dtype}[{','.join(dims)}]")
    return texts


def _input(advice: Advice, k: int, shares: Sequence[str]) -> list[str]:
    item = advice.calls.inputs[k]
    if not _is_tensor(item):
        return [f"    None,  # input {k} is no tensor: write its value here"]
    name = f"name={json.dumps(item.name)}" if item.name else ""
    spans = _spans(advice, item)
    shapes = list(zip(*spans, strict=True)) if spans else [()] * len(advice.profiles)
    if all(low == high for dim in spans for low, _, high in dim) and len(set(shapes)) == 1:
        arguments = [str(tuple(span[0] for span in shapes[0])), f'dtype="{item.dtype}"', *filter(None, [name])]
        return [f"    Input({', '.join(arguments)}),"]
    entries = [
        f"            {{{_fields(dims)}}},  # {share} of the calls" for dims, share in zip(shapes, shares, strict=True)
    ]
    labels = ", ".join(f'{axis}: "{label}"' for axis, label in _shared(advice, k).items())
    rest = [f'dtype="{item.dtype}"', labels and f"shared_dims={{{labels}}}", name]
    return [
        "    Input(",
        "        profiles=[",
        *entries,
        "        ],",
        *(f"        {one}," for one in rest if one),
        "    ),",
    ]


def _fields(dims: Sequence[_Span]) -> str:
    return ", ".join(f'"{field}": {tuple(span[end] for span in dims)}' for end, field in enumerate(_FIELDS))


def _is_tensor(item: MethodInput) -> bool:
    return item.dtype in DTYPES


def _spans(advice: Advice, item: MethodInput) -> list[list[_Span]]:
    """For each dim, its range in each profile."""
    return [[_span(advice, dim, index) for index in range(len(advice.profiles))] for dim in item.dims]


def _span(advice: Advice, dim: Dim, index: int) -> _Span:
    at = next((k for k, variable in enumerate(advice.calls.variables) if dim.symbol in variable.symbols), None)
    size = advice.calls.constants.get(dim.symbol, 0)
    span = (size, size, size) if at is None else advice.profiles[index].ranges[at]
    low, opt, high = (dim.scale * end + dim.offset for end in span)
    return (low, opt, high) if low <= high else (high, opt, low)


def _shared(advice: Advice, k: int) -> dict[int, str]:
    """Axis to label, for dims of an input that other dims are equal to."""
    found: dict[int, str] = {}
    for variable in advice.calls.variables:
        equal = [(position, axis) for position, axis in variable.places if _is_plain(advice, position, axis)]
        label = re.sub(r"\W", "_", variable.name, flags=re.ASCII).strip("_")
        label = label if label.isidentifier() else f"dim_{label}"
        found.update((axis, label) for position, axis in equal if position == k and len(equal) > 1)
    return found


def _is_plain(advice: Advice, position: int, axis: int) -> bool:
    dim = advice.calls.inputs[position].dims[axis]
    return (dim.scale, dim.offset) == (1, 0)


def _range_text(span: _Span) -> str:
    return str(span[0]) if span[0] == span[2] else ":".join(map(str, span))


__all__ = ["command_line", "python_code"]
