"""What a call leaves in the ETDump, read back with ExecuTorch's own Inspector."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from executorch.devtools import Inspector
from models import mixed, rows

from executorch_tensorrt import Module, OptimizationProfileGuard
from executorch_tensorrt.events import EVENTS

# Recordings of earlier versions have these, so they stay as they are.
NAMES = (
    "torchtrt.delegate",
    "torchtrt.input_binding",
    "torchtrt.shape_inference",
    "torchtrt.output_binding",
    "torchtrt.enqueue_host",
    "torchtrt.output_staging",
    "torchtrt.synchronize",
)
PHASES = set(NAMES)


def events_of(path: Path, etrecord: Path | None = None) -> list[Any]:
    inspector = Inspector(str(path), etrecord=str(etrecord) if etrecord else None)
    return [event for block in inspector.event_blocks if block.name == "Execute" for event in block.events]


def trace(level: str, path: Path, calls: int = 3) -> list[Any]:
    module = Module(rows().buffer, profile_level=level)  # type: ignore[arg-type]
    for _ in range(calls):
        module.forward(np.ones((2, 4), np.float32))
    assert module.write_etdump(path) == 0
    return events_of(path)


def test_names_of_events_are_the_native_librarys() -> None:
    assert EVENTS == NAMES


def test_level_phases_gives_all_seven_events_on_every_call(tmp_path: Path) -> None:
    events = {event.name: event for event in trace("phases", tmp_path / "x.etdp")}
    assert {name for name in events if name.startswith("torchtrt.")} == PHASES
    assert all(len(events[name].perf_data.raw) == 3 for name in PHASES)


def test_level_delegate_gives_one_event(tmp_path: Path) -> None:
    names = [event.name for event in trace("delegate", tmp_path / "x.etdp") if event.name.startswith("torchtrt.")]
    assert names == ["torchtrt.delegate"]


def test_level_layers_adds_the_engines_operators(tmp_path: Path) -> None:
    events = trace("layers", tmp_path / "x.etdp")
    layers = [e for e in events if e.is_delegated_op and not e.name.startswith("torchtrt.")]
    assert layers
    assert len({event.name for event in layers}) == len(layers)
    assert all(len(event.perf_data.raw) == 3 for event in layers)


def test_level_off_records_only_executorchs_own_events(tmp_path: Path) -> None:
    module = Module(rows().buffer, profile_level="off", etdump=True)
    module.forward(np.ones((2, 4), np.float32))
    module.write_etdump(tmp_path / "x.etdp")
    names = [event.name for event in events_of(tmp_path / "x.etdp")]
    assert "DELEGATE_CALL" in names
    assert not [name for name in names if name.startswith("torchtrt.")]


def test_phases_lie_within_the_delegate_call(tmp_path: Path) -> None:
    events = {event.name: event for event in trace("phases", tmp_path / "x.etdp")}
    for call in range(3):
        inside = sum(events[name].perf_data.raw[call] for name in PHASES - {"torchtrt.delegate"})
        assert inside <= events["torchtrt.delegate"].perf_data.raw[call]


def test_delegate_event_says_engine_profile_and_request(tmp_path: Path) -> None:
    module = Module(rows().buffer, profile_level="delegate")
    with OptimizationProfileGuard.auto():
        module.forward(np.ones((64, 4), np.float32))
    module.write_etdump(tmp_path / "x.etdp")
    (event,) = [e for e in events_of(tmp_path / "x.etdp") if e.name == "torchtrt.delegate"]
    metadata = json.loads(event.delegate_debug_metadatas[0])
    assert metadata["engine_id"] == module.last_selections[0].engine_id
    assert {k: metadata[k] for k in ("engine_kind", "profile", "request", "clock")} == {
        "engine_kind": "cpu",
        "profile": 1,
        "request": "auto",
        "clock": "host",
    }


def test_events_are_tied_to_the_graphs_operators(tmp_path: Path) -> None:
    rows().etrecord.save_etrecord(tmp_path / "x.etrecord")
    trace("phases", tmp_path / "x.etdp")
    events = events_of(tmp_path / "x.etdp", tmp_path / "x.etrecord")
    for event in events:
        if event.name.startswith("torchtrt."):
            assert "aten.linear.default" in event.op_types
            assert event.delegate_backend_name == "TensorRTBackend"


def test_mixed_program_traces_all_its_delegates(tmp_path: Path) -> None:
    module = Module(mixed().buffer, profile_level="phases")
    module.forward(torch.randn(2, 4), torch.randn(1, 4))
    module.write_etdump(tmp_path / "x.etdp")
    mixed().etrecord.save_etrecord(tmp_path / "x.etrecord")
    events = events_of(tmp_path / "x.etdp", tmp_path / "x.etrecord")
    assert [event.name for event in events].count("torchtrt.delegate") == 2
    backends = [event.delegate_backend_name for event in events if event.name == "DELEGATE_CALL"]
    assert sorted(backends) == ["TensorRTBackend", "TensorRTBackend", "XnnpackBackend"]
    assert any(event.name == "native_call_cumsum.out" for event in events)


def test_layers_neither_hide_nor_change_the_events_of_others(tmp_path: Path) -> None:
    def own_and_foreign(level: str) -> tuple[list[tuple[str, int]], set[str]]:
        """ExecuTorch's own events, and those of the XNNPACK delegate."""
        module = Module(mixed().buffer, profile_level=level, etdump=True)  # type: ignore[arg-type]
        for _ in range(3):
            module.forward(torch.randn(2, 4), torch.randn(1, 4))
        module.write_etdump(tmp_path / "x.etdp")
        events = events_of(tmp_path / "x.etdp")
        xnnpack = {e._instruction_id for e in events if e.is_delegated_op} - {
            e._instruction_id for e in events if e.name.startswith("torchtrt.")
        }
        own = [(e.name, len(e.perf_data.raw)) for e in events if not e.is_delegated_op]
        return own, {e.name for e in events if e.is_delegated_op and e._instruction_id in xnnpack}

    assert own_and_foreign("layers") == own_and_foreign("off")
    assert own_and_foreign("off")[1], "XNNPACK traces whenever there is a tracer"


