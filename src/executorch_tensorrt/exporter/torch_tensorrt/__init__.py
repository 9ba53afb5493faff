"""Graphs that Torch-TensorRT compiled: their engines are wrapped, not built again."""
