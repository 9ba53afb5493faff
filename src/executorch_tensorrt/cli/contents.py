"""What `etrt inspect` reports, as JSON values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from executorch_tensorrt import _native
from executorch_tensorrt.cli.checks import runnable_kinds
from executorch_tensorrt.program import Method, Value, read_program
from executorch_tensorrt.program.blobs import DamagedBlob, EngineBlob, blobs_of
from executorch_tensorrt.program.checks import Finding, check_method
from executorch_tensorrt.program.declaration import declare
from executorch_tensorrt.program.plan import Slot, profile_count, slots_of


def describe_program(path: Path) -> dict[str, Any]:
    """Everything about a `.pte` file that can be known without loading it.

    Raises:
        FileNotFoundError: there is no file at that path.
        IsADirectoryError: there is a folder.
        ValueError: it is no ExecuTorch program, or is damaged outside its engines.
    """
    program = read_program(path)
    blobs = [blobs_of(method) for method in program.methods]
    findings = [check_method(method, found) for method, found in zip(program.methods, blobs, strict=True)]
    return {
        "program": str(path),
        "file_bytes": program.file_bytes,
        "constant_bytes": program.constant_bytes,
        "methods": [_method(*parts) for parts in zip(program.methods, blobs, findings, strict=True)],
        "findings": [{**asdict(finding), "text": str(finding)} for of_method in findings for finding in of_method],
    }


def _method(method: Method, blobs: Sequence[EngineBlob | DamagedBlob], findings: Sequence[Finding]) -> dict[str, Any]:
    engines = {blob.index: blob for blob in blobs if isinstance(blob, EngineBlob)}
    problems = {blob.index: blob.problem for blob in blobs if isinstance(blob, DamagedBlob)}
    return {
        "name": method.name,
        "inputs": [
            {"name": item.name or None, **_value(value)}
            for item, value in zip(declare(method).inputs, method.inputs, strict=True)
        ],
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
                "engine": _engine(engines[delegate.index]) if delegate.index in engines else None,
                "problem": problems.get(delegate.index),
            }
            for delegate in method.delegates
        ],
        "profiles_agree": _agree(findings),
        **_plan(slots_of(method, list(engines.values())), profile_count(list(engines.values()))),
    }


def _value(value: Value) -> dict[str, Any]:
    return {"kind": value.kind, "dtype": value.dtype, "shape": list(value.sizes), "dynamic": value.dynamic}


def _agree(findings: Sequence[Finding]) -> bool | None:
    """Whether all engines of a method mean the same by an index; None if not all say what they mean."""
    kinds = {finding.kind for finding in findings}
    return False if "profiles" in kinds else None if kinds & {"blob", "ranges"} else True


def _plan(slots: Sequence[Slot], count: int) -> dict[str, Any]:
    """Per tensor and per optimization profile, what is needed of what is planned."""
    known = [slot for slot in slots if slot.is_known]
    planned = sum(slot.bytes_planned for slot in known)
    needed = [sum(slot.bytes_needed(profile) for slot in known) for profile in range(count)]
    return {
        "memory": [
            {
                "tensor": slot.name,
                "arena": slot.value.arena if slot.value.arena >= 0 else None,
                "planned_bytes": slot.bytes_planned,
                "profiles": [
                    {
                        "shape": list(slot.largest[profile]),
                        "bytes": slot.bytes_needed(profile),
                        "fits": slot.fits(profile),
                    }
                    for profile in range(count)
                ]
                if slot.is_known
                else None,
            }
            for slot in slots
        ],
        "profiles": [
            {"bytes": size, "planned_bytes": planned, "share": size / planned if planned else 0.0} for size in needed
        ],
    }


def _engine(blob: EngineBlob) -> dict[str, Any]:
    metadata = blob.header.metadata
    recorded = blob.record is not None
    return {
        "format": blob.header.magic,
        "record_version": blob.written_record.get("version"),
        "kind": blob.header.engine_kinds[0] if len(blob.header.engine_kinds) == 1 else None,
        "id": blob.engine_id or None,
        "intact": blob.is_intact,
        "bytes": len(blob.engine),
        "builder": blob.record.builder if blob.record else None,
        "signature": blob.signature if recorded else None,
        "runs_here": not runnable_kinds().isdisjoint(blob.header.engine_kinds),
        "target_platform": metadata.target_platform,
        "device_id": metadata.device_id,
        "hardware_compatible": metadata.hardware_compatible,
        "inputs": [_binding(item, blob) for item in blob.inputs],
        "outputs": [_binding(item, blob) for item in blob.outputs],
        "aliased_io": [{"output": a.output, "input": a.input, "kind": a.kind} for a in metadata.aliased_io],
        "profiles": _profiles(blob),
        "sources": _sources(blob) if recorded else None,
    }


def _binding(item: _native.Binding, blob: EngineBlob) -> dict[str, Any]:
    dtype = None if item.dtype == "unknown" else item.dtype
    return {"name": item.name, "dtype": dtype, "shape": blob.shapes.get(item.name)}


def _profiles(blob: EngineBlob) -> list[dict[str, Any]] | None:
    if blob.profiles is None:
        return None
    names = [item.name for item in blob.inputs]
    return [
        {
            "inputs": [
                {"name": name, "min": [d[0] for d in dims], "opt": [d[1] for d in dims], "max": [d[2] for d in dims]}
                for name, dims in zip(names, profile, strict=True)
            ]
        }
        for profile in blob.profiles
    ]


def _sources(blob: EngineBlob) -> dict[str, Any]:
    """How much of an engine its record ties to operators of the model."""
    total, with_source = blob.operator_counts or (None, None)
    return {
        "operators": total,
        "operators_with_source": with_source,
        "handles": len(blob.sources),
        "linked_by_layers": [
            len({str(handle) for handles in layers.values() for handle in handles} & blob.sources.keys())
            for layers in blob.layer_handles
        ],
    }
