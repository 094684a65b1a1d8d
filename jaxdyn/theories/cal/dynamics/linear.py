r"""Exact solutions of gradient flow in linear networks with whitened inputs.

Letters: t time; s a singular value of the target; u the strength of its mode (u0 at the start); n number of weight matrices;
c = a^2 - b^2 the conserved imbalance of a mode of two layers; h, i, o hidden, input, output units.
All forms are written with decaying exponentials, so that large times do not overflow. Sources:
arXiv:1312.6120 (modes), Braun et al., NeurIPS 2022 (general balanced starts).
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxdyn import linalg
from jaxdyn.theories.cal.model import Linear, Scalar

PANELS, NODES = 8, 16
NEWTON = 60


def logistic_mode(t: Scalar, s: Float[Array, " k"], u0: Float[Array, " k"]) -> Float[Array, " k"]:
    r"""Mode of a balanced aligned two-layer net: :math:`\dot u = 2u(s-u)`, :math:`u = s\,/\,(1 + (s/u_0 - 1)e^{-2st})`.

    Source: arXiv:1312.6120, with time constant 1.
    """
    return s / (1 + (s / u0 - 1) * jnp.exp(-2 * s * t))


def unbalanced_mode(t: Scalar, s: Float[Array, " k"], u0: Float[Array, " k"], c: Scalar) -> Float[Array, " k"]:
    r"""Mode of an aligned two-layer net with :math:`a^2 - b^2 = c > 0`: :math:`\dot u = \sqrt{c^2 + 4u^2}\,(s - u)`.

    With :math:`u = \tfrac c4(w - 1/w)` the equation becomes :math:`\dot w = -\tfrac c2 (w - w_+)(w - w_-)`,
    :math:`w_\pm = (2s \pm \sqrt{4s^2 + c^2})/c`, so that :math:`(w-w_+)/(w-w_-)` decays at the rate :math:`\sqrt{4s^2+c^2}`.
    The equation follows from arXiv:1312.6120; this solution is ours.
    """
    rate = jnp.sqrt(4 * s**2 + c**2)
    above, below = (2 * s + rate) / c, -c / (2 * s + rate)
    w0 = (2 * u0 + jnp.sqrt(c**2 + 4 * u0**2)) / c
    ratio = (w0 - above) / (w0 - below) * jnp.exp(-rate * t)
    w = (above - ratio * below) / (1 - ratio)
    return c / 4 * (w - 1 / w)


def factors(u0: Float[Array, " k"], c: Scalar) -> tuple[Float[Array, " k"], Float[Array, " k"]]:
    """The two positive factors a, b with ``a b = u0`` and ``a^2 - b^2 = c``."""
    a = jnp.sqrt((c + jnp.sqrt(c**2 + 4 * u0**2)) / 2)
    return a, u0 / a


def _elapsed(z: Scalar, z0: Scalar, s: Scalar, n: Scalar) -> Float[Array, ""]:
    r"""Time from logit z0 to z: :math:`\frac{1}{ns}\int_{z_0}^{z}(s\,\sigma(x))^{2/n-1}\,dx`, by composite Gauss-Legendre."""
    x, w = np.polynomial.legendre.leggauss(NODES)
    fractions = ((np.arange(PANELS)[:, None] + (x + 1) / 2) / PANELS).ravel()
    weights = np.tile(w / 2 / PANELS, PANELS)
    points = z0 + (z - z0) * jnp.asarray(fractions, jnp.float64)
    return (z - z0) * jnp.sum(jnp.asarray(weights, jnp.float64) * (s * jax.nn.sigmoid(points)) ** (2 / n - 1)) / (n * s)


def deep_mode(t: Scalar, s: Scalar, u0: Scalar, n: Scalar) -> Float[Array, ""]:
    r"""Mode of a balanced aligned net of n weight matrices: :math:`\dot u = n\,u^{2-2/n}(s - u)`, for 0 < u0 < s.

    In the logit z of u/s the equation separates, :math:`dt = (s\sigma(z))^{2/n-1}dz/(ns)`; the integral is a quadrature of a
    smooth function, its inversion Newton's method on a monotone function that is concave (n > 2) or convex (n < 2).
    Source: arXiv:1312.6120, which counts layers of units: n + 1.
    """
    z0 = jnp.log(u0 / (s - u0))

    def newton(_: Any, z: Scalar) -> Float[Array, ""]:
        speed = n * s * (s * jax.nn.sigmoid(z)) ** (1 - 2 / n)
        return z + (t - _elapsed(z, z0, s, n)) * speed

    return s * jax.nn.sigmoid(jax.lax.fori_loop(0, NEWTON, newton, z0))


def gram_flow(
    t: Scalar, lam: Float[Array, " d"], vectors: Float[Array, "d d"], q0: Float[Array, "d h"], weight: Scalar
) -> Float[Array, "d d"]:
    r"""Gram matrix :math:`QQ^\top(t)` of the flow :math:`\dot Q = FQ - wQQ^\top Q` for symmetric F (w = ``weight``).

    .. math:: QQ^\top = e^{Ft}Q_0\,\bigl[I + Q_0^\top G\,Q_0\bigr]^{-1}Q_0^\top e^{Ft}, \qquad G = w\,(e^{2Ft} - 1)\,F^{-1}

    Evaluated in the eigenbasis of F (``lam``, ``vectors``), where G is positive whatever the signs (its limit 2wt at zero).
    With :math:`B = G^{1/2}Q_0` the bracket is :math:`I + B^\top B`, and :math:`B(I + B^\top B)^{-1}B^\top` comes from a QR
    decomposition of B above I with its rows in falling order: neither overflow nor cancellation between fast and slow modes.
    """
    order = jnp.argsort(-lam)
    lam, vectors = lam[order], vectors[:, order]
    r0 = vectors.T @ q0
    flat = jnp.abs(lam) * t < 1e-12
    safe = jnp.where(flat, 1.0, lam)
    # G = grow * tilt, with grow = e^{2 lam t} for rising modes
    tilt = jnp.where(flat, 2 * weight * t, weight * -jnp.expm1(-2 * jnp.abs(safe) * t) / jnp.abs(safe))
    root = jnp.sqrt(tilt) * jnp.exp(jnp.maximum(lam, 0) * t)
    h = q0.shape[1]
    q, _ = linalg.qr(jnp.concatenate([root[:, None] * r0, jnp.eye(h, dtype=q0.dtype)]))
    upper = q[: len(lam)]
    back = jnp.exp(jnp.minimum(lam, 0) * t) / jnp.sqrt(jnp.where(t > 0, tilt, 1.0))
    moved = vectors @ (back[:, None] * upper)
    return jnp.where(t > 0, moved @ moved.T, q0 @ q0.T)


def balanced_gram(t: Scalar, m: Float[Array, "o i"], start: Linear) -> Float[Array, "i+o i+o"]:
    r"""Gram matrix :math:`QQ^\top(t)`, :math:`Q = [W_1^\top; W_2]`, from any balanced start, aligned with the target or not.

    :math:`F = [[0, \Sigma^\top], [\Sigma, 0]]`, and :math:`\Sigma` may be rectangular; the product :math:`W_2W_1` is the lower
    left block. Source: Braun et al., NeurIPS 2022, after Fukumizu 1998; here without the inverse of F.
    """
    o, i = m.shape
    f = jnp.block([[jnp.zeros((i, i), m.dtype), m.T], [m, jnp.zeros((o, o), m.dtype)]])
    lam, vectors = linalg.eigh(f)
    return gram_flow(t, lam, vectors, jnp.concatenate([start.w1.T, start.w2]), 0.5)


def symmetric_gram(t: Scalar, m: Float[Array, "d d"], u0: Float[Array, "d r"]) -> Float[Array, "d d"]:
    r"""Gram matrix :math:`UU^\top(t)` of :math:`\dot U = (M - UU^\top)U`, M symmetric of any sign."""
    lam, vectors = linalg.eigh(m)
    return gram_flow(t, lam, vectors, u0, 1.0)


def effective_starts(u: Float[Array, "o k"], v: Float[Array, "i k"], start: Linear) -> Float[Array, " k"]:
    r"""Strength from which each mode grows in a small balanced start: :math:`\varepsilon_i = \tfrac12|r_i^\perp|^2`.

    :math:`r_i = q_i^\top Q_0`, :math:`q_i = (v_i, u_i)/\sqrt2`, and :math:`\perp` removes the directions of the modes that
    were learned before (columns of u, v in falling order of their singular values). For an aligned start this is the start's
    own strength. Derived from :func:`balanced_gram`: a learned mode takes its direction out of the bracket.
    """
    rows = (jnp.concatenate([v, u]) / 2**0.5).T @ jnp.concatenate([start.w1.T, start.w2])
    _, r = linalg.qr(rows.T)
    return jnp.square(jnp.diagonal(r)) / 2


def appearance(s: Float[Array, " k"], eps: Float[Array, " k"]) -> Float[Array, " k"]:
    r"""Time at which a mode that starts from a small :math:`\varepsilon` reaches s/2: :math:`\ln(s/\varepsilon)/(2s)`."""
    return jnp.log(s / eps) / (2 * s)
