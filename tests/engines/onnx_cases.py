"""Exporting to TensorRT-RTX and, as no GPU runs its engines here, evaluating the ONNX models that become engines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np
import onnx
import onnx_ir as ir
import torch
from export_cases import Shape, corners, typed
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from executorch_tensorrt import Input, export
from executorch_tensorrt.engines.builder import BuildRequest
from executorch_tensorrt.engines.tensorrt import builder
from executorch_tensorrt.exporter import ExportedEngineProgram


class GatherElements(OpRun):
    """The evaluator's own one is wrong where the indices are fewer than the data."""

    def _run(self, data: np.ndarray, indices: np.ndarray, axis: int = 0) -> tuple[np.ndarray]:
        return (np.take_along_axis(data, indices, axis),)


@dataclass(frozen=True)
class Built:
    """What an engine was built from."""

    request: BuildRequest
    model: onnx.ModelProto
    origins: Mapping[str, str]


def export_rtx(
    model: torch.nn.Module, inputs: Sequence[Input], **options: Any
) -> tuple[ExportedEngineProgram, list[Built]]:
    """Export with engines of kind `tensorrt_rtx`, really built; and what each was built from."""
    found: list[Built] = []

    def record(request: BuildRequest, *arguments: Any) -> Any:
        made = make(request, *arguments)
        found.append(Built(request, ir.to_proto(made.model), made.origins))
        return made

    make = builder.make_onnx_model
    torch.manual_seed(0)
    with patch.object(builder, "make_onnx_model", record):
        program = export(model.eval(), inputs, **{"engine": "tensorrt_rtx", **options})
    return program, found


class Evaluator:
    """Runs an ONNX model that passes the checker; arguments that it does not have are left out."""

    def __init__(self, model: onnx.ModelProto) -> None:
        onnx.checker.check_model(model, full_check=True)
        self._names = [item.name for item in model.graph.input]
        self._evaluator = ReferenceEvaluator(model, new_ops=[GatherElements])

    def __call__(self, arguments: Mapping[str, torch.Tensor]) -> list[torch.Tensor]:
        given = {name: arguments[name].numpy() for name in self._names}
        return [torch.from_numpy(np.array(output)) for output in self._evaluator.run(None, given)]


def assert_onnx_matches(
    model: torch.nn.Module,
    inputs: Sequence[Input],
    onnx_model: onnx.ModelProto,
    cases: Sequence[Sequence[Sequence[Shape]]] | None = None,
    rtol: float = 1e-4,
    atol: float = 1e-5,
) -> None:
    """Compare with eager PyTorch at both ends of every optimization profile and between, or for the given cases.

    The inputs have names. A case is the list of all inputs' shapes; there is a list of cases for each profile.
    """
    make = typed(inputs)
    evaluate = Evaluator(onnx_model)
    for shapes in (shape for profile in cases or corners(inputs) for shape in profile):
        arguments = make(shapes)
        with torch.no_grad():
            expected = model(*arguments)
        expected = list(expected) if isinstance(expected, tuple) else [expected]
        got = evaluate(dict(zip((item.name for item in inputs), arguments, strict=True)))
        for one, other in zip(got, expected, strict=True):
            torch.testing.assert_close(one, other, rtol=rtol, atol=atol)
