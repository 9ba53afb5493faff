"""Damage that ExecuTorch's own check of a program lets through."""

from __future__ import annotations

import struct

import models
import pytest
from edited_programs import engine_blob

from executorch_tensorrt import Module, _program_schema


@pytest.mark.parametrize("order", [(0, 7), (1, 1)], ids=["a dim that is not there", "a dim twice"])
@pytest.mark.parametrize("side", ["Inputs", "Outputs"])
def test_damaged_dim_order_is_refused(side: str, order: tuple[int, int]) -> None:
    program = bytearray(models.rows().buffer)
    plan = _program_schema.Program.GetRootAs(program, 0).ExecutionPlan(0)
    table = plan.Values(getattr(plan, side)(0)).Val()
    tensor = _program_schema.Tensor()
    tensor.Init(table.Bytes, table.Pos)
    tensor.DimOrderAsNumpy()[:] = order
    with pytest.raises(ValueError, match=r"method 'forward': value \d+: dim order: it is no permutation"):
        Module(bytes(program))


def test_delegate_without_a_name_is_refused() -> None:
    program = bytearray(models.rows().buffer)
    table = _program_schema.Program.GetRootAs(program, 0).ExecutionPlan(0).Delegates(0)._tab
    fields = table.Pos - struct.unpack_from("<i", program, table.Pos)[0]  # FlatBuffers' vtable
    struct.pack_into("<H", program, fields + 4, 0)  # the first field, the name, is absent
    with pytest.raises(ValueError, match="method 'forward': delegate 0: it has no backend"):
        Module(bytes(program))


def test_damaged_byte_of_an_engine_is_refused_before_it_runs() -> None:
    program = bytearray(models.rows().buffer)
    at, blob = engine_blob(bytes(program))
    program[at + len(blob) - 1] ^= 1
    with pytest.raises(ValueError, match="the engine has other bytes than its id says: got "):
        Module(bytes(program)).load_method()
