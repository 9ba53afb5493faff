"""Operators that TensorRT or the ONNX exporter refuses stay outside engines, with the reason."""

from __future__ import annotations

from collections.abc import Callable
from unittest.mock import patch

import pytest
import torch
from engines.onnx_cases import export_rtx
from export_cases import model_of, rows

from executorch_tensorrt.engines.tensorrt.operators import Operators

Forward = Callable[[torch.nn.Module, torch.Tensor], torch.Tensor]

REFUSED: dict[str, tuple[str, Forward, str, str]] = {
    "no conversion": (
        "float32",
        lambda self, x: torch.erfinv(x) * 2,
        "aten_erfinv_default",
        "the ONNX exporter has no conversion for it",
    ),
    "no operator": (
        "int64",
        lambda self, x: (x & 3) + 1,
        "aten_bitwise_and_scalar",
        "TensorRT-RTX's parser refuses BitwiseAnd: ",
    ),
    "no reduction": (
        "float32",
        lambda self, x: torch.zeros_like(x).scatter_add(1, (x > 0).to(torch.int64), x),
        "aten_scatter_add_default",
        "TensorRT-RTX's parser refuses it: Unsupported reduction type",
    ),
    "no float64": (
        "float64",
        lambda self, x: x.to(torch.float32) + 1,
        "_to_dim_order_copy",
        "TensorRT-RTX has no float64",
    ),
    "no int16": ("int16", lambda self, x: (x + x).to(torch.int32) + 1, "aten_add_tensor", "TensorRT-RTX has no int16"),
    "no arithmetic": (
        "uint8",
        lambda self, x: (x + x).to(torch.float32) * 2,
        "aten_add_tensor",
        "TensorRT-RTX can cast uint8 to another type, and do nothing else with it",
    ),
}


@pytest.mark.filterwarnings("ignore:ExecuTorch has no kernel")  # nothing here is run
@pytest.mark.parametrize("case", REFUSED)
def test_refused_operator_stays_outside_with_its_reason(case: str) -> None:
    dtype, forward, name, reason = REFUSED[case]
    program, built = export_rtx(model_of(forward), [rows((1, 2, 4), (5, 8, 12), dtype=dtype)])
    (text,) = (text for node, text in program.left_outside.items() if name in node)
    assert text.startswith(reason)
    assert len(built) == 1  # what is left of the model is in an engine


def test_operator_that_is_refused_by_the_build_stays_outside() -> None:
    """As if the parser took each operator alone, and refused one inside the partition."""
    model = model_of(lambda self, x: (torch.bitwise_and(x, 3) + 1) * 2)
    with patch.object(Operators, "reason", lambda self, node: None):
        program, _ = export_rtx(model, [rows((1, 2, 4), (5, 8, 12), dtype="int64")])
    assert list(program.left_outside) == ["aten_bitwise_and_scalar"]
    assert program.left_outside["aten_bitwise_and_scalar"].startswith("TensorRT-RTX's parser refuses BitwiseAnd")
    assert len(program.delegates) == 1


@pytest.mark.filterwarnings("ignore:ExecuTorch has no kernel")  # nothing here is run
def test_operator_without_a_conversion_that_is_found_late_stays_outside() -> None:
    model = model_of(lambda self, x: torch.erfinv(x) * 2)
    with patch.object(Operators, "reason", lambda self, node: None):
        program, _ = export_rtx(model, [rows((1, 2, 4), (5, 8, 12))])
    assert program.left_outside == {"aten_erfinv_default": "the ONNX exporter has no conversion for it"}


def test_operators_are_examined_once_for_all_that_are_alike() -> None:
    seen: list[str] = []
    examine = Operators._refusal

    def count(self: Operators, node: torch.fx.Node) -> str | None:
        seen.append(str(node.target))
        return examine(self, node)

    with patch.object(Operators, "_refusal", count):
        export_rtx(model_of(lambda self, x: x.tanh().tanh().tanh()), [rows((1, 2, 4), (5, 8, 12))])
    assert len([target for target in seen if "tanh" in target]) == 1


def test_preserved_operator_that_is_refused_is_decomposed() -> None:
    """Attention of three dims has no conversion; what it consists of has."""
    attention = torch.nn.functional.scaled_dot_product_attention
    program, _ = export_rtx(model_of(lambda self, x: attention(x, x, x)), [rows((1, 2, 4), (5, 8, 12), tail=(6, 4))])
    assert not program.left_outside
