r"""Training of the answering layer: how strongly it reads the thought, and how strongly the two candidates.

With K vertices in the thought, weights :math:`\lambda = 1/\sqrt K`, the logits are :math:`\lambda\mu_A + \mu_R` for the reachable
candidate, :math:`\mu_R` for the other one, :math:`\lambda\mu_A` for the thought's other vertices and 0 for the rest:

.. math:: \dot\mu_A = k_A \lambda \bigl(y_C - P(V_C)\bigr), \qquad \dot\mu_R = k_R \bigl(1 - P(c_*) - P(c_\perp)\bigr)

y_C = 1 if the label is reachable, 0 if not. Both grow without end, :math:`\mu_A \approx \sqrt K \ln(k_A t / K)` and
:math:`\mu_R \approx \ln(k_R (K-1) t)`: their direction tends to that of the largest margin, :math:`d\mu_A/d\mu_R \to \sqrt K`,
whatever the rates. Source: arXiv:2509.23365, Theorem 3 (equations); the offsets are derived. Letters: n vertices.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxdyn import flow


class Law(NamedTuple):
    """Vertices n, those in the thought K, rates of both numbers, and y_C."""

    n: Any
    inside: Any
    rate_a: Any
    rate_r: Any
    reachable: Any


def field(t: Any, y: Float[Array, " two"], law: Law) -> Float[Array, " two"]:
    """The rates of mu_A and mu_R."""
    del t
    lam = jnp.sqrt(1 / law.inside)
    xi = jnp.stack([lam * y[0] + y[1], y[1], lam * y[0], 0.0 * y[0]])  # c*, the other candidate, others of the thought, the rest
    count = jnp.stack([1.0, 1.0, law.inside - 1, law.n - law.inside - 1])
    p = count * jnp.exp(xi - jnp.max(xi))
    p = p / jnp.sum(p)
    missing = law.reachable * (p[1] + p[3]) - (1 - law.reachable) * (p[0] + p[2])  # y_C - P(V_C), without cancellation
    return jnp.stack([law.rate_a * lam * missing, law.rate_r * (p[2] + p[3])])


def solve(law: Law, ts: Float[Array, " T"]) -> flow.Solution:
    r"""mu_A and mu_R from zero at the times ``ts``, the first of them 0, in :math:`\ln(1+t)`."""
    law = jax.tree.map(lambda x: jnp.asarray(x, jnp.float64), law)
    return flow.solve(flow.log_time(field), jnp.zeros(2, jnp.float64), jnp.log1p(ts), law, rtol=1e-10, atol=1e-12, max_steps=20_000)


def asymptote(law: Law, ts: Float[Array, " T"]) -> Float[Array, "two T"]:
    """Leading terms of mu_A and mu_R at late times, where the label is reachable."""
    late = jnp.log(jnp.maximum(ts, 1e-300))
    mu_a = jnp.sqrt(law.inside) * (late + jnp.log(law.rate_a / law.inside))
    return jnp.stack([mu_a, late + jnp.log(law.rate_r * (law.inside - 1))])
