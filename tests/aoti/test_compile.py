"""`aoti.compile`: what the compiled module does in eager PyTorch."""

from __future__ import annotations

import copy
import threading
from concurrent.futures import ThreadPoolExecutor

import models
import pt2_packages
import pytest
import torch
from exporter.torch_tensorrt_graphs import one_engine
from pt2_packages import Package

from executorch_tensorrt import Input, OptimizationProfileGuard, aoti


@torch.no_grad()
def difference(one: object, other: object) -> float:
    pairs = zip(torch.utils._pytree.tree_leaves(one), torch.utils._pytree.tree_leaves(other), strict=True)
    return max(float((left - right).abs().max()) for left, right in pairs)


def test_compiled_module_gives_the_models_numbers(mixed: Package) -> None:
    for rows, profile in ((1, 0), (4, 0), (3, 1), (32, 1)):
        x = torch.randn(rows, 8)
        with OptimizationProfileGuard(profile):
            assert difference(mixed.compiled(x), mixed.model(x)) < 1e-5


def test_compiled_module_says_what_is_outside(mixed: Package) -> None:
    assert list(mixed.compiled.left_outside.values()) == ["torch_executed_ops names it"]
    assert [engine["engine_kind"] for engine in mixed.compiled.engines] == ["cpu", "cpu"]


def test_compiled_module_updates_buffers_of_its_own() -> None:
    compiled, model = pt2_packages.compile_cache()
    twin = copy.deepcopy(model)
    for step in range(3):
        x, at = torch.randn(1, 1, 4), torch.tensor([step])
        assert difference(compiled(x, at), twin(x, at)) < 1e-5
    assert not model.keys.any()
    assert not compiled.program.state_dict["keys"].any()


def test_engine_does_not_write_a_buffer_that_is_read_later_in_place() -> None:
    def forward(self: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
        before = torch.sin(self.total)
        self.total.add_(x)
        return before

    model = torch.nn.Module()
    model.register_buffer("total", torch.ones(3))
    model.forward = forward.__get__(model)
    compiled = aoti.compile(model.eval(), [Input((3,))], torch_executed_ops=["aten.sin"])
    for expected in (1.0, 2.0):
        assert difference(compiled(torch.ones(3)), torch.full((3,), expected).sin()) < 1e-6


def test_guard_chooses_the_profile_of_a_compiled_module(mixed: Package) -> None:
    with OptimizationProfileGuard(1), pytest.raises(ValueError, match=r"got 2, allowed 3\.\.32 in profile 1"):
        mixed.compiled(torch.ones(2, 8))


def test_threads_call_a_compiled_module_at_once(mixed: Package) -> None:
    begin = threading.Barrier(4)

    def call(rows: int) -> float:
        begin.wait()  # the first calls make the engines
        with OptimizationProfileGuard.auto():
            return max(difference(mixed.compiled(x), mixed.model(x)) for x in torch.randn(30, rows, 8))

    with ThreadPoolExecutor(4) as pool:
        assert max(pool.map(call, (1, 4, 20, 32))) < 1e-5


def test_compile_takes_automatic_selection_as_the_default() -> None:
    compiled, model = pt2_packages.compile_mixed(optimization_profile="auto")
    assert difference(compiled(x := torch.randn(32, 8)), model(x)) < 1e-5


def test_compile_refuses_a_wrong_profile() -> None:
    with pytest.raises(ValueError, match="got 'fastest', allowed 'auto' or an index from 0"):
        aoti.compile(torch.nn.ReLU(), [Input((2,))], optimization_profile="fastest")  # type: ignore[arg-type]


def test_compile_computes_output_sizes_from_several_inputs() -> None:
    class Outer(torch.nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return (x[:, None] * y[None, :]).reshape(-1)

    sizes = Input(profiles=models.profiles((2, 4, 9)))
    compiled = aoti.compile(Outer().eval(), [sizes, sizes])
    x, y = torch.randn(5), torch.randn(7)
    assert difference(compiled(x, y), Outer()(x, y)) == 0


def test_compile_takes_inputs_by_name_and_nested() -> None:
    class Named(torch.nn.Module):
        def forward(self, x: torch.Tensor, *, pair: tuple[torch.Tensor, torch.Tensor]) -> dict[str, torch.Tensor]:
            return {"sum": pair[0] + pair[1], "turned": torch.sin(x.transpose(0, 1).reshape(-1))}

    rows = Input(profiles=models.profiles((1, 2, 4), tail=(3,)))
    compiled = aoti.compile(Named().eval(), {"x": rows, "pair": (rows, rows)}, torch_executed_ops=["aten.sin"])
    x, pair = torch.randn(2, 3), (torch.randn(3, 3), torch.randn(3, 3))
    assert difference(compiled(x=x, pair=pair), Named()(x=x, pair=pair)) < 1e-6


def test_compile_refuses_engines_that_torch_tensorrt_built() -> None:
    with pytest.raises(ValueError, match="the model holds an engine that Torch-TensorRT built"):
        aoti.compile(one_engine())
