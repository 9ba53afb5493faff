"""Embeds texts with a program, one call each, and finds the nearest ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from executorch_tensorrt.runtime import Module

Array = np.ndarray[Any, Any]


class Tokenizes(Protocol):
    """What turns a text into the method's inputs."""

    def tokens(self, text: str) -> tuple[Array, Array]: ...


@dataclass(frozen=True)
class Embedded:
    """The vectors of some texts, float32 [texts, size], and the optimization profile that each call used."""

    vectors: Array
    profiles: tuple[int, ...]
    etdump: Path


def embed(module: Module, encoder: Tokenizes, texts: Sequence[str], etdump: Path) -> Embedded:
    """Runs the module for each text and writes the events of these calls.

    Raises:
        ValueError: a text is too long for every optimization profile.
    """
    vectors: list[Array] = []
    profiles: list[int] = []
    for text in texts:
        vectors.append(module.forward(*encoder.tokens(text))[0][0])
        profiles.append(module.last_selections[0].profile)
    module.write_etdump(etdump)
    return Embedded(np.stack(vectors), tuple(profiles), etdump)


def best_matches(queries: Array, passages: Array) -> list[tuple[int, float]]:
    """For each query the nearest passage and its cosine; the vectors have length 1."""
    scores: list[list[float]] = np.inner(queries, passages).tolist()
    return [max(enumerate(row), key=lambda match: match[1]) for row in scores]
