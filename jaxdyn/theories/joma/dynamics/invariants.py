r"""Theorem 1: what attention logits and projected weights keep constant while they are trained together.

.. math::
   \text{exp: } z = \tfrac{r}{2\tau}\sum_k v_k^2 + c, \qquad \text{linear: } z^2 = r\sum_k v_k^2 + c, \qquad
   \text{softmax: } z = \tfrac{r}{2\tau}\sum_k\bigl(v_k^2 - \|v_k\|^2\,\bar b\bigr) + c

Source: arXiv:2310.00535, Theorem 1 (squares elementwise). Letters: v (m, k) projected weights, z (m,) logits of one query or their
law's sum over queries, r = learning rate of z over that of w, tau temperature, b attended frequencies, g ascent gradients at
the pre-activations. ``kind`` is a switch between kinds of attention; those without a law of their own have that of exp.

Any attention :math:`b_l = x_l s(z_l/\tau)` without a sum over tokens conserves
:math:`\tau\int \tfrac{s}{s'}\,dz - \tfrac{r}{2}\sum_k v_k^2`, by the same two derivatives; for :math:`s = \sigma` that is
:math:`z + \tau e^{z/\tau}` in the place of exp's z, and for ReLU linear attention's law where z is positive.

Departures: the softmax law has 1/2 and the sum over k on both terms; its factorisation assumption is needed for each node. The
rate of w is 1 wherever an integral over training appears, unless ``lr`` is given.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

import jaxdyn as jd
from jaxdyn import linalg
from jaxdyn.nn.choices import is_kind

Scalar = float | Float[Array, ""]
Kind: TypeAlias = jd.Code | str


def square_sum(v: Float[Array, "*t m k"], ratio: Scalar, tau: Scalar, kind: jd.Code) -> Float[Array, "*t m"]:
    r"""The weights' side of the law: :math:`\tfrac{r}{2\tau}\sum_k v_k^2`; for linear attention and ReLU :math:`r\sum_k v_k^2`."""
    return side_rate(ratio, tau, kind) * jnp.sum(v**2, -1)


def side_rate(ratio: Float[Array, "*m"] | Scalar, tau: Scalar, kind: Kind) -> Float[Array, "*m"]:
    r"""What multiplies the growth of :math:`\sum_k v_k^2` in the law: :math:`\tfrac{r}{2\tau}`; linear attention and ReLU: r."""
    return jnp.where((kind == "linear") | is_kind(kind, "relu"), ratio, 0.5 * ratio / tau)


def conserved_side(z: Float[Array, "*q m"], kind: Kind, tau: Scalar = 1.0) -> Float[Array, "*q m"]:
    r"""The logits' side of the law: z (exp), its square (linear; ReLU, of positive ones), :math:`z + \tau e^{z/\tau}` (sigmoid)."""
    side = jnp.where(kind == "linear", z**2, z)
    side = jnp.where(is_kind(kind, "relu"), jax.nn.relu(z) ** 2, side)
    return jnp.where(is_kind(kind, "sigmoid"), z + tau * jnp.exp(z / tau), side)


def logits_of(side: Float[Array, "*m"], start: Float[Array, "*m"], kind: str) -> Float[Array, "*m"]:
    """The logits from their side of the law at temperature 1; linear attention's and ReLU's have the signs of the start."""
    if kind == "linear":
        return jnp.sign(start) * jnp.sqrt(jnp.maximum(side, 0))
    if kind == "relu":
        return jnp.where(start > 0, jnp.sqrt(jnp.maximum(side, 0)), start)
    if kind != "sigmoid":
        return side

    def step(_: int | Int[Array, ""], z: Float[Array, "*m"]) -> Float[Array, "*m"]:
        return z - (z + jnp.exp(z) - side) / (1 + jnp.exp(z))  # from the right of the root, of a convex function

    return jax.lax.fori_loop(0, 8, step, jnp.where(side > 1, jnp.log(jnp.maximum(side, 1)), side))


