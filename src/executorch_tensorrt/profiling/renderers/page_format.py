"""How values read on the page."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import datetime, timedelta

from executorch_tensorrt.extras import needs_extra
from executorch_tensorrt.words import printable, shape_text, share_text

with needs_extra("report", "an HTML page"):
    from markupsafe import Markup, escape

MAX_TEXT = 200
MAX_PROSE = 800
NOTHING = "\N{EN DASH}"


def shown(text: object, limit: int = MAX_TEXT) -> str:
    """A name as the page shows it: `printable`, and shortened in the middle."""
    whole = str(text)
    if len(whole) > limit:
        whole = f"{whole[: limit - 60]} … {whole[-50:]}"
    return printable(whole)


def finalized(value: object) -> object:
    """What the template engine writes for an expression."""
    return shown(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def prose(text: str) -> Markup:
    """Sentences, which may be longer than a name."""
    return escape(shown(text, MAX_PROSE))


def lines(text: str) -> Markup:
    """Code as it is, line by line."""
    return Markup("\n").join(shown(line, limit=10_000) for line in text.splitlines())


def duration(microseconds: float) -> Markup:
    """Three digits and a unit."""
    if not math.isfinite(microseconds):
        return Markup(NOTHING)
    value, unit = microseconds, "µs"
    if abs(value) >= 999.5:
        value, unit = value / 1000, "ms"
    if abs(value) >= 999.5:
        value, unit = value / 1000, "s"
    digits = 0 if value == 0 else 2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0
    return Markup('{}<span class="u"> {}</span>').format(f"{value:,.{digits}f}", unit)


def percent(share: float) -> str:
    """A share of 0 to 1."""
    if not math.isfinite(share):
        return NOTHING
    if 0 < share < 0.0005:
        return "< 0.1 %"
    return share_text(share)


def moment(created: str) -> str:
    """An ISO 8601 time for readers; any other text as it is."""
    try:
        time = datetime.fromisoformat(created)
    except ValueError:
        return created
    zone = "" if time.tzinfo is None else " UTC" if time.utcoffset() == timedelta() else f" {time:%z}"
    return f"{time:%Y-%m-%d %H:%M}{zone}"


def breakable(path: str) -> Markup:
    """A dotted or slashed path that may break into lines after its dots, slashes and underscores."""
    return Markup("").join(Markup("{}<wbr>").format(part) for part in re.findall(r"[^._/]*[._/]?", shown(path)) if part)


def ranges(profile_input: Sequence[Sequence[int]]) -> str:
    """Dims of an input under an optimization profile: "(1, 2…16…32)" has min, opt, max of the second dim."""
    return shape_text([dim[0] if len(set(dim)) == 1 else "…".join(map(str, dim)) for dim in profile_input])


__all__ = ["MAX_TEXT", "breakable", "duration", "finalized", "lines", "moment", "percent", "prose", "ranges", "shown"]
