"""What traced calls of engines tell about the shapes of a method's inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from executorch_tensorrt import program as pte
from executorch_tensorrt.profiling.session import Run, traced_shapes
from executorch_tensorrt.program.declaration import Declaration, MethodInput
from executorch_tensorrt.program.plan import origins


def shape_finder(method: pte.Method, declaration: Declaration) -> Callable[[Run], Run]:
    """A function that adds the shapes of the method's inputs to a run, from those that engines traced.

    An engine's input is one of the method's where the program passes it on as it is. A run is left as it is where the
    shape of any input does not follow.
    """
    passed = dict(enumerate(_passed(method)))
    dtypes = [item.dtype for item in declaration.inputs]

    def found(run: Run) -> Run:
        known: dict[int, Sequence[int]] = {}
        for event in run.events:
            if event.kind == "delegate":
                traced = zip(passed.get(event.instruction, []), traced_shapes(event), strict=False)
                known.update((position, shape) for position, shape in traced if position >= 0)
        try:
            sizes = symbol_sizes(declaration, known)
            shapes = [_shape(item, sizes) for item in declaration.inputs]
        except (ValueError, KeyError):
            return run
        return replace(run, shapes=shapes, dtypes=dtypes)

    return found


def _passed(method: pte.Method) -> list[list[int]]:
    """For each instruction and argument, which input of the method it is; -1 for none."""
    positions = {value.index: position for position, value in enumerate(method.inputs)}
    origin = origins(method)
    return [[positions.get(origin.get(index, index), -1) for index in step.arguments] for step in method.instructions]


def _shape(item: MethodInput, sizes: Mapping[str, int]) -> list[int]:
    return [dim.scale * sizes[dim.symbol] + dim.offset if dim.symbol else dim.offset for dim in item.dims]


def symbol_sizes(declaration: Declaration, shapes: Mapping[int, Sequence[int]]) -> dict[str, int]:
    """The sizes of shape symbols in a call, from the shapes of some of the method's inputs, by position.

    Raises:
        ValueError: a shape has another rank than its input.
    """
    sizes: dict[str, int] = {}
    for position, shape in shapes.items():
        dims = declaration.inputs[position].dims
        if len(dims) != len(shape):
            raise ValueError(f"input {position}: got {len(shape)} dims, allowed {len(dims)}")
        for dim, size in zip(dims, shape, strict=True):
            if dim.symbol:
                sizes.setdefault(dim.symbol, (size - dim.offset) // dim.scale)
    return sizes
