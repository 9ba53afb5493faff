"""The engines of a program: what their blobs say, without running them and without torch."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

from executorch_tensorrt import _native
from executorch_tensorrt.program.reader import BACKEND_ID, Delegate, Method, read_program
from executorch_tensorrt.records import parse

Span = tuple[int, int]
"""The smallest and the largest size of a dim."""


@dataclass(frozen=True)
class EngineBlob:
    """What a delegate of this backend carries, ours or Torch-TensorRT's.

    Attributes:
        index: of the delegate in its method.
        header: what the native library reads of the blob.
        engine: the engine's bytes; a view of the file.
    """

    index: int
    header: _native.Blob
    engine: memoryview

    @property
    def inputs(self) -> Sequence[_native.Binding]:
        """In the order of the delegate's arguments."""
        return self.header.metadata.inputs

    @property
    def outputs(self) -> Sequence[_native.Binding]:
        """In the order of the delegate's arguments, after the inputs."""
        return self.header.metadata.outputs

    @property
    def record(self) -> _native.ExportRecord | None:
        """What this project's exporter added."""
        return self.header.metadata.record

    @property
    def signature(self) -> str:
        """The canonical signature of the method's optimization profiles; empty for a static or an unknown one."""
        return self.record.signature if self.record else ""

    @cached_property
    def profiles(self) -> list[list[list[tuple[int, int, int]]]] | None:
        """Per profile, input and dim: min, opt, max. None where the engine alone knows them."""
        table = self.record.profiles if self.record else None
        return table.profiles if table else None

    @cached_property
    def written(self) -> Mapping[str, Any]:
        """The metadata as JSON values. Beyond what the native library reads, nothing has been checked."""
        return parse(self.header.json, parse_float=_number)

    @property
    def written_record(self) -> Mapping[str, Any]:
        """The JSON values of what this project's exporter added; empty without."""
        return self.written.get("executorch_tensorrt", {})

    @cached_property
    def shapes(self) -> Mapping[str, Sequence[int]]:
        """Shapes of bindings by name, -1 where dynamic; without those that the exporter did not write.

        Torch-TensorRT leaves shapes and element types empty.
        """
        found: dict[str, Sequence[int]] = {}
        for item in self.written["io_bindings"]:
            shape = _list(item.get("shape"))
            if (shape or item.get("dtype")) and all(type(dim) is int for dim in shape):
                found[item["name"]] = shape
        return found

    @cached_property
    def sources(self) -> Mapping[str, Mapping[str, str]]:
        """`op`, `module` and `location` of the model's operators by debug handle, as far as they were recorded."""
        written = _object(self.written_record.get("sources"))
        return {
            handle: {key: text for key, text in _object(source).items() if isinstance(text, str)}
            for handle, source in written.items()
        }

    @cached_property
    def layer_handles(self) -> list[dict[str, list[int]]]:
        """Per optimization profile: debug handles by what the engine calls a layer."""
        return [
            {
                layer: [handle for handle in _list(handles) if type(handle) is int]
                for layer, handles in _object(it).items()
            }
            for it in _list(self.written_record.get("layers"))
        ]

    @property
    def operator_counts(self) -> tuple[int, int] | None:
        """How many operators went into the engine, and of how many the source is known; None where not recorded."""
        counts = _object(self.written_record.get("operators"))
        total, with_source = counts.get("total"), counts.get("with_source")
        return (total, with_source) if type(total) is int and type(with_source) is int else None

    @property
    def is_static(self) -> bool | None:
        """Whether no input's shape varies; None where the engine alone knows."""
        table = self.record.profiles if self.record else None
        if table:
            return table.is_static
        shapes = [self.shapes.get(item.name) for item in self.inputs]
        return None if None in shapes else all(dim >= 0 for shape in shapes if shape for dim in shape)

    @property
    def engine_id(self) -> str:
        """What the exporter called the engine: the begin of its SHA-256; empty where it recorded none."""
        return self.record.engine_id if self.record else ""

    @cached_property
    def sha256(self) -> str:
        """Of the engine's bytes, in hexadecimal."""
        return hashlib.sha256(self.engine).hexdigest()

    @property
    def is_intact(self) -> bool | None:
        """Whether the engine has the bytes that its id says; None where no id was recorded."""
        return self.sha256.startswith(self.engine_id) if self.engine_id else None


def _number(text: str) -> float:
    """The native library takes 1.0 where an integer is due."""
    value = float(text)
    return int(value) if value.is_integer() else value


def _object(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def _list(value: object) -> Sequence[Any]:
    return cast("Sequence[Any]", value) if isinstance(value, list) else ()


def read_engine(delegate: Delegate) -> EngineBlob:
    """An engine of a delegate of this backend.

    Raises:
        ValueError: its blob is damaged.
    """
    header = _native.parse_blob(delegate.blob)
    return EngineBlob(
        delegate.index, header, delegate.blob[header.engine_offset : header.engine_offset + header.engine_size]
    )


@dataclass(frozen=True)
class DamagedBlob:
    """A blob that can't be read.

    Attributes:
        index: of the delegate in its method.
        problem: what is wrong.
    """

    index: int
    problem: str


def blobs_of(method: Method) -> list[EngineBlob | DamagedBlob]:
    """The engines of a method, in order of their delegates."""
    found: list[EngineBlob | DamagedBlob] = []
    for delegate in method.delegates:
        if delegate.backend_id == BACKEND_ID:
            try:
                found.append(read_engine(delegate))
            except ValueError as error:
                found.append(DamagedBlob(delegate.index, str(error)))
    return found


def verify_engines(path: str | os.PathLike[str]) -> None:
    """Reads a `.pte` file and compares every engine's bytes with the id that its exporter gave it.

    Loading does so for small engines of kind cpu alone.

    Raises:
        FileNotFoundError: there is no file at that path.
        IsADirectoryError: there is a folder.
        ValueError: as for `read_program`, or an engine has other bytes than its id says, or its blob is damaged.
        OSError: it cannot be read.
    """
    for method in read_program(path).methods:
        for blob in blobs_of(method):
            if isinstance(blob, DamagedBlob):
                raise ValueError(f"'{path}' method '{method.name}' delegate {blob.index}: {blob.problem}")
            if blob.is_intact is False:
                raise ValueError(
                    f"'{path}' is damaged: engine {blob.engine_id} has other bytes than its id says; export or copy it "
                    "again."
                )
