"""What the export boundary refuses, with graphs and tables made by hand."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pytest
import torch
from executorch.exir import to_edge, to_edge_transform_and_lower
from executorch.exir.backend.compile_spec_schema import CompileSpec
from executorch.exir.backend.partitioner import DelegationSpec, Partitioner, PartitionResult
from torch.export import Dim, ExportedProgram

from executorch_tensorrt import Input, export
from executorch_tensorrt.engines.builder import BuildRequest, BuiltEngine
from executorch_tensorrt.engines.cpu.builder import CpuEngineBuilder
from executorch_tensorrt.exporter.backend import TensorRTBackend
from executorch_tensorrt.exporter.partition import ENGINE_SPEC, PROFILES_SPEC
from executorch_tensorrt.graphs.shapes import DimRange, ProfileTable

PROFILES = [
    {"min_shape": (1, 4), "opt_shape": (1, 4), "max_shape": (1, 4)},
    {"min_shape": (2, 4), "opt_shape": (8, 4), "max_shape": (16, 4)},
]


class Double(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([x, x])


class Flat(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (x + y).flatten()


class Nonzero(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nonzero(x)


def _program(model: torch.nn.Module, *shapes: Sequence[int], most: Mapping[int, int]) -> ExportedProgram:
    """An edge program whose inputs vary in the dims that have size 3 (up to `most[3]`), size 5 and so on."""
    dynamic = [{k: Dim.DYNAMIC(max=most[size]) for k, size in enumerate(shape) if size in most} for shape in shapes]
    args = tuple(torch.ones(shape) for shape in shapes)
    return to_edge(torch.export.export(model, args, dynamic_shapes=tuple(dynamic))).exported_program()


def _specs(table: ProfileTable) -> list[CompileSpec]:
    return [
        CompileSpec(ENGINE_SPEC, json.dumps({"kind": "cpu", "options": {}}).encode()),
        CompileSpec(PROFILES_SPEC, table.to_json().encode()),
    ]


def _table(program: ExportedProgram, *profiles: Sequence[DimRange], signature: str = "x[0]=1:1:1") -> ProfileTable:
    """A table with one range per shape symbol of the program in each profile."""
    names = sorted(str(symbol) for symbol in program.range_constraints)
    return ProfileTable(tuple(dict(zip(names, profile, strict=True)) for profile in profiles), signature)


def _lower(*partitions: tuple[ExportedProgram, ProfileTable]) -> None:
    programs, tables = zip(*partitions, strict=True)
    TensorRTBackend.preprocess_multimethod({"encode": list(programs)}, {"encode": [_specs(table) for table in tables]})


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (
            "x[0]=1:1:1|2:8:32",
            "method 'encode' partitions 0 and 2 have engines with different meanings of profile 1: got x[0] = "
            "2:8:16 and 2:8:32 (min:opt:max), allowed one meaning for a method; give both the same inputs.",
        ),
        ("x[0]=1:1:1", "different numbers of optimization profiles for x[0]: got 2 and 1"),
        ("y[0]=1:1:1|2:8:16", "different numbers of optimization profiles for x[0]: got 2 and 0"),
    ],
)
def test_boundary_refuses_engines_that_disagree_about_an_index(other: str, message: str) -> None:
    program = _program(Double(), (3, 4), most={3: 64})
    one = _table(program, [DimRange(1, 1, 1)], [DimRange(2, 8, 16)], signature="x[0]=1:1:1|2:8:16")
    static = _program(Double(), (2, 4), most={})
    with pytest.raises(ValueError, match="^method '") as error:
        _lower(
            (program, one), (static, ProfileTable(({}, {}), one.signature)), (program, replace(one, signature=other))
        )
    assert message in str(error.value)


def test_boundary_refuses_another_order_of_declarations() -> None:
    program = _program(Double(), (3, 4), most={3: 64})
    table = _table(program, [DimRange(1, 1, 1)], signature="x[0]=1:1:1,y[0]=2:2:2")
    with pytest.raises(ValueError, match="optimization profiles declared in another order"):
        _lower((program, table), (program, replace(table, signature="y[0]=2:2:2,x[0]=1:1:1")))


def test_boundary_allows_other_profiles_in_another_method() -> None:
    program = _program(Double(), (3, 4), most={3: 64})
    decode = _table(program, [DimRange(1, 1, 1)])
    prefill = _table(program, [DimRange(2, 8, 16)], signature="x[0]=2:8:16")
    results = TensorRTBackend.preprocess_multimethod(
        {"decode": [program], "prefill": [program]}, {"decode": [_specs(decode)], "prefill": [_specs(prefill)]}
    )
    assert list(results) == ["decode", "prefill"]


def test_boundary_sees_partitions_of_another_partitioner() -> None:
    class Careless(Partitioner):
        """Puts every operator into an engine of its own, with a table of its own."""

        def partition(self, exported_program: ExportedProgram) -> PartitionResult:
            tags = {}
            for index, node in enumerate(n for n in exported_program.graph.nodes if n.op == "call_function"):
                table = _table(exported_program, [DimRange(1, 1, 1 + index)], signature=f"x[0]=1:1:{1 + index}")
                node.meta["delegation_tag"] = f"tag{index}"
                tags[f"tag{index}"] = DelegationSpec(TensorRTBackend.__name__, _specs(table))
            return PartitionResult(exported_program, tags)

    model = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Tanh())
    program = torch.export.export(model, (torch.ones(3, 4),), dynamic_shapes=({0: Dim.DYNAMIC(max=64)},))
    with pytest.raises(ValueError, match=r"method 'forward' partitions 0 and 1 .* got x\[0\] = 1:1:1 and 1:1:2"):
        to_edge_transform_and_lower(program, partitioner=[Careless()])


def test_boundary_refuses_a_profile_outside_the_exported_range() -> None:
    program = _program(Double(), (3, 4), most={3: 64})
    table = _table(program, [DimRange(1, 1, 64)], [DimRange(2, 8, 65)])
    with pytest.raises(ValueError, match="^method '") as error:
        _lower((program, table))
    assert str(error.value) == (
        "method 'encode' partition 0 has an input that leaves the range of the exported program: got 2..65 (opt 8) for "
        "input 'x' dim 0 in profile 1, allowed 1..64; narrow the profile, or export the program with a wider range."
    )


def test_boundary_refuses_an_output_larger_than_planned() -> None:
    program = _program(Double(), (3, 4), most={3: 64})
    narrow = _program(Double(), (3, 4), most={3: 15})
    (output,), (narrower,) = (p.graph.output_node().args[0] for p in (program, narrow))
    output.meta["val"] = narrower.meta["val"]
    with pytest.raises(ValueError, match="^method '") as error:
        _lower((program, _table(program, [DimRange(1, 1, 15)], [DimRange(1, 1, 16)])))
    assert str(error.value) == (
        "method 'encode' partition 0 has an output that does not fit the memory planned for it: got (32, 4) for output "
        "'aten_cat_default' at the maximum of profile 1, allowed (30, 4); narrow the profile, or export the program "
        "with a wider range."
    )


def test_boundary_refuses_an_output_beyond_int32() -> None:
    program = _program(Flat(), (3, 1), (1, 5), most={3: 65536, 5: 65536})
    table = _table(program, [DimRange(1, 1, 65536), DimRange(1, 1, 65536)])
    with pytest.raises(ValueError, match=r"too large for ExecuTorch: got 4294967296 .* allowed 2147483647; narrow"):
        _lower((program, table))


def test_boundary_refuses_an_output_of_data_dependent_shape() -> None:
    program = _program(Nonzero(), (2, 4), most={})
    with pytest.raises(ValueError, match="'aten_nonzero_default', allowed shapes that follow from the inputs'"):
        _lower((program, ProfileTable(({},), "")))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda bounds: bounds[:1],
            "another number of optimization profiles than the method declares: got 1, wanted 2",
        ),
        (
            lambda bounds: [bounds[0], [[DimRange(2, 8, 15), DimRange(4, 4, 4)]]],
            "accepts other shapes than the method declares: got (2..15 (opt 8), 4..4) for input 'x' in profile 1, "
            "wanted (2..16 (opt 8), 4..4)",
        ),
    ],
)
def test_boundary_refuses_an_engine_with_other_bounds(
    monkeypatch: pytest.MonkeyPatch, change: Callable[[object], Sequence[object]], message: str
) -> None:
    build = CpuEngineBuilder.build

    def altered(self: CpuEngineBuilder, request: BuildRequest) -> BuiltEngine:
        built = build(self, request)
        return replace(built, bounds=change(built.bounds))

    monkeypatch.setattr(CpuEngineBuilder, "build", altered)
    with pytest.raises(ValueError, match="^method '") as error:
        export(Double().eval(), [Input(profiles=PROFILES)])
    assert message in str(error.value)
