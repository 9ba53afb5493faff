"""Entering and leaving an OptimizationProfileGuard."""

from timing import interleaved_us, median_of, microbench, report

from executorch_tensorrt import OptimizationProfileGuard


def python_guard() -> None:
    with OptimizationProfileGuard(1):
        pass


if __name__ == "__main__":
    report(
        "guard",
        "A guard costs at most 50 ns in C++.",
        {
            "cpp_ns": round(median_of(5, lambda: microbench("guard")["median_ns"]), 1),
            "python_ns": round(interleaved_us({"guard": python_guard}, rounds=51, calls=2000)["guard"] * 1000),
            "aim_cpp_ns": 50,
        },
    )
