"""The CUDA device of a delegate, as ExecuTorch's compile specs say it."""

# pyright: reportMissingTypeStubs=false

from __future__ import annotations

import re
from collections.abc import Sequence

from executorch.exir.backend.compile_spec_schema import CompileSpec
from executorch.exir.passes.propagate_device_pass import TARGET_DEVICE_COMPILE_SPEC_KEY

_LAST_DEVICE = 127  # ExecuTorch has a byte for it


def device_specs(device: str | None, kind: str) -> list[CompileSpec]:
    """What makes ExecuTorch plan a delegate's inputs and outputs on a device.

    Raises:
        ValueError: it is no CUDA device, or the engine works on the host.
    """
    if device is None:
        return []
    found = re.fullmatch(r"cuda:(\d{1,3})", device) if isinstance(device, str) else None  # pyright: ignore[reportUnnecessaryIsInstance]
    if found is None or int(found[1]) > _LAST_DEVICE:
        raise ValueError(f"device is not valid: got {device!r}, allowed 'cuda:0' to 'cuda:{_LAST_DEVICE}'; correct it.")
    if kind == "cpu":
        raise ValueError(
            f"device is not for every engine: got {device!r} for engine 'cpu', which works on the host, allowed None; "
            "leave it off, or choose engine 'tensorrt' or 'tensorrt_rtx'."
        )
    return [CompileSpec(TARGET_DEVICE_COMPILE_SPEC_KEY, device.encode())]


def device_index(specs: Sequence[CompileSpec]) -> int:
    """The device that a delegate's compile specs name, else 0."""
    for spec in specs:
        if spec.key == TARGET_DEVICE_COMPILE_SPEC_KEY:
            return int(spec.value.decode().rpartition(":")[2] or 0)
    return 0
