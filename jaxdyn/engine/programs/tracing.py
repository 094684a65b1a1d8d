"""Tracing one run of a program: the same jaxpr is hashed, measured and, in blocks of many runs, compiled."""

from __future__ import annotations

import collections
import itertools
import secrets
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import jaxpr_as_fun

from jaxdyn.engine.base.devices import devices
from jaxdyn.engine.base.reference import forget_cached, packaged, resolve
from jaxdyn.engine.claims.observables import Observables
from jaxdyn.engine.claims.resource import shapes
from jaxdyn.engine.claims.setting import columns, join, split
from jaxdyn.engine.programs.chunk import Program
from jaxdyn.engine.programs.fingerprint import CALLS_BACK, PLATFORMS, calls_back, fingerprint
from jaxdyn.errors import UsageError

__all__ = ["Impure", "Traced", "any_cell", "run_one", "subjaxprs", "swept_arrays", "swept_shapes", "trace", "trace_pure", "traced"]

Numbers: TypeAlias = "np.ndarray[Any, Any]"
MOST_TRACED = 1000  # traced programs in memory

# JAX caches traced functions. A new context has an empty cache, so that a changed global is seen behind an inner ``jax.jit``, and
# no compiled function of anybody else is thrown away.
_context = jax.make_user_context(default_value=None)
_contexts = itertools.count(1)
_kept: collections.OrderedDict[str, Traced] = collections.OrderedDict()
_pure: set[tuple[Any, ...]] = set()  # trials, their static fields, and fingerprints that two traces agreed on
_remembering = threading.Lock()  # a lock, since a thread compiles ahead


class Impure(UsageError):
    """A trial becomes another program each time that it is traced."""


class Traced(NamedTuple):
    """One traced run: called with swept values, seed and shared arrays it evaluates the jaxpr, without the Python code."""

    jaxpr: Any
    results: Observables  # shapes and dtypes in place of arrays
    fingerprint: str

    def __call__(self, swept: Any, seed: Any, shared: Any) -> Observables:
        """The observables of one run or, under ``vmap``, of many."""
        found = jaxpr_as_fun(self.jaxpr)(*jax.tree.leaves((swept, seed, shared)))
        observed: Observables = jax.tree.unflatten(jax.tree.structure(self.results), found)
        return observed


def swept_arrays(program: Program, cells: Sequence[tuple[Any, ...]]) -> dict[str, Numbers]:
    """The values of the swept fields as arrays over the cells, in the setting's dtypes."""
    return columns(resolve(program.setting), program.static, cells)


def any_cell(program: Program) -> tuple[Any, ...]:
    """The swept values of the setting's defaults, for shapes and dtypes."""
    return split(resolve(program.setting)())[1]


def swept_shapes(program: Program, *axes: int) -> dict[str, jax.ShapeDtypeStruct]:
    """The shapes and dtypes of the swept fields' arrays with axes of these lengths."""
    return {k: jax.ShapeDtypeStruct(axes, v.dtype) for k, v in swept_arrays(program, [any_cell(program)]).items()}


def run_one(program: Program) -> Callable[[Any, Any, Any], Observables]:
    """``(swept, seed, shared) -> Observables`` of one run; its key comes from the seed alone.

    ``shared``: arrays that all runs have in common (:mod:`jaxdyn.engine.claims.resource`), mostly none.
    """
    trial, cls = resolve(program.trial), resolve(program.setting)

    def one(swept: dict[str, Any], seed: Any, shared: Any) -> Observables:
        key = jax.random.fold_in(jax.random.key(0, impl="threefry2x32"), seed)
        more = (shared,) if jax.tree.leaves(shared) else ()
        result = trial(join(cls, program.static, swept), key, *more)
        if not isinstance(result, Observables):
            raise UsageError(f"{program.trial.title} must return jd.observables(...), it returned {type(result).__name__}")
        return result

    return one


def trace(program: Program, platform: str = "") -> Traced:
    """Trace a program by running the Python code of its trial once; earlier traces are not used.

    Args:
        program: the program.
        platform: for which its text is written; by default that of the devices for which plans are made.
    """
    platform = platform or devices().platform
    swept, seed, shared = swept_shapes(program), jax.ShapeDtypeStruct((), jnp.uint32), shapes(program)
    forget_cached(program.trial)
    with jax.enable_x64(True), jax.default_matmul_precision("highest"):
        with _context(next(_contexts)):
            staged = jax.jit(run_one(program)).trace(swept, seed, shared)
        text = _lowered(staged, platform).as_text()
    results = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), staged.out_info)
    if calls_back(text):
        return Traced(staged.jaxpr, results, f"{CALLS_BACK}{secrets.token_hex(8)}")
    cls = resolve(program.setting)
    named = [(name, cls.code_names.get(name)) for name in cls.swept_fields]
    return Traced(staged.jaxpr, results, f"{platform}-{fingerprint(text, staged.jaxpr.consts, named, results)}")


def _lowered(staged: Any, platform: str) -> Any:
    """The program lowered for a platform, or for a CPU if the platform lacks one of its operations and cannot run it."""
    try:
        return staged.lower(lowering_platforms=(PLATFORMS.get(platform, platform),))
    except NotImplementedError:
        return staged.lower(lowering_platforms=("cpu",))


def trace_pure(program: Program) -> Traced:
    """Trace a program, and once more if it is new to this process, to see that it is pure; tests check jaxdyn's own trials.

    Raises:
        Impure: the second trace gives another program.
    """
    one = trace(program)
    own = program.trial, program.label, one.fingerprint
    known = packaged(program.trial) or own in _pure or one.fingerprint.startswith(CALLS_BACK)
    if not known and trace(program).fingerprint != one.fingerprint:
        others = "the time, random numbers of Python's or NumPy's, or what an earlier call left"
        raise Impure(
            f"{program.trial.title} is not allowed: traced twice, it is two programs, so its numbers depend on more than its "
            f"setting and its key ({others})"
        )
    _pure.add(own)
    return _remember(one)


def _remember(one: Traced) -> Traced:
    with _remembering:
        _kept[one.fingerprint] = one
        _kept.move_to_end(one.fingerprint)
        while len(_kept) > MOST_TRACED:
            _kept.popitem(last=False)
    return one


def traced(program: Program) -> Traced:
    """The traced run of a planned program: the planner's own trace, if this process planned it.

    Raises:
        UsageError: traced in this process, the trial is another program than where its runs were planned.
    """
    with _remembering:
        if (one := _kept.get(program.fingerprint)) is not None:
            return one
    if not program.fingerprint:  # its trial raised in the planner
        return trace_pure(program)
    if program.fingerprint.startswith(CALLS_BACK):
        return _remember(trace(program)._replace(fingerprint=program.fingerprint))
    one = trace(program, program.fingerprint.partition("-")[0])  # a fingerprint begins with its platform
    if program.fingerprint != one.fingerprint:
        raise UsageError(
            f"{program.trial.title} is another program in this process than where its runs were planned: a name that it uses holds "
            "another value here, since a worker imports the module anew; make it a field of the setting"
        )
    return _remember(one)


def subjaxprs(jaxpr: Any) -> Iterator[Any]:
    """A jaxpr and all jaxprs inside it, at any depth."""
    yield jaxpr
    for eqn in jaxpr.eqns:
        for value in eqn.params.values():
            for sub in value if isinstance(value, tuple | list) else (value,):
                inner = getattr(sub, "jaxpr", sub)
                if hasattr(inner, "eqns"):
                    yield from subjaxprs(inner)
