"""One transformer as pure functions, with every variant as a field, and what one can observe of it.

Decoding with a cache, and generating text, is :mod:`jaxdyn.nn.cache`.
"""

from jaxdyn.nn import cache
from jaxdyn.nn.attention import KINDS, alibi, attend, causal_mask, rotate, weights
from jaxdyn.nn.config import Transformer
from jaxdyn.nn.ntk import empirical_ntk, kernel_alignment, target_alignment
from jaxdyn.nn.observe import mean_cosine, unit_gram_error
from jaxdyn.nn.pointwise import ACTIVATIONS
from jaxdyn.nn.presets import LLAMA, encoder_lm, gpt2, llama, tree_network
from jaxdyn.nn.transformer import OBSERVABLES, Network, count, network, read_out

__all__ = [
    "ACTIVATIONS",
    "KINDS",
    "LLAMA",
    "OBSERVABLES",
    "Network",
    "Transformer",
    "alibi",
    "attend",
    "cache",
    "causal_mask",
    "count",
    "empirical_ntk",
    "encoder_lm",
    "gpt2",
    "kernel_alignment",
    "llama",
    "mean_cosine",
    "network",
    "read_out",
    "rotate",
    "target_alignment",
    "tree_network",
    "unit_gram_error",
    "weights",
]
