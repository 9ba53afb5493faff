"""What each level of tracing adds to a call that returns before its work is done."""

from gpu_timing import Bench

from executorch_tensorrt import CudaStreamGuard

LEVELS = ("off", "delegate", "phases", "layers")


def main() -> None:
    bench = Bench("Level phases adds at most 5 us to a call.", "mlp")
    with CudaStreamGuard(bench.stream.handle):
        medians = bench.host_us({level: bench.caller("first", profile_level=level) for level in LEVELS})
    added = {f"{level}_adds_us": round(medians[level] - medians["off"], 2) for level in LEVELS[1:]}
    bench.report("trace_levels", {"off_us": round(medians["off"], 2), **added, "aim_phases_adds_us": 5})


if __name__ == "__main__":
    main()
