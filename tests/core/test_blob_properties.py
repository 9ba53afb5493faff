"""Blobs: what is written comes back, and no damage does more than a ValueError."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from executorch_tensorrt._native import parse_blob

DATA = Path(__file__).parents[1] / "data"
HEADER = "<4sIIIQ8s"  # the documented layout, written out here on purpose


def blob(magic: bytes, metadata: bytes, engine: bytes) -> bytes:
    offset = -(-(32 + len(metadata)) // 16) * 16
    header = struct.pack(HEADER, magic, 32, len(metadata), offset, len(engine), b"\x01")
    return (header + metadata).ljust(offset, b"\0") + engine


names = st.lists(st.text(min_size=1, max_size=12), unique=True, min_size=1, max_size=6)


@settings(deadline=None, derandomize=True)
@given(names, st.binary(min_size=1, max_size=64), st.sampled_from([b"TR01", b"TR02", b"ETC1"]), st.booleans())
def test_blob_comes_back_as_written(names: list[str], engine: bytes, magic: bytes, escape: bool) -> None:
    bindings = [{"name": n, "dtype": "", "shape": [], "is_input": k > 0} for k, n in enumerate(names)]
    metadata = json.dumps({"io_bindings": bindings}, ensure_ascii=escape)
    try:
        encoded = metadata.encode()
    except UnicodeEncodeError:  # a lone surrogate has no UTF-8
        return
    data = blob(magic, encoded, engine)
    if any("\ud800" <= c <= "\udfff" for name in names for c in name):
        return
    parsed = parse_blob(data)
    assert parsed.magic == magic.decode()
    assert data[parsed.engine_offset : parsed.engine_offset + parsed.engine_size] == engine
    assert [b.name for b in parsed.metadata.outputs + parsed.metadata.inputs] == names
    assert parsed.metadata.record is None


@settings(deadline=None, derandomize=True, max_examples=300)
@given(st.data(), st.sampled_from(["tr01_odd_names.blob", "tr02_aliased.blob"]))
def test_damaged_blob_is_refused_or_read(data: st.DataObject, name: str) -> None:
    damaged = bytearray((DATA / name).read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(damaged)))
    for candidate in (bytes(damaged), bytes(damaged[:cut])):
        try:
            parse_blob(candidate)
        except ValueError as error:
            assert str(error)


@settings(deadline=None, derandomize=True)
@given(st.binary(max_size=200))
def test_anything_else_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="engine blob is"):
        parse_blob(data)


def record(**changes: Any) -> bytes:
    """Metadata with a record of ours: x [1, s0] -> y [1, 2*s0]."""
    fields: dict[str, Any] = {
        "version": 1,
        "engine_kind": "cpu",
        "engine_id": "0123456789ab",
        "builder": "test",
        "signature": "x[1]=2:4:8",
        "profiles": [{"inputs": [{"min": [1, 2], "opt": [1, 4], "max": [1, 8]}]}],
        "symbols": [{"input": 0, "dim": 1, "scale": 1, "offset": 0}],
        "shapes": {"inputs": [[1, "s0"]], "outputs": [[1, ["mul", 2, "s0"]]]},
    }
    bindings = [{"name": "x", "dtype": "float32", "is_input": True}, {"name": "y", "dtype": "int64", "is_input": False}]
    return blob(
        b"ETC1", json.dumps({"io_bindings": bindings, "executorch_tensorrt": fields | changes}).encode(), b"engine"
    )


def test_record_is_read() -> None:
    metadata = parse_blob(record()).metadata
    assert metadata.record is not None
    assert metadata.record.engine_id == "0123456789ab"
    assert metadata.record.profiles.profiles == [[[(1, 1, 1), (2, 4, 8)]]]
    assert metadata.infer_output_shapes([[1, 5]]) == [[1, 10]]


@pytest.mark.parametrize(
    "changes",
    [
        {"version": 2},
        {"engine_id": 'x"}'},
        {"profiles": []},
        {"profiles": [{"inputs": []}]},
        {"profiles": [{"inputs": [{"min": [1], "opt": [1, 4], "max": [1, 8]}]}]},
        {"profiles": [{"inputs": [{"min": [1, 5], "opt": [1, 4], "max": [1, 8]}]}]},
        {"profiles": [{"inputs": [{"min": [1] * 17, "opt": [1] * 17, "max": [1] * 17}]}]},
        {"symbols": [{"input": 1, "dim": 0, "scale": 1, "offset": 0}]},
        {"symbols": [{"input": 0, "dim": 1, "scale": 0, "offset": 0}]},
        {"symbols": []},
        {"shapes": {"inputs": [[1, "s0"]], "outputs": []}},
        {"shapes": {"inputs": [["s0"]], "outputs": [[1]]}},
        {"shapes": {"inputs": [[1, "s0"]], "outputs": [["s9"]]}},
        {"shapes": {"inputs": [[1, "s0"]], "outputs": [["t0"]]}},
        {"shapes": {"inputs": [[1, "s0"]], "outputs": [["s0x"]]}},
        {"shapes": {"inputs": [[1, "s0"]], "outputs": [[["pow", 2, "s0"]]]}},
        {"shapes": {"inputs": [[1, "s0"]], "outputs": [[["add", 2]]]}},
        {"shapes": {"inputs": [[1, "s0"]], "outputs": [[[]]]}},
        {"shapes": {"inputs": [[1, "s0"]], "outputs": [[1.5]]}},
        {"shapes": {"inputs": [[1, "s0"]], "outputs": [[["add"] + [1] * 300]]}},
    ],
)
def test_record_that_contradicts_itself_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="engine metadata is damaged: ."):
        parse_blob(record(**changes))


@pytest.mark.parametrize("shift", [0, 1, 8])
def test_blob_is_read_in_place(shift: int) -> None:
    """A mapped file is not copied, and a blob may start at any address."""
    data = record()
    parsed = parse_blob(memoryview(bytes(shift) + data)[shift:])
    assert data[parsed.engine_offset : parsed.engine_offset + parsed.engine_size] == b"engine"
    assert json.loads(parsed.json)["executorch_tensorrt"]["builder"] == "test"


def test_deep_nesting_is_refused() -> None:
    with pytest.raises(ValueError, match="engine metadata is damaged"):
        parse_blob(blob(b"ETC1", b"[" * 100_000, b"engine"))


def test_torch_tensorrts_blobs_are_read() -> None:
    odd = parse_blob((DATA / "tr01_odd_names.blob").read_bytes())
    assert [b.name for b in odd.metadata.inputs] == ['café "q"', "back\\slash"]
    assert [b.name for b in odd.metadata.outputs] == ["aliased_io"]
    assert (odd.metadata.hardware_compatible, odd.metadata.device_id) == (True, 3)
    assert odd.engine_size == 17
    aliased = parse_blob((DATA / "tr02_aliased.blob").read_bytes())
    assert aliased.magic == "TR02"
    (alias,) = aliased.metadata.aliased_io
    assert (alias.output, alias.input, alias.kind) == ("k_cache_out", "k_cache", "kv_cache_update")
    assert aliased.metadata.target_platform == "linux_x86_64"
