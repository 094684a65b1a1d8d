r"""JoMA with a nonlinear activation: the field of Theorem 3, and the dynamics near a critical point (Theorem 4).

Letters: d tokens, C mixture components, n quadrature nodes, T times. ``v`` = projected weights, ``xi`` = residual-path
projection, ``centres`` = component means, ``a`` = E_c[g] P[c], ``r`` = v . centre + xi, ``p`` = density of one noise coordinate.
Near a critical point: ``mu`` = its place, ``delta`` = 1 - v/mu, ``s`` = ln(1/delta), ``kappa`` = mu^2/T with T = 2 in the theorem
and T = 3 in Fig. 4. Source of all statements: JoMA, arXiv:2310.00535.
"""

from __future__ import annotations

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
from jax.scipy.special import ndtr
from jaxtyping import Array, Float, Int

__all__ = [
    "ACTIVATIONS",
    "NOISES",
    "activation",
    "activation_slope",
    "clock",
    "entropy_of_logits",
    "linear_slope_ratio",
    "mixture_field",
    "offset",
    "orbit",
    "orbit_in_softmax_time",
    "slope_ratio",
    "theta",
]

ACTIVATIONS = ("id", "relu", "tanh", "gelu", "silu")
NOISES = ("gauss", "sphere")
NODES = 161  # trapezoid on [-9, 9]: error below 1e-9 for tanh at scale * norm <= 4, where Gauss-Hermite with 64 nodes is 2% off
REACH = 9.0
LEGENDRE = 64


def activation(code: Int[Array, ""], x: Float[Array, ...]) -> Float[Array, ...]:
    """The activation number ``code`` of ``ACTIVATIONS`` (GELU in its exact form)."""
    branches = (lambda y: y, jax.nn.relu, jnp.tanh, functools.partial(jax.nn.gelu, approximate=False), jax.nn.silu)
    return jax.lax.switch(code, branches, x)


def _normal(x: Float[Array, ...]) -> Float[Array, ...]:
    return jnp.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)


def _silu_slope(x: Float[Array, ...]) -> Float[Array, ...]:
    s = jax.nn.sigmoid(x)
    return s * (1 + x * (1 - s))


def activation_slope(code: Int[Array, ""], x: Float[Array, ...]) -> Float[Array, ...]:
    """Its derivative, written out (the theory does not differentiate the network's code)."""
    branches = (
        jnp.ones_like,
        lambda y: jnp.where(y > 0, 1.0, 0.0).astype(y.dtype),
        lambda y: 1 / jnp.square(jnp.cosh(y)),
        lambda y: ndtr(y) + y * _normal(y),
        _silu_slope,
    )
    return jax.lax.switch(code, branches, x)


@functools.cache
def _rules(d: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights (2, n) for one coordinate of noise of unit variance: standard normal; sphere of radius sqrt(d)."""
    normal = np.linspace(-REACH, REACH, NODES)
    density = np.exp(-0.5 * normal**2)
    sphere, weights = scipy.special.roots_gegenbauer(NODES, (d - 2) / 2)
    nodes = np.stack([normal, sphere * math.sqrt(d)])
    return nodes, np.stack([density / density.sum(), weights / weights.sum()])


@functools.cache
def _legendre() -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre nodes and weights on [0, 1]."""
    x, w = np.polynomial.legendre.leggauss(LEGENDRE)
    return (x + 1) / 2, w / 2


def _step_moments(noise: Int[Array, ""], u: Float[Array, ...], d: int) -> tuple[Float[Array, ...], Float[Array, ...]]:
    r"""``P(e > -u)`` and ``E[e; e > -u]`` for a noise coordinate ``e`` of unit variance: the ReLU's two integrals in closed form.

    On the sphere the density is proportional to ``(1 - e^2/d)^((d-3)/2)``; with ``e = sqrt(d) sin(b)`` it becomes ``cos(b)^(d-2)``.
    """
    x, w = (jnp.asarray(part, u.dtype) for part in _legendre())
    size = math.exp(math.lgamma(d / 2) - math.lgamma((d - 1) / 2)) / math.sqrt(math.pi)
    sine = jnp.clip(u / math.sqrt(d), -1, 1)
    angle = jnp.arcsin(sine)
    mass = 0.5 + size * angle * jnp.sum(w * jnp.cos(angle[..., None] * x) ** (d - 2), -1)
    first = size * math.sqrt(d) / (d - 1) * jnp.sqrt(1 - sine * sine) ** (d - 1)
    return jnp.where(noise == 0, ndtr(u), mass), jnp.where(noise == 0, _normal(u), first)


def theta(
    code: Int[Array, ""], noise: Int[Array, ""], r: Float[Array, " C"], norm: Float[Array, ""], scale: Float[Array, ""], d: int
) -> tuple[Float[Array, " C"], Float[Array, " C"]]:
    r"""The two integrals of Theorem 3 for isotropic noise of variance ``scale**2`` a coordinate.

    .. math:: \theta_1(r) = \|v\| E[\phi'(r + \|v\| \epsilon_1)], \qquad
              \theta_2(r) = \|v\|^2 E[\phi'(r + \|v\| \epsilon_1)\,\epsilon_1]

    Source: Theorem 3. Departures: the dependence on ``norm`` is written out (the theorem's text names only r and the activation);
    the normal law is integrated by the trapezoid rule, which converges much faster here than Gauss-Hermite (poles of tanh'
    near the real line); the ReLU, a step, has closed forms.

    Args:
        code: index into ``ACTIVATIONS``.
        noise: index into ``NOISES``: normal, or uniform on the sphere of radius ``scale * sqrt(d)``.
        r: pre-activation of each component's centre.
        norm: the norm of v, > 0.
        scale: standard deviation of a coordinate.
        d: dimension, > 2 (static).
    """
    width = norm * scale
    nodes, weights = (jnp.asarray(part, r.dtype)[noise] for part in _rules(d))
    slopes = activation_slope(code, r[:, None] + width * nodes) * weights
    smooth = jnp.sum(slopes, -1), jnp.sum(slopes * nodes, -1)
    step = _step_moments(noise, r / width, d)
    first, second = (jnp.where(code == ACTIVATIONS.index("relu"), a, b) for a, b in zip(step, smooth, strict=True))
    return norm * first, norm * norm * scale * second


def mixture_field(
    v: Float[Array, " d"],
    xi: Float[Array, ""],
    centres: Float[Array, "C d"],
    a: Float[Array, " C"],
    code: Int[Array, ""],
    noise: Int[Array, ""],
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
        code: index into ``ACTIVATIONS``.
        noise: index into ``NOISES``.
        scale: standard deviation of a noise coordinate.
        keep_xi: 0 drops xi from ``r`` (a breach, for controls).
        theta_norm: the norm inside the integrals; that of ``v`` by default (1 reads theta as a function of r alone).
    """
    norm = jnp.linalg.norm(v)
    r = centres @ v + keep_xi * xi
    inner = norm if theta_norm is None else jnp.asarray(theta_norm, norm.dtype)
    first, second = theta(code, noise, r, inner, scale, v.shape[0])
    pull = a * first / norm
    return pull @ centres + jnp.sum(a * second) / norm**3 * v, jnp.sum(pull)


def offset(s: Float[Array, ...], kappa: Float[Array, ...], s0: Float[Array, ...] | float = 0.0) -> Float[Array, ...]:
    r"""How far a component lags behind its final speed.

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
