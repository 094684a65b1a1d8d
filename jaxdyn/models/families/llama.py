"""LLaMA 1 to 3 (SmolLM among them), MobileLLM, Mistral and Qwen2: gated MLP, RMS norms, rotary positions.

MobileLLM may use each block twice in a row; Mistral has a window and heads of any size; Qwen2 has biases of q, k and v.
Source: arXiv:2302.13971, arXiv:2407.21783, arXiv:2402.14905, arXiv:2310.06825, arXiv:2407.10671; names of fields and tensors are
those of the library transformers, and of MobileLLM's released code and config.json.
"""

from __future__ import annotations

from typing import Any

from jaxdyn.models.config import Config
from jaxdyn.models.families.family import ACTIVATIONS, Family, linear, make, norm
from jaxdyn.models.tensor_slice import TensorSlice
from jaxdyn.nn.decoder import Decoder

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
BUFFERS = (r"(model\.)?layers\.\d+\.self_attn\.rotary_emb\.inv_freq", r"(model\.)?rotary_emb\.inv_freq")


def _fields(config: Config, dtype: str) -> dict[str, Any]:
    """What all of them share."""
    base, scaling = config.rope()
    width, heads, head = config.whole("hidden_size") or 0, config.whole("num_attention_heads") or 1, config.whole("head_dim", None)
    return {
        "vocabulary": config.whole("vocab_size"),
        "width": width,
        "layers": config.whole("num_hidden_layers"),
        "heads": heads,
        "groups": config.whole("num_key_value_heads", heads),
        "hidden": config.whole("intermediate_size"),
        "head_size": None if head is None or head * heads == width else head,
        "activation": config.choice("hidden_act", ACTIVATIONS, "silu"),
        "epsilon": config.number("rms_norm_eps", 1e-6),
        "tied": config.flag("tie_word_embeddings", False),
        "base": base,
        "scaling": scaling,
        "dtype": dtype,
    }


def _biases(config: Config) -> tuple[str, ...]:
    attention = ("q", "k", "v", "o") if config.flag("attention_bias", False) else ()
    return attention + (("gate", "up", "down") if config.flag("mlp_bias", False) else ())


def _llama(config: Config, dtype: str) -> Decoder:
    """LLaMA and MobileLLM, whose released training code calls itself LLaMA, too, and adds the first two fields."""
    repeats = 2 if config.flag("layer_sharing", False) else 1
    tied = config.flag("share_embedding", config.flag("tie_word_embeddings", False))
    return make(config, _fields(config, dtype) | {"biases": _biases(config), "repeats": repeats, "tied": tied})


def _mistral(config: Config, dtype: str) -> Decoder:
    return make(config, _fields(config, dtype) | {"window": config.whole("sliding_window", None)})


def _qwen2(config: Config, dtype: str) -> Decoder:
    return make(config, _fields(config, dtype) | {"biases": ("q", "k", "v"), "window": _qwen2_window(config)})


def _qwen2_window(config: Config) -> int | None:
    """The window, which must be that of all layers."""
    if not config.flag("use_sliding_window", False):
        return None
    layers, full = config.whole("num_hidden_layers") or 0, config.get("max_window_layers", 28)
    kinds = config.get("layer_types", None) or ["sliding_attention" if i >= full else "full_attention" for i in range(layers)]
    if len(set(kinds)) > 1:
        config.refuse("use_sliding_window", True, "all layers have the same window, and in this model some have none")
    return config.whole("sliding_window", None) if kinds[0] == "sliding_attention" else None


def _slices(shape: Decoder) -> dict[str, TensorSlice]:
    table, layer = (shape.vocabulary, shape.width), "model.layers.{i}."
    slices = {"embed": TensorSlice("model.embed_tokens.weight", table)} | norm(shape, "norm", "model.norm")
    for ours, name in MATRICES.items():
        slices |= linear(shape, ours, layer + name)
    slices |= norm(shape, "blocks/attention_norm", f"{layer}input_layernorm")
    slices |= norm(shape, "blocks/mlp_norm", f"{layer}post_attention_layernorm")
    return slices if shape.tied else slices | {"head": TensorSlice("lm_head.weight", table)}


def _rope(shape: Decoder) -> dict[str, Any]:
    """The rotary positions in the words of config.json, of old and new versions of transformers."""
    fields: dict[str, Any] = {"rope_type": "default"}
    if (s := shape.scaling) is not None:
        fields = {"rope_type": s.kind, "factor": s.factor}
    if s is not None and s.kind == "llama3":
        fields |= {"low_freq_factor": s.low, "high_freq_factor": s.high, "original_max_position_embeddings": s.length}
    old = {} if s is None else {"rope_scaling": fields}
    return {"rope_theta": shape.base, "rope_parameters": fields | {"rope_theta": shape.base}} | old


def _config(shape: Decoder) -> dict[str, Any]:
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
    } | _rope(shape)


def _llama_config(shape: Decoder) -> dict[str, Any]:
    biases = {"attention_bias": "q" in shape.biases, "mlp_bias": "up" in shape.biases}
    return {"architectures": ["LlamaForCausalLM"]} | _config(shape) | biases


def _mistral_config(shape: Decoder) -> dict[str, Any]:
    return {"architectures": ["MistralForCausalLM"], "sliding_window": shape.window} | _config(shape)


def _qwen2_config(shape: Decoder) -> dict[str, Any]:
    window = {"use_sliding_window": shape.window is not None, "sliding_window": shape.window, "max_window_layers": 0}
    return {"architectures": ["Qwen2ForCausalLM"]} | _config(shape) | window


LLAMA = Family("llama", _llama, _slices, "model.", BUFFERS, _llama_config)
MOBILELLM = Family("mobilellm", _llama, _slices, "model.", BUFFERS)
MISTRAL = Family("mistral", _mistral, _slices, "model.", BUFFERS, _mistral_config)
QWEN2 = Family("qwen2", _qwen2, _slices, "model.", BUFFERS, _qwen2_config)
