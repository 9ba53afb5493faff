"""The picture of proposed optimization profiles: their ranges over the recorded sizes, and the time of each call."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from executorch_tensorrt.profiling.processors import Advice
from executorch_tensorrt.profiling.renderers.page_scale import place_on, ticks_for
from executorch_tensorrt.words import count_text, microseconds_text, share_text

WIDTH = 1000
MAX_DOTS = 1500
COLOURS = 7

_LEFT, _RIGHT = 84.0, 980.0
_ROW, _BAR = 22.0, 14.0
_COUNTS, _TIMES, _GAP = 104.0, 190.0, 30.0
_BINS = 64
_TEXT = 7.0  # pixels for a character, at most


@dataclass(frozen=True)
class Rect:
    """A bar, with what it says when pointed at."""

    x: float
    y: float
    width: float
    height: float
    style: str
    title: str


@dataclass(frozen=True)
class Text:
    """A text; `anchor` is start, middle or end."""

    x: float
    y: float
    text: str
    anchor: str
    style: str


@dataclass(frozen=True)
class Line:
    """A straight line."""

    x1: float
    y1: float
    x2: float
    y2: float
    style: str


@dataclass(frozen=True)
class Dot:
    """A call."""

    x: float
    y: float
    style: str
    title: str


@dataclass
class Figure:
    """What to draw for one variable, in pixels of a picture that is `WIDTH` wide."""

    name: str
    label: str
    height: float = 0.0
    logarithmic: bool = False
    rects: list[Rect] = field(default_factory=list[Rect])
    lines: list[Line] = field(default_factory=list[Line])
    texts: list[Text] = field(default_factory=list[Text])
    dots: list[Dot] = field(default_factory=list[Dot])


def style_of(profile: int) -> str:
    """The style of a profile's colour."""
    return f"layer-{profile % COLOURS}"


def figure(advice: Advice, at: int) -> Figure:
    """The picture for the variable with this index."""
    return _Drawing(advice, at).figure


