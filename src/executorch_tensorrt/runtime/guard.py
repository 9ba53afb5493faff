"""What guards have in common, and OptimizationProfileGuard."""

from __future__ import annotations

from types import TracebackType
from typing import TypeVar

from executorch_tensorrt import _native
from executorch_tensorrt.runtime.log import forward_messages

_Own = TypeVar("_Own", bound="Guard")


class Guard:
    """Asks something of the thread that enters it, until that thread leaves it.

    Guards of one kind nest: the innermost counts. One may be entered again inside itself, and on several threads. Its
    end is refused, without any effect, on another thread and while a guard of its kind that began later is open; it can
    then still be ended rightly. What is open when the guard is collected ends with it.
    """

    def __init__(self, native: _native.Guard) -> None:
        self._native = native

    def __enter__(self: _Own) -> _Own:
        self._native.enter()
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Ends what this thread entered last.

        Raises:
            RuntimeError: It began on another thread, a later guard of its kind is open, or it was not entered.
        """
        self._native.exit()
        forward_messages()


class OptimizationProfileGuard(Guard):
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
        RuntimeError: It is ended on another thread than it began on, or while a later one is open. It is still open
            then, and everything as before.

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
        super().__init__(_native.profile_guard(request))
        self._request = request

    def __repr__(self) -> str:
        return f"OptimizationProfileGuard({self._request!r})"
