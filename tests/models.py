"""Small models with optimization profiles, exported once per test session.

A profile range is written (min, opt, max). Every exported model keeps the eager module beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import ExecutorchBackendConfig, to_edge_transform_and_lower
from executorch.exir.passes import MemoryPlanningPass

from executorch_tensorrt import Input, export

Range = tuple[int, int, int]


def profiles(*ranges: Range, tail: tuple[int, ...] = (), head: tuple[int, ...] = ()) -> list[dict[str, Any]]:
    """One profile per range: the range at one dim, between fixed dims."""
    fields = ("min_shape", "opt_shape", "max_shape")
    return [{field: (*head, size, *tail) for field, size in zip(fields, r, strict=True)} for r in ranges]


@dataclass(frozen=True)
class Exported:
    module: torch.nn.Module
    buffer: bytes
    etrecord: Any = None

    def eager(self, *inputs: torch.Tensor) -> list[torch.Tensor]:
        with torch.no_grad():
            outputs = self.module(*inputs)
        return list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]


def _export(module: torch.nn.Module, inputs: list[Input], **options: Any) -> Exported:
    torch.manual_seed(0)
    for parameter in module.parameters():
        torch.nn.init.uniform_(parameter, -0.5, 0.5)
    module.eval()
    program = export(module, inputs, **options)
    return Exported(module, program.buffer, program)


@cache
def rows() -> Exported:
    """float32 [rows, 4] -> [rows, 4]; profile 0: 1..8 rows, profile 1: 4..64 rows. They overlap in 4..8."""
    module = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 4))
    return _export(module, [Input(profiles=profiles((1, 2, 8), (4, 16, 64), tail=(4,)))], generate_etrecord=True)


@cache
def decode_first() -> Exported:
    """float32 [1, S, 8] -> [1, S, 16]; profile 0: S = 1, profile 1: S = 2..64, which has the largest output."""
    module = torch.nn.Linear(8, 16)
    return _export(module, [Input(profiles=profiles((1, 1, 1), (2, 16, 64), head=(1,), tail=(8,)))])


@cache
def wide() -> Exported:
    """float32 [1, S, 8] -> [1, S, 16]; one profile: S = 1..64."""
    return _export(torch.nn.Linear(8, 16), [Input(profiles=profiles((1, 16, 64), head=(1,), tail=(8,)))])


class _Mixed(torch.nn.Module):
    """A dynamic engine, an XNNPACK delegate, a static engine, and an operator outside all of them."""

    def __init__(self) -> None:
        super().__init__()
        self.dynamic = torch.nn.Linear(4, 4)
        self.static = torch.nn.Linear(4, 4)

    def forward(self, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        a = torch.sigmoid(self.dynamic(x))  # sigmoid: XNNPACK
        b = torch.cumsum(self.static(w), 1)  # cumsum: a portable operator
        return torch.mul(torch.tanh(a), 2.0) + b


MIXED_OUTSIDE = ("aten.sigmoid.default", "aten.cumsum.default")


@cache
def mixed() -> Exported:
    """x float32 [rows, 4] (profile 0: 1..4 rows, profile 1: 5..32), w float32 [1, 4]."""
    inputs = [Input(profiles=profiles((1, 2, 4), (5, 8, 32), tail=(4,))), Input(shape=(1, 4))]
    return _export(
        _Mixed(), inputs, torch_executed_ops=MIXED_OUTSIDE, partitioners=[XnnpackPartitioner()], generate_etrecord=True
    )


class _Static(torch.nn.Module):
    """An engine whose inputs are all static, then one whose inputs are dynamic."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, w: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return torch.cumsum(self.linear(w), 1) + torch.tanh(x)


@cache
def static_beside_dynamic() -> Exported:
    """w float32 [1, 4]; x float32 [rows, 4] with profile 0: 1..4 rows, profile 1: 5..32 rows."""
    inputs = [Input(shape=(1, 4)), Input(profiles=profiles((1, 2, 4), (5, 8, 32), tail=(4,)))]
    return _export(_Static(), inputs, torch_executed_ops=("aten.cumsum.default",))


class _TwoInputs(torch.nn.Module):
    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        kept = ids * mask
        return kept, kept.sum().to(torch.float32)


