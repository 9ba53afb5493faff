"""Programs with Torch-TensorRT's engine nodes: the engines are wrapped as they are."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import to_edge_transform_and_lower
from export_cases import ranges
from torch.export.graph_signature import CustomObjArgument, InputKind
from torch_tensorrt_graphs import METADATA, Engine, blobs, compiled, fields, one_engine, same_shape

from executorch_tensorrt import Input, TensorRTPartitioner, export
from executorch_tensorrt.exporter.torch_tensorrt.wrapped import wrap_engines

ROWS = Input(profiles=ranges(((1, 4), (1, 4), (1, 4)), ((2, 4), (16, 4), (32, 4))))


def only(buffer: bytes) -> tuple[bytes, dict[str, Any]]:
    """The engine and the metadata of a program with one delegate."""
    ((_, engine, metadata),) = blobs(buffer)
    return engine, metadata


def bindings(metadata: dict[str, Any], is_input: bool) -> list[str]:
    return [item["name"] for item in metadata["io_bindings"] if item["is_input"] is is_input]


# The forms that the releases write.


def with_placeholder(program: torch.export.ExportedProgram, length: int, as_text: bool) -> torch.export.ExportedProgram:
    """The program with its engine node as lowering or cross-compiling leaves it, edited in place as they do."""
    (node,) = [n for n in program.graph.nodes if n.target is torch.ops.tensorrt.execute_engine.default]
    record = fields(b"plan of one", length=length)
    engine: Any = record[3]
    with program.graph.inserting_before(node):
        if not as_text:
            tensor = torch.frombuffer(bytearray(b"plan of one"), dtype=torch.uint8)
            program.graph_module.register_buffer("_trt_engine_0", tensor)
            program.state_dict["_trt_engine_0"] = tensor
            engine = program.graph.get_attr("_trt_engine_0")
        target = torch.ops.tensorrt.no_op_placeholder_for_execute_engine.default
        fresh = program.graph.call_function(target, (node.args[0], *record[:3], engine, *record[4:]))
    fresh.meta = dict(node.meta)
    node.replace_all_uses_with(fresh)
    program.graph.erase_node(node)
    return program


def with_legacy_object(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """The engine object as `retrace=False` lifts it: itself, under its attribute's name, with a list for its result."""
    spec = next(spec for spec in program.graph_signature.input_specs if spec.kind is InputKind.CUSTOM_OBJ)
    engine = program.constants.pop(spec.target)
    program.constants["_run_on_acc_0_engine"] = engine
    spec.target, spec.arg = "_run_on_acc_0_engine", CustomObjArgument(spec.arg.name, class_fqn="")
    for node in program.graph.nodes:
        if node.name == spec.arg.name:
            node.meta["val"] = spec.arg
        if node.name == "getitem":
            node.meta["val"] = (node.meta["val"],)
    return program


FORMS = {
    "object of 2.8": lambda: one_engine(length=10),
    "object of 2.11": lambda: one_engine(length=11),
    "object of 2.13": lambda: one_engine(length=12),
    "object of 2.14": lambda: one_engine(length=13),
    "object with a bare state": lambda: one_engine(in_tuple=False),
    "object of retrace=False": lambda: with_legacy_object(one_engine()),
    "text of 2.8": lambda: with_placeholder(one_engine(), 10, as_text=True),
    "text of 2.11": lambda: with_placeholder(one_engine(), 11, as_text=True),
    "text of 2.12": lambda: with_placeholder(one_engine(), 12, as_text=True),
    "buffer of 2.13": lambda: with_placeholder(one_engine(), 12, as_text=False),
    "buffer of 2.14": lambda: with_placeholder(one_engine(), 13, as_text=False),
}


@pytest.mark.parametrize("form", FORMS)
def test_engine_is_wrapped_unchanged_from_every_form(form: str) -> None:
    engine, metadata = only(export(FORMS[form]()).buffer)
    assert engine == b"plan of one"
    assert metadata["serialized_metadata"] == METADATA
    assert (bindings(metadata, True), bindings(metadata, False)) == (["x"], ["output0"])
    assert metadata["target_platform"] == "linux_x86_64"


