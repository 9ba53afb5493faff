"""Exports a small Llama, compares it with PyTorch, and generates text: prefill on profile 1, decode on profile 0."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from decoder import export_decoder, make_model

from executorch_tensorrt import Module, OptimizationProfileGuard

DECODE, PREFILL = 0, 1


class Generator:
    """Runs a decoder program and counts what it does."""

    def __init__(self, module: Module, longest: int) -> None:
        self.module = module
        self.longest = longest
        self.position = 0
        self.tokens = {PREFILL: 0, DECODE: 0}
        self.seconds = {PREFILL: 0.0, DECODE: 0.0}

    def run(self, ids: np.ndarray, profile: int) -> np.ndarray:
        """Logits [S, vocabulary] for token ids [S] that follow those of the calls before."""
        positions = np.arange(self.position, self.position + len(ids))
        started = time.perf_counter()
        with OptimizationProfileGuard(profile):
            (logits,) = self.module.forward(ids[None], positions)
        self.seconds[profile] += time.perf_counter() - started
        self.tokens[profile] += len(ids)
        self.position += len(ids)
        return logits[0]

    def prefill(self, ids: np.ndarray) -> np.ndarray:
        """The last logits of a prompt, which may be longer than one call takes."""
        logits = np.empty(0)
        for begin in range(0, len(ids), self.longest):
            part = ids[begin : begin + self.longest]
            logits = self.run(part, PREFILL if len(part) > 1 else DECODE)[-1]
        return logits

    def generate(self, prompt: np.ndarray, count: int) -> list[int]:
        """The most likely next tokens."""
        token = int(self.prefill(prompt).argmax())
        out = [token]
        while len(out) < count:
            token = int(self.run(np.array([token]), DECODE)[-1].argmax())
            out.append(token)
        return out

    def reset(self) -> None:
        """Begin another text."""
        self.module.state.reset()
        self.position = 0


def compare(generator: Generator, model: torch.nn.Module, vocabulary: int) -> float:
    """Prefill, decode, decode, prefill again: the largest difference from PyTorch without a cache."""
    random = np.random.default_rng(0)
    ids = np.empty(0, np.int64)
    worst = 0.0
    for count, profile in ((9, PREFILL), (1, DECODE), (1, DECODE), (5, PREFILL), (1, DECODE)):
        new = random.integers(0, vocabulary, count)
        ids = np.concatenate([ids, new])
        got = generator.run(new, profile)
        with torch.no_grad():
            expected = model(input_ids=torch.from_numpy(ids[None]), use_cache=False).logits[0, -count:].numpy()
        worst = max(worst, float(np.abs(got - expected).max()))
    generator.reset()
    return worst


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--hidden", type=int, default=256, help="width of the model, a multiple of 8")
    parser.add_argument("--prompt", type=int, default=200, help="tokens of the prompt")
    parser.add_argument("--tokens", type=int, default=64, help="tokens to generate")
    parser.add_argument("--longest", type=int, default=128, help="tokens that one call of profile 1 takes")
    parser.add_argument("-o", "--output", type=Path, default=Path("llm.pte"))
    arguments = parser.parse_args()

    model = make_model(layers=arguments.layers, hidden=arguments.hidden)
    vocabulary, room = model.config.vocab_size, model.config.max_position_embeddings
    if not 2 <= arguments.longest < room:
        parser.error(f"--longest: got {arguments.longest}, allowed 2..{room - 1}.")
    if arguments.prompt + arguments.tokens > room:
        parser.error(
            f"--prompt and --tokens: got {arguments.prompt + arguments.tokens} together, the cache has {room}."
        )
    print("exporting ...", flush=True)
    program = export_decoder(model, arguments.longest)
    program.save(arguments.output)
    owned = program.delegates[0]["state"]
    print(f"{arguments.output}: {arguments.output.stat().st_size / 1e6:.1f} MB, the engine owns {len(owned)} buffers")

    generator = Generator(Module(arguments.output), arguments.longest)
    print(f"largest difference from PyTorch: {compare(generator, model, vocabulary):.1e}")

    prompt = np.random.default_rng(1).integers(0, vocabulary, arguments.prompt)
    first = generator.generate(prompt, arguments.tokens)
    generator = Generator(generator.module, arguments.longest)
    generator.reset()
    if generator.generate(prompt, arguments.tokens) != first:
        raise SystemExit("the second text differs from the first")
    for name, profile in (("prefill", PREFILL), ("decode", DECODE)):
        rate = generator.tokens[profile] / generator.seconds[profile]
        print(f"{name:8}{generator.tokens[profile]:6} tokens  {rate:9.0f} tokens/s")


if __name__ == "__main__":
    main()
