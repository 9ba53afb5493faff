"""Module: an ExecuTorch program, loaded and run."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any, Literal, get_args

from executorch_tensorrt import _native
from executorch_tensorrt._native import MethodMeta, Selection
from executorch_tensorrt.files import program_file, replacing
from executorch_tensorrt.runtime.log import forward_messages
from executorch_tensorrt.runtime.state import EngineState, check_state

ProfileLevel = Literal["off", "delegate", "phases", "layers"]
ProfileFormat = Literal["etdump", "perfetto", "trex"]
LoadMode = Literal["mmap", "file", "mlock"]

PROFILE_LEVELS = get_args(ProfileLevel)
PROFILE_FORMATS = get_args(ProfileFormat)


def _one_of(name: str, value: object, allowed: tuple[str, ...]) -> str:
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{name}: got {value!r}, allowed {', '.join(map(repr, allowed))}")
    return value


def _load_options(
    optimization_profile: int | str | None,
    profile_level: str | None,
    profile_format: str | None,
    profile_path_prefix: str | os.PathLike[str] | None,
    use_cuda_graphs: bool | None,
) -> dict[str, int | str]:
    options: dict[str, int | str] = {}
    if optimization_profile is not None:
        index = None if isinstance(optimization_profile, bool | str) else optimization_profile
        is_index = isinstance(index, int) and 0 <= index < 2**31
        if not is_index and optimization_profile != "auto":
            raise ValueError(
                f"optimization_profile: got {optimization_profile!r}, allowed 'auto' or an index of 0 or more"
            )
        options["optimization_profile"] = optimization_profile
    if profile_level is not None:
        options["torchtrt_profile_level"] = _one_of("profile_level", profile_level, PROFILE_LEVELS)
    if profile_format is not None:
        options["torchtrt_profile_format"] = _one_of("profile_format", profile_format, PROFILE_FORMATS)
    if profile_path_prefix is not None:
        options["torchtrt_profile_path_prefix"] = os.fspath(profile_path_prefix)
    if use_cuda_graphs is not None:
        if not isinstance(use_cuda_graphs, bool):
            raise ValueError(f"use_cuda_graphs: got {use_cuda_graphs!r}, allowed True or False")
        options["use_cuda_graphs"] = use_cuda_graphs
    return options


class Module:
    """An ExecuTorch program (``.pte``) with TensorRT delegates, other delegates and operators.

    Methods are loaded on their first call, or by :meth:`load_method`. Calls from several threads are serialised, and
    the GIL is released while a method runs; for parallel calls make one ``Module`` per thread.

    Args:
        program: A path, or the program's bytes.
        optimization_profile: What calls without an :class:`OptimizationProfileGuard` use: an index, or ``"auto"`` to
            choose from the input shapes. ``None`` is profile 0.
        profile_level: What delegates trace: ``"off"``, ``"delegate"``, ``"phases"`` or ``"layers"``. ``None`` is what
            the program says, else off.
        profile_format: ``"etdump"``, or ``"perfetto"`` and ``"trex"``, which write a file per engine as well, when the
            method is unloaded or this object ends. ``None`` is what the program says, else ``"etdump"``.
        profile_path_prefix: The folder for those files. It has to exist.
        use_cuda_graphs: Replay calls of engines on a GPU as CUDA graphs, which costs the host less than queueing their
            work again. ``None`` is what the program says, else no. See the guide on GPUs.
        etdump: Record ExecuTorch's events for :meth:`write_etdump`. ``None`` records when ``profile_level`` is given
            and not ``"off"``.
        load_mode: ``"mmap"`` (pages come in on use), ``"file"`` (read at once) or ``"mlock"`` (mapped and locked).
        state: The buffers that engines own, to share them with another module. ``None`` makes a state of its own.

    Raises:
        FileNotFoundError: There is no file at that path.
        IsADirectoryError: There is a folder.
        ValueError: An option is wrong, or the file is no valid program.
        TypeError: An argument is of another type.
    """

    def __init__(
        self,
        program: str | os.PathLike[str] | bytes | bytearray | memoryview,
        *,
        optimization_profile: int | Literal["auto"] | None = None,
        profile_level: ProfileLevel | None = None,
        profile_format: ProfileFormat | None = None,
        profile_path_prefix: str | os.PathLike[str] | None = None,
        use_cuda_graphs: bool | None = None,
        etdump: bool | None = None,
        load_mode: LoadMode = "mmap",
        state: EngineState | None = None,
    ) -> None:
        options = _load_options(
            optimization_profile, profile_level, profile_format, profile_path_prefix, use_cuda_graphs
        )
        if etdump is None:
            etdump = profile_level not in (None, "off")
        elif not isinstance(etdump, bool):
            raise TypeError(f"etdump: got {etdump!r}, allowed True or False; give a path to write_etdump()")
        self._state = EngineState() if state is None else check_state(state)
        if isinstance(program, (bytes, bytearray, memoryview)):
            self._name = f"{len(program)} bytes"
            self._native = _native.Module(bytes(program), etdump, options)
        elif isinstance(program, (str, os.PathLike)):
            self._name = repr(os.fspath(program))
            self._native = _native.Module(str(program_file(program)), load_mode, etdump, options)
        else:
            raise TypeError(
                f"program: got {type(program).__name__}, allowed a path or the program's bytes, as "
                "ExportedEngineProgram.buffer has them"
            )
        self._native.share_state(self._state.native)

    def __repr__(self) -> str:
        return f"Module({self._name}, methods={self.method_names})"

    @property
    def state(self) -> EngineState:
        """The buffers that the loaded methods' engines own (KV caches)."""
        return self._state

    @property
    def method_names(self) -> list[str]:
        """The program's methods, sorted."""
        return self._native.method_names

    def method_meta(self, name: str = "forward") -> MethodMeta:
        """Inputs and outputs of a method, with element types and the largest sizes planned, and its backends.

        Raises:
            ValueError: The program has no such method.
        """
        return self._native.method_meta(name)

    def load_method(
        self,
        name: str = "forward",
        *,
        optimization_profile: int | Literal["auto"] | None = None,
        profile_level: ProfileLevel | None = None,
        profile_format: ProfileFormat | None = None,
        profile_path_prefix: str | os.PathLike[str] | None = None,
        use_cuda_graphs: bool | None = None,
    ) -> None:
        """Loads a method, with options of its own over those of the module.

        Raises:
            ValueError: No such method, a wrong option, or the method is loaded already.
            ExecuTorchError: It cannot be loaded here, e.g. for want of its engine's runtime.
        """
        options = _load_options(
            optimization_profile, profile_level, profile_format, profile_path_prefix, use_cuda_graphs
        )
        try:
            self._native.load_method(name, options)
        finally:
            forward_messages()

    def unload_method(self, name: str = "forward") -> bool:
        """Frees a method's memory and writes its engines' trace files. Its next call loads it again.

        Returns:
            Whether it was loaded.

        Raises:
            ValueError: The program has no such method.
        """
        try:
            return self._native.unload_method(name)
        finally:
            forward_messages()

    def is_method_loaded(self, name: str = "forward") -> bool:
        """Whether the method's options are fixed."""
        return self._native.is_method_loaded(name)

    def run_method(self, name: str, inputs: Sequence[Any] = ()) -> list[Any]:
        """Runs a method.

        Args:
            name: The method.
            inputs: One per method input, in order: NumPy arrays, CPU tensors with DLPack (torch included), or numbers.
                Contiguous ones are not copied. Inputs that the program has on a CUDA device (`export(device=…)`) may be
                device arrays as well: with DLPack or ``__cuda_array_interface__``.

        Returns:
            The outputs in order, as torch tensors if a torch tensor went in, else as NumPy arrays, and as DLPack arrays
            where NumPy has no type for them (bfloat16). They are copies that later calls leave alone. If a device array
            went in, outputs that the program has on the device stay there: as :class:`DeviceArray`, or torch tensors.

        Raises:
            ValueError: Wrong method, number of inputs, element type, rank or dim, or no optimization profile for the
                shapes. The module stays usable.
            TypeError: An input is neither array nor number, or the inputs are no list of them.
            ExecuTorchError: The method failed.
        """
        if not isinstance(inputs, (list, tuple, Sequence)) or isinstance(inputs, (str, bytes)):
            raise TypeError(
                f"inputs of method '{name}': got {type(inputs).__name__}, allowed a list of arrays, tensors and "
                "numbers; write [x]"
            )
        torch = sys.modules.get("torch")
        torch_outputs = torch is not None and any(isinstance(value, torch.Tensor) for value in inputs)
        try:
            return self._native.execute(name, inputs, torch_outputs)
        finally:
            forward_messages()

    def forward(self, *inputs: Any) -> list[Any]:
        """Runs the method ``forward``; see :meth:`run_method`."""
        return self.run_method("forward", inputs)

    __call__ = forward

    @property
    def last_selections(self) -> list[Selection]:
        """What each TensorRT delegate of the last successful call used, in the order they ran."""
        return self._native.last_selections

    def write_etdump(self, path: str | os.PathLike[str]) -> int:
        """Writes the events since the last dump as an ETDump file.

        Returns:
            How many events did not fit (1,000,000 per dump are kept).

        Raises:
            ValueError: The module records no events, or there are none since the last dump.
            OSError: The file cannot be written.
        """
        with replacing(path) as temporary:  # where nothing can be written, the events stay for another path
            dropped = self._native.events_dropped
            dump = self._native.take_etdump()
            if dump is None:
                raise ValueError("no events since the last ETDump: run a method first")
            temporary.write_bytes(dump)
        return dropped
