"""A parser of engine blobs that knows docs/reference/wire-format.md and nothing of this project's code."""

from __future__ import annotations

import hashlib
import json
import struct
from dataclasses import dataclass
from functools import reduce
from typing import Any

Shape = list[int]

_OPERATORS = {
    "add": lambda a, b: a + b,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "min": min,
    "max": max,
}


@dataclass(frozen=True)
class Blob:
    """What the page says of a blob's bytes.

    Attributes:
        magic: the first four bytes.
        metadata: the JSON object.
        engine: the engine's bytes.
    """

    magic: str
    metadata: dict[str, Any]
    engine: bytes

    @property
    def ours(self) -> dict[str, Any]:
        return self.metadata["executorch_tensorrt"]

    def bindings(self, is_input: bool) -> list[dict[str, Any]]:
        return [item for item in self.metadata["io_bindings"] if item["is_input"] is is_input]

    @property
    def arguments(self) -> tuple[list[int | None], list[int | None]]:
        """Which argument each input and each output is."""
        given = self.ours.get("arguments")
        if given:
            return given["inputs"], given["outputs"]
        inputs, outputs = len(self.bindings(True)), len(self.bindings(False))
        return [*range(inputs)], [*range(inputs, inputs + outputs)]

    def accepts(self, profile: int, shapes: list[Shape]) -> bool:
        """Whether the ranges of a profile contain the shapes of the inputs."""
        ranges = self.ours["profiles"][profile]["inputs"]
        return all(
            len(shape) == len(span["min"])
            and all(low <= size <= high for low, size, high in zip(span["min"], shape, span["max"], strict=True))
            for shape, span in zip(shapes, ranges, strict=True)
        )

    def output_shapes(self, shapes: list[Shape]) -> list[Shape] | None:
        """What the inputs' shapes make of the outputs'; None where the inputs contradict each other."""
        symbols: list[int] = []
        for symbol in self.ours["symbols"]:
            size = shapes[symbol["input"]][symbol["dim"]] - symbol["offset"]
            if size % symbol["scale"]:
                return None
            symbols.append(size // symbol["scale"])
        inputs, outputs = (
            [[_evaluate(dim, symbols) for dim in shape] for shape in self.ours["shapes"][side]]
            for side in ("inputs", "outputs")
        )
        return outputs if inputs == shapes else None


def _evaluate(dim: Any, symbols: list[int]) -> int:
    if isinstance(dim, int):
        return dim
    if isinstance(dim, str):
        return symbols[int(dim.removeprefix("s"))]
    operator, *operands = dim
    return reduce(_OPERATORS[operator], (_evaluate(operand, symbols) for operand in operands))


def parse(data: bytes) -> Blob:
    """Reads a blob, and checks what the page promises of every one."""
    magic, metadata_offset, metadata_size, engine_offset, engine_size, version = struct.unpack_from("<4sIIIQ8s", data)
    assert magic in (b"TR01", b"TR02", b"ETC1")
    assert metadata_offset == 32
    assert metadata_size <= 16 << 20
    assert engine_offset % 16 == 0
    assert version == b"\x01" + bytes(7)
    end = metadata_offset + metadata_size
    assert data[end:engine_offset] == bytes(engine_offset - end)
    assert len(data) == engine_offset + engine_size
    metadata = json.loads(data[metadata_offset:end].decode("utf-8"))
    assert bool(metadata["aliased_io"]) == (magic == b"TR02") or magic == b"ETC1"
    blob = Blob(magic.decode(), metadata, data[engine_offset:])
    if "executorch_tensorrt" in metadata:
        assert list(metadata)[-1] == "executorch_tensorrt"
        assert blob.ours["version"] == 1
        assert blob.ours["engine_id"] == hashlib.sha256(blob.engine).hexdigest()[:12]
    return blob
