"""An engine cache in which others write, on purpose or to do harm."""

from __future__ import annotations

import fcntl
import json
import os
import stat
import threading
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from engines.cache_entries import JOB, PLAN, never

from executorch_tensorrt.engines.tensorrt import build_requests, network
from executorch_tensorrt.engines.tensorrt.build_requests import Outcome
from executorch_tensorrt.engines.tensorrt.cache import Entry, Refused, entry_for, requested
from executorch_tensorrt.engines.tensorrt.entry_folder import SHARED, WAIT, require_own_cache
from executorch_tensorrt.engines.tensorrt.job import BuildJob

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="makes files of another user, as root alone can")
STRANGER = 54321


@pytest.fixture
def built(entry: Entry, model: Path) -> Entry:
    """An entry with all files that there are."""
    entry.put_request(JOB, model)
    entry.plan_or_build(lambda: PLAN)
    entry.put_refusal(Refused("no", {"node_y": "no"}))
    return entry


READERS: dict[str, Callable[[Entry], object]] = {
    "engine.plan": Entry.plan,
    "engine.json": Entry.plan,
    "refusal.json": Entry.refused,
    "request.json": Entry.request,
    "model.onnx": Entry.request,
    "model.onnx.data": Entry.request,
}


def build_all(cache: Path) -> list[Outcome]:
    return list(build_requests.build_requests(cache, lambda text: None))


@pytest.mark.parametrize("name", READERS)
def test_link_in_place_of_a_file_is_not_followed(name: str, built: Entry, tmp_path: Path) -> None:
    (built.folder / name).rename(tmp_path / "elsewhere")
    (built.folder / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match=f"{name}' is a link, which an engine cache has none of; remove it"):
        READERS[name](built)


@pytest.mark.parametrize("name", READERS)
def test_pipe_in_place_of_a_file_is_not_waited_for(name: str, built: Entry) -> None:
    (built.folder / name).unlink()
    os.mkfifo(built.folder / name)
    with pytest.raises(ValueError, match=f"{name}' is no regular file, which an engine cache has; remove it"):
        READERS[name](built)


def test_link_in_place_of_an_entry_is_not_followed(built: Entry, tmp_path: Path) -> None:
    built.folder.rename(tmp_path / "elsewhere")
    built.folder.symlink_to(tmp_path / "elsewhere")
    for read in READERS.values():
        with pytest.raises(ValueError, match="is a link, which an engine cache has none of"):
            read(built)
    with pytest.raises(ValueError, match="is a link"):
        built.put_refusal(Refused("no", {}))


def test_writing_replaces_a_link_and_a_pipe(built: Entry, model: Path, tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("theirs")
    for name in ("request.json", "model.onnx", "refusal.json"):
        (built.folder / name).unlink()
    (built.folder / "request.json").symlink_to(tmp_path / "victim")
    (built.folder / "model.onnx").symlink_to(tmp_path / "absent")
    os.mkfifo(built.folder / "refusal.json")
    built.put_request(JOB, model)
    built.put_refusal(Refused("no", {}))
    assert built.request() is not None
    assert built.refused() == Refused("no", {})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "model", "victim"]
    assert (tmp_path / "victim").read_text() == "theirs"


