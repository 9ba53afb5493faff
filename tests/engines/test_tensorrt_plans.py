"""From `export` to a `.pte` program with real TensorRT-RTX plans, on a machine without a GPU."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
import tensorrt_rtx
import torch
from engines.onnx_cases import assert_onnx_matches, export_rtx
from engines.test_tensorrt_models import CASES
from export_cases import model_of, rows

from executorch_tensorrt import export
from executorch_tensorrt.cli.contents import describe_program
from executorch_tensorrt.demo import encoder
from executorch_tensorrt.engines.tensorrt import network
from executorch_tensorrt.engines.tensorrt.library import load_library

ROWS = [rows((1, 2, 4), (5, 8, 12), name="x")]


def double() -> torch.nn.Module:
    return model_of(lambda self, x: x * 2)


@pytest.fixture(scope="module")
def block(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A transformer block for compute capability 8.9."""
    program, _ = export_rtx(*CASES["block"], engine_options={"compute_capability": "8.9"})
    path = tmp_path_factory.mktemp("plans") / "block.pte"
    program.save(path)
    return path


def engine_in(path: Path) -> dict[str, Any]:
    (method,) = describe_program(path)["methods"]
    (delegate,) = method["delegates"]
    return delegate["engine"]


def test_program_tells_what_its_engine_is_for(block: Path) -> None:
    engine = engine_in(block)
    assert (engine["format"], engine["kind"], engine["intact"]) == ("TR01", "tensorrt_rtx", True)
    assert engine["builder"].endswith(f"TensorRT-RTX {tensorrt_rtx.__version__} for compute capability 8.9")
    assert engine["signature"] == "x[0]=1:2:4|5:8:12"
    assert engine["hardware_compatible"]
    assert [item["name"] for item in engine["inputs"]] == ["x"]


def test_program_ties_layers_to_operators(block: Path) -> None:
    """In each profile, ONNX nodes by name; that is what TensorRT calls its layers after."""
    data = block.read_bytes()
    assert b'"node_aten_add_tensor_1":[' in data
    assert data.count(b'"node_aten_add_tensor_1":[') == 2


RUN = """
import sys
import numpy as np
from executorch_tensorrt import Module
Module(sys.argv[1]).forward(np.ones((2, 8), np.float32))
"""


