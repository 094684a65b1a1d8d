r"""Gradients of quadratics along descent, whole and within subspaces; their form in networks; and bases found in noise.

Gradients of a quadratic under gradient descent, and bounds on their stable rank.

.. math:: \mathrm{vec}\, G_t = (I - \eta S)^t\, \mathrm{vec}\, G_0, \qquad S = \frac1N \sum_i C_i \otimes B_i

With :math:`G_\parallel` the part in the lowest eigenspace, :math:`\rho = (1 - \eta\lambda_2) / (1 - \eta\lambda_1)` and
:math:`\delta_t = \rho^t \|G_0 - G_\parallel\|_F`:

.. math:: \mathrm{sr}(G_t) \le \mathrm{sr}(G_\parallel) + \frac{\delta_t^2}{\|G_\parallel\|_2^2} \ (\text{printed}), \qquad
   \mathrm{sr}(G_t) \le \frac{\|G_\parallel\|_F^2 + \delta_t^2}{(\|G_\parallel\|_2 - \delta_t)^2} \ (\text{corrected, for }
   \delta_t < \|G_\parallel\|_2)

Source: arXiv:2403.03507, lemma 3.4 (printed); corrected: derived, from :math:`\|G_t\|_2 \ge \|G_{\parallel,t}\|_2 - \|G_t -
G_{\parallel,t}\|_F`. Both need :math:`\eta \le 2 / (\lambda_2 + \lambda_{max})`, which the paper does not state: beyond it another
eigenvalue decays last.
Letters: b (N, m, m), c (N, n, n) symmetric and positive semidefinite; g (m, n).

Gradient descent within fixed subspaces: :math:`W \leftarrow W + \eta P R Q^\top`, :math:`R = P^\top G Q`.

.. math:: \mathrm{vec}\, R_t = (I - \eta \hat S)^t\, \mathrm{vec}\, R_0, \quad \|R_t\|_F \le (1 - \eta\kappa) \|R_{t-1}\|_F, \quad
   \kappa = \frac1N \sum_i \lambda_{min}(\hat B_i) \lambda_{min}(\hat C_i) \le \lambda_{min}(\hat S)

with :math:`\hat B = P^\top B P`, :math:`\hat C = Q^\top C Q`. R vanishes, G does not: it ends at
:math:`G_0 - S[P X Q^\top]`, :math:`\hat S X = R_0`. Source: arXiv:2403.03507, theorem 3.8, with the condition
:math:`\eta \le 2 / (\kappa + \lambda_{max}(\hat S))` that the factor needs; where G ends: derived.

Descent within fixed subspaces where A, B and C depend on the weights; where descent ends if inputs lack dimensions.

.. math:: \|R_t\|_F \le \bigl[1 - \eta\,(\kappa_{t-1} - L_A - c\, L_B L_C D^2)\bigr]\, \|R_{t-1}\|_F, \qquad
   c = 1 \ (\text{printed}), \quad c = 2 \ (\text{corrected})

L: Lipschitz constants in W; D: largest norm of W, all in Frobenius norms (of B and C spectral ones suffice). Both
:math:`(B_t - B_{t-1}) W C_t` and :math:`B_{t-1} W (C_t - C_{t-1})` may be as large as :math:`L_B L_C D^2 \|W_t - W_{t-1}\|`, and
that only if :math:`\|B\| \le L_B D`, :math:`\|C\| \le L_C D`. Source: arXiv:2403.03507, theorem 3.8 (printed); corrected: derived.

The form of the gradient of a reversible network's weights.

.. math:: -\nabla_{W_l} L = \frac1N \sum_i \bigl(J^\top y - J^\top J W_l f_{l-1}\bigr) f_{l-1}^\top \ (\ell_2), \qquad
   \frac1N \sum_i \bigl(J^\top P y - \tfrac\gamma K J^\top P J W_l f_{l-1}\bigr) f_{l-1}^\top \ (\text{softmax, small logits})

J: the map from layer l's product to the output with all gates as they are; :math:`P = I - 11^\top/K`.
Source: arXiv:2403.03507, theorem 3.2 and lemma 3.3. Letters: w (L, d, d), x, y (N, d), gates (N, L, d, d): K_l at each point.

m rows, one with a target and q with nothing but noise of size :math:`\sigma \sqrt n`; a basis of r directions on the left.

The r leading singular vectors of the noisy gradient point along the rows of noise if there are as many. Row 1 then learns in the
step in which its basis is found, where the same noise stands in basis and gradient, by r/n of its gradient, and in the T - 1 others
by the square of the basis' angles. With more directions than rows of noise the basis holds row 1 itself. A random basis lets r/m of
the gradient through, and a share c of each row's variance:

.. math:: \|w_1 - w^*\| = \exp\Bigl(-\frac{r \eta k}{T} \Bigl[\frac1n + \frac{T - 1}{\sigma^2 n^2}\Bigr]\Bigr) \ (r \le q), \quad
   e^{-\eta k} \ (r > q), \quad
   \sqrt{u + \frac{c m}{2 r} \eta n q \sigma^2 (1 - u)} \ \text{(random)}

with :math:`u = e^{-2 \eta k r / m}` and :math:`c = \frac{r (m - r)}{m (m - 1) (m + 2)}`.
Source: the example, of two rows, is that of arXiv:2410.11289 (GoLore), section 4; the formulas are derived here, to leading order
in :math:`1 / (\sigma^2 n)` and :math:`\eta`.
Letters: k steps, eta rate, sigma noise, n entries of a row, T steps between two bases; the distance at the start is 1.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Real

from jaxdyn import linalg, metrics

TIE = 1e-9  # eigenvalues this close, relative to the largest, are one


class Modes(NamedTuple):
    """Eigenvalues of S in ascending order, and its eigenvectors as matrices."""

    values: Float[Array, " k"]
    matrices: Float[Array, "k m n"]


def operator(b: Float[Array, "N m m"], c: Float[Array, "N n n"]) -> Float[Array, "mn mn"]:
    """S on row-major vectors: the mean of B ⊗ C."""
    m, n = b.shape[-1], c.shape[-1]
    return (jnp.einsum("iab,icd->acbd", b, c) / b.shape[0]).reshape(m * n, m * n)


def modes(b: Float[Array, "N m m"], c: Float[Array, "N n n"]) -> Modes:
    """The eigenvalues and eigenvectors of S."""
    values, vectors = linalg.eigh(operator(b, c))
    return Modes(values, vectors.T.reshape(-1, b.shape[-1], c.shape[-1]))


def lowest(s: Modes, g: Float[Array, "m n"], within: float = TIE) -> tuple[Float[Array, "m n"], Float[Array, ""], Float[Array, ""]]:
    """The part of g in the lowest eigenspace, that space's eigenvalue, and the next one."""
    first = s.values <= s.values[0] + within * s.values[-1]
    amounts = jnp.einsum("kmn,mn->k", s.matrices, g)
    second = jnp.min(jnp.where(first, jnp.inf, s.values))
    return jnp.einsum("k,kmn->mn", jnp.where(first, amounts, 0), s.matrices), s.values[0], second


