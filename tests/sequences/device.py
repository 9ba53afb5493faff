"""What sequences need of a device. The fake has it, and a real one in tests/gpu."""

from __future__ import annotations

from collections.abc import Sequence as Several
from typing import Any, Protocol

from sequences.oracle import Array
from sequences.steps import Failure


class Memory(Protocol):
    """An array for a call: on the device, or on the host where the device reaches it."""

    argument: Any

    def write(self, values: Array) -> None:
        """At its beginning, at once."""
        ...

    def view(self, shape: tuple[int, ...]) -> Any:
        """Its beginning, as an argument of a call."""
        ...

    def free(self) -> None: ...


class Device(Protocol):
    def memory(self, values: Array, place: str) -> Memory:
        """Of its own, that nobody had; `place` is moved (in device memory), managed or pinned."""
        ...

    def peek(self, address: int, shape: tuple[int, ...], dtype: Any) -> Array:
        """What is in the device's memory now."""
        ...

    def stream(self, number: int) -> int:
        """The handle of stream 1, 2 or 3."""
        ...

    def replace_stream(self, number: int) -> None: ...

    def run(self, number: int) -> None:
        """Until a stream has nothing left to do."""
        ...

    def run_own(self) -> None:
        """The same for the calling thread's own stream."""
        ...

    def busy(self, number: int) -> None: ...

    def begin_capture(self, number: int) -> None: ...

    def end_capture(self, number: int) -> Any:
        """A graph to launch."""
        ...

    def launch(self, graph: Any, number: int) -> None: ...

    def end_graph(self, graph: Any) -> None: ...

    def fail(self, failure: Failure) -> None: ...

    def stop_failing(self) -> list[BaseException | str]:
        """What has failed since `fail`."""
        ...

    def enqueued(self) -> int:
        """How often an engine was asked to work, if that is known, else 0."""
        ...

    def faults(self) -> Several[str]:
        """What is known to be wrong by now, and forgotten then."""
        ...

    def alive(self) -> Any:
        """What is alive on the device, to compare."""
        ...

    def end(self) -> None:
        """Forget what belongs to a sequence."""
        ...
