"""The tables that the verifier reads by are those of the executorch wheel."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import executorch  # pyright: ignore[reportMissingTypeStubs]
import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
VERIFY = REPOSITORY / "native" / "verify"
WHEEL = Path(executorch.__path__[0])
PROGRAM = WHEEL / "schema" / "program.fbs"
XNNPACK = WHEEL / "backends" / "xnnpack" / "serialization" / "runtime_schema.fbs"

# Per file and enum: the schema's table, and its names of the fields.
FIELDS = {
    "program.cpp ProgramField": (PROGRAM, "Program", "execution_plan"),
    "program.cpp MethodField": (PROGRAM, "ExecutionPlan", "name"),
    "parts.cpp ProgramField": (
        PROGRAM,
        "Program",
        "constant_buffer segments constant_segment mutable_data_segments named_data",
    ),
    "parts.cpp SegmentField": (PROGRAM, "DataSegment", "offset size"),
    "parts.cpp OffsetsField": (PROGRAM, "SubsegmentOffsets", "segment_index offsets"),
    "parts.cpp NamedField": (PROGRAM, "NamedData", "key segment_index"),
    "values.cpp MethodField": (PROGRAM, "ExecutionPlan", "values non_const_buffer_sizes non_const_buffer_device"),
    "values.cpp ValueField": (PROGRAM, "EValue", "val_type val"),
    "values.cpp TensorField": (
        PROGRAM,
        "Tensor",
        "scalar_type storage_offset sizes dim_order data_buffer_idx allocation_info layout shape_dynamism "
        "extra_tensor_info",
    ),
    "values.cpp AllocationField": (PROGRAM, "AllocationDetails", "memory_id memory_offset_low memory_offset_high"),
    "values.cpp ExtraField": (
        PROGRAM,
        "ExtraTensorInfo",
        "fully_qualified_name location device_type device_index",
    ),
    "values.cpp DeviceField": (PROGRAM, "NonConstBufferDevice", "buffer_idx device_type device_index"),
    "method.cpp MethodField": (PROGRAM, "ExecutionPlan", "inputs outputs chains operators"),
    "method.cpp ChainField": (PROGRAM, "Chain", "instructions"),
    "method.cpp InstructionField": (PROGRAM, "Instruction", "instr_args_type instr_args"),
    "method.cpp CallField": (PROGRAM, "KernelCall", "op_index args"),
    "method.cpp MoveField": (PROGRAM, "MoveCall", "move_from move_to"),
    "method.cpp JumpField": (PROGRAM, "JumpFalseCall", "cond_value_index destination_instruction"),
    "method.cpp OperatorField": (PROGRAM, "Operator", "name overload"),
    "delegates.cpp MethodField": (PROGRAM, "ExecutionPlan", "delegates"),
    "delegates.cpp ProgramField": (PROGRAM, "Program", "backend_delegate_data"),
    "delegates.cpp DelegateField": (PROGRAM, "BackendDelegate", "id processed compile_specs"),
    "delegates.cpp ReferenceField": (PROGRAM, "BackendDelegateDataReference", "location index"),
    "delegates.cpp CompileSpecField": (PROGRAM, "CompileSpec", "key value"),
    "xnnpack.cpp GraphField": (XNNPACK, "XNNGraph", "xnodes xvalues num_externs constant_buffer constant_data"),
    "xnnpack.cpp UnionField": (XNNPACK, "XValue", "xvalue_union_type xvalue_union"),
    "xnnpack.cpp TensorField": (
        XNNPACK,
        "XNNTensorValue",
        "datatype num_dims dims constant_buffer_idx external_id flags id_out",
    ),
    "xnnpack.cpp QuantizedField": (XNNPACK, "XNNQuantizedTensorValue", "tensor_value quant_params_type quant_params"),
    "xnnpack.cpp ConstantField": (XNNPACK, "ConstantDataOffset", "offset size named_key"),
}


def without_comments(schema: Path) -> str:
    return re.sub(r"//.*", "", schema.read_text())


def union(schema: Path, name: str) -> list[str]:
    """Its members, from number 1 on; the tables that they are."""
    found = re.search(rf"union {name} {{(.*?)}}", without_comments(schema), re.DOTALL)
    assert found
    return [item.split(":")[-1].strip() for item in found.group(1).split(",") if item.strip()]


def ids(schema: Path, table: str) -> dict[str, int]:
    """Of a table's fields; a union takes two."""
    text = without_comments(schema)
    body = re.search(rf"table {table} {{(.*?)}}", text, re.DOTALL)
    assert body
    unions = re.findall(r"union (\w+)", text)
    found: dict[str, int] = {}
    for field, kind in re.findall(r"(\w+)\s*:\s*([\[\]\w]+)", body.group(1)):
        if kind in unions:
            found[f"{field}_type"] = len(found)
        found[field] = len(found)
    return found


@pytest.mark.parametrize("enum", FIELDS)
def test_field_has_the_number_of_the_schema(enum: str) -> None:
    file, name = enum.split()
    schema, table, fields = FIELDS[enum]
    found = re.search(rf"enum {name} {{(.*?)}}", (VERIFY / file).read_text(), re.DOTALL)
    assert found
    written = [int(number) for number in re.findall(r"= (\d+)", found.group(1))]
    assert written == [ids(schema, table)[field] for field in fields.split()]


def test_unions_have_the_order_of_the_schema() -> None:
    assert union(PROGRAM, "InstructionArguments") == [
        "KernelCall",
        "DelegateCall",
        "MoveCall",
        "JumpFalseCall",
        "FreeCall",
    ]
    kinds = re.search(r"enum class Kind .*?{(.*?)}", (VERIFY / "values.h").read_text(), re.DOTALL)
    assert kinds
    assert [f"k{kind}" for kind in union(PROGRAM, "KernelTypes")] == [
        {"kNone": "kNull"}.get(kind, kind) for kind in re.findall(r"k\w+", kinds.group(1))[1:]
    ]


def test_nodes_name_their_values_by_the_schema() -> None:
    """By the code: the fields that are ids, and the others of one kind of node."""
    text = (VERIFY / "xnnpack_nodes.cpp").read_text()
    nodes = dict(re.findall(r"XnnpackNodeFields (\w+) = {(.*?)};", text))
    examples = {
        "one": "_XNNNode1x1", "two": "_XNNNode2x1", "with_number": "XNNELU", "with_two_lists": "XNNStaticSlice",
        "with_list": "XNNStaticTranspose", "fully_connected": "XNNFullyConnected", "convolution": "_XNNNodeConv",
        "pooling": "_XNNPooling2D", "arg_max_pooling": "XNNArgMaxPooling2d", "concatenation_of_5": "_XNNCat",
    }  # fmt: skip
    for name, table in examples.items():
        wanted = {number for field, number in ids(XNNPACK, table).items() if field.endswith("_id")}
        assert set(map(int, re.findall(r"\d+", nodes[name]))) == wanted, name
    order = union(XNNPACK, "XNodeUnion")
    for number, table in {2: "XNNFullyConnected", 7: "_XNNNodeConv", 13: "_XNNNodeConv", 39: "_XNNNodeConv"}.items():
        assert order[number - 1] == table


def test_operators_are_those_of_the_wheel() -> None:
    tool = REPOSITORY / "tools" / "update_operators.py"
    same = subprocess.run([sys.executable, tool, "--check"], capture_output=True, check=False).returncode == 0
    assert same, "run .venv/bin/python tools/update_operators.py"
