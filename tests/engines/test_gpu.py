"""What is asked of NVIDIA's driver, on a stand-in for it."""

from __future__ import annotations

from typing import Any

import pytest

from executorch_tensorrt.engines.tensorrt.gpu import gpu_of


class Driver:
    """The driver's functions that are called; `failing` is one that returns an error."""

    def __init__(self, failing: str = "", current: int | None = None) -> None:
        self._failing = failing
        self._current = current

    def __getattr__(self, name: str) -> Any:
        return (lambda *_: 100) if name == self._failing else getattr(self, f"_{name}")

    def _cuInit(self, flags: int) -> int:  # noqa: N802
        return 0

    def _cuCtxGetDevice(self, device: Any) -> int:  # noqa: N802
        if self._current is None:
            return 201
        device._obj.value = self._current
        return 0

    def _cuDeviceGet(self, device: Any, index: int) -> int:  # noqa: N802
        device._obj.value = index
        return 0

    def _cuDeviceGetName(self, name: Any, size: int, device: Any) -> int:  # noqa: N802
        name.value = f"NVIDIA H{device.value}".encode()
        return 0

    def _cuDeviceGetAttribute(self, value: Any, attribute: int, device: Any) -> int:  # noqa: N802
        value._obj.value = {75: 9, 76: 0}[attribute]
        return 0


@pytest.mark.parametrize(("current", "name"), [(None, "NVIDIA H0"), (3, "NVIDIA H3")])
def test_gpu_is_the_current_one_or_the_first(current: int | None, name: str) -> None:
    assert gpu_of(Driver(current=current)) == f"{name} (compute capability 9.0)"


@pytest.mark.parametrize("failing", ["cuInit", "cuDeviceGet", "cuDeviceGetName", "cuDeviceGetAttribute"])
def test_gpu_is_unknown_where_the_driver_fails(failing: str) -> None:
    assert gpu_of(Driver(failing)) == ""
