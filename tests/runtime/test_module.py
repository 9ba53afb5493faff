"""Module: loading, inputs, outputs, and what it says of mistakes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import numpy as np
import pytest
import torch
from models import (
    decode_first,
    edge_shapes,
    mixed,
    no_inputs,
    profiles,
    rows,
    static_beside_dynamic,
    stock_program,
    two_inputs,
)

from executorch_tensorrt import ExecuTorchError, Input, Module, export


@pytest.fixture
def module() -> Module:
    return Module(rows().buffer)


def test_module_loads_a_saved_file(tmp_path: Path) -> None:
    path = tmp_path / "rows.pte"
    rows().etrecord.save(path)
    x = torch.randn(3, 4)
    for program in (path, str(path), path.read_bytes(), memoryview(path.read_bytes()), bytearray(path.read_bytes())):
        torch.testing.assert_close(Module(program).forward(x), rows().eager(x))


@pytest.mark.parametrize("mode", ["mmap", "file", "mlock"])
def test_module_loads_in_every_mode(mode: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.pte"
    path.write_bytes(rows().buffer)
    x = torch.randn(3, 4)
    torch.testing.assert_close(Module(path, load_mode=mode).forward(x), rows().eager(x))  # type: ignore[arg-type]


def test_module_describes_its_methods() -> None:
    module = Module(two_inputs().buffer)
    assert module.method_names == ["forward"]
    meta = module.method_meta()
    assert [(v.kind, v.tensor.dtype, v.tensor.sizes) for v in meta.inputs if v.tensor] == [
        ("Tensor", "int64", [1, 32]),
        ("Tensor", "int64", [1, 32]),
    ]
    assert [v.tensor.dtype for v in meta.outputs if v.tensor] == ["int64", "float32"]
    assert meta.backends == ["TensorRTBackend"]


def test_outputs_are_torch_tensors_only_when_torch_tensors_go_in(module: Module) -> None:
    x = torch.randn(3, 4)
    (from_torch,) = module.forward(x)
    (from_numpy,) = module.forward(x.numpy())
    assert isinstance(from_torch, torch.Tensor)
    assert isinstance(from_numpy, np.ndarray)
    np.testing.assert_array_equal(from_torch.numpy(), from_numpy)


def test_outputs_stay_when_the_next_call_runs(module: Module) -> None:
    (first,) = module.forward(np.ones((2, 4), np.float32))
    kept = first.copy()
    module.forward(np.zeros((8, 4), np.float32))
    np.testing.assert_array_equal(first, kept)


def test_outputs_outlive_the_module() -> None:
    (output,) = Module(rows().buffer).forward(np.ones((2, 4), np.float32))
    assert np.isfinite(output).all()


def test_inputs_may_be_strided_transposed_read_only_or_require_grad(module: Module) -> None:
    base = torch.randn(8, 8)
    for x in (base[:, ::2], base[:4, :4].T, base[:4, :4].clone().requires_grad_()):
        torch.testing.assert_close(module.forward(x), rows().eager(x.detach()))
    frozen = base[:4, :4].numpy().copy()
    frozen.flags.writeable = False
    np.testing.assert_allclose(module.forward(frozen)[0], rows().eager(torch.tensor(frozen))[0].numpy(), rtol=1e-5)
    np.testing.assert_allclose(module.forward(base.numpy()[:, ::2])[0], rows().eager(base[:, ::2])[0], rtol=1e-4)


def test_zero_dim_outputs_and_integers_come_back() -> None:
    ids, mask = torch.arange(10).reshape(1, 10), torch.ones(1, 10, dtype=torch.int64)
    kept, total = Module(two_inputs().buffer, optimization_profile="auto").forward(ids, mask)
    assert torch.equal(kept, ids)
    assert total.shape == ()
    assert total.item() == 45.0


@pytest.mark.parametrize("index", [0, 1])
def test_zero_size_outputs_and_zero_dim_inputs_work_in_every_profile(index: int) -> None:
    module = Module(edge_shapes().buffer, optimization_profile=index)
    for size in (2, 3):
        inputs = [torch.tensor(1.5), torch.randn(size, 4)]
        torch.testing.assert_close(module.forward(*inputs), edge_shapes().eager(*inputs))
    (empty, scaled, _) = module.forward(2, np.ones((2, 4), np.float32))  # a number for the 0-d input
    assert empty.shape == (2, 0)
    np.testing.assert_array_equal(scaled, np.full((2, 4), 2.0))


def test_method_without_inputs_runs() -> None:
    module = Module(no_inputs().buffer)
    np.testing.assert_array_equal(module.forward()[0], [3.0, 3.0])
    with pytest.raises(ValueError, match="got 1 inputs, allowed 0"):
        module.forward(np.ones(2, np.float32))


def test_inputs_that_share_a_dim_must_agree() -> None:
    module = Module(two_inputs().buffer)
    with pytest.raises(ValueError, match=r"input 'mask' dim 1: got 5, allowed 4"):
        module.forward(np.ones((1, 4), np.int64), np.ones((1, 5), np.int64))


@pytest.mark.parametrize(
    ("inputs", "error", "message"),
    [
        ((), ValueError, "method 'forward': got 0 inputs, allowed 1"),
        ((np.zeros((1, 4), np.float32),) * 2, ValueError, "got 2 inputs, allowed 1"),
        ((np.zeros((1, 4)),), ValueError, "input 0: got dtype float64, allowed float32"),
        ((torch.zeros(1, 4, dtype=torch.int64),), ValueError, "input 0: got dtype int64, allowed float32"),
        ((np.zeros((1, 4), np.complex64),), ValueError, "input 0: got dtype .*, allowed float32"),
        ((np.zeros(4, np.float32),), ValueError, r"input 0: got rank 1 \(4,\), allowed rank 2"),
        ((np.zeros((1, 1, 4), np.float32),), ValueError, "input 0: got rank 3"),
        ((np.zeros((65, 4), np.float32),), ValueError, r"input 0 dim 0: got 65 in \(65, 4\), .* at most \(64, 4\)"),
        ((np.zeros((2, 5), np.float32),), ValueError, "input 0 dim 1: got 5"),
        ((np.zeros((2, 3), np.float32),), ValueError, "dim 1: got 3, allowed 4..4 in profile 0"),
        ((3.0,), ValueError, "input 0: got rank 0"),
        ((3,), ValueError, "input 0: got rank 0"),
        (([[1.0] * 4],), TypeError, "input 0: got list, allowed a NumPy array"),
        ((None,), TypeError, "input 0: got NoneType"),
        (("x",), TypeError, "input 0: got str"),
    ],
)
def test_wrong_inputs_are_named_and_leave_the_module_usable(
    module: Module, inputs: tuple[object, ...], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        module.forward(*inputs)
    x = torch.randn(2, 4)
    torch.testing.assert_close(module.forward(x), rows().eager(x))


def test_unknown_method_is_named(module: Module) -> None:
    for call in (module.method_meta, module.load_method, module.run_method):
        with pytest.raises(ValueError, match="unknown method: got 'prefill', allowed 'forward'"):
            call("prefill")


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nothing.pte"):
        Module(tmp_path / "nothing.pte")
    with pytest.raises(IsADirectoryError, match=str(tmp_path)):
        Module(tmp_path)


@pytest.mark.parametrize("level", ["Phases", "", "all", 1])
def test_wrong_profile_level_is_named(level: object) -> None:
    with pytest.raises(ValueError, match="profile_level: got .*, allowed 'off', 'delegate', 'phases', 'layers'"):
        Module(rows().buffer, profile_level=level)  # type: ignore[arg-type]


def test_truncated_programs_are_refused() -> None:
    program = rows().buffer
    for size in [0, 1, 7, 31, 32, 63, 64, *range(100, len(program) - 1, 377)]:
        with pytest.raises((ValueError, ExecuTorchError)):
            Module(program[:size]).forward(np.zeros((2, 4), np.float32))


def test_foreign_file_is_refused() -> None:
    with pytest.raises((ValueError, ExecuTorchError), match="the program is no ExecuTorch program, or is damaged"):
        Module(b"PK\x03\x04" + bytes(4096))


def test_damaged_engine_is_refused_by_name_and_others_still_load() -> None:
    program = rows().buffer
    for find, replacement, message in [
        (b"ETC1", b"ETC9", "engine blob is foreign: got magic 'ETC9'"),
        (b'"version":1', b'"version":9', "engine metadata is damaged: record version 9"),
        (b'"float32"', b'"float33"', "dtype 'float33'"),
    ]:
        assert find in program
        module = Module(program.replace(find, replacement, 1))
        with pytest.raises((ValueError, ExecuTorchError), match=message):
            module.load_method()
    Module(program).load_method()


FLIP = """
import sys
import numpy as np
from executorch_tensorrt import Module

