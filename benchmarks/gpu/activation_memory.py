"""The activation memory of an engine whose optimization profiles have all run."""

from unittest.mock import patch

from gpu.cuda import free_memory
from gpu_timing import Bench

from executorch_tensorrt import Module
from executorch_tensorrt.engines.tensorrt.runtime import PlanContext, PlanEngine


def main() -> None:
    bench = Bench(
        "Optimization profiles share one block of activation memory, as large as the largest needs.", "encoder"
    )
    given: list[int] = []
    sizes: list[int] = []
    create = PlanEngine.create_context

    def record(engine: PlanEngine, profile: int, layers: bool, stream: int, address: int, size: int) -> PlanContext:
        given.append(size)
        sizes[:] = [engine.activation_size(each) for each in range(len(engine.profiles))]
        return create(engine, profile, layers, stream, address, size)

    with patch.object(PlanEngine, "create_context", record):
        module = Module(bench.case.path, optimization_profile="auto")
        free = [free_memory()]
        for call in ("first", "second", "first", "largest"):
            module.forward(*bench.case.calls[call].inputs)
            free.append(free_memory())
    bench.report(
        "activation_memory",
        {
            **{f"profile_{profile}_needs_bytes": size for profile, size in enumerate(sizes)},
            "given_bytes": given[-1] if given else 0,
            "sum_bytes": sum(sizes),
            "first_profile_takes_bytes": free[0] - free[1],
            "second_profile_takes_bytes": free[1] - free[4],
        },
    )


if __name__ == "__main__":
    main()
