"""Advice on optimization profiles as text for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from executorch_tensorrt.profiling.processors import Advice, Choice
from executorch_tensorrt.profiling.processors.advice.variables import columns_of
from executorch_tensorrt.profiling.renderers.advice.code import command_line, python_code
from executorch_tensorrt.profiling.renderers.text_report import WIDTH, TextReport
from executorch_tensorrt.words import count_text, microseconds_text, share_text, short_text


def render(advice: Advice, *, width: int = WIDTH, color: bool = False) -> str:
    """What was recorded, the proposed profiles, what each serves, what they gain, and code.

    Args:
        advice: the advice.
        width: in characters; lines of code may be longer.
        color: whether to use terminal colours.
    """
    report = TextReport(width, color)
    program = short_text(advice.program or "program")
    report.line(f"{program}, method {short_text(advice.calls.method)}: {count_text(len(advice.served), 'call')}")
    _sizes(report, advice)
    _profiles(report, advice)
    _numbers(report, advice)
    report.heading("Expected gain")
    _gain(report, advice)
    for note in advice.notes:
        report.line(f"Note: {note}")
    report.heading("Code")
    report.verbatim(python_code(advice))
    texts = command_line(advice)
    if texts:
        report.heading("On the command line")
        report.verbatim("etrt export MODEL" + "".join(f" --input '{text}'" for text in texts))
    return report.text()


def _sizes(report: TextReport, advice: Advice) -> None:
    rows: list[tuple[str, ...]] = []
    for variable, column in zip(advice.calls.variables, columns_of(advice.calls.sizes), strict=True):
        sizes: list[int] = sorted(column.tolist())
        more = len(variable.places) - 1
        name = variable.name + (f" and {count_text(more, 'other dim')}" if more else "")
        today = " | ".join(map(_range, variable.today)) or "not recorded"
        rows.append((name, str(sizes[0]), str(sizes[len(sizes) // 2]), str(sizes[-1]), today))
    columns = ("size", "smallest", "median", "largest", "today's profiles")
    report.table("Recorded sizes", columns, rows, right=("smallest", "median", "largest"))


def _profiles(report: TextReport, advice: Advice) -> None:
    names = [variable.name for variable in advice.calls.variables]
    rows = [
        (
            str(index), *map(_range, item.ranges), str(item.calls), share_text(item.share), share_text(item.time_share),
            _time(item.recorded.mean_us if item.calls else None), _time(item.expected_us),
        )
        for index, item in enumerate(advice.profiles)
    ]  # fmt: skip
    figures = ("calls", "share", "of time", "recorded mean", "expected mean")
    report.table("Proposed optimization profiles", ("profile", *names, *figures), rows, right=("profile", *figures))


def _numbers(report: TextReport, advice: Advice) -> None:
    def row(choice: Choice, said: str) -> tuple[str, ...]:
        return str(choice.profiles), f"{choice.distance:.2f}", _time(choice.expected_us), said

    rows = [row(advice.today, "the program's own, today")] if advice.today else []
    rows += [row(choice, "proposed" if choice == advice.chosen else "") for choice in advice.choices]
    figures = ("profiles", "doublings from opt", "expected mean")
    report.table("How many", (*figures, "which"), rows, right=figures)


def _gain(report: TextReport, advice: Advice) -> None:
    if advice.gain is not None and advice.today is not None:
        less = "less" if advice.gain >= 0 else "more"
        times = f"from {_time(advice.today.expected_us)} to {_time(advice.chosen.expected_us)} a call"
        report.line(f"{share_text(abs(advice.gain))} {less} time for these calls, {times}.")
    report.line(advice.basis)


def _time(microseconds: float | None) -> str:
    return "" if microseconds is None else microseconds_text(microseconds)


def _range(span: Sequence[int]) -> str:
    return str(span[0]) if span[0] == span[2] else ":".join(map(str, span))


__all__ = ["render"]
