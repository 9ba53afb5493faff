"""A delegate call with a tiny engine against the same nested program called directly, both from C++."""

import statistics

import torch
from timing import BUILD, microbench, report

from executorch_tensorrt import Input, export
from executorch_tensorrt.program import read_program
from executorch_tensorrt.program.blobs import read_engine

ROWS = (1, 2, 8)


def write_models() -> tuple[str, str]:
    """The program, and the nested program that is its engine."""
    BUILD.mkdir(parents=True, exist_ok=True)
    outer, nested = BUILD / "tiny.pte", BUILD / "tiny_nested.pte"
    ranges = [{"min_shape": (1, 4), "opt_shape": (2, 4), "max_shape": (8, 4)}]
    program = export(torch.nn.ReLU().eval(), [Input(profiles=ranges)])
    program.save(outer)
    (delegate,) = read_program(outer).methods[0].delegates
    nested.write_bytes(read_engine(delegate).engine)
    return str(outer), str(nested)


if __name__ == "__main__":
    models = write_models()
    runs = [microbench("delegate", *models, "2") for _ in range(5)]
    delegate = statistics.median(run["delegate_ns"] for run in runs)
    nested = statistics.median(run["nested_ns"] for run in runs)
    report(
        "delegate_call",
        "A delegate call costs at most 3 us more than the nested program that is its engine.",
        {
            "delegate_us": round(delegate / 1000, 3),
            "nested_us": round(nested / 1000, 3),
            "difference_us": round((delegate - nested) / 1000, 3),
            "aim_difference_us": 3,
        },
    )