program = open(sys.argv[1], "rb").read()
begin = program.find(b"ETC1")
refused = survived = 0
for position in range(begin, min(len(program), begin + 4000), 23):
    damaged = bytearray(program)
    damaged[position] ^= 0x5A
    try:
        Module(bytes(damaged)).forward(np.ones((2, 4), np.float32))
        survived += 1
    except (ValueError, RuntimeError, MemoryError):
        refused += 1
print(refused, survived)
"""


def test_bit_flips_in_an_engine_never_crash(tmp_path: Path, run_python: Callable[..., CompletedProcess[str]]) -> None:
    path = tmp_path / "rows.pte"
    path.write_bytes(rows().buffer)
    result = run_python(FLIP, str(path))
    assert result.returncode == 0, result.stderr[-2000:]
    refused, survived = map(int, result.stdout.split())
    assert refused > 50
    assert refused + survived > 100


def test_engine_without_a_runtime_here_is_refused() -> None:
    foreign = rows().buffer.replace(b"ETC1", b"TR01", 1).replace(b'"engine_kind":"cpu"', b'"engine_kind":"rtx"', 1)
    with pytest.raises(ExecuTorchError, match="engine kind 'rtx' has no runtime on this machine, allowed 'cpu'"):
        Module(foreign).load_method()
    Module(rows().buffer).load_method()


def test_numerics_equal_eager_at_the_ends_and_inside_of_every_range() -> None:
    for exported, shapes in [
        (rows(), [((n, 4),) for n in (1, 2, 8, 9, 33, 64)]),
        (decode_first(), [((1, n, 8),) for n in (1, 2, 3, 40, 64)]),
        (mixed(), [((n, 4), (1, 4)) for n in (1, 3, 4, 5, 17, 32)]),
        (static_beside_dynamic(), [((1, 4), (n, 4)) for n in (1, 4, 5, 32)]),
    ]:
        module = Module(exported.buffer, optimization_profile="auto")
        for case in shapes:
            inputs = [torch.randn(shape) for shape in case]
            torch.testing.assert_close(module.forward(*inputs), exported.eager(*inputs))


def test_import_needs_neither_torch_nor_executorch_modules(run_python: Callable[..., CompletedProcess[str]]) -> None:
    code = "import sys, executorch_tensorrt; print([m for m in ('torch', 'executorch.exir') if m in sys.modules])"
    assert run_python(code).stdout.strip() == "[]"


def test_import_refuses_another_executorch_version(run_python: Callable[..., CompletedProcess[str]]) -> None:
    code = """
