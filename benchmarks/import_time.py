"""Importing this package against importing ExecuTorch's own Python runtime."""

import json
import statistics
import subprocess
import sys

from timing import report

CODE = """
import json, resource, time
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
begin = time.perf_counter()
import {module}
seconds = time.perf_counter() - begin
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps([seconds, (after - before) / 1024]))
"""
MODULES = ("executorch_tensorrt", "executorch.runtime")
RUNS = 7


def measure(module: str) -> tuple[float, float]:
    command = [sys.executable, "-W", "ignore", "-c", CODE.format(module=module)]
    seconds, megabytes = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return seconds, megabytes


if __name__ == "__main__":
    samples: dict[str, list[tuple[float, float]]] = {module: [] for module in MODULES}
    for _ in range(RUNS):
        for module in MODULES:
            samples[module].append(measure(module))
    figures: dict[str, float] = {}
    for module, runs in samples.items():
        figures[f"{module}_s"] = round(statistics.median(seconds for seconds, _ in runs), 3)
        figures[f"{module}_mb"] = round(statistics.median(megabytes for _, megabytes in runs), 1)
    report("import", "Importing takes at most 0.1 s and 30 MB.", figures | {"aim_s": 0.1, "aim_mb": 30})
