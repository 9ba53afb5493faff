"""Two threads load, run and unload programs for minutes: memory, file descriptors and threads stay as they are.

A *life* is one `Module` with some profiling level and format, sidecars included: calls of mixed shapes and requests,
some of them refused, methods unloaded between them, caches reset, an ETDump at the end. One more `Module` is shared by
the threads all along. Every result is compared with PyTorch's, and samples are taken once a second.
"""

from __future__ import annotations

import os
import random
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import nullcontext
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from timing import REPOSITORY, options, report

from executorch_tensorrt import Module, OptimizationProfileGuard
from executorch_tensorrt._native import silence_log
from executorch_tensorrt.profiling.control import clear_profiling, set_profiling
from executorch_tensorrt.runtime.module import PROFILE_FORMATS, PROFILE_LEVELS

CLAIM = "Memory, file descriptors and threads stay flat through mixed calls, loads and reloads on two threads."
THREADS = 2
RANGES = {"rows": ((1, 8), (4, 64)), "mixed": ((1, 4), (5, 32)), "two_inputs": ((2, 8), (9, 32))}
CACHE, CACHE_RANGES = "cached_rows", ((1, 1), (2, 8))
Arrays = list[np.ndarray[Any, Any]]


def write_programs(folder: Path) -> None:
    """Programs of the tests' models, and PyTorch's outputs for inputs of every size."""
    sys.path.insert(0, str(REPOSITORY / "tests"))
    import models
    import torch

    (folder / f"{CACHE}.pte").write_bytes(models.cached_rows().buffer)
    for name, ranges in RANGES.items():
        exported = getattr(models, name)()
        (folder / f"{name}.pte").write_bytes(exported.buffer)
        arrays = {}
        for size in range(ranges[0][0], ranges[1][1] + 1):
            inputs = {
                "rows": [torch.randn(size, 4)],
                "mixed": [torch.randn(size, 4), torch.randn(1, 4)],
                "two_inputs": [torch.randint(0, 99, (1, size)) for _ in range(2)],
            }[name]
            arrays |= {f"{size} input {k}": value.numpy() for k, value in enumerate(inputs)}
            arrays |= {f"{size} output {k}": value.numpy() for k, value in enumerate(exported.eager(*inputs))}
        np.savez(folder / f"{name}.npz", **arrays)


class Stateless:
    """A program, with the inputs and outputs that were computed for every size."""

    def __init__(self, folder: Path, name: str) -> None:
        self.program, self.ranges = folder / f"{name}.pte", RANGES[name]
        with np.load(folder / f"{name}.npz") as file:
            self._arrays = {key: file[key] for key in file.files}

    def call(self, module: Module, size: int) -> bool:
        """Whether a call gives the expected outputs."""
        outputs = module.forward(*self._of(size, "input"))
        return all(np.allclose(a, b, atol=1e-5) for a, b in zip(outputs, self._of(size, "output"), strict=True))

    def refused(self, module: Module) -> bool:
        """Whether a shape that no profile accepts is refused."""
        largest = self._of(self.ranges[1][1], "input")
        axis = 0 if largest[0].shape[0] > 1 else 1
        try:
            module.forward(*[np.concatenate([x, x], axis) if x.shape == largest[0].shape else x for x in largest])
        except ValueError:
            return True
        return False

    def _of(self, size: int, side: str) -> Arrays:
        found = [key for key in (f"{size} {side} {k}" for k in range(3)) if key in self._arrays]
        return [self._arrays[key] for key in found]


class Cached:
    """The program whose engine owns a cache, and what the cache should hold."""

    def __init__(self, folder: Path) -> None:
        self.program, self.ranges = folder / f"{CACHE}.pte", CACHE_RANGES
        self._cache = np.zeros((32, 4), np.float32)

    def call(self, module: Module, size: int) -> bool:
        positions = np.random.default_rng().permutation(32)[:size]
        rows = np.random.default_rng().random((size, 4), np.float32)
        if not module.state.names or np.random.default_rng().random() < 0.05:
            self._cache[:] = 0
            module.state.reset()
        (total,) = module.forward(rows, positions)
        self._cache[positions] = rows
        return np.array_equal(module.state.read("cache"), self._cache) and np.allclose(
            total, self._cache.sum(0), atol=1e-5
        )

    def refused(self, module: Module) -> bool:
        try:
            module.forward(np.zeros((9, 4), np.float32), np.arange(9))
        except ValueError:
            return True
        return False