def test_events_are_closed_when_a_call_fails(tmp_path: Path) -> None:
    module = Module(rows().buffer, profile_level="phases")
    for size in (2, 20, 2):
        try:
            module.forward(np.ones((size, 4), np.float32))
        except ValueError:
            assert size == 20
    module.write_etdump(tmp_path / "x.etdp")
    events = events_of(tmp_path / "x.etdp")
    delegates = [event for event in events if event.name == "torchtrt.delegate"]
    assert sum(len(event.perf_data.raw) for event in delegates) == 3


def test_results_are_the_same_at_every_level() -> None:
    x = np.random.default_rng(0).standard_normal((5, 4)).astype(np.float32)
    outputs = [Module(rows().buffer, profile_level=level).forward(x)[0] for level in ("off", "phases", "layers")]
    for output in outputs[1:]:
        np.testing.assert_array_equal(output, outputs[0])


def test_second_dump_without_a_call_is_refused(tmp_path: Path) -> None:
    module = Module(rows().buffer, profile_level="phases")
    with pytest.raises(ValueError, match="no events since the last ETDump"):
        module.write_etdump(tmp_path / "x.etdp")
    for _ in range(2):
        module.forward(np.ones((2, 4), np.float32))
        module.write_etdump(tmp_path / "x.etdp")
        with pytest.raises(ValueError, match="no events since the last ETDump"):
            module.write_etdump(tmp_path / "y.etdp")
    assert not (tmp_path / "y.etdp").exists()


def test_dump_of_a_module_that_records_nothing_is_refused(tmp_path: Path) -> None:
    module = Module(rows().buffer)
    module.forward(np.ones((2, 4), np.float32))
    with pytest.raises(ValueError, match="records no events"):
        module.write_etdump(tmp_path / "x.etdp")


def test_dump_into_a_missing_folder_leaves_nothing(tmp_path: Path) -> None:
    module = Module(rows().buffer, profile_level="phases")
    module.forward(np.ones((2, 4), np.float32))
    with pytest.raises(FileNotFoundError):
        module.write_etdump(tmp_path / "no" / "x.etdp")
    assert list(tmp_path.iterdir()) == []
