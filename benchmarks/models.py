"""Public architectures exported to engines, against the stock XNNPACK export of the same model.

Every export runs in a process of its own, ours and the stock one in turn. Time is processor time, so that other work on
the machine does not count; memory is the peak over what the process held when the model was loaded.
"""

from __future__ import annotations

import json
import re
import resource
import statistics
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import to_edge_transform_and_lower
from executorch.exir.lowered_backend_module import LoweredBackendModule
from timing import REPOSITORY, report

from executorch_tensorrt import Input, export
from executorch_tensorrt.exporter import ExportedEngineProgram
from executorch_tensorrt.graphs.nodes import aten_op, is_size

sys.path.insert(0, str(REPOSITORY / "tests"))

from model_zoo import MODELS, ZooModel, differences, make

ROUNDS = 1
SIDES = ("xnnpack", "cpu")
RTX_OPTIONS = {"compute_capability": "8.9"}
CODE = "import json, sys, models; print(json.dumps(models.measure(*sys.argv[1:])))"


def measure(name: str, side: str) -> dict[str, Any]:
    """Export one model one way, and say what it cost and what came out."""
    warnings.simplefilter("ignore")
    model, zoo = make(name), MODELS[name]
    held, began = _peak_mb(), time.process_time()
    made = _stock(model, zoo) if side == "xnnpack" else _export(model, zoo, side)
    size = len(made if isinstance(made, bytes) else made.buffer)
    found: dict[str, Any] = {"seconds": time.process_time() - began, "memory_mb": _peak_mb() - held, "bytes": size}
    if isinstance(made, ExportedEngineProgram):
        found |= _contents(made)
    if side == "cpu":
        found["differences"] = differences(name, made.buffer)
    return found


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _export(model: torch.nn.Module, zoo: ZooModel, engine: str) -> ExportedEngineProgram:
    options = RTX_OPTIONS if engine == "tensorrt_rtx" else None
    return export(model, zoo.inputs, engine=engine, engine_options=options, strict=zoo.strict)


def _stock(model: torch.nn.Module, zoo: ZooModel) -> bytes:
    """What ExecuTorch's own documentation does, over the union of the profiles."""
    dims: dict[str, Any] = {}
    arguments = {
        name: torch.ones(item.profiles[-1].opt, dtype=getattr(torch, item.dtype)) for name, item in zoo.inputs.items()
    }
    shapes = {name: _dynamic(item, dims) for name, item in zoo.inputs.items()}
    with torch.no_grad():
        program = torch.export.export(model, (), arguments, dynamic_shapes=shapes, strict=zoo.strict)
        edge = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
        return bytes(edge.to_executorch().buffer)


def _dynamic(item: Input, dims: dict[str, Any]) -> dict[int, Any]:
    low, _, high = item.union
    names = {axis: item.shared_dims.get(axis, f"dim{axis}") for axis in range(item.rank) if low[axis] < high[axis]}
    for axis, name in names.items():
        dims.setdefault(name, torch.export.Dim(name, min=low[axis], max=high[axis]))
    return {axis: dims[name] for axis, name in names.items()}


def _contents(program: ExportedEngineProgram) -> dict[str, Any]:
    """What went into engines and what did not. An operator outside is called as its node, without the number."""
    graph = program.program.exported_program().graph_module
    engines = [entry for entry in graph.children() if isinstance(entry, LoweredBackendModule)]
    inside = [node for engine in engines for node in engine.original_module.graph.nodes]
    outside = Counter((re.sub(r"_\d+$", "", name), reason) for name, reason in program.left_outside.items())
    return {
        "engines": [{"bytes": entry["bytes"], "profiles": len(entry["profiles"])} for entry in program.delegates],
        "operators": sum(1 for node in inside if aten_op(node.target) and not is_size(node)),
        "outside": [{"operator": op, "reason": reason, "count": count} for (op, reason), count in outside.items()],
    }


def run(name: str, side: str) -> dict[str, Any]:
    """`measure` in a process of its own."""
    command = [sys.executable, "-W", "ignore", "-c", CODE, name, side]
    child = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    if child.returncode:
        return {"error": child.stderr.strip().splitlines()[-1]}
    return json.loads(child.stdout.splitlines()[-1])


def figures_of(name: str) -> dict[str, Any]:
    """All figures of one model."""
    zoo = MODELS[name]
    size, ranges = zoo.sizes
    spans = [f"{low}..{high}" if low < high else str(low) for low, _, high in ranges]
    runs: dict[str, list[dict[str, Any]]] = {side: [] for side in SIDES}
    for _ in range(ROUNDS):
        for side in SIDES:
            runs[side].append(run(name, side))
    sides = {side: _median(results) for side, results in runs.items()}
    return {
        "title": zoo.title,
        "made_of": zoo.made_of,
        "profiles": {"size": size, "ranges": spans},
        "time_ratio": round(sides["cpu"]["seconds"] / sides["xnnpack"]["seconds"], 2),
        "memory_ratio": round(sides["cpu"]["memory_mb"] / sides["xnnpack"]["memory_mb"], 2),
        **sides,
        "tensorrt_rtx": _median([run(name, "tensorrt_rtx")]),
    }


def _median(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The first run's contents with the median cost of all."""
    for result in runs:
        if "error" in result:
            return result
    costs = {key: round(statistics.median(result[key] for result in runs), 1) for key in ("seconds", "memory_mb")}
    return {**runs[0], **costs}


def _summary(models: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    return {
        "aim_ratio": 2,
        "time_ratio": max(entry["time_ratio"] for entry in models.values()),
        "memory_ratio": max(entry["memory_ratio"] for entry in models.values()),
        "largest_difference": max(max(entry["cpu"]["differences"]) for entry in models.values()),
        "models": models,
    }


if __name__ == "__main__":
    report(
        "models",
        "Exporting a model takes at most 2 times the time and memory of the stock XNNPACK export.",
        _summary({name: figures_of(name) for name in MODELS}),
    )
