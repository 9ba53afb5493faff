"""Exporting programs with engines inside; needs torch and the `executorch` Python package."""

from executorch_tensorrt.exporter.api import ExportedEngineProgram, export
from executorch_tensorrt.exporter.partitioner import TensorRTPartitioner
from executorch_tensorrt.exporter.planning import InPlaceMemoryPlanningPass

__all__ = ["ExportedEngineProgram", "InPlaceMemoryPlanningPass", "TensorRTPartitioner", "export"]
