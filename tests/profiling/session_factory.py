"""Sessions made up for tests: an encoder with two TensorRT delegates, one of XNNPACK and two operators between them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from executorch_tensorrt.profiling.session import (
    Delegate,
    Engine,
    Event,
    Run,
    Session,
    Source,
)
from executorch_tensorrt.program.declaration import Declaration, Dim, MethodInput

PHASES = ("input_binding", "shape_inference", "output_binding", "enqueue_host", "output_staging", "synchronize")
SIGNATURE = '{"symbols":["s0"],"profiles":[[[1,32]],[[33,512]]]}'

# Per encoder layer: name of the kernel, microseconds per token, and the source.
_LAYERS = (
    ("Fully Connected (NC, F32) GEMM", 1.9, "aten.linear.default", "attention.self.query", 175),
    ("Fully Connected (NC, F32) GEMM", 1.9, "aten.linear.default", "attention.self.key", 178),
    ("Fully Connected (NC, F32) GEMM", 1.9, "aten.linear.default", "attention.self.value", 181),
    ("Batch Matrix Multiply (NC, F32) GEMM", 0.9, "aten.matmul.default", "attention.self", 96),
    ("Softmax (NC, F32)", 0.6, "aten.softmax.int", "attention.self", 101),
    ("Batch Matrix Multiply (NC, F32) GEMM", 0.8, "aten.matmul.default", "attention.self", 104),
    ("Fully Connected (NC, F32) GEMM", 2.0, "aten.linear.default", "attention.output.dense", 282),
    ("native_layer_norm", 0.5, "aten.layer_norm.default", "attention.output.LayerNorm", 284),
    ("Fully Connected (NC, F32) GEMM", 7.4, "aten.linear.default", "intermediate.dense", 325),
    ("gelu", 2.6, "aten.gelu.default", "intermediate.intermediate_act_fn", 326),
    ("Fully Connected (NC, F32) GEMM", 7.1, "aten.linear.default", "output.dense", 339),
    ("native_layer_norm", 0.5, "aten.layer_norm.default", "output.LayerNorm", 341),
)


def encoder_session(
    *, runs: int = 40, kind: str = "cpu", level: str = "layers", blocks: int = 3, seed: int = 7
) -> Session:
    """`runs` calls of `forward`: short texts on optimization profile 0, every third one long on profile 1.

    Args:
        runs: how many.
        kind: "cpu" gives layers on the host's clock; any other kind on the device's, after an asynchronous enqueue, and
            device times of calls.
        level: as for `Module`.
        blocks: encoder layers per TensorRT delegate.
        seed: of the noise; the same session comes out every time.
    """
    noise = random.Random(seed)
    engines = [_engine(kind, part * blocks, blocks) for part in range(2)]
    delegates = [
        Delegate("forward", 0, -1, "", "aten::embedding.out"),
        Delegate("forward", 1, 0, "TensorRTBackend", "TensorRTBackend 0", engines[0]),
        Delegate("forward", 2, 1, "XnnpackBackend", "XnnpackBackend 1"),
        Delegate("forward", 3, -1, "", "aten::cumsum.out"),
        Delegate("forward", 4, 2, "TensorRTBackend", "TensorRTBackend 2", engines[1]),
    ]
    return Session(
        program={"name": "encoder.pte", "size_bytes": 90_868_736, "sha256": "5e1f0c2ab94d"},
        level=level,
        machine={"processor": "AMD EPYC 7B13", "cores": 2, "platform": "Linux-6.1.0-x86_64-with-glibc2.36"},
        versions={"executorch-tensorrt": "0.1.0", "executorch": "1.5.1", "numpy": "2.4.6", "python": "3.11.2"},
        created="2026-08-04T09:30:00+00:00",
        delegates=delegates,
        runs=[_run(number, delegates, level, blocks, noise) for number in range(runs)],
    )


def tiny_session(**changes: Any) -> Session:
    """One run with one TensorRT delegate of three phases, in round numbers; `changes` replace fields."""
    engine = Engine("0123456789ab", "cpu", 1000, "", ["x"], [[[(1, 4, 8), (4, 4, 4)]]])
    session = Session(
        program={"name": "tiny.pte", "size_bytes": 2000, "sha256": "0123456789ab"},
        level="phases",
        machine={"processor": "x86_64", "cores": 2, "platform": "Linux"},
        versions={"executorch-tensorrt": "0.1.0"},
        created="2026-08-04T09:30:00+00:00",
        delegates=[Delegate("forward", 0, 0, "TensorRTBackend", "TensorRTBackend 0", engine)],
        runs=[
            Run(
                method="forward",
                number=0,
                wall_us=110.0,
                shapes=[[4, 4]],
                dtypes=["float32"],
                profiles={"0": 0},
                events=[
                    Event("Method::execute", "method", 0.0, 100.0),
                    Event("DELEGATE_CALL", "call", 10.0, 80.0, instruction=0),
                    Event(
                        "torchtrt.delegate", "delegate", 11.0, 78.0, instruction=0, metadata=_metadata(engine, 0, 64)
                    ),
                    Event("torchtrt.input_binding", "phase", 12.0, 8.0, instruction=0),
                    Event("torchtrt.enqueue_host", "phase", 20.0, 60.0, instruction=0),
                    Event("torchtrt.synchronize", "phase", 80.0, 8.0, instruction=0),
                ],
            )
        ],
    )
    return replace(session, **changes)


Range = tuple[int, int, int]


def called_session(
    calls: Sequence[tuple[tuple[int, int], float, int]], ranges: Sequence[tuple[Range, Range]], **changes: Any
) -> Session:
    """Calls of a method with the inputs `ids` and `mask`, int64 [batch, sequence]; `changes` replace fields.

    Args:
        calls: for each, batch and sequence, microseconds, and the optimization profile.
        ranges: of batch and sequence in each optimization profile.
    """
    dims = [Dim("b", 1, 0), Dim("s", 1, 0)]
    largest = [max(span[axis][2] for span in ranges) for axis in range(2)]
    inputs = [MethodInput(name, "int64", dims, largest) for name in ("ids", "mask")]
    runs = [
        Run("forward", number, wall, [list(sizes), list(sizes)], ["int64", "int64"], {"0": profile})
        for number, (sizes, wall, profile) in enumerate(calls)
    ]
    profiles = [{"b": batch, "s": sequence} for batch, sequence in ranges]
    return tiny_session(runs=runs, declarations=[Declaration("forward", inputs, profiles)], **changes)


def renamed(session: Session, name: str) -> Session:
    """The session with `name` wherever a program, a model or a compiler chooses the name."""
    engine = Engine(
        name, "cpu", 1, name, [name], [[[(1, 1, 1)]]], {"1": Source(name, name, name)}, [{"0": [1]}, {"0": [1]}]
    )
    return replace(
        session,
        program={**session.program, "name": name},
        machine={**session.machine, "processor": name},
        versions={**session.versions, name: name},
        delegates=[replace(d, name=name, backend_id=name, engine=d.engine and engine) for d in session.delegates],
        runs=[replace(run, events=[_renamed_event(e, name) for e in run.events]) for run in session.runs],
        notes=[name],
    )


def _renamed_event(event: Event, name: str) -> Event:
    if event.kind not in ("layer", "other", "operator"):
        return event
    return replace(event, name=name, layer_instruction=min(event.layer_instruction, 0), metadata={name: name})


def _engine(kind: str, first_block: int, blocks: int) -> Engine:
    sources: dict[str, Source] = {}
    handles: dict[str, list[int]] = {}
    for k in range(blocks * len(_LAYERS)):
        block, (_, _, op, module, line) = first_block + k // len(_LAYERS), _LAYERS[k % len(_LAYERS)]
        sources[str(100 + k)] = Source(op, f"encoder.layer.{block}.{module}", f"bert/modeling_bert.py:{line}")
        handles[str(k)] = [100 + k]
    profiles = [[[(1, 1, 1), (2, 16, 32)]] * 2, [[(1, 1, 1), (33, 128, 512)]] * 2]
    return Engine(
        engine_id=f"7edb9d46f4{first_block:02x}",
        kind=kind,
        size_bytes=42_598_400,
        signature=SIGNATURE,
        input_names=["hidden_states", "attention_mask"],
        profiles=profiles,
        sources=sources,
        layer_handles=[handles, handles],
    )


def _metadata(engine: Engine, profile: int, staged_bytes: int) -> dict[str, Any]:
    return {
        "engine_kind": engine.kind,
        "engine_id": engine.engine_id,
        "profile": profile,
        "request": "auto",
        "clock": "host" if engine.kind == "cpu" else "device",
        "staged_bytes": staged_bytes,
        "layers_dropped": 0,
    }


class _Writer:
    """Lays events one after the other."""

    def __init__(self, noise: random.Random) -> None:
        self.now = 0.0
        self.events: list[Event] = []
        self._noise = noise

    def about(self, microseconds: float) -> float:
        return round(microseconds * self._noise.lognormvariate(0, 0.06), 3)

    def skip(self, microseconds: float) -> None:
        self.now += self.about(microseconds)

    def add(self, name: str, kind: Any, microseconds: float, **fields: Any) -> None:
        duration = self.about(microseconds)
        self.events.append(Event(name, kind, round(self.now, 3), duration, **fields))
        self.now += duration


def _run(number: int, delegates: list[Delegate], level: str, blocks: int, noise: random.Random) -> Run:
    long = number % 3 == 2
    tokens = noise.randint(60, 200) if long else noise.randint(6, 20)
    profile = int(long)
    writer = _Writer(noise)
    writer.skip(1.5)
    for delegate in delegates:
        if delegate.engine is not None:
            _tensorrt_call(writer, delegate, profile, tokens, level, blocks)
        elif delegate.backend_id:
            start = writer.now
            writer.skip(1.2)
            writer.add("Convolution (NWC, F32) IGEMM #1", "other", 1.1 * tokens, instruction=delegate.instruction)
            writer.add("Sigmoid (NC) #1", "other", 0.2 * tokens, instruction=delegate.instruction)
            writer.skip(0.8)
            _enclose(writer, "DELEGATE_CALL", "call", start, delegate.instruction)
        else:
            writer.add("OPERATOR_CALL", "operator", 2 + 0.3 * tokens, instruction=delegate.instruction)
        writer.skip(1.4)
    writer.events.append(Event("Method::execute", "method", 0.0, round(writer.now, 3)))
    events = sorted(writer.events, key=lambda e: (e.start_us, -e.duration_us))
    shapes = [[1, tokens], [1, tokens]]
    profiles = {str(d.instruction): profile for d in delegates if d.engine}
    return Run("forward", number, round(writer.now + writer.about(6), 3), shapes, ["int64", "int64"], profiles, events)


def _enclose(writer: _Writer, name: str, kind: Any, start: float, instruction: int, **fields: Any) -> None:
    writer.events.append(
        Event(name, kind, round(start, 3), round(writer.now - start, 3), instruction=instruction, **fields)
    )


def _tensorrt_call(writer: _Writer, delegate: Delegate, profile: int, tokens: int, level: str, blocks: int) -> None:
    engine = delegate.engine
    assert engine is not None
    at = {"instruction": delegate.instruction}
    host = engine.kind == "cpu"
    device_us = sum(layer[1] for layer in _LAYERS) * blocks * tokens * (1.0 if host else 0.05)
    outer = writer.now
    writer.skip(0.5)
    start = writer.now
    for phase in PHASES:
        begun = writer.now
        if phase == "enqueue_host" and host and level == "layers":
            _layers(writer, "host", tokens, blocks, at)
            writer.skip(1.0)
        elif phase == "synchronize" and not host:
            writer.skip(device_us)
        else:
            writer.skip({"enqueue_host": device_us if host else 38.0, "output_staging": 3.0}.get(phase, 1.2))
        if level != "delegate":
            _enclose(writer, f"torchtrt.{phase}", "phase", begun, delegate.instruction)
    _enclose(
        writer,
        "torchtrt.delegate",
        "delegate",
        start,
        delegate.instruction,
        metadata=_metadata(engine, profile, 1536 * tokens) | ({} if host else {"device_ns": round(device_us * 1e3)}),
    )
    if not host and level == "layers":
        now, writer.now = writer.now, start + 12.0
        _layers(writer, "device", tokens * 0.05, blocks, at)
        writer.now = now
    writer.skip(0.4)
    _enclose(writer, "DELEGATE_CALL", "call", outer, delegate.instruction)


def _layers(writer: _Writer, clock: str, tokens: float, blocks: int, at: dict[str, int]) -> None:
    seen: dict[str, int] = {}
    for k in range(blocks * len(_LAYERS)):
        name, per_token, *_ = _LAYERS[k % len(_LAYERS)]
        seen[name] = seen.get(name, 0) + 1
        metadata = {"clock": clock, "instruction": k}
        writer.add(
            f"{name} #{seen[name]}",
            "layer",
            per_token * tokens,
            clock=clock,
            layer_instruction=k,
            metadata=metadata,
            **at,
        )


__all__ = ["PHASES", "called_session", "encoder_session", "renamed", "tiny_session"]
