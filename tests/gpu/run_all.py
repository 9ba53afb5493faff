"""Run all tests and benchmarks that need a GPU.

    python tests/gpu/run_all.py CASES RESULTS

CASES is the folder that make_cases.py filled. RESULTS gets tests.txt, and a JSON file of each benchmark. The exit code
is that of the first that failed, after all have run.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
BENCHMARKS = HERE.parents[1] / "benchmarks"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", type=Path)
    parser.add_argument("results", type=Path)
    arguments = parser.parse_args()
    cases, results = arguments.cases.resolve(), arguments.results.resolve()
    results.mkdir(parents=True, exist_ok=True)
    places = [str(HERE.parent), str(BENCHMARKS), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "ETRT_GPU_CASES": str(cases), "PYTHONPATH": os.pathsep.join(places)}

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        print("+", *command, flush=True)
        return subprocess.run([sys.executable, *command], env=environment, text=True, capture_output=True, check=False)

    tests = run("-m", "pytest", "-p", "no:cacheprovider", "-ra", "--tb=short", str(HERE))
    (results / "tests.txt").write_text(tests.stdout + tests.stderr)
    print(tests.stdout[-4000:], tests.stderr[-2000:], sep="")
    codes = [tests.returncode]
    for script in sorted((BENCHMARKS / "gpu").glob("*.py")):
        if script.name == "gpu_timing.py":
            continue
        output = results / f"gpu_{script.stem}.json"
        done = run(str(script), str(cases), "--output", str(output))
        print(done.stdout, done.stderr[-4000:], sep="")
        codes.append(done.returncode)
    sys.exit(next(filter(None, codes), 0))


if __name__ == "__main__":
    main()
