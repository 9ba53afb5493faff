"""export(): models become programs that match eager PyTorch in every optimization profile, at both ends and inside."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from export_cases import Shape, assert_matches_eager, export_and_compare, normal, ranges
from torch.nn import functional

from executorch_tensorrt import Input, Module
from executorch_tensorrt.exporter import ExportedEngineProgram, TensorRTPartitioner, export


class Mlp(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(16, 32)
        self.second = torch.nn.Linear(32, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.relu(self.first(x)))


ROWS = ranges(((1, 16), (1, 16), (1, 16)), ((1, 16), (8, 16), (32, 16)))
ROW_CASES = [[[(1, 16)]], [[(1, 16)], [(9, 16)], [(32, 16)]]]


@pytest.fixture(scope="module")
def mlp() -> tuple[Mlp, ExportedEngineProgram]:
    torch.manual_seed(0)
    model = Mlp().eval()
    return model, export(model, [Input(profiles=ROWS)], generate_etrecord=True)


def test_export_matches_eager_decode_first(mlp: tuple[Mlp, ExportedEngineProgram]) -> None:
    model, program = mlp
    assert_matches_eager(model, program.buffer, ROW_CASES)


def test_export_describes_its_delegates(mlp: tuple[Mlp, ExportedEngineProgram]) -> None:
    _, program = mlp
    (delegate,) = program.delegates
    assert delegate["engine_kind"] == "cpu"
    assert delegate["signature"] == "x[0]=1:1:1|1:8:32"
    assert delegate["profiles"][1] == {"inputs": [{"min": [1, 16], "opt": [8, 16], "max": [32, 16]}]}
    assert not program.left_outside
    assert set(program.seconds) == {"trace", "lower", "emit"}


def test_export_stores_weights_once() -> None:
    model = torch.nn.Linear(1024, 1024, bias=False)
    program = export(model.eval(), [Input(profiles=ranges(((1, 1024),) * 3, ((2, 1024), (4, 1024), (9, 1024))))])
    weights = 4 * 1024 * 1024
    assert weights < len(program.buffer) < 1.03 * weights


def test_export_saves_atomically(mlp: tuple[Mlp, ExportedEngineProgram], tmp_path: Path) -> None:
    _, program = mlp
    path = tmp_path / "model.pte"
    path.write_bytes(b"old")
    program.save(path)
    program.save_etrecord(tmp_path / "model.etrecord")
    assert path.read_bytes() == program.buffer
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["model.etrecord", "model.pte"]
    assert path.stat().st_mode & 0o777 == 0o666 & ~_umask()
    with pytest.raises(FileNotFoundError):
        program.save(tmp_path / "absent" / "model.pte")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_export_is_deterministic(mlp: tuple[Mlp, ExportedEngineProgram]) -> None:
    model, program = mlp
    assert export(model, [Input(profiles=ROWS)]).buffer == program.buffer


def test_export_refuses_an_etrecord_that_it_did_not_keep(tmp_path: Path) -> None:
    program = export(Mlp().eval(), [Input((2, 16))])
    with pytest.raises(RuntimeError, match="generate_etrecord"):
        program.save_etrecord(tmp_path / "model.etrecord")


def test_export_reports_progress() -> None:
    lines: list[str] = []
    export(Mlp().eval(), [Input((2, 16))], progress=lines.append)
    assert lines == ["tracing the model", "building engines", "writing the program"]


def test_export_accepts_an_exported_program(mlp: tuple[Mlp, ExportedEngineProgram]) -> None:
    model, _ = mlp
    rows = torch.export.Dim("rows", min=1, max=32)
    traced = torch.export.export(model, (torch.ones(5, 16),), dynamic_shapes=({0: rows},))
    own = export(traced)
    assert own.delegates[0]["signature"] == "x[0]=1:5:32"
    assert_matches_eager(model, own.buffer, [[[(1, 16)], [(32, 16)]]])
    for inputs in ([Input(profiles=ROWS)], {"x": Input(profiles=ROWS)}):
        assert_matches_eager(model, export(traced, inputs).buffer, ROW_CASES)


def test_export_accepts_keyword_inputs_and_nested_ones() -> None:
    class Nested(torch.nn.Module):
        def forward(
            self, pair: tuple[torch.Tensor, torch.Tensor], named: dict[str, torch.Tensor], scale: float
        ) -> torch.Tensor:
            return (pair[0] + pair[1]) * named["a"] * scale

    rows = Input(profiles=ranges(((1, 4), (2, 4), (3, 4)), ((4, 4), (6, 4), (9, 4))))
    program = export(Nested().eval(), {"pair": (rows, rows), "named": {"a": Input((1, 4))}, "scale": 2.0})
    x, y, z = normal([(5, 4), (5, 4), (1, 4)])
    (got,) = Module(program.buffer, optimization_profile="auto").forward(x, y, z, 2.0)
    torch.testing.assert_close(got, (x + y) * z * 2)


def test_export_orders_named_inputs_as_the_model_does() -> None:
    class Ordered(torch.nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return x * 2, y + 1

    y, x = (Input(profiles=ranges(((low, 4), (low, 4), (low + 2, 4)))) for low in (1, 5))
    program = export(Ordered().eval(), {"y": y, "x": x})
    assert program.delegates[0]["signature"] == "x[0]=5:5:7,y[0]=1:1:3"
    with pytest.raises(ValueError, match=r"inputs do not name the model's arguments: got z, allowed x, y"):
        export(Ordered().eval(), {"x": x, "z": y})


class Attention(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(16)
        self.project = torch.nn.Linear(16, 48)
        self.out = torch.nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (part.unsqueeze(1) for part in self.project(self.norm(x)).chunk(3, -1))
        return self.out(functional.scaled_dot_product_attention(q, k, v).squeeze(1)) + x


BATCH_AND_SEQUENCE = ranges(((1, 1, 16), (1, 1, 16), (4, 1, 16)), ((1, 2, 16), (2, 8, 16), (4, 32, 16)))
BATCH_AND_SEQUENCE_CASES = [[[(1, 1, 16)], [(3, 1, 16)], [(4, 1, 16)]], [[(1, 2, 16)], [(4, 32, 16)], [(3, 7, 16)]]]


@pytest.mark.parametrize("outside", [(), ("aten.scaled_dot_product_attention",)], ids=["whole", "split"])
def test_export_matches_eager_batch_and_sequence(outside: Sequence[str]) -> None:
    inputs = [Input(profiles=BATCH_AND_SEQUENCE)]
    program = export_and_compare(Attention(), inputs, BATCH_AND_SEQUENCE_CASES, torch_executed_ops=outside)
    assert len(program.delegates) == 1 + len(outside)
    assert len({delegate["signature"] for delegate in program.delegates}) == 1


class Formulas(torch.nn.Module):
    """Between two engines pass sizes 2*S+1, 65-S and B*S."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)

    def forward(self, x: torch.Tensor, c: torch.Tensor) -> tuple[torch.Tensor, ...]:
        b, s, _ = x.shape
        longer = torch.tanh(torch.cat([x, x, c.expand(b, 1, 8)], 1)) * 2
        rest = torch.tanh(torch.zeros(b, 65 - s, 8) + c) + 1
        flat = torch.tanh(self.linear(x).reshape(b * s, 8)) + 1
        return longer, rest, flat.reshape(b, s, 8), functional.pad(x, (0, 0, 0, 65 - s)).sum(1)


