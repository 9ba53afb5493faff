"""Blocks of mermaid: a code-hosting site draws them itself, and on this site mermaid does, in the reader's browser.

`make docs` puts mermaid into the virtual environment, and it is part of the site, which needs no network. Where it
could not be had, pages show what diagrams are made of.
"""

from __future__ import annotations

import html
import sys
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

INSTALLED = Path(sys.prefix) / "share" / "mermaid" / "mermaid.min.js"


class Mermaid(SphinxDirective):
    has_content = True

    def run(self) -> list[nodes.Node]:
        text = html.escape("\n".join(self.content))
        return [nodes.raw("", f'<pre class="mermaid">\n{text}\n</pre>', format="html")]


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("mermaid", Mermaid)
    if INSTALLED.is_file():
        app.connect("builder-inited", lambda app: app.config.html_static_path.append(str(INSTALLED)))
        app.add_js_file(INSTALLED.name)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
