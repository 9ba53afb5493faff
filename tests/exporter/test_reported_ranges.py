"""What an engine that was built elsewhere says of its own ranges, asked of a TensorRT that is not the real one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from export_cases import ranges
from torch_tensorrt_graphs import one_engine

from executorch_tensorrt import Input, export
from executorch_tensorrt.engines.tensorrt import reported
from executorch_tensorrt.engines.tensorrt.reported import reported_ranges
from executorch_tensorrt.graphs.shapes import DimRange

ROWS = [Input(profiles=ranges(((1, 4), (1, 4), (1, 4)), ((2, 4), (16, 4), (32, 4))))]


class FakeEngine:
    """x with the given shapes per profile (min, opt, max), and output0."""

    num_io_tensors = 2

    def __init__(self, profiles: list[Any]) -> None:
        self._profiles, self.num_optimization_profiles = profiles, len(profiles)

    def get_tensor_name(self, place: int) -> str:
        return ("x", "output0")[place]

    def get_tensor_mode(self, name: str) -> str:
        return {"x": "input", "output0": "output"}[name]

    def get_tensor_profile_shape(self, name: str, profile: int) -> Any:
        assert name == "x"
        return self._profiles[profile]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Stands for the libraries of the two kinds: what each loads, or None for a plan that it does not take."""

    def put(tensorrt: FakeEngine | None, rtx: FakeEngine | None = None) -> None:
        def load_library(kind: str) -> Any:
            engine = {"tensorrt": tensorrt, "tensorrt_rtx": rtx}[kind]
            runtime = SimpleNamespace(deserialize_cuda_engine=lambda plan: engine)
            module = SimpleNamespace(Runtime=lambda log: runtime, TensorIOMode=SimpleNamespace(INPUT="input"))
            return SimpleNamespace(module=module, log=SimpleNamespace(text=lambda: ""))

        monkeypatch.setattr(reported, "load_library", load_library)

    return put


TWO = [((1, 4), (1, 4), (1, 4)), ((2, 4), (16, 4), (32, 4))]


def test_ranges_are_read_by_name(install: Any) -> None:
    install(FakeEngine(TWO))
    assert reported_ranges(b"plan") == [
        {"x": [DimRange(1, 1, 1), DimRange(4, 4, 4)]},
        {"x": [DimRange(2, 16, 32), DimRange(4, 4, 4)]},
    ]


def test_other_kind_is_asked_as_well(install: Any) -> None:
    install(None, FakeEngine(TWO[:1]))
    assert reported_ranges(b"plan") == [{"x": [DimRange(1, 1, 1), DimRange(4, 4, 4)]}]


def test_plan_that_nobody_loads_says_nothing(install: Any) -> None:
    install(None)
    assert reported_ranges(b"plan") is None


def test_machine_without_tensorrt_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def load_library(kind: str) -> Any:
        raise RuntimeError(kind)

    monkeypatch.setattr(reported, "load_library", load_library)
    assert reported_ranges(b"plan") is None


def test_declaration_that_fits_is_exported(install: Any) -> None:
    install(FakeEngine(TWO))
    export(one_engine(), ROWS)


def test_declaration_that_differs_is_refused(install: Any) -> None:
    install(FakeEngine([TWO[0], ((2, 4), (16, 4), (31, 4))]))
    with pytest.raises(ValueError, match=r"method 'forward' partition 0 .*'x' in profile 1"):
        export(one_engine(), ROWS)


def test_other_number_of_profiles_is_refused(install: Any) -> None:
    install(FakeEngine(TWO[:1]))
    with pytest.raises(ValueError, match="another number of optimization profiles"):
        export(one_engine(), ROWS)


def test_engine_is_not_asked_when_nothing_was_declared(install: Any) -> None:
    install(FakeEngine([((5, 5), (5, 5), (5, 5))]))
    export(one_engine())
