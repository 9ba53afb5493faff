"""OptimizationProfileGuard: which optimization profile TensorRT delegates use, around ``forward()``."""

from __future__ import annotations

import threading
from types import TracebackType

from executorch_tensorrt import _native
from executorch_tensorrt.runtime.log import forward_messages


class OptimizationProfileGuard:
    """Chooses the optimization profile of every TensorRT delegate that this thread runs inside the ``with`` block.

    It stores a request for the calling thread and does nothing else, so it works around :meth:`Module.forward`, a C++
    ``Module`` called from this thread, and the stock ``executorch.runtime``. Guards nest, and restore what was there
    before, also when an exception passes. Without a guard a delegate uses what its method was loaded with, else
    profile 0. Other backends ignore it.

    Args:
        index: The optimization profile, 0 or more. An index past an engine's last profile is an error of the call.

    Raises:
        TypeError: ``index`` is no int.
        ValueError: ``index`` is negative.

    Example:
        >>> with OptimizationProfileGuard(1):
        ...     logits = module.forward(prompt)
    """

    def __init__(self, index: int) -> None:
        if isinstance(index, bool) or not isinstance(index, int):
            raise TypeError(f"optimization profile index: got {index!r}, allowed an int of 0 or more")
        if not 0 <= index < 2**31:
            raise ValueError(f"optimization profile index: got {index}, allowed 0 to {2**31 - 1}")
        self._setup(_native.Request.pinned(index))

    @classmethod
    def auto(cls) -> OptimizationProfileGuard:
        """Chooses from the input shapes: the lowest index that accepts them all, on every call, whatever ran before."""
        guard = cls.__new__(cls)
        guard._setup(_native.Request.auto())
        return guard

    def _setup(self, request: _native.Request) -> None:
        self._request = request
        # A guard object may be entered again inside itself.
        self._previous: list[tuple[int, _native.Request]] = []

    def __enter__(self) -> OptimizationProfileGuard:
        self._previous.append((threading.get_ident(), _native.swap_request(self._request)))
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        thread, previous = self._previous.pop()
        if thread != threading.get_ident():
            raise RuntimeError("an OptimizationProfileGuard ends on the thread where it began")
        _native.swap_request(previous)
        forward_messages()

    def __repr__(self) -> str:
        return f"OptimizationProfileGuard({self._request!r})"
