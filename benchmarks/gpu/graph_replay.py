"""Calls that are replayed as CUDA graphs, against calls that queue their work."""

from collections.abc import Callable
from itertools import cycle

from gpu.cuda import free_memory, to_device
from gpu_timing import Bench

from executorch_tensorrt import CudaStreamGuard, Module

SHAPES = 16
ADDRESSES = 64


def main() -> None:
    bench = Bench("A replayed step takes the host at most 10 us, and is 2.5 times as fast end to end.", "mlp")
    with CudaStreamGuard(bench.stream.handle):
        host = {
            f"{side}_{call}": bench.caller(call, use_cuda_graphs=side == "replay")
            for call in ("first", "second")
            for side in ("enqueue", "replay")
        }
        whole = {name: finished(bench, call) for name, call in host.items()}
        host_us, whole_us = bench.host_us(host), bench.host_us(whole)
        figures = {f"{name}_host_us": round(value, 2) for name, value in host_us.items()}
        figures |= {f"{name}_us": round(value, 2) for name, value in whole_us.items()}
        figures |= {
            "times_as_fast": round(whole_us["enqueue_first"] / whole_us["replay_first"], 2),
            "aim_times_as_fast": 2.5,
            "aim_host_us": 10,
        }
        figures |= in_turn(bench)
        figures |= moving(bench)
        figures |= owned_cache(bench)
        figures |= {"bytes_per_graph": bytes_per_graph(bench)}
    bench.report("graph_replay", figures)


def finished(bench: Bench, call: Callable[[], object]) -> Callable[[], object]:
    def run() -> None:
        call()
        bench.stream.synchronize()

    return run


def in_turn(bench: Bench) -> dict[str, float]:
    """A loop that alternates both optimization profiles, against the sum of its parts."""
    module = Module(bench.case.path, optimization_profile="auto", use_cuda_graphs=True)
    first, second = bench.device_inputs("first"), bench.device_inputs("second")

    def both() -> None:
        module.forward(*first)
        bench.stream.synchronize()
        module.forward(*second)

    sides = {
        "first": finished(bench, lambda: module.forward(*first)),
        "second": finished(bench, lambda: module.forward(*second)),
        "in_turn": finished(bench, both),
    }
    medians = bench.host_us(sides)
    ratio = medians["in_turn"] / (medians["first"] + medians["second"])
    return {"in_turn_us": round(medians["in_turn"], 2), "in_turn_ratio": round(ratio, 3), "aim_in_turn_ratio": 1.1}


def moving(bench: Bench) -> dict[str, float]:
    """Calls that never have the addresses of one of the last: what they cost with graphs and without."""
    sides: dict[str, Callable[[], object]] = {}
    for side in ("enqueue", "replay"):
        module = Module(bench.case.path, optimization_profile="auto", use_cuda_graphs=side == "replay")
        arrays = cycle([bench.device_inputs("first") for _ in range(ADDRESSES)])
        sides[f"moving_{side}"] = lambda module=module, arrays=arrays: module.forward(*next(arrays))
    host_us = bench.host_us(sides)
    whole_us = bench.host_us({name: finished(bench, call) for name, call in sides.items()})
    figures = {f"{name}_host_us": round(value, 2) for name, value in host_us.items()}
    return figures | {f"{name}_us": round(value, 2) for name, value in whole_us.items()}


def owned_cache(bench: Bench) -> dict[str, float]:
    """A decode step of a layer whose engine owns its cache: what it costs with graphs and without."""
    case = bench.other("decoder")
    inputs = [to_device(array) for array in case.calls["first"].inputs]
    sides: dict[str, Callable[[], object]] = {}
    for side in ("enqueue", "replay"):
        module = Module(case.path, use_cuda_graphs=side == "replay")
        sides[f"owned_cache_{side}"] = lambda module=module: module.forward(*inputs)
    host_us = bench.host_us(sides)
    whole_us = bench.host_us({name: finished(bench, call) for name, call in sides.items()})
    figures = {f"{name}_host_us": round(value, 2) for name, value in host_us.items()}
    return figures | {f"{name}_us": round(value, 2) for name, value in whole_us.items()}


def bytes_per_graph(bench: Bench) -> int:
    """Device memory that further graphs take, over the number of them."""
    module = Module(bench.case.path, optimization_profile="auto", use_cuda_graphs=True)
    whole = bench.case.calls["largest"].inputs[0]
    inputs = [to_device(whole[: 2 + size]) for size in range(SHAPES)]

    def calls(arrays: list[object]) -> None:
        for array in arrays:
            for _ in range(3):
                module.forward(array)
        bench.stream.synchronize()

    for array in inputs:
        module.forward(array)  # outputs have their memory, contexts have theirs
    bench.stream.synchronize()
    before = free_memory()
    calls(inputs)
    return (before - free_memory()) // SHAPES


if __name__ == "__main__":
    main()