def test_export_matches_eager_formulas_between_engines() -> None:
    x = Input(profiles=ranges(((1, 1, 8), (1, 1, 8), (2, 1, 8)), ((1, 9, 8), (2, 32, 8), (4, 64, 8))))
    cases: list[list[list[Shape]]] = [
        [[(1, 1, 8), (1, 1, 8)], [(2, 1, 8), (1, 1, 8)]],
        [[(1, 9, 8), (1, 1, 8)], [(4, 64, 8), (1, 1, 8)], [(3, 33, 8), (1, 1, 8)]],
    ]
    program = export_and_compare(
        Formulas(), [x, Input((1, 1, 8))], cases, torch_executed_ops=[torch.ops.aten.tanh], profiling="phases"
    )
    second = program.delegates[1]
    by_name = {name: index for index, name in enumerate(second["inputs"])}
    profile = second["profiles"][1]["inputs"]
    dims = {
        tuple(entry["max"]): (entry["min"], entry["opt"])
        for name, index in by_name.items()
        if name.startswith("aten_tanh")
        for entry in [profile[index]]
    }
    assert dims == {
        (4, 129, 8): ([1, 19, 8], [2, 65, 8]),
        (4, 56, 8): ([1, 1, 8], [2, 33, 8]),
        (256, 8): ([9, 8], [64, 8]),
    }


