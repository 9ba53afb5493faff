"""A build job of an engine cache, and what becomes of it."""

from __future__ import annotations

from executorch_tensorrt.engines.tensorrt.job import BuildJob
from executorch_tensorrt.engines.tensorrt.network import Plan

JOB = BuildJob(
    kind="tensorrt",
    version="8.6.1",
    gpu="NVIDIA H200 (compute capability 9.0)",
    options={"precision": "fp32"},
    profiles=[{"x": [(1, 2, 4), (8, 8, 8)]}, {"x": [(5, 8, 12), (8, 8, 8)]}],
    dtypes={"x": "float32", "y": "float32"},
    nodes=[("node_y", "Relu", "aten.relu.default")],
)
PLAN = Plan(b"a plan", [{"x": [(1, 2, 4), (8, 8, 8)]}], "TensorRT 8.6.1", "linux_x86_64", "NVIDIA H200")


def never() -> Plan:
    raise AssertionError("it was built again")
