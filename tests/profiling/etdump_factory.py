"""ETDump files made up for tests, with what no program here records: device clocks, foreign delegates, odd names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import flatbuffers


@dataclass(frozen=True)
class Span:
    """One event, times in nanoseconds. `delegate` makes it a delegate's own: a name, or a number."""

    name: str | bytes
    start: int
    end: int
    instruction: int = 0
    chain: int = 0
    delegate: str | bytes | int | None = None
    metadata: bytes = b""


def delegate_span(name: str, start: int, end: int, instruction: int = 0, metadata: bytes = b"") -> Span:
    return Span("", start, end, instruction, delegate=name, metadata=metadata)


def etdump_of(blocks: Sequence[tuple[str, Sequence[Span]]]) -> bytes:
    """A file with these blocks."""
    builder = flatbuffers.Builder(1024)
    runs = []
    for name, spans in blocks:
        events = [_event(builder, span) for span in spans]
        vector = _vector(builder, events)
        text = builder.CreateString(name)
        runs.append(
            _table(
                builder,
                4,
                {0: (builder.PrependUOffsetTRelativeSlot, text), 3: (builder.PrependUOffsetTRelativeSlot, vector)},
            )
        )
    return _finish(builder, _vector(builder, runs))


def etdump_that_unfolds(events: int) -> bytes:
    """One event that a vector names `events` times: a file of 4 bytes an event."""
    builder = flatbuffers.Builder(1024)
    event = _event(builder, Span("x" * 1000, 0, 1))
    vector = _vector(builder, [event] * events)
    run = _table(builder, 4, {3: (builder.PrependUOffsetTRelativeSlot, vector)})
    return _finish(builder, _vector(builder, [run]))


def etdump_with_one_metadata(events: int, metadata: bytes) -> bytes:
    """A call whose delegate's events all refer to the same bytes."""
    builder = flatbuffers.Builder(1024)
    text, shared = builder.CreateString("torchtrt.delegate"), builder.CreateByteVector(metadata)
    reference = builder.PrependUOffsetTRelativeSlot
    made: list[int] = []
    for _ in range(events):
        profile = _table(
            builder,
            8,
            {
                2: (_slot(builder.PrependInt32Slot, -1), 0),
                4: (reference, text),
                5: (reference, shared),
                6: (_slot(builder.PrependUint64Slot, 0), 10),
                7: (_slot(builder.PrependUint64Slot, 0), 20),
            },
        )
        made.append(_table(builder, 3, {0: (reference, profile)}))
    name, vector = builder.CreateString("Execute"), _vector(builder, made)
    return _finish(builder, _vector(builder, [_table(builder, 4, {0: (reference, name), 3: (reference, vector)})]))


def _finish(builder: flatbuffers.Builder, runs: int) -> bytes:
    root = _table(builder, 2, {1: (builder.PrependUOffsetTRelativeSlot, runs)})
    builder.FinishSizePrefixed(root, file_identifier=b"ED00")
    return bytes(builder.Output())


def _event(builder: flatbuffers.Builder, span: Span) -> int:
    name = builder.CreateString(span.name) if span.name else 0
    text = builder.CreateString(span.delegate) if isinstance(span.delegate, (str, bytes)) else 0
    number = span.delegate if isinstance(span.delegate, int) else -1
    metadata = builder.CreateByteVector(span.metadata) if span.metadata else 0
    reference = builder.PrependUOffsetTRelativeSlot
    profile = _table(
        builder,
        8,
        {
            0: (reference, name),
            1: (_slot(builder.PrependInt32Slot, 0), span.chain),
            2: (_slot(builder.PrependInt32Slot, -1), span.instruction),
            3: (_slot(builder.PrependInt32Slot, -1), number),
            4: (reference, text),
            5: (reference, metadata),
            6: (_slot(builder.PrependUint64Slot, 0), span.start),
            7: (_slot(builder.PrependUint64Slot, 0), span.end),
        },
    )
    return _table(builder, 3, {0: (reference, profile)})


def _slot(add: Callable[[int, int, int], None], default: int) -> Callable[[int, int, int], None]:
    return lambda slot, value, _: add(slot, value, default)


def _table(
    builder: flatbuffers.Builder, fields: int, values: dict[int, tuple[Callable[[int, int, int], None], int]]
) -> int:
    builder.StartObject(fields)
    for slot, (add, value) in values.items():
        add(slot, value, 0)
    return builder.EndObject()


def _vector(builder: flatbuffers.Builder, items: Sequence[int]) -> int:
    builder.StartVector(4, len(items), 4)
    for item in reversed(items):
        builder.PrependUOffsetTRelative(item)
    return builder.EndVector()
