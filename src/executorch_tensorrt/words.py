"""Numbers and names as people read them."""

from __future__ import annotations

from collections.abc import Sequence


def printable(text: str) -> str:
    """A text that may hold names from files, for a terminal, a log or a page: one line, whose characters all show.

    Written out is what a terminal or an editor would obey or hide: control characters, line ends, what reorders text,
    halves of surrogate pairs.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def bytes_text(size: int) -> str:
    """1234567 -> 1.2 MB"""
    if size < 1000:
        return f"{size} B"
    value, unit = size / 1e3, "kB"
    for larger in ("MB", "GB"):
        if value >= 1000:
            value, unit = value / 1e3, larger
    return f"{value:.1f} {unit}"


def shape_text(shape: Sequence[object]) -> str:
    """As Python writes a tuple: (1, 64), (3,), ()."""
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def microseconds_text(value: float) -> str:
    """12.3 µs, 1.23 ms, 4.56 s"""
    for limit, scale, unit in ((999.5, 1, "µs"), (999.5e3, 1e3, "ms")):
        if value < limit:
            return f"{value / scale:.3g} {unit}"
    return f"{value / 1e6:.3g} s"


def share_text(share: float) -> str:
    """0.123 -> 12.3 %"""
    return f"{100 * share:.1f} %"


def shapes_text(shapes: Sequence[Sequence[object]]) -> str:
    """(1, 64) (1,)"""
    return " ".join(map(shape_text, shapes))


def count_text(count: int, noun: str) -> str:
    """1 run, 2 runs"""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def ranges_text(dims: Sequence[tuple[int, int, int]]) -> str:
    """min, opt and max of each dim: (1:16:32, 64)"""
    return shape_text([low if low == high else f"{low}:{opt}:{high}" for low, opt, high in dims])


def short_text(text: str, limit: int = 60) -> str:
    """A text of at most `limit` characters: its begin and its end."""
    half = limit // 2 - 3
    return text if len(text) <= limit else f"{text[:half]} ... {text[-half:]}"
