r"""JoMA near a critical point: the exact solution behind Theorem 4, and the entropy of attention along it.

Letters: d tokens, T times; mu = critical point, delta = 1 - v/mu, s = ln(1/delta), kappa = mu^2/T with temperature T = 2 in the
theorem and T = 3 in Fig. 4. Source: arXiv:2310.00535, Theorem 4 and section 4.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

__all__ = [
    "clock",
    "entropy_of_logits",
    "linear_slope_ratio",
    "offset",
    "orbit",
    "orbit_in_softmax_time",
    "slope_ratio",
]

LEGENDRE = 64


@functools.cache
def _legendre() -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre nodes and weights on [0, 1]."""
    x, w = np.polynomial.legendre.leggauss(LEGENDRE)
    return (x + 1) / 2, w / 2


def offset(s: Float[Array, ...], kappa: Float[Array, ...], s0: Float[Array, ...] | float = 0.0) -> Float[Array, ...]:
    r"""Lag of a component behind uniform motion at its final speed, C(s).

    .. math:: C(s) = \int_{e^{-s}}^{e^{-s_0}} \frac{e^{\kappa (2\delta - \delta^2)} - 1}{\delta}\, d\delta

    Source: exact form of Theorem 4 (kappa = mu^2/2), by Gauss-Legendre with 64 nodes: the integrand is entire.
    """
    x, w = (jnp.asarray(part, s.dtype) for part in _legendre())
    low, high = jnp.exp(-s)[..., None], jnp.exp(-jnp.asarray(s0, s.dtype))[..., None]
    delta = low + (high - low) * x
    return jnp.sum(w * (high - low) * jnp.expm1(kappa[..., None] * delta * (2 - delta)) / delta, -1)


def clock(s: Float[Array, ...], kappa: Float[Array, ...], s0: Float[Array, ...] | float = 0.0) -> Float[Array, ...]:
    r"""Exact time at which a component reaches ``s``: ``t = (s - s0 + C(s)) exp(-kappa)``."""
    return (s - s0 + offset(s, kappa, s0)) * jnp.exp(-kappa)


def _speed(s: Float[Array, ...], kappa: Float[Array, ...]) -> Float[Array, ...]:
    """``ds/dt = exp(v^2/T)`` at ``v = mu (1 - exp(-s))``."""
    return jnp.exp(kappa * jnp.square(jnp.expm1(-s)))


def orbit(
    t: Float[Array, ...], kappa: Float[Array, ...], s0: Float[Array, ...] | float = 0.0, *, iterations: int = 60
) -> Float[Array, ...]:
    r"""Exact solution ``s(t)`` of :math:`\dot s = e^{\kappa (1 - e^{-s})^2}`, by Newton's method on :func:`clock`.

    ``clock`` is concave in s, so the iteration climbs from ``s0`` to the root without overshooting.
    """
    s = jnp.broadcast_to(jnp.asarray(s0, t.dtype), jnp.broadcast_shapes(t.shape, kappa.shape))
    kappa = jnp.broadcast_to(kappa, s.shape)

    def newton(_: object, s: Float[Array, ...]) -> Float[Array, ...]:
        return s + (t - clock(s, kappa, s0)) * _speed(s, kappa)

    return jax.lax.fori_loop(0, iterations, newton, s)


def orbit_in_softmax_time(
    tau: Float[Array, " T"], kappa: Float[Array, " d"], s0: Float[Array, " d"], *, iterations: int = 8
) -> Float[Array, "T d"]:
    r"""Exact solution of :math:`\dot v = (\mu - v) \circ \mathrm{softmax}(v^2/T)` at times ``tau`` (increasing from 0), as ``s``.

    The softmax divides every component's speed by the same A(t): the orbit is that of :func:`orbit`, and since
    :math:`d\tau = A\,dt = \sum_j ds_j`, softmax time is :math:`\tau = \sum_j (s_j - s_j(0))`. Newton's method on the d + 1
    equations ``clock(s_j) = t`` and ``sum(s - s0) = tau``, whose linear system is an arrow, starts from the previous time.
    """

    def newton(_: object, carry: tuple) -> tuple:
        s, target = carry
        speed, at = _speed(s, kappa), clock(s, kappa, s0)
        t = (target - jnp.sum(s - s0) + jnp.sum(speed * at)) / jnp.sum(speed)
        return s + (t - at) * speed, target

    def advance(s: Float[Array, " d"], target: Float[Array, ""]) -> tuple[Float[Array, " d"], Float[Array, " d"]]:
        s, _ = jax.lax.fori_loop(0, iterations, newton, (s, target))
        return s, s

    return jax.lax.scan(advance, s0, tau)[1]


def slope_ratio(kappa: Float[Array, " d"], reference: int = 0) -> Float[Array, " d"]:
    r"""Theorem 4's limit of :math:`\dot s_j / \dot s_k`: :math:`e^{(\mu_j^2 - \mu_k^2)/2}`."""
    return jnp.exp(kappa - kappa[reference])


def linear_slope_ratio(mu: Float[Array, " d"], c: Float[Array, ""], reference: int = 0) -> Float[Array, " d"]:
    r"""The same limit under linear attention, :math:`\dot v = (\mu - v)\sqrt{v^2 + c}`: only a ratio of square roots.

    .. math:: \dot s_j / \dot s_k \to \sqrt{\mu_j^2 + c} / \sqrt{\mu_k^2 + c}
    """
    return jnp.sqrt((mu**2 + c) / (mu[reference] ** 2 + c))


def entropy_of_logits(logits: Float[Array, "... d"]) -> Float[Array, ...]:
    """Entropy of ``softmax(logits)`` in nats, without forming ``p log p`` at ``p = 0``."""
    log_p = jax.nn.log_softmax(logits, -1)
    return -jnp.sum(jnp.exp(log_p) * log_p, -1)
