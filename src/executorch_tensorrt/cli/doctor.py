"""`etrt doctor`: what is installed and what works here."""

from __future__ import annotations

from typing import Any

import click

from executorch_tensorrt.cli.console import print_json, stdout, table
from executorch_tensorrt.words import bytes_text


@click.command("doctor", short_help="Show versions, what is installed and what works here.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@click.pass_context
def doctor_command(ctx: click.Context, as_json: bool) -> None:
    """Show versions, whether CUDA and TensorRT are there, which engine kinds run here, and whether tracing works.

    The exit code is 1 if programs with TensorRT delegates cannot run here at all.
    """
    from executorch_tensorrt.cli.checks import examine

    report = examine()
    if as_json:
        print_json(report)
    else:
        _show(report)
    if not report["backend_registered"]:
        ctx.exit(1)


def _show(report: dict[str, Any]) -> None:
    console = stdout()
    console.print(table("Versions", ("package", "version"), report["versions"].items()))
    machine = report["machine"]
    rows = [(name, machine[name]) for name in ("processor", "cores", "platform")]
    console.print()
    console.print(table("Machine", ("", ""), rows))
    cuda = report["cuda"]
    rows = [("CUDA driver", cuda["driver"] or f"no: {cuda['problem']}")]
    rows += [("GPU", f"{gpu['name']}, {bytes_text(gpu['bytes'])}, compute {gpu['compute']}") for gpu in cuda["devices"]]
    rows += [(item["name"], item["library"] or f"no: {item['problem']}") for item in report["libraries"]]
    console.print()
    console.print(table("CUDA and TensorRT", ("", "found"), rows))
    rows = [
        (
            "TensorRTBackend",
            "registered" if not report["backend_problem"] else f"not registered: {report['backend_problem']}",
        ),
        *(
            (f"engine kind {item['kind']}", "runs here" if item["runs"] else f"does not run: {item['reason']}")
            for item in report["engines"]
        ),
        (
            "event tracing",
            "compiled in" if report["tracing_compiled_in"] else "not compiled in: no events are recorded",
        ),
    ]
    console.print()
    console.print(table("What works", ("", "state"), rows))
