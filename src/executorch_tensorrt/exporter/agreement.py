"""Whether a traced program does, at given sizes, what the model does there: found out by running both."""

# torch's graphs and sympy's expressions carry few types.
# pyright: reportMissingTypeStubs=false, reportPrivateUsage=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import sympy
import torch
from torch.export import ExportedProgram
from torch.utils import _pytree as pytree

from executorch_tensorrt.exporter.binding import tensor_inputs
from executorch_tensorrt.exporter.formulas import Formulas, shape_at
from executorch_tensorrt.graphs.shape_env import hints_of

_log = logging.getLogger(__name__)

Arguments = tuple[tuple[Any, ...], dict[str, Any]]
"""What a model is called with, by position and by name."""


class Difference(NamedTuple):
    """How program and model differ at some sizes."""

    text: str
    model_fails: bool = False


class Agreement:
    """Compares a program with the model that it was traced from.

    Args:
        model: the module.
        program: what it became.
        make_arguments: arguments for the model, given the shapes of its tensors in order.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        program: ExportedProgram,
        make_arguments: Callable[[Sequence[tuple[int, ...]]], Arguments],
    ) -> None:
        self._model = model
        self._program = program
        self._make_arguments = make_arguments
        self._formulas = Formulas(program)
        self._hints = hints_of(program)

    def difference(self, sizes: Mapping[sympy.Symbol, int]) -> Difference | None:
        """Where the two differ when the program's symbols have these sizes; None if they agree."""
        every = {**self._hints, **sizes}
        shapes = [shape_at(node.meta["val"], every) for node in tensor_inputs(self._program)]
        found = self._compare(shapes) or self._wrong_shape(every)
        if found:
            _log.info("the program differs from the model for shapes %s: %s", shapes, found.text)
        return found

    def _compare(self, shapes: Sequence[tuple[int, ...]]) -> Difference | None:
        with torch.no_grad(), _unchanged(self._model, self._program):
            args, kwargs = self._make_arguments(shapes)
            try:
                expected = pytree.tree_leaves(self._model(*args, **kwargs))
            except Exception as error:
                return Difference(f"{type(error).__name__} '{_first_line(error)}' from the model itself", True)
        with torch.no_grad(), _unchanged(self._model, self._program):
            args, kwargs = self._make_arguments(shapes)
            try:
                got = pytree.tree_leaves(self._module()(*args, **kwargs))
                torch.testing.assert_close(got, expected, rtol=1e-3, atol=1e-4, equal_nan=True)
            except Exception as error:
                _log.info("%s", _first_line(error))
                return Difference("other outputs than the model's")
        return None

    def _module(self) -> Any:
        """The program as a module that takes sizes outside its ranges as well: they are what is asked."""
        module: Any = self._program.module(check_guards=False)
        module.range_constraints = {}
        return module

    def _wrong_shape(self, sizes: Mapping[sympy.Symbol, int]) -> Difference | None:
        wrong = self._formulas.first_wrong(sizes)
        return wrong and Difference(f"{wrong.got} for '{wrong.node.target}' in place of {wrong.expected}")


@contextmanager
def _unchanged(model: torch.nn.Module, program: ExportedProgram) -> Generator[None]:
    """Undo what a call writes into buffers; model and program may share them."""
    # Which of them are written is not known before the program is decomposed.
    names = program.graph_signature.buffers
    found = [state[name] for name in names for state in (program.state_dict, program.constants) if name in state]
    kept = [(buffer, buffer.clone()) for buffer in [*model.buffers(), *found] if isinstance(buffer, torch.Tensor)]
    try:
        yield
    finally:
        for buffer, value in kept:
            buffer.copy_(value)


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
