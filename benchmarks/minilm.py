"""MiniLM through the CPU engine against the same model lowered to stock ExecuTorch with XNNPACK."""

from collections.abc import Callable

import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import to_edge_transform_and_lower
from timing import BUILD, interleaved_us, report

from executorch_tensorrt import Module, export
from executorch_tensorrt.demo.encoder import declared_inputs, load_encoder

LENGTHS = (16, 128)


def write_models() -> dict[str, str]:
    """The program with one engine of two profiles, and the stock one over the same range; kept between runs."""
    BUILD.mkdir(parents=True, exist_ok=True)
    engine, xnnpack = BUILD / "minilm.pte", BUILD / "minilm_xnnpack.pte"
    if not engine.exists():
        export(load_encoder().model, declared_inputs()).save(engine)
    if not xnnpack.exists():
        example = torch.ones(1, 100, dtype=torch.int64)
        shapes = ({1: torch.export.Dim("sequence", min=2, max=256)},) * 2
        with torch.no_grad():
            program = torch.export.export(load_encoder().model, (example, example), dynamic_shapes=shapes)
            edge = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
            xnnpack.write_bytes(edge.to_executorch().buffer)
    return {"engine": str(engine), "xnnpack": str(xnnpack)}


def call(module: Module, length: int) -> Callable[[], object]:
    ids = torch.arange(1000, 1000 + length).reshape(1, length)
    mask = torch.ones_like(ids)
    return lambda: module.forward(ids, mask)


if __name__ == "__main__":
    sides = {name: Module(path, optimization_profile="auto") for name, path in write_models().items()}
    figures: dict[str, float] = {"aim_ratio": 1.03}
    for length in LENGTHS:
        calls = {name: call(module, length) for name, module in sides.items()}
        medians = interleaved_us(calls, rounds=61, calls=5 if length < 64 else 2)
        figures |= {f"{name}_{length}_tokens_us": round(value, 1) for name, value in medians.items()}
        figures[f"ratio_{length}_tokens"] = round(medians["engine"] / medians["xnnpack"], 3)
    report("minilm", "MiniLM takes at most 1.03 times as long as lowered to stock XNNPACK.", figures)
