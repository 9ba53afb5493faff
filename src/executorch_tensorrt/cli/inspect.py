"""`etrt inspect`: what a program holds. Nothing is loaded or run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from executorch_tensorrt.cli.console import bytes_text, print_json, printable, shape_text, stdout, table
from executorch_tensorrt.cli.failures import UserError, user_errors


@click.command("inspect", short_help="Show what a program holds: methods, engines, profiles.")
@click.argument("program", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def inspect_command(program: Path, as_json: bool) -> None:
    """Show what a .pte program holds: methods, delegates, engines, and the shapes that each optimization profile takes.

    Nothing is loaded or run, so engines of every kind can be looked at. Programs of Torch-TensorRT work as well; their
    metadata has no profile ranges. Engine bytes are compared with the engine's id.
    """
    from executorch_tensorrt.cli.contents import describe_program

    with user_errors():
        report = describe_program(program)
    if as_json:
        print_json(report)
    else:
        _show(report)
    delegates = [delegate for method in report["methods"] for delegate in method["delegates"]]
    damaged = [item["engine"]["id"] for item in delegates if item["engine"] and item["engine"]["intact"] is False]
    if damaged:
        raise UserError(
            f"'{program}' is damaged: engine {', '.join(damaged)} has other bytes than its id says; export it again."
        )


def _show(report: dict[str, Any]) -> None:
    console = stdout()
    sizes = (
        f"{bytes_text(report['file_bytes'])}, {bytes_text(report['constant_bytes'])} of it weights outside delegates"
    )
    console.print(f"{report['program']}: {sizes}")
    for method in report["methods"]:
        _show_method(console, method)
        for delegate in method["delegates"]:
            if delegate["engine"] is not None:
                _show_engine(console, delegate)


def _show_method(console: Any, method: dict[str, Any]) -> None:
    console.print(f"\nMethod {printable(method['name'])}", style="bold")
    rows = [
        (f"{side[:-1]} {index}", item["dtype"] or item["kind"], _shape_of(item))
        for side in ("inputs", "outputs")
        for index, item in enumerate(method[side])
    ]
    console.print(table("Signature", ("", "dtype", "shape"), rows))
    arenas = [
        f"{bytes_text(size)}{f' on {device}' if device != 'cpu' else ''}"
        for size, device in zip(method["planned_bytes"], method["planned_devices"], strict=True)
    ]
    console.print(f"Planned memory: {', '.join(arenas) or 'none'}")
    operators = [f"{name} x{count}" for name, count in method["operators"].items()]
    console.print(printable(f"Operators outside delegates: {', '.join(operators) or 'none'}"))
    rows = [(item["index"], item["backend"], bytes_text(item["bytes"])) for item in method["delegates"]]
    console.print(table("Delegates", ("#", "backend", "size"), rows, right=("size",)))


def _show_engine(console: Any, delegate: dict[str, Any]) -> None:
    engine = delegate["engine"]
    lines = [
        f"Engine of delegate {delegate['index']}: {engine['kind'] or 'TensorRT'}, id {engine['id'] or 'not recorded'}, "
        f"{bytes_text(engine['bytes'])}, {'runs' if engine['runs_here'] else 'does not run'} in this environment",
        f"Built by {engine['builder'] or 'another exporter'} for {engine['target_platform'] or 'any platform'}",
    ]
    if engine["profiles"] is None:
        lines.append("Not exported by executorch-tensorrt: profile ranges are known to the engine alone")
    else:
        lines.append(f"Signature: {engine['signature'] or 'static'}")
    lines += [f"Output {item['output']} is input {item['input']} ({item['kind']})" for item in engine["aliased_io"]]
    console.print(printable("\n".join(lines)))
    profiles: list[dict[str, Any]] = engine["profiles"] or []
    rows: list[tuple[object, ...]] = []
    for index, item in enumerate(engine["inputs"]):
        ranges = (_range_text(profile["inputs"][index]) for profile in profiles)
        rows.append(("input", *_binding_texts(item), *ranges))
    for item in engine["outputs"]:
        rows.append(("output", *_binding_texts(item)))
    columns = ("", "binding", "dtype", "shape", *(f"profile {index}" for index in range(len(profiles))))
    console.print(table("Bindings", columns, rows))


def _binding_texts(item: dict[str, Any]) -> tuple[str, str, str]:
    shape = "not recorded" if item["shape"] is None else shape_text(item["shape"])
    return item["name"], item["dtype"] or "not recorded", shape


def _shape_of(value: dict[str, Any]) -> str:
    return f"{'up to ' if value['dynamic'] else ''}{shape_text(value['shape'])}"


def _range_text(ranges: dict[str, list[int]]) -> str:
    """One dim after another, as the canonical signature writes it."""
    dims = zip(ranges["min"], ranges["opt"], ranges["max"], strict=True)
    return shape_text([low if low == high else f"{low}:{opt}:{high}" for low, opt, high in dims])
