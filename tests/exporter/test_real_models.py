"""Public architectures match eager PyTorch in each profile; `benchmarks/models.py` exports more of them."""

from __future__ import annotations

import pytest
from model_zoo import MODELS, differences, make

from executorch_tensorrt.exporter import export


@pytest.mark.parametrize("name", ["resnet", "convnext", "whisper"])
def test_real_model_matches_eager_in_each_profile(name: str) -> None:
    program = export(make(name), MODELS[name].inputs)
    assert [len(delegate["profiles"]) for delegate in program.delegates] == [2]
    assert not program.left_outside
    assert max(differences(name, program.buffer)) < 1e-5
