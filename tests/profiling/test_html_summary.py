"""Where a call's time goes, and the modules of a graph region."""

from __future__ import annotations

from dataclasses import replace

import pytest
from session_factory import encoder_session, tiny_session

from executorch_tensorrt.profiling import processors
from executorch_tensorrt.profiling.processors.modules import ModuleTime, module_tree
from executorch_tensorrt.profiling.processors.summary import Summary, summaries
from executorch_tensorrt.profiling.session import Session


def summary_of(session: Session) -> Summary:
    (found,) = summaries(
        session,
        processors.regions(session),
        processors.phases(session),
        processors.gaps(session),
        processors.layers(session),
    )
    return found


def tree_of(session: Session) -> ModuleTime:
    region = processors.regions(session)[0]
    return module_tree(region, [layer for layer in processors.layers(session) if layer.delegate is region.delegate])


@pytest.mark.parametrize("level", ["delegate", "phases", "layers"])
def test_summary_parts_add_up_to_the_call(level: str) -> None:
    parts = summary_of(encoder_session(runs=5, level=level)).parts
    assert sum(part.share for part in parts) == pytest.approx(1)


def test_summary_tells_phases_from_what_lies_outside() -> None:
    summary = summary_of(tiny_session())
    assert [(part.kind, part.name, round(part.share, 6)) for part in summary.parts] == [
        ("phase", "torchtrt.input_binding", 0.08),
        ("phase", "torchtrt.enqueue_host", 0.6),
        ("phase", "torchtrt.synchronize", 0.08),
        ("outside phases", "", 0.04),
        ("orchestration", "", 0.2),
    ]
    assert summary.share_of("phase", names=["torchtrt.enqueue_host"]) == pytest.approx(0.6)


def test_module_tree_joins_levels_that_do_not_branch() -> None:
    (encoder,) = tree_of(encoder_session(runs=2)).children
    assert encoder.name == "encoder.layer"
    assert [child.name for child in encoder.children] == ["0", "1", "2"]


def test_module_tree_sums_operators_and_time() -> None:
    tree = tree_of(encoder_session(runs=2))
    assert tree.operators == 36
    assert tree.share == pytest.approx(1)
    assert sum(block.share for block in tree.children[0].children) == pytest.approx(1)


def test_module_tree_gives_a_shared_layer_to_the_common_module() -> None:
    session = encoder_session(runs=2)
    engine = session.delegates[1].engine
    assert engine is not None
    handles = [{key: [100, 101] for key in per_profile} for per_profile in engine.layer_handles]
    delegates = [
        replace(d, engine=replace(engine, layer_handles=handles)) if d.index == 0 else d for d in session.delegates
    ]
    blocks = tree_of(replace(session, delegates=delegates)).children[0].children
    attention = next(child for child in blocks[0].children if child.name == "attention")
    own = next(child for child in attention.children if child.name == "self")
    assert own.share == pytest.approx(1)
    assert sum(child.share for child in own.children) == 0
