"""Calls that wait inside an engine until a test lets them go; see native/gate.h."""

from __future__ import annotations

import ctypes
from pathlib import Path

from edited_programs import with_record


class Gate:
    """The gate in every call of engine kind "gated", which copies its inputs to its outputs."""

    def __init__(self, build_dir: Path) -> None:
        self._library = ctypes.CDLL(str(build_dir / "tests" / "native" / "libetrt_gate.so"))
        self._library.gate_wait_until_inside.restype = ctypes.c_bool
        self._library.gate_begin()

    def end(self) -> None:
        self._library.gate_end()

    def close(self) -> None:
        self._library.gate_close()

    def open(self) -> None:
        self._library.gate_open()

    def wait_until_inside(self, calls: int) -> bool:
        """Whether so many calls came to the gate. Meanwhile this thread does not hold the GIL."""
        return self._library.gate_wait_until_inside(calls)

    @property
    def most_inside(self) -> int:
        """How many calls were inside at once."""
        return self._library.gate_most_inside()


def gated(program: bytes) -> bytes:
    """The program with its engine's kind changed to "gated"."""

    def change(record: dict[str, object]) -> None:
        record["engine_kind"] = "gated"

    return with_record(program, change).replace(b"ETC1", b"TR01", 1)
