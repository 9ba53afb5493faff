"""What a TensorRT plan says of itself."""

from __future__ import annotations

from executorch_tensorrt.engines.tensorrt import network
from executorch_tensorrt.engines.tensorrt.library import load_library
from executorch_tensorrt.graphs.shapes import DimRange


def reported_ranges(plan: bytes) -> list[dict[str, list[DimRange]]] | None:
    """The ranges of every input by name, per optimization profile; None where no TensorRT here loads the plan.

    Which of the two kinds a plan is for is not written on it, so both are asked.
    """
    for kind in ("tensorrt", "tensorrt_rtx"):
        try:
            library = load_library(kind)
        except RuntimeError:
            continue
        found = network.reported_ranges(library, plan)
        if found is not None:
            return [{name: [DimRange(*sizes) for sizes in dims] for name, dims in inputs.items()} for inputs in found]
    return None
