"""`etrt advise`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from executorch_tensorrt.cli.console import say_wrote, terminal
from executorch_tensorrt.cli.failures import require_folder, user_errors
from executorch_tensorrt.cli.sessions import load_session
from executorch_tensorrt.files import write_atomically

if TYPE_CHECKING:
    from executorch_tensorrt.profiling.processors import Advice

_HELP = """Propose optimization profiles for the input sizes that a program is called with.

A SESSION is the folder that 'etrt profile' wrote, or its session.json; or an ETDump that another process wrote, with
--program for the .pte file that it ran. The calls of all sessions count, which have to be of one program.

Shown are the proposed ranges, the share of the calls that each would serve, what they gain where the recording tells
it, and code for the export.

\b
  etrt advise run/
  etrt advise run/ --html advice.html --code inputs.py
  etrt advise monday.etdp tuesday.etdp --program model.pte
"""


@click.command("advise", short_help="Propose optimization profiles for recorded calls.", help=_HELP)
@click.argument("sessions", nargs=-1, metavar="SESSION...", type=click.Path(path_type=Path))
@click.option("--method", help="The method, where sessions have several.")
@click.option("--program", type=click.Path(path_type=Path), help="The program that ETDumps are of.")
@click.option(
    "--max-profiles", type=click.IntRange(1, 16), default=4, show_default=True,
    help="The largest number to propose; there are fewer where another would gain little.",
)  # fmt: skip
@click.option(
    "--recorded-only", is_flag=True, help="End the last profile at the recorded sizes, not at today's limits."
)
@click.option("--json", "as_json", is_flag=True, help="Print the advice as JSON.")
@click.option(
    "--html", type=click.Path(dir_okay=False, path_type=Path), help="Write a page with a picture to this file."
)
@click.option(
    "--code", type=click.Path(dir_okay=False, path_type=Path), help="Write the declarations to this Python file."
)
def advise_command(
    sessions: tuple[Path, ...],
    method: str | None,
    program: Path | None,
    max_profiles: int,
    recorded_only: bool,
    as_json: bool,
    html: Path | None,
    code: Path | None,
) -> None:
    if not sessions:
        raise click.UsageError("wrong number of sessions: got 0, allowed one or more.")
    from executorch_tensorrt.profiling.processors import advise
    from executorch_tensorrt.profiling.renderers import json
    from executorch_tensorrt.profiling.renderers.advice import console
    from executorch_tensorrt.profiling.renderers.advice.code import python_code

    renderers: dict[Path, Callable[[Advice], str]] = {}
    if html is not None:
        from executorch_tensorrt.profiling.renderers.advice import page

        renderers[html] = page.render
    if code is not None:
        renderers[code] = python_code
    with user_errors():
        for path in renderers:
            require_folder(path)
        loaded = [load_session(path, program, method or "forward") for path in sessions]
        advice = advise(loaded, method, max_profiles=max_profiles, recorded_only=recorded_only)
        click.echo(json.render_advice(advice) if as_json else console.render(advice, **terminal()))
        for path, render in renderers.items():
            write_atomically(path, render(advice).encode())
            say_wrote(path, err=as_json)
