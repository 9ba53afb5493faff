"""Advice on optimization profiles as a page: one file that needs no network."""

from __future__ import annotations

from typing import Any

from executorch_tensorrt.profiling.processors import Advice
from executorch_tensorrt.profiling.renderers import page
from executorch_tensorrt.profiling.renderers.advice.code import command_line, python_code
from executorch_tensorrt.profiling.renderers.advice.figure import MAX_DOTS, WIDTH, figure, style_of

_MAX_FIGURES = 6


def render(advice: Advice) -> str:
    """The advice as an HTML page: ranges over the recorded sizes, time per call, what each profile serves, and code."""
    return page.render("advice.html.jinja", _values(advice))


def _values(advice: Advice) -> dict[str, Any]:
    return {
        "advice": advice,
        "figures": [figure(advice, at) for at in range(min(len(advice.calls.variables), _MAX_FIGURES))],
        "style_of": style_of,
        "width": WIDTH,
        "max_dots": MAX_DOTS,
        "code": python_code(advice),
        "command_line": command_line(advice),
    }


__all__ = ["render"]
