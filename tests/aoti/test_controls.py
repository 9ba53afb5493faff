"""The process-wide controls, as operators and as functions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
import torch

from executorch_tensorrt import aoti
from executorch_tensorrt.profiling import profiling_state, set_profiling

ops = torch.ops.executorch_tensorrt
RunPython = Callable[..., "CompletedProcess[str]"]


def test_controls_begin_switched_off(run_python: RunPython) -> None:
    code = """
import torch, executorch_tensorrt
ops = torch.ops.executorch_tensorrt
print([ops.get_profile_path_prefix(), ops.get_profile_format(), ops.get_profile_execution()])
try:
    ops.set_profile_execution(True)
except ValueError as error:
    print(error)
"""
    first, second = run_python(code).stdout.splitlines()
    assert first == "['', 'perfetto', False]"
    assert "'perfetto' writes files: give 'torchtrt_profile_path_prefix' a folder" in second


def test_operators_and_functions_set_and_get_the_same(tmp_path: Path) -> None:
    aoti.set_profile_path_prefix(tmp_path)
    ops.set_profile_format("trex")
    aoti.set_profile_execution(True)
    assert (ops.get_profile_path_prefix(), aoti.get_profile_format()) == (str(tmp_path), "trex")
    assert ops.get_profile_execution() is aoti.get_profile_execution() is True
    ops.set_profile_execution(False)
    assert aoti.get_profile_execution() is False
    assert (aoti.get_profile_path_prefix(), ops.get_profile_format()) == (str(tmp_path), "trex")


def test_controls_change_the_process_wide_settings_and_their_generation(tmp_path: Path) -> None:
    begin = profiling_state().generation
    aoti.set_profile_path_prefix(tmp_path)
    assert profiling_state().generation == begin
    aoti.set_profile_execution(True)
    state = profiling_state()
    assert (state.level, state.format, state.path_prefix) == ("layers", "perfetto", str(tmp_path))
    aoti.set_profile_format("trex")
    assert (profiling_state().format, profiling_state().generation) == ("trex", begin + 2)
    aoti.set_profile_execution(False)
    assert (profiling_state().is_set, profiling_state().generation) == (False, begin + 3)


def test_controls_keep_the_level_that_was_set(tmp_path: Path) -> None:
    set_profiling("phases", format="perfetto", path_prefix=tmp_path)
    assert aoti.get_profile_execution()
    aoti.set_profile_format("trex")
    aoti.set_profile_execution(True)
    assert profiling_state().level == "phases"


def test_switching_off_leaves_what_others_set_to_off(tmp_path: Path) -> None:
    set_profiling("off")
    aoti.set_profile_execution(False)
    assert profiling_state().is_set


@pytest.mark.parametrize("enabled", [False, True])
def test_controls_refuse_wrong_values_and_change_nothing(tmp_path: Path, enabled: bool) -> None:
    aoti.set_profile_path_prefix(tmp_path)
    aoti.set_profile_execution(enabled)
    before = (profiling_state().generation, aoti.get_profile_path_prefix(), aoti.get_profile_format())
    with pytest.raises(ValueError, match="got 'etdump', allowed 'perfetto', 'trex'"):
        aoti.set_profile_format("etdump")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="No such file or directory"):
        aoti.set_profile_path_prefix(tmp_path / "missing")
    assert before == (profiling_state().generation, aoti.get_profile_path_prefix(), aoti.get_profile_format())


def test_torch_tensorrt_names_come_on_request(run_python: RunPython, tmp_path: Path) -> None:
    code = """
import sys, torch
from executorch_tensorrt import aoti
print(hasattr(torch.ops.tensorrt, "set_profile_format"))
aoti.register_torch_tensorrt_names()
torch.ops.tensorrt.set_profile_path_prefix(sys.argv[1])
torch.ops.tensorrt.set_profile_execution(True)
print(aoti.get_profile_execution(), aoti.get_profile_path_prefix())
try:
    aoti.register_torch_tensorrt_names()
except RuntimeError as error:
    print(error)
"""
    lines = run_python(code, str(tmp_path)).stdout.splitlines()
    assert lines[:2] == ["False", f"True {tmp_path}"]
    assert "got torch.ops.tensorrt.set_profile_path_prefix in this process" in lines[2]


def test_torch_tensorrt_names_are_refused_beside_torch_tensorrt(run_python: RunPython) -> None:
    code = """
import torch
from executorch_tensorrt import aoti
library = torch.library.Library("tensorrt", "DEF")
library.define("execute_engine(Tensor[] inputs) -> Tensor[]")
try:
    aoti.register_torch_tensorrt_names()
except RuntimeError as error:
    print(error)
"""
    assert "got torch.ops.tensorrt.execute_engine in this process" in run_python(code).stdout
