"""Which operators of a program the runtime has kernels for."""

# ExecuTorch's schema carries few types.
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

import warnings
from collections.abc import Iterable

from executorch.exir.schema import ExecutionPlan

from executorch_tensorrt import _native


def warn_of_missing_kernels(plans: Iterable[ExecutionPlan]) -> None:
    """Say which operators keep a program from being loaded, unless its user brings kernels for them."""
    needed = {f"{op.name}.{op.overload}".rstrip(".") for plan in plans for op in plan.operators}
    missing = sorted(needed - _native.kernel_names())
    if missing:
        warnings.warn(
            f"ExecuTorch has no kernel for some operators: got {', '.join(missing)}, without which it does not "
            "load the program; write the model without them, or register kernels where it runs.",
            stacklevel=2,
        )