def largest_step(s: Modes, second: Float[Array, ""]) -> tuple[Float[Array, ""], Float[Array, ""]]:
    r"""The step sizes :math:`2 / (\lambda_2 + \lambda_{max})`, up to which the lemma holds, and :math:`2 / \lambda_{max}`."""
    return 2 / (second + s.values[-1]), 2 / s.values[-1]


def ratio(eta: float | Float[Array, ""], first: Float[Array, ""], second: Float[Array, ""]) -> Float[Array, ""]:
    r""":math:`\rho`, by which all else decays faster than the lowest part, in every step."""
    return (1 - eta * second) / (1 - eta * first)


def gradients(s: Modes, g: Float[Array, "m n"], eta: float | Float[Array, ""], steps: Real[Array, " t"]) -> Float[Array, "t m n"]:
    """The gradient after each number of steps."""
    amounts = jnp.einsum("kmn,mn->k", s.matrices, g)
    factors = (1 - eta * s.values) ** steps[:, None].astype(g.dtype)
    return jnp.einsum("tk,k,kmn->tmn", factors, amounts, s.matrices)


class Bounds(NamedTuple):
    """Bounds on stable ranks, and what the corrected one is made of, in units of the lowest part's spectral norm."""

    printed: Float[Array, " t"]
    corrected: Float[Array, " t"]
    delta: Float[Array, " t"]  # on the Frobenius norm of the rest
    square: Float[Array, " t"]  # on the squared Frobenius norm of all


