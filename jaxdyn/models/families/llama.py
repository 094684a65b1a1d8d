"""LLaMA 1 to 3 (SmolLM among them), MobileLLM, Mistral and Qwen2: gated MLP, RMS norms, rotary positions.

MobileLLM may use each block twice in a row; Mistral has a window and heads of any size; Qwen2 has biases of q, k and v.
Source: arXiv:2302.13971, arXiv:2407.21783, arXiv:2402.14905, arXiv:2310.06825, arXiv:2407.10671; names of fields and tensors are
those of the library transformers, and of MobileLLM's released code and config.json.
"""

from __future__ import annotations

from typing import Any

from jaxdyn.models import rope_fields
from jaxdyn.models.config import Config
from jaxdyn.models.families.family import ACTIVATIONS, Family, layer_kind, linear, make, norm
from jaxdyn.models.tensor_slice import TensorSlice
from jaxdyn.nn import Transformer

__all__ = ["LLAMA", "MISTRAL", "MOBILELLM", "QWEN2"]

MATRICES = {
    "q": "self_attn.q_proj",
    "k": "self_attn.k_proj",
    "v": "self_attn.v_proj",
    "o": "self_attn.o_proj",
    "gate": "mlp.gate_proj",
    "up": "mlp.up_proj",
    "down": "mlp.down_proj",
}
FULL, SLIDING = "full_attention", "sliding_attention"
BUFFERS = (r"(model\.)?layers\.\d+\.self_attn\.rotary_emb\.inv_freq", r"(model\.)?rotary_emb\.inv_freq")


def _fields(config: Config, dtype: str, *, context: int, groups: int | None = None) -> dict[str, Any]:
    """What all of them share; ``context`` and ``groups`` are the family's own where the file has none."""
    rope = rope_fields.read(config, context=context)
    if rope.share != 1:
        config.refuse("partial_rotary_factor", rope.share, "all entries of a head are turned")
    width, heads = config.whole("hidden_size") or 0, config.whole("num_attention_heads") or 1
    head = config.whole("head_dim", None) or width // heads
    return {
        "vocabulary": config.whole("vocab_size"),
        "width": width,
        "layers": config.whole("num_hidden_layers"),
        "heads": heads,
        "groups": config.whole("num_key_value_heads", groups) or heads,
        "hidden": config.whole("intermediate_size"),
        "head_size": None if head * heads == width else head,
        "activation": config.choice("hidden_act", ACTIVATIONS, "silu"),
        "epsilon": config.number("rms_norm_eps", 1e-6),
        "tied": config.flag("tie_word_embeddings", False),
        "base": rope.base,
        "scaling": rope.scaling,
        "dtype": dtype,
    }


def _biases(config: Config) -> tuple[str, ...]:
    attention = ("q", "k", "v", "o") if config.flag("attention_bias", False) else ()
    return attention + (("gate", "up", "down") if config.flag("mlp_bias", False) else ())


def _llama(config: Config, dtype: str) -> Transformer:
    """LLaMA and MobileLLM, whose released training code calls itself LLaMA, too, and adds the first two fields."""
    repeats = 2 if config.flag("layer_sharing", False) else 1
    tied = config.flag("share_embedding", config.flag("tie_word_embeddings", False))
    fields = _fields(config, dtype, context=2048)
    if fields["width"] % fields["heads"]:  # refused by transformers, whatever the size of heads
        fields["head_size"] = None
    _window(config, fields["layers"], None, FULL)
    return make(config, fields | {"biases": _biases(config), "repeats": repeats, "tied": tied})


def _mistral(config: Config, dtype: str) -> Transformer:
    """Mistral; with kinds of layers, transformers reads it as Ministral, which has no size of heads by default."""
    fields, size = _fields(config, dtype, context=131_072, groups=8), _size(config)
    if config.get("layer_types", None) is not None:
        config.whole("head_dim")
    return make(config, fields | {"window": _window(config, fields["layers"], size, FULL if size is None else SLIDING)})


def _qwen2(config: Config, dtype: str) -> Transformer:
    if config.values.get("head_dim", 1) is None:
        config.refuse("head_dim", None, "head_dim is a whole number, at least 1")
    fields = _fields(config, dtype, context=32_768, groups=None if "num_key_value_heads" in config.values else 32)
    layers, first = fields["layers"], config.whole("max_window_layers", 28, least=0) or 0
    size = _size(config) if config.flag("use_sliding_window", False) else None
    if size is not None and config.get("layer_types", None) is None and 0 < first < layers:
        config.refuse("use_sliding_window", True, "all layers have the same window, and in this model some have none")
    window = _window(config, layers, size, SLIDING if size is not None and first == 0 else FULL)
    return make(config, fields | {"biases": ("q", "k", "v"), "window": window})


def _size(config: Config) -> int | None:
    """The size of windows; a file without the field means that of Mistral and Qwen2."""
    return config.whole("sliding_window", None) if "sliding_window" in config.values else 4096


def _window(config: Config, layers: int, size: int | None, kind: str) -> int | None:
    """The window of all layers, whose kind is this one where the file names none."""
    if layer_kind(config, layers, kind) == FULL:
        return None
    if size is None:
        config.refuse("layer_types", config.get("layer_types"), f"without sliding windows each is {FULL}")
    return size


def _slices(shape: Transformer) -> dict[str, TensorSlice]:
    table, layer = (shape.vocabulary, shape.width), "model.layers.{i}."
    slices = {"embed": TensorSlice("model.embed_tokens.weight", table)} | norm(shape, "norm", "model.norm")
    for ours, name in MATRICES.items():
        slices |= linear(shape, ours, layer + name)
    slices |= norm(shape, "blocks/attention_norm", f"{layer}input_layernorm")
    slices |= norm(shape, "blocks/mlp_norm", f"{layer}post_attention_layernorm")
    return slices if shape.tied else slices | {"head": TensorSlice("lm_head.weight", table)}


def _config(shape: Transformer) -> dict[str, Any]:
    """The config.json that all of them share."""
    return {
        "vocab_size": shape.vocabulary,
        "hidden_size": shape.width,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.key_heads,
        "head_dim": shape.entries,
        "intermediate_size": shape.hidden,
        "hidden_act": {"gelu_tanh": "gelu_pytorch_tanh"}.get(shape.activation, shape.activation),
        "rms_norm_eps": shape.epsilon,
        "tie_word_embeddings": shape.tied,
        "initializer_range": shape.std,
    } | rope_fields.written(shape)


def _llama_config(shape: Transformer) -> dict[str, Any]:
    biases = {"attention_bias": "q" in shape.biases, "mlp_bias": "up" in shape.biases}
    return {"architectures": ["LlamaForCausalLM"]} | _config(shape) | biases


def _mistral_config(shape: Transformer) -> dict[str, Any]:
    return {"architectures": ["MistralForCausalLM"], "sliding_window": shape.window} | _config(shape)


def _qwen2_config(shape: Transformer) -> dict[str, Any]:
    window = {"use_sliding_window": shape.window is not None, "sliding_window": shape.window, "max_window_layers": 0}
    return {"architectures": ["Qwen2ForCausalLM"]} | _config(shape) | window


LLAMA = Family("llama", _llama, _slices, "model.", BUFFERS, _llama_config)
MOBILELLM = Family("mobilellm", _llama, _slices, "model.", BUFFERS)
MISTRAL = Family("mistral", _mistral, _slices, "model.", BUFFERS, _mistral_config)
QWEN2 = Family("qwen2", _qwen2, _slices, "model.", BUFFERS, _qwen2_config)
