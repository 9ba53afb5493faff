"""The program of `oracle`, exported."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from sequences.oracle import BIAS, METHODS, MIX, POSITIONS, WIDTH

from executorch_tensorrt import Input, export


class Plain(torch.nn.Module):
    """Two layers, the first of which has each number and its opposite, so that what is cut off is not lost."""

    def __init__(self) -> None:
        super().__init__()
        mix, bias, one = torch.from_numpy(MIX), torch.from_numpy(BIAS), torch.eye(WIDTH)
        self.up, self.down = torch.nn.Linear(WIDTH, 2 * WIDTH), torch.nn.Linear(2 * WIDTH, WIDTH, bias=False)
        self.up.weight = torch.nn.Parameter(torch.cat([mix.T, -mix.T]))
        self.up.bias = torch.nn.Parameter(torch.cat([bias, -bias]))
        self.down.weight = torch.nn.Parameter(torch.cat([one, -one], 1))

    def forward(self, plain_0: torch.Tensor) -> torch.Tensor:
        return self.down(torch.relu(self.up(plain_0)))


class Typed(torch.nn.Module):
    def forward(self, typed_0: torch.Tensor, typed_1: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return typed_0 + typed_1.to(torch.float32), typed_1 + 3


class Cached(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("cache", torch.zeros(POSITIONS, WIDTH))

    def put(self, rows: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        self.cache.index_copy_(0, positions, rows)
        return self.cache.sum(dim=0)


class Decode(Cached):
    def forward(self, decode_0: torch.Tensor, decode_1: torch.Tensor) -> torch.Tensor:
        return self.put(decode_0, decode_1)


class Prefill(Cached):
    def forward(self, prefill_0: torch.Tensor, prefill_1: torch.Tensor) -> torch.Tensor:
        return self.put(prefill_0, prefill_1)


def models() -> dict[str, torch.nn.Module]:
    """Named by their method, as are their inputs: a fake tells engines apart by that."""
    made = {"plain": Plain(), "typed": Typed(), "decode": Decode(), "prefill": Prefill()}
    return {name: model.eval() for name, model in made.items()}


def inputs() -> dict[str, list[Input]]:
    found: dict[str, list[Input]] = {}
    for name, method in METHODS.items():
        tails = [(WIDTH,), () if method.has_state else (WIDTH,)][: len(method.inputs)]
        found[name] = [
            Input(
                profiles=[
                    {"min_shape": (low, *tail), "opt_shape": (high, *tail), "max_shape": (high, *tail)}
                    for low, high in method.spans
                ],
                dtype=dtype,
                shared_dims={0: "rows"},
            )
            for tail, dtype in zip(tails, method.inputs, strict=True)
        ]
    return found


WHERE: Mapping[str, Mapping[str, Any]] = {
    "device": {"device": "cuda:0"},
    "host_io": {"device": "cuda:0", "host_io": True},
    "host": {},
}


def program(engine: str, where: str, **options: Any) -> bytes:
    """The program with its inputs and outputs on the device or the host."""
    made = export(
        models(),
        inputs(),
        engine=engine,
        take_over_mutable_buffer=True,
        **WHERE[where],
        **options,
    )
    return made.buffer


def write_programs(folder: Path, engine: str, *names: str) -> None:
    for name in names:
        (folder / f"{name}.pte").write_bytes(program(engine, "host" if name == "cpu" else name))
