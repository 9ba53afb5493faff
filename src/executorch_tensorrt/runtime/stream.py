"""CudaStreamGuard: the CUDA stream of this thread's calls."""

from __future__ import annotations

from typing import Any

from executorch_tensorrt import _native
from executorch_tensorrt.runtime.guard import Guard


class CudaStreamGuard(Guard):
    """While it is entered, engines on a GPU that this thread runs do so on one CUDA stream.

    A call whose inputs and outputs all lie in device memory then returns as soon as its work is queued: synchronize the
    stream before you read the outputs elsewhere, and keep the inputs until then. Without a guard, results are ready
    when a call returns. Other threads do not see the guard; guards nest.

    Args:
        stream: A ``cudaStream_t`` as an int (0 is CUDA's default stream), or an object that has one:
            ``torch.cuda.Stream``, ``cupy.cuda.Stream``, or any with ``__cuda_stream__``.

    Raises:
        TypeError: It is none of these.
        RuntimeError: It is ended on another thread than it began on, or while a later one is open. It is still open
            then, and everything as before.
    """

    def __init__(self, stream: Any) -> None:
        super().__init__(_native.stream_guard(_handle(stream)))


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
