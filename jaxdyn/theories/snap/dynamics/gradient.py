r"""The gradient of Scan & Snap in closed form, and what it is for a decoder whose inputs do not overlap (Theorem 1).

.. math:: g_n = Y(e_{\text{label}(n)} - \alpha_n), \qquad \dot Y = \sum_n w_n f_n (e_{\text{label}(n)} - \alpha_n)^\top, \qquad
          \dot z_m = \sum_{n:\,\psi(n)=m} w_n \,\text{diag}(f_n)(I - f_n f_n^\top)\, g_n

Source: arXiv:2305.16380, Lemma 1 and Theorem 1. Letters: M tokens (``size``), K classes n with law P, query row psi(n), next token
label(n) and frequency w; c attention, f = c / |c|, alpha probabilities of the next token, u the decoder's clock (``clock.py``),
eta the decoder's learning rate. Directions are those of ascent of J; learning rates are left to the caller.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from scipy.special import lambertw

from jaxdyn.theories.snap.dynamics.clock import miss

Scalar = int | float | Float[Array, "*#n"]


def attention(z: Float[Array, "*n M"], p: Float[Array, "*n M"]) -> Float[Array, "*n M"]:
    r"""Attention at infinite length, :math:`c_l = P(l)\,e^{z_l} / \sum_j P(j)\,e^{z_j}` (Lemma 2)."""
    return jax.nn.softmax(jnp.where(p > 0, z + jnp.log(jnp.where(p > 0, p, 1.0)), -jnp.inf))


def unit(c: Float[Array, "*n M"]) -> Float[Array, "*n M"]:
    """The network's normalisation, f = c / |c|."""
    return c / jnp.sqrt(jnp.sum(c * c, -1, keepdims=True))


def spread(z: Float[Array, "*n M"], p: Float[Array, "*n M"], length: Int[Array, " T"] | Float[Array, " T"]) -> Float[Array, "*n T"]:
    r"""Root mean square distance of the attention of T independent tokens from its limit, to leading order in 1/T.

    .. math:: E\|c_T - c\|^2 = \frac{1}{T} \sum_l \frac{c_l^2}{P(l)} \bigl(1 - 2 c_l + \|c\|^2\bigr)

    Derived: c moves by :math:`\text{diag}(a)\delta - c\,(a\cdot\delta)` with a = c / P when the frequencies move by delta, whose
    covariance is :math:`(\text{diag} P - PP^\top)/T`, and this map takes P to 0.
    """
    c = attention(z, p)
    share = jnp.where(p > 0, c * c / jnp.where(p > 0, p, 1.0), 0.0)
    total = jnp.sum(share * (1 - 2 * c + jnp.sum(c * c, -1, keepdims=True)), -1)
    return jnp.sqrt(total[..., None] / length)


def backpropagated(y: Float[Array, "M M"], f: Float[Array, "*n M"], label: Int[Array | np.ndarray, "*n"]) -> Float[Array, "*n M"]:
    r"""The gradient of J at the inputs f of the decoder, :math:`g = Y(e_\text{label} - \alpha)`."""
    return _error(y, f, label) @ y.T


def logit_rate(f: Float[Array, "*n M"], g: Float[Array, "*n M"], projector: Scalar = 1.0) -> Float[Array, "*n M"]:
    r"""What a class adds to the logits of its query, :math:`\text{diag}(f)(I - f f^\top)\,g` (``projector=0``: without ff^T)."""
    return f * (g - projector * f * jnp.sum(f * g, -1, keepdims=True))


def ascent(
    y: Float[Array, "M M"],
    z: Float[Array, "R M"],
    p: Float[Array, "K M"],
    query: Int[Array | np.ndarray, " K"],
    label: Int[Array | np.ndarray, " K"],
    weight: Float[Array, " K"],
    projector: Scalar = 1.0,
) -> tuple[Float[Array, "M M"], Float[Array, "R M"]]:
    """Gradients of J in (Y, Z) at infinite length (module docstring); counts of sequences may stand for p."""
    f = unit(attention(z[query], p))
    rows = weight[:, None] * logit_rate(f, backpropagated(y, f, label), projector)
    return (weight[:, None] * f).T @ _error(y, f, label), jnp.zeros_like(z).at[query].add(rows)


