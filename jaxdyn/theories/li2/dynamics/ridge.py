r"""Stage I: the ridge solution on top, the flow of both layers, and one more layer.

Stage I of Li2: the top layer learns on frozen features, and the gradient that it sends back to the hidden layer.

.. math:: J = \tfrac12 \|\tilde Y - \tilde F V\|_F^2 + \tfrac\eta2 \|V\|_F^2, \qquad \dot V = -A V + \tilde F^\top \tilde Y, \qquad
    A = \tilde F^\top \tilde F + \eta I, \qquad G_F = -\frac{dJ}{dF} = (\tilde Y - \tilde F V) V^\top

with F and Y centred over the samples (centring twice changes nothing: all functions do it themselves). At the ridge solution

.. math:: G_F = P_\eta \tilde Y \tilde Y^\top \tilde F B, \qquad P_\eta = \eta S^{-1}, \qquad S = \tilde F \tilde F^\top + \eta I,
    \qquad B = A^{-1}.

Many random nodes make :math:`\tilde F \tilde F^\top` its mean, K times the centred kernel k(t), t shared operands; on the class
signal of full data that is :math:`K c`, :math:`c = k(2) - 2 k(1) + k(0)`.
Source: arXiv:2509.21519, Proposition 1, Lemma 1, appendix C. Letters: n samples, K hidden nodes, M classes.
Departure: the limits of vanishing ridge and of great width are the corrected ones (see each function).

The flow of both layers, written out: the hidden layer is driven by the signal that the top layer sends back.

.. math:: \dot W = X^\top\bigl(\sigma'(XW) \circ G_F\bigr) - \lambda W, \qquad
    \dot V = \tilde F^\top(\tilde Y - \tilde F V) - \eta V, \qquad G_F = (\tilde Y - \tilde F V) V^\top

for :math:`\sigma = x^2`; X is never built. Source: arXiv:2509.21519, section 3.
Letters: n samples, K hidden nodes, M elements, D = 2M.

One more layer in Li2: the signal that a wide random ReLU layer passes to the layer below.

With :math:`F_2 = \sigma(F_1 W)` and the early signal :math:`G_2 = S F_2`, :math:`S = \tilde Y \tilde Y^\top`, sample i of the layer
below receives :math:`\sum_{jk} S_{ij}\, \sigma'(a_{ik})\, \sigma(a_{jk})\, w_k`, :math:`a = F_1 W`. Its mean over a Gaussian node w
of variance one is, by parts (Stein),

.. math:: \sum_j S_{ij} \bigl( \kappa_{ij} F_{1j} + \rho_{ij} F_{1i} \bigr), \qquad \kappa = \frac{\pi - \theta}{2\pi}, \qquad
    \rho_{ij} = \frac{\|F_{1j}\|}{\|F_{1i}\|} \frac{\sin\theta_{ij}}{2\pi},

theta the angle between the rows of F_1. The first term is :math:`D S D F_1` with averaged masks D, as if independent of w; the
second comes from their dependence on it.
Source: arXiv:2509.21519, extension to deeper networks, has the first term (masks, and :math:`W W^\top \approx I`); the second is
derived. Letters: n samples, d nodes below, K above.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from jaxdyn import linalg
from jaxdyn.errors import UsageError
from jaxdyn.theories.li2 import model
from jaxdyn.theories.li2.model import activate, centred

Scalar = float | Float[Array, ""]

KINKS = 0.5  # kinks of activations are at multiples of this
POINTS = 12  # Gauss-Legendre nodes of a panel
TAIL = 10.0  # standard deviations: beyond, the normal law has 1e-23 of its mass
TERMS = 60  # of Mehler's series: 2^-60 is below rounding


def gram(f: Float[Array, "n K"], eta: Scalar) -> Float[Array, "K K"]:
    r""":math:`A = \tilde F^\top \tilde F + \eta I`."""
    f = centred(f)
    return f.T @ f + eta * jnp.eye(f.shape[1], dtype=f.dtype)


def gram_inverse(f: Float[Array, "n K"], eta: Scalar) -> Float[Array, "K K"]:
    r""":math:`B = A^{-1}`; for K > n through the n by n matrix, :math:`\eta B = I - \tilde F^\top S^{-1} \tilde F`."""
    f = centred(f)
    n, hidden = f.shape
    one = jnp.eye(hidden, dtype=f.dtype)
    if hidden <= n:
        return linalg.solve(gram(f, eta), one)
    return (one - f.T @ linalg.solve(_outer(f, eta), f)) / eta


def residual_operator(f: Float[Array, "n K"], eta: Scalar) -> Float[Array, "n n"]:
    r""":math:`P_\eta`: takes targets to their residuals under ridge regression on these features. No projection for eta > 0."""
    f = centred(f)
    return eta * linalg.solve(_outer(f, eta), jnp.eye(f.shape[0], dtype=f.dtype))


def _outer(f: Float[Array, "n K"], eta: Scalar) -> Float[Array, "n n"]:
    return f @ f.T + eta * jnp.eye(f.shape[0], dtype=f.dtype)


def solution(f: Float[Array, "n K"], y: Float[Array, "n M"], eta: Scalar) -> Float[Array, "K M"]:
    r"""The ridge solution :math:`V = A^{-1} \tilde F^\top \tilde Y`, through the smaller of the two Gram matrices."""
    f, y = centred(f), centred(y)
    if f.shape[1] <= f.shape[0]:
        return linalg.solve(gram(f, eta), f.T @ y)
    return f.T @ linalg.solve(_outer(f, eta), y)


def backward(f: Float[Array, "n K"], y: Float[Array, "n M"], v: Float[Array, "K M"]) -> Float[Array, "n K"]:
    r""":math:`G_F = (\tilde Y - \tilde F V) V^\top` at any top layer."""
    return (centred(y) - centred(f) @ v) @ v.T


def fixed(f: Float[Array, "n K"], y: Float[Array, "n M"], eta: Scalar) -> Float[Array, "n K"]:
    r""":math:`G_F = \eta S^{-1} \tilde Y \tilde Y^\top S^{-1} \tilde F`: at the ridge solution.

    A network with output scale beta, trained with the same ridge, has this at :math:`\eta / \beta^2`: its loss is J of beta V.
    Source: arXiv:2509.21519, Proposition 1; the scale: equation 69, there without the factor beta of the chain rule.
    """
    f, y = centred(f), centred(y)
    s = _outer(f, eta)
    return eta * linalg.solve(s, y) @ (y.T @ linalg.solve(s, f))


def early(f: Float[Array, "n K"], y: Float[Array, "n M"]) -> Float[Array, "n K"]:
    r""":math:`\tilde Y \tilde Y^\top \tilde F`: the rate at which :math:`G_F` grows from a small V."""
    f, y = centred(f), centred(y)
    return y @ (y.T @ f)


def path(
    f: Float[Array, "n K"], y: Float[Array, "n M"], v0: Float[Array, "K M"], eta: Scalar, ts: Float[Array, " T"]
) -> Float[Array, "T K M"]:
    r""":math:`V(t) = e^{-At}(V_0 - V^*) + V^*` at the given times, by the eigenvectors of A.

    Written as :math:`e^{-\lambda t} V_0 + \lambda^{-1}(1 - e^{-\lambda t}) \tilde F^\top \tilde Y`: no digits are lost early.
    Source: arXiv:2509.21519, appendix C.
    """
    f, y = centred(f), centred(y)
    lam, q = linalg.eigh(gram(f, eta))
    decay = (lam * ts[:, None])[..., None]
    drive = -jnp.expm1(-decay) / lam[:, None] * (q.T @ (f.T @ y))
    return q @ (jnp.exp(-decay) * (q.T @ v0) + drive)


class Unridged(NamedTuple):
    """G_F for vanishing ridge: ``limit``, and ``slope``, its rate in eta where the limit is zero (targets in the span)."""

    limit: Float[Array, "n K"]
    slope: Float[Array, "n K"]


def unridged(f: Float[Array, "n K"], y: Float[Array, "n M"], cutoff: float = 1e-9) -> Unridged:
    r"""The leading terms of :math:`G_F` as eta vanishes.

    .. math:: G_F \to (I - \Pi) \tilde Y \tilde Y^\top \tilde F^{+\top}, \qquad
        \text{or}\quad \eta\, (\tilde F \tilde F^\top)^+ \tilde Y \tilde Y^\top \tilde F^{+\top} \quad\text{where that is zero,}

    with Pi the projector on the columns of F~.
    Source: arXiv:2509.21519, Lemma 1, which takes the first term for zero: right only where the targets lie in the span of
    the features, that is for random ones with K >= n - 1. Singular values below ``cutoff`` times the largest count as zero.
    """
    f, y = centred(f), centred(y)
    u, s, vt = linalg.svd(f)
    inverse = jnp.where(s > cutoff * s[0], 1 / jnp.where(s > 0, s, 1), 0)
    u = u * (inverse > 0)
    inside = u.T @ y
    back = (y @ inside.T * inverse) @ vt
    return Unridged(back - u @ (u.T @ back), u * jnp.square(inverse) @ (u.T @ back))


def span(f: Float[Array, "n K"], y: Float[Array, "n M"], cutoff: float = 1e-9) -> tuple[Float[Array, ""], Float[Array, " r"]]:
    """Share of the squared targets outside the span of the features, and the features' singular values, infinite where they are 0.

    Singular values below ``cutoff`` times the largest count as zero, as in ``unridged``.
    """
    f, y = centred(f), centred(y)
    u, s, _ = linalg.svd(f)
    there = s > cutoff * s[0]
    rest = y - (u * there) @ ((u * there).T @ y)
    return jnp.sum(jnp.square(rest)) / jnp.sum(jnp.square(y)), jnp.where(there, s, jnp.inf)


def kernel(activation: str | Callable[[Array], Array], t: int, scale: float = 1.0) -> float:
    r""":math:`k(t) = E[\sigma(a)\sigma(b)]`, a and b Gaussian of variance :math:`2s^2` and covariance :math:`t s^2`, t in 0, 1, 2.

    Closed forms where there is one (for relu and its square the arc-cosine kernels), else Mehler's series
    :math:`\sum_n c_n^2 (t/2)^n` in the Hermite coefficients of :math:`\sigma(\sqrt 2 s x)`.
    Source: arXiv:2509.21519, Lemma 1; arc-cosine kernels: Cho and Saul 2009, equation 6. ``scale`` is s, W's standard deviation.

    Args:
        activation: a name of ``model.ACTIVATIONS`` or of ``jax.nn``, or a function of arrays, entry by entry. Kinks, if any, are at
            multiples of 1/2.
        t: the number of operands shared.
        scale: s.

    Raises:
        UsageError: for another number of operands, an unknown name, or a function that does not act entry by entry.
    """
    if t not in (0, 1, 2):
        raise UsageError(f"t={t} is not allowed: it is 0, 1 or 2 shared operands")
    variance, covariance = 2 * scale**2, t * scale**2
    cosine = covariance / variance
    angle = np.arccos(np.clip(cosine, -1, 1))
    # closed forms
    if activation == "square":
        return variance**2 + 2 * covariance**2
    if activation == "cube":
        return 9 * variance**2 * covariance + 6 * covariance**3
    if activation == "linear":
        return covariance
    if activation == "relu":
        return float(variance * (np.sin(angle) + (np.pi - angle) * cosine) / (2 * np.pi))
    if activation == "relu2":
        order2 = 3 * np.sin(angle) * cosine + (np.pi - angle) * (1 + 2 * cosine**2)
        return float(variance**2 * order2 / (2 * np.pi))
    # Mehler's series
    return _series(activation, float(np.sqrt(variance)), cosine)


def _series(activation: str | Callable[[Array], Array], deviation: float, cosine: float) -> float:
    """Mehler's series for a correlation of at most 1/2, where it gains a factor 2 per term; the plain integral for 1."""
    x, weight = _panels(deviation)
    values = _on_host(activation, deviation * x)
    if cosine == 1:
        return float(weight @ np.square(values))
    hermite, before, total = np.ones_like(x), np.zeros_like(x), 0.0
    for n in range(TERMS):
        total += (weight @ (values * hermite)) ** 2 * cosine**n
        hermite, before = (x * hermite - np.sqrt(n) * before) / np.sqrt(n + 1), hermite
    return float(total)


