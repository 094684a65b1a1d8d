r"""Muon as the code of Li2 runs it: momentum, orthogonalised; decay apart from the gradient.

.. math:: B_{t+1} = \beta B_t + (1 - \beta) G_t, \qquad W_{t+1} = (1 - \gamma\lambda) W_t - \gamma\, O(B_{t+1})

with rate gamma and decay lambda. O is the polar factor, or the authors' five quintic steps towards it. There is no Nesterov step,
no correction of the momentum's start and no scaling by the matrix's sides, which is where optax's Muon differs.
Source: K. Jordan 2024; arXiv:2509.21519 and its code.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PyTree

from jaxdyn import linalg

__all__ = ["NEWTON_SCHULZ", "Orthogonal", "muon", "newton_schulz", "polar"]

NEWTON_SCHULZ = ((4.01, -9.22, 5.80), (3.49, -6.38, 3.23), (3.34, -6.21, 3.20), (3.64, -7.48, 4.43), (3.46, -5.35, 2.85))
Orthogonal = Literal["newton_schulz", "polar"]


def polar(g: Float[Array, "r c"]) -> Float[Array, "r c"]:
    r"""The polar factor :math:`UV^\top` of :math:`G = U \Sigma V^\top`: what Muon aims at.

    :math:`\langle UV^\top, G \rangle = \sum_i \sigma_i`, the nuclear norm (Lemma 2): the step never points uphill.
    """
    u, _, vt = linalg.svd(g)
    return u @ vt


def newton_schulz(g: Float[Array, "r c"]) -> Float[Array, "r c"]:
    r"""The authors' five quintic steps, :math:`X \leftarrow aX + (bA + cA^2)X` with :math:`A = XX^\top`, from :math:`G / \|G\|_F`.

    Not the polar factor: singular values end between 0.6 and 1.2, those far below the norm lower. Source: the paper's code.
    The products are those of the shorter side: :math:`(XX^\top)X = X(X^\top X)`.
    """
    x = g / (jnp.linalg.norm(g) + 1e-7)
    tall = g.shape[0] > g.shape[1]
    x = x.T if tall else x
    for a, b, c in NEWTON_SCHULZ:
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.T if tall else x


class State(NamedTuple):
    """The momentum."""

    momentum: PyTree


def muon(
    lr: Float[Array, ""], decay: Float[Array, ""] | float = 0.0, beta: float = 0.99, orthogonal: Orthogonal = "newton_schulz"
) -> optax.GradientTransformation:
    """The transformation, for matrices; its updates are to be added."""
    turn = {"newton_schulz": newton_schulz, "polar": polar}[orthogonal]

    def start(params: PyTree) -> State:
        return State(jax.tree.map(jnp.zeros_like, params))

    def update(gradient: PyTree, state: State, params: PyTree) -> tuple[PyTree, State]:
        momentum = jax.tree.map(lambda m, g: beta * m + (1 - beta) * g, state.momentum, gradient)
        updates = jax.tree.map(lambda m, w: (-lr * (turn(m) + decay * w)).astype(w.dtype), momentum, params)
        return updates, State(momentum)

    return optax.GradientTransformation(start, update)
