"""A Llama with a static KV cache, small and with random weights, as a program with two optimization profiles."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch.export import Dim, ExportedProgram
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM
from transformers.integrations.executorch import TorchExportableModuleForDecoderOnlyLM

from executorch_tensorrt import ExportedEngineProgram, Input, export


def make_model(layers: int = 4, hidden: int = 256, vocabulary: int = 2048, cache_length: int = 512) -> LlamaForCausalLM:
    """A decoder that nobody trained: what it says makes no sense, how long it takes does."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=hidden,
        intermediate_size=3 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=8,
        num_key_value_heads=4,
        max_position_embeddings=cache_length,
    )
    model = LlamaForCausalLM(config).eval()
    cache = {"batch_size": 1, "max_cache_len": cache_length}
    model.generation_config = GenerationConfig(
        use_cache=True, cache_implementation="static", max_length=cache_length, cache_config=cache
    )
    return model


def trace(model: LlamaForCausalLM, longest: int) -> ExportedProgram:
    """ids int64 [1, S] and positions int64 [S] -> logits float32 [1, S, vocabulary]; S from 1 to `longest`."""
    length = model.config.max_position_embeddings
    tokens = Dim("tokens", min=1, max=longest)
    with torch.no_grad():
        return TorchExportableModuleForDecoderOnlyLM(model, batch_size=1, max_cache_len=length).export(
            input_ids=torch.zeros((1, 3), dtype=torch.int64),
            cache_position=torch.arange(3),
            dynamic_shapes={"input_ids": {1: tokens}, "cache_position": {0: tokens}},
            strict=True,
        )


def inputs(*ranges: tuple[int, int, int]) -> list[Input]:
    """Ids and positions; a range of S, (min, opt, max), for each optimization profile."""

    def profiles(*head: int) -> list[Mapping[str, tuple[int, ...]]]:
        fields = ("min_shape", "opt_shape", "max_shape")
        return [{field: (*head, size) for field, size in zip(fields, span, strict=True)} for span in ranges]

    return [Input(profiles=profiles(1), dtype="int64"), Input(profiles=profiles(), dtype="int64")]


def export_decoder(model: LlamaForCausalLM, longest: int = 128) -> ExportedEngineProgram:
    """Decode is profile 0, prefill of up to `longest` tokens is profile 1; the engine owns the cache."""
    return export(trace(model, longest), inputs((1, 1, 1), (2, longest // 2, longest)), take_over_mutable_buffer=True)
