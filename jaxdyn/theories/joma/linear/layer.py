r"""The one-layer network of JoMA under fixed upper gradients: (z, V) with attention, trained by its own gradient.

.. math:: h_{ik} = \phi(V_k \cdot b(x_i; z)), \qquad L = -\tfrac1n \sum_{ik} g_{ik}\, h_{ik}

The upper layers enter through g alone, which is constant: the stationarity that Theorem 2 assumes. ``pull`` breaks it:
then g decreases as V grows, so that E[g x] = Δ - κV, the dynamics near a critical point (Theorem 4). Source: arXiv:2310.00535,
section 2 with orthonormal embeddings, so that V = U_C^T W is trained itself. Letters: m tokens, k nodes, n samples, A constant.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int

import jaxdyn as jd
from jaxdyn import linalg, train

KINDS = ("exp", "linear", "softmax", "shared", "none")
PHIS = ("id", "tanh")
Scalar = float | Float[Array, ""]


class Params(NamedTuple):
    """What is trained: attention logits and projected weights."""

    z: Float[Array, " m"]
    v: Float[Array, "m k"]


class Layer(NamedTuple):
    """What is fixed: data, upper gradients, the kind of attention, b̄ of ``shared``, the activation, the constant A, P."""

    x: Float[Array, "n m"]
    g: Float[Array, "n k"]
    kind: jd.Code
    mean_attention: Float[Array, " m"]
    phi: jd.Code = jd.Code.of("id", PHIS)
    normalizer: Scalar = 1.0
    pull: Float[Array, "n m"] | None = None


def attended(z: Float[Array, " m"], layer: Layer) -> Float[Array, "n m"]:
    r"""Attended frequencies b of every sample; ``kind`` is a switch between ``KINDS``.

    .. math:: b_l = x_l e^{z_l}/A \ (\text{exp}), \quad x_l z_l \ (\text{linear}), \quad
              x_l e^{z_l}/\textstyle\sum_j x_j e^{z_j} \ (\text{softmax}), \quad
              x_l e^{z_l}/\textstyle\sum_j \mathbb E[x_j] e^{z_j} \ (\text{shared}), \quad x_l/A \ (\text{none})

    The normaliser of ``shared`` is differentiated as if the gradient of its logarithm were the constant b̄: then the assumptions
    of the softmax law hold by construction.
    """
    kind = layer.kind
    weight = jnp.where(kind == "linear", z, jnp.exp(jnp.where(kind == "none", 0.0, z)))
    each, common = layer.x @ weight, jnp.mean(layer.x, 0) @ weight
    shared = jax.lax.stop_gradient(common) * jnp.exp(layer.mean_attention @ (z - jax.lax.stop_gradient(z)))
    constant = jnp.where(kind == "linear", 1.0, jnp.where(kind == "shared", shared, layer.normalizer))
    return layer.x * weight / jnp.where(kind == "softmax", each, constant)[:, None]


def loss(params: Params, layer: Layer) -> Float[Array, ""]:
    r"""Minus the mean of :math:`\sum_k g_k h_k`; with ``pull`` P the gradient at h is g - P V."""
    pre = attended(params.z, layer) @ params.v
    h = jnp.where(layer.phi == "tanh", jnp.tanh(pre), pre)
    g = layer.g if layer.pull is None else layer.g - jax.lax.stop_gradient(layer.pull @ params.v)
    return -jnp.mean(jnp.sum(g * h, -1))


def pull(x: Float[Array, "n m"], feedback: Scalar) -> Float[Array, "n m"]:
    r"""P = κ x E[xxᵀ]⁻¹, for which E[(P V) x] = κV (needs at least as many samples as tokens)."""
    return feedback * linalg.solve(x.T @ x / x.shape[0], x.T).T


def saliency(layer: Layer) -> Float[Array, "m k"]:
    r"""Δ_lk = E[g_k x_l]."""
    return layer.x.T @ layer.g / layer.x.shape[0]


def rates(ratio: Scalar) -> Params:
    """Learning rates of z and V, as multiples of V's."""
    return Params._make((ratio, 1.0))


def trained(params: Params, layer: Layer, *, lr: Scalar, ratio: Scalar, samples: int, every: int | Int[Array, ""]) -> Params:
    """Gradient descent in z and V; the parameters after 0, every, ..., samples * every steps (a leading axis)."""
    tx = optax.stateless(lambda g, _: jax.tree.map(lambda r, u: -lr * r * u, rates(ratio), g))
    step = train.make_step(loss, tx)
    start = train.init(tx, params)
    return train.record(lambda s: step(s, layer), start, lambda s: s.params, samples=samples, every=every)[1]
