"""Proposed optimization profiles, from made-up calls."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from profiling.advice_factory import ONE, Range, base, declared, sequences, two_profiles
from profiling.session_factory import called_session, encoder_session, tiny_session

from executorch_tensorrt.profiling.processors import Advice, advise
from executorch_tensorrt.profiling.session import Event, Session
from executorch_tensorrt.program.declaration import Dim, MethodInput


def ranges(advice: Advice, variable: int = 0) -> list[Range]:
    return [item.ranges[variable] for item in advice.profiles]


def test_advise_gives_decode_a_point_and_the_rest_all_that_works_today() -> None:
    advice = advise([sequences([1] * 10 + [100, 110, 120])])
    assert ranges(advice) == [ONE, (1, 110, 512)]
    assert [item.calls for item in advice.profiles] == [50, 15]
    assert advice.served == [0] * 50 + [1] * 15
    assert any("1..512, so that no call fails that works today" in note for note in advice.notes)


def test_advise_finds_the_groups_of_sizes() -> None:
    advice = advise([sequences([20, 24, 28, 100, 120, 140, 390, 400, 410])])
    assert ranges(advice) == [(20, 24, 28), (29, 120, 144), (1, 400, 512)]
    assert [choice.profiles for choice in advice.choices] == [1, 2, 3, 4]
    assert advice.chosen == advice.choices[2]


def test_advise_weighs_sizes_by_the_time_of_their_calls() -> None:
    sizes = [8] * 10 + [16, 17]
    session = sequences(sizes)
    assert ranges(advise([session], max_profiles=1)) == [(1, 8, 512)]
    slow = [replace(run, wall_us=run.wall_us * (1000 if run.shapes[0][1] > 8 else 1)) for run in session.runs]
    assert ranges(advise([replace(session, runs=slow)], max_profiles=1)) == [(1, 17, 512)]


def test_advise_stops_where_another_profile_gains_little() -> None:
    assert len(advise([sequences([100, 101, 102, 103])]).profiles) == 1
    assert len(advise([sequences([2**k for k in range(1, 10)])]).profiles) == 4
    assert len(advise([sequences([2**k for k in range(1, 10)])], max_profiles=2).profiles) == 2


def test_advise_keeps_two_dims_apart_and_shared_ones_together() -> None:
    calls = [((batch, 1), 50.0, 0) for batch in (1, 2, 4, 8)] * 5 + [((1, size), 900.0, 0) for size in (200, 300)] * 5
    advice = advise([called_session(calls, [((1, 4, 16), (1, 32, 512))])])
    assert [variable.name for variable in advice.calls.variables] == ["ids[0]", "ids[1]"]
    assert [variable.places for variable in advice.calls.variables] == [[(0, 0), (1, 0)], [(0, 1), (1, 1)]]
    assert advice.profiles[0].ranges[1] == ONE
    assert advice.profiles[0].ranges[0][2] == 8
    assert [(low, high) for low, _, high in advice.profiles[-1].ranges] == [(1, 16), (1, 512)]


def test_advise_gives_decode_its_point_even_if_all_calls_are_decode() -> None:
    advice = advise([sequences([1] * 8)])
    assert ranges(advice) == [ONE, (1, 23, 512)]
    assert [item.share for item in advice.profiles] == [1.0, 0.0]
    assert ranges(advise([sequences([1] * 8)], max_profiles=1)) == [(1, 1, 512)]


def test_advise_ends_at_recorded_sizes_when_asked_to() -> None:
    advice = advise([sequences([50, 300] * 3)], recorded_only=True)
    assert ranges(advice)[-1] == (50, 300, 320)
    assert any("50..320: other sizes of 1..512, which work today, will be refused" in note for note in advice.notes)
    assert ranges(advise([sequences([50, 511])], recorded_only=True))[-1][2] == 512


def test_advise_estimates_the_gain_from_sizes_on_several_profiles() -> None:
    advice = advise(two_profiles(0.15), max_profiles=3)
    assert advice.gain is not None
    assert advice.today is not None
    assert "takes 15.0 % longer for each doubling" in advice.basis
    assert "as 2 sizes did" in advice.basis

    def total(spans: Sequence[Range]) -> float:
        served = [next(span for span in spans if span[0] <= size <= span[2]) for size in (4, 16, 60, 100, 300)]
        opts = [span[1] for span in served]
        return sum(
            base(size) * (1 + 0.15 * abs(math.log2(size / opt)))
            for size, opt in zip((4, 16, 60, 100, 300), opts, strict=True)
        )

    today, proposed = total([(1, 16, 64), (1, 256, 512)]), total(ranges(advice))
    assert proposed < today
    assert advice.gain == pytest.approx(1 - proposed / today)
    assert advice.today.expected_us == pytest.approx(today / 5)
    assert advice.chosen.expected_us == pytest.approx(proposed / 5)
    expected = sum(item.expected_us * item.calls for item in advice.profiles if item.expected_us is not None)
    assert expected == pytest.approx(proposed * 10)


def test_advise_says_that_distance_costs_nothing() -> None:
    advice = advise(two_profiles(0.0))
    assert advice.gain == 0
    assert len(advice.profiles) == 1
    assert "took no longer far from a profile's opt" in advice.basis


@pytest.mark.parametrize(
    ("sessions", "why"),
    [
        ([sequences([4, 8, 16, 300])], "the program has one optimization profile"),
        (two_profiles(0.1)[:1], "again with --optimization-profile set to another index"),
        ([sequences([4, 300])], "got 10 calls, allowed 20 or more"),
    ],
)
def test_advise_invents_no_gain(sessions: list[Session], why: str) -> None:
    advice = advise(sessions)
    assert advice.gain is None
    assert "The gain is not estimated: " in advice.basis
    assert why in advice.basis
    assert all(item.expected_us is None for item in [*advice.profiles, *advice.choices])
    assert any("rests on an assumption: 10.0 % more time" in note for note in advice.notes)


def test_advise_does_not_depend_on_the_order_of_calls() -> None:
    session = sequences([1, 1, 30, 77, 120, 300, 301], each=3)
    runs = random.Random(5).sample(session.runs, len(session.runs))
    assert advise([replace(session, runs=runs)]).profiles == advise([session]).profiles


def test_advise_takes_times_that_were_not_kept() -> None:
    session = sequences([2, 300])
    advice = advise([replace(session, runs=[replace(run, wall_us=0.0) for run in session.runs])])
    assert sum(item.calls for item in advice.profiles) == 10
    assert [item.time_share for item in advice.profiles] == [0.0] * len(advice.profiles)


def test_advise_works_on_programs_that_do_not_record_their_ranges() -> None:
    session = sequences([8, 16, 300])
    inputs = [MethodInput("", "int64", [Dim(f"{k}.0", 1, 0), Dim(f"{k}.1", 1, 0)], [1, 400]) for k in range(2)]
    advice = advise([declared(session, inputs, [])])
    (variable,) = advice.calls.variables
    assert (variable.name, variable.places) == ("input_0[1]", [(0, 1), (1, 1)])
    assert advice.calls.constants == {"0.0": 1, "1.0": 1}
    assert ranges(advice)[-1] == (8, 300, 400)
    assert advice.today is None
    assert "does not record what its profiles are tuned for" in advise([declared(sequences([8] * 5), inputs, [])]).basis
    assert any("They are taken for one dim" in note for note in advice.notes)
    assert any("What it may be at all is not recorded" in note for note in advice.notes)
    undeclared = advise([replace(session, declarations=[])])
    assert ranges(undeclared)[-1] == (8, 300, 320)


def test_advise_follows_dims_that_are_formulas() -> None:
    session = sequences([8, 16, 300])
    inputs = [MethodInput("ids", "int64", [Dim("", 1, 1), Dim("s", 2, 2)], [1, 802])] * 2
    advice = advise([declared(session, inputs, [{"s": (1, 100, 400)}])])
    assert [variable.name for variable in advice.calls.variables] == ["s"]
    assert sorted({size for (size,) in advice.calls.sizes.tolist()}) == [3, 7, 149]
    assert ranges(advice)[-1] == (1, 149, 400)


def test_advise_leaves_calls_without_shapes_out() -> None:
    session = sequences([8, 300])
    runs = [replace(run, shapes=[] if run.number < 3 else run.shapes) for run in session.runs]
    advice = advise([replace(session, runs=runs)])
    assert len(advice.served) == 7
    assert "3 calls without shapes are left out." in advice.notes


def test_advise_notes_what_makes_recordings_differ() -> None:
    session = sequences([8, 300])
    notes = advise([session, replace(session, level="layers")]).notes
    assert any(note.startswith("The sessions are of several machines or levels") for note in notes)
    assert not any(note.startswith("The recording has only") for note in notes)
    assert any(note.startswith("The recording has only 10 calls") for note in advise([session]).notes)


TRACED = [Event("torchtrt.delegate", "delegate", 0.0, 1.0, instruction=0)]
STATIC = [MethodInput("x", "float32", [Dim("", 1, 4)], [4])]


def without_shapes(session: Session, events: list[Event]) -> Session:
    return replace(session, runs=[replace(run, shapes=[], events=events) for run in session.runs])


@pytest.mark.parametrize(
    ("sessions", "told"),
    [
        ([], "sessions: got none, allowed one or more"),
        ([tiny_session(), encoder_session(runs=1)], "different programs: got 'tiny.pte' (0123456789ab), 'encoder.pte'"),
        ([tiny_session(runs=[])], "sessions have no calls: got 0"),
        ([tiny_session(delegates=[])], "method 'forward' has no TensorRTBackend delegate"),
        ([declared(tiny_session(), STATIC, [{}])], "nothing to advise: got method 'forward' with static inputs alone"),
        ([tiny_session()], "nothing to advise: got the same sizes in all 1 calls of 'forward'"),
        (
            [without_shapes(sequences([8]), [])],
            "got no delegate events, allowed calls traced at level delegate, phases",
        ),
        ([without_shapes(sequences([8]), TRACED)], "record them with 'etrt profile'"),
        ([declared(tiny_session(), [MethodInput("x", "int64", [Dim("s", 1, 0)], [4])], [])], "input 0: got 2 dims"),
    ],
)
def test_advise_says_what_is_wrong_with_sessions(sessions: list[Session], told: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is looked at below
        advise(sessions)
    assert told in str(caught.value)


def test_advise_wants_one_method() -> None:
    session = sequences([8, 300])
    other = replace(
        session,
        delegates=[replace(item, method="decode") for item in session.delegates],
        runs=[replace(run, method="decode") for run in session.runs],
        declarations=[replace(item, method="decode") for item in session.declarations],
    )
    with pytest.raises(ValueError, match="several methods: got forward, decode, allowed one"):
        advise([session, other])
    assert advise([session, other], "decode").calls.method == "decode"
    with pytest.raises(ValueError, match="no calls of this method: got 'm{80}', allowed forward"):
        advise([session], "m" * 1000)
    with pytest.raises(ValueError, match="max_profiles: got 0, allowed 1 or more"):
        advise([session], max_profiles=0)


def test_advise_refuses_sizes_that_no_profile_takes() -> None:
    session = sequences([8, 300])
    runs = [replace(run, shapes=[[1, 0], [1, 0]]) for run in session.runs]
    with pytest.raises(ValueError, match="called with a size of 0"):
        advise([replace(session, runs=runs)])
    for shapes in ([[1, 2]] * 3, [[1, 2]], [[1, 10**30]] * 2):
        with pytest.raises(ValueError, match="are not those of the inputs"):
            advise([replace(session, runs=[*session.runs, replace(session.runs[0], shapes=shapes)])])


SIZES = st.integers(1, 40) | st.integers(1, 512)


@st.composite
def recordings(draw: st.DrawFn) -> Session:
    """Calls with batches up to 16 and sequences up to 512, on one or two profiles that accept all of them."""
    profiles = draw(st.integers(1, 2))
    calls = draw(
        st.lists(
            st.tuples(st.tuples(st.integers(1, 16), SIZES), st.floats(1, 1e6), st.integers(0, profiles - 1)),
            min_size=1,
            max_size=40,
        )
    )
    opts = [(draw(st.integers(1, 16)), draw(SIZES)) for _ in range(profiles)]
    return called_session(calls, [((1, batch, 16), (1, sequence, 512)) for batch, sequence in opts])


def holds(box: Sequence[Range], sizes: Sequence[int]) -> bool:
    return all(low <= size <= high for (low, _, high), size in zip(box, sizes, strict=True))


@settings(max_examples=60, deadline=None)
@given(recordings(), st.integers(1, 5), st.booleans())
def test_advise_serves_every_call_with_valid_ranges(session: Session, count: int, recorded_only: bool) -> None:
    advice = advise([session], max_profiles=count, recorded_only=recorded_only)
    boxes = [item.ranges for item in advice.profiles]
    assert 1 <= len(boxes) <= count
    for box in boxes:
        assert all(1 <= low <= opt <= high for low, opt, high in box)
        assert all(high <= limit for (_, _, high), limit in zip(box, (16, 512), strict=True))
    for sizes, served in zip(advice.calls.sizes.tolist(), advice.served, strict=True):
        assert served == next(index for index, box in enumerate(boxes) if holds(box, sizes))
        assert holds(boxes[-1], sizes)
    if not recorded_only:
        assert [(low, high) for low, _, high in boxes[-1]] == [(1, 16), (1, 512)]
    assert sum(item.share for item in advice.profiles) == pytest.approx(1)
    assert sum(item.calls for item in advice.profiles) == len(session.runs)
    assert sum(item.time_share for item in advice.profiles) == pytest.approx(1)


@settings(max_examples=60, deadline=None)
@given(recordings())
def test_advise_never_models_more_profiles_as_slower(session: Session) -> None:
    advice = advise([session], max_profiles=5)
    distances = [choice.distance for choice in advice.choices]
    assert distances == sorted(distances, reverse=True)
    counts = [choice.profiles for choice in advice.choices]
    assert counts == sorted(set(counts))
    assert advice.chosen in advice.choices


@settings(max_examples=60, deadline=None)
@given(recordings())
def test_advise_lists_tight_profiles_before_those_that_hold_them(session: Session) -> None:
    boxes = [item.ranges for item in advise([session], max_profiles=5).profiles]
    for index, outer in enumerate(boxes):
        for inner in boxes[index + 1 :]:
            corners = [[low for low, _, _ in inner], [high for _, _, high in inner]]
            assert not all(holds(outer, corner) for corner in corners) or inner is boxes[-1]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(2, 200), min_size=2, max_size=9, unique=True), st.integers(2, 3))
def test_advise_groups_one_size_as_well_as_any_other_way(sizes: list[int], count: int) -> None:
    """Against every way of cutting the sorted sizes."""
    session = sequences(sizes, each=1)

    def spread(part: Sequence[int]) -> float:
        return min(sum(base(size) * abs(math.log2(size / opt)) for size in part) for opt in part) if part else 0.0

    def best(part: Sequence[int], groups: int) -> float:
        if groups == 1:
            return spread(part)
        return min(spread(part[:cut]) + best(part[cut:], groups - 1) for cut in range(len(part) + 1))

    expected: Any = best(sorted(sizes), count) / sum(map(base, sizes))
    assert advise([session], max_profiles=count).choices[-1].distance == pytest.approx(expected, abs=1e-9)
