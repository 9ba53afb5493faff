"""The canonical signature of a method's optimization profiles: `name[dim]=min:opt:max|min:opt:max`, comma-separated."""

from __future__ import annotations


def signature_entries(signature: str) -> dict[str, list[str]]:
    """For each input and dim, the text of its range in each optimization profile."""
    entries = (entry.rpartition("=") for entry in signature.split(",") if entry)
    return {name: ranges.split("|") for name, _, ranges in entries}


def signature_difference(one: str, other: str) -> str | None:
    """In what two signatures differ, to be said of two engines; None if they are equal."""
    if one == other:
        return None
    ours, theirs = signature_entries(one), signature_entries(other)
    for name in [*ours, *(name for name in theirs if name not in ours)]:
        mine, its = ours.get(name, []), theirs.get(name, [])
        if len(mine) != len(its):
            return (
                f"different numbers of optimization profiles for {name}: got {len(mine)} and {len(its)}, allowed one "
                "list for a method"
            )
        for index, (a, b) in enumerate(zip(mine, its, strict=True)):
            if a != b:
                return (
                    f"different meanings of profile {index}: got {name} = {a} and {b} (min:opt:max), allowed one "
                    "meaning for a method"
                )
    return f"optimization profiles declared in another order: got {one} and {other}, allowed one list for a method"
