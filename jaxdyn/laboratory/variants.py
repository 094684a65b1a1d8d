"""Variants of the plain block, by name: those that differ from it in one field, and three recipes of whole networks.

Other optimizers than descent come with a rate of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["PLAIN", "RECIPES", "VARIANTS", "fields_of"]

PLAIN = "plain"
ONE_FIELD: dict[str, dict[str, Any]] = {  # what differs from the plain block
    "learned positions": {"position": "learned"},
    "rotary positions": {"position": "rotary"},
    "RMS norm": {"norm": "rms"},
    "four heads": {"heads": 4},
    "linear attention": {"attention": "linear"},
    "sigmoid attention": {"attention": "sigmoid"},
    "zero sink": {"attention": "zero_sink"},
    "norm of queries and keys": {"query_key_norm": True},
    "gated MLP": {"mlp": "gated"},
    "linear MLP": {"activation": "linear"},
    "Adam": {"optimizer": "adam", "lr": 0.003},
    "Muon": {"optimizer": "muon", "lr": 0.01},
}
ADAMW = {"optimizer": "adamw", "lr": 0.003, "weight_decay": 0.01}
RECIPES: dict[str, dict[str, Any]] = {
    "GPT-2": {"norm": "layer", "position": "learned", "heads": 4, "activation": "gelu_tanh", "tied": True} | ADAMW,
    "LLaMA": {"norm": "rms", "position": "rotary", "heads": 4, "mlp": "gated", "activation": "silu"} | ADAMW,
    "gated, QK norm, Muon": {
        "norm": "rms",
        "position": "rotary",
        "heads": 4,
        "mlp": "gated",
        "activation": "silu",
        "output_gate": True,
        "query_key_norm": True,
        "optimizer": "muon",
        "lr": 0.01,
    },
}
VARIANTS: Mapping[str, dict[str, Any]] = {PLAIN: {}} | ONE_FIELD | RECIPES


def fields_of(name: str) -> dict[str, Any]:
    """The fields in which a variant differs from the plain block."""
    return VARIANTS[name]
