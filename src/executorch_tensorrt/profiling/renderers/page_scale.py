"""Scales of charts."""

from __future__ import annotations

import math


def ticks_for(lower: float, upper: float, logarithmic: bool) -> list[tuple[float, float]]:
    """Places in percent, and round figures from at or below `lower` to at or above `upper`."""
    if logarithmic:
        steps = [m * 10.0**e for e in range(-3, 13) for m in (1, 2, 5)]
    else:
        raw = max((upper - lower) / 4, upper * 0.02)
        power = 10.0 ** math.floor(math.log10(raw))
        step = next(m * power for m in (1, 2, 5, 10) if m * power >= raw)
        first = math.floor(lower / step)
        steps = [step * k for k in range(first, math.ceil(upper / step) + 2)]
    begin = max((k for k, s in enumerate(steps) if s <= lower), default=0)
    end = min((k for k, s in enumerate(steps) if s >= upper and k > begin), default=len(steps) - 1)
    chosen = steps[begin : end + 1]
    return [(place_on(s, chosen[0], chosen[-1], logarithmic), s) for s in chosen]


def place_on(value: float, lower: float, upper: float, logarithmic: bool) -> float:
    """Percent of the way from `lower` to `upper`."""
    if logarithmic:
        value, lower, upper = math.log(value), math.log(lower), math.log(upper)
    return round(100 * (value - lower) / (upper - lower), 2)


__all__ = ["place_on", "ticks_for"]
