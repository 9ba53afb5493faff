"""The pages of reference leave nothing out: public names, headers, options, environment variables."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

from executorch_tensorrt import Module, TensorRTPartitioner, aoti, export

REPOSITORY = Path(__file__).resolve().parents[2]
REFERENCE = REPOSITORY / "docs" / "reference"
OPTIONS = (REFERENCE / "options.md").read_text()
WORDS = re.compile(r"`([A-Za-z_]\w*)`")


def sources(folder: str, pattern: str) -> str:
    return "\n".join(path.read_text() for path in sorted((REPOSITORY / folder).rglob(pattern)))


def row_heads(text: str) -> set[str]:
    """The names in the first cells of the tables."""
    return {name for line in text.splitlines() if line.startswith("| ") for name in WORDS.findall(line.split("|")[1])}


@pytest.mark.parametrize(
    "module", ["", ".aoti", ".exporter", ".profiling", ".profiling.processors", ".program", ".runtime", ".stripping"]
)
def test_page_of_python_has_every_public_name(module: str) -> None:
    page = (REFERENCE / "python.md").read_text()
    documented = {name.rpartition(".")[2] for name in re.findall(r"^\.\. auto\w+:: ([\w.]+)", page, re.MULTILINE)}
    for whole in re.findall(r"automodule:: ([\w.]+)\n   :members:\n", page):
        documented |= set(import_module(whole).__all__)
    names = set(import_module(f"executorch_tensorrt{module}").__all__) - {"__version__", "BACKEND_ID"}
    assert names - documented == set()


def test_page_of_cpp_has_every_header() -> None:
    headers = {path.name for path in (REPOSITORY / "native" / "include" / "executorch_tensorrt").glob("*.h")}
    documented = set(re.findall(r"cpp-header:: (\S+)", (REFERENCE / "cpp.md").read_text()))
    assert documented == headers - {"api.h"}


def test_page_of_options_has_every_argument() -> None:
    arguments = {
        name
        for call in (export, TensorRTPartitioner, Module, Module.load_method, aoti.compile)
        for name, parameter in inspect.signature(call).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }
    in_python = set(re.findall(r"^\| `\w+` \| `(\w+)` \|", OPTIONS, re.MULTILINE))
    assert arguments - row_heads(OPTIONS) - in_python == set()


def test_page_of_options_has_every_load_option() -> None:
    keys = re.findall(r'inline constexpr char k\w+Key\[\] = "(\w+)"', sources("native", "*.h"))
    assert len(keys) == 5
    assert set(keys) - row_heads(OPTIONS) == set()


def test_page_of_options_has_every_engine_option() -> None:
    options = pytest.importorskip("executorch_tensorrt.engines.tensorrt.options")
    assert {*options.BuildOptions.__dataclass_fields__} - row_heads(OPTIONS) == set()


def test_page_of_options_has_every_environment_variable() -> None:
    read = re.findall(r'getenv\("(\w+)"', sources("native", "*.cpp"))
    read += re.findall(r'(?:environ\.get\(|environ\[|getenv\()"(\w+)"', sources("src", "*.py"))
    assert read
    assert {name for name in read if name not in OPTIONS} == set()
