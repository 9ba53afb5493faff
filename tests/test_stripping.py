"""Stripped files say nothing of the machine and the source code that made them, and work as before."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import models
import numpy as np
import pytest
import torch
from edited_programs import with_metadata
from executorch.devtools import Inspector
from executorch.exir.backend.compile_spec_schema import CompileSpec
from private_model import FILE, FOLDER, LINES, everything, private_model

from executorch_tensorrt import Module, export
from executorch_tensorrt.profiling import Session, capture
from executorch_tensorrt.profiling.renderers import render
from executorch_tensorrt.program import read_program
from executorch_tensorrt.program.blobs import read_engine
from executorch_tensorrt.stripping import strip

# The folder of a user, the file, its source lines, and this checkout's folder.
TOLD = (FOLDER.encode(), FILE.encode(), *LINES, str(Path(__file__).parents[1]).encode())


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with model.pte, model.etrecord and run/, and their stripped copies in shared/."""
    folder = tmp_path_factory.mktemp("made") / FOLDER
    folder.mkdir()
    program = export(private_model(folder), [models.Input((3, 4))], generate_etrecord=True)
    program.save(folder / "model.pte")
    program.save_etrecord(folder / "model.etrecord")
    capture(folder / "model.pte", (np.ones((3, 4), np.float32),), runs=2, output=folder / "run")
    shared = folder.parent / "shared"
    shared.mkdir()
    kinds = [strip(folder / name, shared / name) for name in ("model.pte", "model.etrecord")]
    assert [*kinds, strip(folder / "run", shared / "session.json")] == ["program", "ETRecord", "session"]
    return folder


def told(path: Path) -> list[bytes]:
    data = everything(path)
    return [text for text in TOLD if text in data]


@pytest.mark.parametrize(
    ("name", "before"),
    [("model.pte", TOLD[:2]), ("model.etrecord", TOLD[:4]), ("run/session.json", TOLD[:2])],
)
def test_stripped_file_tells_no_path_and_no_source_line(name: str, before: tuple[bytes, ...], made: Path) -> None:
    assert set(told(made / name)) >= set(before)
    assert told(made.parent / "shared" / Path(name).name) == []


def test_stripped_program_gives_the_same_bits_with_the_same_engines(made: Path) -> None:
    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
    ran = [Module(folder / "model.pte") for folder in (made, made.parent / "shared")]
    (ours,), (theirs,) = (module.forward(x) for module in ran)
    assert ours.tobytes() == theirs.tobytes()
    assert [item.engine_id for item in ran[0].last_selections] == [item.engine_id for item in ran[1].last_selections]
    engines = [
        read_engine(read_program(path).methods[0].delegates[0])
        for path in (made / "model.pte", made.parent / "shared/model.pte")
    ]
    assert engines[0].engine == engines[1].engine
    assert engines[1].is_intact
    assert {source["module"] for source in engines[1].sources.values() if "module" in source} == {"gate"}


def test_stripped_session_is_rendered_and_says_nothing_of_the_machine(made: Path) -> None:
    session = Session.load(made.parent / "shared" / "session.json")
    before = Session.load(made / "run")
    assert session.machine == {}
    assert session.runs == before.runs
    for renderer in ("console", "html", "json", "perfetto"):
        for text in render(session, renderer).values():  # type: ignore[arg-type]
            assert "private_model" not in text
            assert str(before.machine["platform"]) not in text


def test_stripped_etrecord_ties_events_to_operators(made: Path) -> None:
    def tied(record: Path) -> list[tuple[str, list[str]]]:
        inspector = Inspector(str(made / "run" / "trace.etdp"), etrecord=str(record))
        return [(event.name, event.op_types) for block in inspector.event_blocks for event in block.events]

    assert tied(made.parent / "shared" / "model.etrecord") == tied(made / "model.etrecord")
    assert any("aten.relu.default" in operators for _, operators in tied(made.parent / "shared" / "model.etrecord"))


def test_stripping_twice_changes_nothing_more(made: Path, tmp_path: Path) -> None:
    for name in ("model.pte", "model.etrecord", "session.json"):
        shared = made.parent / "shared" / name
        strip(shared, tmp_path / name)
        assert (tmp_path / name).read_bytes() == shared.read_bytes()


