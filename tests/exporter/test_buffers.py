"""Mutable buffers: written in place by engines, in the program's memory or in the engines' own."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from executorch.exir import to_edge
from export_cases import ranges
from wire_format import parse

from executorch_tensorrt import Input, Module, export
from executorch_tensorrt.exporter import ExportedEngineProgram
from executorch_tensorrt.graphs.in_place import write_in_place
from executorch_tensorrt.program import BACKEND_ID, read_program

LENGTH = 32
STEPS = [(5, 0), (1, 5), (1, 6), (3, 7), (1, 2)]
"""Calls that follow each other: number of positions and the first one."""


class Cache(torch.nn.Module):
    """float32 [1, 4, S, 8], int64 [S] -> float32 [1, 4, 8]; `update` writes the rows into the cache."""

    def __init__(self, update: Callable[[Cache, torch.Tensor, torch.Tensor], Any]) -> None:
        super().__init__()
        self.update = update
        self.register_buffer("rows", torch.zeros(1, 4, LENGTH, 8))

    def forward(self, x: torch.Tensor, positions: torch.Tensor) -> Any:
        other = self.update(self, x, positions)
        total = (self.rows * 2).sum(dim=2)
        return total if other is None else (total, other)


def _index_copy(m: Cache, x: torch.Tensor, positions: torch.Tensor) -> None:
    m.rows.index_copy_(2, positions, x)


def _index(m: Cache, x: torch.Tensor, positions: torch.Tensor) -> None:
    m.rows[:, :, positions] = x


def _twice(m: Cache, x: torch.Tensor, positions: torch.Tensor) -> None:
    m.rows.index_copy_(2, positions, x)
    m.rows[:, :, positions] = m.rows[:, :, positions] + x


def _slice(m: Cache, x: torch.Tensor, positions: torch.Tensor) -> None:
    m.rows[:, :, :1] = x[:, :, :1]


def _whole(m: Cache, x: torch.Tensor, positions: torch.Tensor) -> None:
    m.rows += x.sum(dim=2, keepdim=True)


def _shift(m: Cache, x: torch.Tensor, positions: torch.Tensor) -> None:
    m.rows.copy_(torch.cat([m.rows[:, :, 1:], x[:, :, :1]], dim=2))


def _accumulate(m: Cache, x: torch.Tensor, positions: torch.Tensor) -> None:
    m.rows.index_add_(2, positions, x)


IN_PLACE = [_index_copy, _index, _twice]
COPIED = [_slice, _whole, _shift, _accumulate]


def _inputs(*lengths: tuple[int, int, int]) -> list[Input]:
    rows = ranges(*(((1, 4, low, 8), (1, 4, opt, 8), (1, 4, high, 8)) for low, opt, high in lengths))
    positions = ranges(*(((low,), (opt,), (high,)) for low, opt, high in lengths))
    return [Input(profiles=rows, shared_dims={2: "s"}), Input(profiles=positions, shared_dims={0: "s"}, dtype="int64")]


def _exported(model: torch.nn.Module, owned: bool, **options: Any) -> ExportedEngineProgram:
    return export(model.eval(), _inputs((1, 1, 1), (2, 4, 8)), take_over_mutable_buffer=owned, **options)


def _kernels(program: ExportedEngineProgram) -> set[str]:
    """The operators that CPU engines run outside XNNPACK."""
    (method,) = read_program(program.buffer).methods
    blobs = [bytes(delegate.blob) for delegate in method.delegates if delegate.backend_id == BACKEND_ID]
    profiles = [profile for blob in blobs for profile in read_program(parse(blob).engine).methods]
    return {name for profile in profiles for name in profile.operators}


def _assert_steps_match(model: Cache, buffer: bytes) -> None:
    module = Module(buffer, optimization_profile="auto")
    model.rows.zero_()
    torch.manual_seed(0)
    for count, first in STEPS:
        x, positions = torch.randn(1, 4, count, 8), torch.arange(first, first + count)
        expected = model(x, positions)
        got = module.forward(x, positions)
        for one, other in zip(got, expected if isinstance(expected, tuple) else (expected,), strict=True):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("owned", [False, True])
@pytest.mark.parametrize("update", [*IN_PLACE, *COPIED])
def test_buffers_match_eager_step_by_step(update: Callable[..., Any], owned: bool) -> None:
    model = Cache(update)
    program = _exported(model, owned)
    _assert_steps_match(model, program.buffer)
    assert [delegate["state"] for delegate in program.delegates] == [["rows"] if owned else []]
    assert ("aten::copy_" in _kernels(program)) == (update in COPIED)
    assert ("aten::index_put_" in _kernels(program)) == (update in IN_PLACE)


def test_write_in_place_copies_where_the_old_value_is_read_later() -> None:
    class Difference(torch.nn.Module):
        def forward(self, rows: torch.Tensor, x: torch.Tensor, at: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            old = rows.view(-1) * 2
            return rows.index_copy(0, at, x), old

    arguments = (torch.ones(4, 2), torch.ones(1, 2), torch.tensor([0]))
    program = to_edge(torch.export.export(Difference(), arguments)).exported_program()
    view, double, put = (
        next(node for node in program.graph.nodes if name in str(node.target))
        for name in ("view_copy", "mul", "index_put")
    )
    assert list(program.graph.nodes).index(double) < list(program.graph.nodes).index(put)
    put.append(double)  # as ExecuTorch may order the nodes of a partition
    view.prepend(put)
    write_in_place(program, {0: 0})
    assert [str(node.target) for node in program.graph.nodes if "copy_." in str(node.target)] == ["aten.copy_.default"]


def test_buffers_of_the_caller_are_where_their_updates_are() -> None:
    program = _exported(Cache(_index_copy), owned=False)
    (plan,) = program.program.executorch_program.execution_plan
    copies = [
        step.instr_args.args  # pyright: ignore[reportAttributeAccessIssue]
        for step in plan.chains[0].instructions
        if type(step.instr_args).__name__ == "KernelCall"
    ]
    ((buffer, update, *_),) = copies
    places = [plan.values[index].val.allocation_info for index in (buffer, update)]
    assert places[0] == places[1]


@pytest.mark.parametrize("persistent", [True, False])
@pytest.mark.parametrize("owned", [True, False])
def test_buffers_begin_with_their_initial_value(owned: bool, persistent: bool) -> None:
    model = Cache(_index_copy)
    model.register_buffer("rows", torch.full((1, 4, LENGTH, 8), 0.25), persistent)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*meaningless initial state")
        module = Module(_exported(model, owned).buffer)
    for _ in range(2):
        for kept in (LENGTH - 1, LENGTH - 2):
            x, positions = torch.zeros(1, 4, 1, 8), torch.tensor([kept])
            (got,) = module.forward(x, positions)
            torch.testing.assert_close(got, torch.full((1, 4, 8), 2 * 0.25 * kept))
        module.unload_method("forward")
        module.state.reset()


def test_buffers_refuse_a_large_initial_value() -> None:
    class Large(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("large", torch.ones(1 << 19))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.large.add_(x)
            return self.large.sum()

    with pytest.raises(ValueError, match="mutable buffer 'large' begins with too much data .* got 2097152 bytes"):
        export(Large().eval(), [Input((1,))], take_over_mutable_buffer=True)


def test_buffers_refuse_an_owner_when_operators_outside_use_them() -> None:
    model = Cache(_index_copy)
    with pytest.raises(ValueError, match="mutable buffer 'rows' can't be owned by an engine: got uses by") as error:
        _exported(model, owned=True, torch_executed_ops=["aten.mul"])
    assert "outside" in str(error.value)
    _assert_steps_match(model, _exported(model, owned=False, torch_executed_ops=["aten.mul"]).buffer)


def test_buffers_refuse_an_owner_when_the_method_returns_them() -> None:
    class Returned(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.zeros(2))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.count.add_(x)
            return self.count

    with pytest.raises(ValueError, match="'count' can't be owned by an engine: got a method that returns it"):
        export(Returned().eval(), [Input((2,))], take_over_mutable_buffer=True)
    module = Module(export(Returned().eval(), [Input((2,))]).buffer)
    assert [module.forward(torch.ones(2))[0].tolist() for _ in range(2)] == [[1, 1], [2, 2]]


def test_export_leaves_the_program_that_it_was_given_usable() -> None:
    model = Cache(_index_copy).eval()
    dynamic = {"x": {2: torch.export.Dim("s", min=1, max=8)}, "positions": {0: torch.export.Dim("s", min=1, max=8)}}
    program = torch.export.export(model, (torch.ones(1, 4, 3, 8), torch.arange(3)), dynamic_shapes=dynamic)
    first, second = (export(program, take_over_mutable_buffer=True).buffer for _ in range(2))
    assert first == second


def test_export_writes_several_methods() -> None:
    model = Cache(_index_copy).eval()
    methods = {"prefill": _inputs((2, 4, 8)), "decode": _inputs((1, 1, 1))}
    program = export(dict.fromkeys(methods, model), methods)
    assert [(item["method"], len(item["profiles"])) for item in program.delegates] == [("decode", 1), ("prefill", 1)]
    assert [method.name for method in read_program(program.buffer).methods] == ["decode", "prefill"]


def test_export_stores_an_engine_that_two_methods_have_once() -> None:
    model = torch.nn.Linear(64, 64).eval()
    declared = [Input(profiles=ranges(((1, 64), (1, 64), (1, 64)), ((2, 64), (4, 64), (8, 64))))]
    alone = export(model, declared)
    program = export({"decode": model, "prefill": model}, {"decode": declared, "prefill": declared})
    assert len(program.buffer) < len(alone.buffer) + 4096
    module = Module(program.buffer)
    module.load_method("prefill", optimization_profile=1)
    for method, count, profile in (("prefill", 8, 1), ("decode", 1, 0)):
        x = torch.randn(count, 64)
        torch.testing.assert_close(module.run_method(method, [x])[0], model(x))
        assert [selection.profile for selection in module.last_selections] == [profile]


@pytest.mark.parametrize(
    ("model", "inputs", "message"),
    [
        ({}, {}, "model does not name its methods: got \\[\\]"),
        ({"a b": torch.nn.ReLU()}, {"a b": [Input((1,))]}, "got \\['a b'\\]"),
        ({"one": torch.nn.ReLU()}, {"two": [Input((1,))]}, "inputs do not name the model's methods: got two"),
        ({"one": torch.nn.ReLU()}, [Input((1,))], "inputs do not name the model's methods: got list"),
    ],
)
def test_export_refuses_methods_without_names_or_inputs(model: Any, inputs: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        export(model, inputs)
