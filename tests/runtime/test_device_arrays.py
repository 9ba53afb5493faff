"""Arrays on a device and on the host, into programs that have memory on either."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from fakes.python_engine import FakeCuda, in_capsule
from runtime.device_programs import Load, Where, doubled, tail, two_engines, typed

from executorch_tensorrt import DeviceArray


def numbers(size: int = 2) -> np.ndarray:
    return np.arange(1, 1 + 4 * size, dtype=np.float32).reshape(size, 4)


@pytest.mark.parametrize("where", ["device", "host_io", "host"])
@pytest.mark.parametrize("size", [1, 2, 8, 12])
def test_host_arrays_give_host_arrays_wherever_the_program_has_its_memory(size: int, where: Where, load: Load) -> None:
    module, _ = load(doubled(where), optimization_profile="auto")
    (output,) = module.forward(numbers(size))
    assert isinstance(output, np.ndarray)
    np.testing.assert_array_equal(output, 2 * numbers(size))


@pytest.mark.parametrize("size", [2, 12])
def test_device_arrays_give_device_arrays(size: int, cuda: FakeCuda, load: Load) -> None:
    module, runtime = load(doubled(), optimization_profile="auto")
    array = cuda.array(numbers(size))
    (output,) = module.forward(array)
    assert isinstance(output, DeviceArray)
    assert (output.shape, output.dtype, output.device) == ((size, 4), "float32", 0)
    interface = output.__cuda_array_interface__
    assert (interface["shape"], interface["typestr"], interface["strides"]) == ((size, 4), "<f4", None)
    np.testing.assert_array_equal(cuda.read(output), 2 * numbers(size))
    # The engine had the caller's memory and the output's, and nothing was copied.
    assert runtime.named("set_input_address") == [[0, array.__cuda_array_interface__["data"][0]]]
    assert runtime.named("set_output_address") == [[0, interface["data"][0]]]
    assert not [line for line in cuda.take_log() if line.startswith("Memcpy")]


def test_one_device_array_is_enough_for_device_outputs(cuda: FakeCuda, load: Load) -> None:
    module, _ = load(typed())
    ids = np.arange(8, dtype=np.int64).reshape(2, 4)
    outputs = module.forward(cuda.array(numbers()), ids)
    assert all(isinstance(output, DeviceArray) for output in outputs)
    np.testing.assert_array_equal(outputs[1].numpy(), ids + 1)


@pytest.mark.parametrize("where", ["device", "host_io", "host"])
def test_torch_tensors_give_torch_tensors(where: Where, load: Load) -> None:
    (output,) = load(doubled(where))[0].forward(torch.from_numpy(numbers()))
    assert isinstance(output, torch.Tensor)
    np.testing.assert_array_equal(output.numpy(), 2 * numbers())


def test_host_arrays_may_have_gaps(load: Load) -> None:
    (output,) = load(doubled())[0].forward(np.repeat(numbers(), 2, axis=1)[:, ::2])
    np.testing.assert_array_equal(output, 2 * numbers())


def test_device_output_gives_a_host_copy(cuda: FakeCuda, load: Load) -> None:
    (output,) = load(doubled())[0].forward(cuda.array(numbers()))
    np.testing.assert_array_equal(output.numpy(), 2 * numbers())
    output.numpy()[...] = 0
    np.testing.assert_array_equal(output.numpy(), 2 * numbers())


def test_device_output_gives_a_dlpack_capsule(cuda: FakeCuda, load: Load) -> None:
    (output,) = load(doubled())[0].forward(cuda.array(numbers()))
    capsule = output.__dlpack__()
    tensor = in_capsule(capsule)
    assert output.__dlpack_device__() == (tensor.device_type, tensor.device) == (2, 0)
    assert tensor.data == output.__cuda_array_interface__["data"][0]
    assert tensor.shape[: tensor.rank] == [2, 4]
    assert (tensor.code, tensor.bits, tensor.lanes) == (2, 32, 1)  # float32


def test_dlpack_capsule_keeps_the_memory(cuda: FakeCuda, load: Load) -> None:
    module, _ = load(doubled())
    (output,) = module.forward(cuda.array(numbers()))
    capsule = output.__dlpack__()
    del output
    for _ in range(3):
        module.forward(cuda.array(-numbers()))
    np.testing.assert_array_equal(cuda.at(in_capsule(capsule).data, (2, 4), np.float32), 2 * numbers())


def test_output_of_a_call_is_input_of_the_next(cuda: FakeCuda, load: Load) -> None:
    """A device array goes in by DLPack."""
    module, _ = load(doubled())
    values: list[Any] = [cuda.array(numbers())]
    for _ in range(3):
        values = module.forward(*values)
    np.testing.assert_array_equal(values[0].numpy(), 8 * numbers())


def test_host_arrays_and_device_arrays_take_turns(cuda: FakeCuda, load: Load) -> None:
    module, _ = load(doubled(), optimization_profile="auto")
    for turn, size in enumerate((2, 8, 8, 2, 12, 12)):
        values = numbers(size) + turn
        (output,) = module.forward(cuda.array(values) if turn % 2 else values)
        assert isinstance(output, DeviceArray if turn % 2 else np.ndarray)
        np.testing.assert_array_equal(output.numpy() if turn % 2 else output, 2 * values)


def test_outputs_are_the_callers_to_keep(cuda: FakeCuda, load: Load) -> None:
    module, _ = load(doubled())
    kept = [module.forward(cuda.array(numbers() + turn))[0] for turn in range(4)]
    for turn, output in enumerate(kept):
        np.testing.assert_array_equal(output.numpy(), 2 * (numbers() + turn))


def test_outputs_outlive_their_module(cuda: FakeCuda, load: Load) -> None:
    module, _ = load(doubled())
    (output,) = module.forward(cuda.array(numbers()))
    del module
    np.testing.assert_array_equal(output.numpy(), 2 * numbers())


def test_memory_of_outputs_that_are_dropped_is_used_again(cuda: FakeCuda, load: Load) -> None:
    module, _ = load(doubled())
    array = cuda.array(numbers())
    for _ in range(2):
        module.forward(array)
    cuda.take_log()
    for _ in range(5):
        module.forward(array)
    assert not [line for line in cuda.take_log() if line.startswith(("Malloc", "Free"))]


def test_outputs_of_other_types(cuda: FakeCuda, load: Load) -> None:
    module, _ = load(typed(), optimization_profile="auto")
    x = np.linspace(-3, 3, 20, dtype=np.float32).reshape(5, 4)
    ids = np.arange(20, dtype=np.int64).reshape(5, 4) << 40
    bits = (x.view(np.uint32) >> 16).astype(np.uint16)
    positive, following, rounded = module.forward(cuda.array(x), cuda.array(ids))
    assert [item.dtype for item in (positive, following, rounded)] == ["bool", "int64", "bfloat16"]
    np.testing.assert_array_equal(positive.numpy(), x > 0)
    np.testing.assert_array_equal(following.numpy(), ids + 1)
    capsule = rounded.__dlpack__()
    assert in_capsule(capsule).code == 4  # bfloat
    np.testing.assert_array_equal(cuda.at(in_capsule(capsule).data, (5, 4), np.uint16), bits)
    with pytest.raises(AttributeError, match="no bfloat16: use DLPack"):
        _ = rounded.__cuda_array_interface__
    on_host = module.forward(x, ids)
    np.testing.assert_array_equal(on_host[0], x > 0)
    np.testing.assert_array_equal(on_host[1], ids + 1)


def test_outputs_may_be_empty(cuda: FakeCuda, load: Load) -> None:
    module, _ = load(tail())
    for size in (3, 5, 3):
        (output,) = module.forward(cuda.array(numbers(size)))
        np.testing.assert_array_equal(output.numpy(), 2 * numbers(size)[3:])
        np.testing.assert_array_equal(module.forward(numbers(size))[0], 2 * numbers(size)[3:])


def test_engines_with_an_operator_between_them(cuda: FakeCuda, load: Load) -> None:
    module, _ = load(two_engines(), optimization_profile="auto")
    expected = 2 * np.cumsum(2 * numbers(5), 0)
    np.testing.assert_allclose(module.forward(numbers(5))[0], expected)
    np.testing.assert_allclose(module.forward(cuda.array(numbers(5)))[0].numpy(), expected)
    assert len(module.last_selections) == 2
