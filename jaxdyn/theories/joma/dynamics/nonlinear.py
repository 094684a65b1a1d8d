"""Nonlinear activation: Theorems 3 and 4.

Theorem 3 of JoMA: the population gradient of a node with a nonlinear activation on a mixture of isotropic components.

Letters: d tokens, C mixture components, n quadrature nodes. ``v`` = projected weights, ``xi`` = residual-path projection,
``centres`` = component means, ``a`` = E_c[g] P[c], ``r`` = v . centre + xi, ``p`` = density of one noise coordinate.
Source: arXiv:2310.00535, Theorem 3.

JoMA near a critical point: the exact solution behind Theorem 4, and the entropy of attention along it.

Letters: d tokens, T times; mu = critical point, delta = 1 - v/mu, s = ln(1/delta), kappa = mu^2/T with temperature T = 2 in the
theorem and T = 3 in Fig. 4. Source: arXiv:2310.00535, Theorem 4 and section 4.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtr
from jaxtyping import Array, Float

import jaxdyn as jd
from jaxdyn import flow

ACTIVATIONS = ("id", "relu", "tanh", "gelu", "silu")
NOISES = ("gauss", "sphere")
NODES = 161
REACH, CORE = 9.0, 6.0  # standard deviations: beyond the first nothing is integrated, beyond the second no nodes are gathered


def activation(phi: jd.Code, x: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """The activation that the switch names, one of ``ACTIVATIONS`` (GELU in its exact form)."""
    forms: dict[str, Callable[..., Any]] = {
        "id": lambda y: y,
        "relu": jax.nn.relu,
        "tanh": jnp.tanh,
        "gelu": functools.partial(jax.nn.gelu, approximate=False),
        "silu": jax.nn.silu,
    }
    return jax.lax.switch(phi.index, [forms[name] for name in phi.names], x)


def _normal(x: Float[Array, "*n"]) -> Float[Array, "*n"]:
    return jnp.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)


def _silu_slope(x: Float[Array, "*n"]) -> Float[Array, "*n"]:
    s = jax.nn.sigmoid(x)
    return s * (1 + x * (1 - s))


def activation_slope(phi: jd.Code, x: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """Its derivative, written out (the theory does not differentiate the network's code)."""
    forms = {
        "id": jnp.ones_like,
        "relu": lambda y: jnp.where(y > 0, 1.0, 0.0).astype(y.dtype),
        "tanh": lambda y: 1 / jnp.square(jnp.cosh(y)),
        "gelu": lambda y: ndtr(y) + y * _normal(y),
        "silu": _silu_slope,
    }
    return jax.lax.switch(phi.index, [forms[name] for name in phi.names], x)


@functools.cache
def _rules() -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights (2, n) on [-1, 1]: trapezoid for the normal law, Gauss-Legendre for the sphere."""
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    return np.stack([np.linspace(-1, 1, NODES), nodes]), np.stack([np.ones(NODES), weights])


def _nodes(
    noise: jd.Code, centre: Float[Array, " C"], width: Float[Array, ""], d: int
) -> tuple[Float[Array, "C n"], Float[Array, "C n"]]:
    r"""Nodes e and weights (sum 1) for a noise coordinate of unit variance, gathered around the zero of the pre-activation.

    .. math:: e = e_0 + \sinh(t)/w, \quad w = \text{width}

    In t the poles of a slope such as tanh' stay at a distance of :math:`\pi/2` from the real line, however large w is. On the
    sphere the same is done with the angle b of :math:`e = \sqrt d \sin b`, whose density is :math:`\cos(b)^{d-2}`.
    """
    gauss, root = noise == "gauss", math.sqrt(d)
    deviation = 1 / math.sqrt(d - 2)  # of the angle
    angle = jnp.arcsin(jnp.clip(centre / root, -1, 1))
    reach = jnp.where(gauss, REACH, min(math.pi / 2, REACH * deviation))
    core = jnp.where(gauss, CORE, min(math.pi / 2, CORE * deviation))
    scale = width * jnp.where(gauss, 1.0, root)
    middle = jnp.clip(jnp.where(gauss, centre, angle), -core, core)[:, None]
    low, high = jnp.arcsinh(scale * (-reach - middle)), jnp.arcsinh(scale * (reach - middle))
    unit, weights = (jnp.asarray(part, centre.dtype)[noise.index] for part in _rules())
    t = 0.5 * (low + high) + 0.5 * (high - low) * unit
    b = middle + jnp.sinh(t) / scale
    weights = weights * jnp.cosh(t) * jnp.where(gauss, jnp.exp(-0.5 * b * b), jnp.cos(b) ** (d - 2))
    return jnp.where(gauss, b, root * jnp.sin(b)), weights / jnp.sum(weights, -1, keepdims=True)


@functools.cache
def _legendre() -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre nodes and weights on [0, 1]."""
    x, w = np.polynomial.legendre.leggauss(64)
    return (x + 1) / 2, w / 2


def _step_moments(noise: jd.Code, u: Float[Array, " C"], d: int) -> tuple[Float[Array, " C"], Float[Array, " C"]]:
    r"""``P(e > -u)`` and ``E[e; e > -u]`` for a noise coordinate ``e`` of unit variance: the ReLU's two integrals in closed form.

    On the sphere the density is proportional to ``(1 - e^2/d)^((d-3)/2)``; with ``e = sqrt(d) sin(b)`` it becomes ``cos(b)^(d-2)``.
    """
    x, w = (jnp.asarray(part, u.dtype) for part in _legendre())
    size = math.exp(math.lgamma(d / 2) - math.lgamma((d - 1) / 2)) / math.sqrt(math.pi)
    sine = jnp.clip(u / math.sqrt(d), -1, 1)
    angle = jnp.arcsin(sine)
    mass = 0.5 + size * angle * jnp.sum(w * jnp.cos(angle[..., None] * x) ** (d - 2), -1)
    first = size * math.sqrt(d) / (d - 1) * jnp.sqrt(1 - sine * sine) ** (d - 1)
    return jnp.where(noise == "gauss", ndtr(u), mass), jnp.where(noise == "gauss", _normal(u), first)


def theta(
    phi: jd.Code, noise: jd.Code, r: Float[Array, " C"], norm: Float[Array, ""], scale: Float[Array, ""], d: int
) -> tuple[Float[Array, " C"], Float[Array, " C"]]:
    r"""The two integrals of Theorem 3 for isotropic noise of variance ``scale**2`` per coordinate.

    .. math:: \theta_1(r) = \|v\| E[\phi'(r + \|v\| \epsilon_1)], \qquad
              \theta_2(r) = \|v\|^2 E[\phi'(r + \|v\| \epsilon_1)\,\epsilon_1]

    Source: Theorem 3. Departures: the dependence on ``norm`` is written out (the theorem's text names only r and the activation);
    the integrals are accurate to 1e-9 of :math:`\|v\|` and :math:`\|v\|^2` for ``scale * norm`` up to 100 (a Gauss-Hermite
    rule of 64 nodes is 2% off at 4); the ReLU, whose slope is a step, has closed forms.

    Args:
        phi: switch between names in ``ACTIVATIONS``, "relu" among them.
        noise: switch between ``NOISES``: normal, or uniform on the sphere of radius ``scale * sqrt(d)``.
        r: pre-activation of each component's centre.
        norm: the norm of v, > 0.
        scale: standard deviation of a coordinate.
        d: dimension, > 2 (static).
    """
    # by quadrature for smooth slopes, in closed form for the step
    width = norm * scale
    nodes, weights = _nodes(noise, -r / width, width, d)
    slopes = activation_slope(phi, r[:, None] + width * nodes) * weights
    smooth = jnp.sum(slopes, -1), jnp.sum(slopes * nodes, -1)
    step = _step_moments(noise, r / width, d)
    first, second = (jnp.where(phi == "relu", a, b) for a, b in zip(step, smooth, strict=True))
    return norm * first, norm * norm * scale * second


def mixture_field(
    v: Float[Array, " d"],
    xi: Float[Array, ""],
    centres: Float[Array, "C d"],
    a: Float[Array, " C"],
    phi: jd.Code,
    noise: jd.Code,
    scale: Float[Array, ""],
    *,
    keep_xi: float | Float[Array, ""] = 1.0,
    theta_norm: float | Float[Array, ""] | None = None,
) -> tuple[Float[Array, " d"], Float[Array, ""]]:
    r"""Right-hand side of Theorem 3: population gradient flow of one node under uniform attention.

    .. math:: \dot v = \frac{1}{\|v\|} \sum_c a_c \theta_1(r_c) \bar x_c + \frac{1}{\|v\|^3} \sum_c a_c \theta_2(r_c)\, v,
              \qquad \dot\xi = \frac{1}{\|v\|} \sum_c a_c \theta_1(r_c), \qquad r_c = v \cdot \bar x_c + \xi

    Args:
        v: projected weights, not zero.
        xi: residual-path projection.
        centres: component means.
        a: E_c[g] P[c], constant in time.
        phi: activation, as in :func:`theta`.
        noise: as in :func:`theta`.
        scale: standard deviation of a noise coordinate.
        keep_xi: 0 drops xi from ``r`` (for controls).
        theta_norm: the norm inside the integrals; that of ``v`` by default (1 reads theta as a function of r alone).
    """
    # pre-activations of the centres, and the two integrals there
    norm = jnp.linalg.norm(v)
    r = centres @ v + keep_xi * xi
    inner = norm if theta_norm is None else jnp.asarray(theta_norm, norm.dtype)
    first, second = theta(phi, noise, r, inner, scale, v.shape[0])
    pull = a * first / norm
    return pull @ centres + jnp.sum(a * second) / norm**3 * v, jnp.sum(pull)


LEGENDRE = 64


@functools.cache
def _thm4_legendre() -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre nodes and weights on [0, 1]."""
    x, w = np.polynomial.legendre.leggauss(LEGENDRE)
    return (x + 1) / 2, w / 2


def offset(s: Float[Array, ...], kappa: Float[Array, ...], s0: Float[Array, ...] | float = 0.0) -> Float[Array, ...]:
    r"""Lag of a component behind uniform motion at its final speed, C(s).

    .. math:: C(s) = \int_{e^{-s}}^{e^{-s_0}} \frac{e^{\kappa (2\delta - \delta^2)} - 1}{\delta}\, d\delta

    Source: exact form of Theorem 4 (kappa = mu^2/2), by Gauss-Legendre with 64 nodes: the integrand is entire.
    """
    x, w = (jnp.asarray(part, s.dtype) for part in _thm4_legendre())
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
