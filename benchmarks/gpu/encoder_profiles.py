"""MiniLM with 16 tokens on the optimization profile for queries, against the one for documents."""

from collections.abc import Callable

from gpu_timing import Bench

from executorch_tensorrt import CudaStreamGuard


def main() -> None:
    bench = Bench("A query of 16 tokens takes less time on its own profile than on that of documents.", "encoder")

    def until_done(profile: int) -> Callable[[], object]:
        call = bench.caller("first", optimization_profile=profile)

        def run() -> None:
            call()
            bench.stream.synchronize()

        return run

    with CudaStreamGuard(bench.stream.handle):
        medians = bench.host_us({"query": until_done(0), "document": until_done(1)})
    figures = {f"{name}_profile_us": round(value, 1) for name, value in medians.items()}
    bench.report("encoder_profiles", {**figures, "ratio": round(medians["query"] / medians["document"], 3)})


if __name__ == "__main__":
    main()
