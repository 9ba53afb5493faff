"""A steady call through a .pte program, against TensorRT's own call on a context that is made alike."""

from collections.abc import Callable

from gpu.cuda import DeviceArray
from gpu_timing import Bench

from executorch_tensorrt import CudaStreamGuard
from executorch_tensorrt.engines.tensorrt.runtime import load_engine
from executorch_tensorrt.program import read_program
from executorch_tensorrt.program.blobs import read_engine

KEPT: list[object] = []


def bare(bench: Bench, call: str, profile: int) -> Callable[[], object]:
    """`execute_async_v3` of a context of this profile, with its shapes and addresses set."""
    (delegate,) = read_program(bench.case.path).methods[0].delegates
    blob = read_engine(delegate)
    metadata = blob.header.metadata
    engine = load_engine(
        "tensorrt",
        memoryview(blob.engine),
        "",
        [binding.name for binding in metadata.inputs],
        [binding.name for binding in metadata.outputs],
    )
    memory = DeviceArray((max(map(engine.activation_size, range(len(engine.profiles)))),), "u1")
    context = engine.create_context(profile, False, bench.stream.handle, memory.address, memory.nbytes)
    bench.stream.synchronize()
    (values,) = bench.device_inputs(call)
    output = DeviceArray(bench.case.calls[call].outputs[0].shape, "f4")
    context.set_input_shape(0, values.shape)
    context.infer_output_shapes()
    context.set_input_address(0, values.address)
    context.set_output_address(0, output.address)
    KEPT.extend((engine, context, memory, values, output))
    execute = context._context.execute_async_v3  # pyright: ignore[reportPrivateUsage]
    handle = bench.stream.handle
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
    KEPT.reverse()
    KEPT.clear()


if __name__ == "__main__":
    main()
