"""Public architectures in small configurations with random weights, each with two optimization profiles.

Tests export the fast ones; `benchmarks/models.py` exports all, and `docs/reference/models.md` tells what came out.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from executorch_tensorrt import Input, Module, OptimizationProfileGuard

# Read when transformers is imported.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

Range = tuple[int, int, int]
Shape = tuple[int, ...]


class Call(NamedTuple):
    """One call of a model, and the optimization profile to make it with."""

    profile: int
    arguments: dict[str, torch.Tensor]


@dataclass(frozen=True)
class ZooModel:
    """An architecture.

    Attributes:
        title: its name in the docs.
        made_of: what it is made from, in a few words.
        sizes: what its dynamic dim counts, and that dim's range (min, opt, max) in each profile.
        make: makes the module.
        inputs: its declared inputs, by argument name.
        calls: what to call it with, in this order, for the state that it may keep: both ends of every profile, and
            sizes inside.
        strict: whether it has to be traced with TorchDynamo.
    """

    title: str
    made_of: str
    sizes: tuple[str, Sequence[Range]]
    make: Callable[[], torch.nn.Module]
    inputs: Mapping[str, Input]
    calls: Callable[[], list[Call]]
    strict: bool = False


class Picked(torch.nn.Module):
    """A model of transformers that returns some of its outputs as a tuple."""

    def __init__(self, model: torch.nn.Module, *outputs: str) -> None:
        super().__init__()
        self.model = model
        self.outputs = outputs

    def pick(self, **arguments: torch.Tensor) -> tuple[torch.Tensor, ...]:
        result = self.model(**arguments)
        return tuple(getattr(result, name) for name in self.outputs)


class Encoder(Picked):
    """Token ids and attention mask, both int64 [B, S]."""

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return self.pick(input_ids=input_ids, attention_mask=attention_mask)


class Vision(Picked):
    """Images, float32 [B, 3, H, W]."""

    def forward(self, pixel_values: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return self.pick(pixel_values=pixel_values)


class Audio(Picked):
    """Log-mel spectrograms, float32 [B, bands, frames]."""

    def forward(self, input_features: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return self.pick(input_features=input_features)


class Tokens(Picked):
    """Token ids, int64 [B, S]."""

    def forward(self, input_ids: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return self.pick(input_ids=input_ids)


def _profiles(ranges: Sequence[Range], head: Shape = (), tail: Shape = ()) -> list[dict[str, Shape]]:
    """A profile for each range of one dim between fixed dims."""
    fields = ("min_shape", "opt_shape", "max_shape")
    return [{field: (*head, size, *tail) for field, size in zip(fields, entry, strict=True)} for entry in ranges]


def _normal(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(shape[0]))


def _ids(*shape: int) -> torch.Tensor:
    return torch.randint(0, VOCABULARY, shape, generator=torch.Generator().manual_seed(shape[0] * 1000 + shape[1]))


VOCABULARY = 1000
_IMAGES: tuple[Range, ...] = ((1, 1, 1), (2, 4, 8))
_SENTENCES: tuple[Range, ...] = ((1, 8, 16), (17, 64, 128))
_STEPS: tuple[Range, ...] = ((1, 1, 1), (2, 16, 64))


def _each(ranges: Sequence[Range], arguments: Callable[[int], dict[str, torch.Tensor]]) -> Callable[[], list[Call]]:
    """Calls with the ends and the tuned size of every profile."""
    return lambda: [Call(index, arguments(size)) for index, entry in enumerate(ranges) for size in sorted({*entry})]


def _bert() -> torch.nn.Module:
    import transformers

    config = transformers.BertConfig(
        vocab_size=VOCABULARY,
        hidden_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=512,
        max_position_embeddings=128,
    )
    return Encoder(transformers.BertModel(config), "last_hidden_state", "pooler_output")


def _llama() -> torch.nn.Module:
    import transformers
    from transformers.integrations.executorch import TorchExportableModuleForDecoderOnlyLM

    config = transformers.LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=256,
        max_position_embeddings=128,
    )
    model = transformers.LlamaForCausalLM(config).eval()
    model.generation_config = transformers.GenerationConfig(use_cache=True, cache_implementation="static")
    exportable: Any = TorchExportableModuleForDecoderOnlyLM(model, batch_size=1, max_cache_len=128)
    return exportable.model


def _llama_calls() -> list[Call]:
    """A prompt, two tokens, another prompt after them, a token: what each sees is in the cache."""
    calls: list[Call] = []
    position = 0
    for profile, length in ((1, 20), (0, 1), (0, 1), (1, 64), (0, 1), (1, 2)):
        positions = torch.arange(position, position + length)
        calls.append(Call(profile, {"input_ids": _ids(1, length), "cache_position": positions}))
        position += length
    return calls


def _whisper() -> torch.nn.Module:
    import transformers
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    config = transformers.WhisperConfig(
        num_mel_bins=80,
        d_model=128,
        encoder_layers=2,
        encoder_attention_heads=4,
        encoder_ffn_dim=512,
        max_source_positions=100,
    )
    return Audio(WhisperEncoder(config), "last_hidden_state")


def _vit() -> torch.nn.Module:
    import transformers

    config = transformers.ViTConfig(
        hidden_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=512,
        image_size=64,
        patch_size=16,
        num_labels=10,
    )
    return Vision(transformers.ViTForImageClassification(config), "logits")


def _convnext() -> torch.nn.Module:
    import transformers

    config = transformers.ConvNextConfig(hidden_sizes=[32, 64, 96, 128], depths=[1, 1, 2, 1], num_labels=10)
    return Vision(transformers.ConvNextForImageClassification(config), "logits")


def _resnet() -> torch.nn.Module:
    import transformers

    config = transformers.ResNetConfig(
        embedding_size=32, hidden_sizes=[32, 64, 96, 128], depths=[1, 1, 1, 1], layer_type="basic", num_labels=10
    )
    return Vision(transformers.ResNetForImageClassification(config), "logits")


def _mamba() -> torch.nn.Module:
    import transformers

    config = transformers.MambaConfig(
        vocab_size=VOCABULARY, hidden_size=128, num_hidden_layers=2, state_size=8, use_cache=False
    )
    return Tokens(transformers.MambaForCausalLM(config), "logits")


_PIXELS = {"pixel_values": Input(profiles=_profiles(_IMAGES, tail=(3, 64, 64)))}


def _images(batch: int) -> dict[str, torch.Tensor]:
    return {"pixel_values": _normal(batch, 3, 64, 64)}


def _sentence(length: int) -> dict[str, torch.Tensor]:
    return {"input_ids": _ids(1, length), "attention_mask": torch.ones(1, length, dtype=torch.int64)}


MODELS: Mapping[str, ZooModel] = {
    "bert": ZooModel(
        "BERT",
        "`BertModel`, 2 layers of width 128",
        ("tokens", _SENTENCES),
        _bert,
        {
            name: Input(profiles=_profiles(_SENTENCES, head=(1,)), dtype="int64", shared_dims={1: "tokens"})
            for name in ("input_ids", "attention_mask")
        },
        _each(_SENTENCES, _sentence),
    ),
    "llama": ZooModel(
        "Llama with a static KV cache",
        "`LlamaForCausalLM`, 2 layers of width 128, cache of 128 tokens",
        ("tokens", _STEPS),
        _llama,
        {
            "input_ids": Input(profiles=_profiles(_STEPS, head=(1,)), dtype="int64", shared_dims={1: "tokens"}),
            "cache_position": Input(profiles=_profiles(_STEPS), dtype="int64", shared_dims={0: "tokens"}),
        },
        _llama_calls,
        strict=True,
    ),
    "whisper": ZooModel(
        "Whisper encoder",
        "`WhisperEncoder`, 2 layers of width 128, 200 frames",
        ("batch", _IMAGES),
        _whisper,
        {"input_features": Input(profiles=_profiles(_IMAGES, tail=(80, 200)))},
        _each(_IMAGES, lambda batch: {"input_features": _normal(batch, 80, 200)}),
    ),
    "vit": ZooModel(
        "ViT",
        "`ViTForImageClassification`, 2 layers of width 128, 64 by 64 pixels",
        ("batch", _IMAGES),
        _vit,
        _PIXELS,
        _each(_IMAGES, _images),
    ),
    "convnext": ZooModel(
        "ConvNeXt",
        "`ConvNextForImageClassification`, 5 blocks, 64 by 64 pixels",
        ("batch", _IMAGES),
        _convnext,
        _PIXELS,
        _each(_IMAGES, _images),
    ),
    "resnet": ZooModel(
        "ResNet",
        "`ResNetForImageClassification`, 4 basic blocks, 64 by 64 pixels",
        ("batch", _IMAGES),
        _resnet,
        _PIXELS,
        _each(_IMAGES, _images),
    ),
    "mamba": ZooModel(
        "Mamba",
        "`MambaForCausalLM`, 2 layers of width 128, 16 tokens",
        ("batch", _IMAGES),
        _mamba,
        {"input_ids": Input(profiles=_profiles(_IMAGES, tail=(16,)), dtype="int64")},
        _each(_IMAGES, lambda batch: {"input_ids": _ids(batch, 16)}),
    ),
}


def make(name: str) -> torch.nn.Module:
    """A model of the zoo in evaluation mode, with the same weights every time."""
    torch.manual_seed(0)
    return MODELS[name].make().eval()


def differences(name: str, program: bytes) -> list[float]:
    """The largest difference of any output of a model's program from eager PyTorch, for each profile."""
    model, module, calls = make(name), Module(program), MODELS[name].calls()
    largest = [0.0] * (1 + max(call.profile for call in calls))
    for profile, arguments in calls:
        with torch.no_grad():
            expected = model(**arguments)
        with OptimizationProfileGuard(profile):
            got = module.forward(*arguments.values())
        for one, other in zip(got, expected if isinstance(expected, tuple) else (expected,), strict=True):
            distance = (torch.as_tensor(one) - other).abs().max()
            largest[profile] = max(largest[profile], float(distance))
    return largest
