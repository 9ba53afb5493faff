"""`etrt inspect`: what a program holds. Nothing is loaded or run."""

from __future__ import annotations

from pathlib import Path

import click

from executorch_tensorrt.cli.console import print_json
from executorch_tensorrt.cli.failures import UserError, user_errors


@click.command("inspect", short_help="Show what a program holds: methods, engines, profiles.")
@click.argument("program", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@click.option("--check", is_flag=True, help="Print only what is wrong; the exit code is 1 if anything is.")
@click.pass_context
def inspect_command(ctx: click.Context, program: Path, as_json: bool, check: bool) -> None:
    """Show what a .pte program holds: methods, delegates, engines, and the shapes that each optimization profile takes.

    Nothing is loaded or run, so engines of every kind can be looked at. Programs of Torch-TensorRT work as well; their
    metadata has no profile ranges. Engine bytes are compared with the engine's id, profiles with the planned memory,
    and the engines of a method with each other.
    """
    from executorch_tensorrt.cli.contents import describe_program
    from executorch_tensorrt.cli.inspect_text import show_findings, show_program

    with user_errors():
        report = describe_program(program)
    if as_json:
        print_json(report)
    elif check:
        show_findings(report)
    else:
        show_program(report)
    errors = [finding for finding in report["findings"] if finding["severity"] == "error"]
    if check:
        ctx.exit(1 if errors else 0)
    for finding in errors:
        if finding["kind"] in ("blob", "id"):  # what `etrt run` refuses
            raise UserError(f"'{program}' {finding['text']}")