def test_lock_that_is_a_link_makes_no_file_elsewhere(entry: Entry, tmp_path: Path) -> None:
    entry.folder.mkdir(parents=True)
    (entry.folder / "lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match="lock' is a link, which an engine cache has none of; remove it"):
        entry.plan_or_build(never)
    assert not (tmp_path / "elsewhere").exists()


def test_lock_that_is_a_pipe_is_not_waited_for(entry: Entry) -> None:
    entry.folder.mkdir(parents=True)
    os.mkfifo(entry.folder / "lock")
    with pytest.raises(ValueError, match="lock' is no regular file"):
        entry.plan_or_build(never)


def test_held_lock_is_told_and_the_wait_ends(entry: Entry, monkeypatch: pytest.MonkeyPatch) -> None:
    entry.folder.mkdir(parents=True)
    monkeypatch.setenv(WAIT, "0.01")
    told: list[str] = []
    with (entry.folder / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(RuntimeError, match=rf"another build holds the engine: got no end of it in 0.01 s.*{WAIT}="):
            entry.plan_or_build(never, told.append)
    assert told == [f"waiting for another build of engine {entry.key[:12]}"]
    assert entry.plan_or_build(lambda: PLAN, told.append) == PLAN
    assert len(told) == 1


def test_wait_for_a_build_is_a_warning_of_an_export(entry: Entry, monkeypatch: pytest.MonkeyPatch) -> None:
    entry.folder.mkdir(parents=True)
    monkeypatch.setenv(WAIT, "0.01")
    with (entry.folder / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.warns(UserWarning, match="waiting for another build of engine"), pytest.raises(RuntimeError):
            entry.plan_or_build(never)


@pytest.mark.parametrize("options", [{"timing_cache_path": "/etc/passwd"}, {"tensorrt_version": "8.6"}, {"later": 1}])
def test_request_takes_only_options_that_an_export_writes(
    options: dict[str, object],
    entry: Entry,
    model: Path,
) -> None:
    """Its author has computed the key: options that name files would be read and written by who builds."""
    job = replace(JOB, options={**JOB.options, **options})
    evil = entry_for(entry.folder.parent, job, model)
    evil.put_request(job, model)
    name = next(iter(options))
    with pytest.raises(ValueError, match=f"can't be read: got '{name}', which no build request has; export again"):
        evil.request()
    (outcome,) = build_all(entry.folder.parent)
    assert (outcome.status, outcome.key) == ("failed", evil.key)
    assert name in outcome.error


def test_engine_is_built_from_what_was_checked(
    entry: Entry,
    model: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What others put in place of the model after its check does not reach TensorRT, nor does a folder of theirs."""
    entry.put_request(JOB, model)
    seen: list[tuple[bytes, bytes, int]] = []

    def build_plan(library: object, path: Path, *rest: object) -> network.Plan:
        (entry.folder / "model.onnx.data").write_bytes(b"a secret")
        read = path.read_bytes(), (path.parent / "model.onnx.data").read_bytes()
        seen.append((*read, stat.S_IMODE(path.parent.stat().st_mode)))
        return PLAN

    monkeypatch.setattr(build_requests, "build_plan", build_plan)
    monkeypatch.setattr(build_requests, "find_target", lambda *_, **__: None)
    monkeypatch.setattr(build_requests, "read_options", lambda *_: None)
    assert [outcome.status for outcome in build_all(entry.folder.parent)] == ["built"]
    assert seen == [(b"graph", b"weights", 0o700)]


def test_model_that_changes_after_its_check_is_refused(entry: Entry, model: Path, tmp_path: Path) -> None:
    entry.put_request(JOB, model)
    job = entry.request()
    assert job is not None
    (entry.folder / "model.onnx").write_bytes(b"other")
    (tmp_path / "copy").mkdir()
    with pytest.raises(ValueError, match="its files are damaged"):
        entry.copy_model(job, tmp_path / "copy")


def test_engine_of_another_entry_is_not_taken(built: Entry, model: Path) -> None:
    other = entry_for(built.folder.parent, replace(JOB, version="8.6.0"), model)
    built.folder.rename(other.folder)
    assert other.plan() is None


@pytest.mark.parametrize("name", [".", *READERS])
def test_what_everyone_may_write_is_refused_unless_the_cache_is_shared(
    name: str, built: Entry, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = built.folder / name
    path.chmod(path.stat().st_mode | stat.S_IWOTH)
    read = READERS.get(name, Entry.plan)
    with pytest.raises(ValueError, match=rf"engine of others .* lets everyone write at '.*', .* set {SHARED}=1 if you"):
        read(built)
    monkeypatch.setenv(SHARED, "1")
    assert read(built) is not None


@as_root
@pytest.mark.parametrize("name", READERS)
def test_what_a_stranger_owns_is_refused_unless_the_cache_is_shared(
    name: str, built: Entry, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.chown(built.folder / name, STRANGER, STRANGER)
    with pytest.raises(ValueError, match=f"an engine of others .* got one of user {STRANGER} at '.*{name}'"):
        READERS[name](built)
    monkeypatch.setenv(SHARED, "1")
    assert READERS[name](built) is not None


@as_root
def test_cache_that_a_group_writes_needs_to_be_said_to_be_shared(built: Entry, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a team makes it: `chgrp team DIR; chmod g+ws DIR`."""
    cache = built.folder.parent
    os.chown(cache, 0, STRANGER)
    cache.chmod(0o2775)
    with pytest.raises(ValueError, match=rf"got mode 0775, which lets group {STRANGER} write at"):
        require_own_cache(cache)
    monkeypatch.setenv(SHARED, "1")
    require_own_cache(cache)
    other = entry_for(cache, replace(JOB, version="8.6.0"), built.folder)
    other.plan_or_build(lambda: PLAN)
    assert other.plan() == PLAN


@as_root
def test_private_group_may_write(built: Entry) -> None:
    """As on systems whose users have a group each and umask 002."""
    for path in (built.folder.parent, built.folder, built.folder / "engine.plan"):
        path.chmod(path.stat().st_mode | stat.S_IWGRP)
    require_own_cache(built.folder.parent)
    assert built.plan() == PLAN


def test_read_only_cache_gives_its_engines(built: Entry) -> None:
    for path in (*built.folder.iterdir(), built.folder, built.folder.parent):
        path.chmod(path.stat().st_mode & 0o555)
    assert built.plan_or_build(never) == PLAN
    assert [found.key for found in requested(built.folder.parent)] == [built.key]
    built.folder.parent.chmod(0o755)
    built.folder.chmod(0o755)


@pytest.mark.parametrize(
    ("mode", "folder", "file"), [(0o755, 0o755, 0o644), (0o775, 0o775, 0o664), (0o700, 0o700, 0o600)]
)
def test_entry_lets_nobody_write_whom_the_cache_does_not(
    mode: int,
    folder: int,
    file: int,
    entry: Entry,
    umask: Callable[[int], int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(SHARED, "1")
    umask(0)
    entry.folder.parent.mkdir()
    entry.folder.parent.chmod(mode)
    entry.plan_or_build(lambda: PLAN)
    assert stat.S_IMODE(entry.folder.stat().st_mode) == folder
    assert stat.S_IMODE((entry.folder / "engine.plan").stat().st_mode) == file


def test_cache_that_is_made_is_the_callers_alone(entry: Entry, umask: Callable[[int], int]) -> None:
    umask(0)
    entry.plan_or_build(lambda: PLAN)
    assert stat.S_IMODE(entry.folder.parent.stat().st_mode) == 0o755
    assert entry.plan() == PLAN


def test_text_of_an_entry_has_a_limit(built: Entry) -> None:
    os.truncate(built.folder / "request.json", 1 << 30)
    with pytest.raises(ValueError, match="is too large: got 1073741824 bytes, allowed 67108864; remove it"):
        built.request()


def test_refusal_that_is_none_is_passed_over(built: Entry) -> None:
    (built.folder / "refusal.json").write_text(json.dumps({"message": 1, "reasons": []}))
    assert built.refused() is None


def test_request_survives_what_it_says_of_itself() -> None:
    written = json.loads(JOB.to_json())
    assert asdict(BuildJob.from_json(json.dumps(written))) == asdict(replace(JOB, options=dict(JOB.options)))


def test_waiting_build_takes_what_the_other_made(entry: Entry) -> None:
    told, found = threading.Event(), list[network.Plan]()
    entry.folder.mkdir(parents=True)
    waiting = threading.Thread(target=lambda: found.append(entry.plan_or_build(never, lambda text: told.set())))
    with (entry.folder / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        waiting.start()
        assert told.wait(60)
        Entry(entry.folder)._keep(PLAN)  # pyright: ignore[reportPrivateUsage] (as the other process does)
    waiting.join(60)
    assert found == [PLAN]
