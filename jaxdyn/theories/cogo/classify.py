r"""The parts of a trained network: nodes by frequency, their factors, and which construction each factor is.

A node is active where some :math:`|z_{akj}|` of layer a exceeds a threshold, and belongs to the k at which it is largest. The order
of a frequency is the number of its nodes. Four or six nodes are split into two factors, F = (order 2) * (order 2 or 3): the
nodes are paired such that the ratios :math:`\rho_j = F_{cj}/F_{c,j+h}` of the pairs agree best; a node's exact symmetry
(a, b, c) -> (-a, -b, c) then makes the pairs' ratios agree in a and b as well. Each factor is scaled to abc = 1 and named by its
distance from the known partial solutions,

.. math:: z_\xi:\ (\xi, -i\bar\xi, i), \quad z_\nu:\ (\nu, -\nu, -\bar\nu^2), \quad
    z_{syn,\alpha,\beta}:\ a = (1, \alpha\omega, \beta\bar\omega),\ c = (1, \omega, \bar\omega), \qquad \omega = e^{2\pi i/3}.

Source: arXiv:2410.01779, section 6, with its thresholds. Choices made here where the rule leaves one:

- Reordering the pairs does not change the minimised error. Of all n! permutations one for each way to pair is tried, pairs in the
  order of their first nodes, so that the choice does not depend on rounding.
- The rule looks at c alone. Pairings that c cannot tell apart (:math:`z_{\nu=i}` has c = (1, 1)) tie; within rounding, the pairing
  with the least error in all three layers is taken. ``least`` is that least error over all pairings, ties or not.
- "unnormalised" (:math:`|abc - 1|` above the threshold) cannot occur after the division by :math:`(abc)^{1/3}`, whichever root is
  taken; ``raw`` is :math:`|abc - 1|` before it. The root is the principal one: where abc is close to -1 it jumps by
  :math:`\omega`.
- :math:`\beta` is :math:`a_3/\bar\omega`, as the partial solution defines it; the paper's own :math:`a_3/\omega` is
  :math:`\omega\beta`. The sign that makes the real part of a negative may turn alpha and beta by :math:`\pi`.

The same nodes can be paired in several ways, so angles (and z_nu with nu = i or omega i) are known up to a symmetry only:
:math:`\xi` up to conjugation and powers of i, :math:`\nu` up to conjugation, sign and powers of :math:`\omega`.
Letters: d elements, q nodes, k pairs of conjugate frequencies, n = 4 or 6 nodes, h = n/2.

The means that the nodes of a network leave in its output, by the nodes that give them, and the network without such entries.

At frequency k the mean of the output over both operands is :math:`m_k = \sum_j v_j c_{kj}`, see ``dynamics/solutions.py``.
Letters: d elements, q nodes, k pairs of conjugate frequencies.
"""

from __future__ import annotations

import functools
import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Complex, Float, Int, Shaped

from jaxdyn.data.abelian import Abelian
from jaxdyn.theories.cogo.dynamics.semiring import inverse, transform

NAMES = ("none", "unknown", "unnormalised", "xi", "nu=i", "nu", "syn", "syn,alpha,beta")
NONE, UNKNOWN, UNNORMALISED, XI, NU_I, NU, SYN, SYN_AB = range(len(NAMES))
COLUMNS = ("nu=i * xi", "nu=i * syn,alpha,beta", "nu * syn", "others")  # of the published table; -1: not counted there
ACTIVE = 0.05
NEAR = 0.1
FLIP = 0.2
TIE = 100  # roundings of a ratio of modulus one, within which two pairings agree equally well
SLOTS = 6
Number = float | Float[Array, ""]
OMEGA = np.exp(2j * np.pi / 3)


class Nodes(NamedTuple):
    """Which nodes make up each frequency."""

    spectrum: Complex[Array, "3 d q"]
    active: Bool[Array, " q"]
    owner: Int[Array, " q"]  # the node's frequency: 0 is the constant character, i + 1 is group.pairs[i]
    member: Bool[Array, "k q"]  # active nodes of each pair of frequencies
    order: Int[Array, " k"]


