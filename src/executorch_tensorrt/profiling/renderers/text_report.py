"""Sections of text with tables, for a terminal."""

from __future__ import annotations

import io
from collections.abc import Sequence

from executorch_tensorrt.extras import needs_extra
from executorch_tensorrt.plain_console import plain_console
from executorch_tensorrt.words import printable, short_text

WIDTH = 140
TIMES = ("median", "p90", "p99")
_LONGEST_LINE = 600
_LONG_COLUMNS = frozenset({"operators", "modules", "source lines"})
_ROWS = 30


class TextReport:
    """Sections of text. Names come from files: they are shown as they are, without what a terminal would obey."""

    def __init__(self, width: int, color: bool) -> None:
        self._file = io.StringIO()
        colors = {"force_terminal": color, "color_system": "auto" if color else None}
        with needs_extra("report", "a report as text"):
            self._console = plain_console(self._file, width, **colors)

    def text(self) -> str:
        return "\n".join(line.rstrip() for line in self._file.getvalue().splitlines()) + "\n"

    def heading(self, title: str) -> None:
        self._console.print()
        self._console.print(title, style="bold")

    def line(self, text: str) -> None:
        self._console.print(short_text(text, _LONGEST_LINE))

    def verbatim(self, text: str) -> None:
        """Lines that are not to be wrapped."""
        self._file.write("".join(f"{printable(line)}\n" for line in text.splitlines()))

    def table(
        self,
        title: str,
        columns: Sequence[str],
        rows: Sequence[Sequence[str]],
        right: Sequence[str] = TIMES,
        once: Sequence[str] = ("method",),
    ) -> None:
        """`right`: columns to align there; `once`: columns to leave out where every row says the same."""
        from rich import box
        from rich.table import Table

        self.heading(title)
        # Without columns that say nothing.
        cells = list(zip(*rows, strict=True))
        kept = [k for k, column in enumerate(cells) if any(column) and (columns[k] not in once or len(set(column)) > 1)]
        if kept:
            columns, rows = [columns[k] for k in kept], [[row[k] for k in kept] for row in rows]
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for column in columns:
            side = "right" if column in right else "left"
            table.add_column(short_text(column), justify=side, overflow="fold")
        limits = [120 if column in _LONG_COLUMNS else 60 for column in columns]
        for row in rows[:_ROWS]:
            table.add_row(*(short_text(cell, limit) for cell, limit in zip(row, limits, strict=True)))
        self._console.print(table)
        if len(rows) > _ROWS:
            self.line(f"{len(rows) - _ROWS} more are left out; 'etrt report -r json' has all.")


__all__ = ["TIMES", "WIDTH", "TextReport"]
