"""What pages have in common: one file with style and scripts in it, in which no name can run."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from executorch_tensorrt import words
from executorch_tensorrt.extras import needs_extra
from executorch_tensorrt.profiling.renderers import page_format

with needs_extra("report", "an HTML page"):
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

_TEMPLATES = Path(__file__).with_name("templates")
_SCRIPTS = ("theme.js", "page.js", "timeline.js")
_FILTERS = (
    page_format.breakable,
    page_format.duration,
    page_format.lines,
    page_format.moment,
    page_format.percent,
    page_format.prose,
    page_format.ranges,
    words.bytes_text,
    words.count_text,
    words.shape_text,
)


def render(template: str, values: Mapping[str, Any]) -> str:
    """A page from one of the templates."""
    return _environment().get_template(template).render(values)


@lru_cache(maxsize=1)
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        finalize=page_format.finalized,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Any] = environment.filters
    filters.update({function.__name__: function for function in _FILTERS})
    names: dict[str, Any] = environment.globals
    names.update(file=_file, content_security_policy=_content_security_policy())
    return environment


def _file(name: str) -> Markup:
    return Markup((_TEMPLATES / name).read_text(encoding="utf-8"))


def _content_security_policy() -> Markup:
    """Allows our scripts by their hashes and nothing else: no name could run, even if one were not escaped."""
    digests = [base64.b64encode(hashlib.sha256(_file(name).encode()).digest()).decode() for name in _SCRIPTS]
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    return Markup(
        f"default-src 'none'; style-src 'unsafe-inline'; script-src {allowed}; base-uri 'none'; form-action 'none'"
    )


__all__ = ["render"]
