"""What `etrt inspect` reports, as JSON values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from executorch_tensorrt import _native
from executorch_tensorrt.program import BACKEND_ID, Delegate, Method, Value, engine_is_intact, read_program

# The engine kinds that take Torch-TensorRT's format. Such a file does not say which of the two it is for.
_TENSORRT_KINDS = frozenset({"tensorrt", "tensorrt_rtx"})


def describe_program(path: Path) -> dict[str, Any]:
    """Everything about a `.pte` file that can be known without loading it.

    Raises:
        FileNotFoundError: there is no file at that path.
        ValueError: it is no ExecuTorch program, or it or one of its engines is damaged.
    """
    program = read_program(path)
    return {
        "program": str(path),
        "file_bytes": program.file_bytes,
        "constant_bytes": program.constant_bytes,
        "methods": [_method(path, method) for method in program.methods],
    }


def _method(path: Path, method: Method) -> dict[str, Any]:
    return {
        "name": method.name,
        "inputs": [_value(value) for value in method.inputs],
        "outputs": [_value(value) for value in method.outputs],
        "planned_bytes": list(method.planned_bytes),
        "planned_devices": [method.devices.get(index, "cpu") for index in range(len(method.planned_bytes))],
        "operators": dict(method.operators),
        "delegates": [
            {
                "index": delegate.index,
                "backend": delegate.backend_id,
                "bytes": len(delegate.blob),
                "compile_specs": {key: value.decode(errors="replace") for key, value in delegate.compile_specs},
                "engine": _engine(path, method, delegate) if delegate.backend_id == BACKEND_ID else None,
            }
            for delegate in method.delegates
        ],
    }


def _value(value: Value) -> dict[str, Any]:
    return {"kind": value.kind, "dtype": value.dtype, "shape": list(value.sizes), "dynamic": value.dynamic}


def _engine(path: Path, method: Method, delegate: Delegate) -> dict[str, Any]:
    data = bytes(delegate.blob)
    try:
        blob = _native.parse_blob(data)
    except ValueError as error:
        raise ValueError(f"'{path}' method '{method.name}' delegate {delegate.index}: {error}") from error
    metadata, record = blob.metadata, blob.metadata.record
    kind = record.engine_kind if record else None
    kinds = {kind} if kind else _TENSORRT_KINDS
    shapes = _shapes(data)
    return {
        "format": blob.magic,
        "kind": kind,
        "id": record.engine_id if record else None,
        "intact": engine_is_intact(data, blob, record.engine_id) if record else None,
        "bytes": blob.engine_size,
        "builder": record.builder if record else None,
        "signature": record.signature if record else None,
        "runs_here": not kinds.isdisjoint(_native.engine_runtimes()),
        "target_platform": metadata.target_platform,
        "device_id": metadata.device_id,
        "hardware_compatible": metadata.hardware_compatible,
        "inputs": [_binding(item, shapes) for item in metadata.inputs],
        "outputs": [_binding(item, shapes) for item in metadata.outputs],
        "aliased_io": [{"output": a.output, "input": a.input, "kind": a.kind} for a in metadata.aliased_io],
        "profiles": _profiles(metadata, record) if record else None,
    }


def _shapes(data: bytes) -> dict[str, list[int]]:
    """Shapes of bindings by name, -1 where dynamic. The blob has been parsed, so its header and JSON are sound."""
    begin, size = (int.from_bytes(data[at : at + 4], "little") for at in (4, 8))
    bindings = json.loads(data[begin : begin + size])["io_bindings"]
    return {item["name"]: shape for item in bindings if isinstance(shape := item.get("shape"), list)}


def _binding(item: _native.Binding, shapes: dict[str, list[int]]) -> dict[str, Any]:
    dtype = None if item.dtype == "unknown" else item.dtype
    return {"name": item.name, "dtype": dtype, "shape": shapes.get(item.name)}


def _profiles(metadata: _native.EngineMetadata, record: _native.ExportRecord) -> list[dict[str, Any]]:
    names = [item.name for item in metadata.inputs]
    return [
        {
            "inputs": [
                {"name": name, "min": [d[0] for d in dims], "opt": [d[1] for d in dims], "max": [d[2] for d in dims]}
                for name, dims in zip(names, profile, strict=True)
            ]
        }
        for profile in record.profiles.profiles
    ]
