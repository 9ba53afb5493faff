"""`read_program`: what it finds, and how it treats files that are damaged or foreign."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import models
import pytest
import torch
from executorch.exir import ExecutorchBackendConfig, to_edge_transform_and_lower
from executorch.exir.passes import MemoryPlanningPass

from executorch_tensorrt import Module, _program_schema
from executorch_tensorrt.program import Value, read_program

TORCH_TENSORRT = Path(__file__).parents[1] / "data" / "torch_tensorrt_2.14_two_profiles.pte"


def test_read_program_finds_the_signature_and_the_engine() -> None:
    program = read_program(models.rows().buffer)
    (method,) = program.methods
    assert method.name == "forward"
    assert method.inputs == method.outputs == (Value("tensor", "float32", (64, 4), dynamic=True),)
    (delegate,) = method.delegates
    assert (delegate.index, delegate.backend_id) == (0, "TensorRTBackend")
    assert bytes(delegate.blob[:4]) == b"ETC1"
    assert "etrt.profiles" in dict(delegate.compile_specs)
    assert method.operators == {}
    assert program.file_bytes == len(models.rows().buffer)


@pytest.mark.parametrize("model", [models.rows, models.mixed, models.static_beside_dynamic, models.two_inputs])
def test_read_program_agrees_with_the_runtime(model: Callable[[], models.Exported]) -> None:
    buffer = model().buffer
    meta = Module(buffer).method_meta()
    (method,) = read_program(buffer).methods
    for ours, theirs in ((method.inputs, meta.inputs), (method.outputs, meta.outputs)):
        assert [(v.dtype, list(v.sizes)) for v in ours] == [
            (v.tensor.dtype, v.tensor.sizes) for v in theirs if v.tensor
        ]
    assert {delegate.backend_id for delegate in method.delegates} == set(meta.backends)


def test_read_program_counts_operators_outside_delegates() -> None:
    (method,) = read_program(models.mixed().buffer).methods
    assert method.operators == {"aten::cumsum.out": 1}
    assert {delegate.backend_id for delegate in method.delegates} == {"TensorRTBackend", "XnnpackBackend"}
    assert [delegate.index for delegate in method.delegates] == list(range(len(method.delegates)))


def test_read_program_reads_a_file_of_torch_tensorrt() -> None:
    (method,) = read_program(TORCH_TENSORRT).methods
    assert method.planned_bytes == (65536, 131072)
    assert method.devices == {1: "cuda:0"}
    assert method.delegates[0].compile_specs == (("target_device", b"cuda:0"),)
    assert bytes(method.delegates[0].blob[:4]) == b"TR01"
    assert method.operators == {"et_copy::_h2d_copy.out": 1, "et_copy::_d2h_copy.out": 1}


def test_read_program_says_what_instructions_read_and_write() -> None:
    (method,) = read_program(models.shared_tensors().buffer).methods
    first, cumsum, second = method.instructions
    (x,), (result,) = method.inputs, method.outputs
    assert [step.kind for step in method.instructions] == ["delegate", "kernel", "delegate"]
    assert first.arguments[0] == x.index
    assert cumsum.arguments[0] == first.arguments[1]
    assert second.arguments == (cumsum.arguments[-1], first.arguments[1], x.index, result.index)
    assert {index: method.values[index].sizes for index in second.arguments} == dict.fromkeys(second.arguments, (64, 4))


def test_read_program_tells_constants_arenas_and_the_callers_memory() -> None:
    (method,) = read_program(models.no_inputs().buffer).methods
    (call,) = method.instructions
    constant, result = (method.values[index] for index in call.arguments)
    assert (constant.constant, constant.arena) == (True, -1)
    assert (result.constant, result.arena) == (False, 0)
    planning = MemoryPlanningPass(alloc_graph_input=False, alloc_graph_output=False)
    edge = to_edge_transform_and_lower(torch.export.export(torch.nn.ReLU(), (torch.zeros(2),)))
    unplanned = edge.to_executorch(ExecutorchBackendConfig(memory_planning_pass=planning)).buffer
    (method,) = read_program(unplanned).methods
    assert [(value.constant, value.arena) for value in (*method.inputs, *method.outputs)] == [(False, -1)] * 2


def test_read_program_tells_a_tensor_without_largest_shape() -> None:
    buffer = bytearray(models.rows().buffer)
    plan = _program_schema.Program.GetRootAs(buffer, 0).ExecutionPlan(0)
    union = plan.Values(plan.Outputs(0)).Val()
    dynamism = _program_schema.TensorShapeDynamism
    field = 20  # of shape_dynamism, in the table of a tensor
    tensor = _program_schema.Tensor()
    tensor.Init(union.Bytes, union.Pos)
    at = tensor._tab.Pos + tensor._tab.Offset(field)
    assert buffer[at] == dynamism.DYNAMIC_BOUND
    buffer[at] = dynamism.DYNAMIC_UNBOUND
    (method,) = read_program(bytes(buffer)).methods
    assert [(value.dynamic, value.bounded) for value in (*method.inputs, *method.outputs)] == [
        (True, True),
        (True, False),
    ]


def test_read_program_reads_a_path_as_it_reads_bytes(tmp_path: Path) -> None:
    path = tmp_path / "rows.pte"
    path.write_bytes(models.rows().buffer)
    assert read_program(path) == read_program(str(path)) == read_program(models.rows().buffer)


def test_read_program_needs_no_torch(run_python: Callable[..., CompletedProcess[str]]) -> None:
    result = run_python(
        "import sys; from executorch_tensorrt.program import read_program; read_program(sys.argv[1]); "
        "print([name for name in ('torch', 'executorch.exir') if name in sys.modules])",
        str(TORCH_TENSORRT),
    )
    assert result.stdout.strip() == "[]", result.stderr


def test_read_program_names_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no program at '.*nothing.pte'"):
        read_program(tmp_path / "nothing.pte")
    with pytest.raises(IsADirectoryError, match=r"'.*' is a folder; give a .pte file"):
        read_program(tmp_path)


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04", b"PK\x03\x04" * 100, bytes(64)])
def test_read_program_refuses_foreign_files(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "foreign.pte"
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"'.*foreign.pte' is no ExecuTorch program: got b.*, allowed b'ET12'"):
        read_program(path)


def test_read_program_refuses_every_truncation() -> None:
    buffer = models.rows().buffer
    for size in [*range(0, 1000, 7), len(buffer) // 2, len(buffer) - 1]:
        with pytest.raises(ValueError, match="is no ExecuTorch program|is damaged or truncated"):
            read_program(buffer[:size])


@pytest.mark.parametrize("seed", range(4))
def test_read_program_gives_a_value_error_for_damage(seed: int) -> None:
    buffer = models.mixed().buffer
    (tables,) = struct.unpack_from("<Q", buffer, 16)
    draw = random.Random(seed)
    refused: list[str] = []
    for _ in range(500):
        damaged = bytearray(buffer)
        for _ in range(2):
            damaged[draw.randrange(tables)] = draw.randrange(256)
        try:
            read_program(bytes(damaged))
        except ValueError as error:
            refused.append(str(error))
    assert len(refused) > 50
    assert all(text.startswith("the program is") for text in refused)


def test_read_program_bounds_what_a_small_file_unfolds_into() -> None:
    """Methods may share tables: 500 methods with the same 2000 values must not become a million."""
    plans, values = 500, 2000
    # Tables have no fields but those set here; offsets count from where they are stored.
    evalue = struct.pack("<HHi", 4, 4, 4)
    data = bytearray(struct.pack("<I4s", 8, b"ET12"))
    data += struct.pack("<i", -20) + struct.pack("<I", 0) + bytes(12) + struct.pack("<HHHHI", 8, 8, 0, 4, 0)
    vector_of_plans = len(data)
    struct.pack_into("<I", data, 12, vector_of_plans - 12)
    data += struct.pack("<I", plans) + bytes(4 * plans)
    plan = len(data) + 12
    data += struct.pack("<HHHHHH", 12, 8, 0, 0, 4, 0) + struct.pack("<i", 12) + struct.pack("<I", 4)
    vector_of_values = len(data)
    data += struct.pack("<I", values) + bytes(4 * values)
    value = len(data) + 4
    data += evalue
    for index in range(plans):
        at = vector_of_plans + 4 + 4 * index
        struct.pack_into("<I", data, at, plan - at)
    for index in range(values):
        at = vector_of_values + 4 + 4 * index
        struct.pack_into("<I", data, at, value - at)
    with pytest.raises(ValueError, match="is damaged or truncated"):
        read_program(bytes(data))
