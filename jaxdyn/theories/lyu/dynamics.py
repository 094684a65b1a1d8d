r"""The predictor under small weight decay: its path, and the sparse interpolator at the path's end.

The path of the predictor under small weight decay: one potential whose scale shrinks exponentially.

With g for the gradient of the data term with respect to w, the flow is :math:`\dot u = -\lambda u - 2u g`,
:math:`\dot v = -\lambda v + 2v g`, so that :math:`u v = \varepsilon^2` with :math:`\varepsilon = \alpha e^{-\lambda t}`,
exactly, and

.. math:: w = 2\varepsilon^2\sinh(X^\top q).

Where the data are fitted much faster than :math:`1/\lambda`, q solves :math:`Xw = y` at every :math:`\varepsilon`: w is the
interpolator of least hyperbolic entropy of scale :math:`\varepsilon`. Large scales give the least 2-norm, the kernel's predictor,
small ones the least 1-norm. The path is a function of :math:`\varepsilon` alone: what happens at a scale :math:`\varepsilon_c`
happens at :math:`t = (\ln\alpha - \ln\varepsilon_c)/\lambda`.

Source: arXiv:2311.18817, theorems 3.9 and 3.10, for the two ends; the potential is that of arXiv:2002.09277, with a scale that
moves. Letters: d inputs, n samples, T times.

The interpolator of least 1-norm, to which the path of the predictor tends at small scales.

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

Scalar = float | Float[Array, ""]
FIRST, EACH = 50, 10  # Newton steps for the first scale, and for each further one


def kernel(data: model.Data) -> Float[Array, " d"]:
    """The interpolator of least 2-norm."""
    return data.x.T @ linalg.solve(data.x @ data.x.T, data.y)


def product(alpha: Scalar, time: Float[Array, " T"]) -> Float[Array, " T"]:
    r"""Every product :math:`u_i v_i = \alpha^2 e^{-2\lambda t}`; time in units of :math:`1/\lambda`."""
    return jnp.square(alpha) * jnp.exp(-2 * time)


def entropic(data: model.Data, scale: Float[Array, ""], q: Float[Array, " n"], steps: int | Int[Array, ""]) -> Float[Array, " n"]:
    """Newton's method for q from a start; a step moves no entry of X^T q by more than one."""

    def step(_: Int[Array, ""], q: Float[Array, " n"]) -> Float[Array, " n"]:
        z = data.x.T @ q
        slope = data.x * (2 * scale**2 * jnp.cosh(z)) @ data.x.T
        move = linalg.solve(slope, data.y - data.x @ (2 * scale**2 * jnp.sinh(z)))
        return q + move / jnp.maximum(1.0, jnp.max(jnp.abs(data.x.T @ move)))

    return jax.lax.fori_loop(0, steps, step, q)


def path(data: model.Data, scales: Float[Array, " T"]) -> Float[Array, "T d"]:
    """The effective weight at decreasing scales, each found from the one before."""

    def follow(q: Float[Array, " n"], at: tuple[Float[Array, ""], Int[Array, ""]]) -> tuple[Float[Array, " n"], Float[Array, " d"]]:
        scale, steps = at
        q = entropic(data, scale, q, steps)
        return q, 2 * scale**2 * jnp.sinh(data.x.T @ q)

    steps = jnp.full(len(scales), EACH, jnp.int32).at[0].set(FIRST)
    return jax.lax.scan(follow, jnp.zeros_like(data.y), (scales, steps))[1]


def crossing(times: Float[Array, " T"], values: Float[Array, " T"], level: Scalar) -> Float[Array, ""]:
    """The last time at which values fall through a level, linear between records; the last record where they never do."""
    high = values > level
    last = jnp.minimum(jnp.max(jnp.where(high, jnp.arange(len(times)), 0)), len(times) - 2)
    before, after = values[last], values[last + 1]
    share = jnp.clip((before - level) / jnp.where(before == after, 1.0, before - after), 0, 1)
    return times[last] + share * (times[last + 1] - times[last])


STEPS, CENTRE, GAP = 40, 0.1, 1e-6  # Newton steps, share of the gap aimed at in each, gap at which to stop


def least_one_norm(data: model.Data) -> Float[Array, " d"]:
    """The least-norm programme's solution."""
    a = jnp.concatenate([data.x, -data.x], 1)
    near = kernel(data)
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