import importlib.metadata
importlib.metadata.version = lambda name: "1.4.0"
try:
    import executorch_tensorrt
except ImportError as error:
    print(error)
"""
    output = run_python(code).stdout
    assert "built against executorch 1.5.1: got executorch 1.4.0" in output


class _ChannelsLast(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x * 2).to(memory_format=torch.channels_last)


def test_outputs_in_another_dim_order_keep_their_meaning() -> None:
    shape = profiles((1, 2, 4), tail=(3, 4, 5))
    module = Module(export(_ChannelsLast().eval(), [Input(profiles=shape)]).buffer)
    x = torch.randn(2, 3, 4, 5)
    torch.testing.assert_close(module.forward(x)[0], x * 2)
    np.testing.assert_array_equal(module.forward(x.numpy())[0], x.numpy() * 2)


class _SumOfColumns(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(torch.neg(x)).sum(-1)


def test_inputs_are_brought_into_the_methods_dim_order() -> None:
    example = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    module = Module(stock_program(_SumOfColumns(), example))
    for x in (example, example.contiguous(), example.numpy(), np.ascontiguousarray(example.numpy())):
        output = torch.as_tensor(module.forward(x)[0])
        torch.testing.assert_close(output, _SumOfColumns()(example))


def test_outputs_that_the_program_did_not_plan_are_provided() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
    x = torch.randn(2, 4)
    module = Module(stock_program(model, x, plan_outputs=False))
    for _ in range(2):
        torch.testing.assert_close(module.forward(x)[0], model(x))


def test_inputs_of_many_dims_or_lazy_sign_are_handled() -> None:
    module = Module(rows().buffer)
    with pytest.raises(ValueError, match="input 0: got rank 17"):
        module.forward(np.zeros((1,) * 17, np.float32))
    x = torch._neg_view(torch.randn(2, 4))
    torch.testing.assert_close(module.forward(x), rows().eager(x))


@pytest.mark.parametrize("value", [10**400, 2.5, True])
def test_numbers_that_do_not_fit_are_named(value: object) -> None:
    with pytest.raises(ValueError, match=r"input 0: got dtype .*, allowed int64"):
        Module(two_inputs().buffer).forward(value, value)


@pytest.mark.parametrize("inputs", [torch.ones(1, 4), np.ones((1, 4), np.float32), {"x": 1}, "x", 1])
def test_run_method_refuses_inputs_that_are_no_list(inputs: object) -> None:
    with pytest.raises(TypeError, match=r"inputs of method 'forward': got \w+, allowed a list of .*; write \[x\]"):
        Module(rows().buffer).run_method("forward", inputs)  # type: ignore[arg-type]


def test_numbers_that_are_part_of_the_program_are_named() -> None:
    class Scaled(torch.nn.Module):
        def forward(self, x: torch.Tensor, factor: float, count: int, signed: bool) -> torch.Tensor:
            return x * factor + count if signed else x

    x = torch.ones(1, 4)
    module = Module(export(Scaled().eval(), [Input((1, 4)), 2.5, 3, True]).buffer)
    for numbers, message in (
        ((0.5, 3, True), "input 1: got 0.5, allowed 2.5, with which the program was exported"),
        ((2.5, 4, True), "input 2: got 4, allowed 3, with which the program was exported"),
        ((2.5, 3, False), "input 3: got false, allowed true, with which the program was exported"),
    ):
        with pytest.raises(ValueError, match=message):
            module.forward(x, *numbers)
    torch.testing.assert_close(module.forward(x, 2.5, 3, True)[0], x * 5.5)


def test_engine_that_contradicts_its_metadata_fails_within_its_memory() -> None:
    claimed, short = b'"outputs":[["s0",4]]', b'"outputs":[[1,4]]'
    program = rows().buffer
    assert claimed in program
    module = Module(program.replace(claimed, short.ljust(len(claimed))))
    for _ in range(2):
        with pytest.raises(ExecuTorchError, match="cpu engine, method 'profile_0'"):
            module.forward(np.ones((6, 4), np.float32))
    np.testing.assert_allclose(
        module.forward(np.ones((1, 4), np.float32))[0], rows().eager(torch.ones(1, 4))[0].numpy(), rtol=1e-5
    )


def test_module_shows_what_it_is(tmp_path: Path) -> None:
    path = tmp_path / "rows.pte"
    exported = export(rows().module, [Input(profiles=profiles((1, 1, 1), (2, 4, 8), tail=(4,)))])
    exported.save(path)
    assert (
        repr(exported) == f"ExportedEngineProgram(methods=['forward'], engines=1, {path.stat().st_size / 1e3:.1f} kB)"
    )
    module = Module(path)
    assert repr(module) == f"Module('{path}', methods=['forward'])"
    assert repr(Module(path.read_bytes())) == f"Module({path.stat().st_size} bytes, methods=['forward'])"
    value = "ValueMeta(kind='Tensor', tensor=TensorMeta(dtype='float32', sizes=[8, 4]))"
    expected = f"MethodMeta(name='forward', inputs=[{value}], outputs=[{value}], backends=['TensorRTBackend'])"
    assert repr(module.method_meta()) == expected


def test_module_refuses_arguments_of_another_type() -> None:
    with pytest.raises(TypeError, match="program: got NoneType, allowed a path or the program's bytes, as Exported"):
        Module(None)  # type: ignore[arg-type]
    with pytest.raises(
        TypeError, match=r"etdump: got 'a.etdp', allowed True or False; give a path to write_etdump\(\)"
    ):
        Module(rows().buffer, etdump="a.etdp")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (np.array([None]), "input 0: got ndarray of dtype object, allowed a NumPy array of native byte order"),
        (np.ones((3, 4), np.dtype("float32").newbyteorder()), "input 0: got ndarray of dtype >f4, allowed"),
        (torch.ones(3, 4, device="meta"), "input 0: got Tensor of dtype torch.float32, allowed"),
    ],
)
def test_module_names_the_type_of_an_array_that_it_cannot_read(value: object, told: str, module: Module) -> None:
    with pytest.raises(TypeError, match=told):
        module.forward(value)


def test_module_names_an_element_type_that_no_program_has(module: Module) -> None:
    with pytest.raises(ValueError, match="input 0: got dtype complex64, allowed float32"):
        module.forward(np.ones((3, 4), np.complex64))


def test_module_keeps_its_events_when_an_etdump_cannot_be_written(tmp_path: Path) -> None:
    module = Module(rows().buffer, etdump=True)
    module.forward(torch.ones(3, 4))
    with pytest.raises(FileNotFoundError):
        module.write_etdump(tmp_path / "gone" / "a.etdp")
    assert module.write_etdump(tmp_path / "a.etdp") == 0
    assert [path.name for path in tmp_path.iterdir()] == ["a.etdp"]
