"""What `advice` says in words: what its gain rests on, and what a reader has to know."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from executorch_tensorrt.profiling.processors.advice.calls import Calls
from executorch_tensorrt.profiling.processors.advice.ranges import Axis
from executorch_tensorrt.profiling.processors.advice.tuning import ASSUMED, FEW_CALLS, Tuning
from executorch_tensorrt.profiling.session import Session
from executorch_tensorrt.words import count_text, share_text


def basis_of(calls: Calls, tuning: Tuning | None) -> str:
    """What the gain rests on, or why there is none and what to do."""
    if tuning is None:
        return f"The gain is not estimated: {_missing(calls)}"
    if not tuning.per_doubling:
        return (
            f"{count_text(tuning.sizes, 'size')} that were recorded on several profiles took no longer far from a "
            "profile's opt than near it. So ranges matter for what is accepted, and not for the time of a call."
        )
    return (
        f"Assumes that a call takes {share_text(tuning.per_doubling)} longer for each doubling between its size and "
        f"the opt of its profile, as {count_text(tuning.sizes, 'size')} did that were recorded on several profiles, "
        "and that new profiles behave like the program's own. Both times are of this model, with automatic selection."
    )


def _missing(calls: Calls) -> str:
    if len(calls.sizes) < FEW_CALLS:
        return f"got {count_text(len(calls.sizes), 'call')}, allowed {FEW_CALLS} or more; record more."
    own = calls.variables[0].today
    if not own:
        return "the program does not record what its profiles are tuned for. Export it with this version."
    if len(own) == 1:
        return (
            "the program has one optimization profile, so the calls do not tell what a distance from its opt costs. "
            "Export the proposal, record the same inputs with it, and compare: etrt report --compare BEFORE AFTER."
        )
    return (
        "fewer than 2 sizes were recorded 3 times on each of two profiles with different opts. Record the same inputs "
        "again with --optimization-profile set to another index that takes them, and give both sessions."
    )


def notes_of(sessions: Sequence[Session], calls: Calls, axes: Sequence[Axis], profiles: int, tuned: bool) -> list[str]:
    """About the recording, the ranges, and how to use them."""
    return [*_about_recording(sessions, calls), *_about_ranges(calls, axes), *_about_use(profiles, tuned)]


def _about_recording(sessions: Sequence[Session], calls: Calls) -> Iterator[str]:
    if len(calls.sizes) < FEW_CALLS:
        yield f"The recording has only {count_text(len(calls.sizes), 'call')}: sizes and shares may not be typical."
    if calls.left_out:
        yield f"{count_text(calls.left_out, 'call')} without shapes are left out."
    if len({(session.level, repr(session.machine)) for session in sessions}) > 1:
        yield "The sessions are of several machines or levels, whose times differ for other reasons than sizes."
    for variable in calls.variables:
        if len(variable.symbols) > 1:
            yield (
                f"{variable.name} and {count_text(len(variable.places) - 1, 'other dim')} had the same size in every "
                "call. They are taken for one dim; the program does not say whether they are."
            )


def _about_ranges(calls: Calls, axes: Sequence[Axis]) -> Iterator[str]:
    spans = list(zip(calls.variables, axes, strict=True))
    for variable, axis in spans:
        recorded = f"{variable.name} was {axis.sizes[0]}..{axis.sizes[-1]} in the recorded calls"
        covered = f"{recorded}, and the last profile covers {axis.low}..{axis.high}"
        if variable.accepts is None:
            yield f"{covered}. What it may be at all is not recorded in the program."
        elif (axis.low, axis.high) != variable.accepts:
            low, high = variable.accepts
            yield f"{covered}: other sizes of {low}..{high}, which work today, will be refused."
    if all((axis.low, axis.high) == variable.accepts for variable, axis in spans):
        kept = ", ".join(f"{variable.name} {axis.low}..{axis.high}" for variable, axis in spans)
        yield (
            f"The last profile covers all that the program accepts today, {kept}, so that no call fails that works "
            "today."
        )


def _about_use(profiles: int, tuned: bool) -> Iterator[str]:
    if not tuned:
        yield (
            f"How many profiles are worth it rests on an assumption: {share_text(ASSUMED)} more time for each doubling "
            "between a call's size and the opt of its profile."
        )
    if profiles > 1:
        yield (
            "Load the program with optimization_profile='auto', so that the first profile that fits a call is used. "
            "Without a request every call uses profile 0."
        )
