"""`.. cpp-header:: NAME`: a public header's comments and declarations, as the reference of C++.

It reads what clang-format makes of our own headers, and no C++ beyond that: what it takes out is parsed again by
Sphinx, which complains where that is no declaration.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

HEADERS = Path(__file__).resolve().parents[2] / "native" / "include" / "executorch_tensorrt"
ATTRIBUTES = re.compile(r"\[\[\w+\]\] |ETRT_API ")
TYPE = re.compile(r"(class|struct) (\w+(?: : public \w+)?) \{$")


@dataclass
class Entry:
    depth: int
    kind: str
    signatures: list[str]
    comment: list[str]

    def lines(self) -> Iterator[str]:
        """As reStructuredText."""
        before = f"{'   ' * self.depth}.. cpp:{self.kind}:: "
        for signature in self.signatures:
            yield before + signature
            before = " " * len(before)
        yield from ["", *("   " * (self.depth + 1) + line for line in _text(self.comment)), ""]


def entries(header: str) -> list[Entry]:
    """What a header declares, each with the comment above or behind it; functions under one comment are one entry."""
    found: list[Entry] = []
    comment: list[str] = []
    declaration = ""
    depth = 0
    is_hidden = follows = False
    for line in map(str.strip, header.splitlines()):
        if line.startswith("//"):
            comment.append(line[2:].removeprefix(" "))
        elif line in ("public:", "protected:", "private:"):
            is_hidden = line != "public:"
        elif line == "};":
            depth, is_hidden = depth - 1, False
        elif not line or line.startswith(("#", "namespace", "}")):
            comment, follows = [], False
        else:
            code, _, behind = line.partition("  // ")
            declaration = f"{declaration} {ATTRIBUTES.sub('', code)}".strip()
            if not declaration.endswith((";", "{")):
                continue
            is_type = TYPE.match(declaration)
            kind, signature = is_type.groups() if is_type else (_kind(declaration), declaration.removesuffix(";"))
            if follows and not comment and kind == found[-1].kind == "function":
                found[-1].signatures.append(signature)
            elif kind and not is_hidden:
                found.append(Entry(depth, kind, [signature], [behind] if behind else comment))
                follows = True
            depth += is_type is not None
            comment, declaration = [], ""
    return found


def _kind(declaration: str) -> str:
    if declaration.startswith(("class ", "struct ", "friend ", "~")) or declaration.endswith("= delete;"):
        return ""
    return "function" if "(" in declaration else "member"


def _text(comment: list[str]) -> Iterator[str]:
    """Indented lines of a comment are code."""
    is_code = False
    for line in comment:
        if line and line.startswith("  ") != is_code:
            is_code = not is_code
            yield from ["", ".. code-block:: cpp", ""] if is_code else [""]
        yield line


class CppHeader(SphinxDirective):
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        path = HEADERS / self.arguments[0]
        self.env.note_dependency(str(path))
        first, _, rest = path.read_text().partition("\n")
        about = first.removeprefix("// ").partition(": ")[2] or first.removeprefix("// ")
        lines = [
            f"``#include <executorch_tensorrt/{path.name}>``: {about}",
            "",
            *(line for entry in entries(rest) for line in entry.lines()),
        ]
        lines = [".. cpp:namespace:: executorch_tensorrt", "", *lines]
        node = nodes.Element()
        self.state.nested_parse(StringList(lines, str(path)), self.content_offset, node)
        return node.children


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("cpp-header", CppHeader)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
