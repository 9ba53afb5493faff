"""Reads ETDump files: what ExecuTorch's event tracer recorded.

A file is a size, then a FlatBuffer with one table per event. In Python, accessors of one table at a time, as `flatc`
generates them, take 25 µs an event, and ExecuTorch's Inspector takes 85 µs. So a field of all events is read at once,
with NumPy, and every position is checked to lie in the file: nothing in it is trusted.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from executorch_tensorrt.profiling.bulk import without_garbage_collection

_T = TypeVar("_T")
_Positions = np.ndarray[Any, np.dtype[np.int64]]
_Array = np.ndarray[Any, np.dtype[Any]]

_IDENTIFIER = b"ED00"

# Places of fields in their tables; FlatBuffers only ever appends.
_ETDUMP_RUNS = 1
_RUN_NAME, _RUN_EVENTS = 0, 3
_EVENT_PROFILE = 0
_NAME, _CHAIN, _INSTRUCTION, _DELEGATE_INT, _DELEGATE_TEXT, _METADATA, _START, _END = range(8)

# What an event and a block take at least. Parts may be shared, so without a limit a small file unfolds into a huge one:
# names are shared by what writes dumps, metadata is not.
_SMALLEST_EVENT = 24
_SMALLEST_BLOCK = 12
_TEXT_PER_BYTE = 16


class TracedEvent(NamedTuple):
    """One span, as ExecuTorch recorded it.

    Attributes:
        name: of an event of ExecuTorch itself, such as "DELEGATE_CALL"; empty for a delegate's own.
        instruction: of the method; -1 where none was running.
        delegate_id: what a delegate calls its event; a number for delegates that count, None for ExecuTorch's events.
        start, end: nanoseconds since an origin that all events of a process share.
        metadata: what the delegate said with it.
    """

    name: str
    instruction: int
    delegate_id: str | int | None
    start: int
    end: int
    metadata: bytes


class Block(NamedTuple):
    """What was recorded under one name, such as "Execute" for each call of a method, and "Default" for loading it.

    Attributes:
        name: of the block.
        events: in the order in which they ended.
    """

    name: str
    events: list[TracedEvent]


def read_etdump(source: str | os.PathLike[str] | bytes) -> list[Block]:
    """Reads an ETDump file, or its bytes. Allocation and debug events are passed over.

    Raises:
        FileNotFoundError: there is no file at that path.
        ValueError: it is no ETDump, or is truncated or damaged.
        OSError: it cannot be read.
    """
    if isinstance(source, bytes):
        return _read("the ETDump", source)
    path = Path(source)
    if not path.is_file():
        raise FileNotFoundError(f"no ETDump at '{path}'")
    if path.stat().st_size == 0:  # cannot be mapped
        return _read(f"'{path}'", b"")
    with path.open("rb") as file:
        return _read(f"'{path}'", mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def is_etdump(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins as an ETDump does.

    Raises:
        OSError: it cannot be read.
    """
    with Path(path).open("rb") as file:
        return file.read(12)[8:] == _IDENTIFIER


class _DamageError(Exception):
    """What a place in the file holds, and what it may hold."""


def _read(name: str, data: bytes | mmap.mmap) -> list[Block]:
    if data[8:12] != _IDENTIFIER:
        raise ValueError(
            f"{name} is no ETDump: got {data[8:12]!r} at byte 8, allowed {_IDENTIFIER!r}; give a file that "
            "Module.write_etdump() or 'etrt profile' wrote."
        )
    size = int.from_bytes(data[:4], "little")
    try:
        if size > len(data) - 4:
            raise _DamageError(f"size: got {len(data)} bytes, allowed {size + 4} as its begin says")
        with without_garbage_collection():
            return _blocks(_Buffer(np.frombuffer(data, np.uint8)[4 : 4 + size]))
    except _DamageError as error:
        raise ValueError(f"{name} is damaged or truncated: {error}; capture it again.") from None


def _blocks(buffer: _Buffer) -> list[Block]:
    root = np.zeros(1, np.int64)
    dump = root + buffer.numbers(root, "<u4")
    runs, _ = buffer.tables(buffer.field(dump, _ETDUMP_RUNS), _SMALLEST_BLOCK)
    names = buffer.texts(buffer.field(runs, _RUN_NAME))
    events, counts = buffer.tables(buffer.field(runs, _RUN_EVENTS), _SMALLEST_EVENT)
    profile = buffer.field(events, _EVENT_PROFILE)
    is_profile = profile > 0
    rows = list(map(TracedEvent._make, _columns(buffer, buffer.follow(profile[is_profile]))))
    # Where each block's rows begin, without the events of other kinds.
    kept = np.concatenate(([0], np.cumsum(is_profile)))
    bounds = kept[np.concatenate(([0], np.cumsum(counts)))].tolist()
    return [Block(name or "", rows[begin:end]) for name, (begin, end) in zip(names, pairwise(bounds), strict=True)]


