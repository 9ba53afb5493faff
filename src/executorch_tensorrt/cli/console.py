"""What the commands print: results to stdout, progress to stderr. `rich` is imported when something is printed."""

from __future__ import annotations

import json
import logging
import math
import shutil
import sys
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from executorch_tensorrt.files import is_written_through
from executorch_tensorrt.plain_console import plain_console
from executorch_tensorrt.words import bytes_text, microseconds_text, printable, shape_text

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = [
    "bytes_text",
    "microseconds_text",
    "only_our_warnings",
    "print_json",
    "progress",
    "say",
    "say_wrote",
    "shape_text",
    "stdout",
    "table",
    "terminal",
]

_WIDTH_OF_FILES = 140


def stdout() -> Console:
    """A console for results."""
    return plain_console(sys.stdout, None if sys.stdout.isatty() else _WIDTH_OF_FILES)


def say(text: str, *, err: bool = False) -> None:
    """Prints one line, whatever names are in it."""
    click.echo(printable(text), err=err)


def say_wrote(path: Path, *, err: bool = False) -> None:
    """Tells of a file, but not into it."""
    say(f"Wrote {path}", err=err or is_written_through(path))


def terminal() -> dict[str, Any]:
    """Width and colours for what renders a text."""
    if not sys.stdout.isatty():
        return {"width": _WIDTH_OF_FILES}
    return {"width": shutil.get_terminal_size().columns, "color": True}


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], right: Sequence[str] = ()) -> Table:
    """A table; the columns named in `right` are right-aligned."""
    from rich import box
    from rich.table import Table

    result = Table(
        title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, title_style="bold"
    )
    for column in columns:
        result.add_column(column, justify="right" if column in right else "left", overflow="fold")
    for row in rows:
        result.add_row(*map(str, row))
    return result


def print_json(value: object) -> None:
    """Prints strict JSON: numbers that it lacks (NaN, infinity) become null."""
    click.echo(json.dumps(_strict(value), indent=2, allow_nan=False))


def _strict(value: object) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _strict(item) for key, item in cast("dict[Any, object]", value).items()}
    if isinstance(value, (list, tuple)):
        return [_strict(item) for item in cast("Sequence[object]", value)]
    return value


@contextmanager
def progress() -> Generator[Callable[[str], None], None, None]:
    """Shows on stderr what is being done: a spinner on a terminal, else a line for each step."""
    started = time.perf_counter()
    if not sys.stderr.isatty():
        yield lambda text: say(f"[{time.perf_counter() - started:5.1f} s] {text}", err=True)
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status("") as status:
        yield lambda text: status.update(Text(f"{printable(text)} ..."))  # a str would be markup


@contextmanager
def only_our_warnings(debug: bool) -> Generator[None, None, None]:
    """Shows our own warnings as one line each, and neither warnings nor logs of other libraries."""
    if debug:
        yield
        return
    package = str(Path(__file__).parents[1])

    def show(message: Warning | str, category: type[Warning], filename: str, *_: Any) -> None:
        if filename.startswith(package) and issubclass(category, UserWarning):
            say(f"etrt: warning: {message}", err=True)

    logging.disable(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            warnings.showwarning = show
            yield
    finally:
        logging.disable(logging.NOTSET)
