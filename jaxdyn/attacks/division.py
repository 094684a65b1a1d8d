"""Which equations of a trial are the theory's: predictions depend on them, and nothing measured does.

A trial may put both sides into one array, to find the ranks of both at once; then every equation that follows depends on both, by
its inputs, though no number does. So dependence is asked of numbers: an equation's outputs are shifted, and what changes depends on
it. Loops are cut: their outputs are arbitrary numbers, and what depends on a loop depends on all that its inputs depend on. So
nothing is trained and no equation is solved.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn.attacks.equations import Flat, Known, behind, evaluate, is_loop, values_of
from jaxdyn.engine.claims.resource import shared_by
from jaxdyn.engine.programs.chunk import Program
from jaxdyn.engine.programs.program import known_options
from jaxdyn.engine.programs.tracing import swept_arrays

__all__ = ["Division", "divide"]

JOINS = {"concatenate", "stack", "dynamic_update_slice", "scatter", "select_n"}  # equations that may put both sides into one array
ROUNDING = 1e-5  # relative difference between numbers that no shift moved
# of an equation's outputs, a factor and a number added: small, large, and beyond thresholds on either side
SHIFTS = ((1.3, 0.1), (0.0, 1e-3), (1e3, 0.0), (-1.0, 0.0))
ROWS = 16  # equations whose outputs are shifted in one call
SEED = 0  # of the run in which dependence is asked


@dataclasses.dataclass(frozen=True)
class Division:
    """The equations behind a trial's predictions.

    Args:
        theory: on which predictions depend and nothing measured does.
        before: other equations, whose values the theory starts from.
        after: those that depend on the theory by their inputs, the theory's own among them; gains are given here.
        cut: loops on which no prediction depends, though their values enter an equation: a network's training.
    """

    theory: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    cut: frozenset[int]

    def trains(self, flat: Flat) -> bool:
        """Whether a loop comes before the theory: a network's training, from whose end the prediction starts."""
        return any(is_loop(flat.equations[i]) for i in self.before if i not in self.cut)


def divide(flat: Flat, program: Program, cell: tuple[Any, ...]) -> Division:
    """The division of a trial's equations."""
    predicted = behind(flat, values_of(flat, flat.results.predicted))
    measured = behind(flat, values_of(flat, flat.results.measured))
    theory, cut = predicted - measured, frozenset[int]()
    if any(_joins(flat, i) for i in predicted & measured):
        shared, cut = _by_numbers(flat, sorted(predicted | measured), predicted & measured, program, cell)
        theory |= shared
    reached, after = {out for i in theory for out in flat.equations[i].outs}, set(theory)
    for i in sorted(predicted):
        if i not in after and i not in cut and any(not isinstance(v, Known) and v in reached for v in flat.equations[i].ins):
            after.add(i)
        if i in after:
            reached |= set(flat.equations[i].outs)
    before = _without(flat, predicted - after, cut, after)
    return Division(tuple(sorted(theory)), tuple(sorted(before)), tuple(sorted(after)), cut & before)


def _without(flat: Flat, candidates: set[int], cut: frozenset[int], after: set[int]) -> set[int]:
    """Of the equations before the theory, those that are needed once loops are cut."""
    makers = {out: i for i, equation in enumerate(flat.equations) for out in equation.outs}
    results = values_of(flat, flat.results.predicted)
    todo = [makers[v] for v in results if v in makers] + [
        makers[v] for i in after for v in flat.equations[i].ins if not isinstance(v, Known) and v in makers
    ]
    found = set[int]()
    while todo:
        i = todo.pop()
        if i in found or i not in candidates:
            continue
        found.add(i)
        if i not in cut:
            todo += [makers[v] for v in flat.equations[i].ins if not isinstance(v, Known) and v in makers]
    return found


def _joins(flat: Flat, place: int) -> bool:
    """Whether an equation joins several arrays that are not known before the run."""
    equation = flat.equations[place]
    return equation.primitive in JOINS and sum(not isinstance(v, Known) for v in equation.ins) > 1