def test_program_that_can_not_run_here_says_so(
    block: Path, run_python: Callable[..., subprocess.CompletedProcess[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ETRT_CUDART", "/no/libcudart.so")
    result = run_python(RUN, str(block))
    assert "ExecuTorchError: method 'forward': CUDA can't be used here: no library of its runtime" in result.stderr
    assert (
        "tried /no/libcudart.so; install it, or name its file in the environment variable ETRT_CUDART" in result.stderr
    )


@pytest.mark.parametrize("capability", ["8.6", "8.9", "12.0"])
def test_plan_of_two_profiles_is_built_for_a_gpu_that_is_not_here(capability: str) -> None:
    program, (built,) = export_rtx(double(), ROWS, engine_options={"compute_capability": capability})
    assert len(built.request.bounds) == 2
    (delegate,) = program.delegates
    assert [entry["inputs"][0] for entry in delegate["profiles"]] == [
        {"min": [1, 4], "opt": [2, 4], "max": [4, 4]},
        {"min": [5, 4], "opt": [8, 4], "max": [12, 4]},
    ]
    assert b"x [profile 1]" in program.buffer  # what TensorRT calls the input there


def test_plan_of_static_inputs_has_one_profile() -> None:
    program, (built,) = export_rtx(double(), [rows((3, 3, 3))])
    assert len(built.request.bounds) == 1
    assert b"[profile 1]" not in program.buffer


def test_plan_without_inputs_is_built() -> None:
    program, _ = export_rtx(model_of(lambda self: torch.arange(4).flip(0)), [])
    assert [delegate["inputs"] for delegate in program.delegates] == [[]]


@pytest.mark.filterwarnings("ignore:ExecuTorch has no kernel")  # nothing here is run
def test_partitions_get_a_plan_each() -> None:
    model = model_of(lambda self, x: torch.cumprod(x * 2, 0) + x.sum())
    program, built = export_rtx(model, ROWS)
    assert list(program.left_outside) == ["aten_cumprod_default"]
    assert {entry["signature"] for entry in program.delegates} == {"x[0]=1:2:4|5:8:12"}
    assert len(built) == len(program.delegates) == 2


def test_options_reach_the_builder() -> None:
    library = load_library("tensorrt_rtx")
    options = network.BuildOptions(
        precision="tf32",
        workspace_size=1 << 20,
        optimization_level=2,
        profiling_verbosity="detailed",
        compute_capability=("8.6", "12.0"),
    )
    config = network.configure(library, options)
    assert config.get_flag(tensorrt_rtx.BuilderFlag.TF32)
    assert config.get_memory_pool_limit(tensorrt_rtx.MemoryPoolType.WORKSPACE) == 1 << 20
    assert config.builder_optimization_level == 2
    assert config.profiling_verbosity == tensorrt_rtx.ProfilingVerbosity.DETAILED
    targets = [config.get_compute_capability(index) for index in range(config.num_compute_capabilities)]
    assert targets == [tensorrt_rtx.ComputeCapability.SM86, tensorrt_rtx.ComputeCapability.SM120]
    assert not network.configure(library, network.BuildOptions()).get_flag(tensorrt_rtx.BuilderFlag.TF32)


def test_build_tells_its_phases(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "executorch_tensorrt.engines.tensorrt.network"):
        export_rtx(double(), ROWS)
    assert "Building engine" in caplog.messages
    assert len(caplog.messages) < 20


def test_failed_build_says_what_tensorrt_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """A profile that leaves what the model accepts; the exporter makes none such."""

    def narrow(library: Any, model: Path, profiles: Any, *arguments: Any) -> Any:
        return build(library, model, [{"x": [(1, 1, 1), (5, 5, 5)]}], *arguments)

    build = network.build_plan
    monkeypatch.setattr("executorch_tensorrt.engines.tensorrt.builder.build_plan", narrow)
    with pytest.raises(RuntimeError, match=r"TensorRT-RTX [\d.]+ .*: got "):
        export_rtx(double(), ROWS)


def test_timing_cache_is_read_and_written(tmp_path: Path) -> None:
    """On stand-ins: for TensorRT-RTX timing caches do nothing."""
    config = MagicMock()
    config.get_timing_cache.return_value.serialize.return_value = b"measured"
    builder = SimpleNamespace(create_builder_config=lambda: config)
    library: Any = SimpleNamespace(module=tensorrt_rtx, builder=builder, strongly_typed=True)
    options = network.BuildOptions(timing_cache_path=str(tmp_path / "timings"))
    for known in (b"", b"measured"):
        network.configure(library, options)
        config.create_timing_cache.assert_called_with(known)
        network.keep_timings(config, options)
    assert [path.name for path in tmp_path.iterdir()] == ["timings"]


def test_tensorrt_kind_builds_with_its_own_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """TensorRT-RTX stands in for TensorRT 10, which needs a GPU to build."""
    stand_in = SimpleNamespace(**{name: getattr(tensorrt_rtx, name) for name in dir(tensorrt_rtx) if name[0] != "_"})
    stand_in.__version__ = "10.9.0"
    monkeypatch.setitem(sys.modules, "tensorrt", stand_in)  # type: ignore[arg-type]
    try:
        program = export(double(), ROWS, engine="tensorrt")
    finally:
        load_library.cache_clear()
    (delegate,) = program.delegates
    assert delegate["engine_kind"] == "tensorrt"
    assert b"TensorRT 10.9.0" in program.buffer


@pytest.mark.filterwarnings("ignore")
def test_minilm_becomes_one_plan_with_eager_numbers() -> None:
    model = encoder.load_encoder().model
    inputs = encoder.declared_inputs()
    program, (built,) = export_rtx(model, inputs, engine_options={"compute_capability": "8.9"})
    assert not program.left_outside
    assert_onnx_matches(model, inputs, built.model, [[[(1, 2), (1, 2)]], [[(1, 33), (1, 33)]]])
