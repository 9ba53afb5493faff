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
from edited_programs import engine_blob, with_metadata, with_range, with_record

from executorch_tensorrt import _native

if TYPE_CHECKING:
    from conftest import Etrt

ALIAS = {"output": "k_out", "input": "k", "kind": "user"}
TORCH_TENSORRT = Path(__file__).parents[1] / "data" / "torch_tensorrt_2.14_two_profiles.pte"


def report_of(etrt: Etrt, program: Path, code: int = 0) -> dict[str, Any]:
    return json.loads(etrt("inspect", program, "--json", code=code).stdout)


def saved(folder: Path, buffer: bytes) -> Path:
    program = folder / "program.pte"
    program.write_bytes(buffer)
    return program


def flipped(buffer: bytes) -> bytes:
    """`buffer` with another bit in the first engine."""
    at, blob = engine_blob(buffer)
    place = at + len(blob) - 100
    return buffer[:place] + bytes([buffer[place] ^ 1]) + buffer[place + 1 :]


def test_inspect_shows_methods_engines_ranges_and_signature(rows: Path, etrt: Etrt) -> None:
    output = etrt("inspect", rows).stdout
    for text in (
        "Method forward",
        "up to (64, 4)",
        "TensorRTBackend",
        "Engine of delegate 0: cpu, format ETC1, id ",
        "runs in this environment",
        "Signature: input_1[0]=1:2:8|4:16:64",
        "(1:2:8, 4)",
        "(4:16:64, 4)",
        "Debug handles: 3 for 3 of 3 operators; layers name 3 in each profile",
        "2 optimization profiles: all engines agree",
        "Findings: none",
    ):
        assert text in output


def test_inspect_gives_json(rows: Path, etrt: Etrt) -> None:
    report = report_of(etrt, rows)
    assert report["program"] == str(rows)
    assert report["file_bytes"] == rows.stat().st_size
    (method,) = report["methods"]
    tensor = {"kind": "tensor", "dtype": "float32", "shape": [64, 4], "dynamic": True}
    assert method["inputs"] == [{"name": "input_1", **tensor}]
    assert method["outputs"] == [tensor]
    assert set(method["planned_devices"]) == {"cpu"}
    (delegate,) = method["delegates"]
    engine = delegate["engine"]
    data = rows.read_bytes()
    _, blob = engine_blob(data)
    assert delegate["bytes"] == len(blob)
    assert engine["id"] == hashlib.sha256(blob[-engine["bytes"] :]).hexdigest()[:12]
    assert (engine["format"], engine["kind"], engine["intact"], engine["runs_here"]) == ("ETC1", "cpu", True, True)
    assert engine["record_version"] == 1
    assert engine["sources"] == {"operators": 3, "operators_with_source": 3, "handles": 3, "linked_by_layers": [3, 3]}
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


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_native, "device_memory_available", lambda: False)


@pytest.mark.parametrize("available", [True, False])
def test_inspect_says_that_an_engine_runs_where_its_runtime_and_a_gpu_are(
    available: bool, etrt: Etrt, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_native, "engine_runtimes", lambda: ["cpu", "tensorrt_rtx"])
    monkeypatch.setattr(_native, "device_memory_available", lambda: available)
    (method,) = report_of(etrt, TORCH_TENSORRT)["methods"]
    assert method["delegates"][0]["engine"]["runs_here"] is available


@pytest.mark.usefixtures("no_gpu")
def test_inspect_says_what_a_program_of_torch_tensorrt_lacks(etrt: Etrt) -> None:
    output = etrt("inspect", TORCH_TENSORRT).stdout
    assert "id not recorded" in output
    assert "does not run in this environment" in output
    assert "Profile ranges are known to the engine alone" in output
    assert "Debug handles: not recorded" in output
    assert "on cuda:0" in output
    (method,) = report_of(etrt, TORCH_TENSORRT)["methods"]
    engine = method["delegates"][0]["engine"]
    assert engine["format"] == "TR01"
    assert [engine[key] for key in ("kind", "id", "intact", "signature", "profiles")] == [None] * 5
    assert [item["name"] for item in engine["inputs"] + engine["outputs"]] == ["x", "output0"]


def test_inspect_shows_what_each_profile_needs_of_the_planned_memory(programs: Path, etrt: Etrt) -> None:
    (method,) = report_of(etrt, programs / "mixed.pte")["methods"]
    needs = {item["tensor"]: (item["planned_bytes"], item["profiles"]) for item in method["memory"]}
    small = {"shape": [4, 4], "bytes": 64, "fits": True}
    large = {"shape": [32, 4], "bytes": 512, "fits": True}
    assert needs["input 0"] == needs["output 0"] == needs["delegate 0 aten_linear_default"] == (512, [small, large])
    assert needs["input 1"] == (16, [{"shape": [1, 4], "bytes": 16, "fits": True}] * 2)
    assert len(needs) == 7
    planned = sum(size for size, _ in needs.values())
    assert [item["planned_bytes"] for item in method["profiles"]] == [planned] * 2
    assert [item["bytes"] for item in method["profiles"]] == [4 * 64 + 3 * 16, planned]
    assert method["profiles"][0]["share"] == pytest.approx((4 * 64 + 3 * 16) / planned)
    assert method["profiles_agree"] is True
    output = etrt("inspect", programs / "mixed.pte").stdout
    for text in ("64 B (12 %)", "512 B (100 %)", "between delegates (4)"):
        assert text in output


