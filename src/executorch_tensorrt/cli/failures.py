"""How commands fail: one line on stderr, exit code 2 for what the user can put right and 1 for the rest."""

from __future__ import annotations

import traceback
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click


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
    """
    if not path.parent.is_dir():
        raise FileNotFoundError(f"no folder '{path.parent}' for '{path.name}'; make it first")


def describe(error: BaseException) -> str:
    """An exception's message in one line."""
    if isinstance(error, OSError) and error.strerror:
        return f"'{error.filename}': {error.strerror}" if error.filename else error.strerror
    return " ".join(str(error).split()) or type(error).__name__


class Group(click.Group):
    """A group whose commands fail as this module says."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (click.ClickException, BrokenPipeError) as error:
            if ctx.params.get("debug") and error.__cause__ is not None:
                traceback.print_exception(error.__cause__)
            raise
        except (click.exceptions.Exit, click.Abort, KeyboardInterrupt):
            raise
        except Exception as error:
            if ctx.params.get("debug"):
                traceback.print_exception(error)
            text = f"{type(error).__name__}: {describe(error)}"
            raise click.ClickException(f"{text}; 'etrt --debug ...' shows the traceback.") from error

    def main(self, *args: Any, **kwargs: Any) -> Any:
        kwargs["standalone_mode"] = False
        try:
            code = super().main(*args, **kwargs)
        except click.UsageError as error:
            path = error.ctx.command_path if error.ctx else "etrt"
            click.echo(f"{path}: {' '.join(error.format_message().split())} See '{path} --help'.", err=True)
            code = error.exit_code
        except click.ClickException as error:
            click.echo(f"etrt: {error.format_message()}", err=True)
            code = error.exit_code
        except click.Abort:
            click.echo("etrt: interrupted", err=True)
            code = 130
        raise SystemExit(code or 0)
