"""What is installed to build this, and what the wheel says that it is made of."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from email.message import Message
from importlib.metadata import version
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from cyclonedx.model.bom import Bom
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from wheels import REPOSITORY

REQUIREMENTS = REPOSITORY / "requirements"
LOCKS = ("pip", "torch", "dev")


def pinned(*names: str) -> dict[str, list[str]]:
    """Hashes by name and version, of these files."""
    text = "".join((REQUIREMENTS / f"{name}.txt").read_text() for name in names)
    blocks = re.findall(r"^([\w.-]+==[^\s;]+).*\n((?:    .*\n)*)", text, re.MULTILINE)
    return {pin: re.findall(r"--hash=sha256:([0-9a-f]{64})", hashes) for pin, hashes in blocks}


def test_everything_pinned_has_hashes() -> None:
    found = pinned(*LOCKS)
    assert len(found) > 150
    assert [pin for pin, hashes in found.items() if not hashes] == []


@pytest.mark.parametrize("source", ["dev.in", "pip.in"])
def test_lock_has_what_is_asked_for(source: str) -> None:
    versions = dict(pin.split("==") for pin in pinned(*LOCKS))
    for line in (REQUIREMENTS / source).read_text().splitlines():
        if line and not line.startswith("#"):
            asked = Requirement(line)
            assert asked.specifier.contains(versions[canonicalize_name(asked.name)]), line


def test_torch_without_cuda_is_of_the_version_with_it() -> None:
    (build,) = re.findall(r"^torch==(\S+)\+cpu ", (REQUIREMENTS / "torch-cpu.txt").read_text(), re.MULTILINE)
    assert f"torch=={build}" in pinned("torch")


def test_make_installs_with_hashes_alone() -> None:
    command = ["make", "-n", "VENV=nowhere", "nowhere/.dependencies"]
    told = subprocess.run(command, capture_output=True, text=True, check=True, cwd=REPOSITORY).stdout
    installs = re.findall(r"pip install [^|&\n]*", told)
    assert len(installs) == 4
    assert [line for line in installs if "--require-hashes --no-deps --no-build-isolation" not in line] == []


def test_make_refuses_a_package_of_npm_with_other_bytes(tmp_path: Path) -> None:
    (tmp_path / "bin").symlink_to(Path(sys.executable).parent)
    (tmp_path / ".dependencies").touch()
    served = "import pathlib; pathlib.Path('mermaid-11.17.2.tgz').write_bytes(b'x')"
    target = tmp_path / "share" / "mermaid" / "mermaid.min.js"
    command = ["make", f"VENV={tmp_path}", f"NPM={served}", str(target)]
    made = subprocess.run(command, capture_output=True, text=True, check=False, cwd=REPOSITORY)
    assert made.returncode != 0
    assert "mermaid-11.17.2.tgz: FAILED" in made.stdout + made.stderr
    assert not target.exists()


@pytest.fixture(scope="module")
def bill(wheel: Path) -> dict[str, Any]:
    with ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if "/sboms/" in name)
        return json.loads(archive.read(name))


def test_bill_of_materials_is_cyclonedx(bill: dict[str, Any]) -> None:
    read = Bom.from_json(bill)  # type: ignore[attr-defined]
    assert {item.name for item in read.components} == {item["name"] for item in bill["components"]}
    assert read.validate()


def test_bill_of_materials_has_what_is_compiled_in_and_what_is_required(
    bill: dict[str, Any], metadata: Message
) -> None:
    versions = {item["name"]: item.get("version") for item in bill["components"]}
    lines = [Requirement(line) for line in metadata.get_all("Requires-Dist", [])]
    compiled = {"boost": version("cmeel-boost"), "nanobind": version("nanobind"), "executorch": version("executorch")}
    assert {name: versions[name] for name in compiled} == compiled
    assert re.fullmatch(r"\d+\.\d+\.\d+", versions["robin-map"])
    assert versions.keys() == {*compiled, "robin-map", *(line.name for line in lines if line.marker is None)}
    assert bill["metadata"]["component"]["version"] == metadata["Version"]


def test_wheel_has_one_time_for_all_its_files(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        assert len({info.date_time for info in archive.infolist()}) == 1
