"""README and docs: Python blocks and `etrt` commands run, `make` targets exist, links lead somewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pages import blocks, commands

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = sorted([REPOSITORY / "README.md", *REPOSITORY.glob("docs/**/*.md")])


def name_of(page: Path) -> str:
    return str(page.relative_to(REPOSITORY))


PAGES_WITH_CODE = [page for page in PAGES if blocks(page, "python")]


@pytest.mark.parametrize("page", PAGES_WITH_CODE, ids=name_of)
def test_page_runs_from_top_to_bottom(page: Path, tmp_path: Path) -> None:
    """The Python blocks of a page, then its `etrt` and `etrt_runner` commands, in one empty folder."""
    script = tmp_path / "page.py"
    script.write_text("\n".join(blocks(page, "python")))
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PYTHONWARNINGS": "ignore", "PATH": path}

    def run(command: list[str]) -> None:
        result = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False, env=environment
        )
        assert result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr[-3000:]}"

    run([sys.executable, str(script)])
    for command in commands(page):
        if command.startswith(("etrt ", "etrt_runner ")) and command != "etrt demo":
            run(["bash", "-c", command])


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_make_targets_exist(page: Path) -> None:
    for command in commands(page):
        if command.startswith("make "):
            result = subprocess.run(
                ["make", "-n", *command.split()[1:]], cwd=REPOSITORY, capture_output=True, text=True, check=False
            )
            assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("page", [*PAGES, *REPOSITORY.glob("examples/**/README.md")], ids=name_of)
def test_relative_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{name_of(page)}: {target}"
