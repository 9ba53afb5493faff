"""From ONNX operator set 18 to 17, the last that TensorRT 8.6 knows, and to what its parser does right of that.

The exporter writes 18 and later. onnx's own converter takes no step down over a reduction, whose axes became an input.
"""

# onnx_ir's values carry few types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir

# Version 1.12 of ONNX brought set 17.
_IR_VERSION = 8

_REDUCTIONS = (
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceMax",
    "ReduceMean",
    "ReduceMin",
    "ReduceProd",
    "ReduceSumSquare",
)
_NEW_OPERATORS = ("BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "Col2Im", "GroupNormalization", "Mish")


class NoFormError(ValueError):
    """A node can't be said in set 17; `node` is its name."""

    def __init__(self, node: ir.Node, why: str) -> None:
        super().__init__(f"{node.op_type} has no form in ONNX operator set 17: {why}")
        self.node = node.name or ""


def to_opset_17(model: ir.Model) -> None:
    """Rewrite a model of set 18 in place.

    Raises:
        NoFormError: a node can't be said in set 17.
    """
    for node in tuple(model.graph):
        if node.op_type in _NEW_OPERATORS:
            raise NoFormError(node, "it is new in 18")
        if node.op_type in _REWRITES:
            _REWRITES[node.op_type](node)
        node.version = None
    model.opset_imports[""] = 17
    model.ir_version = _IR_VERSION


def _reduction(node: ir.Node) -> None:
    axes = _constant(node, 1)
    keep_all = node.attributes.pop("noop_with_empty_axes", None)
    if axes is None and keep_all is not None and keep_all.as_int():
        node.op_type = "Identity"
        node.attributes.pop("keepdims", None)
    elif axes is not None:
        node.attributes["axes"] = ir.AttrInt64s("axes", axes)
    node.resize_inputs(1)


def _shape(node: ir.Node) -> None:
    """TensorRT 8.6 gives all dims, whatever part of them is asked for."""
    source, output = node.inputs[0], node.outputs[0]
    start, end = (node.attributes.pop(name, None) for name in ("start", "end"))
    if (start is None or start.as_int() == 0) and end is None:
        return
    rank = None if source is None or source.shape is None else len(source.shape)
    bounds = slice(start and start.as_int(), end and end.as_int()).indices(rank or 0)
    if rank is None or node.graph is None:
        raise NoFormError(node, "its tensor's rank is not known")
    indices = _initializer(node, "dims", [*range(*bounds)])
    part = ir.node("Gather", [output, indices], attributes={"axis": 0}, name=f"{node.name}_part")
    output.replace_all_uses_with(part.outputs[0], replace_graph_outputs=True)
    part.replace_input_with(0, output)
    for value, size in ((output, rank), (part.outputs[0], len(range(*bounds)))):
        value.type, value.shape = ir.TensorType(ir.DataType.INT64), ir.Shape([size])
    node.graph.insert_after(node, part)


def _squeeze(node: ir.Node) -> None:
    """TensorRT 8.6 does not look for dims of size 1 by itself."""
    source = node.inputs[0]
    if len(node.inputs) > 1 or source is None:
        return
    if source.shape is None or not source.shape.is_static():
        raise NoFormError(node, "its axes are not known")
    axes = [axis for axis, size in enumerate(source.shape) if size == 1]
    node.resize_inputs(2)
    node.replace_input_with(1, _initializer(node, "axes", axes))


def _sum(node: ir.Node) -> None:
    """No axes are all axes; TensorRT 8.6 finds nothing to do then."""
    source = node.inputs[0]
    if _constant(node, 1) or source is None or source.shape is None:
        return
    if "noop_with_empty_axes" not in node.attributes or not node.attributes["noop_with_empty_axes"].as_int():
        node.resize_inputs(2)
        node.replace_input_with(1, _initializer(node, "axes", [*range(len(source.shape))]))


def _split(node: ir.Node) -> None:
    """Without sizes the parts are equal, and their number is that of the outputs; in 18 the last may be smaller."""
    count = node.attributes.pop("num_outputs", None)
    source = node.inputs[0]
    axis = node.attributes["axis"].as_int() if "axis" in node.attributes else 0
    size = source.shape[axis] if source is not None and source.shape is not None else None
    if count is not None and (not isinstance(size, int) or size % count.as_int()):
        raise NoFormError(node, "its parts are not known to be equal")


def _pad(node: ir.Node) -> None:
    axes, pads = _constant(node, 3), _constant(node, 1)
    if axes is not None:
        rank = len(node.inputs[0].shape or ()) if node.inputs[0] is not None else 0
        if pads is None or not rank:
            raise NoFormError(node, "its axes can't be written as pads of all dims")
        every = [0] * (2 * rank)
        for place, axis in enumerate(axes):
            every[axis % rank] = pads[place]
            every[axis % rank + rank] = pads[place + len(axes)]
        node.replace_input_with(1, _initializer(node, "pads", every))
    node.resize_inputs(min(3, len(node.inputs)))


def _drop(**defaults: object) -> Callable[[ir.Node], None]:
    """Attributes that are new in 18, as long as they have their default."""

    def rewrite(node: ir.Node) -> None:
        for name, default in defaults.items():
            attribute = node.attributes.pop(name, None)
            if attribute is not None and attribute.value != default:
                raise NoFormError(node, f"its {name} is {attribute.value}")

    return rewrite


def _scatter(node: ir.Node) -> None:
    reduction = node.attributes["reduction"].as_string() if "reduction" in node.attributes else "none"
    if reduction in ("max", "min"):
        raise NoFormError(node, f"its reduction is {reduction}")


def _initializer(node: ir.Node, name: str, values: list[int]) -> ir.Value:
    """A constant of a node's own."""
    assert node.graph is not None
    tensor = ir.tensor(np.array(values, np.int64))
    value = ir.Value(
        name=f"{node.name}_{name}",
        type=ir.TensorType(tensor.dtype),
        shape=ir.Shape([len(values)]),
        const_value=tensor,
    )
    node.graph.register_initializer(value)
    return value


def _constant(node: ir.Node, index: int) -> list[int] | None:
    """The value of an input; None if there is none."""
    value = node.inputs[index] if index < len(node.inputs) else None
    if value is None:
        return None
    tensor = ir.convenience.get_const_tensor(value)
    if tensor is None:
        raise NoFormError(node, f"its input {index} is computed")
    return [int(item) for item in tensor.numpy().reshape(-1)]


_REWRITES: dict[str, Callable[[ir.Node], None]] = {
    **dict.fromkeys(_REDUCTIONS, _reduction),
    "ReduceSum": _sum,
    "Split": _split,
    "Shape": _shape,
    "Squeeze": _squeeze,
    "Pad": _pad,
    "Resize": _drop(antialias=0, axes=None, keep_aspect_ratio_policy="stretch"),
    "LpPool": _drop(ceil_mode=0, dilations=None),
    "ScatterElements": _scatter,
    "ScatterND": _scatter,
}
