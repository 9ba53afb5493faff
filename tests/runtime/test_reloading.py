"""Methods that are loaded again and again take no more memory than once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

TIMES = 200

# What malloc's mallinfo2() counts as used, before and after.
GROWTH = """
import ctypes
import gc
import sys

import numpy as np
from executorch_tensorrt import Module

class Info(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in "abcdefghij"]

mallinfo2 = ctypes.CDLL(None).mallinfo2
mallinfo2.restype = Info

def used():
    gc.collect()
    info = mallinfo2()
    return info.e + info.h  # mapped, and in use

def reload():
    module.forward(x)
    assert module.unload_method()

def fail():
    try:
        module.load_method(profile_level="layers", profile_format="trex")  # no folder
    except ValueError:
        return
    raise AssertionError("it loaded")

module, x = Module(sys.argv[1]), np.ones((2, 4), np.float32)
work = {"reload": reload, "fail": fail}[sys.argv[2]]
for times in (20, int(sys.argv[3])):
    before = used()
    for _ in range(times):
        work()
print(used() - before)
"""


@pytest.mark.parametrize("work", ["reload", "fail"])
def test_method_leaves_no_memory_behind(
    work: str, rows: Path, run_python: Callable[..., CompletedProcess[str]]
) -> None:
    result = run_python(GROWTH, str(rows), work, str(TIMES))
    assert result.returncode == 0, result.stderr
    assert int(result.stdout) < 100 * TIMES  # of some 900 bytes that a method of this program takes
