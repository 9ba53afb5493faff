"""CPU engines: one nested program, a method per optimization profile."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from executorch.exir import EdgeCompileConfig, to_edge
from executorch.runtime import Runtime
from export_cases import Shape
from torch.export import Dim, ExportedProgram

from executorch_tensorrt.engines.builder import BuildRequest
from executorch_tensorrt.engines.cpu.builder import CpuEngineBuilder
from executorch_tensorrt.exporter.partition import ranges_of
from executorch_tensorrt.graphs.edge_to_aten import edge_to_aten
from executorch_tensorrt.graphs.ranged import with_ranges
from executorch_tensorrt.graphs.shapes import DimRange


class Net(torch.nn.Module):
    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(64, 64, dtype=dtype)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x) + torch.arange(x.shape[0], dtype=x.dtype).unsqueeze(1)


def edge(dtype: torch.dtype) -> tuple[Net, ExportedProgram, str]:
    torch.manual_seed(0)
    model = Net(dtype).eval()
    with torch.no_grad():
        traced = torch.export.export(
            model, (torch.ones(5, 64, dtype=dtype),), dynamic_shapes=({0: Dim("rows", min=2, max=64)},)
        )
        config = EdgeCompileConfig(preserve_ops=[torch.ops.aten.linear.default], _check_ir_validity=False)
        program = to_edge(traced, compile_config=config).exported_program()
    (symbol,) = program.range_constraints
    return model, program, symbol.name


def request(program: ExportedProgram, profiles: Sequence[dict[str, DimRange]]) -> BuildRequest:
    (name,) = program.graph_signature.user_inputs
    (node,) = (node for node in program.graph.nodes if node.name == name)
    return BuildRequest(program, profiles, [], [[ranges_of(node, profile)] for profile in profiles], {})


def run(engine: bytes, method: str, x: torch.Tensor) -> torch.Tensor:
    return Runtime.get().load_program(engine).load_method(method).execute([x])[0].clone()


@pytest.fixture(scope="module")
def net() -> tuple[Net, ExportedProgram, str]:
    return edge(torch.float32)


@pytest.fixture(scope="module")
def engine(net: tuple[Net, ExportedProgram, str]) -> bytes:
    _, program, rows = net
    spans = [DimRange(1, 1, 1), DimRange(2, 4, 8), DimRange(9, 16, 64), DimRange(1, 1, 1)]
    with torch.no_grad():
        return CpuEngineBuilder().build(request(program, [{rows: span} for span in spans])).data


@pytest.mark.parametrize(("profile", "sizes"), [(0, [1]), (1, [2, 5, 8]), (2, [9, 64]), (3, [1])])
def test_cpu_builder_makes_a_method_per_profile(
    net: tuple[Net, ExportedProgram, str], engine: bytes, profile: int, sizes: Sequence[int]
) -> None:
    for size in sizes:
        x = torch.randn(size, 64)
        torch.testing.assert_close(run(engine, f"profile_{profile}", x), net[0](x).detach())


def test_cpu_builder_specialises_a_profile_of_one_point(engine: bytes) -> None:
    methods = Runtime.get().load_program(engine)
    shapes: list[Shape] = [methods.metadata(f"profile_{index}").input_tensor_meta(0).sizes() for index in range(4)]
    assert [tuple(shape) for shape in shapes] == [(1, 64), (8, 64), (64, 64), (1, 64)]
    with pytest.raises(RuntimeError):
        run(engine, "profile_0", torch.ones(2, 64))


def test_cpu_builder_plans_no_memory_for_inputs_and_outputs(engine: bytes) -> None:
    method = Runtime.get().load_program(engine).metadata("profile_2")
    assert not method.input_tensor_meta(0).is_memory_planned()
    assert not method.output_tensor_meta(0).is_memory_planned()


def test_cpu_builder_stores_weights_once(engine: bytes) -> None:
    assert len(engine) < 64 * 64 * 4 + 16_000


def test_cpu_builder_leaves_the_partition_as_it_was(net: tuple[Net, ExportedProgram, str]) -> None:
    _, program, rows = net
    before = str(program.graph)
    CpuEngineBuilder().build(request(program, [{rows: DimRange(2, 2, 8)}]))
    assert str(program.graph) == before


def test_cpu_builder_decomposes_what_xnnpack_refuses() -> None:
    model, program, rows = edge(torch.float64)
    profiles = [{rows: DimRange(2, 4, 8)}, {rows: DimRange(9, 16, 64)}]
    with torch.no_grad():
        engine = CpuEngineBuilder().build(request(program, profiles)).data
    for index, size in enumerate((8, 64)):
        x = torch.randn(size, 64, dtype=torch.float64)
        torch.testing.assert_close(run(engine, f"profile_{index}", x), model(x).detach())


def test_with_ranges_shares_weights_and_replaces_points(net: tuple[Net, ExportedProgram, str]) -> None:
    _, program, rows = net
    fixed = with_ranges(program, {rows: DimRange(3, 3, 3)}).program
    assert fixed.state_dict is program.state_dict
    assert not fixed.range_constraints
    assert [tuple(node.meta["val"].shape) for node in fixed.graph.nodes if node.name == "x"] == [(3, 64)]
    assert not any("sym_size" in str(node.target) for node in fixed.graph.nodes)


def test_edge_to_aten_gives_a_program_that_runs(net: tuple[Net, ExportedProgram, str], tmp_path: Path) -> None:
    model, program, _ = net
    aten = edge_to_aten(program)
    assert all(
        isinstance(node.target, torch._ops.OpOverload) or node.target.__module__ == "_operator"
        for node in aten.graph.nodes
        if node.op == "call_function"
    )
    x = torch.randn(7, 64)
    torch.testing.assert_close(aten.module()(x), model(x))
