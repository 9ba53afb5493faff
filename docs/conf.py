"""The documentation site, `make docs`. Pages are Markdown that reads well without it, with the same links."""

from __future__ import annotations

import logging
import re
import sys
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

import executorch_tensorrt

logging.disable(logging.WARNING)  # what other libraries say when they are imported
assert executorch_tensorrt.export  # what needs torch is there when it is first asked for
logging.disable(logging.NOTSET)

sys.path.insert(0, str(Path(__file__).parent / "site"))

project = "executorch-tensorrt"
copyright = "the authors of executorch-tensorrt"
version = release = executorch_tensorrt.__version__

# The source folder is the repository's root, so that pages outside of docs/ are where links look for them.
root_doc = "docs/index"
include_patterns = ["docs/**", "examples/*.md", "examples/*/*.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"]
exclude_patterns = ["build", "docs/images", "docs/site", ".*", "**/.*", "**/__pycache__"]

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_click", "cpp_header", "mermaid"]
myst_heading_anchors = 4
myst_fence_as_directive = ["mermaid"]
default_role = "code"  # a docstring's backticks
highlight_language = "text"
smartquotes = False  # it takes the dashes of options for punctuation

add_module_names = False
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 100
napoleon_use_rtype = False
napoleon_use_ivar = True
nitpick_ignore = [("py:class", name) for name in ("Inputs", "Model", "Partitioner")]  # aliases, and ExecuTorch's
# What other projects document is not on this site.
nitpick_ignore_regex = [
    ("cpp:identifier", r"(std|executorch)\b.*"),
    ("py:.*", r"(torch|numpy|np|click|collections|executorch|os|pathlib|types|typing)\b.*"),
]

html_theme = "furo"
html_title = f"executorch-tensorrt {release}"
html_static_path = ["site/static"]
html_extra_path = ["site/index.html"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False


def setup(app: Sphinx) -> None:
    app.connect("autodoc-process-signature", _without_fields)
    app.connect("autodoc-process-docstring", _without_self)
    app.connect("doctree-read", _with_dashes)


def _without_fields(_app: Sphinx, what: str, _name: str, obj: Any, *_: Any) -> tuple[str, None] | None:
    """Programs read records and make none: their fields are listed, with what they mean."""
    return ("", None) if what == "class" and is_dataclass(obj) else None


def _without_self(_app: Sphinx, _what: str, _name: str, _obj: object, _options: object, lines: list[str]) -> None:
    """A native property says its type before anything else."""
    if lines and (found := re.fullmatch(r"\(self\) -> (.+)", lines[0])):
        lines[0] = f"`{found[1].replace('executorch_tensorrt._native.', '')}`"


def _with_dashes(_app: Sphinx, document: nodes.document) -> None:
    """What Sphinx puts between a name and what is said of it."""
    for text in list(document.findall(nodes.Text)):
        if text == " -- ":
            text.parent.replace(text, nodes.Text(" \N{EN DASH} "))
