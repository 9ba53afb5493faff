"""export(): data types, scalars, and inputs and outputs that are out of the ordinary."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import torch
from export_cases import export_and_compare, model_of, normal, ranges, rows

from executorch_tensorrt import Input, Module
from executorch_tensorrt.exporter import export
from executorch_tensorrt.exporter.examples import Inputs
from executorch_tensorrt.inputs import DTYPES

SPANS = ((1, 1, 1), (2, 4, 9))
ROWS = rows(*SPANS)


def typical(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    joined = torch.cat([x, x], 1)
    return joined, x.to(torch.float32) * 0.5, x.sum(), x[:, :2], joined == joined[:, :1]


def test_export_matches_eager_data_types() -> None:
    model = model_of(lambda self, given: {dtype: typical(x) for dtype, x in given.items()})
    program = export_and_compare(
        model, [{dtype: rows(*SPANS, dtype=dtype) for dtype in DTYPES}], torch_executed_ops=["aten.cat"]
    )
    assert len(program.left_outside) == len(DTYPES)


def test_export_matches_eager_layers_of_other_data_types() -> None:
    dtypes = ("float16", "bfloat16", "float64")
    torch.manual_seed(0)
    layers = {
        f"in_{dtype}": torch.nn.Sequential(
            torch.nn.Linear(4, 8), torch.nn.LayerNorm(8), torch.nn.GELU(), torch.nn.Linear(8, 4)
        ).to(getattr(torch, dtype))
        for dtype in dtypes
    }
    model = model_of(lambda self, given: [getattr(self, f"in_{dtype}")(x) for dtype, x in given.items()], **layers)
    export_and_compare(model, [{dtype: rows(*SPANS, dtype=dtype) for dtype in dtypes}])


class Case(NamedTuple):
    """A model, its inputs, and how many engines it gives."""

    forward: Callable[..., Any]
    inputs: Inputs
    engines: int = 1
    outside: tuple[str, ...] = ()


def same_output_twice(model: torch.nn.Module, x: torch.Tensor) -> Any:
    y = x * 2
    return x, x, y, {"again": (y, x)}


def sizes(model: torch.nn.Module, x: torch.Tensor) -> Any:
    return torch.arange(x.shape[0]), torch.full((2,), x.shape[0]), torch.zeros(x.shape[0], 2), x.shape[0] * 2 + 1


def scalars(model: torch.nn.Module, x: torch.Tensor, k: torch.Tensor, i: torch.Tensor) -> Any:
    return (
        torch.tanh(x * k) + torch.tanh(k + 1) * 2,
        x.sum(),
        x.argmax(),
        (x > 0).any(),
        x.index_select(1, i.reshape(1) % 4),
    )


def reduced(model: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x.sum()) * x


def constant(model: torch.nn.Module, x: torch.Tensor) -> Any:
    return x * 2, model.table, model.table * 2, torch.ones(2), torch.tensor(4), None, 3, 2.5, True


ACCEPTED = {
    "nothing but an output that is an input": Case(lambda self, x: x, [ROWS], 0),
    "outputs that are inputs, and there twice": Case(same_output_twice, [ROWS]),
    "outputs that are views, or without elements": Case(
        lambda self, x: (x.view(-1), x[:1], x.t(), x.unsqueeze(0), x[:, :0], x[1:]), [ROWS]
    ),
    "constant outputs": Case(constant, [ROWS]),
    "nothing but a constant": Case(lambda self, x: self.table, [ROWS], 0),
    "outputs that follow from sizes": Case(sizes, [ROWS]),
    "0-d inputs and outputs": Case(scalars, [ROWS, Input(()), Input((), dtype="int64")], 2, ("aten.tanh",)),
    "a 0-d tensor between engines": Case(reduced, [ROWS], 2, ("aten.tanh",)),
    "a 0-d input with profiles": Case(
        lambda self, x, k: x * k, [ROWS, Input(profiles=ranges(((), (), ()), ((), (), ())))]
    ),
    "an input that nothing uses": Case(lambda self, x, unused: x * 2, [ROWS, rows(*SPANS, dtype="bool")]),
    "no inputs": Case(lambda self: self.table * 2 + torch.ones(3), {}),
}


@pytest.mark.filterwarnings("ignore:no operator went into an engine")
@pytest.mark.parametrize("case", ACCEPTED.values(), ids=ACCEPTED)
def test_export_accepts_values(case: Case) -> None:
    model = model_of(case.forward, table=torch.arange(3.0))
    program = export_and_compare(model, case.inputs, torch_executed_ops=case.outside)
    assert len(program.delegates) == case.engines


def test_export_returns_inputs_that_the_model_changes() -> None:
    """They come first, as ExecuTorch has it; the caller's tensors stay as they were."""
    module = Module(export(model_of(lambda self, x: x.add_(1) * 2), [ROWS]).buffer)
    (x,) = normal([(1, 4)])
    changed, doubled = module.forward(x)
    torch.testing.assert_close((changed, doubled), (x + 1, (x + 1) * 2))
    torch.testing.assert_close(x, normal([(1, 4)])[0])


