"""Torch-TensorRT's exporter has a backend class of the same name as ours, for a `.pte` knows backends by that name.

ExecuTorch looks a backend up among the subclasses of `BackendDetails`, by class name, and takes the last one. So ours
moves to the end whenever our partitioner has marked something, and hands over what another partitioner marked.
"""

# ExecuTorch comes without stubs.
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

from collections.abc import Sequence

from executorch.exir.backend.backend_details import BackendDetails
from executorch.exir.backend.compile_spec_schema import CompileSpec

from executorch_tensorrt.exporter.partition import ENGINE_SPEC


def claim_name(backend: type[BackendDetails]) -> None:
    """See that ExecuTorch finds this class by its name, whatever was imported later."""
    backend.__bases__ = backend.__bases__  # a class that is given its bases becomes the last of their subclasses


def is_ours(compile_specs: Sequence[CompileSpec]) -> bool:
    """Whether our partitioner marked a partition."""
    return any(spec.key == ENGINE_SPEC for spec in compile_specs)


def namesake(backend: type[BackendDetails]) -> type[BackendDetails]:
    """The class of the same name whose partitions come to ours.

    Raises:
        RuntimeError: there is none.
    """
    name = backend.__name__
    others = [other for other in BackendDetails.__subclasses__() if other.__name__ == name and other is not backend]
    if not others:
        raise RuntimeError(
            f"'{name}' got a partition that another partitioner marked: got no compile spec '{ENGINE_SPEC}', wanted "
            "executorch_tensorrt's; use its TensorRTPartitioner, or import the package that the other one is of."
        )
    return others[-1]
