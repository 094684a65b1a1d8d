r"""One step of attention with keys equal to queries, on two clouds of tokens.

With weights :math:`\propto e^{\beta x \cdot y}` over a Gaussian cloud :math:`y \sim N(\mu, \sigma^2)`, the mean of y is that of the
tilted cloud: attention maps a token to

.. math:: x \mapsto \mu + \beta \sigma^2 x,

so every deviation from the mean shrinks by :math:`\beta\sigma^2`, and the cloud's mean moves to :math:`(1 + \beta\sigma^2) \mu`.
Source: arXiv:2310.17157, section 3.3, for the picture (heads as mean shift); the factor: derived, for clouds far apart.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

import jaxdyn as jd
from jaxdyn.nn import attention

__all__ = ["Clouds", "trial"]


@jd.setting
class Clouds:
    """Two Gaussian clouds in the plane with centres at +-(distance, 0), and attention of the inverse temperature ``beta``."""

    beta: jd.Swept = 1.0
    sigma: jd.Swept = 0.25
    distance: jd.Swept = 3.0
    tokens: int = 512  # in each cloud

    def __post_init__(self) -> None:
        jd.require(self, self.beta >= 0 and self.sigma > 0, "beta is at least 0, sigma positive", "beta", "sigma")
        jd.require(self, self.tokens >= 8, "tokens is at least 8", "tokens")


def slope(before: Float[Array, "n d"], after: Float[Array, "n d"]) -> Float[Array, ""]:
    """Factor by which deviations from the mean have grown, by least squares."""
    a, b = (x - jnp.mean(x, 0) for x in (before, after))
    return jnp.sum(a * b) / jnp.sum(jnp.square(a))


def trial(s: Clouds, key: PRNGKeyArray) -> jd.Observables:
    """Growth of deviations and of the mean, of one cloud, by one step of attention."""
    x = s.sigma * jax.random.normal(key, (2 * s.tokens, 2), jnp.float64)
    side = jnp.where(jnp.arange(2 * s.tokens) < s.tokens, 1.0, -1.0)
    x = x.at[:, 0].add(s.distance * side)
    query = x[:, None] * s.beta * 2**0.5  # attention divides by the root of the two entries
    after = attention.attend(query, x[:, None], x[:, None])[0][:, 0]
    here = slice(0, s.tokens)
    mean = jnp.mean(x[here], 0)
    variance = jnp.mean(jnp.square(x[here] - mean))
    factor = s.beta * variance
    return jd.observables(
        predicted={"deviation": factor, "mean": 1 + factor},
        measured={"deviation": slope(x[here], after[here]), "mean": jnp.mean(after[here], 0)[0] / mean[0]},
        recorded={"before": jd.named(x, "token entry"), "after": jd.named(after, "token entry")},
    )
