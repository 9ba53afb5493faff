"""A small decoder layer with a key and value cache, as the programs with engine-owned state have it."""

from __future__ import annotations

import torch

from executorch_tensorrt import Input

Span = tuple[int, int, int]


class Decoder(torch.nn.Module):
    """float32 [S, width] at int64 [S] positions, to float32 [S, width]; each sees the positions up to its own.

    So a call whose positions begin with 0 does not depend on what the cache held before.
    """

    def __init__(self, width: int, heads: int, length: int) -> None:
        super().__init__()
        self.heads, self.size, self.length = heads, width // heads, length
        self.norm1, self.norm2 = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)
        self.register_buffer("keys", torch.zeros(heads, length, self.size))
        self.register_buffer("values", torch.zeros(heads, length, self.size))

    def forward(self, x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        parts = self.qkv(self.norm1(x)).reshape(-1, 3, self.heads, self.size).permute(1, 2, 0, 3)
        queries, keys, values = parts.unbind(0)
        self.keys.index_copy_(1, positions, keys)
        self.values.index_copy_(1, positions, values)
        scores = queries @ self.keys.transpose(1, 2) * self.size**-0.5
        visible = torch.arange(self.length) <= positions[:, None]
        mixed = torch.softmax(torch.where(visible, scores, -1e9), -1) @ self.values
        x = x + self.out(mixed.permute(1, 0, 2).reshape(-1, self.heads * self.size))
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm2(x))))


def decoder_inputs(width: int, *spans: Span) -> list[Input]:
    """Its inputs, with an optimization profile for each (min, opt, max) of S."""
    fields = ("min_shape", "opt_shape", "max_shape")

    def profiles(*tail: int) -> list[dict[str, tuple[int, ...]]]:
        return [dict(zip(fields, ((size, *tail) for size in span), strict=True)) for span in spans]

    return [
        Input(profiles=profiles(width), shared_dims={0: "size"}, name="x"),
        Input(profiles=profiles(), shared_dims={0: "size"}, dtype="int64", name="positions"),
    ]
