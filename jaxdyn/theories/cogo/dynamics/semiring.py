r"""Potentials of a network, through which alone the loss depends on its weights, and the semi-ring in which they compose.

The weights' scaled Fourier transform, and the potentials through which alone the loss depends on it.

.. math:: w_{a}[:,j] = \sum_k z_{akj} \varphi_k, \quad w_{b}[:,j] = \sum_k z_{bkj} \varphi_k, \quad
    w_{c}[:,j] = \sum_k z_{ckj} \overline{\varphi_k}

Weights are real if and only if :math:`z_{p,-k,j} = \overline{z_{pkj}}`. The sum potentials are
:math:`r_{k_1k_2k} = \sum_j z_{ak_1j} z_{bk_2j} z_{ckj}` and :math:`r_{pk_1k_2k} = \sum_j z_{pk_1j} z_{pk_2j} z_{ckj}`, p in a, b.
Source: arXiv:2410.01779, section 3, with the transform's constants made explicit. Letters: d elements, q nodes; spectra are one
array (3, d, q) with layers a, b, c.

The semi-ring of solutions: networks of any width are added and multiplied, and their potentials with them.

An element is a Hermitian spectrum without zero mode and with unordered nodes. The sum puts the nodes of both side by side, the
product takes the Kronecker product of the nodes at every layer p and frequency k:

.. math:: (x * y)_{pk(jl)} = x_{pkj}\, y_{pkl}, \qquad r(x + y) = r(x) + r(y), \qquad r(x * y) = r(x)\, r(y)

for every sum potential r. Zero is the empty network, one is a single node of ones. There are no additive inverses.
Source: arXiv:2410.01779, semi-ring and ring homomorphisms. Letters: d elements of the group, q places for nodes; layers a, b, c.

An element has q places, of which those marked in ``nodes`` hold a node and the others zeros, which add nothing to any potential: so
elements of one width vmap, and a number of nodes may be traced.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Complex, Float, Int, PRNGKeyArray

from jaxdyn.data.abelian import Abelian
from jaxdyn.errors import UsageError

_EXACT = jax.lax.Precision.HIGHEST


def _characters(group: Abelian, dtype: jnp.dtype) -> Complex[Array, "d d"]:
    return jnp.asarray(group.characters, jnp.result_type(dtype, jnp.complex64))


def transform(w: Float[Array, "3 d q"], group: Abelian) -> Complex[Array, "3 d q"]:
    r""":math:`z_{pkj} = \frac1d \sum_m w_p[m,j] \overline{\varphi_k(m)}` for a and b, without the conjugation for c."""
    chi = _characters(group, w.dtype)
    z = jnp.einsum("km,pmj->pkj", jnp.conj(chi), w.astype(chi.dtype), precision=_EXACT) / group.order
    return z.at[2].set(jnp.conj(z[2]))


def inverse(z: Complex[Array, "3 d q"], group: Abelian) -> Float[Array, "3 d q"]:
    """The real weights of a Hermitian spectrum (of any other: the real part)."""
    chi = _characters(group, z.dtype)
    z = z.at[2].set(jnp.conj(z[2]))
    return jnp.einsum("km,pkj->pmj", chi, z, precision=_EXACT).real


def negated(z: Complex[Array, "3 d q"], group: Abelian) -> Complex[Array, "3 d q"]:
    """The conjugate of z_{p,-k,j}: equal to z if and only if the weights are real."""
    return jnp.conj(z[:, jnp.asarray(group.negative)])


def potentials(z: Complex[Array, "3 d q"]) -> Complex[Array, "d d d"]:
    """r_{k1 k2 k}: indices k1, k2, k."""
    return jnp.einsum("aj,bj,cj->abc", z[0], z[1], z[2], precision=_EXACT)


def autopotentials(z: Complex[Array, "3 d q"]) -> Complex[Array, "2 d d d"]:
    """r_{p k1 k2 k} with both factors of one layer: p = a, b, then k1, k2, k."""
    return jnp.einsum("paj,pbj,cj->pabc", z[:2], z[:2], z[2], precision=_EXACT)


def sums(auto: Complex[Array, "2 d d d"], group: Abelian) -> Complex[Array, "2 d d"]:
    r""":math:`S_{p,m,k} = \sum_{k'} r_{p,k',m-k',k}` over all k': indices p, m, k."""
    other = jnp.asarray(group.add)[:, jnp.asarray(group.negative)]  # [m, k'] -> m - k'
    first = jnp.arange(group.order)[None]
    return jnp.sum(auto[:, first, other], 2)


