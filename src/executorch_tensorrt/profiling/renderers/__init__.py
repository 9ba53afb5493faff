"""From a session to something that a person or a tool reads. A renderer takes a session and returns text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

from executorch_tensorrt.profiling.session import Session

Renderer = Literal["console", "html", "perfetto", "trex", "json"]
RENDERERS: tuple[Renderer, ...] = get_args(Renderer)


def render(session: Session, renderer: Renderer) -> Mapping[str, str]:
    """Texts by file name: one, or for "trex" one per engine that reported layers.

    Raises:
        ValueError: there is no such renderer.
    """
    # What one renderer needs is not imported for another.
    if renderer == "console":
        from executorch_tensorrt.profiling.renderers import console

        return {"report.txt": console.render(session)}
    if renderer == "html":
        from executorch_tensorrt.profiling.renderers import html

        return {"report.html": html.render(session)}
    if renderer == "perfetto":
        from executorch_tensorrt.profiling.renderers import perfetto

        return {"report.perfetto.json": perfetto.render(session)}
    if renderer == "trex":
        from executorch_tensorrt.profiling.renderers import trex

        return trex.render(session)
    if renderer == "json":
        from executorch_tensorrt.profiling.renderers import json

        return {"report.json": json.render(session)}
    raise ValueError(f"renderer: got {renderer!r}, allowed {', '.join(map(repr, RENDERERS))}")


__all__ = ["RENDERERS", "Renderer", "render"]
