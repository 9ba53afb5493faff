"""Which operator, module and line of the model the nodes of a partition come from, by debug handle."""

# torch's graphs carry few types.
# pyright: reportMissingTypeStubs=false, reportPrivateUsage=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePath
from typing import Any, cast

import torch

from executorch_tensorrt.graphs.nodes import aten_op, is_size

_FRAME = re.compile(r'File "([^"]+)", line (\d+)')
_TORCH = str(Path(torch.__file__).parent)


def handles_of(nodes: Iterable[torch.fx.Node]) -> list[int]:
    """The debug handles of nodes, in graph order, each once."""
    handles = (node.meta.get("debug_handle") for node in nodes if node.op == "call_function")
    return list(dict.fromkeys(cast(int, handle) for handle in handles if handle))


def sources_of(graph: torch.fx.Graph) -> dict[str, dict[str, str]]:
    """For each debug handle (as JSON's text keys): `op`, `module` and `location`, the latter two where known.

    Operators that one operator of the model was decomposed into share its handle, and are told by its name.
    """
    sources: dict[str, dict[str, str]] = {}
    for node in graph.nodes:
        handle = node.meta.get("debug_handle")
        if node.op != "call_function" or not handle or is_size(node):
            continue
        location = source_location(node.meta.get("stack_trace"))
        found = {"op": _operator(node), "module": _module(node), "location": location}
        known = sources.setdefault(str(handle), {})
        for key, value in found.items():
            if value:
                known.setdefault(key, value)
    return sources


def operator_counts(graph: torch.fx.Graph) -> dict[str, int]:
    """How many operators there are (`total`), and how many have an entry in `sources_of` (`with_source`)."""
    operators = [
        node for node in graph.nodes if node.op == "call_function" and aten_op(node.target) and not is_size(node)
    ]
    return {"total": len(operators), "with_source": sum(bool(node.meta.get("debug_handle")) for node in operators)}


def _operator(node: torch.fx.Node) -> str:
    origins = [str(source.target) for source in _oldest(node.meta.get("from_node", ()))]
    named = [origin for origin in origins if re.fullmatch(r"\w+\.\w+\.\w+", origin)]
    return named[0] if named else str(aten_op(node.target) or "")


def _oldest(sources: Iterable[Any]) -> Iterable[Any]:
    for source in sources:
        yield from _oldest(source.from_node)
        yield source


def _module(node: torch.fx.Node) -> str:
    stack = cast("Mapping[str, tuple[str, Any]]", node.meta.get("nn_module_stack") or {})
    path = str(list(stack.values())[-1][0]) if stack else ""
    # torch's own passes leave names of theirs on the nodes that they add.
    return "" if path.startswith("_empty_nn_module_stack") else path.removeprefix("L['self']").lstrip(".")


def source_location(stack_trace: str | None) -> str:
    """File and line of the innermost frame outside torch, without the folders of the machine that exported."""
    frames = _FRAME.findall(stack_trace or "")
    own = [frame for frame in frames if not frame[0].startswith(_TORCH)]
    if not frames:
        return ""
    path, line = (own or frames)[-1]
    return f"{'/'.join(PurePath(path).parts[-2:]).lstrip('/')}:{line}"
