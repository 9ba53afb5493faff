"""Runs laid out for the timeline, and the strip plots."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from session_factory import encoder_session, tiny_session

from executorch_tensorrt.profiling.processors.timeline import Span, Timeline, run_groups, timelines
from executorch_tensorrt.profiling.renderers import html, page_timeline
from executorch_tensorrt.profiling.session import Event, Session


def only(session: Session) -> Timeline:
    (laid_out,) = timelines(session).timelines
    return laid_out


def spans_of(session: Session, lane: str) -> list[Span]:
    return [span for span in only(session).spans if span.lane == lane]


def with_events(*events: Event) -> Session:
    run = tiny_session().runs[0]
    return tiny_session(runs=[replace(run, events=[*run.events, *events])])


def test_timeline_fills_the_time_between_delegates() -> None:
    lane = spans_of(tiny_session(), "delegates")
    assert [(span.name, span.kind, span.start_us, span.end_us) for span in lane] == [
        ("start → TensorRTBackend 0", "gap", 0.0, 10.0),
        ("TensorRTBackend 0", "call", 10.0, 90.0),
        ("TensorRTBackend 0 → end", "gap", 90.0, 100.0),
    ]


def test_timeline_splits_a_gap_into_operators_and_the_rest() -> None:
    session = with_events(Event("OPERATOR_CALL", "operator", 92.0, 3.0, instruction=7))
    assert spans_of(session, "delegates")[-1].metadata == {"operators_us": 3.0, "orchestration_us": 7.0}


def test_timeline_tells_what_a_delegate_said_with_its_call() -> None:
    assert spans_of(tiny_session(), "delegates")[1].metadata["staged_bytes"] == 64


def test_timeline_draws_a_delegate_without_a_call_of_its_own() -> None:
    run = tiny_session().runs[0]
    events = [event for event in run.events if event.kind != "call"]
    lane = spans_of(tiny_session(runs=[replace(run, events=events)]), "delegates")
    assert ("TensorRTBackend 0", 11.0) in [(span.name, span.start_us) for span in lane]


def test_timeline_keeps_device_time_in_a_lane_of_its_own() -> None:
    session = with_events(Event("gemm", "layer", 15.0, 60.0, "device", 0))
    assert [span.name for span in spans_of(session, "device")] == ["gemm"]
    assert not spans_of(session, "layers")


def test_timeline_puts_a_kernel_below_its_operator() -> None:
    session = with_events(
        Event("OPERATOR_CALL", "operator", 92.0, 3.0, instruction=7),
        Event("native_call_cumsum.out", "other", 92.5, 2.0, instruction=7),
    )
    cumsum = replace(session.delegates[0], instruction=7, index=-1, name="aten::cumsum.out", engine=None)
    session = replace(session, delegates=[*session.delegates, cumsum])
    lane = spans_of(session, "operators")
    assert [(span.name, span.depth) for span in lane] == [("aten::cumsum.out", 0), ("native_call_cumsum.out", 1)]


def test_timeline_gives_overlapping_spans_rows_of_their_own() -> None:
    session = with_events(
        Event("outer", "layer", 20.0, 30.0, instruction=0),
        Event("inner", "layer", 25.0, 10.0, instruction=0),
        Event("after", "layer", 49.5, 5.0, instruction=0),
    )
    assert {span.name: span.depth for span in spans_of(session, "layers")} == {"outer": 0, "inner": 1, "after": 0}


def test_timeline_ties_layers_to_their_sources() -> None:
    session = encoder_session(runs=1)
    span = next(span for span in spans_of(session, "layers") if span.kind == "layer")
    assert span.sources[0].module == "encoder.layer.0.attention.self.query"


@pytest.mark.parametrize("start", [float("nan"), float("inf")])
def test_timeline_leaves_out_spans_without_a_place(start: float) -> None:
    assert len(only(with_events(Event("x", "layer", start, 1.0))).spans) == len(only(tiny_session()).spans)


def test_timelines_show_the_typical_run_of_the_largest_group_first() -> None:
    session = encoder_session(runs=30)
    shown = timelines(session, max_runs=1)
    group = max(run_groups(session), key=lambda group: len(group.runs))
    assert shown.timelines[shown.selected].run.number == group.typical.number
    assert shown.runs_left_out == 29


def test_timelines_prefer_the_telling_runs() -> None:
    session = encoder_session(runs=60)
    shown = timelines(session, max_runs=8)
    numbers = {timeline.run.number for timeline in shown.timelines}
    for group in run_groups(session):
        assert {group.typical.number, group.fastest.number, group.slowest.number} <= numbers
    assert [timeline.run.number for timeline in shown.timelines] == sorted(numbers)


def test_timelines_keep_within_their_limits_and_count_what_is_missing() -> None:
    session = encoder_session(runs=10)
    whole = len(timelines(session, max_runs=1).timelines[0].spans)
    shown = timelines(session, max_spans=250, max_spans_per_run=50)
    assert [len(timeline.spans) for timeline in shown.timelines] == [50] * 5
    assert shown.spans_left_out == 5 * (whole - 50)
    assert shown.runs_left_out == 5


def test_timelines_keep_the_structure_of_a_run_that_is_thinned() -> None:
    (laid_out,) = timelines(encoder_session(runs=1), max_spans_per_run=12).timelines
    kinds = [span.kind for span in laid_out.spans]
    assert (kinds.count("method"), kinds.count("call"), kinds.count("operator")) == (1, 3, 2)


def test_timelines_of_no_runs_are_none() -> None:
    shown = timelines(tiny_session(runs=[]))
    assert (shown.timelines, shown.selected) == ([], -1)


def test_timeline_data_lists_rows_in_order_without_overlap() -> None:
    shown = timelines(encoder_session(runs=4))
    data = json.loads(page_timeline.in_script(page_timeline.timeline_data(shown, [])))
    for run in data["runs"]:
        rows: dict[tuple[int, int], float] = {}
        for lane, depth, _, start, length, *_ in run["spans"]:
            assert start >= rows.get((lane, depth), 0.0) - 1.1
            rows[lane, depth] = start + length


def test_layer_colours_stand_for_the_operator_types_with_the_most_time() -> None:
    colours = page_timeline.layer_colours(timelines(encoder_session(runs=2)))
    assert [(colour.style, colour.label) for colour in colours[:2]] == [
        ("layer-0", "aten.linear.default"),
        ("layer-1", "aten.gelu.default"),
    ]


def test_layer_kind_of_an_ambiguous_source_is_the_kernel() -> None:
    sources = list(encoder_session(runs=1).delegates[1].engine.sources.values())
    assert page_timeline.layer_kind("GEMM #1 #12", sources) == "GEMM"
    assert page_timeline.layer_kind("GEMM #1 #12", sources[:2]) == "aten.linear.default"


def test_strips_of_a_method_share_their_scale() -> None:
    session = encoder_session(runs=30)
    plots = page_timeline.strips(run_groups(session), timelines(session))
    assert len(plots) == 2
    assert plots[0].ticks == plots[1].ticks
    assert all(0 <= dot.left <= 100 and 0 <= dot.top <= 100 for plot in plots for dot in plot.dots)
    assert sum(len(plot.dots) for plot in plots) == 30


@pytest.mark.parametrize("wall", [0.004, 1.0, 7.0, 99.9, 1e6])
def test_strips_of_one_run_have_a_scale(wall: float) -> None:
    session = tiny_session(runs=[replace(tiny_session().runs[0], wall_us=wall)])
    (plot,) = page_timeline.strips(run_groups(session), timelines(session))
    assert plot.ticks[0][1] <= wall <= plot.ticks[-1][1]


def test_strips_show_some_of_very_many_runs() -> None:
    run = tiny_session().runs[0]
    runs = [replace(run, number=k, wall_us=100.0 + k, events=[]) for k in range(5000)]
    session = tiny_session(runs=runs)
    (plot,) = page_timeline.strips(run_groups(session), timelines(session))
    assert page_timeline.MAX_DOTS / 2 < len(plot.dots) <= page_timeline.MAX_DOTS + 2
    assert {100.0, 5099.0} <= {dot.run.wall_us for dot in plot.dots}


def test_page_takes_runs_of_no_time_beside_others() -> None:
    """As an ETDump has them whose first event of a call is lost."""
    run = tiny_session().runs[0]
    walls = (0.0, 1.0, 900.0, 0.0, 0.0)
    runs = [replace(run, number=k, wall_us=wall, profiles={"0": k // 3}) for k, wall in enumerate(walls)]
    page = html.render(tiny_session(runs=runs))
    assert page.count('<figure class="strip">') == 1