class Terms(NamedTuple):
    """Parts of d (L - 1 + 1/d) in the paper's scale, each summed over k != 0."""

    target: Float[Array, ""]  # -2 Re r_kkk
    cross: Float[Array, ""]  # |r_{k1 k2 k}|^2, k1, k2 != 0
    mean: Float[Array, ""]  # the output's mean over both operands
    one: Float[Array, ""]  # the parts of the output that depend on one operand alone


def terms(z: Complex[Array, "3 d q"], group: Abelian) -> Terms:
    r"""The loss over all pairs in potentials, for any spectrum.

    .. math:: \ell_k = -2\,\mathrm{Re}\, r_{kkk} + \sum_{k_1,k_2 \ne 0} |r_{k_1k_2k}|^2
        + \Bigl|r_{00k} + \tfrac12 \sum_p S_{p,0,k}\Bigr|^2
        + \sum_{m \ne 0} \Bigl( |r_{m0k} + \tfrac12 S_{a,m,k}|^2 + |r_{0mk} + \tfrac12 S_{b,m,k}|^2 \Bigr)

    Source: arXiv:2410.01779, Theorem 1, with the zero modes of a and b included (derived).
    """
    r, s = potentials(z), sums(autopotentials(z), group)
    return Terms(
        target=-2 * jnp.sum(jnp.einsum("kkk->k", r)[1:].real),
        cross=_square(r[1:, 1:, 1:]),
        mean=_square(r[0, 0, 1:] + (s[0, 0, 1:] + s[1, 0, 1:]) / 2),
        one=_square(r[1:, 0, 1:] + s[0, 1:, 1:] / 2) + _square(r[0, 1:, 1:] + s[1, 1:, 1:] / 2),
    )


def loss(z: Complex[Array, "3 d q"], group: Abelian) -> Float[Array, ""]:
    """L over all pairs, paper scale, from the terms."""
    whole: Any = sum(terms(z, group))
    return whole / group.order + 1 - 1 / group.order


def _square(x: Complex[Array, "..."]) -> Float[Array, ""]:
    return jnp.sum(jnp.square(x.real) + jnp.square(x.imag))


WHOLE = 1e-9  # how far from a whole number a coefficient of rounded roots may lie


class Element(NamedTuple):
    """A spectrum without zero mode; places that hold no node are zero."""

    z: Complex[Array, "3 d q"]
    nodes: Bool[Array, " q"]


def element(z: Complex[Array, "3 d q"], nodes: Bool[Array, " q"] | None = None) -> Element:
    """The element of that spectrum: its zero mode, and all at places without a node, are set to zero."""
    nodes = jnp.ones(z.shape[-1], bool) if nodes is None else nodes
    return Element(jnp.where(nodes, z.at[:, 0].set(0), 0), nodes)


def zero(group: Abelian, width: int = 0, dtype: str = "complex128") -> Element:
    """The empty network, neutral in sums."""
    return Element(jnp.zeros((3, group.order, width), dtype), jnp.zeros(width, bool))


def one(group: Abelian, dtype: str = "complex128") -> Element:
    """A single node that is 1 at every frequency but 0, neutral in products."""
    return element(jnp.ones((3, group.order, 1), dtype))


def random(key: PRNGKeyArray, group: Abelian, width: int, dtype: str = "float64") -> Element:
    """Real Gaussian weights without their means, as an element with coefficients of variance one."""
    w = group.order**0.5 * jax.random.normal(key, (3, group.order, width), dtype)
    return element(transform(w, group))


def order(x: Element) -> Int[Array, ""]:
    """The number of nodes; orders multiply in products."""
    return jnp.sum(x.nodes, dtype=jnp.int32)


def energy(x: Element) -> Float[Array, ""]:
    r"""Fourier norm squared, :math:`\sum_{pkj} |z_{pkj}|^2`: the squared weights' sum over d."""
    return jnp.sum(jnp.square(x.z.real) + jnp.square(x.z.imag))


def weights(x: Element, group: Abelian) -> Float[Array, "3 d q"]:
    """The network's real weights, in the scale of the element."""
    return inverse(x.z, group)


def add(x: Element, y: Element) -> Element:
    """The sum: the nodes of both."""
    return Element(jnp.concatenate([x.z, y.z], -1), jnp.concatenate([x.nodes, y.nodes]))


def multiply(x: Element, y: Element) -> Element:
    """The product: a node for every pair of nodes, the product of both at each layer and frequency."""
    width = x.nodes.size * y.nodes.size
    z = x.z[..., :, None] * y.z[..., None, :]
    return Element(z.reshape(*z.shape[:2], width), (x.nodes[:, None] & y.nodes).reshape(width))


