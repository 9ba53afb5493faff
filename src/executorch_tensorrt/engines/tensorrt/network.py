"""From an ONNX model to a plan, with TensorRT's own parser and builder."""

# The bindings come without types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import logging
import platform
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from executorch_tensorrt.engines.tensorrt.gpu import current_gpu
from executorch_tensorrt.engines.tensorrt.library import Library
from executorch_tensorrt.engines.tensorrt.options import BuildOptions, compute_capabilities
from executorch_tensorrt.engines.tensorrt.tactics import leave_out_missing_libraries
from executorch_tensorrt.files import replacing

_log = logging.getLogger(__name__)

Range = tuple[int, int, int]
"""Smallest, tuned and largest size of a dim."""


class Refusal(NamedTuple):
    """A node of an ONNX model that TensorRT's parser does not take, by name and operator, and why."""

    node: str
    operator: str
    reason: str


class BuildError(RuntimeError):
    """TensorRT built no engine.

    Attributes:
        reasons: what it says, by the words in it that may be names of nodes or outputs.
    """

    def __init__(self, message: str, reasons: Mapping[str, str]) -> None:
        super().__init__(message)
        self.reasons = reasons


class Plan(NamedTuple):
    """A built engine.

    Attributes:
        data: the engine.
        bounds: for each optimization profile and input the ranges that it reports of itself; None where it can't be
            loaded, as on a machine without a GPU.
        builder: what built it: name and version.
        platform: the operating system and processor that it runs on, such as "linux_x86_64".
        gpu: the GPU that it was built on, where that is known.
    """

    data: bytes
    bounds: list[dict[str, list[Range]]] | None
    builder: str
    platform: str
    gpu: str


def refusals(library: Library, model: bytes, dtypes: Mapping[str, str]) -> list[Refusal]:
    """What the parser does not take of a model in memory, whose inputs and outputs must have these types."""
    network = library.network()  # the parser does not keep it alive
    parser = library.module.OnnxParser(network, library.log)
    parsed = parser.parse(model)
    library.log.text()
    return _wrong_types(library, network, dtypes) if parsed else _refusals(parser, ())


def build_plan(
    library: Library,
    model: Path,
    profiles: Sequence[Mapping[str, Sequence[Range]]],
    dtypes: Mapping[str, str],
    options: BuildOptions,
    nodes: Sequence[tuple[str, str]] = (),
    tell: Callable[[str], None] | None = None,
) -> Plan:
    """Build an engine.

    Args:
        library: TensorRT.
        model: the ONNX file.
        profiles: for each optimization profile the range of each dim of each input.
        dtypes: the types that inputs and outputs must have, by name.
        options: the caller's choices.
        nodes: the model's nodes in order: name and operator.
        tell: called with the name of a phase when it begins; it is logged if None.

    Raises:
        BuildError: TensorRT refuses the model, or can't build an engine of it.
    """
    network = library.network()
    parser = library.module.OnnxParser(network, library.log)
    library.log.text()
    parsed = parser.parse_from_file(str(model))
    found = _wrong_types(library, network, dtypes) if parsed else _refusals(parser, nodes)
    if found:
        text = "; ".join(f"{entry.operator or 'the model'}: {entry.reason}" for entry in found)
        raise BuildError(
            f"{library.label} can't read the model: got {text}; keep the operator out of engines "
            "with torch_executed_ops.",
            {
                name: refusal_text(library, entry)
                for entry in found
                for name in ([entry.node] if entry.node else _words(entry.reason))
            },
        )
    config = configure(library, options)
    for ranges in profiles:
        profile = library.builder.create_optimization_profile()
        for name, dims in ranges.items():
            profile.set_shape(name, *zip(*dims, strict=True) if dims else ((), (), ()))
        if config.add_optimization_profile(profile) < 0:
            raise BuildError(f"{library.label} refuses an optimization profile: got {ranges}: {library.log.text()}", {})
    tell = tell or _log.info
    monitor = _monitor(library.module, tell)
    if monitor is not None:
        config.progress_monitor = monitor
    else:
        tell("Building engine")
    plan = library.builder.build_serialized_network(network, config)
    if plan is None:
        text = library.log.text() or "nothing that says why"
        raise BuildError(
            f"{library.label} can't build an engine: got {text}; keep the operators that it names out of engines with "
            "torch_executed_ops.",
            dict.fromkeys(_words(text), f"{library.name} can't build it: {shortened(text)}"),
        )
    data = bytes(plan)
    keep_timings(config, options)
    return Plan(data, reported_ranges(library, data), library.label, f"linux_{platform.machine()}", current_gpu())


def refusal_text(library: Library, refusal: Refusal) -> str:
    """Why an operator stays outside."""
    return f"{library.name}'s parser refuses {refusal.operator or 'it'}: {shortened(refusal.reason)}"


def shortened(text: str) -> str:
    """A foreign message in one line of bearable length; a condition that failed says less than what follows it."""
    line = re.sub(r"^Assertion failed: .*?: (?=[A-Z])", "", " ".join(text.split()))
    return line if len(line) <= 160 else f"{line[:157]}..."


def _words(text: str) -> list[str]:
    """What may be the name of a node. A layer of many is called after its first and its last, and blames neither."""
    return re.findall(r"[\w.]+", re.sub(r"\{?ForeignNode\[[^]]*\]\}?", "", text))


