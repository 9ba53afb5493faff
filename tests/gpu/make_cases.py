"""Export the programs that the tests and benchmarks on a GPU run, with what PyTorch makes of their inputs.

    python tests/gpu/make_cases.py DIR [--tensorrt VERSION]

Where no engine can be built, this leaves build requests in DIR/cache. Build them on the machine with the GPU, with
`etrt build-engines DIR/cache`, bring DIR/cache back, and run this again: see README.md beside it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from gpu.decoder import Decoder, decoder_inputs
from gpu.prepared import NAMES, ON_DEVICE, SEQUENCES, STATEFUL, Call, save_calls
from sequences import programs as sequences

from executorch_tensorrt import Input, export
from executorch_tensorrt.demo.encoder import load_encoder
from executorch_tensorrt.engines.builder import EnginesMissingError

Arguments = list[torch.Tensor]

VOCABULARY = 1024
"""Of the encoder. The tables' other rows are left out so that the program is small."""


@dataclass(frozen=True)
class Source:
    """A model whose inputs have the size `sizes[call]` where they vary. `inputs` may be those of several methods."""

    model: torch.nn.Module
    inputs: Sequence[Input] | Mapping[str, Sequence[Input]]
    sizes: tuple[int, int, int]
    arguments: Callable[[int], Arguments]
    outside: Sequence[str] = field(default_factory=list[str])


def input_of(
    first: tuple[int, int, int], second: tuple[int, int, int], shape: tuple[int, ...], **options: str
) -> Input:
    """An input of two optimization profiles, each a (min, opt, max) for the dim of `shape` that is -1."""
    fields = ("min_shape", "opt_shape", "max_shape")
    profiles = [
        {name: tuple(size if dim < 0 else dim for dim in shape) for name, size in zip(fields, span, strict=True)}
        for span in (first, second)
    ]
    return Input(profiles=profiles, shared_dims={shape.index(-1): "size"}, **options)  # type: ignore[arg-type]


