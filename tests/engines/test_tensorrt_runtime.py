"""What the native core calls to run plans, against the runtime APIs of the releases of TensorRT."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import tensorrt_rtx
from engines.onnx_cases import export_rtx
from engines.test_tensorrt_models import CASES
from fakes.tensorrt_bindings import PLAN, FakeTensorRT, Format, Location, Mode, Strategy, Tensor, tensors

from executorch_tensorrt.engines.tensorrt.library import load_bindings
from executorch_tensorrt.engines.tensorrt.registration import register_runtimes
from executorch_tensorrt.engines.tensorrt.runtime import PlanContext, PlanEngine, load_engine
from executorch_tensorrt.program import read_program
from executorch_tensorrt.program.blobs import read_engine

RELEASES = ("8.6.1", "10.0.1", "10.9.0", "11.0.0")
INPUTS, OUTPUTS = ["x", "scale"], ["y"]
MEMORY, STREAM = 4096, 77

Install = Callable[..., FakeTensorRT]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Puts a fake in place of the module `tensorrt`."""

    def install(version: str, io: dict[str, Tensor] | None = None) -> FakeTensorRT:
        fake = FakeTensorRT(version, io)
        monkeypatch.setitem(sys.modules, "tensorrt", fake.module)  # type: ignore[arg-type]
        return fake

    load_bindings.cache_clear()
    yield install
    load_bindings.cache_clear()


def load(plan: bytes = PLAN, *, builder: str = "TensorRT 8.6.1", inputs: list[str] = INPUTS) -> PlanEngine:
    return load_engine("tensorrt", memoryview(plan), builder, inputs, OUTPUTS)


def context_of(fake: FakeTensorRT, *, collect_layers: bool = False) -> PlanContext:
    """A context that is ready to run, and no calls recorded."""
    context = load().create_context(1, collect_layers, STREAM, MEMORY, 1024)
    context.set_input_shape(0, (2, 8))
    fake.calls.clear()
    return context


@pytest.mark.parametrize("version", RELEASES)
def test_engine_tells_what_it_is_in_the_programs_order(version: str, install: Install) -> None:
    io = tensors() | {"scale": Tensor(Mode.INPUT, (), "INT32")}
    install(version, io)
    engine = load()
    assert engine.profiles == [[[(1, 1, 4), (8, 8, 8)], []], [[(1, 64, 128), (8, 8, 8)], []]]
    assert engine.types == ["float32", "int32", "float32"]
    assert engine.narrows_int64 == (version == "8.6.1")
    assert load(inputs=["scale", "x"]).types == ["int32", "float32", "float32"]


@pytest.mark.parametrize(
    ("version", "sizes"), [("8.6.1", [1024, 1024]), *((later, [256, 1024]) for later in RELEASES[1:])]
)
def test_engine_tells_the_activation_memory_of_a_profile(version: str, sizes: list[int], install: Install) -> None:
    install(version)
    engine = load()
    assert [engine.activation_size(profile) for profile in range(2)] == sizes


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        (
            "8.6.1",
            [
                ("create_execution_context",),
                ("device_memory", MEMORY),
                ("set_optimization_profile_async", 1, STREAM),
            ],
        ),
        (
            "10.0.1",
            [
                ("create_execution_context", Strategy.USER_MANAGED),
                ("device_memory", MEMORY),
                ("set_optimization_profile_async", 1, STREAM),
            ],
        ),
        *(
            (
                later,
                [
                    ("create_execution_context", Strategy.USER_MANAGED),
                    ("set_optimization_profile_async", 1, STREAM),
                    ("set_device_memory", MEMORY, 1024),
                ],
            )
            for later in RELEASES[2:]
        ),
    ],
)
def test_context_gets_its_profile_and_memory_as_the_release_wants(
    version: str, expected: list[Any], install: Install
) -> None:
    fake = install(version)
    engine = load()
    fake.calls.clear()
    engine.create_context(1, False, STREAM, MEMORY, 1024)
    assert fake.calls == expected