class Factor(NamedTuple):
    """A factor's name, and the distances that are compared with the thresholds (NaN where there is no such factor)."""

    label: Int[Array, " k"]  # index into NAMES
    raw: Float[Array, " k"]  # |abc - 1| before abc is scaled to 1, the larger of the columns
    c_i: Float[Array, " k"]  # order 2: least |c -+ i|
    c_one: Float[Array, " k"]  # |c - 1|
    a_i: Float[Array, " k"]  # least |a -+ i|
    opposite: Float[Array, " k"]  # |a + b|
    syn: Float[Array, " k"]  # order 3: distance of the farther column from (w, w, w) or its conjugate
    phases: Float[Array, " k"]  # the larger of |c_2 - w|, |c_3 - conj w|
    angle: Float[Array, " k"]  # of a: arg xi or arg nu in order 2, arg alpha in order 3
    beta: Float[Array, " k"]  # arg beta


class Classes(NamedTuple):
    """Order and construction at each pair of frequencies."""

    order: Int[Array, " k"]
    factorable: Bool[Array, " k"]
    err: Float[Array, " k"]  # of the chosen pairing; NaN unless the order is 4 or 6
    least: Float[Array, " k"]  # of the best pairing
    first: Factor
    second: Factor
    column: Int[Array, " k"]  # index into COLUMNS, -1 for what is not factorable or of another order


def active_threshold(group: Abelian) -> float:
    r"""Half the amplitude of a node of the exact order-4 solution, :math:`\frac12 (8d)^{-1/3}`; 0.05 at d = 125."""
    return 0.5 * (8 * group.order) ** (-1 / 3)


def nodes(w: Float[Array, "3 d q"], group: Abelian, active: Number = ACTIVE) -> Nodes:
    """Active nodes and their frequencies; real characters other than the first are left out."""
    z = transform(w, group)
    size = jnp.abs(z[0][np.concatenate([[0], group.pairs])])
    alive = jnp.max(size, 0) > active
    owner = jnp.argmax(size, 0)
    member = alive & (owner == np.arange(1, len(group.pairs) + 1)[:, None])
    return Nodes(z, alive, owner, member, jnp.sum(member, 1))


def energies(nodes: Nodes) -> Float[Array, " k"]:
    """Squared norm of all nodes of each frequency, those below the threshold of activity as well; in the spectrum's scale."""
    size = jnp.sum(jnp.square(nodes.spectrum.real) + jnp.square(nodes.spectrum.imag), (0, 1))
    own = nodes.owner == jnp.arange(1, len(nodes.order) + 1)[:, None]
    return jnp.sum(jnp.where(own, size, 0), 1)


def classify(w: Float[Array, "3 d q"], group: Abelian, active: Number = ACTIVE, near: Number = NEAR) -> Classes:
    r"""Order, factors and their names for each pair of conjugate frequencies, code scale.

    Args:
        w: weights in the code's scale.
        group: of odd order; real characters do not count.
        active: least :math:`|z_a|` of an active node; :func:`active_threshold` scales it for large d.
        near: largest distance from a partial solution that still gets its name; the largest relative error of a split is
            ``near * sqrt(3 n)``.
    """
    split = nodes(w, group, active)
    return named(split.order, groups(split, group), near)


def named(order: Int[Array, " k"], parts: Complex[Array, "k 3 6"], near: Number = NEAR) -> Classes:
    """Factors and their names from the order and the nodes of each frequency (of four, the first slots)."""
    four = jax.vmap(functools.partial(factorised, near=near))(parts[..., :4])
    six = jax.vmap(functools.partial(factorised, near=near))(parts)
    is_four, is_six = order == 4, order == 6

    def pick(x: Shaped[Array, " k"], y: Shaped[Array, " k"]) -> Shaped[Array, " k"]:
        other = jnp.array(NONE, x.dtype) if jnp.issubdtype(x.dtype, jnp.integer) else jnp.array(jnp.nan, x.dtype)
        return jnp.where(is_four, x, jnp.where(is_six, y, other))

    err, least, first, second = jax.tree.map(pick, four, six)
    factorable = err <= near * jnp.sqrt(3 * order.astype(err.dtype))
    column = jnp.where(factorable, _column(first.label, second.label), -1)
    return Classes(order, factorable, err, least, first, second, column)


