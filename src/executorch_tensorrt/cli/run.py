"""`etrt run`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from executorch_tensorrt.cli import values
from executorch_tensorrt.cli.arguments import optimization_profile, parse_inputs
from executorch_tensorrt.cli.console import microseconds_text, print_json, progress, shape_text, stdout, table
from executorch_tensorrt.cli.failures import require_folder, user_errors
from executorch_tensorrt.program.blobs import verify_engines
from executorch_tensorrt.runtime.module import ProfileLevel

if TYPE_CHECKING:
    from executorch_tensorrt.runtime import Module

_HELP = f"""Run a method of a .pte program and print outputs, the optimization profile of each engine, and times.

An --input is {values.GRAMMAR}

'--optimization-profile auto' chooses from the input shapes, for each engine the first profile that takes them.

\b
  etrt run model.pte --input 'ones:int64[1,16]' --input mask.npy --optimization-profile auto
"""


@click.command("run", short_help="Run a method and time it.", help=_HELP)
@click.argument("program", type=click.Path(path_type=Path))
@click.option("--input", "inputs", multiple=True, metavar="VALUE", help="One method input, in order; see above.")
@click.option("--method", default="forward", show_default=True, help="The method to run.")
@click.option(
    "--optimization-profile", "profile", metavar="auto|N", callback=optimization_profile,
    help="What the calls request.  [default: 0]",
)  # fmt: skip
@click.option("--iterations", type=click.IntRange(1), default=1, show_default=True, help="Calls to time.")
@click.option("--warmup", type=click.IntRange(0), default=0, show_default=True, help="Calls before those.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="For random inputs.")
@click.option("--profile-level", type=click.Choice(get_args(ProfileLevel)), help="What engines trace; needs --etdump.")
@click.option("--etdump", type=click.Path(dir_okay=False, path_type=Path), help="Write the events of the timed calls.")
@click.option("--save-outputs", type=click.Path(file_okay=False, path_type=Path), help="Folder for output_N.npy files.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def run_command(
    program: Path,
    inputs: tuple[str, ...],
    method: str,
    profile: int | str | None,
    iterations: int,
    warmup: int,
    seed: int,
    profile_level: Any,
    etdump: Path | None,
    save_outputs: Path | None,
    as_json: bool,
) -> None:
    if profile_level not in (None, "off") and etdump is None:
        raise click.UsageError("--profile-level has no effect: got no --etdump, allowed with --etdump PATH; add it.")
    from executorch_tensorrt.cli import results
    from executorch_tensorrt.runtime import ExecuTorchError, Module

    options: dict[str, Any] = {"optimization_profile": profile, "profile_level": profile_level}
    with progress() as step:
        with user_errors(ValueError, OSError, MemoryError, ExecuTorchError):
            verify_engines(program)  # tells what the runtime would not see
            if etdump is not None:
                require_folder(etdump)
            started = time.perf_counter()
            module = Module(program, etdump=etdump is not None, **options)
            meta = module.method_meta(method)
            arguments = parse_inputs(inputs, seed, meta)
            module.load_method(method)
            load_ms = (time.perf_counter() - started) * 1e3
        if warmup + iterations > 1:
            step(f"running '{method}' {warmup + iterations} times")
        with user_errors():
            times, outputs = _timed(module, method, arguments, warmup, iterations, etdump)
            report: dict[str, Any] = {
                "program": str(program),
                "method": method,
                "optimization_profile": "default" if profile is None else profile,
                "load_ms": load_ms,
                "inputs": [results.describe_input(value) for value in arguments],
                "outputs": [results.describe_output(*pair) for pair in zip(outputs, meta.outputs, strict=True)],
                "delegates": [{"engine_id": s.engine_id, "profile": s.profile} for s in module.last_selections],
                "latency_us": results.describe_times(times),
                "etdump": None if etdump is None else {"path": str(etdump), "dropped": module.write_etdump(etdump)},
                "saved": [] if save_outputs is None else results.save_outputs(outputs, save_outputs),
            }
    if as_json:
        print_json(report)
    else:
        _show(report)


def _timed(
    module: Module, method: str, arguments: list[Any], warmup: int, iterations: int, etdump: Path | None
) -> tuple[list[float], list[Any]]:
    """Microseconds of each call, and the last call's outputs."""
    for _ in range(warmup):
        module.run_method(method, arguments)
    if warmup and etdump is not None:
        # Takes these calls out of the dump, which is written again after the others.
        module.write_etdump(etdump)
    times: list[float] = []
    outputs: list[Any] = []
    for _ in range(iterations):
        started = time.perf_counter()
        outputs = module.run_method(method, arguments)
        times.append((time.perf_counter() - started) * 1e6)
    return times, outputs


def _show(report: dict[str, Any]) -> None:
    console = stdout()
    rows = [
        (index, item["dtype"], "not shown" if item["shape"] is None else shape_text(item["shape"]),
         *(f"{item[key]:.6g}" if key in item else "" for key in ("min", "max", "mean")))
        for index, item in enumerate(report["outputs"])
    ]  # fmt: skip
    console.print(table("Outputs", ("#", "dtype", "shape", "min", "max", "mean"), rows, right=("min", "max", "mean")))
    used = [(index, item["engine_id"] or "?", item["profile"]) for index, item in enumerate(report["delegates"])]
    if used:
        console.print()
        console.print(table("Optimization profiles used", ("#", "engine", "profile"), used))
    else:
        console.print()
        console.print("Optimization profiles used: none, for no delegate is TensorRT's")
    console.print()
    latency, count = report["latency_us"], report["latency_us"]["iterations"]
    calls = ", ".join(f"{name} {microseconds_text(latency[name])}" for name in ("median", "p90", "p99"))
    call = f"{calls} of {count} calls" if count > 1 else microseconds_text(latency["median"])
    console.print(f"Time: {call}; loading {report['load_ms']:.1f} ms")
    if report["etdump"]:
        dropped = report["etdump"]["dropped"]
        console.print(f"Events in {report['etdump']['path']}" + (f", {dropped} did not fit" if dropped else ""))
    for path in report["saved"]:
        console.print(f"Saved {path}")
