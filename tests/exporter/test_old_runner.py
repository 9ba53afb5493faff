"""What a runner of before there were profiles sees of a program: the engine, Torch-TensorRT's keys, and no profile."""

from __future__ import annotations

import json
from typing import Any

import models
import pytest
import torch
from export_cases import ranges
from torch_tensorrt_graphs import Engine, compiled, fields, one_engine
from wire_format import parse

from executorch_tensorrt import Input, export
from executorch_tensorrt.program import BACKEND_ID, read_program

TWO_PROFILES = Input(profiles=ranges(((1, 4), (1, 4), (1, 4)), ((2, 4), (16, 4), (32, 4))))
SCALARS = ("hardware_compatible", "device_id", "serialized_metadata", "target_platform")


def only_blob(buffer: bytes) -> bytes:
    (delegate,) = [item for item in read_program(buffer).methods[0].delegates if item.backend_id == BACKEND_ID]
    return bytes(delegate.blob)


def old_view(data: bytes) -> tuple[bytes, dict[str, Any]]:
    """Engine and keys, as a small reader finds them that searches the text from the arrays' end on."""
    blob = parse(data)
    if blob.magic not in ("TR01", "TR02"):
        raise ValueError(f"magic {blob.magic}")
    start, size = (int.from_bytes(data[at : at + 4], "little") for at in (4, 8))
    text, at = data[start : start + size].decode(), 0
    found: dict[str, Any] = {}
    for key in ("io_bindings", "aliased_io", *SCALARS):
        begin = text.index(f'"{key}":', at) + len(key) + 3
        found[key], end = json.JSONDecoder().raw_decode(text, begin)
        at = end if key not in SCALARS else at
    return blob.engine, found


def test_old_runner_sees_the_engine_and_nothing_of_its_profiles() -> None:
    with_profiles = only_blob(export(one_engine(b"a plan"), [TWO_PROFILES]).buffer)
    without = only_blob(export(one_engine(b"a plan")).buffer)
    assert len(parse(with_profiles).ours["profiles"]) == 2
    assert old_view(with_profiles) == old_view(without)
    engine, found = old_view(with_profiles)
    assert engine == b"a plan"
    assert [item["name"] for item in found["io_bindings"]] == ["x", "output0"]


@pytest.mark.parametrize("name", ["device_id", "hardware_compatible", "serialized_metadata", 'kv:"cache"'])
def test_old_runner_finds_its_own_keys_whatever_ours_say(name: str) -> None:
    engine = Engine(fields(b"plan", [name], [name + "_out"], device=3, hardware_compatible=True), lambda x: [x.clone()])
    blob = only_blob(export(compiled(lambda x, run: run(x)[0], [engine], [torch.ones(2, 4)])).buffer)
    _, found = old_view(blob)
    assert (found["device_id"], found["hardware_compatible"]) == (3, True)
    theirs = {key: value for key, value in parse(blob).metadata.items() if key != "executorch_tensorrt"}
    assert found == theirs


def test_old_runner_refuses_bindings_that_are_no_arguments() -> None:
    engine = Engine(fields(b"two", outputs=["unused", "used"]), lambda x: [x.sum(), x.clone()])
    program = export(compiled(lambda x, run: run(x)[1], [engine], [torch.ones(2, 4)])).buffer
    (call,) = [step for step in read_program(program).methods[0].instructions if step.kind == "delegate"]
    assert len(old_view(only_blob(program))[1]["io_bindings"]) == 3 > len(call.arguments)


def test_old_runner_refuses_the_cpu_engine() -> None:
    with pytest.raises(ValueError, match="magic ETC1"):
        old_view(only_blob(models.rows().buffer))
