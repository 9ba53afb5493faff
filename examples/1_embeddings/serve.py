"""An embedding service in one loop: texts of any length come in, batches go out. It needs no torch."""

from __future__ import annotations

import argparse
import time
from collections import deque
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from executorch_tensorrt import Module

DOCUMENTS = (
    "Sourdough is raised by wild yeast and lactic acid bacteria that live in a starter of flour and water. The starter "
    "is fed every day; a spoonful of it makes a loaf rise overnight, and the acids keep the bread fresh for a week.",
    "The tides follow the moon. Its pull is stronger on the near side of the Earth than on the far side, so that the "
    "oceans bulge on both, and most coasts see high water twice in a little less than twenty-five hours.",
    "In winter honey bees form a cluster around the queen. They shiver with their flight muscles to keep it warm, move "
    "slowly over the combs, and live on the honey that was stored in summer.",
    "A refrigerator moves heat. A compressor squeezes a gas until it is hot, coils at the back give the heat to the "
    "kitchen, and the liquid turns to gas again inside the walls, taking warmth from the food as it does.",
)
QUERIES = (
    "how do I bake bread without buying yeast?",
    "why is the sea higher at some hours of the day?",
    "what do bees do when it is cold?",
    "how does a fridge work?",
)
SHORT = 32  # tokens that profile 0 takes


class Service:
    """Texts to vectors, and a record of the calls."""

    def __init__(self, folder: Path) -> None:
        program = folder / "encoder.pte"
        if not program.is_file():
            raise SystemExit(f"the service has no model: got no file '{program}'; run python export.py first.")
        self.module = Module(program, optimization_profile="auto")
        self.batch, tokens = self.module.method_meta().inputs[0].tensor.sizes
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.enable_truncation(tokens)
        self.tokenizer.enable_padding()
        self.calls: list[tuple[int, int, float]] = []
        for size in (SHORT, tokens):  # a profile's first call prepares it
            self.module.forward(np.ones((1, size), np.int64), np.ones((1, size), np.int64))

    def is_short(self, text: str) -> bool:
        return sum(self.tokenizer.encode(text).attention_mask) <= SHORT

    def embed(self, texts: list[str]) -> np.ndarray:
        """float32 [texts, 384]; each text is padded to the longest."""
        encoded = self.tokenizer.encode_batch(texts)
        ids = np.array([item.ids for item in encoded])
        mask = np.array([item.attention_mask for item in encoded])
        started = time.perf_counter()
        (vectors,) = self.module.forward(ids, mask)
        seconds = time.perf_counter() - started
        self.calls.append((self.module.last_selections[0].profile, len(texts), seconds))
        return vectors


def take_batch(waiting: deque[str], service: Service, size: int) -> list[str]:
    """The oldest text, and others that are short as it is, or long: what is padded far is computed for nothing."""
    kind = service.is_short(waiting[0])
    batch = [text for text in waiting if service.is_short(text) == kind][:size]
    for text in batch:
        waiting.remove(text)
    return batch


def show_times(calls: list[tuple[int, int, float]]) -> None:
    print("profile  calls  texts  median ms  p90 ms  texts/s")
    for profile in sorted({call[0] for call in calls}):
        texts = [count for index, count, _ in calls if index == profile]
        times = np.array([seconds for index, _, seconds in calls if index == profile])
        median, p90 = np.percentile(times, [50, 90]) * 1e3
        print(f"{profile:7}{len(texts):7}{sum(texts):7}{median:11.1f}{p90:8.1f}{sum(texts) / times.sum():9.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("encoder"), help="what export.py wrote")
    parser.add_argument("--requests", type=int, default=200, help="texts to embed")
    parser.add_argument("--batch", type=int, default=4, help="texts in one call, at most")
    arguments = parser.parse_args()

    service = Service(arguments.folder)
    if not 1 <= arguments.batch <= service.batch:
        parser.error(f"--batch: got {arguments.batch}, allowed 1..{service.batch}; export.py has the profiles.")

    index = service.embed(list(DOCUMENTS))
    scores = service.embed(list(QUERIES)) @ index.T
    for query, row in zip(QUERIES, scores, strict=True):
        print(f"{query:50} {row.max():.2f}  {DOCUMENTS[row.argmax()][:40]}...")

    service.calls.clear()
    texts = DOCUMENTS + 2 * QUERIES
    waiting = deque(np.random.default_rng(0).choice(texts, arguments.requests).tolist())
    while waiting:
        service.embed(take_batch(waiting, service, arguments.batch))
    print()
    show_times(service.calls)


if __name__ == "__main__":
    main()