def test_stripping_takes_out_texts_of_torch_tensorrt(tmp_path: Path) -> None:
    def change(metadata: dict[str, Any]) -> None:
        metadata["serialized_metadata"] = "/home/of_a_user"

    (tmp_path / "x.pte").write_bytes(with_metadata(models.rows().buffer, change))
    strip(tmp_path / "x.pte", tmp_path / "y.pte")
    assert told(tmp_path / "x.pte") == [b"of_a_user"]
    assert told(tmp_path / "y.pte") == []


def test_stripping_takes_out_the_folder_of_traces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That an older exporter wrote."""
    traced = {"level": "layers", "format": "perfetto", "path_prefix": "/home/of_a_user/traces"}
    specs = [CompileSpec(f"torchtrt_profile_{key}", text.encode()) for key, text in traced.items()]
    monkeypatch.setattr("executorch_tensorrt.exporter.partitioner._profiling_specs", lambda _: specs)
    program = export(torch.nn.ReLU().eval(), [models.Input((2, 2))])
    program.save(tmp_path / "x.pte")
    strip(tmp_path / "x.pte", tmp_path / "y.pte")
    assert told(tmp_path / "x.pte") == [b"of_a_user"]
    assert told(tmp_path / "y.pte") == []
    (y,) = Module(tmp_path / "y.pte", profile_format="etdump").forward(np.full((2, 2), 2, np.float32))
    assert y.sum() == 8


def cut(path: Path) -> bytes:
    return path.read_bytes()[:200]


def zip_of_another_kind(path: Path) -> bytes:
    stream = BytesIO()
    with ZipFile(stream, "w") as archive:
        archive.writestr("readme", "x")
    return stream.getvalue()


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("model.pte", cut, "is damaged or truncated"),
        ("model.etrecord", cut, "is damaged: File is not a zip file; save it again"),
        ("model.etrecord", zip_of_another_kind, "is no ETRecord: got a ZIP file without 'ETRECORD_V0'"),
        ("run/session.json", cut, "is no session, or is cut short"),
        ("run/session.json", lambda path: b"{}", "is no session that this version reads"),
        ("run/trace.etdp", Path.read_bytes, "is nothing to strip: got a file that begins with"),
        ("model.pte", lambda path: b"", "is nothing to strip: got a file that begins with b''"),
    ],
)
def test_stripping_refuses_another_or_a_damaged_file(
    name: str, change: Callable[[Path], bytes], message: str, made: Path, tmp_path: Path
) -> None:
    (tmp_path / "given").write_bytes(change(made / name))
    with pytest.raises(ValueError, match=message):
        strip(tmp_path / "given", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_stripping_refuses_a_damaged_graph_of_an_etrecord(made: Path, tmp_path: Path) -> None:
    with ZipFile(made / "model.etrecord") as archive, ZipFile(tmp_path / "given", "w") as damaged:
        for item in archive.namelist():
            damaged.writestr(item, b'{"graph"' if item == "exported_program" else archive.read(item))
    with pytest.raises(ValueError, match=r"is damaged: Expecting ':' delimiter.*; save it again"):
        strip(tmp_path / "given", tmp_path / "out")


def test_stripping_refuses_to_write_over_its_source(made: Path, tmp_path: Path) -> None:
    path = tmp_path / "x.pte"
    path.write_bytes((made / "model.pte").read_bytes())
    (tmp_path / "link.pte").symlink_to(path)
    for output in (path, tmp_path / "link.pte"):
        with pytest.raises(ValueError, match="the output is the file itself"):
            strip(path, output)
    assert path.read_bytes() == (made / "model.pte").read_bytes()


def test_stripping_names_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nothing to strip at '.*x\.pte'"):
        strip(tmp_path / "x.pte", tmp_path / "y.pte")
    with pytest.raises(FileNotFoundError, match=r"nothing to strip at '.*session\.json'"):
        strip(tmp_path, tmp_path / "y")


def test_stripped_session_keeps_its_version(made: Path) -> None:
    assert json.loads((made.parent / "shared" / "session.json").read_bytes())["version"] == 1
