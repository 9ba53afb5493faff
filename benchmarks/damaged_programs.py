"""What becomes of small programs with changed bytes: refused, run, or the end of the process.

A *damaged* copy has one to four bytes changed, chosen by its number alone. A *forged* one has one to three bytes of an
engine changed, and the engine's id made to fit, as someone who means harm would. Copies are loaded and run one after
the other in a process of their own, which the next copy's replaces where one ended it.
"""

from __future__ import annotations

import hashlib
import random
import resource
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from soak import write_programs
from timing import options, report

from executorch_tensorrt import ExecuTorchError, Module
from executorch_tensorrt._native import silence_log
from executorch_tensorrt.program import read_program
from executorch_tensorrt.program.blobs import EngineBlob, blobs_of

CLAIM = "Of 10,000 damaged and 10,000 forged copies of four small programs, none ends the process."
CHUNK, SECONDS = 100, 600  # how many copies share a process, and for how long
BYTES = 8 << 30  # of address space, for a copy that asks for more memory than there is


def damaged(program: bytes, copy: int) -> tuple[bytes, list[int]]:
    """A copy, and where it is damaged."""
    data, chance = bytearray(program), random.Random(copy)
    places = [chance.randrange(len(data)) for _ in range(chance.randint(1, 4))]
    for place in places:
        data[place] ^= chance.randint(1, 255)
    return bytes(data), places


def forged(program: bytes, copy: int) -> tuple[bytes, list[int]]:
    """A copy, and where its engine is changed."""
    data, chance = bytearray(program), random.Random(copy)
    blobs = [blob for method in read_program(program).methods for blob in blobs_of(method)]
    engine = chance.choice([blob for blob in blobs if isinstance(blob, EngineBlob)])
    start, size = program.index(engine.engine), len(engine.engine)
    places = [start + chance.randrange(size) for _ in range(chance.randint(1, 3))]
    for place in places:
        data[place] ^= chance.randint(1, 255)
    fitting = hashlib.sha256(data[start : start + size]).hexdigest()[: len(engine.engine_id)]
    return bytes(data).replace(engine.engine_id.encode(), fitting.encode()), places


MUTATORS: dict[str, Callable[[bytes, int], tuple[bytes, list[int]]]] = {"damaged": damaged, "forged": forged}


def outputs_of(program: bytes) -> list[bytes]:
    """Of a call of each method with ones of the largest shape."""
    module, outputs = Module(program, optimization_profile="auto"), []
    for name in module.method_names:
        module.load_method(name)
        tensors = [value.tensor for value in module.method_meta(name).inputs]
        inputs = [np.ones(tensor.sizes, tensor.dtype) if tensor else 1 for tensor in tensors]
        outputs += [np.asarray(output).tobytes() for output in module.run_method(name, inputs)]
    return outputs


def try_copies(mutator: str, copies: list[int], programs: list[Path]) -> None:
    """Prints the outcome of each copy. What runs in the process of its own."""
    silence_log()
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    originals = [program.read_bytes() for program in programs]
    expected = [outputs_of(program) for program in originals]
    for copy in copies:
        try:
            outputs = outputs_of(MUTATORS[mutator](originals[copy % len(originals)], copy)[0])
        except (ValueError, TypeError, MemoryError, ExecuTorchError):
            print("refused", flush=True)
        else:
            print("ran_as_before" if outputs == expected[copy % len(programs)] else "ran_otherwise", flush=True)


def outcomes(mutator: str, count: int, programs: list[Path]) -> list[str]:
    """One for each copy; `signal <n>` or `no end` for those that ended the process, or would not end."""
    found: list[str] = []
    while len(found) < count:
        until = min(len(found) + CHUNK, count)
        copies = map(str, range(len(found), until))
        command = [sys.executable, __file__, "--try", mutator, str(programs[0].parent), *copies]
        try:
            result = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
            if result.returncode > 0:
                sys.exit(result.stderr)
            lines, fate = result.stdout.split(), f"signal {-result.returncode}"
        except subprocess.TimeoutExpired as stopped:
            lines, fate = bytes(stopped.stdout or b"").decode().split(), "no end"
        found += lines
        if len(found) < until:
            found.append(fate)
    return found


def counts(mutator: str, copies: int, programs: list[Path]) -> dict[str, Any]:
    found = outcomes(mutator, copies, programs)
    ended: dict[str, str] = {}
    for k, fate in enumerate(found):
        if " " in fate:
            program = programs[k % len(programs)]
            places = MUTATORS[mutator](program.read_bytes(), k)[1]
            ended[f"copy {k} of {program.name}"] = f"{fate}, changed at {places}"
    lived = Counter(fate for fate in found if " " not in fate)
    return {"copies": copies, **dict(sorted(lived.items())), "ended_the_process": len(ended), "how": ended}


def try_all(copies: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        with ProcessPoolExecutor(1, get_context("spawn")) as writer:
            writer.submit(write_programs, Path(folder)).result()
        programs = sorted(Path(folder).glob("*.pte"))
        return {mutator: counts(mutator, copies, programs) for mutator in MUTATORS}


if __name__ == "__main__":
    if sys.argv[1:2] == ["--try"]:
        try_copies(sys.argv[2], [int(copy) for copy in sys.argv[4:]], sorted(Path(sys.argv[3]).glob("*.pte")))
        sys.exit()
    parser = options(CLAIM)
    parser.add_argument("--copies", type=int, default=10_000, help="how many of each kind (default: 10000)")
    arguments = parser.parse_args()
    report("damaged_programs", CLAIM, try_all(arguments.copies), arguments)
