from collections.abc import Callable, Sequence
from typing import Any, overload


def register_torch_operators() -> None:
    """
    Register torch.ops.executorch_tensorrt with the PyTorch of this process.
    """

def register_profiling_operators(name_space: str) -> None:
    """Register the profiling operators under another namespace as well."""

def map_packaged_engine(path: str, offset: int, size: int, digest: str) -> None:
    """
    Map an engine that lies outside its package's code, for as long as the process lives.
    """

def release_packaged_engines() -> None:
    """Free the engines of packages, and write their traces."""

class Request:
    """What the caller asks of one execution."""

    def __init__(self) -> None:
        """The default: what the method was loaded with, else profile 0."""

    @staticmethod
    def pinned(index: int) -> Request: ...

    @staticmethod
    def auto() -> Request: ...

    def __eq__(self, other: object, /) -> bool: ...

    def __hash__(self) -> int: ...

    def __repr__(self) -> str: ...

class ProfileTable:
    """What each optimization profile of an engine accepts."""

    @staticmethod
    def create(input_names: Sequence[str], profiles: list[list[list[tuple[int, int, int]]]]) -> ProfileTable:
        """
        From, per profile and input, a list of (min, opt, max) per dim. ValueError if they do not fit.
        """

    @property
    def profiles(self) -> list[list[list[tuple[int, int, int]]]]: ...

    @property
    def is_static(self) -> bool: ...

    def select(self, shapes: Sequence[Sequence[int]], request: Request, load_default: Request = ...) -> int:
        """
        The profile index for one shape per input. ValueError if no profile serves the request.
        """

class Binding:
    @property
    def name(self) -> str: ...

    @property
    def dtype(self) -> str: ...

    @property
    def argument(self) -> int | None:
        """Its place among the delegate's arguments, if it has one."""

class AliasedIo:
    @property
    def output(self) -> str: ...

    @property
    def input(self) -> str: ...

    @property
    def kind(self) -> str: ...

class ExportRecord:
    """What this project's exporter adds to the metadata."""

    @property
    def engine_kind(self) -> str: ...

    @property
    def engine_id(self) -> str: ...

    @property
    def builder(self) -> str: ...

    @property
    def signature(self) -> str: ...

    @property
    def profiles(self) -> ProfileTable | None: ...

class EngineMetadata:
    @property
    def inputs(self) -> list[Binding]: ...

    @property
    def outputs(self) -> list[Binding]: ...

    @property
    def num_arguments(self) -> int:
        """Of the delegate: inputs, then outputs."""

    @property
    def aliased_io(self) -> list[AliasedIo]: ...

    @property
    def hardware_compatible(self) -> bool: ...

    @property
    def device_id(self) -> int: ...

    @property
    def target_platform(self) -> str: ...

    @property
    def record(self) -> ExportRecord | None: ...

    def infer_output_shapes(self, input_shapes: Sequence[Sequence[int]]) -> list[list[int]]: ...

class Blob:
    """A delegate's engine blob, parsed."""

    @property
    def magic(self) -> str: ...

    @property
    def engine_offset(self) -> int: ...

    @property
    def engine_size(self) -> int: ...

    @property
    def json(self) -> bytes:
        """The metadata as it is written."""

    @property
    def metadata(self) -> EngineMetadata: ...

    @property
    def engine_kinds(self) -> list[str]:
        """The engine is of one of these."""

def parse_blob(data: bytes | memoryview) -> Blob:
    """ValueError, naming what is damaged, if it is no engine blob."""

class DeviceArray:
    """An output of a method in the memory of a CUDA device, row-major."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> str: ...

    @property
    def device(self) -> int:
        """The index of the CUDA device."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...

    def __dlpack__(self, stream: int | None = None, **kwargs: Any) -> Any: ...

    def __dlpack_device__(self) -> tuple[int, int]: ...

    def numpy(self) -> object:
        """
        A copy on the host. Waits for the work that makes it, and for what is queued on the stream that this thread's guard names.
        """

class Guard:
    """A guard of C++ for each time that it is entered."""

    def enter(self) -> None: ...

    def exit(self) -> None:
        """
        Ends what this thread entered last. RuntimeError, and no effect, on another thread or while a later guard of the kind is open.
        """

def profile_guard(request: Request) -> Guard: ...

def state_guard(state: EngineState) -> Guard: ...

def stream_guard(stream: int) -> Guard: ...

def current_request() -> Request:
    """What the calling thread's guards ask for."""