@cache
def two_inputs() -> Exported:
    """ids, mask int64 [1, S] that share S (profile 0: 2..8, profile 1: 9..32) -> int64 [1, S], float32 []."""
    sequence = profiles((2, 4, 8), (9, 16, 32), head=(1,))
    inputs = [Input(profiles=sequence, dtype=torch.int64, shared_dims={1: "sequence"}) for _ in range(2)]
    return _export(_TwoInputs(), inputs)


class _Edges(torch.nn.Module):
    def forward(self, scale: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        return x[:, :0] * 2, x * scale, x.sum()


@cache
def edge_shapes() -> Exported:
    """scale float32 [], x float32 [rows, 4] (profile 0: 1..3, profile 1: 2..8) -> [rows, 0], [rows, 4], []."""
    return _export(_Edges(), [Input(shape=()), Input(profiles=profiles((1, 2, 3), (2, 4, 8), tail=(4,)))])


class _NoInputs(torch.nn.Module):
    def forward(self) -> torch.Tensor:
        return torch.ones(2) * 3


@cache
def no_inputs() -> Exported:
    """Nothing -> float32 [2]."""
    return _export(_NoInputs(), [])


class _SharedTensors(torch.nn.Module):
    """Two engines: the second takes the first one's output, what an operator made of it, and the method's input."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.linear(x)
        return torch.cumsum(y, 1) * y + x


@cache
def shared_tensors() -> Exported:
    """float32 [rows, 4] -> [rows, 4]; profile 0: 1..8 rows, profile 1: 4..64 rows."""
    inputs = [Input(profiles=profiles((1, 2, 8), (4, 16, 64), tail=(4,)))]
    return _export(_SharedTensors(), inputs, torch_executed_ops=("aten.cumsum.default",))


class _ReadByAnOperator(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(torch.cumsum(x, 1))


@cache
def read_by_an_operator() -> Exported:
    """float32 [rows, 4] -> [rows, 4], its input goes to no engine; profile 0: 1..8 rows, profile 1: 4..64 rows."""
    inputs = [Input(profiles=profiles((1, 2, 8), (4, 16, 64), tail=(4,)))]
    return _export(_ReadByAnOperator(), inputs, torch_executed_ops=("aten.cumsum.default",))


class _Rows(torch.nn.Module):
    """Writes rows into a cache of 32, and returns their sum over all positions."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("cache", torch.zeros(32, 4))

    def forward(self, rows: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        self.cache.index_copy_(0, positions, rows)
        return self.cache.sum(dim=0)


def _rows_and_positions(*ranges: Range) -> list[Input]:
    return [
        Input(profiles=profiles(*ranges, tail=(4,)), shared_dims={0: "rows"}),
        Input(profiles=profiles(*ranges), dtype=torch.int64, shared_dims={0: "rows"}),
    ]


def cached_source() -> tuple[torch.nn.Module, list[Input]]:
    """rows float32 [R, 4], positions int64 [R] -> float32 [4]; profile 0: R = 1, profile 1: R = 2..8; a buffer `cache`,
    float32 [32, 4]."""
    return _Rows().eval(), _rows_and_positions((1, 1, 1), (2, 4, 8))


@cache
def cached_rows() -> Exported:
    """The same, exported; the engine owns the buffer."""
    return _export(*cached_source(), take_over_mutable_buffer=True)


@cache
def cached_methods() -> bytes:
    """The same as two methods, `decode` with R = 1 and `prefill` with R = 2..8."""
    model = _Rows().eval()
    methods = {"decode": _rows_and_positions((1, 1, 1)), "prefill": _rows_and_positions((2, 4, 8))}
    return export(dict.fromkeys(methods, model), methods, take_over_mutable_buffer=True).buffer


def stock_program(model: torch.nn.Module, *examples: object, plan_outputs: bool = True) -> bytes:
    """A program of portable operators alone."""
    planning = MemoryPlanningPass(alloc_graph_output=plan_outputs)
    edge = to_edge_transform_and_lower(torch.export.export(model.eval(), examples))
    return edge.to_executorch(ExecutorchBackendConfig(memory_planning_pass=planning)).buffer
