"""What the benchmarks share: interleaved runs, medians, and one way to report.

The machine is noisy, so both sides of a comparison run in turn in one process, and the ratio of medians is what counts.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
BUILD = REPOSITORY / "build" / "bench"


def interleaved_us(
    sides: Mapping[str, Callable[[], object]], *, rounds: int, calls: int, after: Callable[[], object] = lambda: None
) -> dict[str, float]:
    """Median microseconds of a call of each side; a round times `calls` calls of every side in turn.

    `after` follows the calls of a side, outside of their time.
    """
    samples: dict[str, list[float]] = {name: [] for name in sides}
    for call in sides.values():
        call()
        after()
    for _ in range(rounds):
        for name, call in sides.items():
            begin = time.perf_counter_ns()
            for _ in range(calls):
                call()
            samples[name].append((time.perf_counter_ns() - begin) / calls / 1000)
            after()
    return {name: statistics.median(values) for name, values in samples.items()}


def microbench(*arguments: str) -> dict[str, Any]:
    """One run of the native microbenchmark."""
    program = REPOSITORY / "build" / "editable" / "benchmarks" / "native" / "etrt_microbench"
    if not program.is_file():
        sys.exit(f"no {program}: run `make build`")
    return json.loads(subprocess.run([program, *arguments], check=True, capture_output=True, text=True).stdout)


def median_of(runs: int, run: Callable[[], float]) -> float:
    return statistics.median(run() for _ in range(runs))


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def options(claim: str) -> argparse.ArgumentParser:
    """What every benchmark can be asked."""
    parser = argparse.ArgumentParser(description=claim)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the JSON object to FILE as well")
    return parser


def _versions(packages: Sequence[str]) -> dict[str, str]:
    """Of those that are installed: a machine that only runs programs lacks some."""
    found: dict[str, str] = {}
    for package in packages:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return found


def report(
    name: str,
    claim: str,
    figures: Mapping[str, Any],
    arguments: argparse.Namespace | None = None,
    machine: Mapping[str, Any] | None = None,
    operands: str = "",
) -> None:
    """Prints the figures: as text, or with --json as one JSON object that names the machine and the versions.

    `machine` is what else there is to say of it, `operands` what the script's command line needs.
    """
    arguments = arguments or options(claim).parse_args()
    result = {
        "benchmark": name,
        "claim": claim,
        "figures": figures,
        "machine": {
            "cpu": _cpu_model(),
            "cores": os.cpu_count(),
            "python": platform.python_version(),
            **(machine or {}),
        },
        "versions": _versions(("executorch-tensorrt", "executorch", "torch")),
        "command": f"python {Path(sys.argv[0]).resolve().relative_to(REPOSITORY)} {operands}--json",
    }
    text = json.dumps(result, indent=2)
    if arguments.output:
        arguments.output.write_text(text + "\n")
    if arguments.json:
        print(text)
        return
    print(claim)
    for key, value in figures.items():
        print(f"  {key:32} {value}")
