"""The rules that `etrt inspect --check` goes by, on programs whose engines were exported and then described wrongly."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import models
import pytest
from edited_programs import Metadata, engine_blob, with_metadata, with_range, with_record

from executorch_tensorrt.program import Method, read_program
from executorch_tensorrt.program.blobs import blobs_of
from executorch_tensorrt.program.checks import Finding, check_method


def check(program: bytes | Method) -> list[Finding]:
    method = program if isinstance(program, Method) else read_program(program).methods[0]
    return check_method(method, blobs_of(method))


def only_finding(program: bytes | Method) -> Finding:
    (finding,) = check(program)
    assert finding.severity == "error"
    return finding


@pytest.mark.parametrize(
    "model",
    [
        models.rows, models.decode_first, models.mixed, models.static_beside_dynamic, models.two_inputs,
        models.edge_shapes, models.no_inputs, models.shared_tensors, models.read_by_an_operator,
    ],
)  # fmt: skip
def test_checks_find_nothing_in_what_was_exported(model: Callable[[], models.Exported]) -> None:
    assert check(model().buffer) == []


def test_checks_find_an_engine_with_other_bytes() -> None:
    buffer = models.rows().buffer
    at, blob = engine_blob(buffer)
    last = at + len(blob) - 1
    finding = only_finding(buffer[:last] + bytes([buffer[last] ^ 1]) + buffer[last + 1 :])
    assert (finding.kind, finding.method, finding.delegates) == ("id", "forward", (0,))
    assert str(finding).startswith("method 'forward' delegate 0 has an engine with other bytes than its id says: got ")


@pytest.mark.parametrize(
    ("alias", "problem"),
    [
        ({"output": "k_out", "input": "input_1", "kind": "user"}, "output 'k_out' aliases input 'input_1'"),
        ({"output": "aten_linear_default_1", "input": "k", "kind": "user"}, "aliases input 'k'"),
    ],
)
def test_checks_find_an_alias_of_an_unknown_binding(alias: Metadata, problem: str) -> None:
    finding = only_finding(with_metadata(models.rows().buffer, lambda metadata: metadata.update(aliased_io=[alias])))
    assert (finding.kind, finding.delegates) == ("blob", (0,))
    assert "has a blob that can't be read" in finding.text
    assert problem in finding.text


def test_checks_find_a_call_with_other_arguments_than_the_engine_takes() -> None:
    def without_second_output(metadata: Metadata) -> None:
        metadata["io_bindings"].pop()
        metadata["executorch_tensorrt"]["shapes"]["outputs"].pop()

    finding = only_finding(with_metadata(models.mixed().buffer, without_second_output))
    assert (finding.kind, finding.delegates) == ("arguments", (0,))
    assert "got 4, wanted 3" in finding.text


def signed(signature: str) -> bytes:
    """`shared_tensors` with another signature in its second engine."""
    return with_record(models.shared_tensors().buffer, lambda record: record.update(signature=signature), delegate=1)


@pytest.mark.parametrize(
    ("signature", "told"),
    [
        ("x[0]=1:2:8|9:16:64", "different meanings of profile 1: got x[0] = 4:16:64 and 9:16:64 (min:opt:max)"),
        ("x[0]=4:16:64|1:2:8", "different meanings of profile 0: got x[0] = 1:2:8 and 4:16:64"),
        ("y[0]=1:2:8|4:16:64", "different numbers of optimization profiles for x[0]: got 2 and 0"),
        ("", "different numbers of optimization profiles for x[0]: got 2 and 0"),
    ],
)
def test_checks_find_engines_with_different_signatures(signature: str, told: str) -> None:
    finding = only_finding(signed(signature))
    assert (finding.kind, finding.delegates) == ("profiles", (0, 1))
    assert str(finding).startswith(f"method 'forward' delegates 0 and 1 have engines with {told}")


def test_checks_find_an_engine_with_fewer_profiles_than_its_signature() -> None:
    program = with_record(models.rows().buffer, lambda record: record["profiles"].pop())
    finding = only_finding(program)
    assert (finding.kind, finding.delegates) == ("profiles", (0,))
    assert "got 1, wanted 2" in finding.text


@pytest.mark.parametrize(
    ("binding", "field", "size", "told"),
    [
        (2, "min", 5, "got (4..64, 4) for input 'x' and (5..64, 4) for input 'x'"),  # both read the method's input
        (1, "max", 32, "got (4..64, 4) for output 'aten_linear_default' and (4..32, 4) for input 'getitem'"),
    ],
)
def test_checks_find_engines_that_share_a_tensor_but_no_range(binding: int, field: str, size: int, told: str) -> None:
    finding = only_finding(with_range(models.shared_tensors().buffer, 1, field, size, delegate=1, binding=binding))
    assert (finding.kind, finding.delegates) == ("profiles", (0, 1))
    assert f"different meanings of profile 1: {told}, which are one tensor" in finding.text


def test_checks_let_an_engine_take_more_than_another_gives() -> None:
    assert check(with_range(models.shared_tensors().buffer, 1, "min", 1, delegate=1, binding=1)) == []


def test_checks_find_profiles_outside_the_planned_memory() -> None:
    found = check(with_range(models.rows().buffer, 1, "max", 99))
    assert [(finding.kind, finding.delegates) for finding in found] == [("memory", (0,))] * 2
    for finding, name in zip(found, ("input 'input_1'", "output 'aten_linear_default_1'"), strict=True):
        told = f"got (99, 4) for {name} at the maximum of profile 1, allowed (64, 4); narrow the profile"
        assert f"has an {name.split()[0]} that does not fit the memory planned for it: {told}" in finding.text


@pytest.mark.parametrize(
    ("dim", "told"),
    [
        (["mul", "s0", 3], "got (192, 4) for output"),
        (["add", 200, ["mul", "s0", -1]], "got (196, 4) for output"),  # largest where the input is smallest
        (["mul", "s0", 2**26], f"got ({2**32}, 4) for output"),
    ],
)
def test_checks_find_an_output_that_is_too_large(dim: list[Any], told: str) -> None:
    def enlarge(record: Metadata) -> None:
        record["shapes"]["outputs"][0][0] = dim

    found = [finding for finding in check(with_record(models.rows().buffer, enlarge)) if "profile 1" in finding.text]
    assert [(finding.kind, finding.severity) for finding in found] == [("memory", "error")]
    assert told in found[0].text
    assert ("too large for ExecuTorch" in found[0].text) == (dim[2] == 2**26)


def test_checks_find_an_input_that_no_engine_reads_outside_the_planned_memory() -> None:
    (method,) = read_program(models.read_by_an_operator().buffer).methods
    (x,) = method.inputs
    small = dataclasses.replace(x, sizes=(32, 4))
    finding = only_finding(dataclasses.replace(method, inputs=(small,), values={**method.values, x.index: small}))
    assert (finding.kind, finding.delegates) == ("memory", ())
    assert "got (64, 4) for input 0 at the maximum of profile 1, allowed (32, 4)" in finding.text


def test_checks_find_an_output_that_needs_an_allocator() -> None:
    (method,) = read_program(models.rows().buffer).methods
    (output,) = method.outputs
    values = {**method.values, output.index: dataclasses.replace(output, bounded=False)}
    finding = only_finding(dataclasses.replace(method, values=values))
    assert (finding.kind, finding.delegates) == ("bounds", (0,))
    assert "an engine with an output allocator can't run in ExecuTorch" in finding.text


def wrapped(buffer: bytes) -> bytes:
    """`buffer` as if its engine were a plan that another exporter built: its optimization profiles are not recorded."""

    def change(record: Metadata) -> None:
        del record["profiles"], record["shapes"]
        record["engine_kind"] = "tensorrt"

    at, _ = engine_blob(buffer)
    return with_record(buffer[:at] + b"TR01" + buffer[at + 4 :], change)


def test_checks_note_what_only_the_engine_knows() -> None:
    ranges, origin = check(wrapped(models.rows().buffer))
    assert (ranges.severity, ranges.kind, ranges.delegates) == ("note", "ranges", (0,))
    assert "the engine alone" in ranges.text
    assert (origin.severity, origin.kind, origin.delegates) == ("note", "origin", (0,))
    assert "runs as native code, and whose origin can't be checked" in origin.text


def test_checks_find_differing_signatures_where_only_the_engine_knows_ranges() -> None:
    kinds = [(finding.kind, finding.severity) for finding in check(wrapped(signed("x[0]=1:2:8|9:16:64")))]
    assert kinds == [("profiles", "error"), ("ranges", "note"), ("origin", "note")]
