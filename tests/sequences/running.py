"""Runs sequences in processes of their own, and takes a failing one apart until no step can be left out.

What the fakes do not forgive ends the process, and a lock that is never given back holds it: a sequence that does
either has failed like any other.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import os
import select
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from collections.abc import Sequence as Several
from dataclasses import dataclass, replace

from sequences.steps import Sequence, Step

SECONDS = 30
"""What a sequence may take."""
CHUNK = 2000
"""Sequences of a process: the fake's device gives no address twice, and has not all of them."""

Runner = Callable[[Sequence], None]
"""Raises FaultError, or anything."""


class FaultError(AssertionError):
    """Something is not as it must be."""


@dataclass(frozen=True)
class Kind:
    draw: Callable[[int], Sequence]
    runner: Callable[[], Runner]
    """Called once in each process."""


def found_by(run: Runner, sequence: Sequence) -> str:
    """What is wrong, or nothing."""
    gc.disable()  # else what a seed does would depend on those before it
    try:
        run(sequence)
    except FaultError as fault:
        return str(fault)
    except BaseException:
        return traceback.format_exc()
    return ""


def _in_child(work: Callable[[int], None], seconds: float) -> tuple[list[str], str]:
    """Lines that `work` writes to its file descriptor, and how it ended if not well: also when it is silent so long."""
    reading, writing = os.pipe()
    with tempfile.TemporaryFile() as errors:
        child = os.fork()
        if child == 0:
            os.close(reading)
            os.dup2(errors.fileno(), 2)
            faulthandler.enable()
            faulthandler.dump_traceback_later(seconds - 1 if seconds > 2 else seconds, repeat=True)
            code = 1
            try:
                work(writing)
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        os.close(writing)
        chunks: list[bytes] = []
        silent = False
        while True:
            if not select.select([reading], [], [], seconds)[0]:
                silent = True
                os.kill(child, signal.SIGKILL)
                break
            chunk = os.read(reading, 1 << 16)
            if not chunk:
                break
            chunks.append(chunk)
        os.close(reading)
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        said = errors.read().decode(errors="replace")
    ended = ""
    if silent:
        ended = f"no end within {seconds} s\n{said[-6000:]}"
    elif code:
        ended = f"the process ended with {code}: {said.strip()[-3000:]}"
    return b"".join(chunks).decode().splitlines(), ended


def attempt(kind: Kind, sequence: Sequence, seconds: float = SECONDS) -> str:
    """What is wrong with a sequence that runs in a process of its own, or nothing."""

    def work(to: int) -> None:
        os.write(to, found_by(kind.runner(), sequence).encode())

    lines, ended = _in_child(work, seconds)
    return ended or "\n".join(lines)


def first_fault(kind: Kind, seeds: range) -> int | None:
    """The first of the seeds whose sequence fails after those before it."""

    def work(to: int) -> None:
        run = kind.runner()
        for seed in seeds:
            os.write(to, b"%d\n" % seed)
            faulthandler.dump_traceback_later(SECONDS - 1, repeat=True)
            if found_by(run, kind.draw(seed)):
                os.write(to, b"wrong\n")
                return

    lines, ended = _in_child(work, SECONDS)
    if ended and not lines:
        raise RuntimeError(f"no sequence was run: {ended}")
    if lines and lines[-1] == "wrong":
        return int(lines[-2])
    return int(lines[-1]) if ended else None


def shortest(sequence: Sequence, fails: Callable[[Sequence], bool]) -> Sequence:
    """A part of a sequence that fails, too, and no longer does with any one step less."""
    steps: list[Step] = list(sequence.steps)
    size = max(1, len(steps) // 2)
    while True:
        removed = False
        at = len(steps)
        while at > 0:
            fewer = steps[: max(0, at - size)] + steps[at:]
            if fails(replace(sequence, steps=tuple(fewer))):
                steps, removed = fewer, True
            at -= size
        if size == 1 and not removed:
            return replace(sequence, steps=tuple(steps))
        size = max(1, size // 2)


def told(sequence: Sequence, what: str) -> str:
    lines = [f"seed {sequence.seed}: program on the {sequence.where}, narrows_int64={sequence.narrows_int64}"]
    lines += [f"  {step}" for step in (*sequence.modules, *sequence.steps)]
    return "\n".join([*lines, what])


def take_apart(kind: Kind, seed: int) -> str:
    """The shortest part of a seed's sequence that fails, in words."""
    sequence = kind.draw(seed)
    whole = attempt(kind, sequence)
    if not whole:
        return f"seed {seed} fails after the sequences before it, and not alone"
    seconds = 3.0 if whole.startswith("no end") else SECONDS
    least = shortest(sequence, lambda part: bool(attempt(kind, part, seconds)))
    return told(least, attempt(kind, least) or whole)


def main(kinds: dict[str, Callable[[Several[str]], Kind]]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=sorted(kinds))
    parser.add_argument("first", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("options", nargs="*", help="of the kind")
    parser.add_argument("--faults", type=int, default=1, help="go on until so many were found")
    parser.add_argument("--here", action="store_true", help="in this process, and without taking a fault apart")
    arguments = parser.parse_args()
    kind = kinds[arguments.kind](arguments.options)
    start = time.monotonic()
    at, end, faults = arguments.first, arguments.first + arguments.count, 0
    if arguments.here:
        run = kind.runner()
        for seed in range(at, end):
            print("seed", seed, flush=True)
            if what := found_by(run, kind.draw(seed)):
                sys.exit(told(kind.draw(seed), what))
    while not arguments.here and at < end and faults < arguments.faults:
        seed = first_fault(kind, range(at, min(end, at + CHUNK)))
        if seed is None:
            at += CHUNK
            continue
        faults += 1
        print(f"seed {seed} failed after {time.monotonic() - start:.1f} s")
        print(take_apart(kind, seed), flush=True)
        at = seed + 1
    seconds = time.monotonic() - start
    print(f"{arguments.kind}: {arguments.count} sequences from {arguments.first} in {seconds:.1f} s, {faults} faults")
    sys.exit(faults > 0)
