"""TensorRTPartitioner in ExecuTorch's own flow, alone and beside others."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import EdgeProgramManager, to_edge_transform_and_lower
from executorch.exir.backend.partitioner import Partitioner
from executorch.exir.delegate import executorch_call_delegate
from export_cases import assert_matches_eager, corners, model_of, ranges, rows
from torch.export import Dim, ExportedProgram
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils._sympy.value_ranges import ValueRanges

from executorch_tensorrt import Input
from executorch_tensorrt.engines.blob import unpack_metadata
from executorch_tensorrt.exporter import TensorRTPartitioner, export
from executorch_tensorrt.exporter.backend import EVENTS


class Layers(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(8, 8)
        self.second = torch.nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, s, _ = x.shape
        flat = torch.cumsum(self.first(x).reshape(b * s, 8), 1)
        wide = torch.cumsum(flat.reshape(b, s, 8) * 2, 2)
        return self.second(wide).reshape(b * s, 8) + torch.arange(s).sum()


ROWS = ranges(((1, 1, 8), (1, 1, 8), (2, 1, 8)), ((1, 2, 8), (2, 8, 8), (4, 32, 8)))
CASES = [[[(1, 1, 8)], [(2, 1, 8)]], [[(1, 2, 8)], [(4, 32, 8)], [(3, 5, 8)]]]
OUTSIDE = ("aten.cumsum",)


@pytest.fixture(scope="module")
def model() -> Layers:
    torch.manual_seed(0)
    return Layers().eval()


@pytest.fixture(scope="module")
def program(model: Layers) -> ExportedProgram:
    dims = {0: Dim("b", min=1, max=4), 1: Dim("s", min=1, max=32)}
    with torch.no_grad():
        return torch.export.export(model, (torch.ones(3, 5, 8),), dynamic_shapes=(dims,))


def lower(program: ExportedProgram, *partitioners: Partitioner) -> EdgeProgramManager:
    with torch.no_grad():
        return to_edge_transform_and_lower(program, partitioner=list(partitioners))


def delegates(edge: EdgeProgramManager) -> list[tuple[torch.fx.Node, Any]]:
    module = edge.exported_program().graph_module
    calls = [node for node in module.graph.nodes if node.target is executorch_call_delegate]
    return [(call, getattr(module, call.args[0].target)) for call in calls]


@pytest.fixture(scope="module")
def split(program: ExportedProgram) -> EdgeProgramManager:
    return lower(program, TensorRTPartitioner([Input(profiles=ROWS)], torch_executed_ops=OUTSIDE))


def test_partitioner_lets_no_integer_cross_a_border(split: EdgeProgramManager) -> None:
    found = delegates(split)
    assert len(found) == 3
    for call, _ in found:
        assert all(isinstance(argument.meta["val"], torch.Tensor) for argument in call.args[1:])
        assert all(isinstance(value, torch.Tensor) for value in call.meta["val"])


def test_partitioner_leaves_no_unused_size_outside(split: EdgeProgramManager) -> None:
    targets = [node.target for node in split.exported_program().graph.nodes if node.op == "call_function"]
    assert torch.ops.aten.sym_size.int not in targets


def test_partitioner_puts_weights_into_engines(split: EdgeProgramManager) -> None:
    signature = split.exported_program().graph_signature
    assert not signature.parameters
    assert len(signature.user_inputs) == 1


def test_partitioner_matches_eager_between_engines(split: EdgeProgramManager, model: Layers) -> None:
    assert_matches_eager(model, split.to_executorch().buffer, CASES)


def test_partitioner_gives_every_engine_one_signature(split: EdgeProgramManager) -> None:
    metadata = [unpack_metadata(lowered.processed_bytes)["executorch_tensorrt"] for _, lowered in delegates(split)]
    assert {entry["signature"] for entry in metadata} == {"x[0]=1:1:2|1:2:4,x[1]=1:1:1|2:8:32"}
    assert {len(entry["profiles"]) for entry in metadata} == {2}


def test_partitioner_ties_events_to_operators(split: EdgeProgramManager) -> None:
    for _, lowered in delegates(split):
        handles = lowered.meta["debug_handle_map"]
        assert tuple(handles) == EVENTS
        assert all(handles.values())


def test_partitioner_takes_the_programs_own_range(program: ExportedProgram, model: Layers) -> None:
    edge = lower(program, TensorRTPartitioner())
    ((_, lowered),) = delegates(edge)
    ours = unpack_metadata(lowered.processed_bytes)["executorch_tensorrt"]
    assert ours["signature"] == "x[0]=1:3:4,x[1]=1:5:32"
    assert_matches_eager(model, edge.to_executorch().buffer, [[[(1, 1, 8)], [(4, 32, 8)]]])


@pytest.mark.parametrize("ours_first", [True, False])
def test_partitioner_composes_with_xnnpack(program: ExportedProgram, model: Layers, ours_first: bool) -> None:
    outside = ("aten.linear", "aten.cumsum") if ours_first else OUTSIDE
    ours = TensorRTPartitioner([Input(profiles=ROWS)], torch_executed_ops=outside)
    order: list[Partitioner] = [ours, XnnpackPartitioner()]
    edge = lower(program, *(order if ours_first else order[::-1]))
    assert {lowered.backend_id for _, lowered in delegates(edge)} == {"TensorRTBackend", "XnnpackBackend"}
    assert_matches_eager(model, edge.to_executorch().buffer, CASES)


def test_partitioner_keeps_parts_of_an_excluded_operator_outside(program: ExportedProgram) -> None:
    ours = TensorRTPartitioner([Input(profiles=ROWS)], torch_executed_ops=[torch.ops.aten.linear.default])
    edge = lower(program, ours)
    left = [str(node.target) for node in edge.exported_program().graph.nodes if node.op == "call_function"]
    assert any("addmm" in target for target in left)
    assert set(ours.left_outside.values()) == {"torch_executed_ops names it"}


def test_partitioner_leaves_small_blocks_outside(program: ExportedProgram, model: Layers) -> None:
    ours = TensorRTPartitioner([Input(profiles=ROWS)], torch_executed_ops=OUTSIDE, min_block_size=4)
    edge = lower(program, ours)
    assert 0 < len(delegates(edge)) < 3
    assert "its block has fewer than 4 operators" in ours.left_outside.values()
    assert_matches_eager(model, edge.to_executorch().buffer, CASES)


def test_partitioner_writes_the_profiling_level_only_when_asked(
    program: ExportedProgram, split: EdgeProgramManager
) -> None:
    def keys(edge: EdgeProgramManager) -> dict[str, bytes]:
        return {spec.key: spec.value for _, lowered in delegates(edge) for spec in lowered.compile_specs}

    assert "torchtrt_profile_level" not in keys(split)
    edge = lower(program, TensorRTPartitioner([Input(profiles=ROWS)], profiling="phases"))
    assert keys(edge)["torchtrt_profile_level"] == b"phases"


def test_partitioner_finds_wrong_inputs_before_lowering(program: ExportedProgram) -> None:
    too_long = ranges(((1, 1, 8), (1, 1, 8), (2, 33, 8)))
    with pytest.raises(ValueError, match=r"input 0 'x' dim 1 leaves the range of the exported program: got 1..33"):
        lower(program, TensorRTPartitioner([Input(profiles=too_long)]))


def test_partitioner_leaves_mutated_buffers_outside() -> None:
    class Counter(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.zeros(1))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.count.add_(1)
            return x * self.count

    program = torch.export.export(Counter().eval(), (torch.ones(2),))
    edge = lower(program, TensorRTPartitioner())
    assert edge.exported_program().graph_signature.buffers_to_mutate
    from executorch_tensorrt import Module

    module = Module(edge.to_executorch().buffer)
    got = [torch.as_tensor(module.forward(torch.ones(2))[0]).tolist() for _ in range(3)]
    assert got == [[1, 1], [2, 2], [3, 3]]


@pytest.mark.parametrize("name", ["foo", "aten.foo", "aten.linear.nosuch", "aten", "", "torch.ops.aten"])
def test_partitioner_refuses_an_operator_that_is_none(name: str) -> None:
    with pytest.raises(ValueError, match="torch_executed_ops names no operator of torch: got"):
        TensorRTPartitioner([Input(profiles=ROWS)], torch_executed_ops=[name])


def test_partitioner_refuses_a_name_in_place_of_a_list() -> None:
    with pytest.raises(
        TypeError, match=r"torch_executed_ops is not a list: got 'aten.tanh', .*; write \['aten.tanh'\]"
    ):
        TensorRTPartitioner([Input(profiles=ROWS)], torch_executed_ops="aten.tanh")


def test_partitioner_writes_every_profiling_option_that_is_asked_for(program: ExportedProgram) -> None:
    asked = {"level": "layers", "format": "trex"}
    result = TensorRTPartitioner([Input(profiles=ROWS)], profiling=asked)
    specs = {s.key: bytes(s.value).decode() for s in result._compile_specs("{}") if s.key.startswith("torchtrt")}
    assert specs == {f"torchtrt_profile_{key}": value for key, value in asked.items()}


@pytest.mark.parametrize(
    ("profiling", "message"),
    [
        ({"levels": "off"}, "unknown key: got 'levels', allowed 'level', 'format'; correct it"),
        ({"format": "chrome"}, "profiling format is not valid: got 'chrome', allowed 'etdump', 'perfetto', 'trex'"),
        ({"format": ["trex"]}, r"profiling format is not valid: got \['trex'\], allowed 'etdump', 'perfetto', 'trex'"),
        (
            {"path_prefix": "/traces"},
            "names a folder: got path_prefix '/traces', allowed .* give profile_path_prefix to",
        ),
    ],
)
def test_partitioner_refuses_wrong_profiling(profiling: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TensorRTPartitioner([Input(profiles=ROWS)], profiling=profiling)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"engine": "gpu"}, r"engine is not known: got 'gpu', allowed 'cpu'"),
        ({"engine_options": {"fast": True}}, r"engine_options has an unknown entry: got 'fast', allowed none"),
        ({"min_block_size": 0}, r"min_block_size is not valid: got 0, allowed an int from 1"),
        (
            {"profiling": "loud"},
            r"profiling level is not valid: got 'loud', allowed 'off', 'delegate', 'phases', 'lay",
        ),
    ],
)
def test_partitioner_refuses_options(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TensorRTPartitioner(**options)  # type: ignore[arg-type]


def test_partitioner_refuses_what_is_no_operator() -> None:
    with pytest.raises(TypeError, match="torch_executed_ops has a wrong entry: got 3"):
        TensorRTPartitioner(torch_executed_ops=[3])


def test_partitioner_keeps_batches_that_convolutions_ask_about() -> None:
    """torch's fake convolution compares the batch with 16, and would take the answer for a bound of the memory plan."""
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU()).eval()
    program = torch.export.export(net, (torch.ones(5, 3, 8, 8),), dynamic_shapes=({0: Dim("batch", min=1, max=32)},))
    item = rows((1, 2, 4), (5, 20, 32), tail=(3, 8, 8))
    edge = lower(program, TensorRTPartitioner([item], torch_executed_ops=["aten.relu"]))
    assert_matches_eager(net, edge.to_executorch().buffer, corners([item]))