class Refused(NamedTuple):
    """What is refused and how, and what follows the message's advice."""

    model: torch.nn.Module
    inputs: Inputs
    message: str
    advised: tuple[torch.nn.Module, Inputs]


def matmul(model: torch.nn.Module, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x @ y


def converting(model: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
    return model.layer(x.to(torch.float32))


def mixed(model: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
    return x @ torch.ones(4, 2, dtype=torch.float64).abs()


def text(model: torch.nn.Module, x: torch.Tensor) -> Any:
    return x * 2, "text"


LINEAR = torch.nn.Linear(4, 2)
REFUSED = {
    "int64 into a linear layer": Refused(
        LINEAR,
        [rows(*SPANS, dtype="int64")],
        r"input 0 'input' has a data type that 'aten.linear.default' .* can't combine .*: got int64, allowed float32;",
        (LINEAR, [ROWS]),
    ),
    "float16 into a linear layer": Refused(
        LINEAR,
        [rows(*SPANS, dtype="float16")],
        r"got float16, allowed float32; declare dtype='float32', or convert it in the model\.",
        (model_of(converting, layer=LINEAR), [rows(*SPANS, dtype="float16")]),
    ),
    "one of two operands": Refused(
        model_of(matmul),
        [ROWS, Input((4, 2), dtype="int64")],
        r"input 1 'y' has a data type that 'aten.matmul.default'.*: got int64, allowed float32",
        (model_of(matmul), [ROWS, Input((4, 2))]),
    ),
    "a constant of another data type": Refused(
        model_of(mixed),
        [ROWS],
        r"'aten.matmul.default'.* can't combine .*: got float32, allowed float64; declare dtype='float64'",
        (model_of(mixed), [rows(*SPANS, dtype="float64")]),
    ),
    "no output": Refused(
        model_of(lambda self, x: None),
        [ROWS],
        r"the model returns nothing: got None, allowed tensors and numbers; return what it computes\.",
        (model_of(lambda self, x: x * 2), [ROWS]),
    ),
    "a text as output": Refused(
        model_of(text),
        [ROWS],
        r"the model's output 1 is a text: got 'text', allowed tensors, numbers and None; return the others alone\.",
        (model_of(lambda self, x: x * 2), [ROWS]),
    ),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_export_refuses_values_until_its_advice_is_followed(case: Refused) -> None:
    with pytest.raises(ValueError, match=case.message):
        export(case.model.eval(), case.inputs)
    export_and_compare(*case.advised)


def test_export_keeps_operators_of_complex_numbers_outside() -> None:
    model = model_of(lambda self, x: torch.view_as_real(torch.fft.fft(x)) * 2)
    program = export(model, [ROWS])
    reasons = [reason for reason in program.left_outside.values() if "complex64" in reason]
    assert reasons == ["engines have no torch.complex64"] * 2