def test_given_program_stays_as_it_is() -> None:
    program = one_engine()
    before = str(program), dict(program.constants)
    assert wrap_engines(program) is not program
    assert (str(program), dict(program.constants)) == before


def test_program_without_engines_is_not_copied() -> None:
    program = torch.export.export(torch.nn.Linear(2, 2), (torch.ones(1, 2),))
    assert wrap_engines(program) is program


def test_device_and_compatibility_are_kept() -> None:
    program = export(one_engine(device=3, hardware_compatible=True))
    _, metadata = only(program.buffer)
    assert (metadata["device_id"], metadata["hardware_compatible"]) == (3, True)
    assert (b"cuda:3") in [
        spec.value for spec in program.program.executorch_program.execution_plan[0].delegates[0].compile_specs
    ]


def test_partitioner_takes_engines_beside_others() -> None:
    edge = to_edge_transform_and_lower(one_engine(), partitioner=[TensorRTPartitioner([ROWS]), XnnpackPartitioner()])
    engine, metadata = only(bytes(edge.to_executorch().buffer))
    assert engine == b"plan of one"
    assert metadata["executorch_tensorrt"]["signature"] == "inputs_0[0]=1:1:1|2:16:32"


def test_what_the_engines_leave_stays_outside() -> None:
    program = export(one_engine())
    assert list(program.left_outside.values()) == ["the engines were built without it"]
    assert program.left_outside.keys() == {"aten_cumsum_default"}


# Profiles.


def test_declared_profiles_are_derived_and_signed() -> None:
    _, metadata = only(export(one_engine(), [ROWS]).buffer)
    record = metadata["executorch_tensorrt"]
    assert record["signature"] == "inputs_0[0]=1:1:1|2:16:32"
    assert record["profiles"] == [
        {"inputs": [{"min": [1, 4], "opt": [1, 4], "max": [1, 4]}]},
        {"inputs": [{"min": [2, 4], "opt": [16, 4], "max": [32, 4]}]},
    ]


def test_undeclared_profiles_are_not_invented() -> None:
    ((blob, _, metadata),) = blobs(export(one_engine()).buffer)
    record = metadata["executorch_tensorrt"]
    assert "profiles" not in record
    assert record["signature"] == ""
    assert blob.metadata.record is not None
    assert blob.metadata.record.profiles is None
    assert blob.engine_kinds == ["tensorrt", "tensorrt_rtx"]


def test_debug_handles_lead_to_the_engine_node() -> None:
    program = export(one_engine(), generate_etrecord=False)
    ((_, _, metadata),) = blobs(program.buffer)
    (source,) = metadata["executorch_tensorrt"]["sources"].values()
    assert source["location"].startswith("exporter/torch_tensorrt_graphs.py:")


# Order.


def swapped() -> torch.export.ExportedProgram:
    """a [n, 4], b [m, 2]: the engine takes b first."""
    n, m = torch.export.Dim("n", min=1, max=32), torch.export.Dim("m", min=1, max=8)
    engine = Engine(fields(b"swapped", ["second", "first"], ["of_b", "of_a"]), lambda b, a: [b.clone(), a.clone()])

    def forward(a: torch.Tensor, b: torch.Tensor, run: Any) -> Any:
        of_b, of_a = run(b, a)
        return of_a, of_b

    return compiled(forward, [engine], [torch.ones(7, 4), torch.ones(5, 2)], [{0: n}, {0: m}])