def groups(split: Nodes, group: Abelian) -> Complex[Array, "k 3 6"]:
    """Each frequency's first six nodes in their own order; slots without a node hold ones."""
    taken, place = jax.lax.top_k(split.member.astype(jnp.int32), min(SLOTS, split.member.shape[1]))
    missing = SLOTS - place.shape[1]
    taken, place = (jnp.pad(x, ((0, 0), (0, missing))) for x in (taken, place))
    parts = jax.vmap(lambda row, at: row[:, at], in_axes=(1, 0))(split.spectrum[:, group.pairs], place)
    return jnp.where(taken[:, None] > 0, parts, 1)


@functools.cache
def _pairings(n: int) -> Int[np.ndarray, "p n"]:
    """Orders of n nodes whose j-th and (j + n/2)-th make a pair: all permutations, up to the order of the pairs."""
    every = np.array(list(itertools.permutations(range(n))), np.int32)
    return every[np.all(np.diff(every[:, : n // 2]) > 0, 1)]


def _paired(part: Complex[Array, "3 n"]) -> tuple[Complex[Array, "3 h"], Complex[Array, "3 h"], Float[Array, ""]]:
    """The first nodes of the pairs with signs chosen alike, the ratios second/first, and the ratios' spread."""
    h = part.shape[1] // 2
    left, right = part[:, :h], part[:, h:]
    turn = right[0] / left[0]
    sign = jnp.where(jnp.abs(turn - turn[0]) > FLIP, -1, 1).astype(part.dtype)
    left = left * jnp.stack([sign, sign, jnp.ones_like(sign)])
    ratio = right / left
    return left, ratio, _norm(ratio - jnp.mean(ratio, 1, keepdims=True), (0, 1))


def factorised(part: Complex[Array, "3 n"], near: Number) -> tuple[Float[Array, ""], Float[Array, ""], Factor, Factor]:
    """Error of the chosen pairing, least error of any pairing, and the two factors."""
    pairings = _pairings(part.shape[1])
    h = part.shape[1] // 2
    rho = part[2][pairings[:, :h]] / part[2][pairings[:, h:]]
    misfit = _norm(rho - jnp.mean(rho, 1, keepdims=True), 1)
    left, ratio, err = jax.vmap(lambda order: _paired(part[:, order]))(jnp.asarray(pairings))
    tie = misfit <= jnp.min(misfit) + TIE * jnp.finfo(misfit.dtype).eps
    best = jnp.argmin(jnp.where(tie, err, jnp.inf))
    one = jnp.mean(ratio[best], 1)
    other = left[best] / left[best][:, :1]
    second = order_two(other[:, 1], near) if h == 2 else order_three(other[:, 1:], near)
    return err[best], jnp.min(err), order_two(one, near), second


def _norm(x: Complex[Array, "..."], axis: int | tuple[int, ...]) -> Float[Array, "..."]:
    return jnp.sqrt(jnp.sum(jnp.square(x.real) + jnp.square(x.imag), axis))


def _cube_root(x: Complex[Array, "*n"]) -> Complex[Array, "*n"]:
    """The principal one."""
    return jnp.exp(jnp.log(x) / 3)


def order_two(column: Complex[Array, "3"], near: Number) -> Factor:
    """A factor (1, column) of order 2."""
    abc = jnp.prod(column)
    a, b, c = column / _cube_root(abc)
    c_i, a_i = (jnp.minimum(jnp.abs(x - 1j), jnp.abs(x + 1j)) for x in (c, a))
    c_one, opposite = jnp.abs(c - 1), jnp.abs(a + b)
    rules = [jnp.abs(a * b * c - 1) > near, c_i < near, (c_one < near) & (a_i < near), opposite < near]
    nan = jnp.full_like(c_i, jnp.nan)
    return Factor(
        label=_first_true(rules, [UNNORMALISED, XI, NU_I, NU]),
        raw=jnp.abs(abc - 1),
        c_i=c_i,
        c_one=c_one,
        a_i=a_i,
        opposite=opposite,
        syn=nan,
        phases=nan,
        angle=jnp.angle(a),
        beta=nan,
    )


def order_three(columns: Complex[Array, "3 2"], near: Number) -> Factor:
    """A factor (1, columns) of order 3."""
    abc = jnp.prod(columns, 0)
    columns = columns / _cube_root(abc)
    sign = jnp.where(columns[0].real > 0, -1, 1).astype(columns.dtype)
    columns = columns * jnp.stack([sign, sign, jnp.ones_like(sign)])
    columns = jnp.where(columns[2, 0].imag < 0, jnp.conj(columns), columns)
    turn = jnp.asarray(np.array([OMEGA, OMEGA.conj()]), columns.dtype)
    syn = jnp.max(_norm(columns - turn, 0))
    phases = jnp.max(jnp.abs(columns[2] - turn))
    angle = jnp.angle(columns[0] / turn)
    nan = jnp.full_like(syn, jnp.nan)
    return Factor(
        label=_first_true([syn < near * 3**0.5, phases < near], [SYN, SYN_AB]),
        raw=jnp.max(jnp.abs(abc - 1)),
        c_i=nan,
        c_one=nan,
        a_i=nan,
        opposite=nan,
        syn=syn,
        phases=phases,
        angle=angle[0],
        beta=angle[1],
    )


def _first_true(rules: list[Bool[Array, ""]], labels: list[int]) -> Int[Array, ""]:
    return jnp.select(rules, [jnp.int32(label) for label in labels], jnp.int32(UNKNOWN))


def _column(first: Int[Array, " k"], second: Int[Array, " k"]) -> Int[Array, " k"]:
    """The published table's column of two names."""
    low, high = jnp.minimum(first, second), jnp.maximum(first, second)
    rules = [
        (low == XI) & (high == NU_I),
        (first == NU_I) & ((second == SYN) | (second == SYN_AB)),
        (first == NU) & (second == SYN),
    ]
    return jnp.select(rules, [jnp.int32(i) for i in range(3)], jnp.int32(3))


PARTS = ("own", "order 6", "order 4", "rest")  # the frequency's own nodes; other groups; all other nodes, and zero modes


def node_orders(nodes: Nodes) -> Int[Array, " q"]:
    """The order of each node's frequency; 0 for nodes that belong to none."""
    return jnp.sum(jnp.where(nodes.member, nodes.order[:, None], 0), 0)


def means(nodes: Nodes, group: Abelian) -> Complex[Array, "4 k"]:
    """m_k by the nodes that give it (``PARTS``), paper scale; the spectrum's is the code's."""
    z, order = nodes.spectrum, node_orders(nodes)
    power = jnp.square(z[:2].real) + jnp.square(z[:2].imag)
    size = jnp.sum(power[:, group.pairs], (0, 1)) + jnp.sum(power[:, group.real], (0, 1)) / 2
    constant = jnp.square((z[0, 0] + z[1, 0]).real) / 2
    c = 2 * group.order * z[2, group.pairs]
    other = ~nodes.member
    choose = [nodes.member, (order == 6) & other, (order == 4) & other, (order != 4) & (order != 6) & other]
    parts = jnp.stack([jnp.sum(jnp.where(chosen, size * c, 0), 1) for chosen in choose])
    return parts.at[PARTS.index("rest")].add(jnp.sum(constant * c, 1))


def ablated(nodes: Nodes, group: Abelian, carriers: Bool[Array, " q"]) -> Float[Array, "3 d q"]:
    """Weights without the c-entries of these nodes at order-4 frequencies that are not their own."""
    cut = carriers & (nodes.order == 4)[:, None] & ~nodes.member
    rows = jnp.zeros(nodes.spectrum.shape[1:], bool).at[group.pairs].set(cut).at[group.negative[group.pairs]].set(cut)
    z = nodes.spectrum.at[2].set(jnp.where(rows, 0, nodes.spectrum[2]))
    return inverse(z, group)
