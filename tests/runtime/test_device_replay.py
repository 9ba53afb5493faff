"""Calls that are replayed as CUDA graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fakes.python_engine import FakeCuda
from runtime.device_programs import Load, doubled

VALUES = np.arange(8, dtype=np.float32).reshape(2, 4)


def launches(cuda: FakeCuda) -> int:
    return sum(line.startswith("GraphLaunch") for line in cuda.take_log())


def test_third_call_of_a_kind_is_replayed(cuda: FakeCuda, load: Load) -> None:
    module, runtime = load(doubled(), use_cuda_graphs=True)
    array = cuda.array(VALUES)
    cuda.take_log()
    seen: list[int] = []
    for _ in range(4):
        (output,) = module.forward(array)
        np.testing.assert_array_equal(output.numpy(), VALUES * 2)
        del output
        seen.append(launches(cuda))
    assert seen == [0, 0, 1, 1]
    assert len(runtime.named("enqueue")) == 3  # two calls and what was recorded


def test_content_may_change_between_replays(cuda: FakeCuda, load: Load) -> None:
    module, _ = load(doubled(), use_cuda_graphs=True)
    for factor in range(5):
        (output,) = module.forward(VALUES * factor)
        np.testing.assert_array_equal(output, VALUES * factor * 2)
    assert launches(cuda) == 3


def test_arrays_at_new_addresses_are_replayed_too(cuda: FakeCuda, load: Load) -> None:
    module, _ = load(doubled(), use_cuda_graphs=True)
    outputs: list[Any] = [module.forward(cuda.array(VALUES + step))[0] for step in range(8)]
    for step, output in enumerate(outputs):
        np.testing.assert_array_equal(output.numpy(), (VALUES + step) * 2)
    assert launches(cuda) == 2


def test_method_may_have_another_choice_than_its_module(cuda: FakeCuda, load: Load) -> None:
    module, _ = load(doubled(), use_cuda_graphs=True)
    module.load_method(use_cuda_graphs=False)
    for _ in range(4):
        module.forward(VALUES)
    assert launches(cuda) == 0


@pytest.mark.parametrize("wrong", [1, "true"])
def test_choice_is_true_or_false(wrong: Any, load: Load) -> None:
    with pytest.raises(ValueError, match=f"use_cuda_graphs: got {wrong!r}, allowed True or False"):
        load(doubled(), use_cuda_graphs=wrong)
