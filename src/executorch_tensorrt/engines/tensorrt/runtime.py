"""TensorRT engines at run time, over NVIDIA's Python bindings; the native core calls what is here.

Releases differ in how a context gets its activation memory: 8.6 makes contexts without any and takes an address, 10.0
has a word for that, and 10.1 and later, as TensorRT-RTX, take a size as well and check it.
"""

# The bindings come without types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from executorch_tensorrt.engines.tensorrt.engine_io import check_kinds, check_names, dtype_of, quoted, ranges_of
from executorch_tensorrt.engines.tensorrt.library import Bindings, load_bindings
from executorch_tensorrt.engines.tensorrt.target import NAMES

# TensorRT says both of a plan that it does not take on a machine where CUDA fails.
_OF_THE_PLAN = re.compile(r"Serialization \(|incompatible|Internal Error \(Assertion")
_OF_THE_MACHINE = re.compile(r"cuda ?(error|runtime|initialization)|out ?of ?memory", re.IGNORECASE)


def load_engine(kind: str, plan: memoryview, builder: str, inputs: list[str], outputs: list[str]) -> PlanEngine:
    """Load a plan on the current device.

    Args:
        kind: the engine kind.
        plan: the plan; it must live as long as the engine.
        builder: what the program says of the plan's TensorRT, such as "TensorRT 8.6.1".
        inputs: the names of the inputs in the program's order.
        outputs: the names of the outputs in the program's order.

    Raises:
        ValueError: TensorRT refuses the plan, or the plan is not that of the program, or needs what is not supported.
        RuntimeError: this machine can't load it.
    """
    try:
        bindings = load_bindings(kind)
    except (ImportError, OSError) as error:
        raise RuntimeError(
            f"engine kind '{kind}' can't run here: got no Python module '{kind}' ({error}), wanted {NAMES[kind]}; "
            "install the version that built the engine."
        ) from error
    bindings.log.text()
    try:
        runtime = bindings.module.Runtime(bindings.log)
    except Exception as error:
        raise _failure(bindings, "starting its runtime", error) from error
    if hasattr(bindings.module, "init_libnvinfer_plugins"):
        bindings.module.init_libnvinfer_plugins(bindings.log, "")
    engine = runtime.deserialize_cuda_engine(plan)
    if engine is None:
        raise _refusal(bindings, builder)
    return PlanEngine(bindings, runtime, engine, inputs, outputs)


class PlanEngine:
    """A loaded plan. Its contexts may share one block of activation memory: then one of them may work at a time.

    Attributes:
        profiles: the range of each dim of each input, per optimization profile.
        types: the types of inputs, then outputs.
        narrows_int64: whether this release has no int64, so that its int32 stands for a program's int64.
    """

    def __init__(
        self, bindings: Bindings, runtime: Any, engine: Any, inputs: Sequence[str], outputs: Sequence[str]
    ) -> None:
        check_names(bindings, engine, inputs, outputs)
        check_kinds(bindings, engine, inputs, outputs)
        # In this order they die.
        self._engine = engine
        self._runtime = runtime
        self._bindings = bindings
        self._inputs = inputs
        self._outputs = outputs
        self.profiles = [
            [ranges_of(engine, name, profile) for name in inputs] for profile in range(engine.num_optimization_profiles)
        ]
        self.types = [dtype_of(engine, name) for name in (*inputs, *outputs)]
        self.narrows_int64 = bindings.narrows_int64

    def activation_size(self, profile: int) -> int:
        """Bytes of activation memory that a context of an optimization profile needs."""
        for name in ("get_device_memory_size_for_profile_v2", "get_device_memory_size_for_profile"):
            if hasattr(self._engine, name):
                return int(getattr(self._engine, name)(profile))
        return int(self._engine.device_memory_size)

    def create_context(self, profile: int, collect_layers: bool, stream: int, address: int, size: int) -> PlanContext:
        """Make a context of one optimization profile; it may be used once the work that this queues is done.

        Args:
            profile: the index of the profile.
            collect_layers: whether its layers are timed.
            stream: where work is queued that chooses the profile.
            address: its activation memory.
            size: of that, in bytes.

        Raises:
            RuntimeError: there is no memory for it, or TensorRT does not give it the profile.
        """
        try:
            made = self._new_context()
        except Exception as error:
            raise _failure(self._bindings, "creating a context", error) from error
        if made is None:
            raise _failure(self._bindings, "creating a context")
        context = PlanContext(self, self._bindings, made, self._inputs, self._outputs)
        context.prepare(profile, collect_layers, stream, address, size)
        return context

    def _new_context(self) -> Any:
        strategies = getattr(self._bindings.module, "ExecutionContextAllocationStrategy", None)
        if strategies is None:
            return self._engine.create_execution_context_without_device_memory()
        return self._engine.create_execution_context(strategies.USER_MANAGED)


