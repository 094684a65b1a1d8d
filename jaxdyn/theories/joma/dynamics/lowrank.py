r"""JoMA with many nodes whose upper gradient vanishes at a critical point: weights, their speed and how its rank falls and returns.

.. math:: \dot V_l = e^{\|V_l\|^2/2} (\mu_l - V_l) \ \text{(inserted)}, \qquad
   \dot V_l = p_l\, e^{z_l} (y_l - e^{z_l} V_l), \quad z_l = \tfrac12(\|V_l\|^2 - \|V_l(0)\|^2) \ \text{(squared error)}

Attention makes rows with a large limit fast: while they move, :math:`\dot V` is nearly of rank one; once they have arrived, the
others are left, and its rank returns. Source: arXiv:2310.00535, sections 3 and 4, with Theorem 1's logits for K nodes; the second
form, a block trained on one token a sample, is derived: attention enters forward and backward.
Letters: m tokens, k nodes, t times; mu (m, k) critical point, y (m, k) mean targets, p (m,) shares of the samples.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxdyn import flow
from jaxdyn.theories.joma.dynamics.thm4 import orbit


def inserted(mu: Float[Array, "m k"], ts: Float[Array, " t"]) -> tuple[Float[Array, "t m k"], Float[Array, "t m k"]]:
    r"""V and its speed from V = 0: row l is :math:`a_l \mu_l`, and :math:`-\ln(1 - a_l)` the orbit of Theorem 4."""
    kappa = 0.5 * jnp.sum(jnp.square(mu), -1)
    s = orbit(jnp.broadcast_to(ts[:, None], (ts.size, kappa.size)), kappa)
    a = -jnp.expm1(-s)
    return a[..., None] * mu, (jnp.exp(-s + kappa * a * a))[..., None] * mu


def _speed(v: Float[Array, "m k"], start: Array, y: Array, p: Array) -> Float[Array, "m k"]:
    gain = jnp.exp(0.5 * (jnp.sum(jnp.square(v), -1) - jnp.sum(jnp.square(start), -1)))[:, None]
    return p[:, None] * gain * (y - gain * v)


def trained(
    start: Float[Array, "m k"], y: Float[Array, "m k"], p: Float[Array, " m"], ts: Float[Array, " t"]
) -> tuple[flow.Solution, Float[Array, "t m k"]]:
    """V under squared error, and its speed."""
    solution = flow.solve(lambda _, v, args: _speed(v, *args), start, ts, (start, y, p), rtol=1e-9, atol=1e-12)
    return solution, jax.vmap(lambda v: _speed(v, start, y, p))(solution.ys)


def limits(y: Float[Array, "m k"], iterations: int = 40) -> Float[Array, "m k"]:
    r"""Where rows from zero end under squared error: along y, at :math:`\|\mu\| e^{\|\mu\|^2/2} = \|y\|`.

    Newton's method on :math:`u + \ln u = 2 \ln\|y\|` in :math:`\ln u`, :math:`u = \|\mu\|^2`, which is convex and increasing.
    """
    size = jnp.linalg.norm(y, axis=-1)
    goal = 2 * jnp.log(size)

    def newton(_: object, x: Array) -> Array:
        return x - (jnp.exp(x) + x - goal) / (jnp.exp(x) + 1)

    u = jnp.exp(jax.lax.fori_loop(0, iterations, newton, jnp.zeros_like(goal)))
    return y * (jnp.sqrt(u) / size)[:, None]


def unattended(
    start: Float[Array, "m k"], y: Float[Array, "m k"], p: Float[Array, " m"], ts: Float[Array, " t"]
) -> Float[Array, "t m k"]:
    """The speed of V under squared error where attention does not learn: each row decays at the rate p."""
    return jnp.exp(-p * ts[:, None])[..., None] * p[:, None] * (y - start)
