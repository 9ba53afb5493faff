"""A small Llama with a KV cache: optimization profiles and named methods, and who owns the cache.

Ways: one wide profile; two profiles (decode and prefill); two named methods that have an engine each, or one that is
stored once. The cache is owned by the engine, or by
the program: there with its updates planned on top of it (`export`), or planned as ExecuTorch does by itself.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from executorch.exir import ExecutorchBackendConfig, to_edge_transform_and_lower
from timing import BUILD, REPOSITORY, interleaved_us, report

from executorch_tensorrt import Module, OptimizationProfileGuard, TensorRTPartitioner, export

sys.path.insert(0, str(REPOSITORY / "examples" / "2_llm"))
from decoder import inputs, make_model, trace

LONGEST, PREFILL, CACHE = 128, 64, 2048
DECODE_RANGE, PREFILL_RANGE, WIDE_RANGE = (1, 1, 1), (2, PREFILL, LONGEST), (1, PREFILL, LONGEST)


def write_programs(folder: Path) -> None:
    """One `.pte` for each way; kept between runs."""
    model = make_model(cache_length=CACHE)
    program = trace(model, LONGEST)
    two = inputs(DECODE_RANGE, PREFILL_RANGE)
    export(program, inputs(WIDE_RANGE), take_over_mutable_buffer=True).save(folder / "wide.pte")
    export(program, two, take_over_mutable_buffer=True).save(folder / "profiles.pte")
    export(
        {"decode": program, "prefill": program},
        {"decode": inputs(DECODE_RANGE), "prefill": inputs(PREFILL_RANGE)},
        take_over_mutable_buffer=True,
    ).save(folder / "methods.pte")
    export(
        {"decode": program, "prefill": program}, {"decode": two, "prefill": two}, take_over_mutable_buffer=True
    ).save(folder / "methods_one_engine.pte")
    export(program, two).save(folder / "caller.pte")
    edge = to_edge_transform_and_lower(program, partitioner=[TensorRTPartitioner(two)])
    (folder / "caller_copied.pte").write_bytes(edge.to_executorch(ExecutorchBackendConfig()).buffer)


def profile_of(way: str, phase: str) -> int:
    return 1 if phase == "prefill" and way not in ("wide", "methods") else 0


def step(module: Module, way: str, phase: str, tokens: int) -> Callable[[], object]:
    ids, positions = np.ones((1, tokens), np.int64), np.arange(8, 8 + tokens)
    method, profile = phase if way.startswith("methods") else "forward", profile_of(way, phase)

    def call() -> None:
        with OptimizationProfileGuard(profile):
            module.run_method(method, [ids, positions])

    return call


def load(path: Path) -> Callable[[], object]:
    def call() -> None:
        module = Module(path)
        for name in module.method_names:
            module.load_method(name)
        for phase, tokens in (("decode", 1), ("prefill", PREFILL)):
            step(module, path.stem, phase, tokens)()

    return call


def copied_bytes(path: Path) -> int:
    """What ExecuTorch and the delegate copy of the program's buffers in a call: an update that is elsewhere, twice."""
    from executorch.exir._serialize._program import deserialize_pte_binary

    plan = deserialize_pte_binary(path.read_bytes()).program.execution_plan[0]
    total = 0
    for instruction in plan.chains[0].instructions:
        call: Any = instruction.instr_args
        if type(call).__name__ == "KernelCall" and plan.operators[call.op_index].name == "aten::copy_":
            buffer, update = (plan.values[index].val for index in call.args[:2])
            if buffer.allocation_info != update.allocation_info:
                total += 2 * int(np.prod(buffer.sizes)) * (8 if buffer.scalar_type.name == "LONG" else 4)
    return total


if __name__ == "__main__":
    folder = BUILD / "llm"
    if not (folder / "caller_copied.pte").exists():
        folder.mkdir(parents=True, exist_ok=True)
        write_programs(folder)
    ways = {path.stem: path for path in sorted(folder.glob("*.pte"))}
    modules = {name: Module(path) for name, path in ways.items()}
    figures: dict[str, Any] = {"cache_tokens": CACHE, "prefill_tokens": PREFILL}
    for phase, tokens, rounds in (("decode", 1, 41), ("prefill", PREFILL, 21)):
        calls = {name: step(module, name, phase, tokens) for name, module in modules.items()}
        medians = interleaved_us(calls, rounds=rounds, calls=2)
        figures |= {f"{phase}_{name}_us": round(value, 1) for name, value in medians.items()}
        figures |= {f"{phase}_{name}_tokens_per_s": round(tokens * 1e6 / value) for name, value in medians.items()}
    loads = interleaved_us({name: load(path) for name, path in ways.items()}, rounds=7, calls=1)
    figures |= {f"load_and_first_calls_{name}_ms": round(value / 1000, 1) for name, value in loads.items()}
    for name, path in ways.items():
        figures[f"{name}_mb"] = round(path.stat().st_size / 1e6, 1)
        figures[f"{name}_copied_bytes_per_step"] = copied_bytes(path)
    owned = sum(int(np.prod(modules["profiles"].state.read(name).nbytes)) for name in modules["profiles"].state.names)
    figures["cache_bytes"] = owned
    report("llm", "Profiles decode and prefill with one set of weights, and no step copies the cache.", figures)
