"""Kernels of libraries that are not installed are left out of a build."""

from __future__ import annotations

from enum import IntEnum
from types import SimpleNamespace

import pytest

from executorch_tensorrt.engines.tensorrt import tactics


class Sources(IntEnum):
    """Of TensorRT 8.6."""

    CUBLAS = 0
    CUBLAS_LT = 1
    CUDNN = 2
    EDGE_MASK_CONVOLUTIONS = 3
    JIT_CONVOLUTIONS = 4


class Config:
    def __init__(self, sources: int) -> None:
        self.sources = sources
        self.changes = 0

    def get_tactic_sources(self) -> int:
        return self.sources

    def set_tactic_sources(self, sources: int) -> bool:
        self.sources, self.changes = sources, self.changes + 1
        return True


@pytest.mark.parametrize(
    ("installed", "before", "after"),
    [
        ((), 0b11111, 0b11000),
        (("libcublas.so.12",), 0b11111, 0b11001),
        (("libcublas.so.11", "libcublasLt.so.11", "libcudnn.so.8"), 0b11111, 0b11111),
        ((), 0b11000, 0b11000),
    ],
)
def test_missing_libraries_give_no_kernels(
    installed: tuple[str, ...], before: int, after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tactics, "_loads", installed.__contains__)
    config = Config(before)
    tactics.leave_out_missing_libraries(SimpleNamespace(TacticSource=Sources), config)
    assert config.sources == after
    assert config.changes == (before != after)


def test_library_that_is_not_here_does_not_load() -> None:
    assert not tactics._loads("libno_such_library.so.12")  # pyright: ignore[reportPrivateUsage]
    assert tactics._loads("libc.so.6")  # pyright: ignore[reportPrivateUsage]
