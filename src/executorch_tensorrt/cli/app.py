"""The group of commands, and the entry point."""

from __future__ import annotations

import sys

import click

from executorch_tensorrt import __version__, _native
from executorch_tensorrt.cli.advise import advise_command
from executorch_tensorrt.cli.build_engines import build_engines_command
from executorch_tensorrt.cli.demo import demo_command
from executorch_tensorrt.cli.doctor import doctor_command
from executorch_tensorrt.cli.export import export_command
from executorch_tensorrt.cli.failures import Group
from executorch_tensorrt.cli.inspect import inspect_command
from executorch_tensorrt.cli.profile import profile_command
from executorch_tensorrt.cli.report import report_command
from executorch_tensorrt.cli.run import run_command
from executorch_tensorrt.cli.strip import strip_command
from executorch_tensorrt.native_files import native_folder


def _print_prefix(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        click.echo(native_folder())
        ctx.exit()


@click.group(cls=Group, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--debug", is_flag=True, help="Show tracebacks and the warnings of other libraries.")
@click.version_option(__version__, prog_name="etrt", message="%(prog)s %(version)s")
@click.option(
    "--cmake-prefix-path",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_prefix,
    help="Print where CMake finds the package for C++ programs.",
)
@click.pass_context
def app(ctx: click.Context, debug: bool) -> None:
    """Export, run, inspect and profile ExecuTorch programs with TensorRT engines.

    Exit codes: 0 success; 2 a mistake in what was given (file, input, option), told in one line; 1 another failure.
    """
    ctx.obj = {"debug": debug}
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


COMMANDS = (
    export_command,
    build_engines_command,
    run_command,
    inspect_command,
    profile_command,
    report_command,
    advise_command,
    strip_command,
    demo_command,
    doctor_command,
)
for command in COMMANDS:
    app.add_command(command)


def main() -> None:
    """The entry point of `etrt`."""
    if "--debug" not in sys.argv:
        _native.silence_log()  # what it says, the message of a command says better
    app(prog_name="etrt")
