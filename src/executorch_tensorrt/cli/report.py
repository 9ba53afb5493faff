"""`etrt report`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from executorch_tensorrt.cli.console import say_wrote, terminal
from executorch_tensorrt.cli.failures import UserError, user_errors
from executorch_tensorrt.cli.sessions import load_session
from executorch_tensorrt.files import write_atomically

if TYPE_CHECKING:
    from executorch_tensorrt.profiling import Session

_RENDERERS = ("console", "html", "perfetto", "trex", "json")
_PRINTED = ("console", "json")

_HELP = """Show where the time of captured runs went.

A SESSION is the folder that 'etrt profile' wrote, or its session.json; or an ETDump that another process wrote, with
--program for the .pte file that it ran; or a folder with the Perfetto traces that engines wrote. Several sessions of
one program, each of another method, are shown as one.

'console' and 'json' are printed. 'html', 'perfetto' and 'trex' are written beside the session, or where -o says.

\b
  etrt report run/
  etrt report run/ -r html -o report.html
  etrt report --compare before/ after/
  etrt report device.etdp --program model.pte
"""


@click.command("report", short_help="Show where the time went.", help=_HELP)
@click.argument("sessions", nargs=-1, metavar="SESSION...", type=click.Path(path_type=Path))
@click.option(
    "-r", "--renderer", type=click.Choice(_RENDERERS), default="console", show_default=True, help="The form to show."
)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="A file, or a folder for it. '-': print.")
@click.option("--compare", is_flag=True, help="Show what changed from the first session to the second.")
@click.option("--program", type=click.Path(path_type=Path), help="The program that an ETDump is of.")
@click.option("--method", default="forward", show_default=True, help="The method that an ETDump is of.")
def report_command(
    sessions: tuple[Path, ...], renderer: Any, output: Path | None, compare: bool, program: Path | None, method: str
) -> None:
    if not sessions or (compare and len(sessions) != 2):
        allowed = "two with --compare" if compare else "one or more"
        raise click.UsageError(f"wrong number of sessions: got {len(sessions)}, allowed {allowed}.")
    if compare and renderer not in _PRINTED:
        raise click.UsageError(f"--compare has no such renderer: got '{renderer}', allowed {', '.join(_PRINTED)}.")
    from executorch_tensorrt.profiling import merge

    with user_errors():
        loaded = [load_session(path, program, method) for path in sessions]
        texts = _comparison(loaded, renderer) if compare else _report(merge(loaded), renderer)
        if not texts:
            raise UserError("no engine reported layers, so there are no trex files; capture with --level layers.")
        if output == Path("-") or (output is None and renderer in _PRINTED):
            for text in texts.values():
                click.echo(text, nl=not text.endswith("\n"))
            return
        beside = sessions[0] if sessions[0].is_dir() else sessions[0].parent
        for path, text in _targets(texts, beside if output is None else output).items():
            write_atomically(path, text.encode())
            say_wrote(path)


def _report(session: Session, renderer: Any) -> Mapping[str, str]:
    from executorch_tensorrt.profiling.renderers import console, render

    if renderer == "console":
        return {"report.txt": console.render(session, **terminal())}
    return render(session, renderer)


def _comparison(sessions: list[Session], renderer: str) -> Mapping[str, str]:
    from executorch_tensorrt.profiling.processors import compare
    from executorch_tensorrt.profiling.renderers import console, json

    comparison = compare(*sessions)
    if renderer == "json":
        return {"comparison.json": json.render_comparison(comparison)}
    return {"comparison.txt": console.render_comparison(comparison, **terminal())}


def _targets(texts: Mapping[str, str], output: Path) -> dict[Path, str]:
    """Where each text goes. Several need a folder."""
    if len(texts) == 1 and not output.is_dir():
        (text,) = texts.values()
        return {output: text}
    output.mkdir(exist_ok=True)
    return {output / name: text for name, text in texts.items()}