def _panels(deviation: float) -> tuple[Float[np.ndarray, " q"], Float[np.ndarray, " q"]]:
    """Nodes x and weights of the standard normal law, by Gauss-Legendre on panels between multiples of 1/2 of ``deviation`` x."""
    node, weight = np.polynomial.legendre.leggauss(POINTS)
    width = KINKS / max(1, np.ceil(2 * KINKS / deviation)) / deviation  # at most half a standard deviation
    count = int(np.ceil(TAIL / width))
    x = width * ((np.arange(-count, count) + 0.5)[:, None] + node / 2).ravel()
    return x, np.tile(weight, 2 * count) * width / 2 * np.exp(-np.square(x) / 2) / np.sqrt(2 * np.pi)


def _on_host(activation: str | Callable[[Array], Array], x: Float[np.ndarray, " q"]) -> Float[np.ndarray, " q"]:
    """sigma(x) in float64, also while a trial is traced."""
    allowed = "it maps an array entry by entry"
    try:
        with jax.enable_x64(True), jax.ensure_compile_time_eval():
            values, every_other = (np.asarray(activate(jnp.asarray(part, jnp.float64), activation)) for part in (x, x[::2]))
    except TypeError as error:
        raise UsageError(f"activation={activation!r} is not allowed: {allowed}") from error
    if values.shape != x.shape or not np.allclose(values[::2], every_other):
        raise UsageError(f"activation={activation!r} is not allowed: {allowed}")
    return values