def bounds(s: Modes, g: Float[Array, "m n"], eta: float | Float[Array, ""], steps: Real[Array, " t"]) -> Bounds:
    """All bounds; where the corrected one says nothing it is the smaller side, which no stable rank exceeds."""
    kept, first, second = lowest(s, g)
    spectral, frobenius = linalg.singular_values(kept)[0], jnp.linalg.norm(kept)
    delta = ratio(eta, first, second) ** steps.astype(g.dtype) * jnp.linalg.norm(g - kept)
    printed = metrics.stable_rank(kept) + jnp.square(delta / spectral)
    gap = jnp.where(delta < spectral, spectral - delta, 1)
    square = jnp.square(frobenius) + jnp.square(delta)
    corrected = jnp.where(delta < spectral, jnp.minimum(square / jnp.square(gap), min(g.shape)), min(g.shape))
    return Bounds(printed, corrected, delta / spectral, square / jnp.square(spectral))


class Within(NamedTuple):
    """What the theory says of descent within P and Q: the bound's rate, the extreme eigenvalues, and where the gradient ends."""

    kappa: Float[Array, ""]
    slowest: Float[Array, ""]
    fastest: Float[Array, ""]
    rest: Float[Array, "m n"]


def within(
    b: Float[Array, "N m m"], c: Float[Array, "N n n"], g: Float[Array, "m n"], p: Float[Array, "m r"], q: Float[Array, "n s"]
) -> Within:
    """The predictions from the gradient at the start."""
    small_b, small_c = jnp.einsum("mr,imk,ks->irs", p, b, p), jnp.einsum("mr,imk,ks->irs", q, c, q)
    values, vectors = linalg.eigh(operator(small_b, small_c))
    r = (p.T @ g @ q).ravel()
    x = (vectors @ ((vectors.T @ r) / values)).reshape(p.shape[1], q.shape[1])
    rest = g - jnp.einsum("imk,kl,iln->mn", b, p @ x @ q.T, c) / b.shape[0]
    kappa = jnp.mean(linalg.eigvalsh(small_b)[:, 0] * linalg.eigvalsh(small_c)[:, 0])
    return Within(kappa, values[0], values[-1], rest)


def kappa(b: Float[Array, "N m m"], c: Float[Array, "N n n"], p: Float[Array, "m r"], q: Float[Array, "n s"]) -> Float[Array, ""]:
    """The mean product of the smallest eigenvalues of P'BP and Q'CQ."""
    small = (jnp.einsum("mr,imk,ks->irs", x, y, x) for x, y in ((p, b), (q, c)))
    low_b, low_c = (linalg.eigvalsh(x)[:, 0] for x in small)
    return jnp.mean(low_b * low_c)


def factors(
    eta: Float[Array, ""], kappas: Float[Array, " t"], lipschitz: tuple[Array, Array, Array], size: Float[Array, ""]
) -> Float[Array, "form t"]:
    """The bounds on the ratio of successive norms of R: printed and corrected, and with the coefficients' changes left out."""
    a, b, c = lipschitz
    change = jnp.stack([a + count * b * c * jnp.square(size) for count in (1, 2)] + [jnp.zeros_like(a)])
    return 1 - eta * (kappas - change[:, None])


def remainder(a: Float[Array, "m n"], inputs: Float[Array, "N n"], rank: int) -> Float[Array, "m n"]:
    r"""Where the gradient ends: :math:`A (I - \Pi)`, with :math:`\Pi` the projection on the inputs' span (``rank`` dimensions).

    :math:`S` vanishes on the W with :math:`W f_i = 0` for all i, so that this part of A is felt by no weight.
    """
    span = linalg.svd(inputs)[2][:rank]
    return a - a @ span.T @ span


