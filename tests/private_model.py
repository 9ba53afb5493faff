"""A model whose files, source lines and weights are found again in whatever tells them."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile, is_zipfile

import torch

FOLDER = "of_a_user"
FILE = "private_model.py"
SOURCE = """
import torch

class Gate(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.tensor([1.125, 2.25, 3.375, 4.5]))
    def forward(self, x):
        hidden_name = x * self.scale  # a remark
        return torch.relu(hidden_name)

class Whole(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = Gate()
    def forward(self, x):
        return self.gate(x).cumsum(0)
"""
LINES = (b"hidden_name", b"a remark")
WEIGHTS = torch.tensor([1.125, 2.25, 3.375, 4.5]).numpy().tobytes()


def private_model(folder: Path) -> torch.nn.Module:
    """float32 [3, 4] -> [3, 4], from a file in this folder."""
    path = folder / FILE
    path.write_text(SOURCE)
    names: dict[str, Any] = {}
    exec(compile(SOURCE, str(path), "exec"), names)
    return names["Whole"]().eval()


def everything(path: Path) -> bytes:
    """The bytes of a file, or of all in a folder, and of what is packed in them."""
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())
    return b"".join(part for file in files for part in _unpacked(file.read_bytes()))


def _unpacked(data: bytes) -> Iterator[bytes]:
    yield data
    if is_zipfile(BytesIO(data)):
        with ZipFile(BytesIO(data)) as archive:
            for name in archive.namelist():
                yield from _unpacked(archive.read(name))
