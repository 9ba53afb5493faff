"""`torch.ops.executorch_tensorrt.execute_engine`: it checks all that it is given, since AOTInductor checks nothing."""

from __future__ import annotations

import pytest
import torch
from pt2_packages import Package

from executorch_tensorrt.aoti.graph import engines_of

FLOAT = 6
execute_engine = torch.ops.executorch_tensorrt.execute_engine


@pytest.fixture
def engine(mixed: Package) -> torch.Tensor:
    """float32 [rows, 8] -> [rows, 16]."""
    return next(iter(engines_of(mixed.compiled.program).values()))


def test_operator_runs_an_engine(engine: torch.Tensor, mixed: Package) -> None:
    (hidden,) = execute_engine([x := torch.randn(2, 8)], engine, [FLOAT, 2, 2, 16])
    torch.testing.assert_close(hidden, torch.relu(mixed.model.get_submodule("first")(x)).detach())


@pytest.mark.parametrize(
    ("inputs", "outputs", "message"),
    [
        ([torch.ones(2, 8)], [FLOAT, 2, 2, 15], r"output '\w+': \(2, 16\) does not fit"),
        ([torch.ones(2, 8)], [FLOAT, 2, 3, 16], r"output '\w+': \(2, 16\) does not fit"),
        ([torch.ones(2, 8)], [FLOAT, 1, 32], r"output '\w+': \(2, 16\) does not fit"),
        ([torch.ones(2, 8)], [4, 2, 2, 16], "got dtype int64, allowed float32"),
        ([torch.ones(2, 8)], [99, 2, 2, 16], "got PyTorch's dtype 99, which no engine takes"),
        ([torch.ones(2, 8)], [FLOAT, 2, -1, 16], r"got \(-1, 16\), allowed sizes from 0"),
        ([torch.ones(2, 8)], [FLOAT, 2, 2], "ends amid an output"),
        ([torch.ones(2, 8)], [FLOAT, 2, 2, 16] * 2, "got 3 arguments, allowed 2"),
        ([torch.ones(2, 8)] * 2, [FLOAT, 2, 2, 16], "got 2 inputs, allowed 1"),
        ([], [FLOAT, 2, 2, 16], "got 0 inputs, allowed 1"),
        ([torch.ones(5, 8)], [FLOAT, 2, 5, 16], r"input 'x' dim 0: got 5, allowed 1\.\.4 in profile 0"),
        ([torch.ones(8, 2).t()], [FLOAT, 2, 2, 16], r"input 'x': got a tensor that is not contiguous"),
        ([torch.ones(2, 8).double()], [FLOAT, 2, 2, 16], "input 'x': got dtype float64, allowed float32"),
        ([torch.ones(2, 8).to_sparse()], [FLOAT, 2, 2, 16], "not contiguous|Could not run"),
    ],
)
def test_operator_refuses_what_does_not_fit(
    engine: torch.Tensor, inputs: list[torch.Tensor], outputs: list[int], message: str
) -> None:
    with pytest.raises((ValueError, NotImplementedError), match=message):
        execute_engine(inputs, engine, outputs)


@pytest.mark.parametrize(
    "damage", [lambda t: t[:20], lambda t: t[:-8], lambda t: t.int(), lambda t: torch.cat([t[:200], 255 - t[200:]])]
)
def test_operator_refuses_a_damaged_engine(engine: torch.Tensor, damage: object) -> None:
    with pytest.raises((ValueError, RuntimeError), match="^engine: got|the engine is damaged"):
        execute_engine([torch.ones(2, 8)], damage(engine), [FLOAT, 2, 2, 16])  # type: ignore[operator]


def test_operator_refuses_to_write_in_place_for_an_engine_that_does_not(engine: torch.Tensor) -> None:
    buffer = torch.ones(2, 8)
    with pytest.raises(ValueError, match="got 1 inputs that it writes, allowed 0"):
        execute_engine.in_place([buffer], [], engine, [torch.empty(2, 16)])


def test_operator_refuses_to_write_undeclared_buffers(cache: Package) -> None:
    (writer,) = engines_of(cache.compiled.program).values()
    with pytest.raises(ValueError, match="got 0 inputs that it writes, allowed 1"):
        execute_engine([torch.ones(1, 1, 4), torch.zeros(1, dtype=torch.int64)], writer, [FLOAT, 2, 1, 4])


def test_operator_declares_what_it_writes() -> None:
    written = [argument.alias_info is not None for argument in execute_engine.in_place._schema.arguments]
    assert written == [True, False, False, True]
    assert not execute_engine.default._schema.is_mutable


def test_fake_operator_follows_the_sizes(engine: torch.Tensor) -> None:
    with torch._subclasses.FakeTensorMode() as mode:
        inputs = [mode.from_tensor(torch.ones(2, 8))]
        (output,) = execute_engine(inputs, mode.from_tensor(engine), [FLOAT, 2, 2, 16])
    assert (output.shape, output.dtype) == ((2, 16), torch.float32)