def contrast(activation: str | Callable[[Array], Array], scale: float = 1.0) -> float:
    r"""The kernel's eigenvalue on the class signal of full data, :math:`c = k(2) - 2k(1) + k(0)`; :math:`4 s^4` for x^2.

    It is that of all functions of both operands that have no mean over either, and targets on full data are such.
    Source: derived; arXiv:2509.21519, Lemma 1, has another constant.
    """
    return kernel(activation, 2, scale) - 2 * kernel(activation, 1, scale) + kernel(activation, 0, scale)


def wide(hidden: Float[Array, "*k"], eta: Scalar, c: Scalar) -> Float[Array, "*k"]:
    r"""The factor of :math:`\tilde Y \tilde Y^\top \tilde F` in :math:`G_F` for K >> n: :math:`\eta / (K c + \eta)^2`."""
    return eta / jnp.square(hidden * c + eta)


def wide_as_printed(hidden: Float[Array, "*k"], samples: int, eta: Scalar, c1: Scalar, c2: Scalar) -> Float[Array, "*k"]:
    r"""Lemma 1's factor as printed, :math:`\eta / ((K c_1 + \eta)(n c_2 + \eta))`, with :math:`c_1 = c_2 = k(2) - k(0)`.

    It takes the K by K matrix :math:`\tilde F^\top \tilde F`, of rank n - 1 at most, for a multiple of the identity.
    """
    return eta / ((hidden * c1 + eta) * (samples * c2 + eta))


