"""What `etrt inspect` prints, from its report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from executorch_tensorrt.cli.console import bytes_text, shape_text, stdout, table
from executorch_tensorrt.words import count_text, ranges_text

if TYPE_CHECKING:
    from rich.console import Console

Json = dict[str, Any]


def show_program(report: Json) -> None:
    """Prints all of a report."""
    console = stdout()
    sizes = (
        f"{bytes_text(report['file_bytes'])}, {bytes_text(report['constant_bytes'])} of it weights outside delegates"
    )
    console.print(f"{report['program']}: {sizes}")
    for method in report["methods"]:
        _show_method(console, method)
        for delegate in method["delegates"]:
            if delegate["engine"] is not None:
                _show_engine(console, delegate["index"], delegate["engine"])
        if any(delegate["engine"] is not None for delegate in method["delegates"]):
            _show_plan(console, method)
    console.print()
    show_findings(report)


def show_findings(report: Json) -> None:
    """Prints what is wrong, and what could not be found out, one a line."""
    console, findings = stdout(), report["findings"]
    errors = sum(finding["severity"] == "error" for finding in findings)
    console.print(f"Findings: {errors or 'none'}", style="bold")
    for finding in findings:
        console.print(f"{finding['severity']}: {finding['text']}", soft_wrap=True)


def _show_method(console: Console, method: Json) -> None:
    console.print()
    console.print(f"Method {method['name']}", style="bold")
    rows = [
        (f"{side[:-1]} {index}", item.get("name") or "", item["dtype"] or item["kind"], _shape_of(item))
        for side in ("inputs", "outputs")
        for index, item in enumerate(method[side])
    ]
    console.print(table("Inputs and outputs", ("", "name", "dtype", "shape"), rows))
    arenas = [
        f"{bytes_text(size)}{f' on {device}' if device != 'cpu' else ''}"
        for size, device in zip(method["planned_bytes"], method["planned_devices"], strict=True)
    ]
    console.print(f"Planned memory: {', '.join(arenas) or 'none'}")
    operators = [f"{name} x{count}" for name, count in method["operators"].items()]
    console.print(f"Operators outside delegates: {', '.join(operators) or 'none'}")
    rows = [(item["index"], item["backend"], bytes_text(item["bytes"])) for item in method["delegates"]]
    if rows:
        console.print(table("Delegates", ("#", "backend", "size"), rows, right=("size",)))
    else:
        console.print("Delegates: none")


def _show_engine(console: Console, index: int, engine: Json) -> None:
    target = engine["target_platform"] or "any platform"
    if engine["format"] != "ETC1":
        target += f", GPU {engine['device_id']}{' and others' if engine['hardware_compatible'] else ''}"
    lines = [
        f"Engine of delegate {index}: {engine['kind'] or 'tensorrt or tensorrt_rtx'}, format {engine['format']}, id "
        f"{engine['id'] or 'not recorded'}, {bytes_text(engine['bytes'])}, "
        f"{'runs' if engine['runs_here'] else 'does not run'} in this environment",
        f"Built by {engine['builder'] or 'another exporter'} for {target}",
        _profiles_text(engine),
        _sources_text(engine["sources"]),
    ]
    lines += [f"Output {item['output']} is input {item['input']} ({item['kind']})" for item in engine["aliased_io"]]
    console.print()
    for line in lines:
        console.print(line)
    profiles: list[Json] = engine["profiles"] or []
    rows: list[tuple[object, ...]] = []
    for place, item in enumerate(engine["inputs"]):
        ranges = (_range_text(profile["inputs"][place]) for profile in profiles)
        rows.append(("input", *_binding_texts(item), *ranges))
    for item in engine["outputs"]:
        rows.append(("output", *_binding_texts(item)))
    columns = ("", "binding", "dtype", "shape", *(f"profile {number}" for number in range(len(profiles))))
    console.print(table("Bindings", columns, rows))


def _profiles_text(engine: Json) -> str:
    if engine["signature"]:
        return f"Signature: {engine['signature']}"
    return "Profile ranges are known to the engine alone" if engine["profiles"] is None else "Signature: static"


def _sources_text(sources: Json | None) -> str:
    if sources is None:
        return "Debug handles: not recorded"
    total, known = sources["operators"], sources["operators_with_source"]
    covered = "" if total is None else f" for {known} of {count_text(total, 'operator')}"
    linked = sources["linked_by_layers"]
    named = ", ".join(f"{count} in profile {index}" for index, count in enumerate(linked))
    if len(set(linked)) == 1:
        named = f"{linked[0]} in each profile"
    return f"Debug handles: {sources['handles']}{covered}; layers name {named or 'none'}"


def _show_plan(console: Console, method: Json) -> None:
    totals: list[Json] = method["profiles"]
    agree = {True: "all engines agree", False: "engines disagree", None: "not all engines say theirs"}
    count = count_text(len(totals), "optimization profile") if totals else "optimization profiles"
    console.print()
    console.print(f"{count[0].upper()}{count[1:]}: {agree[method['profiles_agree']]}")
    names = [f"profile {index}" for index in range(len(totals))]
    shown, others = _shown(method["memory"])
    rows = [_plan_row(method, item, len(totals)) for item in shown]
    if others:
        rows.append(_plan_row(method, _sum(f"between delegates ({len(others)})", others, len(totals)), len(totals)))
    if totals:
        rows.append(_plan_row(method, _sum("together", method["memory"], len(totals)), len(totals)))
    columns = ("", "memory", "planned", *names)
    if len(method["planned_bytes"]) == 1 and all(item["arena"] == 0 for item in method["memory"]):
        columns, rows = (columns[0], *columns[2:]), [(row[0], *row[2:]) for row in rows]
    title = "Memory plan and needs at each profile's maximum" if totals else "Memory plan"
    console.print(table(title, columns, rows, right=("planned", *names)))


def _shown(memory: Sequence[Json]) -> tuple[list[Json], list[Json]]:
    """Inputs, outputs and what is too small; and the rest."""
    shown: list[Json] = []
    others: list[Json] = []
    for item in memory:
        told = not item["tensor"].startswith("delegate") or not all(need["fits"] for need in item["profiles"] or ())
        (shown if told else others).append(item)
    return shown, others


def _sum(name: str, memory: Sequence[Json], count: int) -> Json:
    """As one tensor, without those whose needs are not known."""
    known = [item for item in memory if item["profiles"] or not count]
    needs = [{"bytes": sum(item["profiles"][index]["bytes"] for item in known), "fits": True} for index in range(count)]
    planned = sum(item["planned_bytes"] for item in known)
    return {"tensor": name, "arena": "", "planned_bytes": planned, "profiles": needs}


def _plan_row(method: Json, item: Json, count: int) -> tuple[str, ...]:
    planned, needs = item["planned_bytes"], item["profiles"] or [None] * count
    return (
        item["tensor"],
        _arena_text(method, item["arena"]),
        bytes_text(planned),
        *(_need_text(need, planned) for need in needs),
    )


def _arena_text(method: Json, arena: int | str | None) -> str:
    if isinstance(arena, int):
        return f"{method['planned_devices'][arena]}, arena {arena}"
    return "the caller's" if arena is None else arena


def _need_text(need: Json | None, planned: int) -> str:
    if need is None:
        return "not known"
    share = f"{100 * need['bytes'] / planned if planned else 0:.0f} %"
    return f"{bytes_text(need['bytes'])} ({share if need['fits'] else 'TOO LARGE'})"


def _binding_texts(item: Json) -> tuple[str, str, str]:
    shape = "not recorded" if item["shape"] is None else shape_text(item["shape"])
    return item["name"], item["dtype"] or "not recorded", shape


def _shape_of(value: Json) -> str:
    return f"{'up to ' if value['dynamic'] else ''}{shape_text(value['shape'])}"


def _range_text(ranges: dict[str, Sequence[int]]) -> str:
    return ranges_text(list(zip(ranges["min"], ranges["opt"], ranges["max"], strict=True)))