class Worker:
    """What one thread does."""

    def __init__(self, folder: Path, shared: Module, seed: int) -> None:
        self.counts: Counter[str] = Counter()
        self._random = random.Random(seed)
        self._cases = [*(Stateless(folder, name) for name in RANGES), Cached(folder)]
        self._shared = shared
        self._traces = folder / f"traces_{seed}"
        self._traces.mkdir()

    def work(self, end: threading.Event) -> None:
        while not end.is_set():
            self._life(self._random.choice(self._cases))
            self._counted("calls", self._cases[0].call(self._shared, self._random.randint(1, 64)))
            if self._random.random() < 0.1:
                self.counts["methods_unloaded"] += self._shared.unload_method()

    def _life(self, case: Stateless | Cached) -> None:
        default = self._random.choice([None, "auto", 0, 1])
        chosen = {"profile_format": self._random.choice(PROFILE_FORMATS), "profile_path_prefix": self._traces}
        level, etdump = self._random.choice(PROFILE_LEVELS), self._random.random() < 0.3
        module = Module(case.program, optimization_profile=default, profile_level=level, etdump=etdump, **chosen)
        self.counts["modules"] += 1
        for _ in range(self._random.randint(1, 60)):
            self._call(case, module, default)
        if etdump:
            module.write_etdump(self._traces / "life.etdp")
            self.counts["etdumps"] += 1
        del module
        for path in self._traces.iterdir():
            self.counts["trace_files"] += path.suffix == ".json"
            path.unlink()

    def _call(self, case: Stateless | Cached, module: Module, default: str | int | None) -> None:
        request = self._random.choice([None, "auto", 0, 1])
        meant = default if request is None else request
        profile = self._random.randint(0, 1) if meant == "auto" else int(meant or 0)
        size = self._random.randint(*case.ranges[profile])
        guard = {None: nullcontext, "auto": OptimizationProfileGuard.auto}.get(request)
        with guard() if guard else OptimizationProfileGuard(request):
            self._counted("calls", case.call(module, size))
            expected = profile if meant != "auto" or size > case.ranges[0][1] else 0
            self._counted("selections", max(s.profile for s in module.last_selections) == expected)
        what = self._random.random()
        if what < 0.05:
            self._counted("refused_calls", case.refused(module))
        elif what < 0.08:
            self.counts["methods_unloaded"] += module.unload_method()
        elif what < 0.09:
            set_profiling(self._random.choice(PROFILE_LEVELS))
            clear_profiling()

    def _counted(self, what: str, right: bool) -> None:
        self.counts[what] += 1
        self.counts["wrong_results"] += not right


def samples(minutes: float) -> Iterator[tuple[float, float, int, int]]:
    """Once a second: minutes since the start, resident memory in MB, file descriptors, threads."""
    begin, page = time.monotonic(), os.sysconf("SC_PAGE_SIZE")
    while (now := (time.monotonic() - begin) / 60) < minutes:
        resident = int(Path("/proc/self/statm").read_text().split()[1]) * page / 2**20
        yield now, resident, *(sum(1 for _ in Path("/proc/self", folder).iterdir()) for folder in ("fd", "task"))
        time.sleep(1)


def soak(minutes: float) -> dict[str, Any]:
    silence_log()  # of the calls that are refused
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(THREADS) as pool:
        folder = Path(name)
        with ProcessPoolExecutor(1, get_context("spawn")) as writer:  # this process imports no torch
            writer.submit(write_programs, folder).result()
        end = threading.Event()
        shared = Module(folder / "rows.pte", optimization_profile="auto")
        workers = [Worker(folder, shared, seed) for seed in range(THREADS)]
        running = [pool.submit(worker.work, end) for worker in workers]
        try:
            taken = list(samples(minutes))
        finally:
            end.set()
        for future in running:
            future.result()
    counts = sum((worker.counts for worker in workers), Counter[str]())
    figures = {"minutes": minutes, "threads": THREADS, **dict(sorted(counts.items()))}
    return figures | {"wrong_results": counts["wrong_results"]} | flatness(taken, warm_up=min(2, minutes / 4))


def flatness(taken: list[tuple[float, float, int, int]], warm_up: float) -> dict[str, Any]:
    """Of the samples after the warm-up: medians of the first and the last minute, the most, and the slope."""
    steady = [sample for sample in taken if sample[0] >= warm_up]
    first = [sample for sample in steady if sample[0] < warm_up + 1]
    last = [sample for sample in steady if sample[0] > steady[-1][0] - 1]
    slope, _ = statistics.linear_regression([s[0] for s in steady], [s[1] for s in steady])
    figures: dict[str, Any] = {"warm_up_minutes": warm_up, "rss_mb_per_hour": round(slope * 60, 2)}
    for column, what in ((1, "rss_mb"), (2, "file_descriptors"), (3, "os_threads")):
        for which, part in (("first", first), ("last", last)):
            figures[f"{what}_{which}_minute"] = round(statistics.median(s[column] for s in part), 1)
        figures[f"{what}_most"] = round(max(s[column] for s in steady), 1)
    figures["rss_mb_by_minute"] = [
        round(statistics.median(s[1] for s in taken if int(s[0]) == minute), 1)
        for minute in sorted({int(s[0]) for s in taken})
    ]
    return figures


if __name__ == "__main__":
    parser = options(CLAIM)
    parser.add_argument("--minutes", type=float, default=15, help="how long (default: 15)")
    arguments = parser.parse_args()
    report("soak", CLAIM, soak(arguments.minutes), arguments)
