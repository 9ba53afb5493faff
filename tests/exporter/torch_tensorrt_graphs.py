"""Graphs as Torch-TensorRT leaves them, without Torch-TensorRT.

The two operators have its schemas, and an engine object its pickle state; the engines are any bytes. They stand in for
the real ones in tests alone: were they in the package, loading Torch-TensorRT after it would end the process.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from typing import Any, List  # noqa: UP035  # torch reads schemas off these annotations

import torch
from torch._library.opaque_object import register_opaque_type
from torch._opaque_base import OpaqueBase

from executorch_tensorrt._native import Blob, parse_blob
from executorch_tensorrt.program import read_program

Shapes = Callable[..., list[torch.Tensor]]

# Not a pickle: whoever unpickles it fails.
METADATA = base64.b64encode(b"never to be unpickled").decode()


def fields(
    engine: bytes,
    inputs: Sequence[str] = ("x",),
    outputs: Sequence[str] = ("output0",),
    *,
    length: int = 13,
    device: int = 0,
    hardware_compatible: bool = False,
    output_allocator: bool = False,
    aliases: str = "",
) -> list[str]:
    """An engine's record: 10 fields in releases 2.8 to 2.10, 11 in 2.11, 12 in 2.12 and 2.13, 13 in 2.14."""
    every = [
        {10: "7", 11: "8", 12: "9", 13: "10"}[length],
        "_run_on_acc_0_engine",
        f"{device}%8%9%0%NVIDIA L40",
        base64.b64encode(engine).decode(),
        "%".join(inputs),
        "%".join(outputs),
        str(int(hardware_compatible)),
        METADATA,
        "linux_x86_64",
        str(int(output_allocator)),
        "0",
        "0",
        aliases,
    ]
    return every[:length]


class Engine(OpaqueBase):
    """`torch.classes.tensorrt.Engine`: what lowering asks of it."""

    def __init__(self, record: list[str], shapes: Shapes, in_tuple: bool = True) -> None:
        self._record, self.shapes, self._in_tuple = record, shapes, in_tuple

    def __getstate__(self) -> Any:
        return (self._record, "TRTEngine") if self._in_tuple else self._record


register_opaque_type(Engine, typ="reference")


@torch.library.custom_op("tensorrt::execute_engine", mutates_args=())
def execute_engine(input_tensors: List[torch.Tensor], engine: Engine) -> List[torch.Tensor]:  # noqa: UP006
    raise NotImplementedError


@execute_engine.register_fake
def _(input_tensors: Sequence[torch.Tensor], engine: Engine) -> list[torch.Tensor]:
    return engine.shapes(*input_tensors)


@torch.library.custom_op("tensorrt::no_op_placeholder_for_execute_engine", mutates_args=())
def placeholder(
    inputs: List[torch.Tensor],  # noqa: UP006
    abi_version: str,
    name: str,
    serialized_device_info: str,
    serialized_engine: torch.Tensor,
    serialized_in_binding_names: str,
    serialized_out_binding_names: str,
    serialized_hardware_compatible: str,
    serialized_metadata: str,
    serialized_target_platform: str,
    serialized_require_output_allocator: str,
    serialized_resource_allocation_strategy: str,
    serialized_requires_native_multidevice: str,
    serialized_aliased_io: str,
) -> List[torch.Tensor]:  # noqa: UP006
    raise NotImplementedError


def same_shape(*inputs: torch.Tensor) -> list[torch.Tensor]:
    """One output like the first input."""
    return [torch.empty_like(inputs[0])]


class Net(torch.nn.Module):
    """A method that runs engines."""

    def __init__(self, forward: Callable[..., Any], *engines: Engine) -> None:
        super().__init__()
        self._forward = forward
        self.engines = len(engines)
        for index, engine in enumerate(engines):
            setattr(self, f"engine_{index}", engine)

    def forward(self, *inputs: torch.Tensor) -> Any:
        def runner(engine: Engine) -> Callable[..., list[torch.Tensor]]:
            return lambda *args: torch.ops.tensorrt.execute_engine(list(args), engine)

        return self._forward(*inputs, *(runner(getattr(self, f"engine_{k}")) for k in range(self.engines)))


def compiled(
    forward: Callable[..., Any],
    engines: Sequence[Engine],
    inputs: Sequence[torch.Tensor],
    dims: Sequence[dict[int, Any]] | None = None,
) -> torch.export.ExportedProgram:
    """What `torch.export` makes of a compiled module; `forward` gets the inputs, then a function per engine."""
    shapes = (tuple(dims),) if dims is not None else None
    with torch.no_grad():
        return torch.export.export(Net(forward, *engines), tuple(inputs), dynamic_shapes=shapes)


def one_engine(engine: bytes = b"plan of one", *, in_tuple: bool = True, **record: Any) -> torch.export.ExportedProgram:
    """x float32 [rows, 4], rows 1..32 -> the same, through one engine and an operator outside it."""
    rows = torch.export.Dim("rows", min=1, max=32)
    net = Engine(fields(engine, **record), same_shape, in_tuple)
    return compiled(lambda x, run: torch.cumsum(run(x)[0], 0), [net], [torch.ones(7, 4)], [{0: rows}])


def blobs(buffer: bytes) -> list[tuple[Blob, bytes, dict[str, Any]]]:
    """Of every TensorRT delegate of a program in order: the blob, its engine and its metadata."""
    found: list[tuple[Blob, bytes, dict[str, Any]]] = []
    for delegate in read_program(buffer).methods[0].delegates:
        if delegate.backend_id == "TensorRTBackend":
            data = bytes(delegate.blob)
            blob = parse_blob(data)
            start, size = (int.from_bytes(data[at : at + 4], "little") for at in (4, 8))
            engine = data[blob.engine_offset : blob.engine_offset + blob.engine_size]
            found.append((blob, engine, json.loads(data[start : start + size])))
    return found