class Problem(NamedTuple):
    """Pairs, one-hot labels, the weight decay of V (eta) and of W, and the rate of V: 1, or 0 where the top layer is frozen."""

    samples: Int[Array, "n 2"]
    y: Float[Array, "n M"]
    eta: Float[Array, ""]
    decay: Float[Array, ""]
    rate: Float[Array, ""]


def field(_: Any, p: model.Params, given: Problem) -> model.Params:
    """The velocities of W and V."""
    a = model.preactivations(p.w, given.samples)
    f = model.centred(jnp.square(a))
    residual = model.centred(given.y) - f @ p.v
    change = 2 * a * backward(f, given.y, p.v)
    left, right = given.samples[:, 0], p.w.shape[0] // 2 + given.samples[:, 1]
    pull = jnp.zeros_like(p.w).at[left].add(change).at[right].add(change)
    return model.Params(pull - given.decay * p.w, given.rate * (f.T @ residual - given.eta * p.v))


def masked(f: Float[Array, "n d"], signal: Float[Array, "n n"]) -> Float[Array, "n d"]:
    """The first term: the signal reweighted by how often two samples are active together."""
    return (signal * ((jnp.pi - _angles(f)) / (2 * jnp.pi))) @ f


def received(f: Float[Array, "n d"], signal: Float[Array, "n n"]) -> Float[Array, "n d"]:
    """The mean of what one random node sends to the layer below: both terms."""
    norms = jnp.linalg.norm(f, axis=1)
    own = jnp.sum(signal * jnp.sin(_angles(f)) * norms, 1) / (2 * jnp.pi * norms)
    return masked(f, signal) + own[:, None] * f


def _angles(f: Float[Array, "n d"]) -> Float[Array, "n n"]:
    unit = f / jnp.linalg.norm(f, axis=1, keepdims=True)
    return jnp.arccos(jnp.clip(unit @ unit.T, -1, 1))
