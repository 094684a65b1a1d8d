"""A traced trial as a flat list of equations with their source lines, and which of them its predictions alone depend on.

Calls (``jit``, custom derivatives, checkpoints) are inlined; loops, branches and solves stay one equation each.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn.engine.base.failure import PACKAGE, installed, shown_path
from jaxdyn.engine.programs.tracing import Traced, subjaxprs

__all__ = ["Equation", "Flat", "Known", "Slot", "behind", "evaluate", "flatten", "is_loop", "slots", "values_of"]

# calls of a jaxpr that are inlined, and the parameter that holds it
INLINED = {
    "jit": "jaxpr",
    "pjit": "jaxpr",
    "closed_call": "call_jaxpr",
    "core_call": "call_jaxpr",
    "checkpoint": "jaxpr",
    "remat": "jaxpr",
    "remat2": "jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
    "custom_vjp_call_jaxpr": "fun_jaxpr",
}
# equations that move numbers and change none: a gain on one is a gain on what made the number
MOVES = {
    *("broadcast_in_dim", "reshape", "transpose", "squeeze", "expand_dims", "convert_element_type", "copy", "copy_p", "rev"),
    *(
        "slice",
        "dynamic_slice",
        "gather",
        "concatenate",
        "pad",
        "select_n",
        "stop_gradient",
        "reduce_precision",
        "optimization_barrier",
    ),
    *(
        "neg",
        "nextafter",
        "sign",
        "dynamic_update_slice",
        "scatter",
        "split",
        "real",
        "imag",
        "device_put",
        "sharding_constraint",
        "iota",
        "pvary",
    ),
}
LOOPS = {"while", "scan", "cond", "custom_linear_solve"}  # their gains lie on what enters them


class Known(NamedTuple):
    """A value that is known when the trial is traced."""

    value: Any


@dataclasses.dataclass(frozen=True)
class Equation:
    """One equation: its primitive and parameters, where its inputs come from, its outputs, and its place in the source.

    Args:
        eqn: of the jaxpr.
        ins: for each input, the number of a value or a :class:`Known` one.
        outs: the numbers of its outputs.
        place: ``file.py:79``, the line of the theory or of the user's file that made it.
    """

    eqn: Any
    ins: tuple[int | Known, ...]
    outs: tuple[int, ...]
    place: str

    @property
    def primitive(self) -> str:
        """The operation."""
        return str(self.eqn.primitive.name)


@dataclasses.dataclass(frozen=True)
class Flat:
    """A trial's equations in order; values are numbered, the arguments first.

    Args:
        count: number of arguments.
        equations: in order.
        outs: for each result, the number of a value or a known one.
        results: the trial's observables with places of ``outs`` instead of arrays.
    """

    count: int
    equations: tuple[Equation, ...]
    outs: tuple[int | Known, ...]
    results: Any


def flatten(traced: Traced) -> Flat:
    """The equations of a traced trial, calls inlined."""
    closed = traced.jaxpr
    numbers, equations = iter(range(10**9)), list[Equation]()

    def inline(jaxpr: Any, consts: Sequence[Any], arguments: Sequence[int | Known], outer: str) -> list[int | Known]:
        env: dict[Any, int | Known] = dict(zip(jaxpr.constvars, map(Known, consts), strict=True))
        env |= dict(zip(jaxpr.invars, arguments, strict=True))

        def of(atom: Any) -> int | Known:
            return Known(atom.val) if hasattr(atom, "val") else env[atom]

        for eqn in jaxpr.eqns:
            ins, place = tuple(map(of, eqn.invars)), _place(eqn) or outer
            inner = eqn.params.get(INLINED.get(eqn.primitive.name, ""))
            if inner is not None:
                found = inline(getattr(inner, "jaxpr", inner), getattr(inner, "consts", ()), ins[len(ins) - _arity(inner) :], place)
                env |= dict(zip(eqn.outvars, found, strict=True))
                continue
            outs = tuple(next(numbers) for _ in eqn.outvars)
            env |= dict(zip(eqn.outvars, outs, strict=True))
            equations.append(Equation(eqn, ins, outs, place))
        return list(map(of, jaxpr.outvars))

    arguments = [next(numbers) for _ in closed.jaxpr.invars]
    outs = inline(closed.jaxpr, closed.consts, arguments, "")
    leaves = jax.tree.leaves(traced.results)
    places = jax.tree.unflatten(jax.tree.structure(traced.results), range(len(leaves)))
    return Flat(len(arguments), tuple(equations), tuple(outs), places)


def _arity(inner: Any) -> int:
    return len(getattr(inner, "jaxpr", inner).invars)


def _place(eqn: Any) -> str:
    """The innermost line of a theory or of a user's file behind an equation; empty if there is none."""
    traceback = eqn.source_info.traceback
    frames = traceback.frames if traceback is not None else []
    for frame in frames:
        if _own(frame.file_name):
            return f"{shown_path(frame.file_name)}:{frame.line_num}"
    return ""


def _own(file: str) -> bool:
    """Whether a file is a theory's or a user's."""
    path = Path(file)
    return path.is_relative_to(PACKAGE / "theories") or not (
        path.is_relative_to(PACKAGE) or file.startswith("<") or installed(path)
    )


def behind(flat: Flat, wanted: Iterable[int]) -> set[int]:
    """The places of the equations on which some values depend."""
    makers = {out: i for i, equation in enumerate(flat.equations) for out in equation.outs}
    found, todo = set[int](), [makers[v] for v in wanted if v in makers]
    while todo:
        i = todo.pop()
        if i in found:
            continue
        found.add(i)
        todo += [makers[v] for v in flat.equations[i].ins if not isinstance(v, Known) and v in makers]
    return found


