"""Writes tests/packaging/public_api.txt: all that users can name, so that a review sees every change of it.

A test compares the two. Python is as it is imported, C++ as the public headers have it, without comments. What nanobind
makes is in src/executorch_tensorrt/_native.pyi, which has a test of its own.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from python_api import describe_modules

from executorch_tensorrt.cli import app

REPOSITORY = Path(__file__).resolve().parents[1]
NATIVE = REPOSITORY / "native"
RECORD = REPOSITORY / "tests" / "packaging" / "public_api.txt"

_MODULES = (
    "executorch_tensorrt",
    "executorch_tensorrt.aoti",
    "executorch_tensorrt.exporter",
    "executorch_tensorrt.profiling",
    "executorch_tensorrt.profiling.processors",
    "executorch_tensorrt.profiling.renderers",
    "executorch_tensorrt.program",
    "executorch_tensorrt.runtime",
    "executorch_tensorrt.stripping",
)
# What each kind of setting looks like where it is read: the pattern's group is its name.
_SETTINGS = {
    "load option": r'constexpr char k\w+Key\[\] = "(\w+)"',
    "environment variable": r'getenv\("(\w+)"\)',
    "CMake option": r"^(?:option|set)\((ETRT_\w+)",
}


def generate() -> str:
    sections = {
        "Python": describe_modules(_MODULES),
        "C++": _headers(),
        "etrt": _commands(),
        "etrt_runner": _runner(),
        "Settings": _settings(),
    }
    return "".join(f"# {title}\n\n{chr(10).join(lines)}\n\n" for title, lines in sections.items()).rstrip() + "\n"


def _headers() -> Iterator[str]:
    for header in sorted((NATIVE / "include").rglob("*.h")):
        yield f"<{header.relative_to(NATIVE / 'include')}>"
        for line in re.sub(r"\s*//.*", "", header.read_text()).splitlines():
            if line.strip() and not line.startswith(("#include", "#pragma")):
                yield f"    {line}"


def _commands() -> Iterator[str]:
    context = click.Context(app, info_name="etrt")
    yield from _command(app, "etrt")
    for name in app.list_commands(context):
        command = app.get_command(context, name)
        assert command is not None
        yield from _command(command, f"etrt {name}")


def _command(command: click.Command, path: str) -> Iterator[str]:
    yield path
    for parameter in command.params:
        told: dict[str, Any] = parameter.to_info_dict()
        kind = told["type"].get("choices") or told["type"]["name"]
        words = [word for word in ("required", "multiple", "is_flag") if told.get(word)]
        text = [" ".join([*told["opts"], *told["secondary_opts"]]), f"{kind}", *words]
        if told["default"] is not None and not told.get("is_flag"):
            text.append(f"default {told['default']!r}")
        yield f"    {', '.join(text)}"


def _runner() -> list[str]:
    command = [Path(sys.executable).with_name("etrt_runner"), "--help"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def _settings() -> Iterator[str]:
    sources = [REPOSITORY / "CMakeLists.txt", *sorted(NATIVE.rglob("*.h")), *sorted(NATIVE.rglob("*.cpp"))]
    text = "\n".join(source.read_text() for source in sources)
    for kind, pattern in _SETTINGS.items():
        for name in sorted(set(re.findall(pattern, text, re.MULTILINE))):
            yield f"{kind} {name}"


if __name__ == "__main__":
    RECORD.write_text(generate())
    print(f"wrote {RECORD.relative_to(REPOSITORY)}")
    sys.exit(0)
