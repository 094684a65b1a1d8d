"""Checks of what a trial promises: pure in setting and key, traceable, batchable, in the setting's precision.

Static checks read the program (its jaxpr) and compile nothing; the others run it. Used by ``jaxdyn.testing.assert_trial``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Literal

from jaxdyn.engine.claims.observables import Observables
from jaxdyn.engine.claims.setting import columns, join, split
from jaxdyn.engine.programs.tracing import subjaxprs
from jaxdyn.errors import UsageError

__all__ = ["check_bits", "check_loops", "check_program", "check_request", "check_traces", "once", "with_arrays"]

Trial = Callable[[Any, jax.Array], Observables]
Compiled = Callable[[Any, jax.Array], Observables]
DRAWS = ("random_bits", "random_fold_in", "random_split", "random_unwrap", "threefry2x32")
SLACK = {"float64": 1e-7, "float32": 1e-2}  # allowed difference between ways to run a program, relative to an array's largest entry
SAME = ("broadcast_in_dim", "reshape", "squeeze", "copy", "stop_gradient", "reduce_precision")  # the number itself, again
ASKED = ("gt", "ge", "lt", "le", "eq", "ne")  # whether a count is positive, say, before it is rounded
ROUNDED = ("round", "floor", "ceil")
INDEX = "0, 1, 2, …"  # in place of a field's name: the numbers of an array's entries, possibly shifted
ROUNDING = 64  # allowed difference of every number in addition, in units of rounding of 1


def with_arrays(setting: Any) -> Any:
    """The setting with its swept fields as arrays of its dtype, as a trial gets it."""
    cls, (static, swept) = type(setting), split(setting)
    return join(cls, static, {name: jnp.asarray(column[0]) for name, column in columns(cls, static, [swept]).items()})


def check_request(trial: Any, setting: Any, others: Any, noise: Any) -> tuple[list[Any], list[str]]:
    """The further settings and the noise fields, as lists.

    Raises:
        UsageError: the trial is not a function, a setting is not one, further settings have other static fields, or a noise field
            is not swept.
    """
    if not callable(trial):
        raise UsageError(f"trial={trial!r:.60} is not allowed: it is a function (setting, key) -> jd.observables(...)")
    cls = type(setting)
    if not hasattr(cls, "swept_fields"):
        raise UsageError(f"setting={setting!r:.60} is not allowed: it is an instance of a class made by jd.setting")
    others = [others] if isinstance(others, cls) or not isinstance(others, Iterable) else list(others)
    for other in others:
        if not isinstance(other, cls) or split(other)[0] != split(setting)[0]:
            raise UsageError(f"others={other!r:.200} is not allowed: a further setting has the static fields of {setting!r:.200}")
    names = [noise] if isinstance(noise, str) or not isinstance(noise, Iterable) else list(noise)
    if unknown := [name for name in names if name not in cls.swept_fields]:
        raise UsageError(f"noise={unknown[0]!r} is not allowed: swept fields of {cls.__name__} are {', '.join(cls.swept_fields)}")
    return others, names


def check_program(trial: Trial, setting: Any, noise: Iterable[str] = (), wide: bool = False) -> None:
    """Check observables, their precision, counts, and what random numbers depend on, by the trial's program alone.

    Args:
        trial: the trial.
        setting: of one run.
        noise: swept fields on which random numbers may depend.
        wide: whether arrays of float64 are allowed in other precisions.

    Raises:
        AssertionError: one sentence says what is wrong.
    """
    key = jax.random.key(0)
    closed, out = jax.make_jaxpr(trial, return_shape=True)(with_arrays(setting), key)
    _expect(isinstance(out, Observables), "the trial does not return jd.observables(...)")
    if not wide and jnp.dtype(getattr(setting, "dtype", "float64")).itemsize < 8:
        found = sorted(
            {
                str(eqn.primitive)
                for part in subjaxprs(closed.jaxpr)
                for eqn in part.eqns
                if any(_is_wide(v.aval) for v in eqn.outvars)
            }
        )
        _expect(not found, f"arrays of float64 arise where dtype={setting.dtype}: in {', '.join(found)}")
    counts = [name for name in rounded_fields(closed.jaxpr, type(setting).swept_fields) if not _is_whole(type(setting), name)]
    _expect(not counts, f"the trial counts with {', '.join(counts)}, and would round 2.5: declare it jd.field(..., whole=True)")
    fields = [name for name in type(setting).swept_fields if name not in set(noise)]
    for name in fields:
        tainted = [field == name for field in type(setting).swept_fields] + [False]
        drawn = _flow(closed.jaxpr, tainted)[1]
        _expect(not drawn, f"random numbers depend on the field {name}: runs that differ in it are not comparable pair by pair")


def _expect(kept: bool, broken: str) -> None:
    """Raise an ``AssertionError`` unless a part of the contract is kept: ``python -O`` leaves out statements ``assert``."""
    if not kept:
        raise AssertionError(broken)


def _is_whole(cls: Any, name: str) -> bool:
    """Whether a setting refuses all but whole numbers of a field, or the field is a switch, whose numbers are its own."""
    return name in cls.code_names or (name in cls.ranges and cls.ranges[name].whole)


def rounded_fields(jaxpr: Any, names: Sequence[str]) -> list[str]:
    """The inputs that a program rounds, casts to integers or compares with indices, and reads in no other way but in comparisons.

    Args:
        jaxpr: the program.
        names: of its first inputs; further ones have none.
    """
    found: dict[str, set[str]] = {}
    outputs = _readers(jaxpr, [*names, *[""] * (len(jaxpr.invars) - len(names))], found)
    for name in {*outputs} - {"", INDEX}:
        found.setdefault(name, set()).add("output")
    return [name for name in names if "" in (ways := found.get(name, set())) and ways <= {"", *ASKED}]


def _readers(jaxpr: Any, names: Sequence[str], found: dict[str, set[str]]) -> list[str]:
    """Add to each name the primitives that read the input of this name, "" for rounding; which outputs are inputs unchanged.

    A comparison with indices rounds, too: ``jnp.arange(n) < s.nodes`` is the same for 2.2 and 2.8.
    """
    known = {id(v): name for v, name in zip(jaxpr.invars, names, strict=True)}
    for eqn in jaxpr.eqns:
        inputs, inner, kind = [known.get(id(v), "") for v in eqn.invars], _inner(eqn), eqn.primitive.name
        cast = kind == "convert_element_type"
        if kind == "iota":
            known[id(eqn.outvars[0])] = INDEX
        if not any(inputs):
            continue
        if len(inner) == 1 and len(inner[0].invars) == len(inputs) and kind not in ("scan", "while"):
            known |= {id(v): name for v, name in zip(eqn.outvars, _readers(inner[0], inputs, found), strict=True)}
        elif kind in SAME or (cast and (inputs[0] == INDEX or jnp.issubdtype(eqn.params["new_dtype"], jnp.inexact))):
            known[id(eqn.outvars[0])] = inputs[0]
        elif kind in ("add", "sub") and INDEX in inputs and any(isinstance(v, Literal) for v in eqn.invars):
            known[id(eqn.outvars[0])] = INDEX
        else:
            rounds = cast or kind in ROUNDED or (kind in ASKED and INDEX in inputs)
            for name in {*inputs} - {"", INDEX}:
                found.setdefault(name, set()).add("" if rounds else kind)
    return [known.get(id(v), "") for v in jaxpr.outvars]


def _is_wide(aval: Any) -> bool:
    return getattr(aval, "dtype", None) == jnp.float64 and len(aval.shape) > 0


def _inner(eqn: Any) -> list[Any]:
    """The programs inside an equation."""
    found = []
    for value in eqn.params.values():
        for part in value if isinstance(value, tuple | list) else (value,):
            part = getattr(part, "jaxpr", part)
            if hasattr(part, "eqns"):
                found.append(part)
    return found


def _flow(jaxpr: Any, tainted: list[bool]) -> tuple[list[bool], bool]:
    """Which results depend on tainted inputs, and whether the key of a random draw does."""
    known = {id(v): t for v, t in zip(jaxpr.invars, tainted, strict=True)}

    def of(v: Any) -> bool:
        return known.get(id(v), False)

    drawn = False
    for eqn in jaxpr.eqns:
        inputs, inner = [of(v) for v in eqn.invars], _inner(eqn)
        if eqn.primitive.name in DRAWS and inputs[0]:
            drawn = True
        outputs = [any(inputs)] * len(eqn.outvars)
        if inner and any(inputs):
            outputs, inside = _through(eqn, inner, inputs)
            drawn |= inside
        known |= {id(v): t for v, t in zip(eqn.outvars, outputs, strict=True)}
    return [of(v) for v in jaxpr.outvars], drawn


def _through(eqn: Any, inner: list[Any], inputs: list[bool]) -> tuple[list[bool], bool]:
    """:func:`_flow` of an equation with programs inside."""
    name, p, n = eqn.primitive.name, eqn.params, len(eqn.outvars)
    if name == "scan":
        return _loop(inner[0], inputs, p["num_consts"], p["num_carry"])
    if name == "while":
        consts, body = p["cond_nconsts"], p["body_nconsts"]
        return _loop(p["body_jaxpr"].jaxpr, inputs[consts:], body, len(inputs) - consts - body)
    if name == "cond":
        found = [_flow(branch, inputs[1:]) for branch in inner]
        return [inputs[0] or any(column) for column in zip(*(f[0] for f in found), strict=True)], any(f[1] for f in found)
    if len(inner) == 1 and len(inner[0].invars) == len(inputs) and len(inner[0].outvars) == n:
        return _flow(inner[0], inputs)
    drawn = any(_flow(part, [True] * len(part.invars))[1] for part in inner)
    return [True] * n, drawn


def _loop(body: Any, inputs: list[bool], consts: int, carry: int) -> tuple[list[bool], bool]:
    """:func:`_flow` of a loop, repeated until the set of tainted carries stops growing."""
    inputs = list(inputs)
    while True:
        outputs, drawn = _flow(body, inputs)
        merged = [a or b for a, b in zip(inputs[consts : consts + carry], outputs[:carry], strict=True)]
        if merged == inputs[consts : consts + carry]:
            return merged + outputs[carry:], drawn
        inputs[consts : consts + carry] = merged


def once(trial: Trial) -> Compiled:
    """The trial, compiled once for all settings with the same static fields; a second trace is an ``AssertionError``."""
    import chex

    def counted(setting: Any, key: jax.Array) -> Observables:
        return trial(setting, key)

    chex.clear_trace_counter()
    return jax.jit(chex.assert_max_traces(counted, n=1))


def check_bits(run: Compiled, setting: Any, seed: int) -> None:
    """Check that two runs of one key give the same bits.

    Raises:
        AssertionError: an array differs.
    """
    first, second = (jax.device_get(run(with_arrays(setting), jax.random.key(seed))) for _ in range(2))
    for (path, a), (_, b) in zip(*(jax.tree_util.tree_leaves_with_path(x) for x in (first, second)), strict=True):
        name = jax.tree_util.keystr(path)
        same = np.array_equal(a, b, equal_nan=np.issubdtype(np.asarray(a).dtype, np.inexact))
        _expect(same, f"two runs of one key differ in {name}")


def check_loops(trial: Trial, run: Compiled, setting: Any, seeds: Iterable[int], rtol: float | None, eager: bool) -> None:
    """Compare a batch of seeds with a loop over them and, if ``eager``, one run with and without jit.

    Numbers below 64 units of rounding of 1, such as residuals, count as zero.

    Raises:
        AssertionError: an array differs by more than ``rtol`` times its largest entry.
    """
    import chex

    seeds, one = list(seeds), with_arrays(setting)
    keys = jax.vmap(jax.random.key)(jnp.asarray(seeds, jnp.uint32))
    batch = jax.jit(jax.vmap(trial, in_axes=(None, 0)))(one, keys)
    alone = [run(one, key) for key in keys]
    dtype = str(getattr(setting, "dtype", "float64"))
    slack = SLACK.get(dtype, 1e-1) if rtol is None else rtol
    rounding = ROUNDING * float(jnp.finfo(dtype).eps)
    pairs = [("vmap and a loop", jax.tree.map(lambda x, i=i: x[i], batch), each) for i, each in enumerate(alone)]
    pairs += [("runs with and without jit", trial(one, keys[0]), alone[0])] if eager else []
    for what, a, b in pairs:
        a, b = (jax.tree.map(lambda x: np.asarray(x, np.complex128), jax.device_get(x)) for x in (a, b))
        allowed = jax.tree.map(lambda x: slack * float(np.max(np.abs(x), where=np.isfinite(x), initial=0.0)) + rounding, b)
        a, b = (jax.tree.map(lambda x, s: x / s, x, allowed) for x in (a, b))
        try:
            chex.assert_trees_all_close(a, b, rtol=0, atol=1.0)
        except AssertionError as error:
            raise AssertionError(f"{what} differ by more than {slack:g} of an array's largest entry: {error}") from None


def check_traces(run: Compiled, others: Iterable[Any]) -> None:
    """Check that all settings with the same static fields share one trace.

    Raises:
        AssertionError: the trial is traced again.
    """
    for one in others:
        jax.block_until_ready(run(with_arrays(one), jax.random.key(0)))
