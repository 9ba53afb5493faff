"""`executorch_tensorrt.program.blobs`: engines of programs, ours and Torch-TensorRT's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import models
import pytest
from edited_programs import engine_blob, with_record

from executorch_tensorrt.program import read_program
from executorch_tensorrt.program.blobs import EngineBlob, blobs_of, verify_engines

TORCH_TENSORRT = Path(__file__).parents[1] / "data" / "torch_tensorrt_2.14_two_profiles.pte"


def only_engine(source: bytes | Path) -> EngineBlob:
    (blob,) = blobs_of(read_program(source).methods[0])
    assert isinstance(blob, EngineBlob)
    return blob


def test_engine_of_this_exporter_is_described() -> None:
    engine = only_engine(models.rows().buffer)
    assert engine.signature == "input_1[0]=1:2:8|4:16:64"
    assert engine.profiles == [[[(1, 2, 8), (4, 4, 4)]], [[(4, 16, 64), (4, 4, 4)]]]
    assert (engine.is_static, engine.is_intact, engine.sha256[:12]) == (False, True, engine.engine_id)
    assert engine.shapes == {"input_1": [-1, 4], "aten_linear_default_1": [-1, 4]}
    assert engine.operator_counts == (3, 3)
    assert [source["op"] for source in engine.sources.values()][1] == "aten.relu.default"
    assert len(engine.layer_handles) == 2


def test_engine_of_torch_tensorrt_has_what_it_wrote_and_no_more() -> None:
    engine = only_engine(TORCH_TENSORRT)
    assert [item.name for item in engine.inputs] == ["x"]
    assert (engine.signature, engine.engine_id, engine.is_intact, engine.profiles) == ("", "", None, None)
    assert engine.is_static is None
    assert engine.shapes == engine.sources == engine.written_record == {}
    assert engine.operator_counts is None


@pytest.mark.parametrize("wrong", [None, 7, "text", [1], {"total": "3", "with_source": 1}, {"1": 2}, [[1]], [{"0": 4}]])
def test_record_of_another_form_is_as_good_as_none(wrong: object) -> None:
    def spoil(record: dict[str, object]) -> None:
        record.update(operators=wrong, sources=wrong, layers=wrong)

    engine = only_engine(with_record(models.rows().buffer, spoil))
    assert engine.operator_counts is None
    assert not any(engine.sources.values())
    assert not any(handles for layers in engine.layer_handles for handles in layers.values())


def test_verify_engines_finds_other_bytes(tmp_path: Path) -> None:
    program = tmp_path / "rows.pte"
    buffer = bytearray(models.rows().buffer)
    program.write_bytes(buffer)
    verify_engines(program)
    at, blob = engine_blob(bytes(buffer))
    buffer[at + len(blob) - 1] ^= 1
    program.write_bytes(buffer)
    with pytest.raises(ValueError, match=r"rows.pte' is damaged: engine [0-9a-f]{12} has other bytes than its id says"):
        verify_engines(program)


def test_blobs_are_read_without_torch(run_python: Callable[..., CompletedProcess[str]]) -> None:
    result = run_python(
        "import sys; from executorch_tensorrt import program; "
        "from executorch_tensorrt.program import blobs, checks; "
        "(method,) = program.read_program(sys.argv[1]).methods; "
        "print(len(checks.check_method(method, blobs.blobs_of(method))), 'torch' in sys.modules)",
        str(TORCH_TENSORRT),
    )
    assert result.stdout.strip() == "3 False", result.stderr