def values_of(flat: Flat, *groups: Mapping[str, Any]) -> list[int]:
    """The numbers of the values that some observables are; known ones have none."""
    outs = [flat.outs[item.value] for group in groups for item in group.values()]
    return [v for v in outs if not isinstance(v, Known)]


class Slot(NamedTuple):
    """A number in the theory that can be given a gain: an equation's output, or what enters a loop.

    Args:
        place: of the source line.
        primitive: the operation.
        operand: number of the input of a loop; -1 for an output.
        nth: to tell apart slots that agree in all else.
    """

    place: str
    primitive: str
    operand: int
    nth: int

    def __str__(self) -> str:
        what = self.primitive if self.operand < 0 else f"input {self.operand + 1} of a {self.primitive} loop"
        return f"{self.place}, {what}" + (f" ({self.nth + 1})" if self.nth else "")


def is_loop(equation: Equation) -> bool:
    """Whether an equation makes steps that depend on one another, or has one inside that does; a map over an axis does not."""
    inner = [getattr(v, "jaxpr", v) for p in equation.eqn.params.values() for v in (p if isinstance(p, tuple | list) else (p,))]
    within = (eqn for jaxpr in inner if hasattr(jaxpr, "eqns") for one in subjaxprs(jaxpr) for eqn in one.eqns)
    return any(map(_steps, (equation.eqn, *within)))


def _steps(eqn: Any) -> bool:
    return bool(eqn.primitive.name == "while" or (eqn.primitive.name == "scan" and eqn.params["num_carry"] > 0))


def _among(value: int | Known, numbers: Container[int]) -> bool:
    return not isinstance(value, Known) and value in numbers


def slots(flat: Flat, theory: Iterable[int]) -> dict[Slot, tuple[int, int]]:
    """The slots of a theory, with the equation and the operand of each; what is equal in all runs enters loops without a slot."""
    varying = set(range(flat.count))
    for equation in flat.equations:
        if any(_among(v, varying) for v in equation.ins):
            varying |= set(equation.outs)
    met: dict[tuple[str, str, int], int] = {}
    found = {}
    for i in sorted(theory):
        equation = flat.equations[i]
        if equation.primitive in MOVES:
            continue
        loop = equation.primitive in LOOPS
        atoms = equation.eqn.invars if loop else equation.eqn.outvars[:1]
        for k, atom in enumerate(atoms):
            if not jnp.issubdtype(atom.aval.dtype, jnp.inexact) or (loop and not _among(equation.ins[k], varying)):
                continue
            name = equation.place, equation.primitive, k if loop else -1
            met[name] = met.get(name, -1) + 1
            found[Slot(*name, met[name])] = i, k if loop else -1
    return found


def evaluate(
    flat: Flat,
    chosen: Iterable[int],
    env: dict[int, Any],
    gains: Mapping[tuple[int, int], Any],
    cut: Container[int] = (),
    shifts: Mapping[int, Any] = MappingProxyType({}),
) -> None:
    """Evaluate some equations in order and add their values to ``env``.

    Args:
        flat: the trial.
        chosen: places of equations; all their inputs are in ``env`` or made by earlier ones.
        env: values by number; changed in place.
        gains: factor of an equation's operand, or of its output (-1).
        cut: places of equations that are not evaluated: their outputs are arbitrary numbers.
        shifts: a factor of all floating-point outputs of an equation, and a number added to them.
    """
    for i in chosen:
        if i in cut:
            env |= {
                out: _shifted(_arbitrary(v.aval), shifts.get(i))
                for out, v in zip(flat.equations[i].outs, flat.equations[i].eqn.outvars, strict=True)
            }
            continue
        equation = flat.equations[i]
        values = [v.value if isinstance(v, Known) else env[v] for v in equation.ins]
        values = [_times(v, gains[i, k]) if (i, k) in gains else v for k, v in enumerate(values)]
        params = equation.eqn.primitive.get_bind_params(equation.eqn.params)
        with equation.eqn.ctx.manager:
            found = equation.eqn.primitive.bind(*values, **params)
        found = list(found) if equation.eqn.primitive.multiple_results else [found]
        if (i, -1) in gains:
            found[0] = _times(found[0], gains[i, -1])
        env |= {out: _shifted(value, shifts.get(i)) for out, value in zip(equation.outs, found, strict=True)}


def _times(value: Any, gain: Any) -> Any:
    return value * jnp.asarray(gain, jnp.result_type(value))


def _shifted(value: Any, shift: Any) -> Any:
    """A floating-point value times one number plus another; others unchanged."""
    if shift is None or not jnp.issubdtype(jnp.result_type(value), jnp.inexact):
        return value
    factor, more = shift
    return value * factor.astype(jnp.result_type(value)) + more.astype(jnp.result_type(value))


def _arbitrary(aval: Any) -> Any:
    """A value of this kind: numbers between .5 and 1.5, a key, or ones."""
    if jnp.issubdtype(aval.dtype, jax.dtypes.prng_key):
        shape = jax.eval_shape(jax.random.key_data, jax.ShapeDtypeStruct(aval.shape, aval.dtype)).shape
        return jax.random.wrap_key_data(
            jnp.zeros(shape, jnp.uint32), impl=jax.random.key_impl(jax.random.key(0, impl="threefry2x32"))
        )
    if not jnp.issubdtype(aval.dtype, jnp.inexact):
        return jnp.ones(aval.shape, aval.dtype)
    count = int(np.prod(aval.shape))
    return jnp.asarray(np.random.default_rng(count).uniform(0.5, 1.5, aval.shape), aval.dtype)