class Block(torch.nn.Module):
    """A transformer block: float32 [1, S, 256] to the same."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = torch.nn.LayerNorm(256), torch.nn.LayerNorm(256)
        self.qkv, self.out = torch.nn.Linear(256, 768), torch.nn.Linear(256, 256)
        self.up, self.down = torch.nn.Linear(256, 1024), torch.nn.Linear(1024, 256)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(self.norm1(x)).reshape(1, -1, 3, 4, 64).permute(2, 0, 3, 1, 4).unbind(0)
        mixed = torch.nn.functional.scaled_dot_product_attention(q, k, v)
        x = x + self.out(mixed.permute(0, 2, 1, 3).reshape(x.shape))
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm2(x))))


class Two(torch.nn.Module):
    """Two engines with an operator between them: float32 [N, 64] to the same."""

    def __init__(self) -> None:
        super().__init__()
        self.before, self.after = torch.nn.Linear(64, 64), torch.nn.Linear(64, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.after(torch.cumsum(torch.tanh(self.before(x)), 1))


class Ints(torch.nn.Module):
    """int64 [N] in; int64 [N] and float32 [N, 8] out."""

    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(100, 8)

    def forward(self, ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return ids * 2 + 1, self.table(ids)


def normal(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


def ids(below: int, *shape: int) -> torch.Tensor:
    return torch.randint(below, shape, generator=torch.Generator().manual_seed(0))


def block() -> Source:
    spans = (1, 1, 1), (1, 64, 512)
    return Source(Block(), [input_of(*spans, (1, -1, 256))], (1, 200, 512), lambda size: [normal(1, size, 256)])


def mlp() -> Source:
    layers = [layer for _ in range(8) for layer in (torch.nn.Linear(512, 512, bias=False), torch.nn.ReLU())]
    for layer in layers[::2]:
        torch.nn.init.normal_(layer.weight, std=(2 / 512) ** 0.5)  # type: ignore[arg-type]
    spans = (1, 1, 1), (1, 256, 1024)
    model = torch.nn.Sequential(*layers)
    return Source(model, [input_of(*spans, (-1, 512))], (1, 256, 1024), lambda size: [normal(size, 512)])


def two() -> Source:
    spans = (1, 1, 4), (1, 16, 64)
    return Source(Two(), [input_of(*spans, (-1, 64))], (2, 16, 64), lambda size: [normal(size, 64)], ["aten.cumsum"])


def ints() -> Source:
    spans = (1, 1, 4), (1, 16, 64)
    return Source(Ints(), [input_of(*spans, (-1,), dtype="int64")], (2, 16, 64), lambda size: [ids(100, size)])


def encoder() -> Source:
    """MiniLM with its own weights: token ids and attention mask, int64 [1, S], to float32 [1, 384]."""
    model = load_encoder().model
    table = model.transformer.embeddings.word_embeddings  # type: ignore[union-attr]
    table.weight = torch.nn.Parameter(table.weight[:VOCABULARY].clone())  # type: ignore[union-attr,index]
    spans = (2, 16, 32), (2, 128, 256)

    def arguments(size: int) -> Arguments:
        mask = torch.ones(1, size, dtype=torch.int64)
        mask[:, size - size // 8 :] = 0
        return [ids(VOCABULARY, 1, size), mask]

    inputs = [input_of(*spans, (1, -1), dtype="int64", name=name) for name in ("input_ids", "attention_mask")]
    return Source(model, inputs, (16, 128, 256), arguments)


DECODER_WIDTH, DECODER_LENGTH = 256, 256


def decoder() -> Source:
    def arguments(size: int) -> Arguments:
        return [normal(DECODER_LENGTH, DECODER_WIDTH)[:size], torch.arange(size)]

    model = Decoder(DECODER_WIDTH, 4, DECODER_LENGTH)
    spans = (1, 1, 1), (1, 64, DECODER_LENGTH)
    return Source(model, decoder_inputs(DECODER_WIDTH, *spans), (1, 64, DECODER_LENGTH), arguments)


def methods() -> Source:
    """The same with a method for each of the profiles."""
    source = decoder()
    spans = {"decode": (1, 1, 1), "prefill": (1, 64, DECODER_LENGTH)}
    return replace(source, inputs={name: decoder_inputs(DECODER_WIDTH, span) for name, span in spans.items()})


def calls_of(source: Source) -> dict[str, Call]:
    found: dict[str, Call] = {}
    for name, size in zip(("first", "second", "largest"), source.sizes, strict=True):
        arguments = source.arguments(size)
        with torch.no_grad():
            outputs = source.model(*arguments)
        several = outputs if isinstance(outputs, tuple) else (outputs,)
        found[name] = Call([value.numpy() for value in arguments], [value.numpy() for value in several])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--tensorrt", default="8.6", metavar="VERSION", help="of the machine with the GPU (%(default)s)"
    )
    parser.add_argument("--only", nargs="+", metavar="PROGRAM", help="these programs alone")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    missing: list[str] = []
    sources = {"block": block, "encoder": encoder, "mlp": mlp, "two": two, "ints": ints, "lookup": ints}
    sources |= {"decoder": decoder, "methods": methods, "mlp_host": mlp}
    for name in arguments.only or (*NAMES, *STATEFUL):
        torch.manual_seed(0)
        source = sources[name]()
        source.model.eval()
        try:
            several = isinstance(source.inputs, Mapping)
            program = export(
                dict.fromkeys(source.inputs, source.model) if several else source.model,
                source.inputs,
                engine="tensorrt",
                engine_options={"tensorrt_version": arguments.tensorrt},
                engine_cache=arguments.folder / "cache",
                torch_executed_ops=source.outside,
                device="cuda:0" if name in (*ON_DEVICE, *STATEFUL) else None,
                take_over_mutable_buffer=name in STATEFUL,
            )
        except EnginesMissingError:
            missing.append(name)
            continue
        program.save(arguments.folder / f"{name}.pte")
        save_calls(arguments.folder, name, calls_of(source))
        print(f"{name}: {len(program.buffer) / 1e6:.1f} MB")
    for where in SEQUENCES:
        options = {"tensorrt_version": arguments.tensorrt}
        try:
            made = sequences.program("tensorrt", where, engine_options=options, engine_cache=arguments.folder / "cache")
        except EnginesMissingError:
            missing.append(f"sequences_{where}")
            continue
        (arguments.folder / f"sequences_{where}.pte").write_bytes(made)
    if missing:
        cache = arguments.folder / "cache"
        sys.exit(
            f"no engines yet for {', '.join(missing)}: run `etrt build-engines {cache}` where the GPU is, "
            "bring the folder back, and run this again."
        )


if __name__ == "__main__":
    main()