@pytest.mark.parametrize("version", RELEASES)
def test_context_takes_other_memory(version: str, install: Install) -> None:
    fake = install(version)
    context = load().create_context(0, False, STREAM, MEMORY, 1024)
    fake.calls.clear()
    context.set_activation_memory(2 * MEMORY, 2048)
    call = ("set_device_memory", 2 * MEMORY, 2048) if version in RELEASES[2:] else ("device_memory", 2 * MEMORY)
    assert fake.calls == [call]


def test_memory_that_tensorrt_finds_too_small_is_refused(install: Install) -> None:
    """TensorRT 10.1 and later look at its size, and only log what they find."""
    fake = install("10.9.0")
    context = load().create_context(1, False, STREAM, MEMORY, 1024)
    fake.failing["set_device_memory"] = "size is smaller than 1024"
    with pytest.raises(RuntimeError, match="taking 512 bytes of activation memory failed: size is smaller than 1024"):
        context.set_activation_memory(MEMORY, 512)
    del fake.failing["set_device_memory"]
    context.set_activation_memory(MEMORY, 1024)
    context.enqueue(STREAM)


@pytest.mark.parametrize("version", RELEASES)
def test_context_calls_tensorrt_in_order(version: str, install: Install) -> None:
    fake = install(version)
    context = load().create_context(0, False, STREAM, MEMORY, 1024)
    fake.calls.clear()
    context.set_input_shape(0, (3, 8))
    assert context.infer_output_shapes() == [(3, 8)]
    context.set_input_address(0, 512)
    context.set_input_address(1, 768)
    context.set_output_address(0, 1024)
    context.enqueue(STREAM)
    context.enqueue(STREAM)
    assert fake.calls == [
        ("set_input_shape", "x", (3, 8)),
        ("infer_shapes",),
        ("set_tensor_address", "x", 512),
        ("set_tensor_address", "scale", 768),
        ("set_tensor_address", "y", 1024),
        ("execute_async_v3", STREAM),
        ("execute_async_v3", STREAM),
    ]


def test_layers_are_those_of_the_last_enqueue_and_reported_when_asked(install: Install) -> None:
    fake = install("8.6.1")
    context = context_of(fake, collect_layers=True)
    context.enqueue(STREAM)
    assert fake.calls == [("execute_async_v3", STREAM)]
    assert context.take_layers() == [("linear", 0.5), ("relu", 0.25)]
    context.enqueue(STREAM)
    assert context.take_layers() == [("linear", 0.5), ("relu", 0.25)]


@pytest.mark.parametrize("collect_layers", [False, True])
def test_profiler_never_makes_enqueue_wait(collect_layers: bool, install: Install) -> None:
    """It is there only if asked for, and then TensorRT must not emit in the enqueue itself."""
    fake = install("10.9.0")
    made: list[Any] = []
    engine = load()
    create = engine._engine.create_execution_context  # pyright: ignore[reportPrivateUsage]
    engine._engine.create_execution_context = lambda strategy: made.append(create(strategy)) or made[0]  # pyright: ignore[reportPrivateUsage]
    engine.create_context(0, collect_layers, STREAM, MEMORY, 1024)
    assert (made[0].profiler is not None) == collect_layers
    assert made[0].enqueue_emits_profile != collect_layers
    assert ("report_to_profiler",) not in fake.calls


FAILING_CALLS: dict[str, Callable[[PlanContext], object]] = {
    "set_input_shape": lambda context: context.set_input_shape(0, (999, 8)),
    "infer_shapes": lambda context: context.infer_output_shapes(),
    "set_tensor_address": lambda context: context.set_output_address(0, 3),
    "execute_async_v3": lambda context: context.enqueue(STREAM),
    "report_to_profiler": lambda context: context.take_layers(),
}


@pytest.mark.parametrize("name", FAILING_CALLS)
def test_failing_call_says_what_tensorrt_logged(name: str, install: Install) -> None:
    fake = install("8.6.1")
    context = context_of(fake, collect_layers=True)
    fake.failing[name] = "Error Code 3: API Usage Error\n  (out of range)"
    with pytest.raises(
        RuntimeError, match=r"^TensorRT 8.6.1: .+ failed: Error Code 3: API Usage Error \(out of range\)$"
    ):
        FAILING_CALLS[name](context)
    del fake.failing[name]
    FAILING_CALLS[name](context)


