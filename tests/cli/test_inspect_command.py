"""`etrt inspect`."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import models
import pytest

from executorch_tensorrt.program import read_program

if TYPE_CHECKING:
    from conftest import Etrt

TORCH_TENSORRT = Path(__file__).parents[1] / "data" / "torch_tensorrt_2.14_two_profiles.pte"


def report_of(etrt: Etrt, program: Path, code: int = 0) -> dict[str, Any]:
    return json.loads(etrt("inspect", program, "--json", code=code).stdout)


def blob_of(buffer: bytes) -> tuple[int, bytes]:
    """Where the engine blob of `rows` lies, and the blob."""
    blob = bytes(read_program(buffer).methods[0].delegates[0].blob)
    return buffer.index(blob), blob


def test_inspect_shows_methods_engines_ranges_and_signature(rows: Path, etrt: Etrt) -> None:
    output = etrt("inspect", rows).stdout
    for text in (
        "Method forward",
        "up to (64, 4)",
        "TensorRTBackend",
        "Engine of delegate 0: cpu, id ",
        "runs in this environment",
        "Signature: input_1[0]=1:2:8|4:16:64",
        "(1:2:8, 4)",
        "(4:16:64, 4)",
    ):
        assert text in output


def test_inspect_gives_json(rows: Path, etrt: Etrt) -> None:
    report = report_of(etrt, rows)
    assert report["program"] == str(rows)
    assert report["file_bytes"] == rows.stat().st_size
    (method,) = report["methods"]
    assert method["inputs"] == [{"kind": "tensor", "dtype": "float32", "shape": [64, 4], "dynamic": True}]
    assert set(method["planned_devices"]) == {"cpu"}
    (delegate,) = method["delegates"]
    engine = delegate["engine"]
    data = rows.read_bytes()
    _, blob = blob_of(data)
    assert delegate["bytes"] == len(blob)
    assert engine["id"] == hashlib.sha256(blob[-engine["bytes"] :]).hexdigest()[:12]
    assert (engine["format"], engine["kind"], engine["intact"], engine["runs_here"]) == ("ETC1", "cpu", True, True)
    assert engine["signature"] == "input_1[0]=1:2:8|4:16:64"
    assert [item["shape"] for item in engine["inputs"] + engine["outputs"]] == [[-1, 4], [-1, 4]]
    ranges = [profile["inputs"][0] for profile in engine["profiles"]]
    assert ranges == [
        {"name": "input_1", "min": [1, 4], "opt": [2, 4], "max": [8, 4]},
        {"name": "input_1", "min": [4, 4], "opt": [16, 4], "max": [64, 4]},
    ]


def test_inspect_shows_other_backends_and_operators(programs: Path, etrt: Etrt) -> None:
    (method,) = report_of(etrt, programs / "mixed.pte")["methods"]
    assert method["operators"] == {"aten::cumsum.out": 1}
    engines = {item["backend"]: item["engine"] for item in method["delegates"]}
    assert engines["XnnpackBackend"] is None
    assert engines["TensorRTBackend"] is not None
    assert "XnnpackBackend" in etrt("inspect", programs / "mixed.pte").stdout


def test_inspect_shows_one_profile_for_a_static_engine(programs: Path, etrt: Etrt) -> None:
    (method,) = report_of(etrt, programs / "static_beside_dynamic.pte")["methods"]
    engines = [item["engine"] for item in method["delegates"]]
    assert sorted((len(engine["profiles"]), bool(engine["signature"])) for engine in engines) == [(1, False), (2, True)]
    assert "Signature: static" in etrt("inspect", programs / "static_beside_dynamic.pte").stdout


def test_inspect_says_what_a_program_of_torch_tensorrt_lacks(etrt: Etrt) -> None:
    output = etrt("inspect", TORCH_TENSORRT).stdout
    assert "id not recorded" in output
    assert "does not run in this environment" in output
    assert "profile ranges are known to the engine alone" in output
    assert "on cuda:0" in output
    (method,) = report_of(etrt, TORCH_TENSORRT)["methods"]
    engine = method["delegates"][0]["engine"]
    assert engine["format"] == "TR01"
    assert [engine[key] for key in ("kind", "id", "intact", "signature", "profiles")] == [None] * 5
    assert [item["name"] for item in engine["inputs"] + engine["outputs"]] == ["x", "output0"]


def test_inspect_finds_a_flipped_bit_in_an_engine(rows: Path, tmp_path: Path, etrt: Etrt) -> None:
    data = bytearray(rows.read_bytes())
    begin, blob = blob_of(bytes(data))
    data[begin + len(blob) - 100] ^= 1
    damaged = tmp_path / "flipped.pte"
    damaged.write_bytes(data)
    told = etrt("inspect", damaged, code=2)
    assert "has other bytes than its id says; export it again" in told.stderr
    assert "Bindings" in told.stdout
    assert report_of(etrt, damaged, code=2)["methods"][0]["delegates"][0]["engine"]["intact"] is False


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda blob: b"XXXX" + blob[4:], "engine blob is foreign: got magic 'XXXX', allowed 'TR01', 'TR02', 'ETC1'"),
        (lambda blob: blob[:16] + struct.pack("<Q", 2**63) + blob[24:], "engine"),
        (lambda blob: blob[:32] + b"!" + blob[33:], "engine metadata is damaged"),
    ],
)
def test_inspect_names_the_delegate_with_a_damaged_blob(
    damage: Callable[[bytes], bytes], told: str, rows: Path, tmp_path: Path, etrt: Etrt
) -> None:
    data = rows.read_bytes()
    begin, blob = blob_of(data)
    program = tmp_path / "damaged.pte"
    program.write_bytes(data[:begin] + damage(blob) + data[begin + len(blob) :])
    error = etrt("inspect", program, code=2).stderr
    assert f"'{program}' method 'forward' delegate 0: " in error
    assert told in error


@pytest.mark.parametrize("content", [None, b"", b"PK\x03\x04 no program", models.rows().buffer[:5000]])
@pytest.mark.parametrize("command", ["inspect", "run"])
def test_commands_refuse_missing_foreign_and_truncated_files(
    command: str, content: bytes | None, tmp_path: Path, etrt: Etrt
) -> None:
    program = tmp_path / "bad.pte"
    if content is not None:
        program.write_bytes(content)
    assert str(program) in etrt(command, program, code=2).stderr


def test_inspect_prints_no_control_characters_of_a_file(rows: Path, tmp_path: Path, etrt: Etrt) -> None:
    """A method's name could command the terminal."""
    program = tmp_path / "coloured.pte"
    program.write_bytes(rows.read_bytes().replace(b"forward", b"\x1b[2Jwar"))
    output = etrt("inspect", program).stdout
    assert "\x1b" not in output
    assert "Method \\x1b[2Jwar" in output
