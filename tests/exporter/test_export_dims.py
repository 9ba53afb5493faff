"""export(): how optimization profiles may range, and relate to each other and to the model's dims."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pytest
import torch
from export_cases import export_and_compare, model_of, ranges, rows
from torch.nn import functional

from executorch_tensorrt import Input, Module
from executorch_tensorrt.exporter import export
from executorch_tensorrt.exporter.examples import Inputs

DECODE, PREFILL = (1, 1, 1), (2, 4, 9)


def scaled(model: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x) * 2


def added(model: torch.nn.Module, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x + y, x * 2


def apart(model: torch.nn.Module, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x * 2, y + 1


class Case(NamedTuple):
    """A model, its inputs, and the signature that they give its engines."""

    forward: Callable[..., Any]
    inputs: Inputs
    signature: str


ACCEPTED = {
    "decode first": Case(scaled, [rows(DECODE, PREFILL)], "x[0]=1:1:1|2:4:9"),
    "prefill first": Case(scaled, [rows(PREFILL, DECODE)], "x[0]=2:4:9|1:1:1"),
    "opt at min": Case(scaled, [rows((2, 2, 9), (10, 10, 20))], "x[0]=2:2:9|10:10:20"),
    "opt at max": Case(scaled, [rows((2, 9, 9), (10, 20, 20))], "x[0]=2:9:9|10:20:20"),
    "overlapping": Case(scaled, [rows((1, 2, 9), (4, 8, 16), (8, 12, 20))], "x[0]=1:2:9|4:8:16|8:12:20"),
    "disjoint with gaps": Case(scaled, [rows((1, 2, 3), (7, 8, 9), (20, 30, 40))], "x[0]=1:2:3|7:8:9|20:30:40"),
    "points": Case(scaled, [rows((1, 1, 1), (2, 2, 2), (40, 40, 40))], "x[0]=1:1:1|2:2:2|40:40:40"),
    "one range of two sizes": Case(scaled, [rows((1, 1, 2))], "x[0]=1:1:2"),
    "equal dims, not declared": Case(added, [rows(DECODE, PREFILL)] * 2, "x[0]=1:1:1|2:4:9"),
    "equal dims, declared": Case(added, [rows(DECODE, PREFILL, shared_dims={0: "n"})] * 2, "x[0]=1:1:1|2:4:9"),
    "equal dims, one declared": Case(
        added, [rows(DECODE, PREFILL, shared_dims={0: "n"}), rows(DECODE, PREFILL)], "x[0]=1:1:1|2:4:9"
    ),
    "profiles beside a static input": Case(apart, [rows(DECODE, PREFILL), Input((1, 4))], "x[0]=1:1:1|2:4:9"),
    "profiles beside one range": Case(
        apart, [rows(DECODE, PREFILL), rows((1, 3, 7))], "x[0]=1:1:1|2:4:9,y[0]=1:3:7|1:3:7"
    ),
    "a dim that is the same in all profiles": Case(
        scaled,
        [Input(profiles=ranges(((1, 1, 4), (2, 1, 4), (4, 1, 4)), ((1, 2, 4), (2, 8, 4), (4, 16, 4))))],
        "x[0]=1:2:4|1:2:4,x[1]=1:1:1|2:8:16",
    ),
    "every dim": Case(
        scaled,
        [Input(profiles=ranges(((1, 1, 1), (1, 1, 1), (2, 2, 2)), ((2, 2, 2), (3, 4, 5), (5, 6, 7))))],
        "x[0]=1:1:2|2:3:5,x[1]=1:1:2|2:4:6,x[2]=1:1:2|2:5:7",
    ),
}


@pytest.mark.parametrize("case", ACCEPTED.values(), ids=ACCEPTED)
def test_export_accepts_ranges(case: Case) -> None:
    program = export_and_compare(model_of(case.forward), case.inputs)
    assert program.delegates[0]["signature"] == case.signature


MASK = rows((2, 21, 31), (3, 5, 17))
NEW_AND_PAST = [[(1, 1), (1, 29), (1, 30)], [(2, 1), (9, 8), (4, 5)]]


@pytest.mark.parametrize(
    ("inputs", "sizes"),
    [
        ([rows(DECODE, PREFILL), rows((1, 20, 30), (1, 1, 8)), MASK], NEW_AND_PAST),
        (
            [
                rows(DECODE, PREFILL, shared_dims={0: "new"}),
                rows((1, 20, 30), (1, 1, 8), shared_dims={0: "past"}),
                MASK,
            ],
            NEW_AND_PAST,
        ),
        ([Input((1, 4)), rows((1, 20, 30)), rows((2, 20, 31))], NEW_AND_PAST[:1]),
    ],
    ids=["sum", "sum of named dims", "longer by one, of another opt"],
)
def test_export_accepts_a_dim_that_is_the_sum_of_others(inputs: Inputs, sizes: list[list[tuple[int, int]]]) -> None:
    """A mask over cached and new tokens."""
    model = model_of(lambda self, new, past, mask: torch.cat([past, new]) * mask)
    cases = [[[(new, 4), (past, 4), (new + past, 4)] for new, past in profile] for profile in sizes]
    program = export_and_compare(model, inputs, cases)
    with pytest.raises(ValueError, match=r"'mask' dim 0: got 20, allowed 21"):
        Module(program.buffer).forward(torch.ones(1, 4), torch.ones(20, 4), torch.ones(20, 4))


def formulas(model: torch.nn.Module, x: torch.Tensor, one: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Between engines pass 2*S+1, 65-S, B*S, B*(2*S+1), S*S, S//2, B+S and max(S, 32); tanh is outside."""
    b, s, _ = x.shape
    longer = torch.cat([x, x, one.expand(b, 1, 8)], 1)
    sizes = (
        longer,
        torch.zeros(b, 65 - s, 8) + one,
        model.linear(x).reshape(b * s, 8),
        longer.reshape(-1, 8),
        torch.bmm(x, x.transpose(1, 2)).reshape(b, s * s),
        x[:, ::2],
        torch.cat([x[:, 0], x[0]]),
        functional.pad(x, (0, 0, 0, torch.sym_max(32 - s, 0))),
    )
    return *(torch.tanh(size) * 2 for size in sizes), functional.pad(x, (0, 0, 0, 65 - s)).sum(1)


