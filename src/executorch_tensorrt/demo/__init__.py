"""A real job: semantic search with MiniLM, one profile for queries and one for documents. Needs torch."""

from executorch_tensorrt.demo.run import run_demo

__all__ = ["run_demo"]
