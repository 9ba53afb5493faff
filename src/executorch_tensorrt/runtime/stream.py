"""CudaStreamGuard: the CUDA stream of this thread's calls."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from executorch_tensorrt import _native


class CudaStreamGuard:
    """While it is entered, engines on a GPU that this thread runs do so on one CUDA stream.

    A call whose inputs and outputs all lie in device memory then returns as soon as its work is queued: synchronize the
    stream before you read the outputs elsewhere, and keep the inputs until then. Without a guard, results are ready
    when a call returns. Other threads do not see the guard; guards nest.

    Args:
        stream: A ``cudaStream_t`` as an int (0 is CUDA's default stream), or an object that has one:
            ``torch.cuda.Stream``, ``cupy.cuda.Stream``, or any with ``__cuda_stream__``.

    Raises:
        TypeError: It is none of these.
        ValueError: The guard is entered already.
    """

    def __init__(self, stream: Any) -> None:
        self._native = _native.CudaStreamGuard(_handle(stream))

    def __enter__(self) -> CudaStreamGuard:
        self._native.enter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._native.leave()


def _handle(stream: Any) -> int:
    if hasattr(stream, "__cuda_stream__"):
        return int(stream.__cuda_stream__()[1])  # a version, then the handle
    for name in ("cuda_stream", "ptr"):
        if isinstance(getattr(stream, name, None), int):
            return int(getattr(stream, name))
    if not isinstance(stream, int) or isinstance(stream, bool) or stream < 0:
        raise TypeError(
            f"stream: got {type(stream).__name__} {stream!r}, allowed a cudaStream_t as an int, or an object with "
            "__cuda_stream__, cuda_stream or ptr"
        )
    return stream