SHORT, LONG = ((1, 1, 8), (1, 1, 8), (2, 1, 8)), ((1, 9, 8), (2, 32, 8), (4, 64, 8))


@pytest.mark.parametrize("profiles", [(SHORT, LONG), (LONG, SHORT)], ids=["decode first", "prefill first"])
def test_export_matches_eager_formulas_between_engines(profiles: Any) -> None:
    model = model_of(formulas, linear=torch.nn.Linear(8, 8))
    program = export_and_compare(
        model, [Input(profiles=ranges(*profiles)), Input((1, 1, 8))], torch_executed_ops=[torch.ops.aten.tanh]
    )
    second = program.delegates[1]["profiles"][profiles.index(LONG)]["inputs"]
    between = {tuple(entry["max"]): (tuple(entry["min"]), tuple(entry["opt"])) for entry in second}
    assert (
        between.items()
        >= {
            (4, 129, 8): ((1, 19, 8), (2, 65, 8)),
            (4, 56, 8): ((1, 1, 8), (2, 33, 8)),
            (256, 8): ((9, 8), (64, 8)),
            (516, 8): ((19, 8), (130, 8)),
            (4, 4096): ((1, 81), (2, 1024)),
        }.items()
    )


def test_export_solves_sizes_from_a_decreasing_formula() -> None:
    """The second engine sees 65-S and nothing else; at S = 64 that is a size of 1."""
    model = model_of(lambda self, x: torch.tanh(torch.zeros(1, 65 - x.shape[1], 8) + 1) * 2)
    x = Input(profiles=ranges(((1, 2, 8), (1, 3, 8), (1, 8, 8)), ((1, 9, 8), (1, 10, 8), (1, 64, 8))))
    second = export_and_compare(model, [x], torch_executed_ops=["aten.tanh"]).delegates[1]
    assert second["inputs"] == ["aten_tanh_default"]
    assert second["profiles"][1]["inputs"] == [{"min": [1, 1, 8], "opt": [1, 55, 8], "max": [1, 56, 8]}]


