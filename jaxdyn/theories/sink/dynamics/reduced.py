r"""The reduced flow of one idle query: the margin of the sink's score and the size of the sink's value.

The rest of the network predicts the next token's distribution :math:`\pi` already, and what the head adds to the logits only
disturbs it. With the margin :math:`\Delta` over n other keys of equal scores, the sink gets the weight
:math:`p = e^\Delta / (e^\Delta + n)` and writes :math:`\beta \xi` into the logits; what the others write, :math:`\nu`, differs from
query to query. The loss is the mean cross-entropy over queries k,

.. math:: L(\Delta, \beta) = -\frac1K \sum_k \sum_y \pi_y \ln \text{softmax}_y(\ln \pi + p \beta \xi + (1 - p) \nu_k), \qquad
   \dot\Delta = -\partial_\Delta L, \quad \dot\beta = -r\, \partial_\beta L.

Late law (derived). At :math:`\ln\pi` the loss is least, so that small disturbances cost
:math:`\tfrac12 \text{Var}_\pi(p\beta\xi + (1-p)\nu_k)`. The value then shrinks to :math:`-\frac{1-p}{p} c / a`, where
:math:`a = \text{Var}_\pi(\xi)` and :math:`c = \text{Cov}_\pi(\xi, \bar\nu)`, and what is left,
:math:`\dot\Delta = \sigma^2 p (1 - p)^2` with :math:`\sigma^2 = \frac1K\sum_k \text{Var}_\pi(\nu_k) - c^2 / a`, has the solution

.. math:: \tfrac12 E^2 + 3 E + 3 \ln E - 1 / E = \sigma^2 t + \text{const}, \quad E = e^\Delta / n, \qquad
   \Delta \to \ln n + \tfrac12 \ln(2 \sigma^2 t):

the margin grows with the logarithm of time, by one half for every factor e.

Departure: the heuristic that the loss to be gained falls like :math:`e^{-\Delta}`, :math:`\dot\Delta = c e^{-\Delta}`, gives
twice that slope; the loss above falls like :math:`e^{-2\Delta}`. Source: arXiv:2410.13835, section 2 (the two variables and their
mutual reinforcement); the loss and its law: derived. The tests hold the flow against the closed solution.
Letters: V tokens, K queries, n other keys, r rate of the value.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxdyn import flow

Scalar = float | Float[Array, "*#t"]


class Point(NamedTuple):
    """The margin of the sink's score, and the size of its value."""

    margin: Float[Array, ""]
    value: Float[Array, ""]


class Query(NamedTuple):
    """What the idle queries share: the next token's law, what the sink and the other keys write, and the number of those keys."""

    target: Float[Array, " V"]
    sink: Float[Array, " V"]
    others: Float[Array, "K V"]
    keys: Float[Array, ""]


def share(margin: Scalar, keys: Scalar) -> Float[Array, "*t"]:
    r"""Weight of the sink, :math:`e^\Delta / (e^\Delta + n)`."""
    return jax.nn.sigmoid(margin - jnp.log(keys))


def pull(margin: Scalar, log_keys: Scalar) -> Float[Array, "*t"]:
    r"""The late law's :math:`p (1 - p)^2`, with the logarithm of the number of other keys, each counted by its score."""
    p = jax.nn.sigmoid(margin - log_keys)
    return p * jnp.square(1 - p)


def loss(at: Point, query: Query) -> Float[Array, ""]:
    """Mean cross-entropy of the idle queries."""
    p = share(at.margin, query.keys)
    logits = jnp.log(query.target) + p * at.value * query.sink + (1 - p) * query.others
    return -jnp.mean(jax.nn.log_softmax(logits) @ query.target)


def covariance(target: Float[Array, " V"], x: Float[Array, "*k V"], y: Float[Array, "*k V"]) -> Float[Array, "*k"]:
    r"""Covariance :math:`\text{Cov}_\pi` of logits under the next token's law."""
    return ((x - (x @ target)[..., None]) * (y - (y @ target)[..., None])) @ target


def variance(query: Query) -> Float[Array, ""]:
    r"""The law's :math:`\sigma^2`: what the other keys write, minus what the sink's value makes up for."""
    target, sink, others = query.target, query.sink, query.others
    overlap = covariance(target, sink, jnp.mean(others, 0))
    return jnp.mean(covariance(target, others, others)) - overlap**2 / covariance(target, sink, sink)


def solve(start: Point, query: Query, ts: Float[Array, " t"], rate: Float[Array, ""], rtol: float = 1e-8) -> flow.Solution:
    """The flow at times ``ts`` > 0 from its start at ``ts[0]``, in log time, where the decay of the value is stiff.

    Args:
        start: the point at ``ts[0]``.
        query: of the loss.
        ts: save times.
        rate: r; 0 freezes the value.
        rtol: of the solver; the absolute tolerance is a hundredth of it.
    """

    def field(t: Float[Array, ""], at: Point, packed: tuple[Query, Float[Array, ""]]) -> Point:
        query, rate = packed
        slope = jax.grad(loss)(at, query)
        return Point(-slope.margin, -rate * slope.value)

    return flow.solve(
        flow.log_time(field), start, jnp.log(ts), (query, rate), solver="kvaerno5", rtol=rtol, atol=rtol / 100, max_steps=20_000
    )


def late_law(t: Scalar, sigma_squared: Scalar, keys: Scalar) -> Float[Array, "*t"]:
    r"""Late margin :math:`\ln n + \tfrac12 \ln(2\sigma^2 t)`; its error is that of :func:`late_error`."""
    return jnp.log(keys) + jnp.log(2 * sigma_squared * t) / 2


def late_error(t: Scalar, sigma_squared: Scalar, keys: Scalar) -> Float[Array, "*t"]:
    r"""How far the margin stays below its late law, :math:`(3E + 3\ln(nE) + n)/E^2` with :math:`E = \sqrt{2\sigma^2 t}`.

    These are the terms next to :math:`E^2/2` in the closed solution from equal scores, where :math:`E = 1/n`.
    """
    e = jnp.sqrt(2 * sigma_squared * t)
    return (3 * e + 3 * jnp.log(keys * e) + keys) / e**2


def heuristic_law(t: Scalar, first: Scalar, margin: Scalar) -> Float[Array, "*t"]:
    r"""Late margin of :math:`\dot\Delta = c e^{-\Delta}` from a time ``first`` on: :math:`\Delta(t_1) + \ln(t / t_1)`."""
    return margin + jnp.log(t / first)
