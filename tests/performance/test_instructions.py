"""What the library executes for one delegate call is what benchmarks/results/instructions.json says."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "benchmarks"))

from instructions import RECORD, changes, figures, measure, missing_tool, read_part  # noqa: E402

PART = """\
fl=???
ob=/build/native/libexecutorch_tensorrt.so
fn=ours
0 100
cob=/lib/libstdc++.so.6
cfn=operator new(unsigned long)
calls=6 0
0 5000
cob=/lib/libstdc++.so.6.0.30
cfn=std::string::append(char const*)
calls=4 0
0 500
cfn=also_ours
calls=2 0
0 40
fn=also_ours
0 40

ob=/lib/libstdc++.so.6.0.30
fn=std::string::append(char const*)
0 300
cfn=std::string::_M_create(unsigned long&, unsigned long)
calls=5 0
0 1000

fn=std::string::_M_create(unsigned long&, unsigned long)
0 500
cfn=operator new(unsigned long)
calls=5 0
0 500

ob=/lib/libexecutorch.so
fn=theirs
0 7000
cob=/lib/libstdc++.so.6.0.30
cfn=std::string::append(char const*)
calls=6 0
0 800
cob=/build/native/libexecutorch_tensorrt.so
cfn=ours
calls=2 0
0 5140
"""


def test_delegate_call_executes_what_is_recorded(build_dir: Path) -> None:
    if missing := missing_tool():
        pytest.skip(missing)
    record = json.loads(RECORD.read_text())
    compiler, parts = measure(build_dir)
    if compiler != record["machine"]["compiler"]:
        pytest.skip(f"the record is of compiler {record['machine']['compiler']}: got {compiler}")
    lines = changes(record["figures"], figures(parts))
    assert not lines, "\n".join(["if this is wanted, run `make performance` and commit what it wrote", *lines])


@pytest.mark.parametrize(
    ("measured", "line"),
    [
        ({"a": 1021, "b": 0}, "a: 1000 recorded, 1021 measured (+21)"),
        ({"a": 979, "b": 0}, "a: 1000 recorded, 979 measured (-21)"),
        ({"a": 1000, "b": 1}, "b: 0 recorded, 1 measured (+1)"),
        ({"a": 1000, "b": 0, "c": 5}, "c: 0 recorded, 5 measured (+5)"),
        ({"b": 0}, "a: 1000 recorded, 0 measured (-1000)"),
    ],
)
def test_changes_tell_figures_that_grow_shrink_come_or_go(measured: dict[str, int], line: str) -> None:
    assert changes({"a": 1000, "b": 0}, measured) == [line]


def test_changes_leave_out_what_is_within_the_tolerance() -> None:
    assert not changes({"a": 1000, "b": 0}, {"a": 1020, "b": 0})


def test_counts_are_of_the_library_alone_and_for_each_call(tmp_path: Path) -> None:
    (tmp_path / "part").write_text(PART)
    counts = read_part(tmp_path / "part", calls=2)
    assert counts.instructions == 70
    assert counts.itself == {"ours": 50, "also_ours": 20}
    assert counts.inclusive == {"ours": 2820, "also_ours": 20}


def test_allocations_of_the_cpp_library_are_shared_out_among_its_callers(tmp_path: Path) -> None:
    (tmp_path / "part").write_text(PART)
    # Of 10 calls of append, which allocate 5 times, 4 are the library's; it allocates 6 times itself.
    assert read_part(tmp_path / "part", calls=2).allocations == 4
