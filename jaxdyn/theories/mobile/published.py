"""Sizes of the MobileLLM models, as published.

Source: arXiv:2402.14905, table of architectures; counts of weights in millions from the released models' cards (2024), which round
them to 0.1 million (the largest two to 10 million).
"""

from __future__ import annotations

from typing import NamedTuple

VOCABULARY, CONTEXT = 32_000, 2048


class Model(NamedTuple):
    """Shape of a model, its published weights in millions and what these are rounded to."""

    layers: int
    heads: int
    groups: int
    width: int
    hidden: int
    millions: float
    rounding: float


MODELS = {
    "125M": Model(30, 9, 3, 576, 1536, 124.6, 0.1),
    "350M": Model(32, 15, 5, 960, 2560, 345.3, 0.1),
    "600M": Model(40, 18, 6, 1152, 3072, 603.1, 0.1),
    "1B": Model(54, 20, 5, 1280, 3584, 1010.0, 10.0),
    "1.5B": Model(54, 25, 5, 1600, 4352, 1510.0, 10.0),
}
