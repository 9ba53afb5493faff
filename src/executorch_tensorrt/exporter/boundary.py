"""What must hold where a method's partitions become engines, whatever way they came in.

ExecuTorch shows the backend every partition of every method at once, before memory is planned. What is found here would
otherwise be found by an inference.
"""

# torch's graphs and sympy's expressions carry few types.
# pyright: reportMissingTypeStubs=false, reportPrivateUsage=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from executorch.exir import ExecutorchProgramManager
from executorch.exir.schema import ExecutionPlan, Tensor
from executorch.exir.sym_util import eval_upper_bound

from executorch_tensorrt.engines.blob import Binding
from executorch_tensorrt.engines.builder import InputBounds
from executorch_tensorrt.exporter.binding import input_label
from executorch_tensorrt.exporter.partition import Partition, ranges_of
from executorch_tensorrt.graphs.shapes import DimRange, has_unbacked, lower_bound, range_text
from executorch_tensorrt.inputs import Input
from executorch_tensorrt.program.signatures import signature_difference

# ExecuTorch keeps sizes in int32.
_LARGEST_DIM = 2**31 - 1


def check_partitions(methods: Mapping[str, Sequence[Partition]]) -> None:
    """Find what is wrong before an engine is built.

    Raises:
        ValueError: engines of a method differ in what an optimization profile means; a profile leaves the domain that
            the program was exported with; an output does not fit the memory that will be planned for it, or has a shape
            that depends on data. The message names method, partitions, profile and both values.
    """
    for method, partitions in methods.items():
        _check_signatures(method, partitions)
        for partition in partitions:
            label = f"method '{method}' partition {partition.index}"
            _check_outputs_are_bounded(label, partition)
            for index, profile in enumerate(partition.profiles):
                _check_domain(label, partition, index, profile)
                _check_capacity(label, partition, index, profile)


def check_bounds(method: str, partition: Partition, bounds: Sequence[InputBounds] | None) -> None:
    """See that an engine accepts exactly what was derived for it. What it is tuned for (`opt`) changes no result.

    Args:
        method: the name of the partition's method.
        partition: what the engine was built for.
        bounds: what the engine itself says; None if it can't be asked.

    Raises:
        ValueError: it says otherwise. The message names method, partition, profile, input and both values.
    """
    if bounds is None:
        return
    label = f"method '{method}' partition {partition.index}"
    derived = partition.derived_bounds()
    if len(bounds) != len(derived):
        raise ValueError(
            f"{label} has an engine with another number of optimization profiles than the method declares: got "
            f"{len(bounds)}, wanted {len(derived)}; declare the profiles that the engine was built with."
        )
    for index, (theirs, ours) in enumerate(zip(bounds, derived, strict=True)):
        for position, (got, wanted) in enumerate(zip(theirs, ours, strict=True)):
            if [(span.min, span.max) for span in got] != [(span.min, span.max) for span in wanted]:
                raise ValueError(
                    f"{label} has an engine that accepts other shapes than the method declares: got "
                    f"{_shape_text(got)} for input '{partition.bindings[position].name}' in profile {index}, wanted "
                    f"{_shape_text(wanted)}; declare the profiles that the engine was built with."
                )


def check_plan(program: ExecutorchProgramManager, declared: Mapping[str, Sequence[Input]]) -> None:
    """See that memory is planned for all that methods' inputs declare, whatever lowering came to think of a dim.

    Raises:
        ValueError: it is planned for less. The message names the input and both shapes.
    """
    for plan in program.executorch_program.execution_plan:
        _check_planned(plan, declared.get(plan.name, ()))


def _check_planned(plan: ExecutionPlan, declared: Sequence[Input]) -> None:
    planned = [value.sizes for value in (plan.values[index].val for index in plan.inputs) if isinstance(value, Tensor)]
    for position, (item, sizes) in enumerate(zip(declared, planned, strict=False)):
        if any(size < most for size, most in zip(sizes, item.union.max, strict=False)):
            raise ValueError(
                f"method '{plan.name}': memory is planned for less than {input_label(position, item.name)} declares: "
                f"got {tuple(sizes)}, wanted {tuple(item.union.max)}; narrow the profiles, or keep the operators that "
                "limit it out of engines."
            )


def _check_signatures(method: str, partitions: Sequence[Partition]) -> None:
    dynamic = [partition for partition in partitions if not partition.is_static]
    for partition in dynamic[1:]:
        difference = signature_difference(dynamic[0].signature, partition.signature)
        if difference:
            raise ValueError(
                f"method '{method}' partitions {dynamic[0].index} and {partition.index} have engines with "
                f"{difference}; give both the same inputs."
            )


def _check_outputs_are_bounded(label: str, partition: Partition) -> None:
    for node, binding in zip(partition.outputs, _output_bindings(partition), strict=True):
        if has_unbacked(node.meta["val"]):
            raise ValueError(
                f"{label} has an output whose shape depends on data: got {tuple(node.meta['val'].shape)} for output "
                f"'{binding.name}', allowed shapes that follow from the inputs' (an engine with an output allocator "
                "can't run in ExecuTorch); keep the operator out of engines with torch_executed_ops."
            )


def _check_domain(label: str, partition: Partition, index: int, profile: Mapping[str, DimRange]) -> None:
    for node, binding in zip(partition.inputs, partition.bindings, strict=False):
        for dim, (size, span) in enumerate(zip(node.meta["val"].shape, ranges_of(node, profile), strict=True)):
            lowest, highest = lower_bound(size), eval_upper_bound(size)
            if span.min < lowest or span.max > highest:
                raise ValueError(
                    f"{label} has an input that leaves the range of the exported program: got {range_text(span)} for "
                    f"input '{binding.name}' dim {dim} in profile {index}, allowed {lowest}..{highest}; narrow the "
                    "profile, or export the program with a wider range."
                )


def _check_capacity(label: str, partition: Partition, index: int, profile: Mapping[str, DimRange]) -> None:
    for node, binding in zip(partition.outputs, _output_bindings(partition), strict=True):
        largest = [span.max for span in ranges_of(node, profile)]
        planned = [eval_upper_bound(size) for size in node.meta["val"].shape]
        over = [size for size in largest if size > _LARGEST_DIM]
        if over:
            raise ValueError(
                f"{label} has an output that is too large for ExecuTorch: got {over[0]} in {tuple(largest)} for output "
                f"'{binding.name}' at the maximum of profile {index}, allowed {_LARGEST_DIM}; narrow the profile."
            )
        if prod(largest) > prod(planned):
            raise ValueError(
                f"{label} has an output that does not fit the memory planned for it: got {tuple(largest)} for output "
                f"'{binding.name}' at the maximum of profile {index}, allowed {tuple(planned)}; narrow the profile, or "
                "export the program with a wider range."
            )


def _output_bindings(partition: Partition) -> Sequence[Binding]:
    return [binding for binding in partition.bindings if not binding.is_input]


def _shape_text(ranges: Sequence[DimRange]) -> str:
    return f"({', '.join(map(range_text, ranges))})"