@pytest.mark.parametrize(
    ("logged", "text"),
    [
        ([("INTERNAL_ERROR", "broken"), ("WARNING", "slow"), ("ERROR", "worse"), ("ERROR", "worse")], "broken; worse"),
        ([("ERROR", "[checkMacros.cpp::250] out of memory"), ("ERROR", "no memory")], "no memory"),
        ([("ERROR", "[checkMacros.cpp::250] out of memory")], "[checkMacros.cpp::250] out of memory"),
        ([("WARNING", "slow")], ""),
    ],
)
def test_log_keeps_the_errors_that_tell_most(logged: list[tuple[str, str]], text: str, install: Install) -> None:
    install("8.6.1")
    log = load_bindings("tensorrt").log
    for severity, message in logged:
        log.log(SimpleNamespace(name=severity), message)
    assert log.text() == text
    assert log.text() == ""


@pytest.mark.parametrize("name", ["create_execution_context", "set_optimization_profile_async"])
def test_failing_creation_of_a_context_says_what_tensorrt_logged(name: str, install: Install) -> None:
    fake = install("10.9.0")
    engine = load()
    fake.failing[name] = "profile 1 is in use"
    with pytest.raises(RuntimeError, match=r"^TensorRT 10.9.0: .+ failed: profile 1 is in use$"):
        engine.create_context(1, False, STREAM, MEMORY, 1024)
    del fake.failing[name]
    engine.create_context(1, False, STREAM, MEMORY, 1024)


def test_missing_input_shape_is_named(install: Install) -> None:
    install("8.6.1")
    context = load().create_context(0, False, STREAM, MEMORY, 1024)
    with pytest.raises(RuntimeError, match=r"inferring shapes without those of 'x' failed: it does not say why"):
        context.infer_output_shapes()


def test_output_whose_shape_depends_on_values_is_refused_by_name(install: Install) -> None:
    fake = install("10.9.0", tensors() | {"y": Tensor(Mode.OUTPUT, (-1, 8), depends_on_values=True)})
    context = context_of(fake)
    with pytest.raises(ValueError, match=r"engine output 'y' has no shape: got \(-1, 8\), which depends on the values"):
        context.infer_output_shapes()


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"is_shape": True}, "a shape tensor"),
        ({"location": Location.HOST}, "a tensor in host memory"),
        ({"formats": (Format.LINEAR, Format.CHW4)}, "format CHW4, LINEAR"),
    ],
)
def test_tensor_that_cannot_be_bound_is_refused_by_name(change: dict[str, Any], text: str, install: Install) -> None:
    io = tensors()
    install("10.9.0", io | {"x": replace(io["x"], **change)})
    with pytest.raises(ValueError, match=f"the engine's 'x' can't be bound: got {text}.*torch_executed_ops"):
        load()


@pytest.mark.parametrize("wanted", [["x"], ["x", "scale", "z"], ["x", "y"]])
def test_names_of_another_program_are_refused(wanted: list[str], install: Install) -> None:
    install("8.6.1")
    expected = ", ".join(f"'{name}'" for name in wanted)
    with pytest.raises(
        ValueError, match=f"the engine's inputs are not the program's: got 'x', 'scale', allowed {expected}; export"
    ):
        load(inputs=wanted)


def test_plan_of_another_version_is_refused_with_both_versions(install: Install) -> None:
    install("10.9.0")
    with pytest.raises(
        ValueError,
        match=r"^TensorRT 10.9.0 refuses the engine: got a plan of TensorRT 8.6.1 \(.*Version tag does not match.\)\), "
        "allowed a whole one that TensorRT 10.9.0 built for this GPU; build it for this machine.$",
    ):
        load(b"another")


def test_plan_of_another_gpu_is_refused(install: Install) -> None:
    fake = install("8.6.1")
    fake.failing["deserialize"] = "Error Code 6: Internal Error (generated on an incompatible device, compute 8.6)"
    with pytest.raises(ValueError, match=r"got a plan of unknown origin \(.*incompatible device, compute 8.6\)"):
        load(builder="")