class _Drawing:
    def __init__(self, advice: Advice, at: int) -> None:
        self._advice, self._at = advice, at
        variable = advice.calls.variables[at]
        self._sizes: list[int] = advice.calls.sizes[:, at].tolist()
        proposed = [item.ranges[at] for item in advice.profiles]
        self._low = min([*self._sizes, *(low for low, _, _ in [*proposed, *variable.today])])
        self._high = max([*self._sizes, *(high for _, _, high in [*proposed, *variable.today]), self._low + 1])
        self.figure = Figure(
            variable.name, f"Sizes of {variable.name} in {count_text(len(self._sizes), 'call')}, with proposed ranges"
        )
        top = self._ranges(10.0)
        counts = top + _GAP
        times = counts + _COUNTS + _GAP
        self.figure.height = times + _TIMES + 40.0
        self._grid(counts, times + _TIMES)
        self._histogram(counts)
        self._scatter(times)

    def _x(self, size: float) -> float:
        share = place_on(size, self._low, self._high, logarithmic=True) / 100
        return round(_LEFT + 12 + share * (_RIGHT - _LEFT - 24), 1)

    def _text(self, x: float, y: float, text: str, anchor: str = "start", style: str = "tick") -> None:
        self.figure.texts.append(Text(round(x, 1), round(y, 1), text, anchor, style))

    def _ranges(self, top: float) -> float:
        for index, item in enumerate(self._advice.profiles):
            low, opt, high = item.ranges[self._at]
            span = str(low) if low == high else f"{low} to {high}, opt {opt}"
            text = f"{span} · {share_text(item.share)} of calls"
            self._range(f"profile {index}", (low, opt, high), top, style_of(index), text)
            top += _ROW
        for index, (low, opt, high) in enumerate(self._advice.calls.variables[self._at].today):
            span = str(low) if low == high else f"{low} to {high}, opt {opt}"
            self._range(f"today {index}", (low, opt, high), top, "today", span)
            top += _ROW
        return top

    def _range(self, name: str, span: tuple[int, int, int], top: float, style: str, text: str) -> None:
        low, opt, high = span
        begin, end, middle = self._x(low) - 5, self._x(high) + 5, top + _BAR - 3
        self.figure.rects.append(Rect(begin, top, round(end - begin, 1), _BAR, style, f"{name}: {text}"))
        self.figure.lines.append(Line(self._x(opt), top - 2, self._x(opt), top + _BAR + 2, "opt"))
        self._text(_LEFT - 8, middle, name, "end")
        # Beside the bar where there is room, else in it and clear of the mark.
        need = _TEXT * len(text)
        if end + need < _RIGHT:
            self._text(end + 6, middle, text)
        elif begin - need > _LEFT:
            self._text(begin - 6, middle, text, "end")
        elif self._x(opt) - begin > need:
            self._text(begin + 6, middle, text, "start", "label")
        else:
            self._text(end - 6, middle, text, "end", "label")

    def _grid(self, top: float, bottom: float) -> None:
        powers = [2**e for e in range(64) if self._low < 2**e < self._high]
        powers = powers[:: math.ceil(len(powers) / 14)] if powers else []
        ends = (self._x(self._low), self._x(self._high))
        free = [size for size in powers if all(abs(self._x(size) - end) > 34 for end in ends)]
        for size in [self._low, *free, self._high]:
            self.figure.lines.append(Line(self._x(size), top, self._x(size), bottom, "grid"))
            self._text(self._x(size), bottom + 16, str(size), "middle")
        self._text((_LEFT + _RIGHT) / 2, bottom + 34, f"size of {self.figure.name}, logarithmic scale", "middle")

    def _histogram(self, top: float) -> None:
        width = (_RIGHT - _LEFT - 24) / _BINS
        bins: dict[int, list[int]] = {}
        for call, size in enumerate(self._sizes):
            bins.setdefault(int((self._x(size) - _LEFT) / width), []).append(call)
        most = max(map(len, bins.values()))

        def y(count: int) -> float:
            return round(top + _COUNTS * (1 - math.sqrt(count / most)), 2)

        steps = {m * 10**e for e in range(9) for m in (1, 4)}
        shown = [0, *sorted(step for step in steps if most / 30 < step < 0.8 * most), most]
        self._axis("calls, square root scale", top, [(y(count), str(count)) for count in shown])
        for calls in bins.values():
            sizes = [self._sizes[call] for call in calls]
            span = str(min(sizes)) if min(sizes) == max(sizes) else f"{min(sizes)} to {max(sizes)}"
            x = round(sum(map(self._x, sizes)) / len(sizes) - width / 2 + 1, 1)
            below = 0
            for profile, count in sorted(Counter(self._advice.served[call] for call in calls).items()):
                title = f"{count_text(count, 'call')} with {span} on profile {profile}"
                height = round(y(below) - y(below + count), 2)
                self.figure.rects.append(
                    Rect(x, y(below + count), round(width - 2, 1), height, style_of(profile), title)
                )
                below += count

    def _scatter(self, top: float) -> None:
        walls = self._advice.calls.wall_us.tolist()
        positive = [wall for wall in walls if wall > 0]
        if not positive:
            self._text(_LEFT + 20, top + 20, "The recording has no times.")
            return
        self.figure.logarithmic = max(positive) > 8 * min(positive)
        ticks = ticks_for(min(positive), max(positive), self.figure.logarithmic)
        lower, upper = ticks[0][1], ticks[-1][1]

        def y(share: float) -> float:
            return round(top + _TIMES * (1 - share / 100), 1)

        self._axis("time of a call", top, [(y(place), microseconds_text(us)) for place, us in ticks])
        # Of many, some of every size: calls with different sizes take turns.
        ordered = sorted(range(len(walls)), key=lambda call: (self._sizes[call], walls[call]))
        for call in ordered[:: math.ceil(len(walls) / MAX_DOTS)]:
            if walls[call] > 0:
                at = y(place_on(walls[call], lower, upper, self.figure.logarithmic))
                profile = self._advice.served[call]
                title = f"{self._sizes[call]}: {microseconds_text(walls[call])}, proposed profile {profile}"
                self.figure.dots.append(Dot(self._x(self._sizes[call]), at, style_of(profile), title))

    def _axis(self, name: str, top: float, ticks: Sequence[tuple[float, str]]) -> None:
        for y, text in ticks:
            self.figure.lines.append(Line(_LEFT, y, _RIGHT, y, "grid"))
            self._text(_LEFT - 8, y + 4, text, "end")
        self._text(_LEFT + 4, top - 8, name)


__all__ = ["MAX_DOTS", "WIDTH", "Dot", "Figure", "Line", "Rect", "Text", "figure", "style_of"]
