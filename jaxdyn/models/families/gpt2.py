"""GPT-2: LayerNorms, learned positions, a plain MLP, biases everywhere, the read-out tied to the embedding.

Matrices are (input, output), queries, keys and values next to one another. Source: Radford et al. 2019, section 2.3; names of
fields and tensors are those of the library transformers.
"""

from __future__ import annotations

from jaxdyn.models.config import Config
from jaxdyn.models.families.family import ACTIVATIONS, Family, make, norm
from jaxdyn.models.tensor_slice import TensorSlice
from jaxdyn.nn import Transformer

__all__ = ["GPT2"]

LAYER = "transformer.h.{i}."


def _shape(config: Config, dtype: str) -> Transformer:
    config.fixed(scale_attn_weights=True, scale_attn_by_inverse_layer_idx=False, add_cross_attention=False)
    width, layers, heads, length = (config.whole(name) for name in ("n_embd", "n_layer", "n_head", "n_positions"))
    config.fixed(hidden_size=width, num_hidden_layers=layers, num_attention_heads=heads, max_position_embeddings=length)
    fields = {
        "vocabulary": config.whole("vocab_size"),
        "width": width,
        "layers": layers,
        "heads": heads,
        "hidden": config.whole("n_inner", None) or 4 * (width or 0),
        "norm": "layer",
        "mlp": "plain",
        "activation": config.choice("activation_function", ACTIVATIONS, "gelu_new"),
        "biases": ("q", "k", "v", "o", "up", "down"),
        "position": "learned",
        "length": length,
        "epsilon": config.number("layer_norm_epsilon", 1e-5),
        "tied": config.flag("tie_word_embeddings", True),
        "dtype": dtype,
    }
    return make(config, fields)


def _matrix(shape: Transformer, ours: str, name: str) -> dict[str, TensorSlice]:
    rows, columns = shape.weights[ours]
    return {
        f"blocks/{ours}": TensorSlice(f"{name}.weight", (rows, columns)),
        f"blocks/{ours}_bias": TensorSlice(f"{name}.bias", (columns,)),
    }


def _slices(shape: Transformer) -> dict[str, TensorSlice]:
    d, table = shape.width, (shape.vocabulary, shape.width)
    slices = {
        "embed": TensorSlice("transformer.wte.weight", table),
        "position": TensorSlice("transformer.wpe.weight", (shape.length, d)),
    }
    slices |= norm(shape, "norm", "transformer.ln_f")
    for number, ours in enumerate(("q", "k", "v")):
        slices[f"blocks/{ours}"] = TensorSlice(f"{LAYER}attn.c_attn.weight", (d, 3 * d), (d, 3, d), (slice(None), number))
        slices[f"blocks/{ours}_bias"] = TensorSlice(f"{LAYER}attn.c_attn.bias", (3 * d,), (3, d), (number,))
    slices |= _matrix(shape, "o", f"{LAYER}attn.c_proj")
    slices |= _matrix(shape, "up", f"{LAYER}mlp.c_fc") | _matrix(shape, "down", f"{LAYER}mlp.c_proj")
    slices |= norm(shape, "blocks/attention_norm", f"{LAYER}ln_1") | norm(shape, "blocks/mlp_norm", f"{LAYER}ln_2")
    return slices if shape.tied else slices | {"head": TensorSlice("lm_head.weight", table)}


GPT2 = Family("gpt2", _shape, _slices, "transformer.", (r"(transformer\.)?h\.\d+\.attn\.(bias|masked_bias)",))
