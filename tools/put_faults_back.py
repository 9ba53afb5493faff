"""Puts faults into a copy of the code, each alone, and tells how random sequences find them.

    .venv/bin/python tools/put_faults_back.py [--only NAME] [--json]

The copy and its build are in build/faults and stay there, so that a fault takes the time of one file's compilation.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from faults import DEVICE, FAULTS, MODULE, THREADS, Fault

ROOT = Path(__file__).resolve().parents[1]
SCRATCH = ROOT / "build" / "faults"
TREE, BUILD, SITE = SCRATCH / "tree", SCRATCH / "build", SCRATCH / "site"
FAKE_CUDART = BUILD / "tests" / "native" / "libetrt_fake_cudart.so"
COUNTS = {DEVICE: 20000, THREADS: 3000, MODULE: 4000}
"""How many sequences a fault has to be found in."""
SECONDS = 300
"""What they may take, with the search for the shortest."""

# The editable install's finder knows the extension module of this checkout alone. In the folder of the tests, which
# those that start processes name to them.
SITE_CUSTOMIZE = f"""import sys
sys.path.insert(0, {str(SITE)!r})
sys.meta_path[:] = [finder for finder in sys.meta_path if "Redirecting" not in type(finder).__name__]
"""

EXPORT = """import sys
from pathlib import Path
from edited_programs import engine_blob
from models import cached_rows
from sequences.programs import write_programs
folder = Path(sys.argv[1])
(folder / "cached_rows.blob").write_bytes(engine_blob(cached_rows().buffer)[1])
write_programs(folder, "tensorrt_rtx", "device", "host_io", "host")
"""


@dataclass
class Found:
    fault: str
    review: str
    found: bool = False
    kind: str = ""
    seconds: float | None = None
    """Until the first sequence went wrong."""
    seed: int | None = None
    steps: int | None = None
    """Of the shortest sequence."""
    seen: str = ""


def run(
    command: Sequence[str | Path], cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd, env=env)


def copy_tree() -> None:
    """What the build needs, and the tests; what is as it was keeps its time."""
    listed = run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT).stdout.splitlines()
    for name in listed:
        source, target = ROOT / name, TREE / name
        if source.is_file() and not (target.is_file() and target.read_bytes() == source.read_bytes()):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)


def configure() -> None:
    bin_folder = Path(sys.executable).parent
    cmake_dir = run([sys.executable, "-m", "nanobind", "--cmake_dir"]).stdout.strip()
    launcher = ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
    command = ["cmake", "-G", "Ninja", "-S", str(TREE), "-B", str(BUILD), "-DETRT_TESTS=ON", "--log-level=WARNING"]
    command += ["-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -w", "-DSKBUILD_PROJECT_VERSION=0"]
    command += [f"-DPython_EXECUTABLE={sys.executable}", f"-Dnanobind_DIR={cmake_dir}", *launcher]
    done = run(command, env={**os.environ, "PATH": f"{bin_folder}:{os.environ['PATH']}"})
    if done.returncode != 0:
        sys.exit(done.stdout + done.stderr)


def build(kinds: Sequence[str]) -> str:
    """What went wrong, or nothing."""
    targets = ["executorch_tensorrt", "etrt_random_tests"]
    if any(kind not in (DEVICE, THREADS) for kind in kinds):
        targets += ["_native", "etrt_schemas"]
    done = run([Path(sys.executable).parent / "cmake", "--build", BUILD, "--target", *targets])
    return "" if done.returncode == 0 else done.stdout[-2000:]


def make_site() -> None:
    """The package of the copy, as it is installed."""
    package = SITE / "executorch_tensorrt"
    package.mkdir(parents=True, exist_ok=True)
    (TREE / "tests" / "sitecustomize.py").write_text(SITE_CUSTOMIZE)
    native = BUILD / "native"
    places = {source.name: source for source in native.glob("_*") if source.suffix in (".so", ".py")}
    places |= {source.name: source for source in (TREE / "src" / "executorch_tensorrt").iterdir()}
    for name, source in places.items():
        if not (package / name).is_symlink():
            (package / name).symlink_to(source)
    (package / "lib").mkdir(exist_ok=True)
    library = package / "lib" / "libexecutorch_tensorrt.so"
    if not library.is_symlink():
        library.symlink_to(native / library.name)


def export_programs() -> Path:
    folder = SCRATCH / "programs"
    if not (folder / "host.pte").is_file():
        folder.mkdir(parents=True, exist_ok=True)
        done = run([sys.executable, "-c", EXPORT, folder], env={**os.environ, "PYTHONPATH": str(ROOT / "tests")})
        if done.returncode != 0:
            sys.exit(done.stderr[-3000:])
    return folder


def output_of(command: Sequence[str | Path], env: Mapping[str, str] | None = None) -> tuple[int, str]:
    """How it ended, and what it said until then; -1 when its time is over."""
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        cwd=TREE,
        env=env,
    )
    try:
        said = process.communicate(timeout=SECONDS)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        return -1, process.communicate()[0]
    return process.returncode, said


def one_line(text: str) -> str:
    """Without ExecuTorch's log."""
    words = " ".join(line for line in text.splitlines() if not re.match(r"[EI] \d\d:\d\d", line)).split()
    return " ".join(words)[:200]


