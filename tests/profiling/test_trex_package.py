"""TREX files, read back by the trt-engine-explorer package.

Its dependencies conflict with ours and are mostly for notebooks, so it gets a virtual environment of its own, with what
its reader needs, in build/; that is kept.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import models
import numpy as np
import pytest
from profiling.session_factory import encoder_session

from executorch_tensorrt.profiling import capture
from executorch_tensorrt.profiling.renderers import trex

ENVIRONMENT = Path(__file__).resolve().parents[2] / "build" / "trt-engine-explorer"
PACKAGE = "trt-engine-explorer==0.1.5"
NEEDED = ("pandas>=1.5.3,<2", "numpy<2")

# Reads the file, and joins it with a graph of the same layers, as the package's notebooks do. Its __init__ imports
# notebook widgets, so its modules are imported without it.
READ = """
import importlib.util, json, sys, types, warnings
warnings.simplefilter("error", UserWarning)
package = types.ModuleType("trex")
package.__path__ = importlib.util.find_spec("trex").submodule_search_locations
sys.modules["trex"] = package
from trex.engine_plan import EnginePlan
from trex.parser import read_profiling_file
records = read_profiling_file(sys.argv[1])
layers = [{"Name": r["name"], "LayerType": "Reformat", "Inputs": [], "Outputs": []} for r in records]
with open(sys.argv[2], "w") as graph:
    json.dump({"Layers": layers, "Bindings": []}, graph)
from trex import engine_plan
engine_plan.import_graph_file = lambda *_: (layers, [])
plan = EnginePlan(sys.argv[2], sys.argv[1])
print(json.dumps({"records": records, "times": plan.df["latency.avg_time"].tolist(), "total": plan.total_runtime}))
"""


@pytest.fixture(scope="module")
def explorer() -> Path:
    """The Python of an environment that has the package."""
    python = ENVIRONMENT / "bin" / "python"
    ready = ENVIRONMENT / "ready"
    if ready.is_file():
        return python
    steps = (
        [sys.executable, "-m", "venv", "--clear", str(ENVIRONMENT)],
        [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", *NEEDED],
        [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps", PACKAGE],
    )
    for step in steps:
        done = subprocess.run(step, capture_output=True, text=True, check=False, timeout=300)
        if done.returncode:
            pytest.skip(f"{PACKAGE} cannot be installed: {done.stderr.strip()[-300:]}")
    ready.touch()
    return python


def check(explorer: Path, file: Path) -> None:
    done = subprocess.run(
        [explorer, "-c", READ, str(file), str(file.with_suffix(".graph"))], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    read = json.loads(done.stdout)
    expected = json.loads(file.read_text())[1:]
    assert read["records"] == expected
    assert read["times"] == [record["averageMs"] for record in expected]
    assert read["total"] == pytest.approx(sum(record["averageMs"] for record in expected))


def test_trex_report_is_read_by_the_package(explorer: Path, tmp_path: Path) -> None:
    for name, text in trex.render(encoder_session(runs=4)).items():
        (tmp_path / name).write_text(text)
        check(explorer, tmp_path / name)


def test_trex_files_of_engines_are_read_by_the_package(explorer: Path, tmp_path: Path) -> None:
    inputs = (np.ones((3, 4), np.float32),)
    capture(models.rows().buffer, inputs, runs=5, format="trex", output=tmp_path)
    (file,) = tmp_path.glob("*.trex.json")
    check(explorer, file)
