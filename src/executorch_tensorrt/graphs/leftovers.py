"""What stays in memory of programs that have been lowered, and need not."""

# torch's graphs and sympy's expressions carry few types.
# pyright: reportMissingTypeStubs=false, reportPrivateUsage=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Any, cast

import torch
from executorch.exir.backend.utils import is_same_node
from executorch.exir.delegate import executorch_call_delegate
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.export import ExportedProgram

from executorch_tensorrt.graphs.shape_env import shape_env_of


def forget(programs: Iterable[ExportedProgram]) -> None:
    """Empty the caches that would keep programs, and their weights, for as long as the process lives.

    torch remembers operators' results by their arguments, of which a lowered partition is one; ExecuTorch remembers
    which nodes are alike. Both are caches alone.
    """
    is_same_node.cache_clear()
    FakeTensorMode.cache_clear()
    for program in programs:
        env = shape_env_of(program)
        if env is not None:
            env.fake_tensor_cache.clear()


def share_data(program: ExportedProgram, known: dict[bytes, bytes]) -> None:
    """Keep equal data of a program's delegates once: lowering the same weights again has made them again."""
    for buffers in _data(program):
        buffers[:] = [known.setdefault(data, data) if isinstance(data, bytes) else data for data in buffers]


def drop_data(programs: Iterable[ExportedProgram]) -> None:
    """Free what the delegates of emitted programs hold, which as part of cyclic graphs would wait to be collected."""
    for program in programs:
        for buffers in _data(program):
            buffers.clear()


def _data(program: ExportedProgram) -> Generator[list[Any]]:
    for node in program.graph.nodes:
        if node.target is executorch_call_delegate:
            lowered: Any = getattr(program.graph_module, cast(str, cast(torch.fx.Node, node.args[0]).target))
            if lowered.named_data_store_output is not None:
                yield lowered.named_data_store_output.buffers
