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

from jaxdyn import flow

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


def softmax_logits(
    tau: Float[Array, " T"], mu: Float[Array, " d"], v0: Float[Array, " d"], temperature: Float[Array, ""]
) -> flow.Solution:
    r"""(v, z) near a critical point under the gradient of the softmax, learning-rate ratio 2/T, from ``z = v^2/T``.

    .. math:: \dot v = p \circ (\mu - v), \qquad
              \dot z = \tfrac1T \left(\tfrac{d v^2}{dt} - p\, \tfrac{d \|v\|^2}{dt}\right), \qquad p = \mathrm{softmax}(z)

    Source: Theorem 1 for softmax attention, with one sample per token. The second term is what a normalisation A(t) that is taken
    as given leaves out: with it, logits of large components grow less, and :math:`1^\top z` is conserved. No closed form is known.
    """

    def field(_: object, y: tuple, mu: Float[Array, " d"]) -> tuple:
        v, z = y
        p = jax.nn.softmax(z)
        dv = p * (mu - v)
        growth = 2 * v * dv
        return dv, (growth - p * jnp.sum(growth)) / temperature

    return flow.solve(field, (v0, v0 * v0 / temperature), tau, mu, rtol=1e-9, atol=1e-11, max_steps=20_000)


def slope_ratio(kappa: Float[Array, " d"], reference: int = 0) -> Float[Array, " d"]:
    r"""Theorem 4's limit of :math:`\dot s_j / \dot s_k`: :math:`e^{(\mu_j^2 - \mu_k^2)/2}`."""
    return jnp.exp(kappa - kappa[reference])


def linear_slope_ratio(mu: Float[Array, " d"], c: Float[Array, ""], reference: int = 0) -> Float[Array, " d"]:
    r"""The same limit under linear attention, :math:`\dot v = (\mu - v)\sqrt{v^2 + c}`: only a ratio of square roots.

    .. math:: \dot s_j / \dot s_k \to \sqrt{\mu_j^2 + c} / \sqrt{\mu_k^2 + c}
    """
    return jnp.sqrt((mu**2 + c) / (mu[reference] ** 2 + c))


def separate_rate(
    kappa: Float[Array, "*d"], kappa_start: Float[Array, "*d"], share: float | Float[Array, ""], nodes: int
) -> Float[Array, "*d"]:
    r"""Rate at which a token's weights approach their limit mu when a block is trained on squared error, one token per sample.

    .. math:: \dot v = p\, e^{z} (y - e^{z} v), \quad z = \tfrac12 (\|v\|^2 - \|v(0)\|^2): \qquad
              \lambda_\perp = p\, e^{\|\mu\|^2 - \|v(0)\|^2}, \quad \lambda_\parallel = (1 + \|\mu\|^2)\,\lambda_\perp

    Source: derived here. The backpropagated gradient vanishes with the output :math:`h = e^z v`, not with v itself, so attention
    enters twice. The Jacobian of h is :math:`e^z (1 + v v^\top)`, so that the direction of mu is faster than those across it by
    :math:`1 + \|\mu\|^2`. With several nodes the slower rate is left in the end; one node has no direction across mu. Theorem 4
    has :math:`e^{\mu^2/2}`.

    Args:
        kappa: half the squared norm of mu.
        kappa_start: the same of v(0), where z = 0.
        share: p, of the samples that have the token.
        nodes: dimension of mu.
    """
    along = 1 + 2 * kappa if nodes == 1 else 1.0
    return share * along * jnp.exp(2 * (kappa - kappa_start))


def entropy_of_logits(logits: Float[Array, "... d"]) -> Float[Array, ...]:
    """Entropy of ``softmax(logits)`` in nats, without forming ``p log p`` at ``p = 0``."""
    log_p = jax.nn.log_softmax(logits, -1)
    return -jnp.sum(jnp.exp(log_p) * log_p, -1)
