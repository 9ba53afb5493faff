"""examples/2_llm: what it generates is PyTorch's."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import RunExample


def test_generate_matches_pytorch_and_itself(run_example: RunExample) -> None:
    sizes = ["--layers", "1", "--hidden", "64", "--prompt", "20", "--tokens", "5", "--longest", "16"]
    told = run_example("2_llm/generate.py", *sizes)
    (difference,) = re.findall(r"largest difference from PyTorch: (\S+)", told)
    assert float(difference) < 1e-4
    assert "llm.pte" in told
    assert "the engine owns 3 buffers" in told
    assert re.search(r"prefill +20 tokens +\d+ tokens/s\ndecode +4 tokens +\d+ tokens/s", told)


def test_texts_that_are_longer_than_the_cache_are_refused(
    run_example: RunExample, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        run_example("2_llm/generate.py", "--layers", "1", "--hidden", "64", "--prompt", "500", "--tokens", "13")
    assert capsys.readouterr().err.endswith("--prompt and --tokens: got 513 together, the cache has 512.\n")
