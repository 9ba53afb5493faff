"""`etrt doctor`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from executorch_tensorrt import __version__, _native

if TYPE_CHECKING:
    from conftest import Etrt


def test_doctor_tells_versions_and_what_works(etrt: Etrt) -> None:
    report = json.loads(etrt("doctor", "--json").stdout)
    assert report["versions"]["executorch-tensorrt"] == __version__
    assert report["backend_registered"] is True
    assert {item["kind"] for item in report["engines"] if item["runs"]} <= set(_native.engine_runtimes())
    assert {item["kind"] for item in report["engines"]} >= {"cpu", "tensorrt", "tensorrt_rtx"}
    assert report["tracing_compiled_in"] is _native.tracing_compiled_in()
    assert report["cuda"]["driver"] or report["cuda"]["problem"]
    for library in report["libraries"]:
        assert bool(library["library"]) != bool(library["problem"])


@pytest.mark.parametrize("available", [True, False])
def test_doctor_tells_which_engines_run_with_and_without_a_gpu(
    available: bool, etrt: Etrt, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_native, "engine_runtimes", lambda: ["cpu", "tensorrt_rtx"])
    monkeypatch.setattr(_native, "device_memory_available", lambda: available)
    engines = {item.pop("kind"): item for item in json.loads(etrt("doctor", "--json").stdout)["engines"]}
    reason = "" if available else "it is installed, but CUDA can't be used here"
    assert engines == {
        "cpu": {"runs": True, "reason": ""},
        "tensorrt": {"runs": False, "reason": "no runtime for it is loaded"},
        "tensorrt_rtx": {"runs": available, "reason": reason},
    }


def test_doctor_prints(etrt: Etrt) -> None:
    output = etrt("doctor").stdout
    for text in ("Versions", "CUDA driver", "TensorRT-RTX", "engine kind cpu", "runs here", "event tracing"):
        assert text in output


def test_doctor_fails_where_nothing_can_run(etrt: Etrt, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_native, "backend_problem", lambda: "it is another's")
    assert "not registered: it is another's" in etrt("doctor", code=1).stdout


@pytest.mark.parametrize(("compiled_in", "told"), [(True, "compiled in"), (False, "no events are recorded")])
def test_doctor_tells_whether_tracing_is_compiled_in(
    compiled_in: bool, told: str, etrt: Etrt, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_native, "tracing_compiled_in", lambda: compiled_in)
    assert told in etrt("doctor").stdout
