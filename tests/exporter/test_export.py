"""export(): models become programs that match eager PyTorch in every optimization profile, at both ends and inside."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import pytest
import torch
from export_cases import assert_matches_eager, export_and_compare, ranges

from executorch_tensorrt import Input
from executorch_tensorrt.exporter import ExportedEngineProgram, export


class Mlp(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(16, 32)
        self.second = torch.nn.Linear(32, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.relu(self.first(x)))


ROWS = ranges(((1, 16), (1, 16), (1, 16)), ((1, 16), (8, 16), (32, 16)))


ROW_CASES = [[[(1, 16)]], [[(1, 16)], [(9, 16)], [(32, 16)]]]


@pytest.fixture(scope="module")
def mlp() -> tuple[Mlp, ExportedEngineProgram]:
    torch.manual_seed(0)
    model = Mlp().eval()
    return model, export(model, [Input(profiles=ROWS)], generate_etrecord=True)


def test_export_describes_its_delegates(mlp: tuple[Mlp, ExportedEngineProgram]) -> None:
    _, program = mlp
    (delegate,) = program.delegates
    assert delegate["engine_kind"] == "cpu"
    assert delegate["signature"] == "x[0]=1:1:1|1:8:32"
    assert delegate["profiles"][1] == {"inputs": [{"min": [1, 16], "opt": [8, 16], "max": [32, 16]}]}
    assert not program.left_outside
    assert set(program.seconds) == {"trace", "lower", "emit"}


def test_export_stores_weights_once() -> None:
    model = torch.nn.Linear(1024, 1024, bias=False)
    program = export(model.eval(), [Input(profiles=ranges(((1, 1024),) * 3, ((2, 1024), (4, 1024), (9, 1024))))])
    weights = 4 * 1024 * 1024
    assert weights < len(program.buffer) < 1.03 * weights


def test_export_saves_atomically(mlp: tuple[Mlp, ExportedEngineProgram], tmp_path: Path) -> None:
    _, program = mlp
    path = tmp_path / "model.pte"
    path.write_bytes(b"old")
    program.save(path)
    program.save_etrecord(tmp_path / "model.etrecord")
    assert path.read_bytes() == program.buffer
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["model.etrecord", "model.pte"]
    assert path.stat().st_mode & 0o777 == 0o666 & ~_umask()
    with pytest.raises(FileNotFoundError):
        program.save(tmp_path / "absent" / "model.pte")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_export_is_deterministic(mlp: tuple[Mlp, ExportedEngineProgram]) -> None:
    model, program = mlp
    assert export(model, [Input(profiles=ROWS)]).buffer == program.buffer


def test_export_refuses_an_etrecord_that_it_did_not_keep(tmp_path: Path) -> None:
    program = export(Mlp().eval(), [Input((2, 16))])
    with pytest.raises(RuntimeError, match="generate_etrecord"):
        program.save_etrecord(tmp_path / "model.etrecord")


def test_export_reports_progress() -> None:
    lines: list[str] = []
    export(Mlp().eval(), [Input((2, 16))], progress=lines.append)
    assert lines == ["tracing the model", "building engines", "writing the program"]


def test_export_accepts_an_exported_program(mlp: tuple[Mlp, ExportedEngineProgram]) -> None:
    model, _ = mlp
    rows = torch.export.Dim("rows", min=1, max=32)
    traced = torch.export.export(model, (torch.ones(5, 16),), dynamic_shapes=({0: rows},))
    own = export(traced)
    assert own.delegates[0]["signature"] == "x[0]=1:5:32"
    assert_matches_eager(model, own.buffer, [[[(1, 16)], [(32, 16)]]])
    for inputs in ([Input(profiles=ROWS)], {"x": Input(profiles=ROWS)}):
        assert_matches_eager(model, export(traced, inputs).buffer, ROW_CASES)


def test_export_keeps_control_flow_outside() -> None:
    class Branching(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cond(x.sum() > 0, lambda y: y * 2, lambda y: y - 1, (x,)) + 1

    rows = Input(profiles=ranges(((1, 4), (1, 4), (2, 4)), ((2, 4), (3, 4), (8, 4))))
    program = export_and_compare(Branching(), [rows], [[[(2, 4)]], [[(8, 4)]]])
    assert program.left_outside["cond"] == "it is not an operator"


def test_export_keeps_data_dependent_shapes_outside() -> None:
    class Selecting(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.masked_select(x * 2, x > 0).sum() + x.sum()

    program = export_and_compare(
        Selecting(),
        [Input(profiles=ranges(((1, 4), (2, 4), (3, 4)), ((4, 4), (8, 4), (9, 4))))],
        [[[(3, 4)]], [[(9, 4)]]],
    )
    assert "its shape depends on data" in program.left_outside.values()
    assert program.delegates


def test_export_warns_of_a_model_in_training_mode() -> None:
    with pytest.warns(UserWarning, match=r"training mode; call model\.eval\(\)"):
        export(torch.nn.Linear(2, 2), [Input((1, 2))])


def test_export_warns_when_nothing_went_into_an_engine() -> None:
    with pytest.warns(UserWarning, match="no operator went into an engine"):
        program = export(torch.nn.ReLU().eval(), [Input((1, 2))], torch_executed_ops=["aten.relu"])
    assert program.left_outside == {"aten_relu_default": "torch_executed_ops names it"}


def test_export_is_quiet() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        export(torch.nn.ReLU().eval(), [Input((1, 2))])
    assert not [entry for entry in caught if "LeafSpec" in str(entry.message)]


def test_export_refuses_what_is_no_model() -> None:
    with pytest.raises(TypeError, match=r"got function, allowed torch\.nn\.Module"):
        export(lambda x: x, [Input((1,))])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="inputs is missing"):
        export(torch.nn.ReLU().eval())
    with pytest.raises(
        TypeError, match=r"inputs is not a list: got Input, allowed one for each argument; write \[Input"
    ):
        export(torch.nn.ReLU().eval(), Input((1, 2)))  # type: ignore[arg-type]