def invariant(
    v: Float[Array, "*t m k"], v0: Float[Array, "m k"], side0: Float[Array, " m"], ratio: Scalar, tau: Scalar, kind: jd.Code
) -> Float[Array, "*t m"]:
    r"""The logits' side that Theorem 1 predicts from the weights: :math:`s_0 + \text{square\_sum}(v_t) - \text{square\_sum}(v_0)`.

    With many queries the same holds for the sum of the queries' sides, if all samples are in one batch: v is shared, each
    logit vector sees its own samples only. Source: Theorem 1; the sum law is a consequence of the same cancellation.
    """
    return side0 + square_sum(v, ratio, tau, kind) - square_sum(v0, ratio, tau, kind)


def discrete_drift(
    dv2: Float[Array, "m k"], dz2: Float[Array, " m"], ratio: Scalar, tau: Scalar, kind: jd.Code
) -> Float[Array, " m"]:
    r"""What plain (S)GD adds to the invariant: from the sums over steps of squared increments of v and z.

    .. math:: \text{exp: } -\tfrac{r}{2\tau}\sum_{s,k}(\Delta v_{k,s})^2, \qquad
              \text{linear: } \sum_s(\Delta z_s)^2 - r\sum_{s,k}(\Delta v_{k,s})^2

    Exact for any batches, activations and targets. With many queries ``dz2`` is summed over them.
    """
    linear = kind == "linear"
    return jnp.where(linear, dz2, 0.0) - jnp.where(linear, ratio, 0.5 * ratio / tau) * jnp.sum(dv2, -1)


def decay_pull(side: Float[Array, " m"], v: Float[Array, "m k"], ratio: Scalar, tau: Scalar, kind: jd.Code) -> Float[Array, " m"]:
    r"""How fast a weight decay of 1 on z and w changes the invariant, where both learn by gradient descent.

    .. math:: \text{exp: } -r\bigl(z - \tfrac1\tau\textstyle\sum_k v_k^2\bigr), \qquad
              \text{linear: } -2r\bigl(z^2 - \textstyle\sum_k v_k^2\bigr)

    The logits lose :math:`r\lambda z`, the squares of the weights twice :math:`\lambda v^2`, so that no combination of them is
    conserved. With many queries ``side`` is summed over them.
    """
    square = jnp.sum(v**2, -1)
    return jnp.where(kind == "linear", -2 * ratio * (side - square), -ratio * (side - square / tau))


def estimator_terms(
    v: Float[Array, "*t m k"], mean_b: Float[Array, " m"], ratio: Scalar, tau: Scalar
) -> tuple[Float[Array, "*t m"], Float[Array, "*t m"]]:
    r"""The two terms of the softmax law.

    .. math:: \hat z_1 = \tfrac{r}{2\tau}\sum_k v_k^2, \qquad \hat z_2 = -\tfrac{r}{2\tau}\,\bar b\sum_k\|v_k\|^2
    """
    half = 0.5 * ratio / tau
    return half * jnp.sum(v**2, -1), -half * mean_b * jnp.sum(v**2, (-2, -1))[..., None]


def softmax_law(
    v: Float[Array, "t m k"],
    v0: Float[Array, "m k"],
    z0: Float[Array, " m"],
    mean_b: Float[Array, " m"],
    ratio: Scalar,
    tau: Scalar,
    norm_factor: float = 1.0,
) -> Float[Array, "t m"]:
    r"""Softmax law with a constant :math:`\bar b`; ``norm_factor=2`` gives the printed form, whose second term has no 1/2."""
    square, norm = estimator_terms(v, mean_b, ratio, tau)
    square0, norm0 = estimator_terms(v0, mean_b, ratio, tau)
    return z0 + square - square0 + norm_factor * (norm - norm0)


