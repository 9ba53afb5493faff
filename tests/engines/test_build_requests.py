"""Export on a machine that can't build, build on one that can, and export again."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import onnx
import pytest
import torch
from engines.missing import without
from executorch.exir import to_edge_transform_and_lower
from export_cases import model_of, rows

from executorch_tensorrt import TensorRTPartitioner, export
from executorch_tensorrt.engines.builder import EnginesMissingError
from executorch_tensorrt.engines.tensorrt import build_requests, builder, library, network
from executorch_tensorrt.engines.tensorrt.build_requests import Outcome
from executorch_tensorrt.engines.tensorrt.cache import requested
from executorch_tensorrt.exporter import ExportedEngineProgram

ROWS = [rows((1, 2, 4), (5, 8, 12), name="x")]
OPTIONS = {"compute_capability": "8.9"}


def two_partitions() -> torch.nn.Module:
    """What the ONNX exporter has no word for is between them."""
    return model_of(lambda self, x: torch.cumprod(x * 2, 0) + x.sum())


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def export_rtx(model: torch.nn.Module, cache: Path | None, **options: Any) -> ExportedEngineProgram:
    given = {"inputs": ROWS, "engine": "tensorrt_rtx", "engine_options": OPTIONS, "engine_cache": cache, **options}
    return export(model, **given)


def ask(model: torch.nn.Module, cache: Path, **options: Any) -> EnginesMissingError:
    """Export without TensorRT."""
    with without("tensorrt", "tensorrt_rtx"), pytest.raises(EnginesMissingError) as caught:
        export_rtx(model, cache, **options)
    return caught.value


def build(cache: Path) -> list[Outcome]:
    return list(build_requests.build_requests(cache, lambda text: None))


def statuses(outcomes: Sequence[Outcome]) -> list[str]:
    return sorted(outcome.status for outcome in outcomes)


def refuse_to_build(*arguments: Any) -> network.Plan:
    raise AssertionError("an engine was built")


@pytest.mark.filterwarnings("ignore:ExecuTorch has no kernel")  # nothing here is run
def test_export_with_a_cache_builds_an_engine_once(cache: Path) -> None:
    first = export_rtx(two_partitions(), cache)
    with patch.object(builder, "build_plan", refuse_to_build):
        second = export_rtx(two_partitions(), cache)
    assert second.buffer == first.buffer
    assert len(first.delegates) == 2
    assert str(cache).encode() not in first.buffer


def test_export_with_a_cache_builds_anew_for_other_options(cache: Path) -> None:
    export_rtx(model_of(lambda self, x: x * 2), cache)
    with patch.object(builder, "build_plan", refuse_to_build), pytest.raises(AssertionError):
        export_rtx(model_of(lambda self, x: x * 2), cache, engine_options={"compute_capability": "12.0"})


def test_export_asks_for_every_engine_before_it_stops(cache: Path) -> None:
    error = ask(two_partitions(), cache)
    assert error.count == len(requested(cache)) == 2
    assert str(error) == (
        f"engines are missing: got 2 build requests in '{cache}', wanted the engines; run 'etrt build-engines {cache}' "
        "on a machine with TensorRT-RTX (take the folder there and back), then export again."
    )


def test_export_asks_for_the_engines_of_all_methods(cache: Path) -> None:
    model = {"first": model_of(lambda self, x: x * 2), "second": model_of(lambda self, x: x + 2)}
    assert ask(model, cache, inputs=dict.fromkeys(model, ROWS)).count == 2  # type: ignore[arg-type]


@pytest.mark.filterwarnings("ignore:ExecuTorch has no kernel")  # nothing here is run
def test_export_completes_with_the_program_that_a_direct_one_makes(cache: Path) -> None:
    ask(two_partitions(), cache)
    assert statuses(build(cache)) == ["built", "built"]
    with without("tensorrt", "tensorrt_rtx"):
        program = export_rtx(two_partitions(), cache, generate_etrecord=True)

    plans = {tuple(job.dtypes): entry.plan() for entry in requested(cache) if (job := entry.request()) is not None}

    def same_plan(library: Any, model: Path, profiles: Any, dtypes: Any, *rest: Any) -> network.Plan | None:
        return plans[tuple(dtypes)]  # TensorRT's own differ from build to build

    with patch.object(builder, "build_plan", same_plan):
        direct = export_rtx(two_partitions(), None)
    assert program.buffer == direct.buffer


def test_partitioner_asks_and_completes(cache: Path) -> None:
    exported = torch.export.export(model_of(lambda self, x: x * 2), (torch.ones(2, 4),))

    def lower() -> bytes:
        partitioner = TensorRTPartitioner(engine="tensorrt_rtx", engine_options=OPTIONS, engine_cache=cache)
        return to_edge_transform_and_lower(exported, partitioner=[partitioner]).to_executorch().buffer

    with without("tensorrt_rtx"):
        with pytest.raises(EnginesMissingError, match="got 1 build request in"):
            lower()
        assert statuses(build(cache)) == ["failed"]
    assert statuses(build(cache)) == ["built"]
    with without("tensorrt_rtx"):
        assert lower().count(b"TR01") == 1


def test_refused_operator_stays_outside_of_what_is_asked_for_next(cache: Path) -> None:
    """Without the parser nobody knows before that it takes no `bitwise_and`."""
    model = model_of(lambda self, x: (torch.bitwise_and(x, 3) + 1) * 2)
    inputs = [rows((1, 2, 4), (5, 8, 12), dtype="int64")]
    ask(model, cache, inputs=inputs)
    (outcome,) = build(cache)
    assert (outcome.status, outcome.is_new) == ("refused", True)
    assert outcome.operators == {"aten.bitwise_and.Scalar": "TensorRT-RTX's parser refuses BitwiseAnd: false"}
    ask(model, cache, inputs=inputs)
    assert statuses(build(cache)) == ["built", "refused"]
    assert [outcome.is_new for outcome in build(cache)] == [False, False]
    with without("tensorrt_rtx"):
        program = export_rtx(model, cache, inputs=inputs)
    assert program.left_outside == {"aten_bitwise_and_scalar": "TensorRT-RTX's parser refuses BitwiseAnd: false"}
    assert len(program.delegates) == 1


def test_failed_build_is_told_and_tried_again_and_others_are_built(cache: Path) -> None:
    ask(two_partitions(), cache)
    left = [RuntimeError("no memory")]

    def once_failing(*arguments: Any) -> network.Plan:
        if left:
            raise left.pop()
        return network.build_plan(*arguments)

    with patch.object(build_requests, "build_plan", once_failing):
        failed, built = build(cache)
        assert (failed.status, failed.error, built.status) == ("failed", "no memory", "built")
        assert statuses(build(cache)) == ["built", "present"]


def test_damaged_engine_is_asked_for_and_built_again(cache: Path) -> None:
    ask(two_partitions(), cache)
    build(cache)
    plan = requested(cache)[0].folder / "engine.plan"
    plan.write_bytes(plan.read_bytes()[:-1])
    assert ask(two_partitions(), cache).count == 1
    assert [outcome.status for outcome in build(cache)] == ["built", "present"]


@pytest.mark.parametrize(("version", "opset"), [("8.6", 17), ("10.9.0", 20)])
def test_version_says_what_the_model_may_hold(version: str, opset: int, cache: Path) -> None:
    error = ask(two_partitions(), cache, engine="tensorrt", engine_options={"tensorrt_version": version})
    assert f"on a machine with TensorRT {version} " in str(error)
    for entry in requested(cache):
        (imported,) = onnx.load(entry.folder / "model.onnx").opset_import
        assert imported.version == opset


@pytest.mark.parametrize(("wanted", "status"), [("1", "built"), ("9.9", "failed")])
def test_engine_is_built_by_a_release_of_the_version_that_is_wanted(wanted: str, status: str, cache: Path) -> None:
    version = library.load_library("tensorrt_rtx").version if wanted == "1" else wanted
    options = {**OPTIONS, "tensorrt_version": version}
    ask(model_of(lambda self, x: x * 2), cache, engine_options=options)
    (outcome,) = build(cache)
    assert outcome.status == status
    if status == "failed":
        assert (
            f"got TensorRT-RTX {library.load_library('tensorrt_rtx').version}, wanted TensorRT-RTX 9.9" in outcome.error
        )
        with pytest.raises(
            RuntimeError, match="wanted TensorRT-RTX 9.9; install that, or export with engine_cache=DIR"
        ):
            export_rtx(two_partitions(), None, engine_options=options)


def test_missing_version_is_named(cache: Path) -> None:
    with without("tensorrt"), pytest.raises(ValueError, match=r"tensorrt_version is missing: .* such as '8.6'"):
        export_rtx(two_partitions(), cache, engine="tensorrt", engine_options={})


def test_old_version_has_no_bfloat16(cache: Path) -> None:
    options = {"tensorrt_version": "8.6", "precision": "bf16"}
    with without("tensorrt"), pytest.raises(ValueError, match="got 'bf16', allowed 'fp32', 'tf32', 'fp16';"):
        export_rtx(two_partitions(), cache, engine="tensorrt", engine_options=options)


def test_operators_that_version_8_refuses_are_all_found(tmp_path: Path) -> None:
    """Its parser stops at the first one, and tells its place alone; what it has no word for can be asked."""
    error = SimpleNamespace(node=lambda: 1, desc=lambda: "axes must be constant")
    parser = SimpleNamespace(
        parse_from_file=lambda path: False,
        num_errors=1,
        get_error=lambda index: error,
        supports_operator=lambda name: name != "BitwiseAnd",
    )
    flags = SimpleNamespace(__members__={})
    module = SimpleNamespace(OnnxParser=lambda network, log: parser, NetworkDefinitionCreationFlag=flags)
    no_network = SimpleNamespace(create_network=lambda flags: None)
    stand_in = library.Library("tensorrt", "8.6.1", module, log=SimpleNamespace(text=str), builder=no_network)
    nodes = [("first", "Add"), ("second", "ReduceSum"), ("third", "BitwiseAnd"), ("fourth", "Mul")]
    with pytest.raises(network.BuildError) as caught:
        network.build_plan(stand_in, tmp_path, [{}], {}, network.BuildOptions(), nodes)
    assert caught.value.reasons == {
        "second": "TensorRT's parser refuses ReduceSum: axes must be constant",
        "third": "TensorRT's parser refuses BitwiseAnd: it has no such operator",
    }


def test_version_8_which_has_no_monitor_tells_that_it_builds(tmp_path: Path) -> None:
    network_of_nothing = SimpleNamespace(num_inputs=0, num_outputs=0)
    module = SimpleNamespace(
        OnnxParser=lambda network, log: SimpleNamespace(parse_from_file=lambda path: True),
        NetworkDefinitionCreationFlag=SimpleNamespace(__members__={}),
        Runtime=lambda log: SimpleNamespace(deserialize_cuda_engine=lambda plan: None),
    )
    stand_in = library.Library(
        "tensorrt",
        "8.6.1",
        module,
        log=SimpleNamespace(text=str),
        builder=SimpleNamespace(
            create_network=lambda flags: network_of_nothing, build_serialized_network=lambda *_: b"plan"
        ),
    )
    told: list[str] = []
    with patch.object(network, "configure", lambda *_: SimpleNamespace()):
        plan = network.build_plan(stand_in, tmp_path, [], {}, network.BuildOptions(), tell=told.append)
    assert told == ["Building engine"]
    assert (plan.data, plan.bounds, plan.builder) == (b"plan", None, "TensorRT 8.6.1")


def test_engine_of_another_release_is_not_taken_for_done(cache: Path) -> None:
    ask(model_of(lambda self, x: x * 2), cache)
    build(cache)
    record = requested(cache)[0].folder / "engine.json"
    version = library.load_library("tensorrt_rtx").version
    record.write_text(record.read_text().replace(version, "1.0.0"))
    (outcome,) = build(cache)
    assert "the engine is for another machine: got one for TensorRT-RTX 1.0.0, here are " in outcome.error


@pytest.mark.parametrize("compatible", [False, True])
def test_engine_of_another_gpu_is_not_taken_for_done(compatible: bool, cache: Path) -> None:
    options = {"tensorrt_version": "8.6", "hardware_compatible": compatible}
    ask(model_of(lambda self, x: x * 2), cache, engine="tensorrt", engine_options=options)
    requested(cache)[0].plan_or_build(lambda: network.Plan(b"plan", None, "TensorRT 8.6.1", "linux_x86_64", "one GPU"))
    with patch.object(build_requests, "current_gpu", lambda: "another GPU"), without("tensorrt"):
        (outcome,) = build(cache)
    assert outcome.status == ("present" if compatible else "failed")
    assert (
        "got one for TensorRT 8.6.1 and one GPU, here are no TensorRT and another GPU" in outcome.error
    ) != compatible


def test_building_needs_no_torch_and_no_onnx(
    cache: Path, run_python: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    ask(two_partitions(), cache)
    result = run_python(
        "import sys; sys.modules.update(dict.fromkeys(['torch', 'onnx', 'onnx_ir', 'onnxscript', 'executorch.exir']))\n"
        "from executorch_tensorrt.cli import main; main()",
        "build-engines",
        str(cache),
    )
    assert result.returncode == 0, result.stderr
    assert "2 built; export again." in result.stdout
    assert statuses(build(cache)) == ["present", "present"]


def test_cache_is_for_tensorrt(cache: Path) -> None:
    with pytest.raises(ValueError, match="engine_cache is not for every engine: got engine 'cpu', allowed 'tensorrt'"):
        export_rtx(two_partitions(), cache, engine="cpu", engine_options={})


def test_cache_is_a_folder(cache: Path) -> None:
    cache.write_text("a file")
    with pytest.raises(ValueError, match="engine_cache is no folder: got '.*cache', which is a file; name a folder"):
        export_rtx(two_partitions(), cache)
