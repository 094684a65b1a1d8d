"""OPT: LayerNorms, learned positions, a plain MLP with ReLU, biases everywhere, the read-out tied to the embedding.

The table of positions begins with two rows that no token of a text without padding reads; they are left out here. Source:
arXiv:2205.01068; names of fields and tensors are those of the library transformers.
"""

from __future__ import annotations

from jaxdyn.models.config import Config
from jaxdyn.models.families.family import ACTIVATIONS, Family, linear, make, norm
from jaxdyn.models.tensor_slice import TensorSlice
from jaxdyn.nn import Transformer

__all__ = ["OPT"]

LAYER = "model.decoder.layers.{i}."
OFFSET = 2  # rows of the table before that of position 0


def _shape(config: Config, dtype: str) -> Transformer:
    width = config.whole("hidden_size")
    config.fixed(do_layer_norm_before=True, layer_norm_elementwise_affine=True, _remove_final_layer_norm=False, enable_bias=True)
    if config.get("word_embed_proj_dim", None) is not None:
        config.fixed(word_embed_proj_dim=width)
    fields = {
        "vocabulary": config.whole("vocab_size"),
        "width": width,
        "layers": config.whole("num_hidden_layers"),
        "heads": config.whole("num_attention_heads"),
        "hidden": config.whole("ffn_dim"),
        "norm": "layer",
        "mlp": "plain",
        "activation": config.choice("activation_function", ACTIVATIONS, "relu"),
        "biases": ("q", "k", "v", "o", "up", "down"),
        "position": "learned",
        "length": config.whole("max_position_embeddings"),
        "epsilon": 1e-5,
        "tied": config.flag("tie_word_embeddings", True),
        "dtype": dtype,
    }
    return make(config, fields)


def _slices(shape: Transformer) -> dict[str, TensorSlice]:
    table, places = (shape.vocabulary, shape.width), (shape.length + OFFSET, shape.width)
    slices = {"embed": TensorSlice("model.decoder.embed_tokens.weight", table)} | norm(
        shape, "norm", "model.decoder.final_layer_norm"
    )
    slices["position"] = TensorSlice("model.decoder.embed_positions.weight", places, part=(slice(OFFSET, None),))
    for ours in ("q", "k", "v"):
        slices |= linear(shape, ours, f"{LAYER}self_attn.{ours}_proj")
    slices |= (
        linear(shape, "o", f"{LAYER}self_attn.out_proj") | linear(shape, "up", f"{LAYER}fc1") | linear(shape, "down", f"{LAYER}fc2")
    )
    slices |= norm(shape, "blocks/attention_norm", f"{LAYER}self_attn_layer_norm")
    slices |= norm(shape, "blocks/mlp_norm", f"{LAYER}final_layer_norm")
    return slices if shape.tied else slices | {"head": TensorSlice("lm_head.weight", table)}


OPT = Family("opt", _shape, _slices, "model.")