class PlanContext:
    """A context of one optimization profile.

    Attributes:
        enqueue: queues the work on a stream.
    """

    def __init__(
        self, engine: PlanEngine, bindings: Bindings, context: Any, inputs: Sequence[str], outputs: Sequence[str]
    ) -> None:
        # In this order they die.
        self.enqueue = _enqueuer(bindings, context.execute_async_v3)
        self._context = context
        self._engine = engine
        self._bindings = bindings
        self._inputs = inputs
        self._outputs = outputs
        self._layers: list[tuple[str, float]] = []

    def prepare(self, profile: int, collect_layers: bool, stream: int, address: int, size: int) -> None:
        """Choose the optimization profile, and give it memory: where its size is checked, it is that of the profile."""
        sized = hasattr(self._context, "set_device_memory")
        if not sized:
            self.set_activation_memory(address, size)
        self._call("choosing an optimization profile", self._context.set_optimization_profile_async, profile, stream)
        if sized:
            self.set_activation_memory(address, size)
        if collect_layers:
            self._context.profiler = _profiler(self._bindings.module, self._layers)
            self._context.enqueue_emits_profile = False

    def set_activation_memory(self, address: int, size: int) -> None:
        """Give it its activation memory."""
        if not hasattr(self._context, "set_device_memory"):
            self._context.device_memory = address
            return
        self._bindings.log.text()
        self._context.set_device_memory(address, size)
        if self._bindings.log.errors:  # it returns nothing
            raise _failure(self._bindings, f"taking {size} bytes of activation memory")

    def set_input_shape(self, index: int, shape: tuple[int, ...]) -> None:
        """Set the shape of an input."""
        name = self._inputs[index]
        self._call(f"setting input '{name}' to {shape}", self._context.set_input_shape, name, shape)

    def infer_output_shapes(self) -> list[tuple[int, ...]]:
        """The shapes of the outputs for the inputs' shapes.

        Raises:
            ValueError: one depends on the values of the inputs.
            RuntimeError: TensorRT can't say.
        """
        try:
            missing = self._context.infer_shapes()
        except Exception as error:
            raise _failure(self._bindings, "inferring shapes", error) from error
        if missing:
            raise _failure(self._bindings, f"inferring shapes without those of {quoted(missing)}")
        shapes = [tuple(self._context.get_tensor_shape(name)) for name in self._outputs]
        for name, shape in zip(self._outputs, shapes, strict=True):
            if any(size < 0 for size in shape):
                raise ValueError(
                    f"engine output '{name}' has no shape: got {shape}, which depends on the values of the inputs, "
                    "allowed a shape that follows from theirs; keep the operator that makes it out of engines with "
                    "torch_executed_ops."
                )
        return shapes

    def set_input_address(self, index: int, address: int) -> None:
        """Set where an input is read from."""
        self._set_address(self._inputs[index], address)

    def set_output_address(self, index: int, address: int) -> None:
        """Set where an output is written to."""
        self._set_address(self._outputs[index], address)

    def take_layers(self) -> list[tuple[str, float]]:
        """Layers of the last enqueue, whose work must be done, and their milliseconds. Only if they are collected."""
        self._call("reporting layers", self._context.report_to_profiler)
        taken = list(self._layers)
        self._layers.clear()
        return taken

    def _set_address(self, name: str, address: int) -> None:
        self._call(f"setting the address of '{name}'", self._context.set_tensor_address, name, address)

    def _call(self, what: str, function: Callable[..., Any], *arguments: Any) -> None:
        try:
            done = function(*arguments)
        except Exception as error:
            raise _failure(self._bindings, what, error) from error
        if not done:
            raise _failure(self._bindings, what)


def _enqueuer(bindings: Bindings, execute: Callable[[int], bool]) -> Callable[[int], None]:
    def enqueue(stream: int) -> None:
        if not execute(stream):
            raise _failure(bindings, "enqueueing")

    return enqueue


def _profiler(module: Any, layers: list[tuple[str, float]]) -> Any:
    class Profiler(module.IProfiler):
        def __init__(self) -> None:
            module.IProfiler.__init__(self)

        def report_layer_time(self, layer_name: str, ms: float) -> None:
            layers.append((layer_name, ms))

    return Profiler()


def _failure(bindings: Bindings, what: str, error: Exception | None = None) -> RuntimeError:
    return RuntimeError(f"{bindings.label}: {what} failed: {bindings.log.text() or error or 'it does not say why'}")


def _refusal(bindings: Bindings, builder: str) -> ValueError | RuntimeError:
    text = bindings.log.text()
    if _OF_THE_MACHINE.search(text) and not _OF_THE_PLAN.search(text):
        return RuntimeError(f"{bindings.label}: loading the engine failed: {text}")
    return ValueError(
        f"{bindings.label} refuses the engine: got a plan of {builder or 'unknown origin'} "
        f"({text or 'it does not say why'}), allowed a whole one that {bindings.label} built for this GPU; build it "
        "for this machine."
    )
