"""Writes native/verify/operators.inc: what kinds of values ExecuTorch's kernels take, by PyTorch's schemas.

The names are those of the kernels in the executorch wheel's libraries; native/verify/operators.h has what the letters
mean. ExecuTorch's own operators have no schema there: what they take is in native/verify/operators.cpp.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import executorch
import torch
from executorch.exir.passes import dim_order_ops_registry  # noqa: F401  registers operators

TARGET = Path(__file__).resolve().parents[1] / "native/verify/operators.inc"
LIBRARIES = Path(executorch.__path__[0]) / "lib"
KINDS = {
    "Tensor": "T", "Scalar": "S", "number": "S", "int": "I", "SymInt": "I", "ScalarType": "I", "Layout": "I",
    "MemoryFormat": "I", "Device": "I", "float": "F", "bool": "B", "str": "Y", "List[int]": "L", "List[SymInt]": "L",
    "List[float]": "D", "List[bool]": "G", "List[Tensor]": "X", "List[Optional[Tensor]]": "V",
}  # fmt: skip


def kernels() -> list[str]:
    """Names of kernels that have a schema in PyTorch."""
    names: set[str] = set()
    for library in ("libexecutorch.so", "libexecutorch_kernels_optimized.so"):
        found = re.findall(rb"\0((?:aten|dim_order_ops)::\w+(?:\.\w+)?)(?=\0)", (LIBRARIES / library).read_bytes())
        names |= {name.decode() for name in found}
    return sorted(names)


def letter(argument: torch.Argument) -> str:
    """The kind of an argument."""
    text = str(argument.type)
    is_optional = text.startswith("Optional[")
    kind = KINDS[text.removeprefix("Optional[").removesuffix("]") if is_optional else text]
    if argument.is_write:
        kind = {"T": "O", "X": "W"}[kind]
    return kind.lower() if is_optional else kind


def letters(name: str) -> str:
    """Of an operator's arguments; empty for one that gives a number."""
    namespace, _, operator = name.partition("::")
    packet, _, overload = operator.partition(".")
    schema = getattr(getattr(getattr(torch.ops, namespace), packet), overload or "default")._schema
    found = "".join(map(letter, schema.arguments))
    return found if "O" in found or "W" in found else ""


def table() -> str:
    return "".join(f'{{"{name}", "{found}"}},\n' for name in kernels() if (found := letters(name)))


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        sys.exit(TARGET.read_text() != table())
    TARGET.write_text(table())