def sample_ascent(
    y: Float[Array, "M M"],
    z: Float[Array, "R M"],
    x: Float[Array, "T M"],
    query: Int[Array, ""],
    label: Int[Array, ""],
    projector: Scalar = 1.0,
) -> tuple[Float[Array, "M M"], Float[Array, "R M"]]:
    r"""Gradients of one sequence, position by position (Lemma 1); x holds one one-hot row for each contextual token.

    .. math:: \Delta Y = \text{LN}(X^\top b)(x_{T+1} - \alpha)^\top, \qquad
              \Delta Z = x_T (x_{T+1} - \alpha)^\top Y^\top \frac{P^\perp_{X^\top b}}{\|X^\top b\|} X^\top \text{diag}(b) X
    """
    b = jax.nn.softmax(x @ z[query])
    mass = x.T @ b
    size = jnp.sqrt(jnp.sum(mass**2))
    f = mass / size
    error = _error(y, f, label)
    g = y @ error
    row = (g - projector * f * jnp.dot(f, g)) / size @ (x.T @ (b[:, None] * x))
    return jnp.outer(f, error), jnp.zeros_like(z).at[query].set(row)


def iota(size: Scalar) -> Scalar:
    r"""Weight of f_n in its gradient, :math:`\iota = M/(M-1)`."""
    return size / (size - 1)


def beta(size: Scalar) -> Scalar:
    r"""Weight of every other class in the gradient, :math:`\beta = M/(M-1)^2`."""
    return size / (size - 1) ** 2


def gamma(u: Float[Array, "*n"], size: Scalar) -> Float[Array, "*n"]:
    r"""Speed of the gradient, :math:`\gamma = \frac{(M-1)^2}{M} \frac{u}{M - 1 + e^u}`, for a decoder whose clock reads u.

    It rises like :math:`((M-1)/M)^2\,\eta t/K` and falls like :math:`K \ln(M\eta t/K)/(\eta t)`.
    """
    return (size - 1) ** 2 / size * u * miss(u, size)


def gamma_integral(u: Float[Array, "*n"], size: Scalar, classes: Scalar, eta: Scalar) -> Float[Array, "*n"]:
    r"""The attention's own time, :math:`\Gamma = \int_0^t \gamma = \bigl(\tfrac{M-1}{M}\bigr)^2 \frac{K u^2}{2\eta}`."""
    return ((size - 1) / size) ** 2 * classes * u**2 / (2 * eta)


def gradient_form(f: Float[Array, "K M"], u: Float[Array, ""], size: Scalar) -> Float[Array, "K M"]:
    r"""Theorem 1 without overlap, :math:`g_n = \gamma\,(\iota f_n - \beta\sum_{n'\ne n} f_{n'})`, all classes equally frequent."""
    others = jnp.sum(f, 0) - f
    return gamma(u, size) * (iota(size) * f - beta(size) * others)


def xi(f: Float[Array, "K M"], u: Float[Array, ""], size: Scalar) -> Float[Array, " K"]:
    r"""Pressure on the distinct tokens of each class, :math:`\xi_n = \gamma\beta \sum_{n'\ne n} f_n\cdot f_{n'} \ge 0`."""
    return gamma(u, size) * beta(size) * (f @ jnp.sum(f, 0) - jnp.sum(f * f, -1))


def excess(f: Float[Array, "K M"]) -> Float[Array, ""]:
    r"""How far classes overlap, :math:`K\|E\|` with :math:`F^\top F = I + E` (spectral norm); Theorem 1 assumes it below 1."""
    return len(f) * jnp.linalg.norm(f @ f.T - jnp.eye(len(f), dtype=f.dtype), 2)


def time_at(u: Scalar, size: Scalar, classes: Scalar, eta: Scalar) -> Scalar:
    r"""The time at which the clock reads u, :math:`t = K\,\bigl((M-1)u + e^u - 1\bigr)/(M\eta)`."""
    return classes * ((size - 1) * u + jnp.expm1(u)) / (size * eta)


def peak(size: int | float) -> float:
    r"""The clock at the peak of gamma, :math:`e^u(u - 1) = M - 1`, that is :math:`u = 1 + W_0((M-1)/e)`.

    Args:
        size: M, a Python number of at least 2.
    """
    return 1.0 + float(lambertw((size - 1) / jnp.e).real)


def _error(y: Float[Array, "M M"], f: Float[Array, "*n M"], label: Int[Array | np.ndarray, "*n"]) -> Float[Array, "*n M"]:
    return jax.nn.one_hot(label, y.shape[1], dtype=y.dtype) - jax.nn.softmax(f @ y)
