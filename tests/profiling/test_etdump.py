"""Reading ETDump files, whole and damaged."""

from __future__ import annotations

import random
import time
import tracemalloc
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import models
import numpy as np
import pytest
from profiling.etdump_factory import Span, delegate_span, etdump_of, etdump_that_unfolds

from executorch_tensorrt import Module
from executorch_tensorrt.profiling.etdump import Block, TracedEvent, read_etdump


@pytest.fixture(scope="module")
def mixed_dump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three calls of `mixed` at level layers: our delegates, XNNPACK's and a kernel."""
    path = tmp_path_factory.mktemp("etdump") / "mixed.etdp"
    module = Module(models.mixed().buffer, profile_level="layers")
    for rows in (2, 3, 2):
        module.forward(np.ones((rows, 4), np.float32), np.ones((1, 4), np.float32))
    module.write_etdump(path)
    return path


def test_read_gives_what_was_recorded() -> None:
    spans = [
        delegate_span("torchtrt.delegate", 1_000, 5_000, 3, b'{"profile":1}'),
        Span("", 1_500, 1_600, 4, delegate=7),
        Span("DELEGATE_CALL", 900, 5_100, 3),
        Span("Method::execute", 800, 6_000, 0, chain=-1),
    ]
    blocks = read_etdump(etdump_of([("Default", []), ("Execute", spans), ("Execute", spans[-1:])]))
    whole = TracedEvent("Method::execute", -1, None, 800, 6_000, b"")
    assert blocks == [
        Block("Default", []),
        Block(
            "Execute",
            [
                TracedEvent("", 3, "torchtrt.delegate", 1_000, 5_000, b'{"profile":1}'),
                TracedEvent("", 4, 7, 1_500, 1_600, b""),
                TracedEvent("DELEGATE_CALL", 3, None, 900, 5_100, b""),
                whole,
            ],
        ),
        Block("Execute", [whole]),
    ]


def test_read_takes_a_path_or_bytes(mixed_dump: Path) -> None:
    assert read_etdump(mixed_dump) == read_etdump(mixed_dump.read_bytes()) == read_etdump(str(mixed_dump))


def test_read_agrees_with_the_inspector(mixed_dump: Path) -> None:
    from executorch.devtools import Inspector

    inspected: dict[str, list[float]] = defaultdict(list)
    for block in Inspector(str(mixed_dump)).event_blocks:
        for event in block.events:
            if event.perf_data is not None:
                inspected[event.name] += event.perf_data.raw
    read: dict[str, list[float]] = defaultdict(list)
    for block in read_etdump(mixed_dump):
        for event in block.events:
            read[event.name or str(event.delegate_id)].append((event.end - event.start) / 1e6)
    assert len(read) > 15
    assert read.keys() == inspected.keys()
    for name, milliseconds in read.items():
        assert sorted(milliseconds) == pytest.approx(sorted(inspected[name]), abs=2e-6), name


def test_read_keeps_odd_names() -> None:
    long, odd = "n" * 10_000, 'a"<b>\x00\n\u2603'
    spans = [delegate_span(long, 0, 1), delegate_span(odd, 0, 1), Span(b"\xff\xfe", 0, 1)]
    (block,) = read_etdump(etdump_of([("Execute", spans)]))
    assert [event.delegate_id for event in block.events[:2]] == [long, odd]
    assert block.events[2].name == "\\xff\\xfe"


def test_read_takes_times_of_64_bits() -> None:
    (block,) = read_etdump(etdump_of([("Execute", [Span("a", 2**64 - 2, 2**64 - 1)])]))
    assert (block.events[0].start, block.events[0].end) == (2**64 - 2, 2**64 - 1)


def test_read_takes_a_dump_without_events() -> None:
    assert read_etdump(etdump_of([])) == []


def test_read_is_fast() -> None:
    spans = [delegate_span(f"layer {k}", k, k + 1, k % 50, b'{"clock":"host"}') for k in range(500)]
    data = etdump_of([("Execute", spans)] * 40)
    begin = time.perf_counter()
    blocks = read_etdump(data)
    elapsed = time.perf_counter() - begin
    assert sum(len(block.events) for block in blocks) == 20_000
    assert elapsed < 0.5  # 200,000 events may take 5 s


def test_read_refuses_a_file_that_unfolds() -> None:
    data = etdump_that_unfolds(200_000)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="damaged or truncated: tables: got 200000, allowed 33"):
            read_etdump(data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 20 * len(data)


def test_read_names_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no ETDump at '.*gone.etdp'"):
        read_etdump(tmp_path / "gone.etdp")


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "is no ETDump: got b'' at byte 8"),
        (b"\x00" * 11, "is no ETDump"),
        (b"PK\x03\x04" + b"\x00" * 200, "is no ETDump"),
        (b"\xff\xff\xff\xff\x0c\x00\x00\x00ED00", "size: got 12 bytes, allowed 4294967299"),
        (b"\x08\x00\x00\x00\xff\xff\xff\xffED00", "position: got 4294967295, allowed 0 to 4"),
    ],
)
def test_read_refuses_other_files(data: bytes, told: str, tmp_path: Path) -> None:
    path = tmp_path / "other.etdp"
    path.write_bytes(data)
    for source in (path, data):
        with pytest.raises(ValueError, match=told):
            read_etdump(source)


def test_read_refuses_truncated_files(mixed_dump: Path) -> None:
    data = mixed_dump.read_bytes()
    for size in range(0, len(data), 97):
        with pytest.raises(ValueError, match="ETDump"):
            read_etdump(data[:size])


def _flip(data: bytearray, noise: random.Random) -> None:
    for _ in range(noise.randint(1, 8)):
        data[noise.randrange(len(data))] = noise.randrange(256)


def _redirect(data: bytearray, noise: random.Random) -> None:
    for _ in range(noise.randint(1, 4)):
        at = noise.randrange(len(data) - 4)
        value = noise.choice((0, 2**32 - 1, 2**31 - 1, 2**31, noise.randrange(len(data))))
        data[at : at + 4] = value.to_bytes(4, "little")


def _cut(data: bytearray, noise: random.Random) -> None:
    del data[noise.randrange(12, len(data)) :]
    data[:4] = (len(data) - 4).to_bytes(4, "little")


@pytest.mark.parametrize("damage", [_flip, _redirect, _cut])
def test_read_survives_damage(damage: Callable[[bytearray, random.Random], None], mixed_dump: Path) -> None:
    """A damaged file is read, or is refused with a ValueError; nothing else may happen."""
    whole = mixed_dump.read_bytes()
    noise = random.Random(1)
    refused = 0
    for _ in range(500):
        data = bytearray(whole)
        damage(data, noise)
        try:
            read_etdump(bytes(data))
        except ValueError as error:
            assert "ETDump" in str(error)
            refused += 1
    assert refused > 50