class Ledger(NamedTuple):
    r"""Sums over the steps of a run that the softmax estimators need (starts at zero).

    ``norm``: :math:`\sum_s \bar b_s\,\Delta\sum_k\|v_k\|^2`; ``joint``: :math:`\eta\sum_s\sum_k E[G_k (b\cdot v_k) b]`;
    ``dv2``: :math:`\sum_s\sum_k(\Delta v_k)^2`.
    """

    norm: Float[Array, " m"]
    joint: Float[Array, " m"]
    dv2: Float[Array, " m"]


def open_ledger(tokens: int) -> Ledger:
    """A ledger before the first step."""
    zero = jnp.zeros(tokens, jnp.float64)
    return Ledger(zero, zero, zero)


def ledger_step(
    ledger: Ledger,
    v: Float[Array, "m k"],
    v_next: Float[Array, "m k"],
    b: Float[Array, "n m"],
    g: Float[Array, "n k"],
    weight: Float[Array, " n"],
    lr: Scalar,
) -> Ledger:
    """The ledger after one step from ``v`` to ``v_next``; ``b`` and ``g`` are those before the step, ``weight`` the samples'."""
    norm = (weight @ b) * (jnp.sum(v_next**2) - jnp.sum(v**2))
    joint = lr * (weight * jnp.sum(g * (b @ v), -1)) @ b
    return Ledger(ledger.norm + norm, ledger.joint + joint, ledger.dv2 + jnp.sum((v_next - v) ** 2, -1))


def closed_ledger(
    ledger: Ledger, v: Float[Array, "t m k"], v0: Float[Array, "m k"], z0: Float[Array, " m"], ratio: Scalar, tau: Scalar
) -> tuple[Float[Array, "t m"], Float[Array, "t m"]]:
    r"""Two better estimates of the logits at recorded steps (``ledger`` with a leading time axis).

    The first keeps the factorisation assumption but lets :math:`\bar b` move:
    :math:`z_0 + \tfrac{r}{2\tau}[\Delta\sum_k v_k^2 - \int\bar b\,d\sum_k\|v_k\|^2]` (left Riemann sum along the run).
    The second assumes nothing and is exact for plain gradient descent on the full batch:

    .. math:: z_0 + \tfrac{r}{\tau}\Bigl[\tfrac12\Delta\sum_k v_k^2 - \tfrac12\sum_s\sum_k(\Delta v_k)^2
              - \eta\sum_s\sum_k E[G_k(b\cdot v_k)b]\Bigr]
    """
    square = jnp.sum(v**2, -1) - jnp.sum(v0**2, -1)
    moving = z0 + 0.5 * ratio / tau * (square - ledger.norm)
    exact = z0 + ratio / tau * (0.5 * square - 0.5 * ledger.dv2 - ledger.joint)
    return moving, exact


class Residuals(NamedTuple):
    r"""The violation of :math:`E[G_k b b^\top] = \bar b\,E[G_k b]^\top`, over the Frobenius norm of the left sides.

    ``each``: the residuals of all nodes together; ``summed``: their sum over nodes (the printed assumption).
    """

    each: Float[Array, ""]
    summed: Float[Array, ""]


def factorisation_residual(
    b: Float[Array, "n m"], g: Float[Array, "n k"], weight: Float[Array, " n"], mean_b: Float[Array, " m"]
) -> Residuals:
    r"""Residuals :math:`R_k = E[G_k (b - \bar b) b^\top]` of the factorisation assumption of the softmax law."""
    weighted = weight[:, None] * g
    matrix, second = (jnp.einsum("nk,nl,nm->klm", weighted, left, b) for left in (b - mean_b, b))
    size = jnp.linalg.norm(second)
    return Residuals(jnp.linalg.norm(matrix) / size, jnp.linalg.norm(jnp.sum(matrix, 0)) / size)


