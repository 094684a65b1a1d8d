r"""The trial of theorem 4: maxima of the energy on all pairs follow the flow of the energy on random pairs.

A node starts at an exact maximum of the energy on all pairs and follows the flow of the energy on n of the M^2 pairs, drawn
without replacement, with :math:`n = c\, M \ln M`. Measured is the share of its squared norm at the end in the irrep in which it
started, its mass. A subset grows with c: the pairs that come next in one order are added.
Letters and the three energies as in ``dynamics/retention.py``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

import jaxdyn as jd
from jaxdyn.data.groups import parse
from jaxdyn.data.irreps import Irreps, decompose
from jaxdyn.theories.li2.dynamics import energy
from jaxdyn.theories.li2.dynamics import retention as theory

__all__ = ["CYCLIC", "DEGREES", "Retention", "split_start", "trial"]

_EXACT = jax.lax.Precision.HIGHEST
LARGE, SOME = 128, 8  # from this order on, so many subsets at a time
CYCLIC = ("11", "23", "47")
DEGREES = ("D12/1", "D12/2", "S4/3")


@jd.setting
class Retention:
    """Nodes at maxima, one for each subset. A start is a group, or group/degree for an irrep of that degree.

    Each subset has its own random factor on c, up to ``spread``, the ratio of neighbouring values of the grid, so that all values
    between them occur.
    """

    c: jd.Swept = 2.5
    spread: jd.Swept = 1.3
    ridge: jd.Swept = 1e-3
    starts: tuple[str, ...] = CYCLIC + DEGREES
    subsets: int = 26
    steps: int = 300
    step: float = 0.4

    def __post_init__(self) -> None:
        """Refuse starts that do not exist, steps beyond which the flow is not followed, and no subsets."""
        for start in self.starts:
            _could_be(start)
        jd.require(self, len(self.starts) >= 1, "there is at least one start", "starts")
        jd.require(self, len(set(self.starts)) == len(self.starts), "the starts differ", "starts")
        for name in ("subsets", "steps", "spread"):
            jd.require(self, getattr(self, name) >= 1, "it is at least 1", name)
        for name in ("c", "ridge"):
            jd.require(self, getattr(self, name) > 0, "it is positive", name)
        jd.require(self, 0 < self.step <= 0.5, "the step is between 0 and .5", "step")


def split_start(start: str) -> tuple[str, int]:
    """The group's name and the degree: 1 where a start names none."""
    name, _, degree = start.partition("/")
    if degree and not degree.isdigit():
        raise jd.UsageError(f"start={start!r} is not allowed: it is a group or group/degree, e.g. 23 or S4/3")
    return name, int(degree or 1)


def _could_be(start: str) -> None:
    """Refuse a degree that no group of this order has; other degrees are refused by the trial, which decomposes the group."""
    name, degree = split_start(start)
    order = parse(name).order
    if order % degree or degree**2 >= order:
        raise jd.UsageError(f"start={start!r} is not allowed: {name} has no irrep of degree {degree} but the trivial one")


def _origin(start: str) -> tuple[Irreps, tuple[int, ...]]:
    """The irreps of the start's group, and the first one or pair of its degree: of complex type if there is any."""
    name, degree = split_start(start)
    irreps = decompose(parse(name))
    fitting = [numbers for numbers in irreps.merged[1:] if irreps.degrees[numbers[0]] == degree]
    if not fitting:
        raise jd.UsageError(f"start={start!r} is not allowed: {name} has no irrep of degree {degree} but the trivial one")
    return irreps, max(fitting, key=len)


