"""The layout of a delegate's bytes, as the contract with both runtimes has it."""

from __future__ import annotations

import hashlib
import json
import struct

import pytest
import torch
from executorch.exir.delegate import executorch_call_delegate
from wire_format import parse

from executorch_tensorrt import Input
from executorch_tensorrt.engines.blob import Binding, BlobMetadata, pack_blob, unpack_metadata
from executorch_tensorrt.exporter import export


@pytest.mark.parametrize("name", ["x", "a_rather_long_name"])
def test_pack_blob_aligns_the_engine(name: str) -> None:
    blob = pack_blob(b"ETC1", BlobMetadata([Binding(name, "float32", (1, -1), True)]), {"version": 1}, b"engine")
    magic, start, size, offset, length, reserved = struct.unpack_from("<4sIIIQ8s", blob)
    assert (magic, start, length, reserved) == (b"ETC1", 32, 6, b"\x01" + bytes(7))
    assert offset % 16 == 0
    assert blob[32 + size : offset] == bytes(offset - 32 - size)
    assert blob[offset:] == b"engine"


def test_pack_blob_writes_torch_tensorrts_keys_then_ours() -> None:
    written = BlobMetadata([Binding("x", "int64", (2,), False)])
    metadata = unpack_metadata(pack_blob(b"ETC1", written, {"version": 1}, b""))
    assert list(metadata) == [
        "io_bindings",
        "aliased_io",
        "hardware_compatible",
        "device_id",
        "serialized_metadata",
        "target_platform",
        "executorch_tensorrt",
    ]
    assert metadata["io_bindings"] == [{"name": "x", "dtype": "int64", "shape": [2], "is_input": False}]


def test_export_writes_a_blob_that_describes_itself() -> None:
    class Flat(torch.nn.Module):
        def forward(self, device_id: torch.Tensor) -> torch.Tensor:
            return device_id.reshape(-1) * 2

    shape = {"min_shape": (1, 4), "opt_shape": (2, 4), "max_shape": (8, 4)}
    program = export(Flat().eval(), [Input(profiles=[shape])])
    module = program.program.exported_program().graph_module
    (call,) = [node for node in module.graph.nodes if node.target is executorch_call_delegate]
    blob = getattr(module, call.args[0].target).processed_bytes
    metadata = unpack_metadata(blob)
    json.dumps(metadata).encode("ascii")
    names = [item["name"] for item in metadata["io_bindings"]]
    assert names[0] == "device_id_"
    assert [item["shape"] for item in metadata["io_bindings"]] == [[-1, 4], [-1]]
    ours = metadata["executorch_tensorrt"]
    assert ours["engine_id"] == hashlib.sha256(parse(blob).engine).hexdigest()[:12]
    assert ours["builder"].endswith("executorch 1.5.1")
    assert ours["symbols"] == [{"input": 0, "dim": 0, "scale": 1, "offset": 0}]
    assert ours["shapes"] == {"inputs": [["s0", 4]], "outputs": [[["mul", 4, "s0"]]]}
    assert ours["profiles"] == [{"inputs": [{"min": [1, 4], "opt": [2, 4], "max": [8, 4]}]}]
    assert ours["signature"] == "device_id[0]=1:2:8"
