r"""Gradient dynamics: the flow of potentials, and the path of zero loss to the simpler solution.

The flow of potentials under gradient descent, and its limit at infinite width.

All potentials are one array r (3, d, d, d): :math:`r_{k_1k_2k}`, then :math:`r_{ak_1k_2k}` and :math:`r_{bk_1k_2k}`. Gradient flow
on the real weights moves spectra by :math:`\dot z = -\frac1d \overline{\partial L/\partial z}`, so that with J = dr/dz

.. math:: \dot r = -\tfrac1d\, J J^* g, \qquad g = \overline{\partial L/\partial r}

(holomorphic derivatives, k and -k independent). For Gaussian weights of standard deviation s, independent in all layers,
:math:`JJ^*/q` of the cross potentials tends to :math:`\kappa` times the identity at infinite width q; under the loss of the first
two terms alone each potential then relaxes by itself,

.. math:: \tilde L = \tfrac1d \sum_{k\ne0} \Bigl( -2\,\mathrm{Re}\,r_{kkk} + \sum_{k_1,k_2\ne0} |r_{k_1k_2k}|^2 \Bigr), \quad
    r(t) = \delta + (r(0) - \delta)\, e^{-\lambda t}, \quad \lambda = \frac{2q\kappa}{d^2}, \quad \kappa = \frac{3s^4}{d^2}.

Source: arXiv:2410.01779, section 5 (Theorem on the dynamics of potentials at infinite width), with the factor 1/d and the constants
made explicit. Letters: d elements, q nodes, n = d - 1 frequencies without 0.

Occam's razor: a path of zero loss from a product y * z' to its factor z', and which of the two is the smaller.

With :math:`e = [1, 0, \dots, 0]` at every frequency, e * z' is the network z' with dead nodes. Where all four sets of conditions
hold for z' (:math:`r_{kkk} = 1`, all else zero), y * z' has zero loss if :math:`r_{kkk}(y) = 1`, and so has every point of

1. c moves on a straight line to :math:`(1/(a_1b_1), 0, \dots, 0)`;
2. :math:`a_j, b_j` of the other nodes shrink to 0;
3. :math:`a_1^{1-s}, b_1^{1-s}` (principal powers) go to 1 with :math:`c_1 = 1/(a_1b_1)`,

since :math:`r_{kkk}(y) = 1` at each of them. Source: arXiv:2410.01779, theorem on Occam's razor; the explicit path, the bound for
any z' and the equilibrium under weight decay: derived. Letters: d elements, m nodes of y; spectra (3, d, m) as in ``spectrum.py``.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Complex, Float, Int

from jaxdyn.data.abelian import Abelian
from jaxdyn.theories.cogo.dynamics import semiring
from jaxdyn.theories.cogo.dynamics.semiring import Element, element

FACTORS = ((0, 1), (0, 0), (1, 1))  # layers of the first two factors of the three kinds of potentials
_EXACT = jax.lax.Precision.HIGHEST


def every(z: Complex[Array, "3 d q"]) -> Complex[Array, "3 d d d"]:
    """All potentials of a spectrum."""
    return jnp.concatenate([semiring.potentials(z)[None], semiring.autopotentials(z)])


def jacobian(z: Complex[Array, "3 d q"]) -> Complex[Array, "3 d d d 3 d q"]:
    """J = dr/dz: potentials first, then layer, frequency and node of the spectrum."""
    unit = jnp.eye(z.shape[1], dtype=z.dtype)
    kinds = []
    for x, y in FACTORS:
        parts = [jnp.zeros((), z.dtype)] * 3
        parts[x] += jnp.einsum("am,bj,cj->abcmj", unit, z[y], z[2])
        parts[y] += jnp.einsum("bm,aj,cj->abcmj", unit, z[x], z[2])
        parts[2] += jnp.einsum("cm,aj,bj->abcmj", unit, z[x], z[y])
        kinds.append(jnp.stack([jnp.broadcast_to(part, parts[2].shape) for part in parts], 3))
    return jnp.stack(kinds)


def slope(r: Complex[Array, "3 d d d"], group: Abelian) -> Complex[Array, "3 d d d"]:
    r"""g, the conjugate of :math:`\partial L/\partial r` of the whole loss (paper scale, all pairs), from the potentials alone.

    With the residuals :math:`u_k = r_{00k} + \frac12 \sum_p S_{p,0,k}`, :math:`v_{a,m,k} = r_{m0k} + \frac12 S_{a,m,k}` and
    :math:`v_{b,m,k} = r_{0mk} + \frac12 S_{b,m,k}` (m != 0), g is :math:`\frac2d (r_{k_1k_2k} - \delta_{k_1=k_2=k})`,
    :math:`\frac2d u_k`, :math:`\frac2d v_{p,m,k}` on the cross potentials without, with two and with one zero index, and
    :math:`\frac1d v_{p,m,k}` (:math:`\frac1d u_k` at m = 0) on :math:`r_{p,k',m-k',k}`; nothing at k = 0.
    """
    s = semiring.sums(r[1:], group)
    middle = r[0, 0, 0] + (s[0, 0] + s[1, 0]) / 2
    v = jnp.stack([r[0, :, 0] + s[0] / 2, r[0, 0, :] + s[1] / 2]).at[:, 0].set(middle)
    cross = (r[0] - goal(group.order).astype(r.dtype)).at[:, 0].set(v[0]).at[0, :].set(v[1])
    auto = v[:, jnp.asarray(group.add)]
    return jnp.concatenate([2 * cross[None], auto]).at[..., 0].set(0) / group.order


def spectrum_velocity(z: Complex[Array, "3 d q"], group: Abelian) -> Complex[Array, "3 d q"]:
    r""":math:`\dot z = -\frac1d J^* g`."""
    return -jnp.einsum("iabcpmj,iabc->pmj", jnp.conj(jacobian(z)), slope(every(z), group), precision=_EXACT) / group.order


def velocity(z: Complex[Array, "3 d q"], group: Abelian) -> Complex[Array, "3 d d d"]:
    r""":math:`\dot r = -\frac1d J J^* g` of all potentials under gradient flow of the whole loss."""
    j = jacobian(z)
    flat = j.reshape(3 * group.order**3, -1)
    metric = jnp.matmul(flat, jnp.conj(flat.T), precision=_EXACT)
    change = jnp.matmul(metric, slope(every(z), group).ravel(), precision=_EXACT)
    return -change.reshape(j.shape[:4]) / group.order


def cross_gram(z: Complex[Array, "3 n q"]) -> Complex[Array, "m m"]:
    """J J^* of the cross potentials of the rows given (all n frequencies without 0), m = n^3, without building J."""
    n = z.shape[1]
    unit = jnp.eye(n, dtype=z.dtype)

    def moments(x: Complex[Array, "n q"], y: Complex[Array, "n q"]) -> Complex[Array, "n n n n"]:
        both = (x[:, None] * y[None]).reshape(n * n, -1)
        return jnp.matmul(both, jnp.conj(both.T), precision=_EXACT).reshape(n, n, n, n)

    bc, ac, ab = moments(z[1], z[2]), moments(z[0], z[2]), moments(z[0], z[1])
    gram = jnp.einsum("ax,bcyz->abcxyz", unit, bc) + jnp.einsum("by,acxz->abcxyz", unit, ac)
    gram = gram + jnp.einsum("cz,abxy->abcxyz", unit, ab)
    return gram.reshape(n**3, n**3)


def auto_gram(z: Complex[Array, "3 d q"], group: Abelian) -> Complex[Array, "m m"]:
    r"""J J^* of the autopotentials :math:`r_{p,k',-k',k}`: p = a, b, then one k' of each conjugate pair, then k != 0.

    Its off-diagonal entries do not die out with width: :math:`\partial r/\partial z_{ck} = |z_{pk'}|^2` has a mean.
    """
    half, minus = jnp.asarray(group.pairs), jnp.asarray(group.negative)[group.pairs]
    c, square = z[2, 1:], z[:2, half] * z[:2, minus]
    size = jnp.square(jnp.abs(z[:2, half])) + jnp.square(jnp.abs(z[:2, minus]))
    own = jnp.einsum("pkj,cj,zj->pkcz", size, c, jnp.conj(c), precision=_EXACT)
    shared = jnp.einsum("pkj,qlj->pkql", square, jnp.conj(square), precision=_EXACT)
    same = jnp.eye(2 * len(half), dtype=z.dtype).reshape(2, len(half), 2, len(half))
    unit = jnp.eye(len(c), dtype=z.dtype)
    gram = jnp.einsum("pkql,pkcz->pkcqlz", same, own) + jnp.einsum("cz,pkql->pkcqlz", unit, shared)
    return gram.reshape(2 * len(half) * len(c), -1)


def coupling(group: Abelian) -> float:
    r"""What the off-diagonal entries of :func:`auto_gram`, root mean square over its mean diagonal, tend to at infinite width.

    With one c-factor in common an entry is :math:`q E|z_{pk'}|^2 E|z_{p'l'}|^2`, a quarter of the diagonal; without, it dies out.
    For odd d it is :math:`1/(4\sqrt d)`.
    """
    kinds = 2 * len(group.pairs)  # p and k'
    return float(np.sqrt((kinds - 1) / (kinds * (group.order - 1) - 1))) / 4


def off_diagonal(gram: Complex[Array, "m m"]) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, ""]]:
    """Mean of the diagonal, root mean square of all other entries, and the largest of these over its two diagonal ones."""
    m = gram.shape[0]
    diagonal = jnp.diagonal(gram).real
    size = jnp.where(jnp.eye(m, dtype=bool), 0.0, jnp.abs(gram))
    rms = jnp.sqrt(jnp.sum(jnp.square(size)) / (m * (m - 1)))
    return jnp.mean(diagonal), rms, jnp.max(size / jnp.sqrt(diagonal[:, None] * diagonal[None]))


def kappa(std: float | Float[Array, ""], order: int) -> float | Float[Array, ""]:
    r""":math:`\kappa = 3s^4/d^2`, the limit of J J^* / q: the mean of :math:`|b|^2|c|^2 + |a|^2|c|^2 + |a|^2|b|^2`."""
    return 3 * std**4 / order**2


def spread(group: Abelian, width: float | Float[Array, ""]) -> float | Float[Array, ""]:
    r"""Root mean square of the off-diagonal entries of J J^* over :math:`q\kappa`, exact at every width: a constant over sqrt q.

    With :math:`M_{kl} = E|z_k|^2|z_l|^2 / (E|z|^2)^2` (1, but 2 for l = +-k and 3 for a real character l = k), entries of two
    potentials with two indices in common, e.g. the first two, have variance :math:`q (M_{k_1k_1} + M_{k_2k_2} + 2) M_{kl}`, with
    one in common :math:`q M_{k_2l_2} M_{kl}`, with none 0. Source: derived; the paper states the order :math:`q^{-1/2}`.
    """
    n, numbers = group.order - 1, np.arange(1, group.order)
    same, mirrored = np.eye(n), (group.negative[1:, None] == numbers).astype(float)
    moments = 1 + np.maximum(same, mirrored) + same * mirrored
    others = np.sum(moments * (1 - same))
    fourth = np.diagonal(moments)
    total = 3 * others * np.sum(fourth[:, None] + fourth + 2) + 3 * n * others**2
    return (total / (n**3 * (n**3 - 1))) ** 0.5 / (3 * width**0.5)


def rate(std: float | Float[Array, ""], width: float | Float[Array, ""], order: int) -> float | Float[Array, ""]:
    r""":math:`\lambda = 2q\kappa/d^2`."""
    return 2 * width * kappa(std, order) / order**2


def start_rate(d: int, hidden: float | Float[Array, ""]) -> float | Float[Array, ""]:
    r""":math:`2q\kappa/d^2` with :math:`\kappa = E|b|^2E|c|^2 + E|a|^2E|c|^2 + E|a|^2E|b|^2` at the start of training.

    A uniform number within :math:`\pm x` has the mean square :math:`x^2/3`.
    A coefficient of the scaled transform has the mean square of a weight over d. Paper scale: every layer is larger by
    :math:`(2d)^{1/3}`. Source: arXiv:2410.01779, decoupling at infinite width.
    """
    a, c = ((2 * d) ** (2 / 3) / (3 * n * d) for n in (d, hidden))
    return 2 * hidden * (2 * a * c + a * a) / d**2


def goal(n: int) -> Float[Array, "n n n"]:
    r""":math:`\delta`: 1 where the three indices agree, else 0."""
    same = np.zeros((n, n, n))
    same[np.arange(n), np.arange(n), np.arange(n)] = 1
    return jnp.asarray(same)


def relaxed(start: Complex[Array, "n n n"], turns: Float[Array, " t"]) -> Complex[Array, "t n n n"]:
    r""":math:`\delta + (r(0) - \delta) e^{-\lambda t}` at every :math:`\lambda t`."""
    end = goal(start.shape[0]).astype(start.dtype)
    return end + (start - end) * jnp.exp(-turns)[:, None, None, None]


def modified_loss(w: Float[Array, "3 d q"], group: Abelian) -> Float[Array, ""]:
    r""":math:`\tilde L`: the cross terms of the loss without its constant, a real function of the weights.

    Taken without a transform, half the work: for centred weights and :math:`T_{g_1g_2g} = \sum_j a_j(g_1) b_j(g_2) c_j(g)` it is
    :math:`\frac1d (\|T\|^2 / d^3 - \frac2{d^2} \sum_{g_1,g_2} T_{g_1,g_2,g_1+g_2})`, by Parseval. T is made in a basis of the
    functions of mean zero.
    """
    d, (basis, aim) = group.order, _mean_zero(group)
    a, b, c = jnp.einsum("nd,pdq->pnq", jnp.asarray(basis, w.dtype), w, precision=_EXACT)
    t = jnp.matmul((a[:, None] * b).reshape(-1, a.shape[-1]), c.T, precision=_EXACT)
    return (jnp.sum(jnp.square(t)) / d - 2 * jnp.sum(t * jnp.asarray(aim, w.dtype))) / d**3


def _mean_zero(group: Abelian) -> tuple[Float[np.ndarray, "n d"], Float[np.ndarray, "n*n n"]]:
    """An orthonormal basis of the functions of mean zero, and in it the tensor that is 1 at (g1, g2, g1 + g2)."""
    d = group.order
    basis = np.linalg.svd(np.eye(d) - 1 / d)[0][:, : d - 1].T
    hit = np.eye(d)[group.add]
    return basis, np.einsum("abc,ia,jb,kc->ijk", hit, basis, basis, basis).reshape(-1, d - 1)


NEWTON = 8


def pseudo_identity(y: Element) -> Element:
    """E in the places of y: one at the first node, zero at the others."""
    return element(jnp.zeros_like(y.z).at[..., 0].set(1), y.nodes)


def normalized(y: Element) -> Element:
    """Y with layer c divided by :math:`r_{kkk}` at every frequency, so that :math:`r_{kkk}(y) = 1`."""
    r = jnp.sum(y.z[0] * y.z[1] * y.z[2], -1).at[0].set(1)
    return y._replace(z=y.z.at[2].divide(r[:, None]))


def leading(y: Element, group: Abelian) -> Element:
    r"""Y with a node first along whose powers the path can go; all NaN if there is no such node.

    It is the node whose smallest :math:`|a_{1k} b_{1k}|` is largest, among those with positive a and b at the real characters,
    where the path must stay real and away from 0.
    """
    size = jnp.min(jnp.abs(y.z[0, 1:] * y.z[1, 1:]), 0)
    able = y.nodes & jnp.all(y.z[:2, group.real].real > 0, (0, 1)) & (size > 0)
    chosen = jnp.argmax(jnp.where(able, size, -1.0))
    order = jnp.argsort(jnp.arange(y.nodes.size) != chosen, stable=True)
    return Element(jnp.where(jnp.any(able), y.z[..., order], jnp.nan), y.nodes[order])


def path(y: Element, t: Float[Array, ""]) -> Element:
    """The factor at time t of the path, from y at 0 to the pseudo-identity at 3; each leg takes one unit of time.

    Args:
        y: start, with :math:`r_{kkk}(y) = 1`, its first node as :func:`leading` chooses it.
        t: time, 0 to 3.
    """
    one, two, three = jnp.clip(t, 0, 1), jnp.clip(t - 1, 0, 1), jnp.clip(t - 2, 0, 1)
    first = jnp.arange(y.nodes.size) == 0
    lead = jnp.exp((1 - three) * jnp.log(y.z[:2, 1:, 0]))  # no zero mode: its logarithm would be infinite
    rest = jnp.where(first, 0, (1 - two) * y.z[:2, 1:])
    ab = rest.at[..., 0].set(lead)
    c = (1 - one) * y.z[2, 1:] + one * jnp.where(first, 1 / (lead[0] * lead[1])[:, None], 0)
    return y._replace(z=y.z.at[:, 1:].set(jnp.concatenate([ab, c[None]])))


def straight(y: Element, t: Float[Array, ""]) -> Element:
    """The factor on the straight line from y to the pseudo-identity, for the same times: not a path of zero loss."""
    return y._replace(z=(1 - t / 3) * y.z + t / 3 * pseudo_identity(y).z)


def _square(z: Complex[Array, "3 d q"]) -> Float[Array, "3 d"]:
    return jnp.sum(jnp.square(z.real) + jnp.square(z.imag), -1)


def product_energy(y: Element, x: Element) -> Float[Array, ""]:
    r"""Fourier norm squared of y * x: :math:`\sum_{pk} \|y_{pk}\|^2 \|x_{pk}\|^2`."""
    return jnp.sum(_square(y.z) * _square(x.z))


def least_energy(x: Element) -> Float[Array, ""]:
    r"""No y * x with :math:`r_{kkk}(y) = 1` has a Fourier norm squared below :math:`3 \sum_k \prod_p \|x_{pk}\|^{2/3}`.

    By Hölder's inequality :math:`\prod_p \|y_{pk}\| \ge |r_{kkk}(y)| = 1`, and a sum of three is at least thrice the root of their
    product. The bound is :math:`\|x\|^2` itself if the three layers of x have equal norms at every frequency; else a y of order one
    that balances them makes the product smaller than x.
    """
    return 3 * jnp.sum(jnp.cbrt(jnp.prod(_square(x.z), 0)))


def imbalance(x: Element) -> Float[Array, ""]:
    """Largest relative difference of the squared norms of two layers at a frequency; 0 if all three are equal at each."""
    square = _square(x.z)[:, 1:]
    return jnp.max(jnp.max(square, 0) / jnp.min(square, 0)) - 1


def at_equilibrium(energy: float | Float[Array, ""], decay: Float[Array, ""], group: Abelian) -> Float[Array, ""]:
    r"""By which factor s weight decay shrinks the weights of a zero-loss network in all three layers.

    There :math:`L = \frac{d-1}d (1 - s^3)^2`; with the decay :math:`\frac{\lambda}2 \|w\|^2 = \frac{\lambda d}2 E s^2` of
    coupled decay the sum is stationary at :math:`6 \frac{d-1}d s (1 - s^3) = \lambda d E`. For balanced z' of norm squared E.
    """
    target = jnp.asarray(decay * group.order**2 * energy / (6 * (group.order - 1)))

    def step(_: Int[Array, ""], s: Float[Array, ""]) -> Float[Array, ""]:
        return s - (s - s**4 - target) / (1 - 4 * s**3)

    return jax.lax.fori_loop(0, NEWTON, step, jnp.ones_like(target))
