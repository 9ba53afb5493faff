"""Writes docs/reference/benchmarks.md from benchmarks/results/*.json; a test compares the two.

To measure again: python benchmarks/NAME.py --output benchmarks/results/NAME.json
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from markdown_table import table

REPOSITORY = Path(__file__).resolve().parents[1]
RESULTS = REPOSITORY / "benchmarks" / "results"
PAGE = REPOSITORY / "docs" / "reference" / "benchmarks.md"

PAGE_TEXT = """\
# Benchmarks

One script a claim, and one file of what it last printed: this page is written by `tools/update_benchmarks_page.py`
from `benchmarks/results/*.json`, and a test compares the two. Times are medians of runs in which both sides take turns;
ratios come first, because they depend least on the machine. `make bench` measures again what needs no GPU.

A claim is what the script was written to check. Where it has an aim, the table says whether the figure met it.

{sections}"""

UNITS = {
    "tokens_per_s": "tokens/s",
    "mb_per_hour": "MB an hour",
    "bytes_per_step": "bytes a step",
    "bytes": "bytes",
    "us": "µs",
    "ns": "ns",
    "ms": "ms",
    "s": "s",
    "mb": "MB",
}

TITLES = {"etdump_reader": "ETDump reader", "import": "Import", "llm": "LLM", "minilm": "MiniLM"}
NOTES = {
    "llm": "`profiles`: one engine with two optimization profiles that owns the cache; `wide`: it has one profile. "
    "`caller`: the program owns the cache, and it is updated in place; `caller copied`: as ExecuTorch plans it. "
    "`methods`: two methods with an engine each; `methods one engine`: two methods that share one.",
    "gpu/graph_replay": "`moving`: the arrays are at new addresses in every call.",
    "gpu/host_arrays": "`pageable`: straight from and to the arrays; `staged`: through pinned memory; "
    "`program pinned`: the caller's input is pinned; `callers pinned`: by hand, with pinned input and output.",
    "gpu/resident": "`resident`: device arrays; `staged`: host arrays.",
}

AT_MOST, AT_LEAST = "at most", "at least"
# By benchmark: figure, which of its aims that is held to, and how.
AIMS: dict[str, dict[str, tuple[str, str]]] = {
    "delegate_call": {"difference_us": ("aim_difference_us", AT_MOST)},
    "etdump_reader": {
        "times_faster": ("aim_times_faster", AT_LEAST),
        "read_etdump_s": ("aim_seconds_for_200000", AT_MOST),
    },
    "guard": {"cpp_ns": ("aim_cpp_ns", AT_MOST)},
    "import": {
        "executorch_tensorrt_s": ("aim_s", AT_MOST),
        "executorch_tensorrt_mb": ("aim_mb", AT_MOST),
    },
    "minilm": {"ratio_16_tokens": ("aim_ratio", AT_MOST), "ratio_128_tokens": ("aim_ratio", AT_MOST)},
    "models": {"time_ratio": ("aim_ratio", AT_MOST), "memory_ratio": ("aim_ratio", AT_MOST)},
    "packages": {"operator_us": ("aim_operator_us", AT_MOST)},
    "profiling_overhead": {
        "off_ratio": ("aim_off_ratio", AT_MOST),
        "phase_on_top_ns": ("aim_phase_on_top_ns", AT_MOST),
        "layer_record_ns": ("aim_layer_record_ns", AT_MOST),
    },
    "selection": {"inputs_8_profiles_4_ns": ("aim_ns", AT_MOST)},
    "gpu/bare_call": {"profile_0_more_us": ("aim_more_us", AT_MOST), "profile_1_more_us": ("aim_more_us", AT_MOST)},
    "gpu/graph_replay": {
        "times_as_fast": ("aim_times_as_fast", AT_LEAST),
        "in_turn_ratio": ("aim_in_turn_ratio", AT_MOST),
        "replay_first_host_us": ("aim_host_us", AT_MOST),
        "replay_second_host_us": ("aim_host_us", AT_MOST),
    },
    "gpu/host_arrays": {"2_kb_ratio": ("aim_ratio", AT_MOST), "512_kb_ratio": ("aim_ratio", AT_MOST)},
    "gpu/profile_switch": {"ratio": ("aim_ratio", AT_MOST)},
    "gpu/trace_levels": {"phases_adds_us": ("aim_phases_adds_us", AT_MOST)},
}


def generate() -> str:
    """The page."""
    results = [json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"))]
    results = [result for result in results if "claim" in result]
    on_gpu = [result for result in results if "gpu" in result["machine"]]
    on_cpu = [result for result in results if "gpu" not in result["machine"]]
    sections = ["## Without a GPU", *_sections(on_cpu), "## On a GPU", *_sections(on_gpu)]
    return PAGE_TEXT.format(sections="\n\n".join(sections)) + "\n"


def _sections(results: Iterable[Any]) -> Iterator[str]:
    said = ""
    for result in results:
        where = _where(result)
        name = result["benchmark"]
        yield f"### {TITLES.get(name) or name.rpartition('/')[2].replace('_', ' ').capitalize()}"
        yield result["claim"].replace(" us", " µs")
        if name in NOTES:
            yield NOTES[name]
        figures = dict(_flat(result["figures"]))
        aims = AIMS.get(name, {})
        used = {aim for aim, _ in aims.values()}
        rows = [_row(figure, value, figures, aims) for figure, value in figures.items() if figure not in used]
        # Tables without an aim are narrower.
        rows = rows if aims else [row[:2] for row in rows]
        yield table(("figure", "measured", "aim")[: 3 if aims else 2], rows)
        if "models" in result["figures"]:
            yield "Model by model: [models](models.md)."
        yield f"`{result['command']}`" + (f", {where}" if where != said else ", on the same machine") + "."
        said = where


def _where(result: Any) -> str:
    machine = result["machine"]
    parts = [f"{machine['cores']} cores of {machine['cpu']}", f"CPython {machine['python']}"]
    if "compiler" in machine:
        parts.append(f"compiler {machine['compiler']}")
    if "gpu" in machine:
        parts = [machine["gpu"], f"TensorRT {machine['tensorrt']}", *parts]
    return ", ".join([*parts, *(f"{name} {version}" for name, version in result["versions"].items())])


def _flat(figures: Mapping[str, Any], before: tuple[str, ...] = ()) -> Iterator[tuple[str, float]]:
    """Numbers by name, ratios first; series and what has a page of its own are in the file alone."""
    for name in sorted(figures, key=lambda name: not _is_ratio(name)):
        value = figures[name]
        if isinstance(value, Mapping) and name != "models":
            yield from _flat(value, (*before, name))
        elif isinstance(value, int | float):
            yield ", ".join((*before, name)), value


def _is_ratio(name: str) -> bool:
    return "ratio" in name or "times" in name


def _row(name: str, value: float, figures: Mapping[str, float], aims: Mapping[str, tuple[str, str]]) -> list[str]:
    if name not in aims:
        return [_words(name), _measured(name, value), ""]
    aim, how = aims[name]
    met = value <= figures[aim] if how == AT_MOST else value >= figures[aim]
    return [
        _words(name),
        _measured(name, value),
        f"{how} {_measured(name, figures[aim])}: {'met' if met else '**missed**'}",
    ]


def _unit(name: str) -> str:
    return next((unit for unit in UNITS if name.endswith(f"_{unit}")), "")


def _words(name: str) -> str:
    return name.removesuffix(f"_{_unit(name)}").replace("_", " ")


def _measured(name: str, value: float) -> str:
    number = f"{value:,.0f}" if isinstance(value, int) or abs(value) >= 1000 else f"{value:.4g}"
    return f"{number} {UNITS.get(_unit(name), '')}".rstrip()


if __name__ == "__main__":
    PAGE.write_text(generate())
    print(f"wrote {PAGE.relative_to(REPOSITORY)}")
