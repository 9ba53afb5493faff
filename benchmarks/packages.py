"""A package of PyTorch with an engine against the same model in a plain one; and what a large engine costs to load."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import torch
from timing import BUILD, interleaved_us, report

from executorch_tensorrt import Input, aoti
from executorch_tensorrt.aoti import saving
from executorch_tensorrt.events import ENQUEUE
from executorch_tensorrt.profiling import clear_profiling, set_profiling
from executorch_tensorrt.profiling.traces import from_traces

ROUNDS, CALLS = 200, 50
LARGE = 5120  # a Linear of 105 MB

_LOAD = """
import json, os, resource, sys, time
import torch, executorch_tensorrt.aoti
def resident_mb():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGESIZE") / 1e6
x = torch.ones(1, int(sys.argv[2]))
before = resident_mb()
begin = time.perf_counter()
runner = executorch_tensorrt.aoti.load(sys.argv[1])
loaded = time.perf_counter()
runner(x)
called = time.perf_counter()
maps = open("/proc/self/smaps").read().split("\\n")
print(json.dumps({
    "load_ms": round((loaded - begin) * 1e3, 1),
    "first_call_ms": round((called - loaded) * 1e3, 1),
    "anonymous_mb": round(sum(int(line.split()[1]) for line in maps if line.startswith("Anonymous:")) / 1e3, 1),
    "resident_mb": round(resident_mb() - before, 1),
}))
"""


def write_small() -> tuple[Path, Path]:
    """One operator with an engine, and without."""
    BUILD.mkdir(parents=True, exist_ok=True)
    model = torch.nn.ReLU().eval()
    inputs = [Input(min_shape=(1, 8), opt_shape=(2, 8), max_shape=(4, 8))]
    with_engine, plain = BUILD / "engine.pt2", BUILD / "plain.pt2"
    aoti.save(aoti.compile(model, inputs), with_engine)
    rows = torch.export.Dim("rows", min=1, max=4)
    program = torch.export.export(model, (torch.ones(2, 8),), dynamic_shapes=({0: rows},))
    torch._inductor.aoti_compile_and_package(program, package_path=str(plain))
    return with_engine, plain


def engines_own_us(runner: Any, x: torch.Tensor) -> float:
    """The work of the engine itself, as it traces it."""
    with tempfile.TemporaryDirectory() as folder:
        set_profiling("phases", format="perfetto", path_prefix=folder)
        for _ in range(500):
            runner(x)
        clear_profiling()
        runner(x)
        events = [event for run in from_traces(folder).runs for event in run.events]
    return median(event.duration_us for event in events if event.name == ENQUEUE)


def calls() -> dict[str, float]:
    with_engine, plain = map(torch._inductor.aoti_load_package, map(str, write_small()))
    x = torch.randn(2, 8)
    own = engines_own_us(with_engine, x)
    us = interleaved_us({"plain": lambda: plain(x), "with_engine": lambda: with_engine(x)}, rounds=ROUNDS, calls=CALLS)

    call = {"call": lambda: with_engine(x)}
    settings: dict[str, list[float]] = {"none": [], "unchanged": []}
    for _ in range(ROUNDS // 10):
        for name, change in (("none", clear_profiling), ("unchanged", lambda: set_profiling("off"))):
            change()  # the engine takes it over in the first call, which is not timed
            settings[name].append(interleaved_us(call, rounds=10, calls=CALLS)["call"])
    clear_profiling()
    return {
        "plain_package_us": us["plain"],
        "package_with_engine_us": us["with_engine"],
        "engine_itself_us": own,
        "operator_us": us["with_engine"] - us["plain"] - own,
        "without_settings_us": median(settings["none"]),
        "with_unchanged_settings_us": median(settings["unchanged"]),
    }


def large() -> dict[str, Any]:
    compiled = aoti.compile(torch.nn.Linear(LARGE, LARGE).eval(), [Input((1, LARGE))])
    found: dict[str, Any] = {"engine_mb": round(compiled.engines[0]["bytes"] / 1e6, 1)}
    for name, limit in (("beside_the_code", saving.LARGE_ENGINE), ("in_the_code", 2**60)):
        saving.LARGE_ENGINE = limit
        path = BUILD / f"{name}.pt2"
        aoti.save(compiled, path)
        command = [sys.executable, "-c", _LOAD, str(path), str(LARGE)]
        runs = [json.loads(subprocess.run(command, check=True, capture_output=True).stdout) for _ in range(3)]
        found[name] = {key: median(run[key] for run in runs) for key in runs[0]}
        path.unlink()
    return found


if __name__ == "__main__":
    figures = {key: round(value, 2) for key, value in calls().items()}
    report(
        "packages",
        "The operator costs at most 4 us more than the engine itself; a large engine is not copied.",
        {**figures, "aim_operator_us": 4, "large_engine": large()},
    )
