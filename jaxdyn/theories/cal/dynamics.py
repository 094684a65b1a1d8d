r"""Exact solutions: linear networks, finite step sizes, SGD on quadratics, and the product of two numbers.

Exact solutions of gradient flow in linear networks with whitened inputs.

Letters: t time; s a singular value of the target; u the strength of its mode (u0 at the start); n number of weight matrices;
c = a^2 - b^2 the conserved imbalance of a mode of two layers; h, i, o hidden, input, output units.
All forms are written with decaying exponentials, so that large times do not overflow. Sources:
arXiv:1312.6120 (modes), Braun et al., NeurIPS 2022 (general balanced starts).

Finite step sizes: the leading error of gradient descent, its modified flow, the drift of conserved quantities.

Letters: f(x) = :math:`-\nabla L` the field of gradient flow, J its Jacobian (:math:`-H`); :math:`\eta` the step size; t = n eta.
With :math:`H\nabla L = J f` every correction is one Jacobian-vector product, and no Hessian is formed.
Sources: Hairer, Nørsett, Wanner, Solving Ordinary Differential Equations I, section II.8 (leading error of Euler's method);
arXiv:2009.11162 (modified loss), arXiv:2101.12176 (the same for shuffled SGD); arXiv:1806.00900 (conservation).

Exact statistics of SGD on a quadratic :math:`\tfrac12x^\top Hx` with gradient noise of covariance C.

One step is :math:`x^+ = (1 - \eta H)x - \eta\xi`. Everything is diagonal in pairs of eigenvectors of H: h eigenvalues (d,),
vectors (d, d), :math:`\rho = 1 - \eta h`. Source: arXiv:2012.03636.

The scalar problem :math:`L = \tfrac12(uv-1)^2`: where gradient flow stops, and where gradient descent can.

Letters: d = u^2 - v^2, conserved by the flow; p = uv. At a minimum (p = 1) the sharpness is :math:`u^2+v^2 = \sqrt{d^2+4}`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PyTree

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


Field = Callable[[PyTree], PyTree]


class Flows(NamedTuple):
    """State of the joint solve: gradient flow, leading error, modified flow, integral of the drift of the balance."""

    flow: PyTree
    lead: PyTree
    modified: PyTree
    drift: Float[Array, "h h"]


class FlowsArgs(NamedTuple):
    """What the joint field depends on: target, step size, weight decay."""

    m: Float[Array, "o i"]
    eta: Scalar
    decay: Scalar


def linear_field(m: Float[Array, "o i"], decay: Scalar = 0.0) -> Callable[[Linear], Linear]:
    r"""Gradient flow of a two-layer linear net: :math:`\dot W_1 = W_2^\top E - \lambda W_1,\ \dot W_2 = E W_1^\top - \lambda W_2`.

    Here :math:`E = \Sigma - W_2 W_1`. Source: arXiv:1312.6120, whitened inputs.
    """

    def field(p: Linear) -> Linear:
        e = m - p.w2 @ p.w1
        return Linear(p.w2.T @ e - decay * p.w1, e @ p.w1.T - decay * p.w2)

    return field


def regression_field(xx: Float[Array, "i i"], yx: Float[Array, "o i"]) -> Callable[[Linear], Linear]:
    r"""The same for data with the moments :math:`XX = \langle x x^\top\rangle,\ YX = \langle y x^\top\rangle`.

    .. math:: \dot W_1 = W_2^\top E, \qquad \dot W_2 = E W_1^\top, \qquad E = YX - W_2W_1 XX
    """

    def field(p: Linear) -> Linear:
        e = yx - p.w2 @ p.w1 @ xx
        return Linear(p.w2.T @ e, e @ p.w1.T)

    return field


def _axpy(a: Scalar, x: PyTree, y: PyTree) -> PyTree:
    return jax.tree.map(lambda p, q: a * p + q, x, y)


def modified_field(field: Field, eta: Scalar) -> Field:
    r"""Field of the modified loss :math:`\tilde L = L + \tfrac\eta4\|\nabla L\|^2`: :math:`\tilde f = f - \tfrac\eta2\,Jf`.

    Source: arXiv:2009.11162.
    """

    def modified(x: PyTree) -> PyTree:
        f, jf = jax.jvp(field, (x,), (field(x),))
        return _axpy(-eta / 2, jf, f)

    return modified


def shuffled_field(xx: Float[Array, "m i i"], yx: Float[Array, "m o i"], eta: Scalar) -> Callable[[Linear], Linear]:
    r"""Field that the mean of SGD over shuffled epochs follows: of :math:`\tilde L = L + \tfrac{\eta}{4m}\sum_i\|\nabla L_i\|^2`.

    Args:
        xx: second moments of the inputs of the m batches, as in :func:`regression_field`.
        yx: moments of outputs with inputs.
        eta: step size; time is t = n eta over single batches, L the mean of the batch losses.

    Source: arXiv:2101.12176.
    """
    mean = regression_field(jnp.mean(xx, 0), jnp.mean(yx, 0))

    def bend(x: Linear, xx_i: Float[Array, "i i"], yx_i: Float[Array, "o i"]) -> Linear:
        own = regression_field(xx_i, yx_i)
        return jax.jvp(own, (x,), (own(x),))[1]

    def shuffled(x: Linear) -> Linear:
        bends = jax.vmap(bend, (None, 0, 0))(x, xx, yx)
        return jax.tree.map(lambda f, b: f - eta / 2 * jnp.mean(b, 0), mean(x), bends)

    return shuffled


def balance(p: Linear) -> Float[Array, "h h"]:
    r"""The quantity :math:`W_1W_1^\top - W_2^\top W_2`, conserved by gradient flow without weight decay."""
    return p.w1 @ p.w1.T - p.w2.T @ p.w2


def balance_rate(p: Linear, m: Float[Array, "o i"]) -> Float[Array, "h h"]:
    r"""Change of the balance in one step of gradient descent, over :math:`\eta^2`: :math:`AA^\top - B^\top B`.

    :math:`A = W_2^\top E,\ B = E W_1^\top,\ E = \Sigma - W_2W_1`; exact, since the terms of order :math:`\eta` cancel.
    """
    a, b = linear_field(m)(p)
    return a @ a.T - b.T @ b


def flows_field(t: Scalar, state: Flows, args: FlowsArgs) -> Flows:
    r"""Joint field of gradient flow x, leading error e, modified flow y, and the integral d of the drift of the balance.

    .. math:: \dot x = f, \qquad \dot e = J\,(e - \tfrac12 f), \qquad \dot y = \tilde f(y), \qquad \dot d = AA^\top - B^\top B

    so that gradient descent is :math:`x + \eta e + O(\eta^2)`, and its balance moves by :math:`\eta d + O(\eta^2)`.
    """
    field = linear_field(args.m, args.decay)
    f = field(state.flow)
    bend = jax.jvp(field, (state.flow,), (_axpy(-0.5, f, state.lead),))[1]
    modified = modified_field(field, args.eta)(state.modified)
    return Flows(f, bend, modified, balance_rate(state.flow, args.m))


Count = int | Int[Array, ""]


def mean_after(n: Count, eta: Scalar, h: Float[Array, " d"], x0: Float[Array, " d"]) -> Float[Array, " d"]:
    r"""Mean after n steps in the eigenbasis, :math:`(1-\eta h)^n x_0`; exact, also beyond the edge of stability."""
    factor = 1 - eta * h
    sign = jnp.where((n % 2 == 1) & (factor < 0), -1.0, 1.0)
    return sign * jnp.abs(factor) ** n * x0


def decay_rate(eta: Scalar, h: Float[Array, " d"]) -> Float[Array, " d"]:
    r"""Rate of a mode in time t = n eta, :math:`-\ln|1-\eta h|/\eta = h + \eta h^2/2 + \dots`; negative if :math:`\eta h > 2`."""
    return -jnp.where(eta * h < 0.5, jnp.log1p(-jnp.minimum(eta * h, 0.5)), jnp.log(jnp.abs(1 - eta * h))) / eta


def stationary_covariance(
    eta: Scalar, h: Float[Array, " d"], vectors: Float[Array, "d d"], c: Float[Array, "d d"]
) -> Float[Array, "d d"]:
    r"""Solution S of :math:`HS + SH - \eta HSH = \eta C`; for one dimension :math:`\eta\sigma^2/(h(2-\eta h))`."""
    rotated = vectors.T @ c @ vectors
    return vectors @ (eta * rotated / (h[:, None] + h[None] - eta * h[:, None] * h[None])) @ vectors.T


def diffusion_covariance(
    eta: Scalar, h: Float[Array, " d"], vectors: Float[Array, "d d"], c: Float[Array, "d d"]
) -> Float[Array, "d d"]:
    r"""The same in the diffusion limit, :math:`HS + SH = \eta C`, in one dimension :math:`\eta\sigma^2/(2h)`."""
    return vectors @ (eta * (vectors.T @ c @ vectors) / (h[:, None] + h[None])) @ vectors.T


def covariance_after(
    n: Count, eta: Scalar, h: Float[Array, " d"], vectors: Float[Array, "d d"], c: Float[Array, "d d"]
) -> Float[Array, "d d"]:
    r"""Covariance after n steps from a fixed start: :math:`\eta^2C_{ij}(1-(\rho_i\rho_j)^n)/(1-\rho_i\rho_j)` in the eigenbasis."""
    rho = 1 - eta * h
    grown = 1 - (rho[:, None] * rho[None]) ** n
    return vectors @ ((vectors.T @ stationary_covariance(eta, h, vectors, c) @ vectors) * grown) @ vectors.T


def edge(eta: Scalar) -> Scalar:
    r"""The largest sharpness at which gradient descent can stay, :math:`2/\eta`."""
    return 2 / eta


def flow_sharpness(u0: Scalar, v0: Scalar) -> Float[Array, ""]:
    r"""Sharpness at which gradient flow stops: :math:`\sqrt{(u_0^2-v_0^2)^2 + 4}`."""
    return jnp.sqrt((u0**2 - v0**2) ** 2 + 4)


def flattening(u0: Scalar, v0: Scalar) -> Float[Array, ""]:
    r"""First-order change of the final sharpness with the step size, :math:`-d^2J/\sqrt{d^2+4}`.

    Gradient descent moves d by :math:`-\eta^2 d\,E^2` a step (:math:`E = 1-p`), and along the flow
    :math:`\dot p = E\sqrt{d^2+4p^2}`, so that d shrinks by the factor :math:`1-\eta J`,

    .. math:: J = \int_{p_0}^1\frac{1-p}{\sqrt{d^2+4p^2}}\,dp
                = \Bigl[\tfrac12\operatorname{arsinh}\tfrac{2p}{|d|} - \tfrac14\sqrt{d^2+4p^2}\Bigr]_{p_0}^1 .

    Ours; the implicit regularisation of arXiv:2009.11162 in closed form.
    """
    d, p0 = u0**2 - v0**2, u0 * v0

    def primitive(p: Scalar) -> Float[Array, ""]:
        return 0.5 * jnp.arcsinh(2 * p / jnp.abs(d)) - 0.25 * jnp.sqrt(d**2 + 4 * p**2)

    return -(d**2) * (primitive(1.0) - primitive(p0)) / jnp.sqrt(d**2 + 4)
