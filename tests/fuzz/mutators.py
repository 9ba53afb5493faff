"""Deterministic damage, from a seed: of bytes anywhere, and of JSON in its values and its structure."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

HOSTILE_TEXTS = (
    "", "0", "-1", "9" * 30, "²", "a" * 3000, "x.y" * 300, "m." * 3000, "L" + " #1" * 3000 + "x",
    "\x1b]0;owned\x07", "\x9b31m",
    "a\nb\r\tc", "\u202egnp.exe", "\ud800", "\0", "[/x]", "[bold]", "</script><script>document.title='x'</script>",
    "{{ 7*7 }}", "'\"><img src=x onerror=1>", "%s%n", "../../x", "torchtrt.delegate", "DELEGATE_CALL",
    "Method::execute",
)  # fmt: skip
HOSTILE_NUMBERS = (
    0, 1, -1, 2, 255, 2**31, 2**63 - 1, 2**63, -(2**63), 2**64, 10**30, 10**4000, 0.0, -0.5, 1e-300, 1e17, 1e18, 1e300,
    float("inf"), float("-inf"), float("nan"),
)  # fmt: skip


def damaged_bytes(data: bytes, rng: random.Random) -> bytes:
    """One to three places changed, cut out, doubled, or cut off."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(max(len(changed), 1))
        size = rng.choice((1, 2, 4, 8, 40))
        kind = rng.randrange(6)
        if kind == 0:
            changed[at : at + 1] = bytes([rng.randrange(256)])
        elif kind == 1:
            changed[at : at + 4] = rng.choice((0, 1, 4, 2**31 - 1, 2**32 - 1, len(data))).to_bytes(4, "little")
        elif kind == 2:
            del changed[at : at + size]
        elif kind == 3:
            changed[at:at] = changed[at : at + size]
        elif kind == 4:
            other = rng.randrange(max(len(changed), 1))
            changed[at : at + size] = changed[other : other + size]
        elif rng.random() < 0.2:
            del changed[at:]
    return bytes(changed)


def damaged_json(value: Any, rng: random.Random) -> Any:
    """One to three of its values changed, dropped, doubled or exchanged."""
    changed = copy.deepcopy(value)
    for _ in range(rng.randint(1, 3)):
        places = list(_places(changed))
        if not places:
            return _other(changed, rng)
        # The few places near the root as often as the many leaves.
        deepest = rng.randint(1, max(depth for _, _, depth in places))
        holder, key, _ = rng.choice([place for place in places if place[2] <= deepest])
        kind = rng.randrange(10)
        if kind == 0:
            del holder[key]
        elif kind == 1 and isinstance(holder, list):
            holder.insert(key, copy.deepcopy(holder[key]))
        elif kind == 2:
            other, place, _ = rng.choice(places)
            if (isinstance(other, list) and place < len(other)) or (isinstance(other, dict) and place in other):
                holder[key] = copy.deepcopy(other[place])
        elif kind == 3 and isinstance(holder, dict):
            holder[rng.choice(HOSTILE_TEXTS)] = holder.pop(key)
        else:
            holder[key] = _other(holder[key], rng)
    return changed


def written(value: Any, rng: random.Random) -> bytes:
    """Its text, which is now and then damaged as well."""
    text = json.dumps(value).encode()
    return damaged_bytes(text, rng) if rng.random() < 0.1 else text


def _other(value: Any, rng: random.Random) -> Any:
    choice = rng.randrange(7)
    if choice == 0:
        return rng.choice(HOSTILE_TEXTS)
    if choice == 1:
        return rng.choice((None, True, False, [], {}, [None], {"": None}, [[]], [value], {"x": value}))
    if choice == 2:
        return _deep(rng.choice((5, 30, 300)), rng)
    if isinstance(value, str):
        return rng.choice(HOSTILE_TEXTS)
    if isinstance(value, (int, float)) and choice < 6:
        return rng.choice(HOSTILE_NUMBERS)
    return rng.choice((*HOSTILE_NUMBERS, *HOSTILE_TEXTS))


def _deep(levels: int, rng: random.Random) -> Any:
    found: Any = 1
    for _ in range(levels):
        found = [found] if rng.random() < 0.5 else {"x": found}
    return found


def _places(value: Any, depth: int = 1) -> Iterator[tuple[Any, Any, int]]:
    """Every value in a tree, by what holds it."""
    if depth > 30:
        return
    for key in list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield value, key, depth
        yield from _places(value[key], depth + 1)
