"""Calls on two optimization profiles in turn, against calls that stay with one."""

from gpu.cuda import to_host
from gpu_timing import Bench

from executorch_tensorrt import CudaStreamGuard, Module

ALTERNATIONS = 100


def main() -> None:
    bench = Bench("A call on profile 0 and one on profile 1 take at most 1.1 times the two steady calls.", "mlp")
    with CudaStreamGuard(bench.stream.handle):
        module = Module(bench.case.path, optimization_profile="auto")
        first, second = bench.device_inputs("first"), bench.device_inputs("second")

        def in_turn() -> tuple[list[object], list[object]]:
            return module.forward(*first), module.forward(*second)

        sides = {"profile_0": bench.caller("first"), "profile_1": bench.caller("second"), "in_turn": in_turn}
        medians = bench.host_us(sides)
        bench.report(
            "profile_switch",
            {
                **{f"{name}_us": round(value, 2) for name, value in medians.items()},
                "ratio": round(medians["in_turn"] / (medians["profile_0"] + medians["profile_1"]), 3),
                "aim_ratio": 1.1,
                "alternations": ALTERNATIONS,
                "bit_equal": bit_equal(bench, in_turn),
            },
        )


def bit_equal(bench: Bench, in_turn: object) -> int:
    """How many alternations give the bytes of the first."""

    def outputs() -> list[bytes]:
        both = in_turn()  # type: ignore[operator]
        bench.stream.synchronize()
        return [to_host(output).tobytes() for several in both for output in several]

    expected = outputs()
    return sum(outputs() == expected for _ in range(ALTERNATIONS))


if __name__ == "__main__":
    main()