def test_export_solves_sizes_from_a_decreasing_formula() -> None:
    class Rest(torch.nn.Module):
        """The second engine sees 65-S and nothing else; at S = 64 that is a size of 1."""

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.tanh(torch.zeros(1, 65 - x.shape[1], 8) + 1) * 2

    x = Input(profiles=ranges(((1, 2, 8), (1, 3, 8), (1, 8, 8)), ((1, 9, 8), (1, 10, 8), (1, 64, 8))))
    cases = [[[(1, 2, 8)], [(1, 8, 8)]], [[(1, 9, 8)], [(1, 64, 8)]]]
    program = export_and_compare(Rest(), [x], cases, torch_executed_ops=["aten.tanh"])
    second = program.delegates[1]
    assert second["inputs"] == ["aten_tanh_default"]
    assert second["profiles"][1]["inputs"] == [{"min": [1, 1, 8], "opt": [1, 55, 8], "max": [1, 56, 8]}]


def test_export_gives_profile_1_the_largest_output() -> None:
    class Outer(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cat([x, x * 2, x * 3], 0)

    x = Input(profiles=ranges(((1, 4), (2, 4), (3, 4)), ((4, 4), (50, 4), (100, 4)), ((2, 4), (3, 4), (5, 4))))
    export_and_compare(Outer(), [x], [[[(1, 4)], [(3, 4)]], [[(4, 4)], [(100, 4)]], [[(2, 4)], [(5, 4)]]])


def test_export_gives_a_static_partition_one_profile() -> None:
    class Beside(torch.nn.Module):
        def forward(self, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
            return torch.cumsum(w * 2, 0).sum() + x * 3

    x = Input(profiles=ranges(((1, 4),) * 3, ((2, 4), (3, 4), (9, 4))))
    program = export_and_compare(
        Beside(),
        [x, Input((2, 2))],
        [[[(1, 4), (2, 2)]], [[(2, 4), (2, 2)], [(9, 4), (2, 2)]]],
        torch_executed_ops=["torch.ops.aten.cumsum.default"],
    )
    assert sorted(len(delegate["profiles"]) for delegate in program.delegates) in ([1, 2], [2, 2])


class Odd(torch.nn.Module):
    """An output that is an input, a constant output, a scalar output, an input that nothing uses, int and bool."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("constant", torch.arange(3.0))

    def forward(
        self, x: torch.Tensor, unused: torch.Tensor, i: torch.Tensor, b: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        return x, self.constant, x.sum(), torch.where(b, i, i + 1), self.constant * 2, i.sum()


def test_export_matches_eager_odd_inputs_and_outputs() -> None:
    rows = ranges(((1, 4), (2, 4), (3, 4)), ((4, 4), (8, 4), (16, 4)))
    inputs = [
        Input(profiles=rows),
        Input((2,)),
        Input(profiles=rows, dtype="int64"),
        Input(profiles=rows, dtype="bool"),
    ]

    def make(shapes: Sequence[Shape]) -> list[torch.Tensor]:
        (x,) = normal(shapes)
        return [x, torch.ones(2), (x * 9).to(torch.int64), x > 0]

    export_and_compare(Odd(), inputs, [[[(1, 4)], [(3, 4)]], [[(4, 4)], [(16, 4)]]], make)


class Convolution(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = torch.nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.norm = torch.nn.BatchNorm2d(8)
        self.pool = torch.nn.MaxPool2d(2)
        self.depthwise = torch.nn.Conv2d(8, 8, 3, groups=8, padding=1)
        self.head = torch.nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.pool(torch.relu(self.norm(self.stem(x))))
        return self.head(functional.hardswish(self.depthwise(x)).mean((2, 3)))


@pytest.mark.parametrize("outside", [(), ("aten.max_pool2d",)], ids=["whole", "split"])
def test_export_matches_eager_convolutions(outside: Sequence[str]) -> None:
    images = ranges(((1, 3, 16, 16),) * 3, ((2, 3, 16, 16), (4, 3, 32, 32), (8, 3, 64, 64)))
    cases = [[[(1, 3, 16, 16)]], [[(2, 3, 16, 16)], [(8, 3, 64, 64)], [(3, 3, 24, 40)]]]
    export_and_compare(Convolution(), [Input(profiles=images)], cases, torch_executed_ops=outside)


def test_export_matches_eager_tied_embedding() -> None:
    class Tied(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = torch.nn.Embedding(100, 16)
            self.head = torch.nn.Linear(16, 100)
            self.head.weight = self.embed.weight

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            return self.head(self.embed(ids))

    ids = Input(profiles=ranges(((1, 1),) * 3, ((1, 2), (1, 8), (1, 64))), dtype="int64")
    export_and_compare(
        Tied(), [ids], [[[(1, 1)]], [[(1, 2)], [(1, 64)]]], lambda shapes: [torch.arange(shapes[0][1]).reshape(1, -1)]
    )


class Masked(torch.nn.Module):
    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        b, s = mask.shape
        wide = mask[:, None, None, :].expand(b, 1, s, s).to(x.dtype)
        return x.unsqueeze(1) * wide + torch.arange(s).to(x.dtype)


@pytest.mark.parametrize("shared", [None, "s"], ids=["found", "declared"])
def test_export_matches_eager_mask_expanded_by_sizes(shared: str | None) -> None:
    square = ranges(((1, 2, 2),) * 3, ((1, 3, 3), (1, 4, 4), (1, 9, 9)))
    row = ranges(((1, 2),) * 3, ((1, 3), (1, 4), (1, 9)))
    inputs = [
        Input(profiles=square, shared_dims={1: shared, 2: shared} if shared else None),
        Input(profiles=row, dtype="bool", shared_dims={1: shared} if shared else None),
    ]

    def make(shapes: Sequence[Shape]) -> list[torch.Tensor]:
        return [normal(shapes)[0], normal([shapes[0][:2]])[0] > 0]

    program = export_and_compare(Masked(), inputs, [[[(1, 2, 2)]], [[(1, 3, 3)], [(1, 9, 9)], [(1, 5, 5)]]], make)
    assert program.delegates[0]["signature"] == "x[1]=2:2:2|3:4:9"


def test_export_matches_eager_sizes_that_do_not_follow_from_the_partitions_inputs() -> None:
    class Strided(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = torch.nn.Conv2d(1, 4, 3, stride=2, padding=1)
            self.second = torch.nn.Conv2d(4, 4, 3, stride=2, padding=1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.second(torch.relu(self.first(x)))

    images = ranges(((1, 1, 16, 16),) * 3, ((2, 1, 16, 16), (4, 1, 32, 32), (8, 1, 64, 64)))
    cases = [[[(1, 1, 16, 16)]], [[(2, 1, 16, 16)], [(8, 1, 64, 64)], [(3, 1, 25, 41)]]]
    program = export_and_compare(Strided(), [Input(profiles=images)], cases, torch_executed_ops=["aten.relu"])
    assert [delegate["inputs"] for delegate in program.delegates] == [["x"], ["x", "aten_relu_default"]]


@pytest.mark.parametrize("outside", [(), ("aten.tanh",)], ids=["whole", "split"])
def test_export_matches_eager_channels_last(outside: Sequence[str]) -> None:
    class ChannelsLast(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = torch.nn.Conv2d(3, 4, 3, padding=1)
            self.head = torch.nn.Linear(4, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = torch.tanh(self.conv(x.to(memory_format=torch.channels_last)))
            return self.head(x.mean((2, 3)))

    images = ranges(((1, 3, 8, 8),) * 3, ((2, 3, 8, 8), (2, 3, 8, 8), (4, 3, 8, 8)))
    cases = [[[(1, 3, 8, 8)]], [[(2, 3, 8, 8)], [(4, 3, 8, 8)]]]
    program = export_and_compare(ChannelsLast(), [Input(profiles=images)], cases, torch_executed_ops=outside)
    assert bool(program.left_outside) == bool(outside)
    assert program.delegates


def test_export_returns_sizes() -> None:
    class Counting(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, int]:
            return x.reshape(-1) * 2, x.shape[0] * 2

    rows = Input(profiles=ranges(((1, 4), (1, 4), (1, 4)), ((2, 4), (3, 4), (8, 4))))
    module = Module(export(Counting().eval(), [rows]).buffer, optimization_profile="auto")
    doubled, size = module.forward(torch.ones(3, 4))
    torch.testing.assert_close(torch.as_tensor(doubled), torch.full((12,), 2.0))
    assert size == 6


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int32"])
def test_export_matches_eager_data_types(dtype: str) -> None:
    class Summing(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * 2 + x

    rows = Input(profiles=ranges(((1, 4), (1, 4), (1, 4)), ((2, 4), (3, 4), (8, 4))), dtype=dtype)
    cases = [[[(1, 4)]], [[(2, 4)], [(8, 4)]]]
    export_and_compare(Summing(), [rows], cases, lambda shapes: [(normal(shapes)[0] * 9).to(getattr(torch, dtype))])


def test_export_keeps_control_flow_outside() -> None:
    class Branching(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cond(x.sum() > 0, lambda y: y * 2, lambda y: y - 1, (x,)) + 1

    rows = Input(profiles=ranges(((1, 4), (1, 4), (2, 4)), ((2, 4), (3, 4), (8, 4))))
    program = export_and_compare(Branching(), [rows], [[[(2, 4)]], [[(8, 4)]]])
    assert program.left_outside["cond"] == "it is not an operator"


def test_export_keeps_data_dependent_shapes_outside() -> None:
    class Selecting(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.masked_select(x * 2, x > 0).sum() + x.sum()

    program = export_and_compare(
        Selecting(),
        [Input(profiles=ranges(((1, 4), (2, 4), (3, 4)), ((4, 4), (8, 4), (9, 4))))],
        [[[(3, 4)]], [[(9, 4)]]],
    )
    assert "its shape depends on data" in program.left_outside.values()
    assert program.delegates


def test_export_warns_of_a_model_in_training_mode() -> None:
    with pytest.warns(UserWarning, match=r"training mode; call model\.eval\(\)"):
        export(torch.nn.Linear(2, 2), [Input((1, 2))])


def test_export_warns_when_nothing_went_into_an_engine() -> None:
    with pytest.warns(UserWarning, match="no operator went into an engine"):
        program = export(torch.nn.ReLU().eval(), [Input((1, 2))], torch_executed_ops=["aten.relu"])
    assert program.left_outside == {"aten_relu_default": "torch_executed_ops names it"}


def test_export_is_quiet() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        export(torch.nn.ReLU().eval(), [Input((1, 2))])
    assert not [entry for entry in caught if "LeafSpec" in str(entry.message)]


def test_export_refuses_what_is_no_model() -> None:
    with pytest.raises(TypeError, match=r"got function, allowed torch\.nn\.Module"):
        export(lambda x: x, [Input((1,))])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="inputs is missing"):
        export(torch.nn.ReLU().eval())


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


def test_export_plans_for_batches_that_convolutions_ask_about() -> None:
    """torch's fake convolution compares the batch with 16, and would take the answer for a bound."""
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Conv2d(4, 2, 3)).eval()
    spans = (((1, 3, 8, 8), (2, 3, 8, 8), (4, 3, 8, 8)), ((5, 3, 8, 8), (20, 3, 8, 8), (32, 3, 8, 8)))
    module = Module(export(net, [Input(profiles=ranges(*spans))]).buffer, optimization_profile="auto")
    for batch in (1, 4, 5, 15, 16, 32):
        x = torch.randn(batch, 3, 8, 8)
        with torch.no_grad():
            torch.testing.assert_close(module.forward(x)[0], net(x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("count", [0, 2])
def test_export_refuses_another_number_of_inputs(count: int) -> None:
    with pytest.raises(ValueError, match=f"inputs do not fit the model's arguments: got {count}"):
        export(torch.nn.Linear(4, 4).eval(), [Input(shape=(2, 4))] * count)
