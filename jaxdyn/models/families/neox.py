"""GPT-NeoX, Pythia among them: LayerNorms, a plain MLP, a parallel residual, rotary positions in a share of each head's entries.

Queries, keys and values are one matrix, head by head. Source: arXiv:2204.06745, section 2.1; arXiv:2304.01373; names of fields and
tensors are those of the library transformers, which knows the read-out under two names.
"""

from __future__ import annotations

import math
from typing import Any

from jaxdyn.models import rope_fields
from jaxdyn.models.config import Config
from jaxdyn.models.families.family import ACTIVATIONS, Family, layer_kind, linear, make, norm
from jaxdyn.models.tensor_slice import TensorSlice
from jaxdyn.nn import Transformer

__all__ = ["NEOX"]

LAYER = "gpt_neox.layers.{i}."


def _shape(config: Config, dtype: str) -> Transformer:
    width, heads = config.whole("hidden_size") or 0, config.whole("num_attention_heads") or 1
    rope = rope_fields.read(config, context=2048, base="rotary_emb_base", share=("rotary_pct", 0.25))
    config.fixed(rope_theta=rope.base, partial_rotary_factor=rope.share, head_dim=width // heads)
    layers = config.whole("num_hidden_layers") or 0
    if layer_kind(config, layers, "full_attention") != "full_attention":
        config.refuse("layer_types", config.get("layer_types"), "each is full_attention")
    biases = ("q", "k", "v", "o") if config.flag("attention_bias", True) else ()
    fields = {
        "vocabulary": config.whole("vocab_size"),
        "width": width,
        "layers": layers,
        "heads": heads,
        "hidden": config.whole("intermediate_size"),
        "norm": "layer",
        "mlp": "plain",
        "activation": config.choice("hidden_act", ACTIVATIONS, "gelu"),
        "biases": (*biases, "up", "down"),
        "parallel": config.flag("use_parallel_residual", True),
        "rotary": None if rope.share == 1 else int(width // heads * rope.share),
        "epsilon": config.number("layer_norm_eps", 1e-5),
        "tied": config.flag("tie_word_embeddings", False),
        "base": rope.base,
        "scaling": rope.scaling,
        "dtype": dtype,
    }
    return make(config, fields)


def _slices(shape: Transformer) -> dict[str, TensorSlice]:
    d, h, e = shape.width, shape.heads, shape.entries
    slices = {"embed": TensorSlice("gpt_neox.embed_in.weight", (shape.vocabulary, d))} | norm(
        shape, "norm", "gpt_neox.final_layer_norm"
    )
    fused = f"{LAYER}attention.query_key_value"
    for number, ours in enumerate(("q", "k", "v")):
        index = (slice(None), number)
        slices[f"blocks/{ours}"] = TensorSlice(f"{fused}.weight", (3 * h * e, d), (h, 3, e, d), index, transposed=True)
        if ours in shape.biases:
            slices[f"blocks/{ours}_bias"] = TensorSlice(f"{fused}.bias", (3 * h * e,), (h, 3, e), index)
    slices |= linear(shape, "o", f"{LAYER}attention.dense")
    slices |= linear(shape, "up", f"{LAYER}mlp.dense_h_to_4h") | linear(shape, "down", f"{LAYER}mlp.dense_4h_to_h")
    slices |= norm(shape, "blocks/attention_norm", f"{LAYER}input_layernorm")
    slices |= norm(shape, "blocks/mlp_norm", f"{LAYER}post_attention_layernorm")
    return slices if shape.tied else slices | {"head": TensorSlice("embed_out.weight", (shape.vocabulary, d))}


def _config(shape: Transformer) -> dict[str, Any]:
    share, rope = shape.rotated / shape.entries, rope_fields.written(shape)
    if int(shape.entries * share) < shape.rotated:  # readers cut the product off
        share = math.nextafter(share, 1)
    rope["rope_parameters"] |= {"partial_rotary_factor": share}
    return {
        "architectures": ["GPTNeoXForCausalLM"],
        "vocab_size": shape.vocabulary,
        "hidden_size": shape.width,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "intermediate_size": shape.hidden,
        "hidden_act": {"gelu_tanh": "gelu_new"}.get(shape.activation, shape.activation),
        "attention_bias": "q" in shape.biases,
        "use_parallel_residual": shape.parallel,
        "layer_norm_eps": shape.epsilon,
        "tie_word_embeddings": shape.tied,
        "initializer_range": shape.std,
        "rotary_pct": share,
        "rotary_emb_base": shape.base,
    } | rope


BUFFERS = (
    r"(gpt_neox\.)?layers\.\d+\.attention\.(bias|masked_bias|rotary_emb\.inv_freq)",
    r"(gpt_neox\.)?rotary_emb\.inv_freq",
)
NEOX = Family("gpt_neox", _shape, _slices, "gpt_neox.", BUFFERS, _config, ("embed_out.weight", "lm_head.weight"))