def trial(s: Retention, key: PRNGKeyArray) -> jd.Observables:
    """The mass at the end in the irrep of the start, for each energy, start and subset."""
    origins = [_origin(start) for start in s.starts]
    orders = [irreps.group.order for irreps, _ in origins]
    ends: dict[int, tuple[Array, ...]] = {}
    for m in dict.fromkeys(orders):  # starts in groups of one order share their part of the program
        same = [i for i, order in enumerate(orders) if order == m]
        keys = jnp.stack([jax.random.fold_in(key, _number(s.starts[i])) for i in same])
        groups = theory.Tables(*map(np.stack, zip(*(theory.tables(origins[i][0].group) for i in same), strict=True)))
        nodes = jnp.stack([_maxima(s, k, *origins[i]) for k, i in zip(keys, same, strict=True)])
        w, gradient, p = jax.vmap(lambda key, group, w, m=m: _flows(s, m, key, group, w))(keys, groups, nodes)
        ends |= {i: (_masses(w[place], *origins[i]), gradient[place], p[place]) for place, i in enumerate(same)}
    share = np.array([sum(irreps.degrees[k] ** 2 for k in numbers) for irreps, numbers in origins]) / np.array(orders, float)
    mass, gradient = (jnp.stack([ends[i][part] for i in range(len(orders))], 1) for part in range(2))
    return jd.observables(
        measured={"mass": jd.named(mass, "object start subset")},
        recorded={
            "gradient": jd.named(gradient, "object start subset"),
            "p": jd.named(jnp.stack([ends[i][2] for i in range(len(orders))]), "start subset"),
            "order": jd.named(jnp.asarray(orders, jnp.float64), "start"),
            "degree": jd.named(jnp.asarray([float(split_start(start)[1]) for start in s.starts]), "start"),
            "share": jd.named(jnp.asarray(share), "start"),
        },
        coords={"object": theory.OBJECTS, "start": s.starts},
    )


def _number(start: str) -> int:
    """Stable id: a start's draws do not depend on the other starts."""
    return int.from_bytes(hashlib.sha256(start.encode()).digest()[:4], "big")


def _maxima(s: Retention, key: PRNGKeyArray, irreps: Irreps, numbers: tuple[int, ...]) -> Float[Array, "D S"]:
    """A maximum on all pairs for each subset."""
    return energy.random_maximum(jax.random.split(key, 3)[1], irreps, numbers[0], s.subsets)


def _flows(
    s: Retention, m: int, key: PRNGKeyArray, group: theory.Tables, w: Float[Array, "D S"]
) -> tuple[Float[Array, "object D S"], Float[Array, "object S"], Float[Array, " S"]]:
    """Nodes and gradients at the end for each energy, and p."""
    k_subsets, _, k_sizes = jax.random.split(key, 3)
    c = s.c * s.spread ** jax.random.uniform(k_sizes, (s.subsets,), jnp.float64, -0.5, 0.5)
    pairs = jnp.minimum(jnp.round(c * m * np.log(m)), m * m)
    mask = theory.draw(k_subsets, m, s.subsets) < pairs

    def some(part: tuple[Array, Array]) -> tuple[Array, Array]:
        w, mask = part
        # the cross term alone and the whole energy side by side: one flow
        squares = jnp.repeat(jnp.arange(2.0, dtype=jnp.float64), w.shape[-1])
        both = theory.unwhitened(jnp.concatenate([mask, mask], 2), group, squares)
        first = theory.flow(jnp.concatenate([w, w], 1), group, both, s.steps, s.step)
        last = theory.flow(w, group, theory.make_data(mask, group, "whitened", s.ridge), s.steps, s.step)
        return jnp.stack([*jnp.split(first.w, 2, 1), last.w]), jnp.stack([*jnp.split(first.gradient, 2), last.gradient])

    ends, gradients = in_blocks(some, (w, mask), block(m, s.subsets))
    return ends, gradients, pairs / m**2


def block(m: int, subsets: int) -> int:
    """How many subsets go together: so many that what a step reads stays in a core's cache."""
    return subsets if m < LARGE else next(size for size in range(min(SOME, subsets), 0, -1) if subsets % size == 0)


def in_blocks(f: Callable[[Any], Any], x: Any, size: int) -> Any:
    """The function over blocks of the last axis, one after another."""
    count = jax.tree.leaves(x)[0].shape[-1] // size
    if count == 1:
        return f(x)
    parts = jax.tree.map(lambda a: jnp.moveaxis(a.reshape(*a.shape[:-1], count, size), -2, 0), x)
    return jax.tree.map(lambda a: jnp.moveaxis(a, 0, -2).reshape(*a.shape[1:-1], count * size), jax.lax.map(f, parts))


def _masses(w: Float[Array, "object D S"], irreps: Irreps, numbers: tuple[int, ...]) -> Float[Array, "object S"]:
    """The share of the squared norm in these irreps."""
    projector = jnp.asarray(sum(irreps.projector(k) for k in numbers).real)
    halves = energy.split(jnp.concatenate(list(w), 1), irreps.group)
    return sum(jnp.sum(jnp.square(jnp.matmul(projector, f, precision=_EXACT)), 0) for f in halves).reshape(len(w), -1)
