"""What a program says and ExecuTorch would end the process over, in programs that have a structure."""

from __future__ import annotations

import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import models
import pytest

from executorch_tensorrt import Module, _program_schema
from executorch_tensorrt.program import read_program

REPOSITORY = Path(__file__).resolve().parents[2]


class Editor:
    """Numbers of a program's tables, by the fields' places in the schema."""

    def __init__(self, program: bytes) -> None:
        self.data = bytearray(program)
        self.plan = _program_schema.Program.GetRootAs(self.data, 0).ExecutionPlan(0)

    def place(self, table: Any, field: int) -> int:
        """Where a field of a table is."""
        table = getattr(table, "_tab", table)
        offset = table.Offset(4 + 2 * field)
        assert offset, f"field {field} is not written"
        return table.Pos + offset

    def items(self, table: Any, field: int) -> int:
        """Where the first item of a vector is."""
        return getattr(table, "_tab", table).Vector(self.place(table, field) - getattr(table, "_tab", table).Pos)

    def write(self, at: int, kind: str, value: int) -> None:
        struct.pack_into("<" + kind, self.data, at, value)

    def value(self, index: int) -> Any:
        return self.plan.Values(index).Val()

    def instruction(self, kind: int, which: int = 0) -> Any:
        """Content of one of a kind."""
        chain = self.plan.Chains(0)
        found = [chain.Instructions(k) for k in range(chain.InstructionsLength())]
        return [item.InstrArgs() for item in found if item.InstrArgsType() == kind][which]


KERNEL, MOVE, JUMP = 1, 3, 4
SCALAR_TYPE, SIZES, DIM_ORDER, ALLOCATION = 0, 2, 3, 6


def planned(editor: Editor) -> Any:
    """A tensor that has a place in an arena."""
    tensors = [k for k in range(editor.plan.ValuesLength()) if editor.plan.Values(k).ValType() == 5]
    return next(it for k in tensors if (it := editor.value(k)).Offset(4 + 2 * ALLOCATION))


def input_tensor(editor: Editor) -> Any:
    return editor.value(editor.plan.Inputs(0))


def allocation(editor: Editor) -> Any:
    tensor = _program_schema.Tensor()
    table = planned(editor)
    tensor.Init(table.Bytes, table.Pos)
    return tensor.AllocationInfo()


EDITS: dict[str, tuple[Callable[[Editor], None], str]] = {
    "an element type that nothing adds": (
        lambda e: e.write(e.place(input_tensor(e), SCALAR_TYPE), "b", 23),
        "a tensor's element type is none to compute with",
    ),
    "a dim that is not there": (
        lambda e: e.write(e.items(input_tensor(e), DIM_ORDER), "B", 7),
        "dim order: it is no permutation",
    ),
    "a tensor beyond its arena": (
        lambda e: e.write(e.items(planned(e), SIZES), "i", 1 << 30),
        r"value \d+: bytes: got \d+, allowed 0 to \d+",
    ),
    "an arena that is not there": (
        lambda e: e.write(e.place(allocation(e), 0), "I", 9),
        r"value \d+: arena: got 9, allowed 1 to \d",
    ),
    "an unaligned place": (
        lambda e: e.write(e.place(allocation(e), 1), "I", 1),
        "its place in an arena is not aligned|bytes: got",
    ),
    "an input that is not there": (
        lambda e: e.write(e.items(e.plan, 3), "i", -1),
        "method 'forward': input: got -1, allowed 0 to",
    ),
    "an argument that is not there": (
        lambda e: e.write(e.items(e.instruction(KERNEL), 1), "i", 999),
        "instruction 0: argument: got 999, allowed 0 to",
    ),
    "an argument of another kind": (
        lambda e: e.write(e.items(e.instruction(KERNEL), 1), "i", number(e)),
        "instruction 0: operator 'aten::.*': argument 0: value .*: got .*, allowed tensor",
    ),
    "an operator that is not there": (
        lambda e: e.write(e.place(e.instruction(KERNEL, -1), 0), "i", 99),
        r"instruction \d+: operator: got 99, allowed 0 to",
    ),
    "an operator whose name begins a line": (
        lambda e: e.write(e.items(e.plan.Operators(0), 0), "B", ord("\n")),
        "an operator has a name that none has",
    ),
    "a jump beyond the end": (
        lambda e: e.write(e.place(e.instruction(JUMP), 1), "i", 99),
        "destination: got 99, allowed 0 to",
    ),
    "a jump back for ever": (
        lambda e: e.write(e.place(e.instruction(JUMP), 1), "i", jump(e)),
        "it jumps back for ever",
    ),
    "a condition that is no bool": (
        lambda e: e.write(e.place(e.instruction(JUMP), 0), "i", e.plan.Inputs(0)),
        "its condition is a tensor of no bool",
    ),
    "a move of another kind": (
        lambda e: e.write(e.place(e.instruction(MOVE), 0), "i", number(e)),
        "got .* moved to tensor",
    ),
}


