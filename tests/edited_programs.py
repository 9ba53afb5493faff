"""Finished programs with other metadata in an engine's blob, as an exporter with a mistake would have written it."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from typing import Any

from executorch_tensorrt.program import read_program

Metadata = dict[str, Any]


def engine_blob(buffer: bytes, delegate: int = 0) -> tuple[int, bytes]:
    """Where the blob of a delegate lies in a program, and the blob."""
    blob = bytes(read_program(buffer).methods[0].delegates[delegate].blob)
    return buffer.index(blob), blob


def with_metadata(buffer: bytes, change: Callable[[Metadata], object], delegate: int = 0) -> bytes:
    """The program after `change` was made to a blob's metadata. Nothing moves: what is longer must fit all the same."""
    at, blob = engine_blob(buffer, delegate)
    start, size = struct.unpack_from("<II", blob, 4)
    metadata = json.loads(blob[start : start + size])
    metadata["executorch_tensorrt"]["sources"] = {}  # room
    change(metadata)
    text = json.dumps(metadata, separators=(",", ":")).encode().ljust(size)
    assert len(text) == size
    return buffer[: at + start] + text + buffer[at + start + size :]


def with_record(buffer: bytes, change: Callable[[Metadata], object], delegate: int = 0) -> bytes:
    """As `with_metadata`, for what this project's exporter adds."""
    return with_metadata(buffer, lambda metadata: change(metadata["executorch_tensorrt"]), delegate)


def with_range(buffer: bytes, profile: int, field: str, size: int, delegate: int = 0, binding: int = 0) -> bytes:
    """The program with another size in dim 0 of an engine's input; `field` is "min", "opt" or "max"."""

    def change(record: Metadata) -> None:
        record["profiles"][profile]["inputs"][binding][field][0] = size

    return with_record(buffer, change, delegate)
