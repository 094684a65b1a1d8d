r"""Figure 7 in numbers: how sharp a language model's attention is on real text, and how much it still moves.

For an attention map :math:`A_{ij}` of n positions, :math:`j \le i`:

.. math:: h = \frac{1}{n-1} \sum_{i=2}^n \frac{-\sum_j A_{ij} \ln A_{ij}}{\ln i}, \qquad
   \text{top}_3 = \frac{1}{n-3} \sum_{i=4}^n \sum_{\text{three largest}} A_{ij}, \qquad
   m(t, t') = \frac1n \sum_{ij} |A_{ij}(t') - A_{ij}(t)|

h is 1 for uniform attention. Source: the paper (arXiv:2305.16380) shows pictures only; these numbers and the marks below are ours.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PyTree

from jaxdyn import metrics, text
from jaxdyn.nn import Network
from jaxdyn.text.training_run import TrainingRun

CHUNK = 100  # the 101st window of the training text is shown
MARKS = {"entropy ratio": 0.8, "movement ratio": 0.5}  # sparse: below the first; snapped: below the second
DROPOUT = {1: 0.3, 3: 0.2}  # by the number of layers
STEPS = 1500


def setting(base: TrainingRun, layers: int, **fields: Any) -> TrainingRun:
    """A run as published: gradient descent at rate 5, 10 in the lowest MLP, and the dropout of this depth."""
    published: dict[str, Any] = {"optimizer": "sgd", "lr": 5.0, "lowest_mlp": 2.0, "restart": False, "steps": STEPS, "every": 500}
    return dataclasses.replace(base, layers=layers, dropout=DROPOUT.get(layers, 0.2), **published | fields)


def columns_shown(s: TrainingRun) -> Int[np.ndarray, "b total"]:
    """The training text in its own order, also for a run that reads it shuffled."""
    return text.columns(s.corpus().train, s.columns)


def attention_map(net: Network, params: PyTree, columns: Int[Array, "b total"], length: int) -> Float[Array, "b n n"]:
    """Attention of the lowest layer's first head on the shown window, dropout off."""
    chunk = min(CHUNK, text.windows_in(columns, length) - 1)
    inputs, _ = text.window(columns, chunk, length)
    return net.trunk(params, inputs, observe=("attention",))[1]["attention"][0, :, 0]


def entropy_share(a: Float[Array, "*b n n"]) -> Float[Array, " *b"]:
    """Entropy h of the queries, as a share of a uniform query's."""
    positions = np.arange(2, a.shape[-1] + 1)
    return jnp.mean(metrics.entropy(a)[..., 1:] / np.log(positions).astype(a.dtype), -1)


def top_three(a: Float[Array, "*b n n"]) -> Float[Array, " *b"]:
    """Mass on a query's three largest entries; only queries with more than three keys count."""
    return jnp.mean(jnp.sum(jax.lax.top_k(a[..., 3:, :], 3)[0], -1), -1)


def movement(a: Float[Array, "*b n n"], b: Float[Array, "*b n n"]) -> Float[Array, " *b"]:
    """Mean over queries of the summed absolute change; at most 2."""
    return jnp.mean(jnp.sum(jnp.abs(b - a), -1), -1)