def test_bindings_follow_the_arguments_and_keep_their_profiles() -> None:
    inputs = [
        Input(profiles=ranges(((1, 4), (2, 4), (3, 4)), ((4, 4), (8, 4), (32, 4)))),
        Input(profiles=ranges(((1, 2), (1, 2), (1, 2)), ((2, 2), (4, 2), (8, 2)))),
    ]
    _, metadata = only(export(swapped(), inputs).buffer)
    order = bindings(metadata, True)
    spans = {
        name: [profile["inputs"][place]["max"] for profile in metadata["executorch_tensorrt"]["profiles"]]
        for place, name in enumerate(order)
    }
    assert spans == {"first": [[3, 4], [32, 4]], "second": [[1, 2], [8, 2]]}
    shapes = {item["name"]: item["shape"] for item in metadata["io_bindings"]}
    assert shapes == {"first": [-1, 4], "second": [-1, 2], "of_a": [-1, 4], "of_b": [-1, 2]}


def test_bindings_stand_where_the_delegate_passes_them() -> None:
    program = export(swapped())
    plan = program.program.executorch_program.execution_plan[0]
    _, metadata = only(program.buffer)
    call = next(i.instr_args for i in plan.chains[0].instructions if type(i.instr_args).__name__ == "DelegateCall")
    widths = [plan.values[index].val.sizes[1] for index in call.args]
    assert [item["shape"][1] for item in metadata["io_bindings"]] == widths


def test_unused_output_is_named_last_and_is_no_argument() -> None:
    engine = Engine(fields(b"two", outputs=["unused", "used"]), lambda x: [x.sum(), x.clone()])
    program = compiled(lambda x, run: run(x)[1], [engine], [torch.ones(2, 4)])
    _, metadata = only(export(program).buffer)
    assert bindings(metadata, False) == ["used", "unused"]
    assert metadata["executorch_tensorrt"]["arguments"] == {"inputs": [0], "outputs": [1, None]}


def test_tensor_passed_twice_is_one_argument() -> None:
    engine = Engine(fields(b"twice", ["left", "other", "right"]), lambda a, _, c: [a + c])
    program = compiled(lambda x, y, run: run(x, y, x)[0], [engine], [torch.ones(2, 4), torch.ones(2, 4)])
    _, metadata = only(export(program).buffer)
    places = dict(zip(bindings(metadata, True), metadata["executorch_tensorrt"]["arguments"]["inputs"], strict=True))
    assert places["left"] == places["right"] != places["other"]


def test_output_taken_twice_is_one_binding() -> None:
    program = compiled(
        lambda x, run: (lambda out: (out[0], torch.cumsum(out[0], 0)))(run(x)),
        [Engine(fields(b"plan"), same_shape)],
        [torch.ones(2, 4)],
    )
    _, metadata = only(export(program).buffer)
    assert bindings(metadata, False) == ["output0"]
    assert "arguments" not in metadata["executorch_tensorrt"]


def test_several_engines_keep_their_own_bytes() -> None:
    engines = [Engine(fields(name.encode()), same_shape) for name in ("first", "second")]
    program = compiled(lambda x, one, two: two(torch.cumsum(one(x)[0], 0))[0], engines, [torch.ones(2, 4)])
    assert [engine for _, engine, _ in blobs(export(program).buffer)] == [b"first", b"second"]


def test_one_engine_run_twice_is_two_delegates() -> None:
    engine = Engine(fields(b"shared"), same_shape)
    program = compiled(lambda x, run: run(torch.cumsum(run(x)[0], 0))[0], [engine], [torch.ones(2, 4)])
    assert [engine for _, engine, _ in blobs(export(program).buffer)] == [b"shared"] * 2


def test_output_shape_is_a_formula_of_the_inputs() -> None:
    s = torch.export.Dim("s", min=1, max=16)
    engine = Engine(fields(b"grows"), lambda x: [x.new_empty(2 * x.shape[0] + 1, x.shape[1])])
    program = compiled(lambda x, run: torch.cumsum(run(x)[0], 0), [engine], [torch.ones(3, 4)], [{0: s}])
    lowered = export(program, [Input(profiles=ranges(((1, 4), (2, 4), (16, 4))))])
    output = lowered.program.executorch_program.execution_plan[0]
    assert output.values[output.outputs[0]].val.sizes == [33, 4]


