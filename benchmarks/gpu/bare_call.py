"""A steady call through a .pte program, against TensorRT's own call on a context that is made alike."""

from collections.abc import Callable

from gpu_timing import BareCall, Bench

from executorch_tensorrt import CudaStreamGuard

KEPT: list[BareCall] = []


def bare(bench: Bench, call: str, profile: int) -> Callable[[], object]:
    """`execute_async_v3` of a context of this profile, with its shapes and addresses set."""
    side = BareCall(bench, call, profile)
    KEPT.append(side)
    execute, handle = side.execute, bench.stream.handle
    return lambda: execute(handle)


def main() -> None:
    bench = Bench("A steady call through a program takes at most 8 us more than TensorRT's own.", "mlp")
    figures: dict[str, float] = {"aim_more_us": 8}
    with CudaStreamGuard(bench.stream.handle):
        for profile, call in enumerate(("first", "second")):
            sides = {"program": bench.caller(call), "bare": bare(bench, call, profile)}
            medians = bench.host_us(sides)
            figures |= {f"profile_{profile}_{name}_us": round(value, 2) for name, value in medians.items()}
            figures[f"profile_{profile}_more_us"] = round(medians["program"] - medians["bare"], 2)
    bench.report("bare_call", figures)


if __name__ == "__main__":
    main()
