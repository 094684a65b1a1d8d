r"""Partial solutions at a pair of frequencies, how few nodes they need, and global solutions composed from them.

Partial solutions: nodes at one pair k, -k of frequencies, and the table of their potentials.

Only the values at k are written, as columns (3, n) with rows a, b, c; those at -k are their conjugates. Sums and products are
those of the semi-ring. A node of order one has modulus one and abc = 1; with :math:`\omega = e^{2\pi i/3}`, :math:`|\nu| = |\xi| =
|\alpha| = |\beta| = 1`, the solutions are polynomials of such nodes u (:math:`1 + x + x^2` and :math:`1 + x`) or generalise them:

.. math:: z_{syn} = \begin{pmatrix} 1 & \omega & \bar\omega \\ 1 & \omega & \bar\omega \\
        1 & \omega & \bar\omega \end{pmatrix},\quad
    z_{\alpha\beta} = \begin{pmatrix} 1 & \alpha\omega & \beta\bar\omega \\ 1 & \bar\alpha\omega & \bar\beta\bar\omega \\
        1 & \omega & \bar\omega \end{pmatrix},\quad
    z_\nu = \begin{pmatrix} 1 & \nu \\ 1 & -\nu \\ 1 & -\bar\nu^2 \end{pmatrix},\quad
    z_\xi = \begin{pmatrix} 1 & \xi \\ 1 & -i\bar\xi \\ 1 & i \end{pmatrix}

and the twin of the last has :math:`(\xi, i\bar\xi, -i)`.
Source: arXiv:2410.01779, partial solutions; entries of the table that it leaves out: derived. Letters: d elements of the group,
n nodes.

How few nodes can solve one pair of frequencies: least squares over blocks of a given order, from many starts.

What a block of nodes at k and -k alone adds to the loss is, as a share of what it adds without any node,

.. math:: |r_{kkk} - 1|^2 + |r_{-kkk}|^2 + |r_{k,-k,k}|^2 + |r_{k,k,-k}|^2 + \Bigl|\sum_p r_{p,k,-k,k}\Bigr|^2
    + \tfrac14 \sum_p \bigl( |r_{p,k,k,k}|^2 + |r_{p,-k,-k,k}|^2 \bigr),

from :func:`spectrum.terms` (for 4k = 0 the last two would be taken together). Where another block carries the bias, the fifth
term is dropped.
Source: derived from arXiv:2410.01779, Theorem 1. Letters: n nodes.

Global solutions: networks of zero loss, composed from partial solutions at every frequency of a finite Abelian group.

With y a node of free phases at each pair k, -k of frequencies, in the paper's scale:

.. math:: z_{F6} = 6^{-1/3} \sum_k z_{syn} * z_\nu * y_k, \qquad
    z_{F4/6} = 6^{-1/3} \sum_{k \in C} \hat z_{syn} * z_\nu * y_k + 4^{-1/3} \sum_{k \notin C} z_{\nu=i} * z_\xi * y_k

The blocks of order 4 leave a mean, :math:`S_k = \sum_{p,\pm k'} r_{p,k',-k',k}`; the blocks of order 6 at the carriers C take it
away by a constant in layer c of all their nodes, :math:`\delta_k = -S_k / (2\sum_C \sum_{p,j} |z_{pk_0j}|^2)` at every k outside C.
A real character (2k = 0) has a real block of two nodes. The solution that memorises has a node for each pair of elements.
Source: arXiv:2410.01779, corollaries on composed solutions; several carriers and real characters: derived. Letters: d elements of
the group, n pairs of frequencies, m nodes of a block, q nodes. Every function returns an :class:`Element` in the paper's scale;
:func:`semiring.weights` makes real weights of it.

Bias carriers: what order-6 groups of nodes add to the mean that order-4 groups leave, and what that does to trained networks.

The mean of the output over both operands, paper scale, has at frequency k the part

.. math:: m_k = r_{00k} + \tfrac12 \sum_{p,k'} r_{p,k',-k',k} = \sum_j v_j c_{kj}, \qquad
    v_j = \tfrac12 |a_{0j} + b_{0j}|^2 + \sum_{k' > 0} (|a_{k'j}|^2 + |b_{k'j}|^2)

(k' > 0: one of each pair), and each costs :math:`2|m_k|^2/d` of the loss. The own nodes of an order-4 frequency give
:math:`|m_k| = \sqrt 2`. Entries :math:`c_{kj}` of order-6 nodes at the frequencies of others cancel it, and do nothing else: over
an order-6 block the sums of ab, a conj b, aa and bb vanish. Without them the loss rises by the means'
own cost, 4/d for each exact block.
Weight decay holds a network at the least norm that solves the task, a little below the solution: where the gradient of
:math:`L + \tfrac\lambda2 \|w\|^2` vanishes, so does its part along w, which gives
:math:`2d \sum_{k\ne0} \mathrm{Re}\,r_{kkk} = d - 1 - d\,(L + \tfrac\lambda6 \|w\|^2)`.
Source: arXiv:2410.01779, composed solutions; the sharing and the law of decay: derived. Letters: d elements of the group.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Complex, Float, Inexact, Int, Num, PRNGKeyArray

from jaxdyn import linalg
from jaxdyn.data.abelian import Abelian
from jaxdyn.errors import UsageError
from jaxdyn.theories.cogo.dynamics import semiring
from jaxdyn.theories.cogo.dynamics.semiring import Element, element

ENTRIES = ("abc", "~abc", "a~bc", "ab~c", "a~ac", "b~bc", "aac", "bbc", "~a~ac", "~b~bc")  # potentials at +-k; ~ conjugates
OMEGA = np.exp(2j * np.pi / 3 * np.arange(3))  # 1, omega and its conjugate

Unit = Complex[Array, ""]
Value = int | float | complex | Unit
Columns = Complex[Array, "3 n"]


def turn(angle: Float[Array, "*n"]) -> Complex[Array, "*n"]:
    """The number of modulus one at that angle."""
    return jnp.cos(angle) + 1j * jnp.sin(angle)


def node(a: Value, b: Value, c: Value) -> Complex[Array, "3 1"]:
    """A single node of these values."""
    return jnp.stack([jnp.asarray(v, jnp.complex128) for v in (a, b, c)])[:, None]


def unit(angles: Float[Array, "2"]) -> Complex[Array, "3 1"]:
    r""":math:`y = (e^{i\theta}, e^{i\phi}, e^{-i(\theta+\phi)})`, which turns phases and leaves abc alone."""
    return turn(jnp.stack([angles[0], angles[1], -angles[0] - angles[1]]))[:, None]


def multiply(*factors: Complex[Array, "3 _"]) -> Complex[Array, "3 m"]:
    """The product of the semi-ring, at one frequency."""
    product = factors[0]
    for factor in factors[1:]:
        product = (product[:, :, None] * factor[:, None, :]).reshape(3, -1)
    return product


def scaled(columns: Columns, factor: float) -> Columns:
    """All potentials times a positive factor."""
    return columns * factor ** (1 / 3)


def syn() -> Complex[Array, "3 3"]:
    r""":math:`z_{syn} = 1 + u + u^2` with u = (omega, omega, omega)."""
    return jnp.asarray(np.broadcast_to(OMEGA, (3, 3)))


def syn_ab(alpha: Unit, beta: Unit) -> Complex[Array, "3 3"]:
    r""":math:`z_{syn,\alpha\beta}`; at alpha = beta = 1 it is :func:`syn`."""
    a = jnp.stack([jnp.ones_like(alpha), alpha, beta])
    return jnp.stack([a, jnp.conj(a), jnp.ones_like(a)]) * jnp.asarray(OMEGA)


def nu_nodes(value: Unit) -> Complex[Array, "3 2"]:
    r""":math:`z_\nu = 1 + u` with :math:`u = (\nu, -\nu, -\bar\nu^2)`."""
    return jnp.concatenate([node(1, 1, 1), node(value, -value, -jnp.square(jnp.conj(value)))], 1)


def xi_nodes(value: Unit, twin: bool = False) -> Complex[Array, "3 2"]:
    r""":math:`z_\xi = 1 + u` with :math:`u = (\xi, -i\bar\xi, i)`, or with -i for i (the twin)."""
    i = -1j if twin else 1j
    return jnp.concatenate([node(1, 1, 1), node(value, -i * jnp.conj(value), i)], 1)


def embed(columns: Columns, group: Abelian, k: int) -> Element:
    """The element that holds the columns at k and their conjugates at -k.

    Raises:
        UsageError: if k is no frequency of the group, or one with a real character.
    """
    require_pair(group, k)
    z = jnp.zeros((3, group.order, columns.shape[1]), columns.dtype)
    return element(z.at[:, k].set(columns).at[:, group.negative[k]].set(jnp.conj(columns)))


def require_pair(group: Abelian, k: int) -> None:
    """Refuse a frequency that is its own conjugate.

    Raises:
        UsageError: if k is no frequency of the group, or one with a real character.
    """
    paired = [i for i in range(group.order) if group.negative[i] != i]
    if k not in paired:
        raise UsageError(
            f"k={k} is not allowed: the frequencies of {group} that come in pairs are {', '.join(map(str, paired)) or 'none'}"
        )


def potentials(z: Columns) -> Complex[Array, "10"]:
    """The sum potentials at one pair of frequencies up to conjugation, in the order of ``ENTRIES``."""
    a, b, c = z
    ca, cb, cc = jnp.conj(z)
    factors = (a, b, c), (ca, b, c), (a, cb, c), (a, b, cc), (a, ca, c), (b, cb, c), (a, a, c), (b, b, c), (ca, ca, c), (cb, cb, c)
    return jnp.stack([jnp.sum(x * y * w) for x, y, w in factors])


def _table(*entries: Value) -> Complex[Array, "10"]:
    return jnp.stack([jnp.asarray(e, jnp.complex128) for e in entries])


def syn_table() -> Complex[Array, "10"]:
    """Potentials of :func:`syn`, in the order of ``ENTRIES``."""
    return _table(3, 0, 0, 0, 0, 0, 3, 3, 0, 0)


def syn_ab_table(alpha: Unit, beta: Unit) -> Complex[Array, "10"]:
    """Potentials of :func:`syn_ab`."""
    a2, b2, w, v = alpha**2, beta**2, OMEGA[1], OMEGA[2]
    ca, cb = jnp.conj(a2), jnp.conj(b2)
    mixed = 1 + ca * w + cb * v, 1 + a2 * w + b2 * v
    return _table(3, *mixed, 0, 0, 0, 1 + a2 + b2, 1 + ca + cb, 1 + ca * v + cb * w, 1 + a2 * v + b2 * w)


def nu_table(value: Unit) -> Complex[Array, "10"]:
    """Potentials of :func:`nu_nodes`: those of (k, k) vanish, those of (-k, -k) only if the fourth power is 1."""
    c2 = jnp.conj(value) ** 2
    return _table(2, 1 + c2, 1 + c2, 1 + value**4, 1 - c2, 1 - c2, 0, 0, 1 - c2**2, 1 - c2**2)


def xi_table(value: Unit, twin: bool = False) -> Complex[Array, "10"]:
    """Potentials of :func:`xi_nodes`."""
    i, x2 = (-1j if twin else 1j), value**2
    c2 = jnp.conj(x2)
    return _table(2, 1 + c2, 1 - x2, 0, 1 + i, 1 + i, 1 + i * x2, 1 - i * c2, 1 + i * c2, 1 - i * x2)


SHRINK, GROW = 3.0, 4.0  # of the damping, after a step that lowers the loss and after one that does not


class Block(NamedTuple):
    """A search: the columns at k at its end; after each step, their share of the loss and Fourier norm squared over k and -k."""

    columns: Complex[Array, "3 n"]
    loss: Float[Array, " step"]
    energy: Float[Array, " step"]


def residual(columns: Complex[Array, "3 n"], bias: float | Float[Array, ""], star: float | Float[Array, ""]) -> Float[Array, "18"]:
    """The nine terms' amplitudes, real and imaginary, whose squares add up to the block's share of the loss.

    Args:
        columns: values of the nodes at k.
        bias: factor of the fifth amplitude: 1, or 0 where another block carries the bias.
        star: factor of the last four amplitudes, 1.
    """
    r = potentials(columns)
    r = jnp.concatenate([r[:1] - 1, r[1:4], bias * (r[4:5] + r[5:6]), star * r[6:] / 2])
    return jnp.concatenate([r.real, r.imag])


def solve(
    start: Complex[Array, "3 n"],
    nodes: Bool[Array, " n"],
    bias: float | Float[Array, ""],
    star: float | Float[Array, ""] = 1.0,
    steps: int = 200,
) -> Block:
    """Levenberg-Marquardt steps over the values of the marked nodes, from one start.

    There are more unknowns than equations, so a step is the damped one of least length, from a system of 18 equations.
    """

    # unknowns and equations
    def columns(v: Float[Array, " m"]) -> Complex[Array, "3 n"]:
        v = v.reshape(2, 3, -1)
        return jnp.where(nodes, v[0] + 1j * v[1], 0)

    def equations(v: Float[Array, " m"]) -> Float[Array, "18"]:
        return residual(columns(v), bias, star)

    # one damped step; it is taken if the residual falls
    def step(carry: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        v, damping = carry
        r, slope = equations(v), jax.jacrev(equations)(v)
        tried = v - slope.T @ linalg.solve(slope @ slope.T + damping * jnp.eye(18, dtype=v.dtype), r)
        lower = jnp.sum(jnp.square(equations(tried))) < jnp.sum(jnp.square(r))
        damping = jnp.clip(jnp.where(lower, damping / SHRINK, damping * GROW), 1e-16, 1e10)
        v = jnp.where(lower, tried, v)
        return (v, damping), (jnp.sum(jnp.square(equations(v))), 2 * jnp.sum(jnp.square(v)))

    # from the start, its unmarked nodes at zero
    first = jnp.stack([start.real, start.imag]).ravel()
    first = jnp.where(jnp.tile(nodes, 6), first, 0)
    (v, _), (loss, energy) = jax.lax.scan(step, (first, jnp.asarray(0.1, first.dtype)), None, length=steps)
    return Block(columns(v), loss, energy)


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
    return Numbers._make((*turn(angles[:, :4]).T, angles[:, 4:]))


def six(nu: Complex[Array, " n"], phases: Float[Array, "n 2"]) -> Complex[Array, "n 3 6"]:
    r"""Blocks of order 6: :math:`6^{-1/3} z_{syn} * z_\nu * y`."""
    return _blocks(lambda v, y: multiply(syn(), nu_nodes(v), unit(y)), nu, phases)


def six_ab(alpha: Complex[Array, " n"], beta: Complex[Array, " n"], phases: Float[Array, "n 2"]) -> Complex[Array, "n 3 6"]:
    r"""Blocks of order 6: :math:`6^{-1/3} z_{syn,\alpha\beta} * z_{\nu=i} * y`; only nu = i and nu = -i give zero loss."""
    return _blocks(lambda a, b, y: multiply(syn_ab(a, b), _nu_i(), unit(y)), alpha, beta, phases)


def four(xi: Complex[Array, " n"], phases: Float[Array, "n 2"], twin: bool = False) -> Complex[Array, "n 3 4"]:
    r"""Blocks of order 4: :math:`4^{-1/3} z_{\nu=i} * z_\xi * y`, without the bias that they need."""
    return _blocks(lambda x, y: multiply(_nu_i(), xi_nodes(x, twin), unit(y)), xi, phases)


def _nu_i() -> Complex[Array, "3 2"]:
    return nu_nodes(jnp.asarray(1j, jnp.complex128))


def _blocks(block: Any, *numbers: Inexact[Array, " n *_"]) -> Blocks:
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


def unit_element(group: Abelian, phases: Float[Array, "n 2"]) -> Element:
    """One node with the phases of y at every pair of frequencies, and ones at the real characters: it turns a solution."""
    columns = jnp.swapaxes(jax.vmap(unit)(phases)[..., 0], 0, 1)
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


def energy(pairs: int | Int[np.ndarray, "*m"], carriers: int | Num[np.ndarray | Array, "*m"], real: int = 0) -> Float[Any, "*m"]:
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


OWN = 2**0.5  # |m_k| of an exact order-4 block


def rise(group: Abelian, means: Float[Array, "*n k"]) -> Float[Array, "*n"]:
    r"""How much loss frequencies have whose own means, of these moduli, nothing cancels: :math:`2|m_k|^2/d` each."""
    return 2 * jnp.sum(jnp.square(means), -1) / group.order


def trained_norm(group: Abelian, energy: float | Float[Array, "*n"]) -> Float[Array, "*n"]:
    r"""Squared norm of the weights in the code's scale, from the Fourier norm in the paper's: :math:`d\,(2d)^{-2/3} E`."""
    return group.order * (2 * group.order) ** (-2 / 3) * jnp.asarray(energy)


def diagonal_under_decay(
    group: Abelian, decay: float | Float[Array, ""], norm: float | Float[Array, "*n"], loss: float | Float[Array, "*n"] = 0.0
) -> Float[Array, "*n"]:
    r""":math:`2d \sum_{k\ne0} \mathrm{Re}\,r_{kkk}` at a stationary point of loss and decay together (code scale, all pairs)."""
    return group.order - 1 - group.order * (loss + decay * jnp.asarray(norm) / 6)