def _gate(z: Float[Array, " d"], kind: Int[Array, ""] | int) -> Float[Array, "d d"]:
    """K(z) with K(z) z the layer's output, for the kinds of ``model.LAYERS`` (bias: that of the ReLU)."""
    d = z.shape[0]
    eye, ones = jnp.eye(d, dtype=z.dtype), jnp.full((d, d), 1 / d, z.dtype)
    branches = (
        lambda z: jnp.diag(jnp.where(z > 0, 1.0, 0.0)),
        lambda z: jnp.diag(jnp.where(z > 0, 1.0, 0.1)),
        lambda z: jnp.diag(jnp.where(z > 0, 1.0, 0.0)),
        lambda z: (eye - ones) * jax.lax.rsqrt(jnp.var(z) + 1e-6),
        lambda z: jnp.diag(d * jax.nn.softmax(z)),
    )
    return jax.lax.switch(kind, branches, z)


def gates(
    w: Float[Array, "L d d"], x: Float[Array, " d"], kind: Int[Array, ""] | int, shift: Float[Array, "L d"]
) -> tuple[Float[Array, "L d d"], Float[Array, "L d"]]:
    """Gates of all layers at one point (the last is the identity) and the inputs of all layers."""
    found, inputs = [], []
    for i in range(w.shape[0]):
        inputs.append(x)
        z = w[i] @ x + shift[i]
        k = _gate(z, kind) if i < w.shape[0] - 1 else jnp.eye(w.shape[1], dtype=w.dtype)
        found.append(k)
        x = k @ z
    return jnp.stack(found), jnp.stack(inputs)


def _maps(w: Float[Array, "L d d"], k: Float[Array, "L d d"]) -> Float[Array, "L d d"]:
    """J of every layer, by the product of what comes after it."""
    j, maps = k[-1], [k[-1]]
    for i in range(w.shape[0] - 2, -1, -1):
        j = j @ w[i + 1] @ k[i]
        maps.append(j)
    return jnp.stack(maps[::-1])


def squared_parts(
    w: Float[Array, "L d d"], x: Float[Array, "N d"], y: Float[Array, "N d"], kind: Int[Array, ""] | int, shift: Float[Array, "L d"]
) -> tuple[Float[Array, "L d d"], Float[Array, "L d d"]]:
    r"""The terms :math:`A = \overline{J^\top y f^\top}` and :math:`\overline{J^\top J W f f^\top}` for squared errors."""

    def one(x: Array, y: Array) -> tuple[Array, Array]:
        k, f = gates(w, x, kind, shift)
        j = _maps(w, k)
        return jnp.einsum("lom,o,ln->lmn", j, y, f), jnp.einsum("lom,lok,lkp,lp,ln->lmn", j, j, w, f, f)

    a, b = jax.vmap(one)(x, y)
    return jnp.mean(a, 0), jnp.mean(b, 0)


def softmax_parts(
    w: Float[Array, "L d d"], x: Float[Array, "N d"], y: Float[Array, "N d"]
) -> tuple[Float[Array, "L d d"], Float[Array, "L d d"]]:
    r"""The two terms of the form for a ReLU chain's cross-entropy with :math:`\gamma = 1`."""
    size = y.shape[-1]
    shift = jnp.zeros(w.shape[:2], w.dtype)

    def one(x: Array, y: Array) -> tuple[Array, Array]:
        k, f = gates(w, x, 0, shift)
        j = _maps(w, k)
        centred = j - jnp.mean(j, 1, keepdims=True)
        return jnp.einsum("lom,o,ln->lmn", centred, y, f), jnp.einsum("lom,lok,lkp,lp,ln->lmn", centred, j, w, f, f) / size

    a, b = jax.vmap(one)(x, y)
    return jnp.mean(a, 0), jnp.mean(b, 0)


Number = float | Float[Array, ""]


def distance_left(
    finder: str,
    k: Int[Array, " t"],
    eta: Number,
    sigma: Number,
    n: int,
    period: int,
    rank: int = 1,
    rows: int = 2,
    noisy: Number = 1.0,
) -> Float[Array, " t"]:
    """The root mean square distance after k steps, for bases by "svd" or random ("orthonormal"); ``noisy`` rows have noise."""
    if finder == "svd":
        leak = rank / period * (1 / n + (period - 1) / (sigma * n) ** 2)
        return jnp.exp(-eta * k * jnp.where(rank > noisy, 1.0, leak))
    kept = jnp.exp(-2 * eta * k * rank / rows)
    passed = rank * (rows - rank) / (rows * (rows - 1) * (rows + 2))
    return jnp.sqrt(kept + rows / (2 * rank) * eta * n * noisy * sigma**2 * passed * (1 - kept))