def current_stream() -> int | None:
    """The stream that the calling thread named, if any."""

def current_state() -> int:
    """
    A number for the state that the calling thread's guards give to methods, 0 for none.
    """

def keep_messages() -> None:
    """Keeps this library's messages from now on until they are taken."""

def has_messages() -> bool: ...

def take_messages() -> list[tuple[int, str]]:
    """Levels, as numbers of Python's logging, and texts."""

def silence_log() -> None:
    """
    Drops what ExecuTorch logs in this process, for programs whose own messages say it.
    """

def take_last_error() -> str:
    """
    Why the last TensorRTBackend delegate that failed on this thread did so; empty when none did since the last take. For callers of the stock runtime, whose exceptions have no text.
    """

def backend_is_registered() -> bool:
    """
    Whether this library's delegate answers to 'TensorRTBackend' in this process.
    """

def backend_problem() -> str:
    """Why it does not; empty when it does."""

def event_names() -> list[str]:
    """
    The events of a delegate's call: of the whole, then of its phases in the order in which they run.
    """

def kernel_names() -> set[str]:
    """
    The operators that have a kernel in this process, such as 'aten::add.out'.
    """

def tracing_compiled_in() -> bool:
    """Whether delegates can give events to an event tracer."""

def register_engine_runtime(kind: str, load: Callable[..., Any]) -> None:
    """
    Load engines of a kind with a function from now on, in place of the kind's runtime before.
    """

def engine_runtimes() -> list[str]:
    """The engine kinds that can run in this process, sorted."""

def device_memory_available() -> bool:
    """
    Whether a program whose memory is planned on a GPU can be loaded in this process.
    """

class ProfilingState:
    """The process-wide profiling control."""

    @property
    def is_set(self) -> bool: ...

    @property
    def level(self) -> str: ...

    @property
    def format(self) -> str: ...

    @property
    def path_prefix(self) -> str: ...

    @property
    def generation(self) -> int: ...

def set_profiling(level: str, format: str, path_prefix: str) -> None: ...

def clear_profiling() -> None: ...

def profiling_state() -> ProfilingState: ...

class EngineBuffer:
    """A buffer that engines own."""

    @property
    def name(self) -> str: ...

    @property
    def dtype(self) -> str: ...

    @property
    def sizes(self) -> list[int]: ...

    @property
    def nbytes(self) -> int: ...

class EngineState:
    def __init__(self) -> None: ...

    def buffers(self) -> list[EngineBuffer]: ...

    def reset(self) -> None: ...

    def read(self, name: str, nbytes: int) -> bytes: ...

    def write(self, name: str, data: bytes) -> None: ...

class ExecuTorchError(RuntimeError):
    pass

class TensorMeta:
    @property
    def dtype(self) -> str: ...

    @property
    def sizes(self) -> list[int]: ...

    def __repr__(self) -> str: ...

class ValueMeta:
    @property
    def kind(self) -> str: ...

    @property
    def tensor(self) -> TensorMeta | None: ...

    def __repr__(self) -> str: ...

class MethodMeta:
    @property
    def name(self) -> str: ...

    @property
    def inputs(self) -> list[ValueMeta]: ...

    @property
    def outputs(self) -> list[ValueMeta]: ...

    @property
    def backends(self) -> list[str]: ...

    def __repr__(self) -> str: ...

class Selection:
    """The optimization profile that one delegate used in one call."""

    @property
    def engine_id(self) -> str: ...

    @property
    def profile(self) -> int: ...

    def __repr__(self) -> str: ...

class Module:
    @overload
    def __init__(self, path: str, load_mode: str, etdump: bool, options: dict[str, int | str]) -> None: ...

    @overload
    def __init__(self, program: bytes, etdump: bool, options: dict[str, int | str]) -> None: ...

    @property
    def method_names(self) -> list[str]: ...

    def method_meta(self, name: str) -> MethodMeta: ...

    def is_method_loaded(self, name: str) -> bool: ...

    def load_method(self, name: str, options: dict[str, int | str]) -> None: ...

    def share_state(self, state: EngineState) -> None: ...

    def unload_method(self, name: str) -> bool: ...

    def execute(self, name: str, inputs: Sequence[Any], torch_outputs: bool) -> list[Any]: ...

    def take_etdump(self) -> bytes | None: ...

    @property
    def last_selections(self) -> list[Selection]: ...

    @property
    def events_dropped(self) -> int: ...
