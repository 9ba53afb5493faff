"""The engine cache: what decides a key, and that an engine in it is whole and built once, whatever happens."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from engines.cache_entries import JOB, PLAN, never

from executorch_tensorrt.engines.tensorrt.cache import Entry, Refused, requested
from executorch_tensorrt.engines.tensorrt.job import BuildJob
from executorch_tensorrt.engines.tensorrt.network import Plan


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "tensorrt_rtx"},
        {"version": "8.6.0"},
        {"gpu": "NVIDIA L4 (compute capability 8.9)"},
        {"options": {"precision": "fp16"}},
        {"profiles": JOB.profiles[:1]},
        {"profiles": [JOB.profiles[0], {"x": [(5, 9, 12), (8, 8, 8)]}]},
        {"dtypes": {"x": "float32", "y": "float16"}},
    ],
)
def test_key_changes_with_every_part_of_a_job(change: dict[str, Any], model: Path) -> None:
    assert replace(JOB, **change).key(model) != JOB.key(model)


@pytest.mark.parametrize("name", ["model.onnx", "model.onnx.data"])
def test_key_changes_with_the_model_and_its_weights(name: str, model: Path) -> None:
    before = JOB.key(model)
    (model / name).write_bytes(b"other")
    assert JOB.key(model) != before


def test_key_is_the_same_for_the_same_job_as_another_machine_reads_it(model: Path) -> None:
    other = BuildJob.from_json(JOB.to_json())
    assert other.key(model) == JOB.key(model)
    assert other.profiles == JOB.profiles


def test_engine_is_built_once_and_then_found(entry: Entry) -> None:
    assert entry.plan() is None
    assert entry.plan_or_build(lambda: PLAN) == PLAN
    assert Entry(entry.folder).plan_or_build(never) == PLAN


@pytest.mark.parametrize("name", ["engine.plan", "engine.json"])
@pytest.mark.parametrize("damage", [lambda data: data[:-1], lambda data: b"x" + data[1:], lambda data: b""])
def test_damaged_engine_is_built_again(name: str, damage: Callable[[bytes], bytes], entry: Entry) -> None:
    entry.plan_or_build(lambda: PLAN)
    path = entry.folder / name
    path.write_bytes(damage(path.read_bytes()))
    assert entry.plan() is None
    assert entry.plan_or_build(lambda: PLAN) == PLAN
    assert entry.plan() == PLAN


def test_engine_without_its_record_is_built_again(entry: Entry) -> None:
    """As a build leaves it that is killed between the two."""
    entry.plan_or_build(lambda: PLAN)
    (entry.folder / "engine.json").unlink()
    assert entry.plan_or_build(lambda: PLAN) == PLAN


def test_killed_build_leaves_a_cache_that_works(entry: Entry) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from executorch_tensorrt.engines.tensorrt.cache import Entry\n"
        "Entry(Path(sys.argv[1])).plan_or_build(lambda: input(print('building', flush=True)))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, entry.folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as building:
        assert building.stdout is not None
        assert building.stdout.readline() == "building\n"
        (entry.folder / ".engine.plan.half").write_bytes(b"a pl")  # what a killed write leaves behind
        building.kill()
    assert entry.plan_or_build(lambda: PLAN) == PLAN
    assert sorted(path.name for path in entry.folder.iterdir()) == ["engine.json", "engine.plan", "lock"]


def test_two_builders_at_once_build_once(entry: Entry) -> None:
    begun, end = threading.Event(), threading.Event()

    def build() -> Plan:
        begun.set()
        assert end.wait(60)
        return PLAN

    found: list[Plan] = []
    told: list[str] = []
    first = threading.Thread(target=lambda: found.append(entry.plan_or_build(build)))
    second = threading.Thread(target=lambda: found.append(Entry(entry.folder).plan_or_build(never, told.append)))
    first.start()
    assert begun.wait(60)
    second.start()
    end.set()
    for thread in (first, second):
        thread.join(60)
    assert found == [PLAN, PLAN]


def test_failed_build_leaves_the_next_one_to_try(entry: Entry) -> None:
    with pytest.raises(AssertionError):
        entry.plan_or_build(never)
    assert entry.plan_or_build(lambda: PLAN) == PLAN


def test_request_is_found_with_its_files(entry: Entry, model: Path) -> None:
    entry.put_request(JOB, model)
    (found,) = requested(entry.folder.parent)
    job = found.request()
    assert job is not None
    assert job.to_json() == JOB.to_json()
    assert job.key(found.folder) == found.key == entry.key


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("model.onnx.data", b"half of it", "its files are damaged: got other content than its name says"),
        ("request.json", b"{", "the build request can't be read"),
        ("request.json", b"[]", "the build request can't be read"),
        ("request.json", b'{"format": 2}', "the build request can't be read: got another format"),
        ("request.json", b'{"format": 1, "kind": "os"}', "the build request can't be read: got engine kind 'os'"),
        ("request.json", b'{"format": 1, "kind": "tensorrt"}', "the build request can't be read"),
    ],
)
def test_damaged_request_is_refused_and_mended_by_the_next_export(
    name: str, content: bytes, message: str, entry: Entry, model: Path
) -> None:
    entry.put_request(JOB, model)
    (entry.folder / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        entry.request()
    entry.put_request(JOB, model)
    assert entry.request() is not None


def test_refusal_is_read_back(entry: Entry, model: Path) -> None:
    entry.put_request(JOB, model)
    assert entry.refused() is None
    refused = Refused("TensorRT 8.6.1 can't read the model", {"node_y": "no such operator"})
    entry.put_refusal(refused)
    assert entry.refused() == refused
