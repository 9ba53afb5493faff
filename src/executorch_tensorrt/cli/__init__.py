"""The command line `etrt`."""

from executorch_tensorrt.cli.app import app, main

__all__ = ["app", "main"]
