r"""The angle between a residual stream and itself one block later.

.. math:: \cos(x, x + F) = \frac{1 + \rho c}{\sqrt{1 + 2 \rho c + \rho^2}} \ge \sqrt{1 - \rho^2}, \qquad
   \rho = \|F\| / \|x\| < 1,\ c = \cos(x, F)

with equality at :math:`c = -\rho`. Source: arXiv:2310.17157, section 4.3, for the question; formula and bound: derived.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

import jaxdyn as jd

__all__ = ["Residual", "trial"]


@jd.setting
class Residual:
    """A random stream x and a change F of ``ratio`` times its size; ``worst`` turns F to the angle of the bound."""

    ratio: jd.Swept = 0.5
    worst: jd.Swept = 0.0
    width: int = 8

    def __post_init__(self) -> None:
        jd.require(self, self.ratio > 0, "ratio is positive", "ratio")
        jd.require(self, self.width >= 2, "width is at least 2", "width")


def cosine(a: Float[Array, " d"], b: Float[Array, " d"]) -> Float[Array, ""]:
    """Cosine of the angle between two vectors."""
    return a @ b / (jnp.linalg.norm(a) * jnp.linalg.norm(b))


def trial(s: Residual, key: PRNGKeyArray) -> jd.Observables:
    """Cosines of the two streams, the formula, and the bound."""
    k_x, k_f = jax.random.split(key)
    x, f = (jax.random.normal(k, (s.width,), jnp.float64) for k in (k_x, k_f))
    unit = x / jnp.linalg.norm(x)
    across = f - unit * (unit @ f)
    side = jnp.sqrt(jnp.maximum(1 - s.ratio**2, 0))
    turned = -s.ratio * unit + side * across / jnp.linalg.norm(across)
    f = jnp.where(s.worst > 0.5, turned, f / jnp.linalg.norm(f)) * s.ratio * jnp.linalg.norm(x)
    c = cosine(x, f)
    formula = (1 + s.ratio * c) / jnp.sqrt(1 + 2 * s.ratio * c + s.ratio**2)
    near = cosine(x, x + f)
    return jd.observables(
        predicted={"cosine": formula, "bound": side},
        measured={"cosine": near, "bound": near},
        recorded={"changed": cosine(f, x + f), "linear": 1 - s.ratio, "parabola": 1 - s.ratio**2 / 4, "start": jnp.ones_like(near)},
    )