def number(editor: Editor) -> int:
    """The first value that is a bool or an int."""
    return next(k for k in range(editor.plan.ValuesLength()) if editor.plan.Values(k).ValType() in (2, 3))


def jump(editor: Editor) -> int:
    """The jump itself: nothing between sets its condition."""
    chain = editor.plan.Chains(0)
    return next(k for k in range(chain.InstructionsLength()) if chain.Instructions(k).InstrArgsType() == JUMP)


@pytest.fixture(scope="module")
def branches() -> bytes:
    """A stock program with a branch: kernels, jumps and moves."""
    import torch
    from executorch.exir import to_edge_transform_and_lower

    class Branches(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: torch.sin(x) * 2, (x,))

    exported = torch.export.export(Branches(), (torch.randn(4, 4),))
    return to_edge_transform_and_lower(exported).to_executorch().buffer


def test_program_as_exported_is_taken(branches: bytes) -> None:
    Module(branches).load_method()


@pytest.mark.parametrize("edit", EDITS)
def test_module_refuses(edit: str, branches: bytes) -> None:
    editor = Editor(branches)
    change, text = EDITS[edit]
    change(editor)
    with pytest.raises(ValueError, match=text):
        Module(bytes(editor.data))
    with pytest.raises(ValueError, match=text):
        read_program(bytes(editor.data))


def test_module_refuses_a_program_that_unfolds() -> None:
    """2,000 calls share one list of 4,000 tensors: 100 kB, and 8 million things to look at."""
    import torch
    from executorch.exir import to_edge_transform_and_lower
    from executorch.exir._serialize._program import deserialize_pte_binary, serialize_pte_binary
    from executorch.exir.schema import KernelCall, TensorList

    class Joined(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cat([x, x + 1])

    exported = torch.export.export(Joined(), (torch.randn(2, 2),))
    written = deserialize_pte_binary(to_edge_transform_and_lower(exported).to_executorch().buffer)
    (plan,) = written.program.execution_plan
    shared = next(value.val for value in plan.values if isinstance(value.val, TensorList))
    shared.items = shared.items[:1] * 4000
    instructions = plan.chains[0].instructions
    joins = [step for step in instructions if isinstance(step.instr_args, KernelCall)][-1]
    instructions[-1:] = [joins] * 2000
    with pytest.raises(ValueError, match="it unfolds into more than a file of its size has"):
        Module(bytes(serialize_pte_binary(written)))


def test_engine_is_verified_as_programs_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(REPOSITORY / "benchmarks")
    from damaged_programs import forged

    program = models.two_inputs().buffer
    texts: list[str] = []
    for copy in range(60):
        try:
            Module(forged(program, copy)[0]).load_method()
        except ValueError as error:
            texts.append(str(error))
    assert any("the engine is damaged: method 'profile_" in text for text in texts)


CRASHED = {
    "damaged": [1299, 1704, 1787, 4160, 4544, 6383, 7159],
    "forged": [135, 530, 566, 666, 1197, 1450],
}
"""Copies that ended the process before programs were verified."""


@pytest.mark.parametrize("mutator", CRASHED)
def test_changed_copies_do_not_end_the_process(mutator: str, tmp_path: Path) -> None:
    for model in (models.cached_rows, models.mixed, models.rows, models.two_inputs):
        (tmp_path / f"{model.__name__}.pte").write_bytes(model().buffer)
    copies = [*CRASHED[mutator], *range(20_000, 20_300)]
    script = REPOSITORY / "benchmarks" / "damaged_programs.py"
    command = [sys.executable, script, "--try", mutator, tmp_path, *map(str, copies)]
    tried = subprocess.run(command, capture_output=True, text=True, check=False)
    assert tried.returncode == 0, tried.stderr
    assert len(tried.stdout.split()) == len(copies)
