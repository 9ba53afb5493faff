"""The operator that runs an engine, as torch's compilers see it; its kernel is native."""

# torch's operators carry few types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from typing import Any

import torch

from executorch_tensorrt import _native

_native.register_torch_operators()

EXECUTE_ENGINE: Any = torch.ops.executorch_tensorrt.execute_engine.default
EXECUTE_IN_PLACE: Any = torch.ops.executorch_tensorrt.execute_engine.in_place

# PyTorch's numbers of element types, which graphs don't say by name.
_DTYPES = {
    torch.uint8: 0,
    torch.int8: 1,
    torch.int16: 2,
    torch.int32: 3,
    torch.int64: 4,
    torch.float16: 5,
    torch.float32: 6,
    torch.float64: 7,
    torch.bool: 11,
    torch.bfloat16: 15,
}
_NAMES = {number: dtype for dtype, number in _DTYPES.items()}

# See native/aoti/packaged_engine.h.
_HEADER = struct.Struct("<4sIQ32si12x")
HEADER_SIZE = _HEADER.size


def engine_tensor(blob: bytes, request: int) -> torch.Tensor:
    """A delegate's blob as the operator's `engine`; `request` is that of calls without a guard, -1 for automatic."""
    header = _HEADER.pack(b"ETP1", 0, len(blob), hashlib.sha256(blob).digest(), request)
    return torch.frombuffer(bytearray(header + blob), dtype=torch.uint8)


def outside(engine: torch.Tensor) -> torch.Tensor:
    """The same for an engine whose blob lies elsewhere."""
    header = bytearray(engine[:HEADER_SIZE].numpy().tobytes())
    header[4] = 1
    return torch.frombuffer(header, dtype=torch.uint8)


def digest_of(engine: torch.Tensor) -> str:
    """The SHA-256 of an engine's blob."""
    return engine[16:48].numpy().tobytes().hex()


def describe_output(dtype: torch.dtype, sizes: Sequence[Any]) -> list[Any]:
    """What the operator's `outputs` says of one output."""
    return [_DTYPES[dtype], len(sizes), *sizes]


def _fake(inputs: Sequence[torch.Tensor], engine: torch.Tensor, outputs: Sequence[Any]) -> list[torch.Tensor]:
    device = inputs[0].device if inputs else engine.device
    made: list[torch.Tensor] = []
    rest = list(outputs)
    while rest:
        dtype, end = _NAMES[int(rest[0])], 2 + int(rest[1])
        made.append(torch.empty(rest[2:end], dtype=dtype, device=device))
        rest = rest[end:]
    return made


def _fake_in_place(*args: Any) -> None:
    """It makes no tensors."""


torch.library.register_fake("executorch_tensorrt::execute_engine", _fake)
torch.library.register_fake("executorch_tensorrt::execute_engine.in_place", _fake_in_place)