def test_constant_that_an_engine_takes_is_an_argument() -> None:
    engine = Engine(fields(b"plan", ["x", "weight"]), lambda x, w: [x + w])

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(2, 4), requires_grad=False)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.ops.tensorrt.execute_engine([x, self.weight], engine)[0]

    _, metadata = only(export(torch.export.export(Net(), (torch.ones(2, 4),))).buffer)
    assert set(bindings(metadata, True)) == {"x", "weight"}


# Aliased outputs.


def cache(aliases: str = "k_out@k@kv_cache_update", takes_update: bool = True) -> torch.export.ExportedProgram:
    """A buffer that the engine updates in place, declared as Torch-TensorRT 2.14 does."""
    engine = Engine(fields(b"kv", ["x", "k"], ["y", "k_out"], aliases=aliases), lambda x, k: [x.clone(), k.clone()])

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.engine = engine
            self.register_buffer("k", torch.zeros(8, 4))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y, k = torch.ops.tensorrt.execute_engine([x, self.k], self.engine)
            if takes_update:
                self.k.copy_(k)
            return y

    with torch.no_grad():
        return torch.export.export(Net(), (torch.ones(2, 4),))


def test_aliased_output_is_kept() -> None:
    ((blob, engine, metadata),) = blobs(export(cache()).buffer)
    assert (blob.magic, engine) == ("TR02", b"kv")
    assert metadata["aliased_io"] == [{"output": "k_out", "input": "k", "kind": "kv_cache_update"}]
    assert set(bindings(metadata, True)) == {"x", "k"}


@pytest.mark.parametrize(
    ("aliases", "message"),
    [
        ("k_out@nothing@user", "got 'k_out' in place of 'nothing'"),
        ("x@k@user", "got 'x' in place of 'k'"),
        ("k_out@k@user%y@k@user", "got 'k_out' in place of 'k'"),
        ("k_out@k", "got 'k_out@k', wanted output@input@kind"),
    ],
)
def test_aliased_output_that_makes_no_sense_is_refused(aliases: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        export(cache(aliases))


def test_update_that_nobody_takes_is_refused() -> None:
    with pytest.raises(ValueError, match="got output 'k_out' unused, wanted a buffer mutation"):
        export(cache(takes_update=False))


# What can't be wrapped.


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"output_allocator": True}, "outputs whose shapes depend on data: got one that needs an output allocator"),
        ({"inputs": ["a%b"]}, r"got 2 input names \(a, b\), wanted 1; a name with '%'"),
        ({"outputs": ["a%b"]}, r"got 2 output names \(a, b\), wanted 1; a name with '%'"),
        ({"outputs": ["x"]}, "two bindings of one name: got 'x' twice"),
        ({"engine": b""}, "an engine in an unknown form"),
    ],
)
def test_engine_that_cannot_be_wrapped_is_refused(record: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        export(one_engine(**record))


def test_damaged_text_is_refused() -> None:
    program = with_placeholder(one_engine(), 10, as_text=True)
    (node,) = [n for n in program.graph.nodes if "no_op" in n.name]
    node.update_arg(4, "no base64!")
    with pytest.raises(ValueError, match="got text that is no base64"):
        export(program)


def test_record_that_is_too_short_is_refused() -> None:
    engine = Engine(fields(b"plan")[:6], same_shape)
    with pytest.raises(ValueError, match="got 6 fields, allowed 10 or more"):
        export(compiled(lambda x, run: run(x)[0], [engine], [torch.ones(2, 4)]))


def test_names_beyond_ascii_survive() -> None:
    _, metadata = only(export(one_engine(inputs=['café "q"'], outputs=["back\\slash"])).buffer)
    assert [item["name"] for item in metadata["io_bindings"]] == ['café "q"', "back\\slash"]


def test_profiles_that_leave_the_program_are_refused() -> None:
    with pytest.raises(ValueError, match="got 1..64"):
        export(one_engine(), [Input(profiles=ranges(((1, 4), (2, 4), (64, 4))))])