def look(kind: str, programs: Path, found: Found) -> None:
    """Runs one kind of sequences, or a test, on what is built."""
    begin = time.monotonic()
    python = {
        **os.environ,
        "PYTHONPATH": str(TREE / "tests"),
        "PROMISES": "OUTPUTS_CARRY_EVENT,INTERRUPTS_ARRIVE,STAGED_INPUTS_ARE_ORDERED",
    }
    if kind in (DEVICE, THREADS):
        program = BUILD / "tests" / "native" / "etrt_random_tests"
        count = ["--from", "1", "--count", str(COUNTS[kind])]
        code, said = output_of([program, "--kind", kind, *count, programs / "cached_rows.blob"])
        first = re.search(r"After ([\d.]+) s, \w+: seed (\d+) goes wrong at [^:]*: (.*)", said)
        steps = re.search(r"shortest that does, (\d+) steps", said)
        seen = re.search(r"^(?:the end|\d+): (.*?)^Again:", said, re.DOTALL | re.MULTILINE)
        found.seconds, found.seed = (float(first[1]), int(first[2])) if first else (None, None)
        found.steps = int(steps[1]) if steps else None
        found.seen = one_line(seen[1] if seen else first[3] if first else said[-300:])
    elif kind == MODULE:
        command = [sys.executable, "-u", "-m", "sequences", "device", "1", str(COUNTS[kind]), FAKE_CUDART, programs]
        code, said = output_of(command, env=python)
        first = re.search(r"seed (\d+) failed after ([\d.]+) s", said)
        told = re.search(r"^seed \d+: program.*\n((?:  .*\n)*)([\s\S]*?)^\w+: \d+ sequences", said, re.MULTILINE)
        found.seconds, found.seed = (float(first[2]), int(first[1])) if first else (None, None)
        found.steps = sum(not line.startswith("  New") for line in told[1].splitlines()) if told else None
        found.seen = one_line(told[2] if told else said[-300:])
    else:
        code, said = output_of(
            [sys.executable, "-m", "pytest", "-x", "--build-dir", BUILD, TREE / "tests" / kind], env=python
        )
        found.seconds = time.monotonic() - begin
        lines = [line for line in said.splitlines() if line.startswith("E  ")]
        found.seen = one_line(lines[0][1:] if lines else said[-300:])
        code = 0 if "1 passed" in said else code or 1  # one that is skipped shows nothing
    found.kind = kind
    found.found = code != 0
    if not found.found:
        found.seconds, found.seen = None, ""


def try_fault(fault: Fault, programs: Path) -> Found:
    found = Found(fault.name, fault.review)
    texts = {change.file: (TREE / "native" / change.file).read_text() for change in fault.changes}
    try:
        changed = dict(texts)
        for change in fault.changes:
            changed[change.file] = changed[change.file].replace(change.text, change.instead)
        for file, text in changed.items():
            (TREE / "native" / file).write_text(text)
        if wrong := build(fault.kinds):
            found.seen = f"does not compile: {wrong}"
            return found
        for kind in fault.kinds:
            look(kind, programs, found)
            if found.found:
                break
    finally:
        for file, text in texts.items():
            (TREE / "native" / file).write_text(text)
    if not found.found:
        found.seen = fault.unseen
    return found


def table(rows: Sequence[Found]) -> str:
    lines = ["| fault | found by | seconds | seed | steps | what was seen |", "| --- | --- | --: | --: | --: | --- |"]
    for row in rows:
        name = f"{row.review}: {row.fault}" if row.review else row.fault
        kind = row.kind.split("::")[-1] if row.found else "**not found**"
        seconds = "" if row.seconds is None else f"{row.seconds:.1f}"
        seed, steps = (("" if value is None else str(value)) for value in (row.seed, row.steps))
        lines.append(f"| {name} | {kind} | {seconds} | {seed} | {steps} | {row.seen.replace('|', '/')} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", help="the faults whose name or number has this; may come again")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    wanted = [
        fault
        for fault in FAULTS
        if not arguments.only or any(text in fault.name or text == fault.review for text in arguments.only)
    ]
    if not wanted:
        parser.error(f"got {arguments.only}, allowed: " + "; ".join(fault.name for fault in FAULTS))
    copy_tree()
    configure()
    kinds = {kind for fault in wanted for kind in fault.kinds}
    if wrong := build(sorted(kinds)):
        sys.exit(wrong)
    make_site()
    programs = export_programs()
    for kind in sorted(kinds):
        as_it_is = Found("", "")
        look(kind, programs, as_it_is)
        print(f"the code as it is, {kind}: {as_it_is.seen or 'right'}", file=sys.stderr, flush=True)
        if as_it_is.found:
            sys.exit(f"without a fault, {kind} goes wrong")
    rows: list[Found] = []
    for fault in wanted:
        rows.append(try_fault(fault, programs))
        print(table(rows[-1:]).splitlines()[-1], file=sys.stderr, flush=True)
    print(json.dumps([asdict(row) for row in rows], indent=2) if arguments.json else table(rows))
    missed = [row for row, fault in zip(rows, wanted, strict=True) if not row.found and not fault.unseen]
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
