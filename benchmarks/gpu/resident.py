"""MiniLM on 16 tokens: arrays in device memory, against arrays on the host that every call copies."""

from gpu.cuda import Stream
from gpu_timing import Bench

from executorch_tensorrt import Module


def main() -> None:
    bench = Bench("Device arrays save the copies between host and device.", "encoder")
    values = bench.case.calls["first"].inputs
    stream = Stream()
    sides = {
        f"{place}{'_replay' if replay else ''}": (
            bench.caller("first", use_cuda_graphs=replay) if place == "resident" else staged(bench, replay)
        )
        for place in ("resident", "staged")
        for replay in (False, True)
    }
    stream.synchronize()
    medians = bench.host_us(sides)  # no stream is named: a call returns when it is done
    figures = {f"{name}_us": round(value, 2) for name, value in medians.items()}
    bench.report(
        "resident",
        {
            **figures,
            "tokens": values[0].shape[1],
            "staged_to_resident": round(medians["staged"] / medians["resident"], 3),
            "staged_to_resident_replay": round(medians["staged_replay"] / medians["resident_replay"], 3),
        },
    )


def staged(bench: Bench, replay: bool) -> object:
    module = Module(bench.case.path, optimization_profile="auto", use_cuda_graphs=replay)
    inputs = bench.case.calls["first"].inputs
    return lambda: module.forward(*inputs)


if __name__ == "__main__":
    main()