def _refusals(parser: Any, nodes: Sequence[tuple[str, str]]) -> list[Refusal]:
    errors = [parser.get_error(index) for index in range(parser.num_errors)]
    if any(not hasattr(error, "node_name") for error in errors):
        return _refusals_of_version_8(parser, errors, nodes)
    return [Refusal(error.node_name(), error.node_operator(), " ".join(error.desc().split())) for error in errors]


def _refusals_of_version_8(parser: Any, errors: Sequence[Any], nodes: Sequence[tuple[str, str]]) -> list[Refusal]:
    """It stops at the first node that it does not take, and tells the node's place alone."""
    found: dict[str, Refusal] = {}
    for error in errors:
        place: int = error.node()
        node, operator = nodes[place] if 0 <= place < len(nodes) else ("", "")
        found[node] = Refusal(node, operator, " ".join(error.desc().split()))
    for node, operator in nodes:
        if node not in found and not parser.supports_operator(operator):
            found[node] = Refusal(node, operator, "it has no such operator")
    return list(found.values())


def _wrong_types(library: Library, network: Any, wanted: Mapping[str, str]) -> list[Refusal]:
    """Inputs and outputs of another type than a partition's: TensorRT takes float64 for float32."""
    inputs = [network.get_input(index) for index in range(network.num_inputs)]
    outputs = [network.get_output(index) for index in range(network.num_outputs)]
    got = {tensor.name: DTYPES.get(tensor.dtype.name, tensor.dtype.name) for tensor in [*inputs, *outputs]}
    narrowed = {"int64": "int32"} if library.narrows_int64 else {}
    return [
        Refusal("", "", f"it makes {got.get(name, 'nothing')} of '{name}', which is {dtype}")
        for name, dtype in wanted.items()
        if got.get(name) != narrowed.get(dtype, dtype)
    ]


DTYPES = {
    "FLOAT": "float32",
    "HALF": "float16",
    "BF16": "bfloat16",
    "INT64": "int64",
    "INT32": "int32",
    "INT8": "int8",
    "UINT8": "uint8",
    "BOOL": "bool",
}


def configure(library: Library, options: BuildOptions) -> Any:
    """A builder configuration with what the caller chose."""
    trt = library.module
    config = library.builder.create_builder_config()
    _set_flag(config, trt.BuilderFlag.TF32, options.precision == "tf32")
    if options.precision in ("fp16", "bf16") and not library.strongly_typed:
        _set_flag(config, trt.BuilderFlag.__members__[options.precision.upper()], True)
    if options.workspace_size is not None:
        config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, options.workspace_size)
    if options.optimization_level is not None:
        config.builder_optimization_level = options.optimization_level
    config.profiling_verbosity = trt.ProfilingVerbosity.__members__[options.profiling_verbosity.upper()]
    if options.hardware_compatible:
        config.hardware_compatibility_level = trt.HardwareCompatibilityLevel.AMPERE_PLUS
    if options.compute_capability:
        known = compute_capabilities(trt)
        config.num_compute_capabilities = len(options.compute_capability)
        for index, target in enumerate(options.compute_capability):
            config.set_compute_capability(known[target], index)
    if options.timing_cache_path is not None:
        file = Path(options.timing_cache_path)
        config.set_timing_cache(config.create_timing_cache(file.read_bytes() if file.exists() else b""), False)
    leave_out_missing_libraries(trt, config)
    # Version 8.6 gives a profile to one context alone unless asked; later ones have no such switch.
    sharing = trt.PreviewFeature.__members__.get("PROFILE_SHARING_0806")
    if sharing is not None:
        config.set_preview_feature(sharing, True)
    return config


def _set_flag(config: Any, flag: Any, value: bool) -> None:
    (config.set_flag if value else config.clear_flag)(flag)


def keep_timings(config: Any, options: BuildOptions) -> None:
    """Write the timing cache that the caller named, if any, as it is after a build."""
    if options.timing_cache_path is not None:
        with replacing(options.timing_cache_path) as temporary:
            temporary.write_bytes(bytes(config.get_timing_cache().serialize()))


def reported_ranges(library: Library, plan: bytes) -> list[dict[str, list[Range]]] | None:
    """The ranges that a plan says of every input, per optimization profile; None where it can't be loaded."""
    engine = library.module.Runtime(library.log).deserialize_cuda_engine(plan)
    library.log.text()
    if engine is None:
        return None
    names = [engine.get_tensor_name(place) for place in range(engine.num_io_tensors)]
    inputs = [name for name in names if engine.get_tensor_mode(name) == library.module.TensorIOMode.INPUT]
    return [
        {
            name: [
                (low, opt, high) for low, opt, high in zip(*engine.get_tensor_profile_shape(name, index), strict=True)
            ]
            for name in inputs
        }
        for index in range(engine.num_optimization_profiles)
    ]


def _monitor(module: Any, tell: Callable[[str], None]) -> Any:
    """Tells of the outer phases of a build as they begin; None where a release has no progress monitor."""
    if not hasattr(module, "IProgressMonitor"):
        return None

    class Monitor(module.IProgressMonitor):
        def __init__(self) -> None:
            module.IProgressMonitor.__init__(self)
            self._outer: set[str] = set()

        def phase_start(self, phase_name: str, parent_phase: str | None, num_steps: int) -> None:
            if parent_phase is None:
                self._outer.add(phase_name)
            if parent_phase is None or parent_phase in self._outer:
                tell(phase_name)

        def phase_finish(self, phase_name: str) -> None:
            pass

        def step_complete(self, phase_name: str, step: int) -> bool:
            return True

    return Monitor()
