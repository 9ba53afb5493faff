"""Instructions of one delegate call: what this project's library executes itself, counted by Valgrind's Callgrind.

Unlike times, they do not depend on what else the machine does: runs of one build agree to the last digit. What the
call spends elsewhere (ExecuTorch, its kernels, the C library) is not counted. Allocations are those of the library
itself and those that the C++ library makes for it. Calls on a device run over the tests' fake engine and fake CUDA.
`make performance` writes the record that tests/performance holds the library to; --functions shows where the
instructions go.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from timing import REPOSITORY, options, report

RECORD = REPOSITORY / "benchmarks" / "results" / "instructions.json"
TOLERANCE = 0.02  # one build always gives the same; this is for changes that mean nothing
_LIBRARY, _CPP_LIBRARY = "libexecutorch_tensorrt.so", "/libstdc++.so"
_ROWS = 6  # both profiles take them
_CALLGRIND = (
    "--tool=callgrind",
    "--compress-strings=no",
    "--compress-pos=no",
    "--zero-before=*counting_begins*",
    "--dump-before=*counting_ends*",
)


@dataclass
class Counts:
    """Of one level and request, for each call."""

    instructions: float = 0
    allocations: float = 0
    itself: dict[str, float] = field(default_factory=lambda: defaultdict(float))  # by function of the library
    inclusive: dict[str, float] = field(default_factory=lambda: defaultdict(float))


def missing_tool() -> str:
    """What there is to say where nothing can be counted, else nothing."""
    return "" if shutil.which("valgrind") else "no valgrind on the path: run apt-get install valgrind"


def measure(build: Path) -> tuple[str, dict[str, Counts]]:
    """The compiler's version, and the counts of every "level request" and kind of call on a device.

    `build` has the programs that are counted.
    """
    programs = build / "benchmarks" / "native"
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "tiny.pte"
        _write_model(model)
        compiler, parts = _count(programs / "etrt_microbench", "instructions", str(model), str(_ROWS))
        _, on_device = _count(programs / "etrt_device_calls")
    return compiler, parts | on_device


def _count(program: Path, *arguments: str) -> tuple[str, dict[str, Counts]]:
    with tempfile.TemporaryDirectory() as folder:
        counts = Path(folder) / "counts"
        command = ["valgrind", "-q", *_CALLGRIND, f"--callgrind-out-file={counts}", str(program), *arguments]
        told = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        return told["compiler"], {
            " ".join(part): read_part(Path(f"{counts}.{index}"), told["calls"])
            for index, part in enumerate(told["parts"], 1)
        }


def _write_model(path: Path) -> None:
    import torch

    from executorch_tensorrt import Input, export

    ranges = [
        {"min_shape": (1, 4), "opt_shape": (2, 4), "max_shape": (8, 4)},
        {"min_shape": (4, 4), "opt_shape": (16, 4), "max_shape": (64, 4)},
    ]
    export(torch.nn.ReLU().eval(), [Input(profiles=ranges)]).save(path)


def read_part(part: Path, calls: int) -> Counts:
    """A file of Callgrind's: costs of lines, each of the function named last; a cost after calls= is the callee's."""
    counts = Counts()
    names = {"ob": "", "fn": "", "cob": "", "cfn": ""}
    called = 0
    edges: list[_Calls] = []
    for line in part.read_text().splitlines():
        key, _, value = line.partition("=")
        if key in names:
            names[key] = value
        elif key == "calls":
            called = int(value.split()[0])
            # Without cob=, the callee is in the caller's object.
            edges.append(_Calls(names["ob"], names["fn"], names["cob"] or names["ob"], names["cfn"], called))
            names["cob"] = ""
        elif re.fullmatch(r"\d+ \d+", line):
            if names["ob"].endswith(_LIBRARY):
                _add(counts, names, int(line.split()[1]) / calls, called)
            called = 0
    counts.allocations = _allocations(edges) / calls
    return counts


def _add(counts: Counts, names: dict[str, str], cost: float, called: int) -> None:
    counts.inclusive[names["fn"]] += cost
    if not called:
        counts.itself[names["fn"]] += cost
        counts.instructions += cost


@dataclass(frozen=True)
class _Calls:
    caller_object: str
    caller: str
    callee_object: str
    callee: str
    count: int


def _allocations(edges: list[_Calls]) -> float:
    """By the library itself, and by functions of the C++ library, shared out among all who call those."""
    of_library = [edge for edge in edges if edge.caller_object.endswith(_LIBRARY)]
    inside = [edge for edge in edges if _CPP_LIBRARY in edge.caller_object]

    @cache
    def of_each_call(function: str) -> float:
        if function.startswith("operator new"):
            return 1
        calls = sum(edge.count for edge in edges if edge.callee == function)
        made = sum(edge.count * of_each_call(edge.callee) for edge in inside if edge.caller == function)
        return made / calls

    return sum(
        edge.count * of_each_call(edge.callee)
        for edge in of_library
        if _CPP_LIBRARY in edge.callee_object or edge.callee.startswith("operator new")
    )


def figures(parts: dict[str, Counts]) -> dict[str, int]:
    """What is kept."""
    kept = {name: round(counts.instructions) for name, counts in parts.items()}
    allocations = {f"{name} allocations": round(counts.allocations) for name, counts in parts.items()}
    same = (" pinned allocations", " auto allocations")  # as the default request
    return kept | {name: count for name, count in allocations.items() if not name.endswith(same)}


def changes(recorded: Mapping[str, int], measured: Mapping[str, int]) -> list[str]:
    """A line for each figure that is not what the record says, give or take the tolerance."""
    names = [*recorded, *(name for name in measured if name not in recorded)]
    pairs = [(name, recorded.get(name, 0), measured.get(name, 0)) for name in names]
    return [
        f"{name}: {before} recorded, {now} measured ({now - before:+})"
        for name, before, now in pairs
        if abs(now - before) > TOLERANCE * before
    ]


def _print_functions(counts: Counts, number: int) -> None:
    print("inclusive   itself  function")
    for name, cost in sorted(counts.inclusive.items(), key=lambda item: -item[1])[:number]:
        print(f"{cost:9.0f} {counts.itself[name]:8.0f}  {name.removeprefix('executorch_tensorrt::')[:100]}")


def _arguments() -> argparse.Namespace:
    parser = options("What one delegate call executes.")
    parser.add_argument("--functions", metavar="CALL", help='show where they go, of a call such as "phases auto"')
    parser.add_argument("--build", type=Path, default=REPOSITORY / "build" / "editable", help="build folder")
    return parser.parse_args()


if __name__ == "__main__":
    arguments = _arguments()
    if missing := missing_tool():
        sys.exit(missing)
    compiler, parts = measure(arguments.build)
    if arguments.functions:
        _print_functions(parts[arguments.functions], 25)
        sys.exit()
    report(
        "instructions",
        "Instructions of a delegate call in this project's own library, by level and request, and on a device.",
        figures(parts),
        arguments,
        machine={"compiler": compiler},
    )
