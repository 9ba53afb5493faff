"""Saving and loading sessions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from profiling.session_factory import called_session, encoder_session, renamed, tiny_session

from executorch_tensorrt.profiling import Session

ODD = "\"'</script>\x00\x1b[31m\u2028\u2603" + "n" * 10_000


def test_session_survives_a_round_trip(tmp_path: Path) -> None:
    session = encoder_session(runs=3)
    session.save(tmp_path / "a.json")
    session.save(tmp_path)
    assert Session.load(tmp_path / "a.json") == Session.load(tmp_path) == session


def test_session_keeps_odd_names(tmp_path: Path) -> None:
    session = renamed(encoder_session(runs=1), ODD)
    session.save(tmp_path)
    assert Session.load(tmp_path) == session


def test_session_finds_delegates_by_method_and_instruction() -> None:
    found = encoder_session(runs=1).delegates_by_place()
    assert found["forward", 2].name == "XnnpackBackend 1"
    assert ("decode", 2) not in found
    assert ("forward", 99) not in found


def test_load_names_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no session at '.*session.json'"):
        Session.load(tmp_path)


@pytest.mark.parametrize(
    "text",
    ["", "{", "\x00\xff", "[" * 100_000, '{"version": 1', "NaN", "[]", "7", '{"version": 2}', '{"version": "x"}'],
)
def test_load_refuses_what_is_no_session(text: str, tmp_path: Path) -> None:
    path = tmp_path / "session.json"
    path.write_text(text)
    with pytest.raises(ValueError, match="is no session.*capture it again"):
        Session.load(path)


def damaged(*path: Any, value: Any) -> dict[str, Any]:
    data = json.loads(json.dumps(tiny_session(), default=vars))
    at = data
    for step in path[:-1]:
        at = at[step]
    if value is None:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return data


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        (("runs",), "x", "runs: got 'x', allowed a list"),
        (("runs",), None, "runs: got 'nothing', allowed a value"),
        (("runs", 0, "events", 2, "kind"), "lair", "runs[0].events[2].kind: got 'lair', allowed 'method'"),
        (
            ("runs", 0, "events", 2, "start_us"),
            "1",
            "runs[0].events[2].start_us: got '1', allowed a number below 1e+18",
        ),
        (("runs", 0, "wall_us"), float("inf"), "runs[0].wall_us: got inf, allowed a number below"),
        (("runs", 0, "wall_us"), 10**400, "runs[0].wall_us: got 1000"),
        (("runs", 0, "events", 0), 7, "runs[0].events[0]: got 7, allowed an object"),
        (("runs", 0, "number"), True, "runs[0].number: got True, allowed int"),
        (("runs", 0, "profiles", "0"), 1.5, "runs[0].profiles.0: got 1.5, allowed int"),
        (("delegates", 0, "engine", "profiles", 0, 0, 0), [1, 2], "profiles[0][0][0]: got [1, 2], allowed a list of 3"),
        (("runs", 0, "profiles"), {"x": 0}, "runs[0].profiles: got 'x', allowed instruction numbers as keys"),
        (("program", "name"), [], "program.name: got [], allowed str or int"),
        (("delegates", 0, "engine", "kind"), None, "delegates[0].engine.kind: got 'nothing', allowed a value"),
    ],
)
def test_load_names_the_damaged_place(path: tuple[Any, ...], value: Any, told: str, tmp_path: Path) -> None:
    (tmp_path / "session.json").write_text(json.dumps(damaged(*path, value=value)))
    with pytest.raises(ValueError, match="is damaged: ") as caught:
        Session.load(tmp_path)
    assert told in str(caught.value)


def test_load_takes_what_a_later_version_adds_and_an_earlier_one_lacked(tmp_path: Path) -> None:
    data = damaged("startup", value=None) | {"new": 1}
    (tmp_path / "session.json").write_text(json.dumps(data))
    assert Session.load(tmp_path) == tiny_session()


def test_save_leaves_the_old_session_if_it_fails(tmp_path: Path) -> None:
    tiny_session().save(tmp_path)
    before = (tmp_path / "session.json").read_bytes()
    with pytest.raises(ValueError, match="JSON"):
        tiny_session(machine={"cores": float("nan")}).save(tmp_path)
    assert (tmp_path / "session.json").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["session.json"]


def test_session_keeps_what_a_program_declares(tmp_path: Path) -> None:
    session = called_session([((1, 8), 10.0, 0)], [((1, 2, 4), (1, 16, 64))])
    session.save(tmp_path)
    assert Session.load(tmp_path) == session
    data = json.loads((tmp_path / "session.json").read_text())
    data["declarations"][0]["inputs"][1]["dims"][1]["scale"] = 0
    (tmp_path / "session.json").write_text(json.dumps(data))
    with pytest.raises(ValueError, match=r"is damaged: declarations\[0\], scale of s: got 0, allowed another number"):
        Session.load(tmp_path)


def test_session_shows_what_it_is_in_a_line() -> None:
    assert repr(tiny_session()) == "Session('tiny.pte', methods=['forward'], runs=1, level='phases')"
