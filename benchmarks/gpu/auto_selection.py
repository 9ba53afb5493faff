"""What it costs to choose the optimization profile from the shapes, against naming it."""

from collections.abc import Callable

from gpu_timing import Bench

from executorch_tensorrt import CudaStreamGuard, Module, OptimizationProfileGuard


def main() -> None:
    bench = Bench("Choosing the optimization profile from the shapes costs less than 1 us a call.", "mlp")
    module = Module(bench.case.path)
    calls = [bench.device_inputs(call) for call in ("first", "second")]

    def steady(guard: Callable[[], OptimizationProfileGuard]) -> Callable[[], object]:
        def run() -> None:
            with guard():
                module.forward(*calls[0])

        return run

    def in_turn(guards: list[Callable[[], OptimizationProfileGuard]]) -> Callable[[], object]:
        def run() -> None:
            for guard, inputs in zip(guards, calls, strict=True):
                with guard():
                    module.forward(*inputs)

        return run

    pinned = [lambda: OptimizationProfileGuard(0), lambda: OptimizationProfileGuard(1)]
    auto = OptimizationProfileGuard.auto
    with CudaStreamGuard(bench.stream.handle):
        kept = bench.host_us({"pinned": steady(pinned[0]), "auto": steady(auto)}, calls=10)
        changed = bench.host_us({"pinned": in_turn(pinned), "auto": in_turn([auto, auto])}, calls=10)
    bench.report(
        "auto_selection",
        {
            "same_profile_pinned_us": round(kept["pinned"], 3),
            "same_profile_auto_adds_ns": round((kept["auto"] - kept["pinned"]) * 1000),
            "in_turn_pinned_us": round(changed["pinned"] / 2, 3),
            "in_turn_auto_adds_ns": round((changed["auto"] - changed["pinned"]) / 2 * 1000),
        },
    )


if __name__ == "__main__":
    main()
