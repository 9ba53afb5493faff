"""What is said where a package is missing that an extra of this distribution installs."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

_PACKAGES = {"report": ("jinja2", "markupsafe", "rich")}


@contextmanager
def needs_extra(extra: str, what: str) -> Generator[None, None, None]:
    """Around imports of what the extra installs, for `what`.

    Raises:
        ModuleNotFoundError: one of the extra's packages is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _PACKAGES[extra]:
            raise
        text = f"{what} needs the extra '{extra}': got no module '{error.name}'; install executorch-tensorrt[{extra}]."
        raise ModuleNotFoundError(text, name=error.name) from error
