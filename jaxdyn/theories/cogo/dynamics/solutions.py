r"""Global solutions: networks of zero loss, composed from partial solutions at every frequency of a finite Abelian group.

With y a node of free phases at each pair k, -k of frequencies, in the paper's scale:

.. math:: z_{F6} = 6^{-1/3} \sum_k z_{syn} * z_\nu * y_k, \qquad
    z_{F4/6} = 6^{-1/3} \sum_{k \in C} \hat z_{syn} * z_\nu * y_k + 4^{-1/3} \sum_{k \notin C} z_{\nu=i} * z_\xi * y_k

The blocks of order 4 leave a mean, :math:`S_k = \sum_{p,\pm k'} r_{p,k',-k',k}`; the blocks of order 6 at the carriers C take it
away by a constant in layer c of all their nodes, :math:`\delta_k = -S_k / (2\sum_C \sum_{p,j} |z_{pk_0j}|^2)` at every k outside C.
A real character (2k = 0) has a real block of two nodes. The solution that memorises has a node for each pair of elements.
Source: arXiv:2410.01779, corollaries on composed solutions; several carriers and real characters: derived. Letters: d elements of
the group, n pairs of frequencies, m nodes of a block, q nodes. Every function returns an :class:`Element` in the paper's scale;
:func:`semiring.weights` makes real weights of it.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Complex, Float, Inexact, Int, Num, PRNGKeyArray

from jaxdyn.data.abelian import Abelian
from jaxdyn.errors import UsageError
from jaxdyn.theories.cogo.dynamics import partial, semiring
from jaxdyn.theories.cogo.dynamics.semiring import Element

Blocks = Complex[Array, "n 3 m"]


class Numbers(NamedTuple):
    """The free numbers of a composed solution: one of modulus one for each pair of frequencies, and two angles of y."""

    nu: Complex[Array, " n"]
    xi: Complex[Array, " n"]
    alpha: Complex[Array, " n"]
    beta: Complex[Array, " n"]
    phases: Float[Array, "n 2"]


def sample(key: PRNGKeyArray, group: Abelian) -> Numbers:
    """Free numbers at random angles."""
    angles = jax.random.uniform(key, (len(group.pairs), 6), jnp.float64, -jnp.pi, jnp.pi)
    return Numbers(*partial.turn(angles[:, :4]).T, angles[:, 4:])


def six(nu: Complex[Array, " n"], phases: Float[Array, "n 2"]) -> Complex[Array, "n 3 6"]:
    r"""Blocks of order 6: :math:`6^{-1/3} z_{syn} * z_\nu * y`."""
    return _blocks(lambda v, y: partial.multiply(partial.syn(), partial.nu(v), partial.unit(y)), nu, phases)


def six_ab(alpha: Complex[Array, " n"], beta: Complex[Array, " n"], phases: Float[Array, "n 2"]) -> Complex[Array, "n 3 6"]:
    r"""Blocks of order 6: :math:`6^{-1/3} z_{syn,\alpha\beta} * z_{\nu=i} * y`; only nu = i and nu = -i give zero loss."""
    return _blocks(lambda a, b, y: partial.multiply(partial.syn_ab(a, b), _nu_i(), partial.unit(y)), alpha, beta, phases)


def four(xi: Complex[Array, " n"], phases: Float[Array, "n 2"], twin: bool = False) -> Complex[Array, "n 3 4"]:
    r"""Blocks of order 4: :math:`4^{-1/3} z_{\nu=i} * z_\xi * y`, without the bias that they need."""
    return _blocks(lambda x, y: partial.multiply(_nu_i(), partial.xi(x, twin), partial.unit(y)), xi, phases)


def _nu_i() -> Complex[Array, "3 2"]:
    return partial.nu(jnp.asarray(1j, jnp.complex128))


def _blocks(block, *numbers: Inexact[Array, " n *_"]) -> Blocks:
    """One block for each pair of frequencies, with r_kkk = 1."""
    columns = jax.vmap(block)(*numbers)
    return columns * columns.shape[-1] ** (-1 / 3)


def compose(group: Abelian, columns: Blocks, nodes: Bool[Array, "n m"] | None = None) -> Element:
    """Blocks at the pairs of frequencies (in the order of ``group.pairs``), and real blocks at the real characters.

    Args:
        group: its characters.
        columns: values at k of m nodes for each pair.
        nodes: which of them exist; all by default.

    Raises:
        UsageError: if there are not as many blocks as pairs.
    """
    pairs = group.pairs
    if columns.shape[0] != len(pairs):
        raise UsageError(f"{group} has {len(pairs)} pairs of frequencies, each with a number of its own; got {columns.shape[0]}")
    places = columns.shape[0] * columns.shape[2]
    z = jnp.zeros((3, group.order, *columns.shape[::2]), columns.dtype)
    values, own = jnp.swapaxes(columns, 0, 1), np.arange(len(pairs))
    z = z.at[:, pairs, own].set(values).at[:, group.negative[pairs], own].set(jnp.conj(values))
    nodes = jnp.ones(places, bool) if nodes is None else nodes.reshape(places)
    return semiring.add(semiring.element(z.reshape(3, group.order, places), nodes), real_blocks(group))


def real_blocks(group: Abelian) -> Element:
    r"""Two nodes for each real character, :math:`2^{-1/3}\,(1, 1; 1, -1; 1, -1)`; none in a group of odd order.

    Source: derived, not in the paper.
    """
    z = np.zeros((3, group.order, len(group.real), 2), complex)
    z[:, group.real, np.arange(len(group.real))] = np.array([[1, 1], [1, -1], [1, -1]])[:, None] / 2 ** (1 / 3)
    return semiring.element(jnp.asarray(z.reshape(3, group.order, -1)))


def f6(group: Abelian, nu: Complex[Array, " n"], phases: Float[Array, "n 2"]) -> Element:
    r""":math:`z_{F6}`: six nodes for each pair of frequencies, q = 3(d-1) for odd d; any nu of modulus one, any phases."""
    return compose(group, six(nu, phases))


def f6_ab(group: Abelian, alpha: Complex[Array, " n"], beta: Complex[Array, " n"], phases: Float[Array, "n 2"]) -> Element:
    r""":math:`z_{F6}` from :math:`z_{syn,\alpha\beta} * z_{\nu=i}`: any alpha and beta of modulus one."""
    return compose(group, six_ab(alpha, beta, phases))


def f4(group: Abelian, xi: Complex[Array, " n"], phases: Float[Array, "n 2"], twin: bool = False) -> Element:
    r"""Blocks of order 4 at all pairs. Not a solution: n pairs have :math:`L = 4n/d`."""
    return compose(group, four(xi, phases, twin))


def first(group: Abelian, count: int | Int[Array, ""]) -> Bool[Array, " n"]:
    """Carriers: that many pairs of frequencies, the first ones; the count may be traced."""
    return jnp.arange(len(group.pairs)) < count


def f46(
    group: Abelian,
    carriers: Bool[Array, " n"],
    nu: Complex[Array, " n"],
    xi: Complex[Array, " n"],
    phases: Float[Array, "n 2"],
) -> Element:
    r""":math:`z_{F4/6}`: blocks of order 6 where ``carriers`` says so, which share the bias of the blocks of order 4 elsewhere.

    With one carrier q = 2d for odd d. ``f46(group, first(group, n6), *...)`` has n6 of them. Without any carrier where there are
    pairs the bias has no place, and all is NaN.
    """
    return carried(group, carriers, six(nu, phases), four(xi, phases))


def mixed(
    carriers: Bool[Array, " n"], sixes: Complex[Array, "n 3 6"], fours: Complex[Array, "n 3 4"]
) -> tuple[Complex[Array, "n 3 6"], Bool[Array, "n 6"]]:
    """Blocks of order 6 where ``carriers`` says so and of order 4 elsewhere, without bias, and which nodes exist."""
    columns = jnp.where(carriers[:, None, None], sixes, jnp.pad(fours, ((0, 0), (0, 0), (0, 2))))
    return columns, carriers[:, None] | jnp.asarray(np.arange(6) < 4)


def carried(group: Abelian, carriers: Bool[Array, " n"], sixes: Complex[Array, "n 3 6"], fours: Complex[Array, "n 3 4"]) -> Element:
    """:func:`mixed` blocks with the bias, a solution: of :func:`six` or :func:`six_ab`, and :func:`four` or its twin."""
    x = compose(group, *mixed(carriers, sixes, fours))
    mean = 2 * jnp.sum(jnp.square(jnp.abs(fours[:, :2])) * fours[:, 2:], (1, 2))  # S_k: both signs of k' alike
    taken = 2 * jnp.sum(jnp.where(carriers[:, None, None], jnp.square(jnp.abs(sixes[:, :2])), 0))
    delta = jnp.where(carriers, 0, -mean / taken)[:, None]
    own = jnp.pad(jnp.repeat(carriers, 6), (0, x.nodes.size - 6 * len(group.pairs)))  # no real block carries
    z = x.z.at[2, group.pairs].add(delta * own).at[2, group.negative[group.pairs]].add(jnp.conj(delta) * own)
    return x._replace(z=z)


def unit(group: Abelian, phases: Float[Array, "n 2"]) -> Element:
    """One node with the phases of y at every pair of frequencies, and ones at the real characters: it turns a solution."""
    columns = jnp.swapaxes(jax.vmap(partial.unit)(phases)[..., 0], 0, 1)
    z = jnp.ones((3, group.order), columns.dtype)
    z = z.at[:, group.pairs].set(columns).at[:, group.negative[group.pairs]].set(jnp.conj(columns))
    return semiring.element(z[..., None])


def memory_factors(group: Abelian) -> tuple[Element, Element]:
    r""":math:`z_a` and :math:`z_b`, both of order d: sums of d powers of a node, which count the first and the second operand."""
    chi = jnp.asarray(group.characters)
    ones = jnp.ones_like(chi)
    return semiring.element(jnp.stack([chi, ones, chi.conj()])), semiring.element(jnp.stack([ones, chi, chi.conj()]))


def memory(group: Abelian) -> Element:
    r""":math:`z_M = d^{-2/3} z_a * z_b`, with a node for each pair of elements: order :math:`d^2` at every frequency.

    The node of (g, g') has :math:`\varphi_k(g)` in a, :math:`\varphi_k(g')` in b and :math:`\overline{\varphi_k(g + g')}` in c.
    """
    return semiring.scaled(semiring.multiply(*memory_factors(group)), group.order**-2)


def energy(pairs: int | Int[np.ndarray, "*m"], carriers: int | Num[np.ndarray | Array, "*m"], real: int = 0) -> Float[Array, "*m"]:
    r"""Fourier norm squared of :math:`z_{F4/6}`; with as many carriers as pairs, of :math:`z_{F6}`.

    .. math:: E(n_6) = 6 \cdot 6^{1/3} n_6 + 6 \cdot 4^{1/3} (n - n_6) + 6^{1/3} \frac{n - n_6}{n_6}

    and :math:`3 \cdot 2^{1/3}` for each real character. The last term is the bias: the more carriers share it, the less it adds.
    """
    fours = pairs - jnp.asarray(carriers)
    bias = jnp.where(fours > 0, 6 ** (1 / 3) * fours / carriers, 0)
    return 6 * 6 ** (1 / 3) * (pairs - fours) + 6 * 4 ** (1 / 3) * fours + bias + 3 * 2 ** (1 / 3) * real


def best_carriers(pairs: int) -> float:
    r"""Where :func:`energy` is stationary, :math:`n_6^* = \sqrt{n\,6^{1/3} / (6 \cdot 6^{1/3} - 6 \cdot 4^{1/3})}`."""
    return (pairs * 6 ** (1 / 3) / (6 * 6 ** (1 / 3) - 6 * 4 ** (1 / 3))) ** 0.5


def memory_energy(group: Abelian) -> float:
    r"""Fourier norm squared of :math:`z_M`, :math:`3(d-1)d^{2/3}`."""
    return 3 * (group.order - 1) * group.order ** (2 / 3)
