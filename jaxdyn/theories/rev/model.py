r"""One-layer transformer on sequences of three tokens, x1 x2 x3, in its (Y, Z) parametrisation, trained by batch-1 SGD.

.. math:: p(\cdot \mid x_1, x_2) = \mathrm{softmax}\bigl(Y^\top f\bigr), \qquad f = c/\|c\|_2, \qquad c_l \propto e^{z_{x_2 l}}

The query is x2. Its keys are x1 alone (the model of the theorems: attention is 1 on x1, f its one-hot vector), or x1 and x2.
Source: arXiv:2405.04669, section 4, on the network of arXiv:2305.16380 (``theories/snap/model.py``, whose attention and
normalisation are used here). Letters: M tokens. A step reads and writes the rows of Y that its two keys choose: the gradient of
all other rows is zero, so that a step costs O(M) and not O(M^2).
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jaxdyn import train
from jaxdyn.theories.snap.model import Params, attend, normalized

Token = int | Int[Array, ""]


class Active(NamedTuple):
    """The parameters that one sequence reads: rows of the decoder and attention logits of its keys x1, x2."""

    rows: Float[Array, "2 M"]
    z: Float[Array, "2"]


def start(vocabulary: int, dtype: str = "float64") -> Params:
    """Y = Z = 0; Z has a row for every token as a query."""
    return Params(jnp.zeros((vocabulary, vocabulary), dtype), jnp.zeros((vocabulary, vocabulary), dtype))


def read(params: Params, sequence: Int[Array, "3"], tied: bool = False) -> Active:
    """The parameters that the sequence reads; with ``tied`` the decoder is the symmetric Y + Y^T."""
    keys = sequence[:2]
    rows = params.y[keys] + params.y[:, keys].T if tied else params.y[keys]  # columns of a large matrix are slow to read
    return Active(rows, params.z[sequence[1], keys])


def log_probabilities(active: Active, present: Float[Array, "2"]) -> Float[Array, " M"]:
    """Log-probabilities of x3; ``present`` is 1 for tokens among the keys: (1, 0) for x1 alone, (1, 1) for both."""
    return jax.nn.log_softmax(normalized(attend(active.z, present)) @ active.rows)


def loss(active: Active, present: Float[Array, "2"], label: Token) -> Float[Array, ""]:
    """Cross-entropy of one sequence."""
    return -log_probabilities(active, present)[label]


def sgd_step(
    params: Params,
    sequence: Int[Array, "3"],
    present: Float[Array, "2"],
    eta: Float[Array, ""],
    eta_z: Float[Array, ""],
    tied: bool = False,
) -> Params:
    """One step of gradient descent on one sequence, with a rate for each of Y and Z."""
    g = jax.grad(loss)(read(params, sequence, tied), present, sequence[2])
    keys = sequence[:2]
    y = params.y.at[keys].add(-eta * g.rows)
    if tied:
        y = y.at[:, keys].add(-eta * g.rows.T)
    return train.learned(params, Params(y, params.z.at[sequence[1], keys].add(-eta_z * g.z)))