def _columns(buffer: _Buffer, tables: _Positions) -> zip[tuple[Any, ...]]:
    names = buffer.texts(buffer.field(tables, _NAME))
    # ExecuTorch writes instruction 0 into events of no instruction; their chain tells them apart.
    is_outside = buffer.scalars(tables, _CHAIN, "<i4", 0) < 0
    instructions = np.where(is_outside, -1, buffer.scalars(tables, _INSTRUCTION, "<i4", -1)).tolist()
    texts = buffer.texts(buffer.field(tables, _DELEGATE_TEXT))
    numbers = buffer.scalars(tables, _DELEGATE_INT, "<i4", -1).tolist()
    starts, ends = (buffer.scalars(tables, field, "<u8", 0).tolist() for field in (_START, _END))
    metadata = buffer.raw(buffer.field(tables, _METADATA), bytes, limit=buffer.size)
    number_ids = (number if number >= 0 else None for number in numbers)
    ids = (number if text is None else text for text, number in zip(texts, number_ids, strict=True))
    return zip(
        (name or "" for name in names), instructions, ids, starts, ends, (item or b"" for item in metadata), strict=True
    )


def _decode(raw: bytes) -> str:
    return raw.decode(errors="backslashreplace")


class _Buffer:
    """A FlatBuffer whose tables are read many at a time. A position of 0 stands for a field that is absent."""

    def __init__(self, data: _Array) -> None:
        self._data = data
        self.size = len(data)

    def numbers(self, at: _Positions, kind: str) -> _Array:
        """The number at each position."""
        size = np.dtype(kind).itemsize
        self._require_inside(at, size)
        if len(self._data) < size:
            return np.zeros(0, kind)
        # One element begins at every byte, so that no position is unaligned.
        return np.ndarray((len(self._data) - size + 1,), kind, self._data, 0, (1,))[at]

    def field(self, tables: _Positions, place: int) -> _Positions:
        """Where a field of each table lies."""
        vtables = tables - self.numbers(tables, "<i4")
        slot = 4 + 2 * place
        found = self.numbers(vtables, "<u2") > slot
        offsets = np.zeros(len(tables), np.int64)
        offsets[found] = self.numbers(vtables[found] + slot, "<u2")
        return np.where(offsets > 0, tables + offsets, 0)

    def scalars(self, tables: _Positions, place: int, kind: str, default: int) -> _Array:
        """A field of each table."""
        at = self.field(tables, place)
        values = np.full(len(tables), default, kind)
        values[at > 0] = self.numbers(at[at > 0], kind)
        return values

    def follow(self, at: _Positions) -> _Positions:
        """What each position refers to."""
        return at + self.numbers(at, "<u4")

    def tables(self, at: _Positions, smallest: int) -> tuple[_Positions, _Positions]:
        """The tables of all vectors, one vector after another, and how many each has."""
        begins, counts = self._vectors(at, 4)
        total = int(counts.sum())
        if total > len(self._data) // smallest:
            raise _DamageError(f"tables: got {total}, allowed {len(self._data) // smallest} in a file of this size")
        firsts = np.cumsum(counts) - counts
        slots = np.repeat(begins - 4 * firsts, counts) + 4 * np.arange(total, dtype=np.int64)
        return self.follow(slots), counts

    def texts(self, at: _Positions) -> Sequence[str | None]:
        """The text of each field."""
        return self.raw(at, _decode, limit=_TEXT_PER_BYTE * self.size)

    def raw(self, at: _Positions, convert: Callable[[bytes], _T], limit: int) -> Sequence[_T | None]:
        """The bytes of each field, converted; None where it is absent. Equal ones are converted once.

        `limit`: how many bytes all fields may have together, counting those that they share.
        """
        begins, sizes = self._vectors(at, 1)
        if int(sizes.sum()) > limit:
            raise _DamageError(
                f"texts of all events: got {int(sizes.sum())} bytes, allowed {limit} in a file of this size"
            )
        # Fields may share their bytes, but not more than the file has.
        _, first = np.unique(begins, return_index=True)
        if int(sizes[first].sum()) > len(self._data):
            raise _DamageError(f"texts: got {int(sizes[first].sum())} bytes, allowed {len(self._data)}")
        known: dict[bytes, _T] = {}
        known_at: dict[int, _T] = {}
        values: list[_T | None] = [None] * len(at)
        here = np.flatnonzero(at > 0)
        data = self._data.data
        for index, begin, size in zip(here.tolist(), begins[here].tolist(), sizes[here].tolist(), strict=True):
            if begin not in known_at:
                item = bytes(data[begin : begin + size])
                if item not in known:
                    known[item] = convert(item)
                known_at[begin] = known[item]
            values[index] = known_at[begin]
        return values

    def _vectors(self, at: _Positions, element: int) -> tuple[_Positions, _Positions]:
        """Where the elements of each vector begin, and how many it has; 0 and 0 where it is absent."""
        begins, counts = np.zeros(len(at), np.int64), np.zeros(len(at), np.int64)
        here = at > 0
        vectors = self.follow(at[here])
        counts[here] = self.numbers(vectors, "<u4")
        begins[here] = vectors + 4
        self._require_inside(begins + element * counts, 0)
        return begins, counts

    def _require_inside(self, at: _Positions, size: int) -> None:
        if len(at) and (at.min() < 0 or at.max() > len(self._data) - size):
            wrong = at[(at < 0) | (at > len(self._data) - size)][0]
            raise _DamageError(f"position: got {wrong}, allowed 0 to {len(self._data) - size}")