def test_partitioner_leaves_torch_as_it_was(split: EdgeProgramManager) -> None:
    """The program's dims keep their ranges from then on; those of others go on being narrowed where they must."""
    assert not ShapeEnv._suppress_guards_tls()
    with pytest.raises(ValueError, match="was narrowed"):
        export(model_of(lambda self, x: x * 2 if x.shape[0] > 8 else x), [rows((2, 16, 64))])


def test_partitioner_refuses_what_lowering_got_wrong() -> None:
    program = torch.export.export(
        model_of(lambda self, x: x[:, -4:] * 2),
        (torch.ones(2, 6),),
        dynamic_shapes=({1: Dim("columns", min=5, max=9)},),
    )
    item = Input(profiles=ranges(((2, 5), (2, 6), (2, 9))))
    assert delegates(lower(program, TensorRTPartitioner([item])))
    (symbol,) = program.range_constraints
    program.range_constraints[symbol] = ValueRanges(1, 9)
    with pytest.raises(
        ValueError, match=r"the lowered model does not hold for all of profile 0: got \(2, 1\) from 'aten"
    ):
        lower(program, TensorRTPartitioner([Input(profiles=ranges(((2, 1), (2, 6), (2, 9))))]))


def test_partitioner_refuses_data_types_that_do_not_go_together() -> None:
    program = torch.export.export(torch.nn.Linear(4, 2).eval(), (torch.ones(2, 4, dtype=torch.int64),))
    with pytest.raises(ValueError, match=r"input 0 'input' has a data type that 'aten.linear.default'"):
        lower(program, TensorRTPartitioner())