def test_inspect_knows_the_needs_of_an_input_that_no_engine_reads(tmp_path: Path, etrt: Etrt) -> None:
    program = saved(tmp_path, models.read_by_an_operator().buffer)
    (method,) = report_of(etrt, program)["methods"]
    needs = {item["tensor"]: item["profiles"] for item in method["memory"]}
    assert [need["shape"] for need in needs["input 0"]] == [[8, 4], [64, 4]]


def test_inspect_shows_no_needs_where_only_the_engine_knows_them(etrt: Etrt) -> None:
    (method,) = report_of(etrt, TORCH_TENSORRT)["methods"]
    assert method["profiles"] == []
    assert method["profiles_agree"] is None
    assert [(item["arena"], item["planned_bytes"], item["profiles"]) for item in method["memory"]] == [
        (0, 65536, None),
        (0, 65536, None),
        (1, 65536, None),
        (1, 65536, None),
    ]


def test_inspect_marks_what_does_not_fit(tmp_path: Path, etrt: Etrt) -> None:
    program = saved(tmp_path, with_range(models.rows().buffer, 1, "max", 99))
    output = etrt("inspect", program).stdout
    assert "1.6 kB (TOO LARGE)" in output
    assert "Findings: 2" in output
    assert "error: method 'forward' delegate 0 has an input that does not fit the memory planned for it" in output
    (method,) = report_of(etrt, program)["methods"]
    assert [item["profiles"][1]["fits"] for item in method["memory"]] == [False, False]


def test_inspect_says_that_engines_disagree(tmp_path: Path, etrt: Etrt) -> None:
    other = with_record(
        models.shared_tensors().buffer, lambda record: record.update(signature="x[0]=1:2:8|9:16:64"), delegate=1
    )
    program = saved(tmp_path, other)
    assert "2 optimization profiles: engines disagree" in etrt("inspect", program).stdout
    assert report_of(etrt, program)["methods"][0]["profiles_agree"] is False


def test_inspect_covers_operators_without_a_source(tmp_path: Path, etrt: Etrt) -> None:
    def without_most(record: dict[str, Any]) -> None:
        record["operators"] = {"total": 3, "with_source": 1}
        record["sources"] = {"1": {"op": "aten.linear.default"}}
        record["layers"] = [{"0": [1, 9]}, {}]  # 9 has no source

    program = saved(tmp_path, with_record(models.rows().buffer, without_most))
    told = "Debug handles: 1 for 1 of 3 operators; layers name 1 in profile 0, 0 in profile 1"
    assert told in etrt("inspect", program).stdout


def test_check_is_silent_and_succeeds_without_findings(rows: Path, etrt: Etrt) -> None:
    assert etrt("inspect", rows, "--check").stdout == "Findings: none\n"
    assert report_of(etrt, rows)["findings"] == []


@pytest.mark.usefixtures("no_gpu")
def test_check_does_not_fail_for_notes(etrt: Etrt) -> None:
    output = etrt("inspect", TORCH_TENSORRT, "--check").stdout
    assert "note: method 'forward' delegate 0 has an engine whose ranges are known to the engine alone" in output
    assert "note: method 'forward' has memory planned on cuda:0, for which this environment has no allocator" in output
    notes = report_of(etrt, TORCH_TENSORRT)["findings"]
    assert [(note["severity"], note["kind"], note["delegates"]) for note in notes] == [
        ("note", "ranges", [0]),
        ("note", "origin", [0]),
        ("note", "devices", []),
    ]


@pytest.mark.parametrize(
    ("edit", "kind"),
    [
        (flipped, "id"),
        (lambda buffer: with_range(buffer, 1, "max", 99), "memory"),
        (lambda buffer: with_metadata(buffer, lambda metadata: metadata.update(aliased_io=[ALIAS])), "blob"),
    ],
)
def test_check_exits_with_one_for_findings(
    edit: Callable[[bytes], bytes], kind: str, tmp_path: Path, etrt: Etrt
) -> None:
    program = saved(tmp_path, edit(models.rows().buffer))
    assert "error: method 'forward' delegate 0 " in etrt("inspect", program, "--check", code=1).stdout
    report = json.loads(etrt("inspect", program, "--check", "--json", code=1).stdout)
    assert {finding["kind"] for finding in report["findings"]} == {kind}
    assert report["findings"][0]["text"].startswith("method 'forward' delegate 0 has ")


def test_check_exits_with_two_for_what_is_no_program(tmp_path: Path, etrt: Etrt) -> None:
    assert str(tmp_path) in etrt("inspect", tmp_path, "--check", code=2).stderr
    assert "is no ExecuTorch program" in etrt("inspect", saved(tmp_path, b"PK"), "--check", code=2).stderr


def test_inspect_finds_a_flipped_bit_in_an_engine(tmp_path: Path, etrt: Etrt) -> None:
    damaged = saved(tmp_path, flipped(models.rows().buffer))
    told = etrt("inspect", damaged, code=2)
    assert "has an engine with other bytes than its id says" in told.stderr
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
    begin, blob = engine_blob(data)
    program = tmp_path / "damaged.pte"
    program.write_bytes(data[:begin] + damage(blob) + data[begin + len(blob) :])
    shown = etrt("inspect", program, code=2)
    assert f"'{program}' method 'forward' delegate 0 has a blob that can't be read: " in shown.stderr
    assert told in shown.stderr
    assert "Method forward" in shown.stdout
    (delegate,) = report_of(etrt, program, code=2)["methods"][0]["delegates"]
    assert delegate["engine"] is None
    assert told in delegate["problem"]


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
