"""`etrt export`."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from executorch_tensorrt.cli import declarations, models
from executorch_tensorrt.cli.console import (
    bytes_text,
    only_our_warnings,
    print_json,
    progress,
    say,
    stdout,
    table,
)
from executorch_tensorrt.cli.failures import require_folder, user_errors
from executorch_tensorrt.runtime.module import ProfileLevel

if TYPE_CHECKING:
    from executorch_tensorrt.exporter import ExportedEngineProgram

_HELP = f"""Export a PyTorch model as a .pte program with engines inside.

MODEL is {models.GRAMMAR}. The name is a module, or a class or function that makes one without arguments; it may return
(module, inputs) with inputs as executorch_tensorrt.export takes them, and --input replaces those. A module is put into
evaluation mode.

Code from that file is run with your rights, also from a .pt2, whose reader unpickles objects and evaluates expressions:
export no file that you don't trust.

--torch-executed-op names an operator, such as aten.linear, and may be repeated. So may --engine-option, as in
--engine-option compute_capability=8.9 for engine tensorrt_rtx; a name that comes several times has a list of values,
and a wrong name is told with all that the engine kind has.
The ETRecord ties a run's events to the model's operators in ExecuTorch's Inspector.

An --input is written {declarations.GRAMMAR} For example, two inputs with one sequence length, for which profile 0 takes
2 to 32 and profile 1 takes 33 to 256:

\b
  etrt export model.py:make_model -o model.pte \\
    --input 'int64[1,S=2:16:32|33:128:256]' --input 'int64[1,S]'
"""


@click.command("export", short_help="Export a PyTorch model as a .pte program.", help=_HELP)
@click.argument("model")
@click.option("-o", "--output", required=True, type=click.Path(dir_okay=False, path_type=Path), help="The .pte file.")
@click.option("--input", "inputs", multiple=True, metavar="SPEC", help="One input, in order; see above.")
@click.option("--engine", default="cpu", show_default=True, help="The engine kind: cpu, tensorrt or tensorrt_rtx.")
@click.option(
    "--engine-option", "engine_options", multiple=True, metavar="NAME=VALUE", help="One of the kind's options."
)
@click.option(
    "--engine-cache",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep TensorRT engines in this folder, and ask in it for those that can't be built here.",
)
@click.option(
    "--torch-executed-op", "torch_executed_ops", multiple=True, metavar="OP", help="An operator for outside engines."
)
@click.option(
    "--min-block-size", type=click.IntRange(1), default=1, show_default=True, help="Fewest operators for an engine."
)
@click.option("--profiling", type=click.Choice(get_args(ProfileLevel)), help="What engines trace by default.")
@click.option("--etrecord", type=click.Path(dir_okay=False, path_type=Path), help="Also write the ETRecord.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@click.pass_obj
def export_command(
    obj: dict[str, bool],
    model: str,
    output: Path,
    inputs: tuple[str, ...],
    engine: str,
    engine_options: tuple[str, ...],
    engine_cache: Path | None,
    torch_executed_ops: tuple[str, ...],
    min_block_size: int,
    profiling: str | None,
    etrecord: Path | None,
    as_json: bool,
) -> None:
    with user_errors():
        declared = declarations.parse_declarations(inputs) if inputs else None
        options = declarations.parse_engine_options(engine_options)
        for path in filter(None, (output, etrecord)):
            require_folder(path)
    say(f"Note: this runs code from '{model}'; export only files that you trust.", err=True)
    with progress() as step, only_our_warnings(obj["debug"]):
        step("importing torch and the model")
        with user_errors():
            loaded = models.load_model(model)
            given = loaded.inputs if declared is None else declared
            if given is None and not models.has_own_ranges(loaded.model):
                raise ValueError(
                    f"'{model}' has no declared inputs: got no --input, allowed one for each argument of its forward; "
                    f"write each as --input '{declarations.EXAMPLE}'."
                )
        from executorch_tensorrt import export

        with user_errors(), _engines_are_missing():
            program = export(
                loaded.model,
                given,
                engine=engine,
                torch_executed_ops=torch_executed_ops,
                min_block_size=min_block_size,
                profiling=profiling,
                engine_options=options,
                engine_cache=engine_cache,
                generate_etrecord=etrecord is not None,
                progress=step,
            )
            program.save(output)
            if etrecord is not None:
                program.save_etrecord(etrecord)
    report = _report(program, output, etrecord)
    if as_json:
        print_json(report)
    else:
        _show(report)


@contextmanager
def _engines_are_missing() -> Generator[None]:
    """That engines have to be built elsewhere is told in one line; the exit code is 1."""
    from executorch_tensorrt.engines.builder import EnginesMissingError

    try:
        yield
    except EnginesMissingError as error:
        raise click.ClickException(str(error)) from error


def _report(program: ExportedEngineProgram, output: Path, etrecord: Path | None) -> dict[str, Any]:
    return {
        "program": str(output),
        "bytes": output.stat().st_size,
        "etrecord": str(etrecord) if etrecord else None,
        "delegates": [dict(delegate) for delegate in program.delegates],
        "left_outside": dict(program.left_outside),
        "seconds": dict(program.seconds),
    }


def _show(report: dict[str, Any]) -> None:
    console = stdout()
    seconds = sum(report["seconds"].values())
    console.print(f"{report['program']}: {bytes_text(report['bytes'])}, exported in {seconds:.1f} s")
    engines: Sequence[dict[str, Any]] = report["delegates"]
    rows = [
        (index, item["engine_id"], item["engine_kind"] or "TensorRT", *_profiles(item), bytes_text(item["bytes"]))
        for index, item in enumerate(engines)
    ]
    console.print(table("Engines", ("#", "id", "kind", "profiles", "signature", "size"), rows, right=("size",)))
    if report["left_outside"]:
        console.print(table("Outside engines", ("operator", "reason"), report["left_outside"].items()))


def _profiles(engine: dict[str, Any]) -> tuple[object, str]:
    if engine["profiles"] is None:
        return "its own", "not declared"
    return len(engine["profiles"]), engine["signature"] or "static"
