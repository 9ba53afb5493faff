"""EngineState: the buffers that engines own and update in place (KV caches)."""

from __future__ import annotations

from typing import Any

import numpy as np

from executorch_tensorrt import _native
from executorch_tensorrt.runtime.guard import Guard

# NumPy has no bfloat16.
_AS_NUMPY = {"bfloat16": "uint16"}


class EngineState:
    """The buffers that engines own and update in place, for the methods that share them by name.

    Programs exported with ``take_over_mutable_buffer=True`` have such buffers: they keep what a call wrote for the next
    one, whatever method or optimization profile that runs. Each :class:`Module` has a state of its own,
    :attr:`Module.state`; give one to several, or to the stock runtime with :class:`EngineStateGuard`, to share it.

    Every function waits for calls that use the buffers.
    """

    def __init__(self) -> None:
        self.native = _native.EngineState()

    def __repr__(self) -> str:
        return f"EngineState(names={self.names})"

    @property
    def names(self) -> list[str]:
        """Names of the buffers that the methods loaded so far have, sorted, such as ``"layers.0.k_cache"``."""
        return [buffer.name for buffer in self.native.buffers()]

    def reset(self) -> None:
        """Gives every buffer its initial value."""
        self.native.reset()

    def read(self, name: str) -> np.ndarray[Any, Any]:
        """A copy of a buffer; bfloat16 comes as the bits, uint16.

        Raises:
            ValueError: No loaded method has a buffer of that name.
        """
        buffer = self._find(name)
        data = self.native.read(name, buffer.nbytes)
        dtype = np.dtype(_AS_NUMPY.get(buffer.dtype, buffer.dtype))
        return np.array(np.ndarray(tuple(buffer.sizes), dtype, data))

    def write(self, name: str, value: Any) -> None:
        """Fills a buffer.

        Args:
            name: The buffer.
            value: An array of its shape and element type, or anything that :func:`numpy.asarray` takes.

        Raises:
            ValueError: No loaded method has a buffer of that name, or it has another shape or element type.
        """
        buffer = self._find(name)
        array = np.ascontiguousarray(value)
        dtype = np.dtype(_AS_NUMPY.get(buffer.dtype, buffer.dtype))
        if array.dtype != dtype or list(array.shape) != buffer.sizes:
            raise ValueError(
                f"buffer '{name}': got {array.dtype} {array.shape}, allowed {dtype} {tuple(buffer.sizes)}; convert it."
            )
        self.native.write(name, array.tobytes())

    def _find(self, name: str) -> _native.EngineBuffer:
        buffers = {buffer.name: buffer for buffer in self.native.buffers()}
        if name not in buffers:
            allowed = ", ".join(map(repr, buffers)) or "none, for no loaded method has engine-owned buffers"
            raise ValueError(f"unknown buffer: got {name!r}, allowed {allowed}; load the method that has it first.")
        return buffers[name]


def check_state(state: Any) -> EngineState:
    """A state that a caller gave.

    Raises:
        TypeError: It is none.
    """
    if not isinstance(state, EngineState):
        raise TypeError(f"state: got {type(state).__name__}, allowed an EngineState, such as Module.state")
    return state


class EngineStateGuard(Guard):
    """Gives a state to the methods that this thread loads inside the ``with`` block, whoever loads them.

    Raises:
        TypeError: ``state`` is no :class:`EngineState`.
        RuntimeError: It is ended on another thread than it began on, or while a later one is open. It is still open
            then, and everything as before.

    Example:
        >>> state = EngineState()
        >>> with EngineStateGuard(state):
        ...     method = Runtime.get().load_program("llm.pte").load_method("forward")
        >>> state.reset()
    """

    def __init__(self, state: EngineState) -> None:
        super().__init__(_native.state_guard(check_state(state).native))
