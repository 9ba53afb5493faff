"""`etrt build-engines`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from executorch_tensorrt.cli.console import bytes_text, only_our_warnings, print_json, progress, say, stdout, table
from executorch_tensorrt.cli.failures import user_errors

if TYPE_CHECKING:
    from executorch_tensorrt.engines.tensorrt.build_requests import Outcome

_HELP = """Build the TensorRT engines that an export asked for on another machine.

DIR is the engine cache of that export: its engine_cache, or --engine-cache of 'etrt export'. Run this where the engines
will run; it needs TensorRT with its Python module, and no torch. What is built already is left as it is. Then take DIR
back and export again.

Where TensorRT refuses operators, the next export keeps them outside and asks for other engines: build once more then.

Exit codes: 0 all engines are there; 1 one could not be built, the others are; 2 a mistake in what was given.
"""


@click.command("build-engines", short_help="Build the engines that an export asked for.", help=_HELP)
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@click.pass_context
def build_engines_command(ctx: click.Context, folder: Path, as_json: bool) -> None:
    from executorch_tensorrt.engines.tensorrt.build_requests import build_requests

    with user_errors(), progress() as tell, only_our_warnings(ctx.obj["debug"]):
        outcomes = list(build_requests(folder, tell))
    if as_json:
        print_json({"folder": str(folder), "engines": [asdict(outcome) for outcome in outcomes]})
    else:
        _show(outcomes)
    ctx.exit(1 if any(outcome.is_new and outcome.error for outcome in outcomes) else 0)


def _show(outcomes: Sequence[Outcome]) -> None:
    rows = [
        (
            outcome.key[:12],
            outcome.builder or outcome.wanted,
            outcome.gpu,
            outcome.profiles or "",
            outcome.status,
            bytes_text(outcome.bytes) if outcome.bytes else "",
            f"{outcome.seconds:.1f} s",
        )
        for outcome in outcomes
    ]
    columns = ("request", "for", "GPU", "profiles", "engine", "size", "time")
    stdout().print(table("Engines", columns, rows, right=("profiles", "size", "time")))
    for outcome in outcomes:
        for operator, reason in outcome.operators.items():
            say(f"{outcome.key[:12]}: {operator} stays outside: {reason}", err=True)
        if outcome.error and not outcome.operators:
            say(f"{outcome.key[:12]}: {outcome.error}", err=True)
    counts = Counter(outcome.status for outcome in outcomes)
    told = ", ".join(f"{counts[status]} {status}" for status in sorted(counts))
    say(f"{told}." if counts["failed"] else f"{told}; export again.")
