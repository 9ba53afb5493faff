"""How commands fail: one line on stderr, exit code 2 for what the user can put right and 1 for the rest."""

from __future__ import annotations

import os
import re
import traceback
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from executorch_tensorrt.cli.console import say
from executorch_tensorrt.extras import needs_extra
from executorch_tensorrt.files import is_written_through

_GUARD = re.compile(r"use OptimizationProfileGuard\((\d+)\) or automatic selection")
_PRINT_NO_TABLE = {"--json", "-h", "--help"}


class UserError(click.ClickException):
    """A mistake in what the user gave: a file, an input, an option."""

    exit_code = 2


@contextmanager
def user_errors(*kinds: type[Exception], prefix: str = "") -> Generator[None, None, None]:
    """Takes exceptions of these kinds for the user's mistake.

    Args:
        kinds: ValueError, TypeError, MemoryError and OSError if none is given.
        prefix: put before the message.
    """
    caught = kinds or (ValueError, TypeError, MemoryError, OSError)
    try:
        yield
    except BrokenPipeError:
        raise
    except caught as error:
        raise UserError(f"{prefix}{describe(error)}") from error


def require_folder(path: Path) -> None:
    """Finds out before long work whether its result can be written.

    Raises:
        FileNotFoundError: the folder that `path` lies in does not exist.
        PermissionError: it takes no files.
    """
    if is_written_through(path):
        return
    if not path.parent.is_dir():
        raise FileNotFoundError(f"no folder '{path.parent}' for '{path.name}'; make it first")
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(
            f"the folder '{path.parent}' takes no files: '{path.name}' can't be written; name another"
        )


def describe(error: BaseException) -> str:
    """An exception's message in one line, with options of the command line in place of what Python has for them."""
    if isinstance(error, OSError) and error.strerror:
        return f"'{error.filename}': {error.strerror}" if error.filename else error.strerror
    text = " ".join(str(error).split()) or type(error).__name__
    return _GUARD.sub(r"use --optimization-profile \1 or auto", text)


def _show_traceback(error: BaseException) -> None:
    for part in traceback.format_exception(error):
        text = part.rstrip("\n")
        # A frame and what joins two exceptions have several lines; a message, in which names are, gets one.
        for line in text.split("\n") if text.startswith(("  File ", "\n")) else [text]:
            say(line, err=True)


class Group(click.Group):
    """A group whose commands fail as this module says."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order in which they were added, which is that of a user's work."""
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        if not _PRINT_NO_TABLE & set(rest):
            # Before the work, not when its result is to be shown.
            with user_errors(ModuleNotFoundError), needs_extra("report", f"'etrt {name}' without --json"):
                import_module("rich")
        return name, command, rest

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (click.ClickException, BrokenPipeError) as error:
            command = self.commands.get(ctx.invoked_subcommand or "")
            if isinstance(error, click.UsageError) and error.ctx is None and command:
                error.ctx = click.Context(command, ctx, command.name)  # click's parser leaves it out
            if ctx.params.get("debug") and error.__cause__ is not None:
                _show_traceback(error.__cause__)
            raise
        except (click.exceptions.Exit, click.Abort, KeyboardInterrupt):
            raise
        except Exception as error:
            if ctx.params.get("debug"):
                _show_traceback(error)
            text = f"{type(error).__name__}: {describe(error).rstrip('.')}"
            raise click.ClickException(f"{text}; 'etrt --debug ...' shows the traceback.") from error

    def main(self, *args: Any, **kwargs: Any) -> Any:
        kwargs["standalone_mode"] = False
        try:
            code = super().main(*args, **kwargs)
        except click.UsageError as error:
            path = error.ctx.command_path if error.ctx else "etrt"
            text = " ".join(error.format_message().split())
            text += "" if text.endswith((".", "?", "?)")) else "."
            say(f"{path}: {text} See '{path} --help'.", err=True)
            code = error.exit_code
        except click.ClickException as error:
            say(f"etrt: {error.format_message()}", err=True)
            code = error.exit_code
        except click.Abort:
            click.echo("etrt: interrupted", err=True)
            code = 130
        except OSError as error:  # of stdout, when the help or a result is printed
            say(f"etrt: {describe(error)}", err=True)
            code = 1
        raise SystemExit(code or 0)
