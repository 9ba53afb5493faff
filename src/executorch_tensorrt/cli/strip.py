"""`etrt strip`."""

from __future__ import annotations

from pathlib import Path

import click

from executorch_tensorrt.cli.console import say
from executorch_tensorrt.cli.failures import user_errors
from executorch_tensorrt.files import is_written_through

_HELP = """Copy a file without what it tells of the machine and the source code that made it, to share it.

FILE is a .pte program, an ETRecord, or the folder or session.json that 'etrt profile' wrote. Source lines, paths and
the machine are taken out. Names of inputs, modules and operators stay, and so do weights, times and versions: the
program runs as before and has the same engines, the session is reported, and the ETRecord ties events to operators.
"""


@click.command("strip", short_help="Copy a file without source lines, paths and machine.", help=_HELP)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="The file to write.")
def strip_command(file: Path, output: Path) -> None:
    from executorch_tensorrt.stripping import strip

    with user_errors():
        kind = strip(file, output)
    told = f"{output}: the {kind} of '{file}' without source lines, paths and machine"
    say(told, err=is_written_through(output))
