"""What can be known to fail at run time: found in a program's graph, before engines are built and after lowering."""

# torch's graphs and sympy's expressions carry few types.
# pyright: reportMissingTypeStubs=false, reportPrivateUsage=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Mapping

import sympy
import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument, OutputKind

from executorch_tensorrt.exporter.binding import input_label, tensor_inputs
from executorch_tensorrt.exporter.formulas import Formulas, WrongFormula, shape_at
from executorch_tensorrt.graphs.nodes import aten_op
from executorch_tensorrt.graphs.shapes import ProfileTable, symbols_of, tensor_exprs
from executorch_tensorrt.graphs.sources import source_location

# They compute in one type, but their rules for fake tensors do not say so.
_ONE_DTYPE = {
    *("linear", "bilinear", "matmul", "mm", "bmm", "addmm", "baddbmm", "addbmm", "mv", "addmv", "dot", "einsum"),
    *("conv1d", "conv2d", "conv3d", "convolution", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"),
}


def check_values(program: ExportedProgram) -> None:
    """See that a program returns what a method can return, and that operators get the data types that they take.

    Raises:
        ValueError: the message says which output, or which input or operator, and what to do.
    """
    _check_outputs(program)
    _check_dtypes(program)


def _check_outputs(program: ExportedProgram) -> None:
    outputs = [spec.arg for spec in program.graph_signature.output_specs if spec.kind == OutputKind.USER_OUTPUT]
    for position, output in enumerate(outputs):
        if isinstance(output, ConstantArgument) and isinstance(output.value, str):
            raise ValueError(
                f"the model's output {position} is a text: got {output.value!r}, allowed tensors, numbers and None; "
                "return the others alone."
            )
    if all(isinstance(output, ConstantArgument) and output.value is None for output in outputs):
        raise ValueError("the model returns nothing: got None, allowed tensors and numbers; return what it computes.")


def _check_dtypes(program: ExportedProgram) -> None:
    inputs = {node: input_label(position, node.name) for position, node in enumerate(tensor_inputs(program))}
    for node in program.graph.nodes:
        op = aten_op(node.target)
        if op is None or op._schema.name.removeprefix("aten::") not in _ONE_DTYPE:
            continue
        tensors = {arg: arg.meta["val"].dtype for arg in node.all_input_nodes if _is_tensor(arg)}
        if len(set(tensors.values())) < 2:
            continue
        place = source_location(node.meta.get("stack_trace"))
        where = f"'{op}'" + (f" ({place})" if place else "")
        for arg, dtype in reversed(tensors.items()):
            origin = _origin(arg)
            others = sorted({_name(other) for other in tensors.values() if other != dtype})
            if origin in inputs:
                raise ValueError(
                    f"{inputs[origin]} has a data type that {where} can't combine with its other arguments: got "
                    f"{_name(dtype)}, allowed {', '.join(others)}; declare dtype='{others[0]}', or convert it in the "
                    "model."
                )
        names = ", ".join(dict.fromkeys(map(_name, tensors.values())))
        raise ValueError(
            f"{where} gets tensors of several data types: got {names}, allowed one; convert them in the model."
        )


def _is_tensor(node: torch.fx.Node) -> bool:
    return isinstance(node.meta.get("val"), torch.Tensor)


def _origin(node: torch.fx.Node) -> torch.fx.Node:
    """Where a value of this data type comes from, through operators that keep it."""
    while node.op == "call_function":
        sources = [arg for arg in node.all_input_nodes if _is_tensor(arg)]
        if not sources or sources[0].meta["val"].dtype != node.meta["val"].dtype:
            break
        node = sources[0]
    return node


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def check_lowered(program: ExportedProgram, table: ProfileTable) -> None:
    """See that the shapes of a lowered program are right in every optimization profile.

    While a program is lowered, some operators ask whether a size is above or below another, and get the answer for the
    example that was traced.

    Raises:
        ValueError: an operator has another shape, so memory would be planned for the wrong one.
    """
    symbols = {
        symbol.name: symbol
        for node in tensor_inputs(program)
        for expr in tensor_exprs(node.meta["val"])
        for symbol in symbols_of(expr)
    }
    if not symbols:
        return
    formulas = Formulas(program)
    checked: list[Mapping[sympy.Symbol, int]] = []
    for index, profile in enumerate(table.profiles):
        for place in range(3):
            sizes = {symbol: profile[name][place] for name, symbol in symbols.items()}
            wrong = None if sizes in checked else formulas.first_wrong(sizes)
            checked.append(sizes)
            if wrong is not None:
                raise _shape_error(program, index, sizes, wrong)


def _shape_error(
    program: ExportedProgram, index: int, sizes: Mapping[sympy.Symbol, int], wrong: WrongFormula
) -> ValueError:
    place = source_location(wrong.node.meta.get("stack_trace"))
    where = ", ".join(
        f"{input_label(position, node.name)} {shape_at(node.meta['val'], sizes)}"
        for position, node in enumerate(tensor_inputs(program))
    )
    operator = f"'{aten_op(wrong.node.target)}'" + (f" ({place})" if place else "")
    return ValueError(
        f"the lowered model does not hold for all of profile {index}: got {wrong.got} from {operator} for {where}, "
        f"planned {wrong.expected}; the operator takes another path there: narrow the profiles, or change the model."
    )
