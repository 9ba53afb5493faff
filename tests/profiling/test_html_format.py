"""How values read on the page."""

from __future__ import annotations

import pytest

from executorch_tensorrt.profiling.renderers import page_format


@pytest.mark.parametrize(
    ("microseconds", "text"),
    [
        (0, "0 µs"),
        (0.03, "0.03 µs"),
        (1.234, "1.23 µs"),
        (9.996, "10.0 µs"),
        (999.4, "999 µs"),
        (999.6, "1.00 ms"),
        (12_345, "12.3 ms"),
        (999_600, "1.00 s"),
        (5e9, "5,000 s"),
        (float("nan"), page_format.NOTHING),
    ],
)
def test_duration_has_three_digits_and_a_unit(microseconds: float, text: str) -> None:
    assert page_format.duration(microseconds).striptags() == text


@pytest.mark.parametrize(("share", "text"), [(0, "0.0 %"), (0.0001, "< 0.1 %"), (0.1234, "12.3 %"), (1, "100.0 %")])
def test_percent_does_not_round_to_nothing(share: float, text: str) -> None:
    assert page_format.percent(share) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("aten::añadir", "aten::añadir"),
        ("a\nb\tc", "a\\nb\\tc"),
        ("a\u202eb", "a\\u202eb"),
        ("\udcff", "\\udcff"),
        ("\U000e0001", "\\U000e0001"),
    ],
)
def test_shown_writes_control_characters_out(text: str, expected: str) -> None:
    assert page_format.shown(text) == expected


def test_shown_keeps_both_ends_of_a_long_name() -> None:
    text = page_format.shown("begin" + "x" * 10_000 + "end")
    assert text.startswith("begin")
    assert text.endswith("end")
    assert len(text) <= page_format.MAX_TEXT


def test_prose_is_escaped() -> None:
    assert page_format.prose("a < b & " + "c" * 300) == "a &lt; b &amp; " + "c" * 300


def test_breakable_adds_no_characters() -> None:
    broken = page_format.breakable("<b>.layer_norm/x.py:1")
    assert broken.count("<wbr>") == 5
    assert broken.striptags() == "<b>.layer_norm/x.py:1"


def test_ranges_write_fixed_dims_as_one_number() -> None:
    assert page_format.ranges([(1, 1, 1), (2, 16, 32)]) == "(1, 2…16…32)"
    assert page_format.ranges([]) == "()"


@pytest.mark.parametrize(
    ("created", "text"),
    [
        ("2026-08-04T09:30:11.5+00:00", "2026-08-04 09:30 UTC"),
        ("2026-08-04T09:30:11", "2026-08-04 09:30"),
        ("2026-08-04T09:30:11+02:00", "2026-08-04 09:30 +0200"),
        ("yesterday", "yesterday"),
    ],
)
def test_moment_reads_iso_times(created: str, text: str) -> None:
    assert page_format.moment(created) == text
