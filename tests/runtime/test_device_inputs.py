"""Device arrays that do not fit: a clear error, and the next call works."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from fakes.python_engine import CudaArray, FakeCuda, in_capsule
from runtime.device_programs import Load, Where, doubled

from executorch_tensorrt import ExecuTorchError, Module

VALUES = np.arange(8, dtype=np.float32).reshape(2, 4)


def assert_works(module: Module, cuda: FakeCuda) -> None:
    np.testing.assert_array_equal(module.forward(cuda.array(VALUES))[0].numpy(), 2 * VALUES)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.zeros((2, 4)), "input 0: got dtype float64, allowed float32"),
        (np.zeros((2, 4, 1), np.float32), r"input 0: got rank 3 \(2, 4, 1\), allowed rank 2"),
        (np.zeros((13, 4), np.float32), r"input 0 dim 0: got 13 in \(13, 4\), the program is planned for at most"),
        (np.zeros((5, 4), np.float32), r"dim 0: got 5, allowed 1..4 in profile 0"),
        (np.zeros((2, 3), np.float32), r"dim 1: got 3, allowed 4"),
    ],
)
def test_array_of_another_type_or_shape_is_refused(
    values: np.ndarray, message: str, cuda: FakeCuda, load: Load
) -> None:
    module, runtime = load(doubled())
    with pytest.raises(ValueError, match=message):
        module.forward(cuda.array(values))
    assert runtime.named("enqueue") == []
    assert_works(module, cuda)


def like(array: CudaArray, **changes: Any) -> CudaArray:
    """The array, with another interface."""
    changed = CudaArray(0, (), "")
    changed.__cuda_array_interface__ = {**array.__cuda_array_interface__, **changes}
    return changed


@pytest.mark.parametrize("strides", [(32, 4), (4, 8), (-16, 4), (0, 4)])
def test_array_with_gaps_or_in_another_order_is_refused(strides: tuple[int, ...], cuda: FakeCuda, load: Load) -> None:
    module, _ = load(doubled())
    with pytest.raises(
        ValueError, match="input 0: got a device array with gaps or in another order, allowed row-major"
    ):
        module.forward(like(cuda.array(VALUES), strides=strides))
    assert_works(module, cuda)


# Row-major is what wraps around to these strides.
@pytest.mark.parametrize(("shape", "strides"), [((2, 2**62), (0, 4)), ((2, 2**61, 2), (16, 8, 4))])
def test_array_larger_than_any_memory_is_refused(
    shape: tuple[int, ...], strides: tuple[int, ...], cuda: FakeCuda, load: Load
) -> None:
    module, _ = load(doubled())
    with pytest.raises(ValueError, match="input 0: got a device array with gaps or in another order"):
        module.forward(like(cuda.array(VALUES), shape=shape, strides=strides))
    assert_works(module, cuda)


@pytest.mark.parametrize(("size", "strides"), [(2, (16, 4)), (1, (999, 4)), (2, None)])
def test_array_may_say_that_it_is_row_major(
    size: int, strides: tuple[int, ...] | None, cuda: FakeCuda, load: Load
) -> None:
    (output,) = load(doubled())[0].forward(like(cuda.array(VALUES[:size]), strides=strides))
    np.testing.assert_array_equal(output.numpy(), 2 * VALUES[:size])


@pytest.mark.parametrize(
    "changes",
    [
        {"typestr": "<c8"}, {"typestr": ">f4"}, {"typestr": ""}, {"typestr": "f"}, {"typestr": 4},
        {"data": None}, {"data": ()}, {"shape": None},
        {"shape": (-2, 4)}, {"shape": (2, "4")}, {"strides": (16,)}, {"strides": (64, 16, 4)}, {"strides": 4},
    ],
    ids=str,
)  # fmt: skip
def test_array_with_an_interface_that_says_nonsense_is_refused(
    changes: dict[str, Any], cuda: FakeCuda, load: Load
) -> None:
    module, _ = load(doubled())
    with pytest.raises((ValueError, TypeError), match="method 'forward' input 0.*: got "):
        module.forward(like(cuda.array(VALUES), **changes))
    assert_works(module, cuda)


def test_array_whose_interface_lacks_a_part_is_refused(cuda: FakeCuda, load: Load) -> None:
    module, _ = load(doubled())
    array = cuda.array(VALUES)
    del array.__cuda_array_interface__["shape"]
    with pytest.raises(TypeError, match="method 'forward' input 0.*__cuda_array_interface__"):
        module.forward(array)
    assert_works(module, cuda)


def test_array_of_another_device_is_refused(cuda: FakeCuda, load: Load) -> None:
    cuda.reset(devices=2)
    module, _ = load(doubled())
    with pytest.raises(ValueError, match="input 'x' lies on another device: got 1, allowed 0; copy it there"):
        module.forward(cuda.array(VALUES, device=1))
    assert_works(module, cuda)


def test_memory_of_the_host_is_refused_as_a_device_array(cuda: FakeCuda, load: Load) -> None:
    module, _ = load(doubled())
    on_host = CudaArray(VALUES.ctypes.data, VALUES.shape, VALUES.dtype.str)
    with pytest.raises(ValueError, match="input 'x' is planned on CUDA device 0, and its memory lies on the host"):
        module.forward(on_host)
    assert_works(module, cuda)


def test_null_is_refused_as_a_device_array(cuda: FakeCuda, load: Load) -> None:
    module, _ = load(doubled())
    with pytest.raises(ValueError, match="input 0: got a device array at address 0"):
        module.forward(CudaArray(0, (2, 4), "<f4"))
    assert_works(module, cuda)


class OnDevice:
    """A DLPack array that says it lies on another device."""

    def __init__(self, array: Any, device: int) -> None:
        self._capsule, self._device = array.__dlpack__(), device
        in_capsule(self._capsule).device = device

    def __dlpack__(self, **options: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, self._device


def test_dlpack_array_of_another_device_is_refused(cuda: FakeCuda, load: Load) -> None:
    module, _ = load(doubled())
    (output,) = module.forward(cuda.array(VALUES))
    with pytest.raises(ValueError, match="got a tensor on CUDA device 1, allowed a contiguous one on CUDA device 0"):
        module.forward(OnDevice(output, 1))
    assert_works(module, cuda)


class Reshaped:
    """A DLPack array in other words: row-major, of another shape."""

    def __init__(self, array: Any, shape: tuple[int, ...]) -> None:
        self._capsule, self._shape = array.__dlpack__(), (ctypes.c_int64 * len(shape))(*shape)
        tensor = in_capsule(self._capsule)
        tensor.rank, tensor.shape, tensor.strides = len(shape), self._shape, None

    def __dlpack__(self, **options: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0


@pytest.mark.parametrize("shape", [(), (8,), (2, 4, 1), (*[1] * 60, 2, 4)], ids=len)
def test_dlpack_array_of_another_rank_is_refused(shape: tuple[int, ...], cuda: FakeCuda, load: Load) -> None:
    module, _ = load(doubled())
    (output,) = module.forward(cuda.array(VALUES))
    with pytest.raises(ValueError, match=rf"input 0: got rank {len(shape)} \(.*\), allowed rank 2"):
        module.forward(Reshaped(output, shape))
    assert_works(module, cuda)


@pytest.mark.parametrize("where", ["host_io", "host"])
def test_device_array_is_refused_where_the_program_has_host_memory(where: Where, cuda: FakeCuda, load: Load) -> None:
    module, _ = load(doubled(where))
    with pytest.raises(ValueError, match='got a tensor on a device, .* export with device="cuda:0"'):
        module.forward(cuda.array(VALUES))
    np.testing.assert_array_equal(module.forward(VALUES)[0], 2 * VALUES)


def test_program_for_a_device_that_is_not_there_says_so(cuda: FakeCuda, load: Load) -> None:
    module, _ = load(doubled("second device"))
    with pytest.raises(ExecuTorchError, match="for another CUDA device: got 1, allowed 0..0; look at CUDA_VIS"):
        module.forward(VALUES)
    cuda.reset(devices=2)
    np.testing.assert_array_equal(module.forward(VALUES)[0], 2 * VALUES)


def test_call_leaves_the_callers_device_current(cuda: FakeCuda, load: Load) -> None:
    cuda.reset(devices=2)
    module, _ = load(doubled("second device"))
    assert module.forward(cuda.array(VALUES, device=1))[0].device == 1
    with pytest.raises(ValueError, match="lies on another device: got 0, allowed 1"):
        module.forward(cuda.array(VALUES))
    assert cuda.library.fake_cuda_current_device() == 0