def residual_share(
    b: Float[Array, "n m"], g: Float[Array, "n k"], weight: Float[Array, " n"], mean_b: Float[Array, " m"]
) -> Float[Array, ""]:
    r"""The share ``each`` of :func:`factorisation_residual`, from products of samples alone.

    .. math:: \sum_k \|R_k\|^2 = \sum_{ij} P_i P_j\, (G_i \cdot G_j)\, (b_i \cdot b_j)\, (b_i - \bar b) \cdot (b_j - \bar b)

    It saves the k matrices of m x m numbers; squares are summed with their signs, so it is known to 1e-8 only.
    """
    weighted, apart = weight[:, None] * g, b - mean_b
    inner = b @ b.T
    pairs = (weighted @ weighted.T) * inner
    return jnp.sqrt(jnp.abs(jnp.sum(pairs * (apart @ apart.T)) / jnp.sum(pairs * inner)))


def felt_residual(
    b: Float[Array, "n m"], g: Float[Array, "n k"], weight: Float[Array, " n"], mean_b: Float[Array, " m"], v: Float[Array, "m k"]
) -> tuple[Float[Array, " m"], Float[Array, ""]]:
    r"""What of the residuals acts on the logits, :math:`\sum_k R_k v_k`, and its share of :math:`\sum_k E[G_k b b^\top] v_k`.

    The law needs only this to be small: where G_k has mean zero, the residual is as large as the left side, but most of it
    multiplies :math:`\bar b\cdot v_k`, which stays small for weights that grew from such gradients under a uniform attention.
    """
    pull = weight * jnp.sum(g * (b @ v), -1)  # of each sample on the logits, along its b
    felt = pull @ (b - mean_b)
    return felt, jnp.linalg.norm(felt) / jnp.linalg.norm(pull @ b)


def factorised_gradients(b: Float[Array, "n m"], mean_b: Float[Array, " m"], size: Float[Array, " k"]) -> Float[Array, "n k"]:
    r"""Weighted gradients :math:`P_i G_k[i]` that satisfy the factorisation assumption exactly, node by node.

    The left side is symmetric and the right side has rank one with left factor :math:`\bar b`, so the assumption says
    :math:`\sum_i P_i G_k[i]\, b_i b_i^\top = s_k\,\bar b\bar b^\top`: m(m+1)/2 linear equations for n samples. The smallest
    solution is returned, for the sizes s.

    Raises:
        UsageError: too few samples for the equations.
    """
    n, m = b.shape
    rows, cols = jnp.triu_indices(m)
    if n < len(rows):
        raise jd.UsageError(f"{n} samples are not allowed: {m} tokens need at least {len(rows)} samples")
    products = (b[:, rows] * b[:, cols]).T  # one row an equation
    target = mean_b[rows] * mean_b[cols]
    solution = products.T @ linalg.solve(products @ products.T, target)
    return solution[:, None] * size


def sampling_weights(b: Float[Array, "n m"], mean_b: Float[Array, " m"], iterations: int = 30) -> Float[Array, " n"]:
    r"""Positive sampling probabilities with :math:`E[b] = \bar b`, nearest to uniform: :math:`P_i \propto e^{\theta\cdot b_i}`.

    Newton's method on the convex dual :math:`\ln\sum_i e^{\theta\cdot(b_i - \bar b)}`. They exist where :math:`\bar b` lies within
    the hull of the samples; the caller checks E[b]. Rows of b sum to 1, hence the flat direction that is filled up.
    """
    apart = b - mean_b

    def step(_: int | Int[Array, ""], theta: Float[Array, " m"]) -> Float[Array, " m"]:
        p = jax.nn.softmax(apart @ theta)
        mean = p @ apart
        covariance = (apart * p[:, None]).T @ apart - jnp.outer(mean, mean)
        return theta - linalg.solve(covariance + jnp.ones_like(covariance), mean)

    return jax.nn.softmax(apart @ jax.lax.fori_loop(0, iterations, step, jnp.zeros_like(mean_b)))