def _by_numbers(
    flat: Flat, chosen: Sequence[int], both: set[int], program: Program, cell: tuple[Any, ...]
) -> tuple[set[int], frozenset[int]]:
    """Of the equations behind both sides the theory's, and the loops on which no prediction depends, by shifting their outputs."""
    loops = [i for i in chosen if is_loop(flat.equations[i])]
    asked = [i for i in chosen if i in loops or (i in both and _is_float(flat, i))]
    watched = [_inputs(flat, i) for i in loops]
    sides = [values_of(flat, flat.results.predicted), values_of(flat, flat.results.measured)]
    groups = [*sides, *watched]
    moved = _moved(flat, chosen, loops, asked, groups, program, cell)  # [asked, group]
    reach = {i: set(np.flatnonzero(row).tolist()) for i, row in zip(asked, moved, strict=True)}
    for i in reversed(loops):  # a loop's outputs depend on all its inputs
        place = 2 + loops.index(i)
        for own in reach.values():
            if place in own:
                own |= reach[i]
    theory = {i for i in asked if 0 in reach[i] and 1 not in reach[i]}
    return theory & both, frozenset(i for i in loops if 0 not in reach[i])


def _inputs(flat: Flat, place: int) -> list[int]:
    return [v for v in flat.equations[place].ins if not isinstance(v, Known)]


def _is_float(flat: Flat, place: int) -> bool:
    return any(jnp.issubdtype(v.aval.dtype, jnp.inexact) for v in flat.equations[place].eqn.outvars)


def _moved(
    flat: Flat,
    chosen: Sequence[int],
    loops: Sequence[int],
    asked: Sequence[int],
    watched: Sequence[Sequence[int]],
    program: Program,
    cell: tuple[Any, ...],
) -> np.ndarray[Any, Any]:
    """Which groups of values change when an equation's outputs are shifted, [equation, group]."""

    def of_row(swept: Any, seed: Any, shared: Any, row: Any, factor: Any, more: Any) -> list[list[Any]]:
        env: dict[int, Any] = dict(enumerate(jax.tree.leaves((swept, seed, shared))))
        evaluate(flat, chosen, env, {}, set(loops), {i: (1 + row[k] * (factor - 1), row[k] * more) for k, i in enumerate(asked)})
        return [[_plain(env[v]) for v in group] for group in watched]

    def every(swept: Any, seed: Any, shared: Any, rows: Any, factor: Any, more: Any) -> Any:
        base = of_row(swept, seed, shared, jnp.zeros(len(asked)), factor, more)

        def differs(row: Any) -> Any:
            found = of_row(swept, seed, shared, row, factor, more)
            groups = []
            for now, then in zip(found, base, strict=True):
                parts = [_differs(a, b) for a, b in zip(now, then, strict=True)]
                groups.append(jnp.any(jnp.stack(parts)) if parts else jnp.asarray(False))
            return jnp.stack(groups)

        return jax.lax.map(differs, rows)

    swept = {name: values[0] for name, values in swept_arrays(program, [cell]).items()}
    args = swept, np.uint32(SEED), shared_by(program)
    needed = np.asarray([[i in loops or group < 2 for group in range(len(watched))] for i in asked])
    rows, found = np.eye(len(asked)), np.zeros((len(asked), len(watched)), bool)
    with jax.enable_x64(True), jax.default_matmul_precision("highest"):
        shifts = [tuple(map(np.float64, shift)) for shift in SHIFTS]
        block = jax.ShapeDtypeStruct((min(ROWS, len(asked)), len(asked)), jnp.float64)
        compiled = jax.jit(every).lower(*args, block, *shifts[0]).compile(compiler_options=known_options("light"))
        for shift in shifts:
            left = np.flatnonzero((needed & ~found).any(1))  # what has moved all that is asked of it is not shifted again
            for some in np.split(left, range(block.shape[0], len(left), block.shape[0])) if len(left) else ():
                padded = np.zeros(block.shape)
                padded[: len(some)] = rows[some]
                found[some] |= np.asarray(compiled(*args, padded, *shift))[: len(some)]
    return found


def _plain(value: Any) -> Any:
    """A value as numbers: of a key, its data."""
    return jax.random.key_data(value) if jnp.issubdtype(jnp.result_type(value), jax.dtypes.prng_key) else jnp.asarray(value)


def _differs(one: Any, other: Any) -> Any:
    """Whether two arrays differ by more than rounding; NaN differs from nothing but numbers."""
    if not jnp.issubdtype(one.dtype, jnp.inexact):
        return jnp.any(one != other)
    nan = jnp.isnan(one) | jnp.isnan(other)
    size = jnp.max(jnp.where(nan, 0.0, jnp.abs(other)), initial=0.0)
    apart = jnp.where(nan, 0.0, jnp.abs(one - other)) > ROUNDING * jnp.where(jnp.isfinite(size), size, 1.0)
    return jnp.any(apart | (jnp.isnan(one) != jnp.isnan(other)))
