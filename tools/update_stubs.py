"""Writes src/executorch_tensorrt/_native.pyi from the extension module that is installed.

The stub is kept in the repository so that a change of the native interface is seen in review; a test compares the two.
"""

import sys
from pathlib import Path

from nanobind.stubgen import StubGen

import executorch_tensorrt  # noqa: F401  # loads the libraries that the extension module needs
from executorch_tensorrt import _native

STUB = Path(__file__).resolve().parents[1] / "src" / "executorch_tensorrt" / "_native.pyi"


def generate() -> str:
    generator = StubGen(_native)
    generator.put(_native)
    return generator.get()


if __name__ == "__main__":
    STUB.write_text(generate())
    sys.exit(0)