@pytest.mark.parametrize("text", ["Error Code 1: Cuda Runtime (out of memory)", "Error Code 2: OutOfMemory (none)"])
def test_plan_that_the_machine_cannot_load_is_no_fault_of_the_plan(text: str, install: Install) -> None:
    fake = install("8.6.1")
    fake.failing["deserialize"] = text
    with pytest.raises(RuntimeError, match=r"^TensorRT 8.6.1: loading the engine failed: Error Code"):
        load()


def test_missing_driver_is_told_when_the_runtime_starts(install: Install) -> None:
    fake = install("8.6.1")
    fake.failing["Runtime"] = "CUDA initialization failure with error: 35"
    with pytest.raises(RuntimeError, match="starting its runtime failed: CUDA initialization failure with error: 35"):
        load()


def test_missing_bindings_are_named(monkeypatch: pytest.MonkeyPatch, install: Install) -> None:
    monkeypatch.setitem(sys.modules, "tensorrt", None)
    with pytest.raises(RuntimeError, match="engine kind 'tensorrt' can't run here: got no Python module 'tensorrt'"):
        load()


def test_contexts_and_engines_die_without_the_garbage_collector(install: Install) -> None:
    """TensorRT frees device memory then; a cycle would keep it until some later collection."""
    fake = install("8.6.1")
    engine = load()
    context = engine.create_context(0, True, STREAM, MEMORY, 1024)
    context.enqueue(STREAM)
    left = [weakref.ref(engine), weakref.ref(context), weakref.ref(context._context)]  # pyright: ignore[reportPrivateUsage]
    fake.calls.clear()
    gc.disable()
    try:
        del engine, context
        assert [reference() for reference in left] == [None] * 3
    finally:
        gc.enable()


@pytest.fixture(scope="module")
def rtx_plan(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    program, _ = export_rtx(*CASES["block"])
    path = tmp_path_factory.mktemp("plans") / "block.pte"
    program.save(path)
    (delegate,) = read_program(path).methods[0].delegates
    return bytes(read_engine(delegate).engine)


def test_real_plan_without_a_gpu_is_no_fault_of_the_plan(rtx_plan: bytes) -> None:
    with pytest.raises(
        RuntimeError,
        match=rf"^TensorRT-RTX {tensorrt_rtx.__version__}: loading the engine failed: .*cudaError",
    ):
        load_engine("tensorrt_rtx", memoryview(rtx_plan), "TensorRT-RTX 1.0", ["x"], ["y"])


@pytest.mark.parametrize("length", [0, 20, 1000, -1])
def test_truncated_real_plan_is_refused(length: int, rtx_plan: bytes) -> None:
    with pytest.raises(ValueError, match="refuses the engine: got a plan of TensorRT-RTX 1.0 .*allowed a whole one"):
        load_engine("tensorrt_rtx", memoryview(rtx_plan[:length]), "TensorRT-RTX 1.0", ["x"], ["y"])


def test_registration_names_what_is_installed() -> None:
    registered: dict[str, Any] = {}
    register_runtimes(registered.__setitem__)
    assert list(registered) == ["tensorrt_rtx"]
    with pytest.raises(ValueError, match="TensorRT-RTX .*refuses the engine"):
        registered["tensorrt_rtx"](memoryview(b"nothing"), "", [], [])


def test_registration_and_runtime_import_no_tensorrt(
    run_python: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    result = run_python(
        "import sys; from executorch_tensorrt.engines.tensorrt.registration import register_runtimes\n"
        "register_runtimes(lambda kind, load: None)\n"
        "assert not {'executorch_tensorrt.engines.tensorrt.runtime', 'tensorrt_rtx'} & set(sys.modules)\n"
        "import executorch_tensorrt.engines.tensorrt.runtime\n"
        "assert not {'tensorrt_rtx', 'torch', 'onnx', 'onnx_ir'} & set(sys.modules)"
    )
    assert result.returncode == 0, result.stderr
