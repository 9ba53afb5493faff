"""`etrt profile`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from executorch_tensorrt.cli import values
from executorch_tensorrt.cli.arguments import optimization_profile, parse_input_sets
from executorch_tensorrt.cli.console import microseconds_text, progress, stdout, table
from executorch_tensorrt.cli.failures import user_errors
from executorch_tensorrt.words import count_text, shapes_text

if TYPE_CHECKING:
    from executorch_tensorrt.profiling import Session

_LEVELS = ("delegate", "phases", "layers")
_FORMATS = ("perfetto", "trex")

_HELP = f"""Run a method of a .pte program with profiling, and keep what its calls did in a folder.

The folder gets session.json, which 'etrt report' shows, and trace.etdp, the ETDump of the kept calls. With --format,
each engine writes a trace file of its own as well.

An --input is {values.GRAMMAR} Give the method's inputs again for further calls with other shapes: the sets take turns.

\b
  etrt profile model.pte --input 'random:float32[1,64]' --input 'random:float32[32,64]' -o run/
  etrt report run/
"""


@click.command("profile", short_help="Run a method and keep where its time went.", help=_HELP)
@click.argument("program", type=click.Path(path_type=Path))
@click.option("--input", "inputs", multiple=True, metavar="VALUE", help="One method input, in order; see above.")
@click.option("--method", default="forward", show_default=True, help="The method to run.")
@click.option("--runs", type=click.IntRange(1), default=20, show_default=True, help="Calls to keep.")
@click.option("--warmup", type=click.IntRange(0), default=3, show_default=True, help="Calls before, with each set.")
@click.option("--level", type=click.Choice(_LEVELS), default="layers", show_default=True, help="What to trace.")
@click.option("--format", type=click.Choice(_FORMATS), help="Also a trace file of each engine.")
@click.option(
    "--optimization-profile",
    "profile",
    metavar="auto|N",
    default="auto",
    show_default=True,
    callback=optimization_profile,
    help="What the calls request.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="For random inputs.")
@click.option("-o", "--output", required=True, help="The folder; made if need be.")
def profile_command(
    program: Path,
    inputs: tuple[str, ...],
    method: str,
    runs: int,
    warmup: int,
    level: Any,
    format: Any,
    profile: Any,
    seed: int,
    output: str,
) -> None:
    from executorch_tensorrt.profiling import capture
    from executorch_tensorrt.profiling.capture import make_output_folder
    from executorch_tensorrt.program.blobs import verify_engines
    from executorch_tensorrt.runtime import ExecuTorchError, Module

    with progress() as step, user_errors(ValueError, OSError, MemoryError, ExecuTorchError):
        verify_engines(program)  # tells what the runtime would not see
        make_output_folder(output)
        sets = parse_input_sets(inputs, seed, Module(program).method_meta(method))
        step(f"running '{method}' {warmup * len(sets) + runs} times")
        session = capture(
            program,
            sets,
            method=method,
            runs=runs,
            warmup=warmup,
            level=level,
            optimization_profile=profile,
            format=format,
            output=output,
        )
    _show(session, Path(output))


def _show(session: Session, output: Path) -> None:
    from executorch_tensorrt.profiling.processors import spread

    console = stdout()
    columns = ("median", "p90", "p99")
    rows = [
        (shapes_text(group.shapes), ", ".join(map(str, sorted(set(group.profiles.values())))), len(group.runs),
         *(microseconds_text(value) for value in (group.wall.median_us, group.wall.p90_us, group.wall.p99_us)))
        for group in spread(session)
    ]  # fmt: skip
    title = f"{count_text(len(session.runs), 'run')} at level {session.level}"
    console.print(table(title, ("inputs", "profiles", "runs", *columns), rows, right=("runs", *columns)))
    for note in session.notes:
        console.print(f"Note: {note}")
    console.print(f"Kept in {output}; 'etrt report {output}' shows where the time went.", soft_wrap=True)