def copies(x: Element, count: int) -> Element:
    """That many x added up.

    Raises:
        UsageError: if the number is negative.
    """
    _whole(count, "a number of copies")
    return Element(jnp.tile(x.z, count), jnp.tile(x.nodes, count))


def power(x: Element, exponent: int) -> Element:
    """That many x multiplied; one for exponent 0.

    Raises:
        UsageError: if the exponent is negative.
    """
    _whole(exponent, "an exponent")
    return functools.reduce(multiply, [x] * exponent, _one_like(x))


def negative(x: Element) -> Element:
    """Layer c with the other sign: all potentials change sign, but the sum with x is not the empty network."""
    return x._replace(z=x.z.at[2].multiply(-1))


def scaled(x: Element, factor: float | Float[Array, ""]) -> Element:
    """All potentials times a real factor, whose cube root multiplies each of the three layers."""
    return x._replace(z=x.z * jnp.cbrt(jnp.asarray(factor, x.z.real.dtype)))


def polynomial(x: Element, coefficients: Sequence[int]) -> Element:
    r""":math:`\rho(x) = \sum_i n_i x^i`, so that :math:`r(\rho(x)) = \rho(r(x))` for every potential.

    Args:
        x: element.
        coefficients: non-negative integers :math:`n_0, n_1, ...`; by Horner's rule the order is that of the terms' sum.

    Raises:
        UsageError: if a coefficient is negative.
    """
    terms = [copies(_one_like(x), n) for n in coefficients]
    start = Element(x.z[..., :0], x.nodes[:0])
    return functools.reduce(lambda so_far, term: add(multiply(so_far, x), term), reversed(terms), start)


def annihilator(values: Iterable[complex | float | int]) -> tuple[int, ...]:
    r"""Coefficients :math:`n_0, n_1, ...` of :math:`\rho(x) = \prod_s (x - s)`, which kills the potentials of these values.

    Source: arXiv:2410.01779, polynomial construction. Values that agree up to rounding count once.

    Raises:
        UsageError: if a coefficient is no non-negative integer, since then no element is the value of this polynomial.
    """
    roots: list[complex] = []
    for value in values:
        if not any(abs(value - root) < WHOLE for root in roots):
            roots.append(complex(value))
    product = np.atleast_1d(np.poly(roots))[::-1]
    nearest = np.round(product.real).astype(int)
    if np.any(np.abs(product - nearest) > WHOLE * max(1.0, np.abs(product).max())) or np.any(nearest < 0):
        shown = ", ".join(f"{c.real:.4g}" if abs(c.imag) < WHOLE else f"{c:.4g}" for c in product)
        raise UsageError(
            f"the semi-ring has polynomials with non-negative integers alone, but the product of x - s over the {len(roots)} given "
            f"potentials has the coefficients {shown} (of 1, x, ...)"
        )
    return tuple(int(n) for n in nearest)


def compact(x: Element, width: int) -> Element:
    """The same nodes in their order within ``width`` places; NaN in all of them if they are too many."""
    places = jnp.argsort(~x.nodes, stable=True)[:width]
    more = max(width - x.nodes.size, 0)
    z = jnp.pad(x.z[..., places], ((0, 0), (0, 0), (0, more)))
    return Element(jnp.where(order(x) > width, jnp.nan, z), jnp.pad(x.nodes[places], (0, more)))


def ordered(x: Element) -> Element:
    """The nodes in an order of their own, whatever order they come in: rising along one generic direction, empty places last."""
    line = np.random.default_rng(0).normal(size=(2, *x.z.shape[:2]))
    place = jnp.tensordot(jnp.asarray(line[0], x.z.real.dtype), x.z.real, 2)
    place = place + jnp.tensordot(jnp.asarray(line[1], x.z.real.dtype), x.z.imag, 2)
    first = jnp.argsort(jnp.where(x.nodes, place, jnp.inf))
    return Element(x.z[..., first], x.nodes[first])


def distance(x: Element, y: Element) -> Float[Array, ""]:
    """Largest difference of the elements' coefficients with nodes in order; infinite between elements of different order."""
    width = max(x.nodes.size, y.nodes.size)
    x, y = (ordered(compact(e, width)) for e in (x, y))
    apart = jnp.max(jnp.abs(x.z - y.z), initial=0)
    return jnp.where(order(x) == order(y), apart, jnp.inf)


def _one_like(x: Element) -> Element:
    return element(jnp.ones((*x.z.shape[:2], 1), x.z.dtype))


def _whole(count: int, what: str) -> None:
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 0:
        raise UsageError(f"{what} is a non-negative integer, got {count}")
