"""Writes docs/reference/models.md from benchmarks/results/models.json; a test compares the two.

To measure again: python benchmarks/models.py --output benchmarks/results/models.json
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from markdown_table import table

REPOSITORY = Path(__file__).resolve().parents[1]
RESULTS = REPOSITORY / "benchmarks" / "results" / "models.json"
PAGE = REPOSITORY / "docs" / "reference" / "models.md"
KINDS = {"cpu": "CPU", "tensorrt_rtx": "TensorRT-RTX"}

PAGE_TEXT = """\
# Models

Public architectures of `transformers`, in small configurations with random weights, each exported with two
optimization profiles. `tests/model_zoo.py` defines them; this page is written by `tools/update_models_page.py` from
what `benchmarks/models.py` measured ({versions}; {machine}).

{models}

## On the CPU engine

The difference is the largest of any output from eager PyTorch, over calls with the smallest, the tuned and the
largest size of each profile. The decoder's calls continue one another, with its cache between them. Export costs
stand beside those of the stock XNNPACK export over the same sizes: processor seconds, and the peak of memory over a
process that holds the model.

{cpu}

At most {time_ratio} times the stock export's time, and {memory_ratio} times its memory; the aim is {aim_ratio}.

## On TensorRT-RTX

Built without a GPU, for compute capability 8.9. Every plan has both profiles, with the ranges that were declared:
that is compared when an engine is built.

{rtx}

## What stays outside engines

{outside}

In other models, these stay outside, and `left_outside` of the exported program says so for each operator:

- operators whose shape depends on data, such as `nonzero`, and what works on their results;
- control flow, such as `torch.cond`;
- operators that the engine kind has no kernel or conversion for, and data types that it lacks;
- tensors in another memory layout than row-major, where they would cross an engine's border;
- what `torch_executed_ops` names, and blocks smaller than `min_block_size`.

A model whose code depends on a size, such as a loop over it, is traced for that size alone: declare it static (as
Mamba's length here), or export is refused with the reason.
"""


def generate() -> str:
    """The page."""
    result = json.loads(RESULTS.read_text())
    figures = result["figures"]
    models = list(figures["models"].values())
    return PAGE_TEXT.format(
        versions=", ".join(f"{name} {version}" for name, version in result["versions"].items()),
        machine=f"{result['machine']['cores']} cores of {result['machine']['cpu']}",
        models=table(("model", "made from", "profiles"), map(_model_row, models)),
        cpu=table(
            ("model", "engines", "operators in them", "outside", "`.pte`", "difference", "time", "memory"),
            map(_cpu_row, models),
        ),
        rtx=table(
            ("model", "engines", "profiles", "operators in them", "outside", "plans", "time"), map(_rtx_row, models)
        ),
        outside="\n".join(_outside(models)) or "Of the models above, no operator.",
        **{name: figures[name] for name in ("aim_ratio", "memory_ratio", "time_ratio")},
    )


def _model_row(model: Any) -> list[str]:
    profiles = model["profiles"]
    return [model["title"], model["made_of"], f"{profiles['size']} {' and '.join(profiles['ranges'])}"]


def _cpu_row(model: Any) -> list[str]:
    side, stock = model["cpu"], model["xnnpack"]
    return [
        *_contents(model["title"], side),
        _megabytes([side["bytes"]]),
        " and ".join(f"{difference:.0e}" for difference in side["differences"]),
        f"{side['seconds']} s (stock {stock['seconds']})",
        f"{side['memory_mb']:.0f} MB (stock {stock['memory_mb']:.0f})",
    ]


def _rtx_row(model: Any) -> list[str]:
    side = model["tensorrt_rtx"]
    if "error" in side:
        return [model["title"], f"refused: {side['error']}", *[""] * 5]
    title, engines, *counts = _contents(model["title"], side)
    profiles = " and ".join(str(engine["profiles"]) for engine in side["engines"])
    plans = _megabytes([engine["bytes"] for engine in side["engines"]])
    return [title, engines, profiles, *counts, plans, f"{side['seconds']} s"]


def _contents(title: str, side: Any) -> list[str]:
    return [title, str(len(side["engines"])), str(side["operators"]), str(sum(e["count"] for e in side["outside"]))]


def _megabytes(sizes: Sequence[int]) -> str:
    return f"{sum(sizes) / 1e6:.1f} MB"


def _outside(models: Iterable[Any]) -> Iterable[str]:
    for model in models:
        for kind, name in KINDS.items():
            for entry in model[kind].get("outside", ()):
                yield f"- {model['title']}, {name}: {entry['count']} of `{entry['operator']}`: {entry['reason']}"


if __name__ == "__main__":
    PAGE.write_text(generate())
    print(f"wrote {PAGE.relative_to(REPOSITORY)}")
