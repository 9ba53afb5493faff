"""Selection against a reference of a few lines, over generated tables, shapes and requests."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from executorch_tensorrt._native import ProfileTable, Request

Dim = tuple[int, int, int]
Profiles = list[list[list[Dim]]]

dims = st.integers(1, 9)
ranges = st.tuples(dims, dims, dims).map(lambda values: tuple(sorted(values)))


@st.composite
def tables(draw: st.DrawFn) -> Profiles:
    ranks = draw(st.lists(st.integers(0, 3), max_size=3))
    count = draw(st.integers(1, 4))
    return [[[draw(ranges) for _ in range(rank)] for rank in ranks] for _ in range(count)]


@st.composite
def cases(draw: st.DrawFn) -> tuple[Profiles, list[list[int]]]:
    profiles = draw(tables())
    shapes = [
        draw(st.lists(st.integers(0, 10), min_size=len(i), max_size=len(i)) | st.lists(dims, max_size=4))
        for i in profiles[0]
    ]
    return profiles, shapes


requests = st.one_of(st.just(None), st.just("auto"), st.integers(0, 5))  # default, automatic, pinned


def to_request(request: str | int | None) -> Request:
    if request is None:
        return Request()
    return Request.auto() if request == "auto" else Request.pinned(int(request))


def fits(profile: list[list[Dim]], shapes: list[list[int]]) -> bool:
    return all(
        len(shape) == len(ranks)
        and all(low <= value <= high for value, (low, _, high) in zip(shape, ranks, strict=True))
        for shape, ranks in zip(shapes, profile, strict=True)
    )


def is_static(profiles: Profiles) -> bool:
    return all(
        low == high == profiles[0][i][d][0]
        for profile in profiles
        for i, ranks in enumerate(profile)
        for d, (low, _, high) in enumerate(ranks)
    )


def expected(profiles: Profiles, shapes: list[list[int]], request: str | int | None) -> int | None:
    """The selected index, or None where selection has to fail."""
    if request == "auto":
        return next((p for p, profile in enumerate(profiles) if fits(profile, shapes)), None)
    index = 0 if request is None else int(request)
    if len(profiles) == 1 and is_static(profiles):
        index = 0
    return index if index < len(profiles) and fits(profiles[index], shapes) else None


@settings(deadline=None, derandomize=True)
@given(cases(), requests, requests)
def test_selection_agrees_with_the_reference(
    case: tuple[Profiles, list[list[int]]], request: str | int | None, load_default: str | int | None
) -> None:
    profiles, shapes = case
    table = ProfileTable.create([f"input{i}" for i in range(len(shapes))], profiles)
    index = expected(profiles, shapes, load_default if request is None else request)
    arguments = (shapes, to_request(request), to_request(load_default))
    if index is None:
        with pytest.raises(ValueError, match="profile"):
            table.select(*arguments)
    else:
        assert table.select(*arguments) == index


@settings(deadline=None, derandomize=True)
@given(cases())
def test_auto_is_a_function_of_the_shapes_alone(case: tuple[Profiles, list[list[int]]]) -> None:
    profiles, shapes = case
    table = ProfileTable.create([f"input{i}" for i in range(len(shapes))], profiles)

    def select(request: Request) -> int | None:
        try:
            return table.select(shapes, request)
        except ValueError:
            return None

    first = select(Request.auto())
    for other in range(len(profiles)):
        select(Request.pinned(other))
        assert select(Request.auto()) == first


@settings(deadline=None, derandomize=True)
@given(tables())
def test_a_table_gives_back_what_it_was_made_of(profiles: Profiles) -> None:
    table = ProfileTable.create([f"input{i}" for i in range(len(profiles[0]))], profiles)
    assert table.profiles == profiles
    assert table.is_static == is_static(profiles)
