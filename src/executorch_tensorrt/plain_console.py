"""A console that shows names from files as they are."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any

from executorch_tensorrt.words import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text


def plain_console(file: IO[str], width: int | None, **options: Any) -> Console:
    """A console of `rich`, with further options of it. All text that it prints is `printable`, line by line and cell
    by cell."""
    from rich.console import Console

    class Plain(Console):
        def render_str(self, text: str, **options: Any) -> Text:
            return super().render_str(printable(text), **options)

    return Plain(file=file, width=width, markup=False, highlight=False, emoji=False, **options)
