"""Decoding with a cache of fixed size: what is kept, token by token, and what the same policy gives for a whole text at once."""

from jaxdyn.nn.cache.decode import decode, losses, step
from jaxdyn.nn.cache.full_text import global_scores, prefill, recompute
from jaxdyn.nn.cache.generate import generate
from jaxdyn.nn.cache.policy import KINDS, Policy, victim
from jaxdyn.nn.cache.state import Bytes, Layer, Owner, State, attend, bytes_held, start

__all__ = [
    "KINDS",
    "Bytes",
    "Layer",
    "Owner",
    "Policy",
    "State",
    "attend",
    "bytes_held",
    "decode",
    "generate",
    "global_scores",
    "losses",
    "prefill",
    "recompute",
    "start",
    "step",
    "victim",
]