def test_export_gives_profile_1_the_largest_output() -> None:
    model = model_of(lambda self, x: torch.cat([x, x * 2, x * 3], 0))
    export_and_compare(model, [rows((1, 2, 3), (4, 50, 100), (2, 3, 5))])


def test_export_gives_a_static_partition_one_profile() -> None:
    model = model_of(lambda self, x, w: torch.cumsum(w * 2, 0).sum() + x * 3)
    program = export_and_compare(
        model, [rows(DECODE, PREFILL), Input((2, 2))], torch_executed_ops=["torch.ops.aten.cumsum.default"]
    )
    assert sorted(len(delegate["profiles"]) for delegate in program.delegates) in ([1, 2], [2, 2])


def masked(model: torch.nn.Module, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
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
    program = export_and_compare(model_of(masked), inputs)
    assert program.delegates[0]["signature"] == "x[1]=2:2:2|3:4:9"


def pooled(model: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
    return functional.adaptive_avg_pool1d(x.transpose(1, 2), 1) + 1


def test_export_gives_back_sizes_that_torch_excludes_without_need() -> None:
    """torch's rule for pooling wants more than one row, and the operator does not."""
    x = Input(profiles=ranges(((1, 1, 4), (1, 2, 4), (2, 3, 4)), ((3, 1, 4), (4, 2, 4), (5, 8, 4))))
    export_and_compare(model_of(pooled), [x])


UNSHUFFLE = model_of(lambda self, x: functional.pixel_unshuffle(x, 2))


def test_export_accepts_a_model_that_takes_only_multiples() -> None:
    x = Input(profiles=ranges(((1, 3, 8, 8),) * 3, ((1, 3, 16, 16), (2, 3, 16, 32), (3, 3, 32, 32))))
    with pytest.warns(
        UserWarning, match="'x' dim 2 in multiples of 2, input 0 'x' dim 3 in multiples of 2; others are"
    ):
        program = export_and_compare(UNSHUFFLE, [x])
    module = Module(program.buffer, optimization_profile="auto")
    given = torch.randn(3, 3, 18, 22)
    torch.testing.assert_close(module.forward(given)[0], UNSHUFFLE(given))
    with pytest.raises(ValueError, match=r"input 'x' dim 2: got 19, allowed 0 plus a multiple of 2"):
        module.forward(torch.randn(3, 3, 19, 22))


def test_export_warns_of_equal_profiles() -> None:
    with pytest.warns(UserWarning, match=r"profiles 0 and 2 are equal: got input 0 'x' dim 0 1..2 \(opt 1\) in both"):
        export(model_of(scaled), [rows((1, 1, 2), (1, 2, 2), (1, 1, 2))])


def halves(model: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
    return x[:, 3:] * 2 if x.shape[1] > 3 else x


def positioned(model: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
    return x + model.table[: x.shape[1]]


def last_four(model: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
    return x[:, -4:] * 2


def recurrent(model: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
    return model.gru(x.unsqueeze(2))[0]


def columns(*spans: Sequence[int]) -> Input:
    return Input(profiles=ranges(*(tuple((1, size) for size in span) for span in spans)))  # type: ignore[arg-type]


TABLE = torch.arange(8.0)
GRU = torch.nn.GRU(1, 1, batch_first=True)


class Refused(NamedTuple):
    """What is refused and how, and inputs that follow the message's advice."""

    model: torch.nn.Module
    inputs: Inputs
    message: str
    followed: Inputs


REFUSED = {
    "equal dims of other ranges": Refused(
        model_of(added),
        [rows(DECODE, PREFILL), rows(DECODE, (2, 4, 10))],
        r"input 1 'y' dim 0 is the same dim as input 0 'x' dim 0 .*: got 2..10 \(opt 4\) in profile 1, allowed 2..9",
        [rows(DECODE, PREFILL)] * 2,
    ),
    "equal dims of another opt": Refused(
        model_of(added),
        [rows(DECODE, PREFILL), rows(DECODE, (2, 5, 9))],
        r"input 1 'y' dim 0 is the same dim as input 0 'x' dim 0 .*: got 2..9 \(opt 5\) in profile 1, .* declare both",
        [rows(DECODE, (2, 5, 9))] * 2,
    ),
    "equal dims in another order": Refused(
        model_of(added),
        [rows(DECODE, PREFILL), rows(PREFILL, DECODE)],
        r"input 1 'y' dim 0 is the same dim as input 0 'x' dim 0 .*: got 2..9 \(opt 4\) in profile 0, allowed 1..1",
        [rows(PREFILL, DECODE)] * 2,
    ),
    "shared dims of other ranges": Refused(
        model_of(apart),
        [rows(DECODE, PREFILL, shared_dims={0: "n"}), rows(DECODE, (2, 4, 10), name="y", shared_dims={0: "n"})],
        r"input 1 'y' dim 0 shares 'n' with input 0 dim 0, declared otherwise: got 1..1, 2..10",
        [rows(DECODE, PREFILL, shared_dims={0: "n"})] * 2,
    ),
    "equal dims on other axes": Refused(
        model_of(lambda self, x, y: x + y.t()),
        [rows((2, 4, 9), tail=(6,)), Input(profiles=ranges(((6, 2), (6, 4), (6, 10))))],
        r"the model can't be traced: .*; where it needs dims to be equal, give them one name in shared_dims; ",
        [
            rows((2, 4, 9), tail=(6,), shared_dims={0: "n"}),
            Input(profiles=ranges(((6, 2), (6, 4), (6, 9))), shared_dims={1: "n"}),
        ],
    ),
    "a path that depends on a size": Refused(
        model_of(halves),
        [columns((2, 2, 2), (4, 8, 9))],
        r"input 0 'x' dim 1 was narrowed .*: got 4..9, wanted 2..9; .* \(x\[1\] > 3\): narrow the profiles",
        [columns((4, 4, 4), (5, 8, 9))],
    ),
    "more than the model takes": Refused(
        model_of(positioned, table=TABLE),
        [columns((2, 2, 2), (4, 8, 16))],
        r"the model does not take all of profile 1: got RuntimeError '.* from the model itself for input 0 'x' dim 1",
        [columns((2, 2, 2), (4, 6, 8))],
    ),
    "a path that an operator takes in lowering": Refused(
        model_of(last_four),
        [columns((1, 1, 1), (2, 9, 16))],
        r"the lowered model does not hold for all of profile 0: got \(1, 1\) from 'aten.slice_copy.Tensor'.* for input "
        r"0 'x' \(1, 1\), planned \(1, 4\)",
        [columns((4, 4, 4), (5, 9, 16))],
    ),
    "a recurrent layer of dynamic length": Refused(
        model_of(recurrent, gru=GRU),
        [columns((1, 1, 1), (2, 3, 4))],
        r"input 0 'x' dim 1 became fixed when the model was traced: got 3, wanted 1..4; .* declare it static",
        [Input((1, 2))],
    ),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_export_refuses_ranges_until_its_advice_is_followed(case: Refused) -> None:
    with pytest.raises(ValueError, match=case.message):
        export(case.model, case.inputs)
    export_and_compare(case.model, case.followed)
