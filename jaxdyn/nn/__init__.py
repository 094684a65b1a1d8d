"""Networks as pure functions: the attention family, transformers behind ``(init, apply)``, and what one can observe of them.

Decoding with a cache, and generating text, is :mod:`jaxdyn.nn.cache`.
"""

from jaxdyn.nn import cache
from jaxdyn.nn.attention import KINDS, alibi, attend, causal_mask, rotate, weights
from jaxdyn.nn.config import Shape
from jaxdyn.nn.decoder import LLAMA, Decoder, decoder, llama
from jaxdyn.nn.observe import mean_cosine, unit_gram_error
from jaxdyn.nn.presets import encoder_lm, gpt2, tree_network
from jaxdyn.nn.transformer import OBSERVABLES, Network, count, network, read_out

__all__ = [
    "KINDS",
    "LLAMA",
    "OBSERVABLES",
    "Decoder",
    "Network",
    "Shape",
    "alibi",
    "attend",
    "cache",
    "causal_mask",
    "count",
    "decoder",
    "encoder_lm",
    "gpt2",
    "llama",
    "mean_cosine",
    "network",
    "read_out",
    "rotate",
    "tree_network",
    "unit_gram_error",
    "weights",
]
