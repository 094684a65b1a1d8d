r"""The clock of a decoder whose inputs do not overlap: how confident it is in the right token along training.

A row of the decoder that has learned one target alone is :math:`h (M e_\text{target} - 1)`; the clock reads :math:`u = M h`, the
advantage of the target's logit. M is the number of tokens. Source: arXiv:2305.16380, Theorem 1 and its proof.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax.scipy.stats import binom
from jaxtyping import Array, Float, Int

NEWTON = 12  # 9 are enough for M up to 1e12 and s up to 1e280
Scalar = int | float | Float[Array, "*#n"] | Int[Array, "*#n"]


@jax.custom_jvp
def clock(s: Scalar, size: Scalar) -> Float[Array, "*n"]:
    r"""The root u of :math:`(M-1)\,u + e^u - 1 = s`: gradient flow for the time :math:`s = M \eta t / K`, for K equal classes.

    It solves :math:`du/ds = 1/(M - 1 + e^u)`, u(0) = 0. Newton's rule from :math:`\min(s/M, \ln(1+s))`, which lies above the root
    of this increasing convex function, decreases to the root without crossing it. Derivatives are the implicit ones.

    Args:
        s: the time, at least 0 (float64).
        size: M, at least 2.
    """
    s, size = jnp.broadcast_arrays(jnp.asarray(s, jnp.float64), jnp.asarray(size, jnp.float64))

    def newton(_: int, u: Array) -> Array:
        return jnp.minimum(u, u - ((size - 1) * u + jnp.expm1(u) - s) / (size - 1 + jnp.exp(u)))  # rounding cannot lift it

    return jax.lax.fori_loop(0, NEWTON, newton, jnp.minimum(s / size, jnp.log1p(s)))


@clock.defjvp
def _clock_jvp(primals: tuple[float | Array, float | Array], tangents: tuple[Any, Any]) -> tuple[Array, Array]:
    (s, size), (ds, dsize) = primals, tangents
    u = clock(s, size)
    return u, (ds - u * dsize) / (size - 1 + jnp.exp(u))


def hit(u: Scalar, size: Scalar) -> Float[Array, "*n"]:
    r"""Probability of the target, :math:`1/(1 + (M-1) e^{-u})`."""
    return jax.nn.sigmoid(u - jnp.log(jnp.asarray(size - 1.0)))


def miss(u: Scalar, size: Scalar) -> Float[Array, "*n"]:
    r"""Probability of each other token, :math:`1/(e^u + M - 1)`."""
    return jnp.exp(-jnp.logaddexp(u, jnp.log(jnp.asarray(size - 1.0))))


def visits(count: int, rate: Scalar, size: Scalar) -> Float[Array, " n"]:
    r"""Clock of a row after 0, 1, ..., ``count`` steps of SGD on its sample alone, exactly.

    .. math:: u_{k+1} = u_k + \frac{\eta M}{M - 1 + e^{u_k}}, \qquad u_0 = 0
    """

    def step(u: Array, _: None) -> tuple[Array, Array]:
        u = u + rate * size * miss(u, size)
        return u, u

    zero = jnp.zeros((), jnp.float64)
    return jnp.concatenate([zero[None], jax.lax.scan(step, zero, None, length=count)[1]])


@jax.jit
def expected(values: Float[Array, " n"], steps: Scalar, rows: Scalar) -> Float[Array, ""]:
    r"""Mean over the randomness of batch-1 SGD of a function of a row's visits, :math:`\sum_k \text{Binom}(k; t, 1/N)\,f(k)`.

    Args:
        values: f(k) for k = 0, 1, ...; if there are fewer than t + 1, the last stands for all later ones.
        steps: t, the steps made.
        rows: N, equally likely rows.
    """
    k = jnp.arange(values.shape[0], dtype=jnp.float64)
    weight = binom.pmf(k, steps, 1.0 / rows)
    return jnp.dot(weight, values) + (1 - jnp.sum(weight)) * values[-1]
