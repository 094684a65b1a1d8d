r"""The interpolator of least 1-norm, to which the path of the predictor tends at small scales.

.. math:: \min_{z \ge 0} \sum_i z_i \quad\text{with}\quad (X, -X)\, z = y, \qquad w = z_+ - z_-

Solved by a primal-dual interior-point method from a feasible start, independently of the path.
Source: Wright 1997, Primal-Dual Interior-Point Methods, section 1.2. Letters: d inputs, n samples.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jaxdyn import linalg
from jaxdyn.theories.lyu import model
from jaxdyn.theories.lyu.dynamics import path

STEPS, CENTRE, GAP = 40, 0.1, 1e-6  # Newton steps, share of the gap aimed at in each, gap at which to stop


def least_one_norm(data: model.Data) -> Float[Array, " d"]:
    """The least-norm programme's solution."""
    a = jnp.concatenate([data.x, -data.x], 1)
    near = path.kernel(data)
    both = jnp.concatenate([jnp.maximum(near, 0), jnp.maximum(-near, 0)])
    start = both + jnp.mean(jnp.abs(near)), jnp.zeros_like(data.y)

    def room(x: Float[Array, " k"], move: Float[Array, " k"]) -> Float[Array, ""]:
        """The largest step that keeps x positive."""
        return jnp.min(jnp.where(move < 0, -x / jnp.where(move < 0, move, -1.0), jnp.inf))

    def step(
        _: Int[Array, ""], state: tuple[Float[Array, " k"], Float[Array, " n"]]
    ) -> tuple[Float[Array, " k"], Float[Array, " n"]]:
        z, q = state
        slack = 1 - a.T @ q
        gap = z @ slack
        goal = CENTRE * gap / len(z) - z * slack
        dq = -linalg.solve((a * (z / slack)) @ a.T, a @ (goal / slack))
        dz, ds = (goal + z * (a.T @ dq)) / slack, -a.T @ dq
        size = jnp.minimum(1.0, 0.9 * jnp.minimum(room(z, dz), room(slack, ds)))
        size = jnp.where(gap > GAP, size, 0.0)
        return z + size * jnp.where(gap > GAP, dz, 0.0), q + size * jnp.where(gap > GAP, dq, 0.0)

    z, _ = jax.lax.fori_loop(0, STEPS, step, start)
    return z[: len(near)] - z[len(near) :]
