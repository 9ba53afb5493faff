"""Exporting programs with engines inside; needs torch and the `executorch` Python package."""

from executorch_tensorrt.exporter.api import ExportedEngineProgram, export
from executorch_tensorrt.exporter.partitioner import TensorRTPartitioner

__all__ = ["ExportedEngineProgram", "TensorRTPartitioner", "export"]
