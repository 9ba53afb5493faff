"""Who may know whom, in Python and in C++. The picture is in CONTRIBUTING.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from importlinter.cli import lint_imports

REPOSITORY = Path(__file__).resolve().parents[1]
NATIVE = REPOSITORY / "native"

# Per folder of native/: the folders whose headers it may include, its own apart; "public" are include/'s.
FOLDERS = {
    "core": set[str](),
    "include": set[str](),
    "device": {"core", "public"},
    "verify": {"core"},
    "engines": {"core", "verify"},
    "process": {"core", "public"},
    "delegate": {"core", "device", "engines", "process", "public"},
    "program": {"core", "device", "engines", "process", "delegate", "verify", "public"},
    "aoti": {"core", "engines", "process", "delegate", "public"},
    "runner": {"core", "process", "program", "public"},
    "bindings": {"core", "device", "engines", "process", "delegate", "program", "aoti", "public"},
}
# Per library: the folders that may include its headers.
LIBRARIES = {
    "executorch": {"include", "engines", "process", "delegate", "program", "runner", "bindings", "aoti"},
    "nanobind": {"bindings"},
    "boost": {"core", "runner"},
    "torch": set[str](),  # found at run time
    "cuda_runtime_api.h": set[str](),
    "NvInfer.h": set[str](),
    "Python.h": set[str](),
}


def forbidden_includes(folder: str, text: str) -> list[str]:
    """What a file of a folder includes and must not."""
    own = {"executorch_tensorrt" if folder == "include" else folder}
    allowed = own | {"executorch_tensorrt" if name == "public" else name for name in FOLDERS[folder]}
    ours = re.findall(r'^#include "([^"]+)"', text, re.MULTILINE)
    others = re.findall(r"^#include <([^>]+)>", text, re.MULTILINE)
    return [name for name in ours if name.split("/")[0] not in allowed] + [
        name for name in others if folder not in LIBRARIES.get(name.split("/")[0], {folder})
    ]


def test_python_modules_keep_to_their_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)
    monkeypatch.setattr("logging.config.dictConfig", lambda _: None)  # it would turn off the loggers that there are
    assert lint_imports(no_cache=True) == 0, "`lint-imports` says more"


def test_every_native_folder_has_its_place() -> None:
    assert {path.name for path in NATIVE.iterdir() if path.is_dir()} == {*FOLDERS, "cmake"}


@pytest.mark.parametrize("folder", FOLDERS)
def test_native_files_include_what_their_folder_may(folder: str) -> None:
    files = [path for path in (NATIVE / folder).rglob("*") if path.suffix in (".h", ".cpp")]
    assert files
    found = {path.name: wrong for path in files if (wrong := forbidden_includes(folder, path.read_text()))}
    assert not found


@pytest.mark.parametrize(
    ("folder", "line"),
    [
        ("core", "#include <executorch/runtime/core/error.h>"),
        ("core", '#include "process/log.h"'),
        ("device", '#include "process/log.h"'),
        ("process", '#include "delegate/engine_handle.h"'),
        ("delegate", '#include "program/checked_module.h"'),
        ("delegate", "#include <nanobind/nanobind.h>"),
        ("include", '#include "core/shape.h"'),
        ("device", "#include <cuda_runtime_api.h>"),
    ],
)
def test_forbidden_includes_are_found(folder: str, line: str) -> None:
    assert len(forbidden_includes(folder, f"#pragma once\n\n{line}\n#include <vector>\n")) == 1
