"""`save`: packages of AOTInductor with engines inside."""

# torch's compilers carry few types.
# pyright: reportPrivateUsage=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import os
import struct
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import torch
import torch._inductor

from executorch_tensorrt.aoti.compiling import CompiledModule
from executorch_tensorrt.aoti.graph import engines_of, with_engines
from executorch_tensorrt.aoti.loading import FOLDER
from executorch_tensorrt.aoti.operator import HEADER_SIZE, digest_of, outside

LARGE_ENGINE = 16 * 2**20
"""Engines of this many bytes and more lie beside the compiled code, not in it: they are mapped, and never copied."""

_ALIGNMENT = 64
_LOCAL_HEADER_SIZE = 30
_NEEDS_64_BITS = 2**30  # well below where the zip module wants it
_SIZES_OF_64_BITS = 20
_EXTRA_FIELD = struct.Struct("<HH")
_PADDING_ID = 0x4246  # what PyTorch writes for its own padding


def save(
    compiled: CompiledModule, path: str | os.PathLike[str], *, inductor_configs: Mapping[str, Any] | None = None
) -> None:
    """Write a package (`.pt2`): AOTInductor's code for what is outside engines, and the engines.

    A process that has imported `executorch_tensorrt` runs it with `torch._inductor.aoti_load_package`; one with an
    engine of `LARGE_ENGINE` bytes or more needs `load`.

    Args:
        compiled: what `compile` returned.
        path: the file; its name ends in ".pt2". A reader sees the old file or the new one, never a part.
        inductor_configs: options of `torch._inductor.aoti_compile_and_package`.

    Raises:
        ValueError: the file's name ends otherwise.
    """
    if Path(path).suffix != ".pt2":
        raise ValueError(f"a package has another name: got '{os.fspath(path)}', allowed '*.pt2'; rename it.")
    engines = engines_of(compiled.program)
    large = {name: tensor for name, tensor in engines.items() if tensor.numel() - HEADER_SIZE >= LARGE_ENGINE}
    program = compiled.program
    if large:
        program = with_engines(program, {name: outside(tensor) for name, tensor in large.items()})
    target = Path(path)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".") as folder:
        package = Path(folder) / target.name  # which is also the name of what it holds
        torch._inductor.aoti_compile_and_package(
            program,
            package_path=str(package),
            inductor_configs=None if inductor_configs is None else dict(inductor_configs),
        )
        _append(package, {digest_of(tensor): tensor for tensor in large.values()})
        package.replace(target)


def _append(package: Path, engines: Mapping[str, torch.Tensor]) -> None:
    """Store engines uncompressed, where PyTorch's loader passes them over, aligned to be used where they lie."""
    if not engines:
        return
    with zipfile.ZipFile(package, "a", zipfile.ZIP_STORED) as file:
        root = file.namelist()[0].partition("/")[0]
        for digest, engine in engines.items():
            info = zipfile.ZipInfo(f"{root}/{FOLDER}/{digest}")
            blob = memoryview(cast(Any, engine.numpy()))[HEADER_SIZE:]
            info.file_size = len(blob)
            begin = cast(int, cast(Any, file).start_dir) + _LOCAL_HEADER_SIZE + len(info.filename) + _EXTRA_FIELD.size
            begin += _SIZES_OF_64_BITS if len(blob) >= _NEEDS_64_BITS else 0
            padding = -begin % _ALIGNMENT
            info.extra = _EXTRA_FIELD.pack(_PADDING_ID, padding) + bytes(padding)
            with file.open(info, "w", force_zip64=len(blob) >= _NEEDS_64_BITS) as target:
                target.write(blob)
