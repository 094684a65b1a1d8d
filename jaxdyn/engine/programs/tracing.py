"""One run of a program, traced: the one jaxpr that is hashed, measured and, in blocks of many runs, compiled."""

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
from jaxdyn.engine.programs.fingerprint import PLATFORMS, UNKEPT, calls_back, fingerprint
from jaxdyn.errors import UsageError

__all__ = ["Impure", "Traced", "any_cell", "run_one", "subjaxprs", "swept_arrays", "swept_shapes", "trace", "trace_pure", "traced"]

Numbers: TypeAlias = "np.ndarray[Any, Any]"
KEPT = 1000  # traced programs in memory

# JAX remembers what it has traced. In a context that is new nothing is remembered, so that a changed global is seen behind an inner
# ``jax.jit``, and nobody's compiled functions are thrown away.
_context = jax.make_user_context(default_value=None)
_contexts = itertools.count(1)
_kept: collections.OrderedDict[str, Traced] = collections.OrderedDict()
_pure: set[tuple[Any, ...]] = set()  # trials, their static fields and fingerprints that came out of them twice
_remembering = threading.Lock()  # a thread compiles ahead


class Impure(UsageError):
    """A trial that is another program each time that it is traced."""


class Traced(NamedTuple):
    """One run: called with swept values, seed and shared arrays it evaluates the jaxpr; Python's code is not asked again."""

    jaxpr: Any
    results: Observables  # of shapes and dtypes
    fingerprint: str

    def __call__(self, swept: Any, seed: Any, shared: Any) -> Observables:
        """One run, or, under ``vmap``, many."""
        found = jaxpr_as_fun(self.jaxpr)(*jax.tree.leaves((swept, seed, shared)))
        observed: Observables = jax.tree.unflatten(jax.tree.structure(self.results), found)
        return observed


def swept_arrays(program: Program, cells: Sequence[tuple[Any, ...]]) -> dict[str, Numbers]:
    """The values of the swept fields as arrays along the cells, in the dtypes of the setting."""
    return columns(resolve(program.setting), program.static, cells)


def any_cell(program: Program) -> tuple[Any, ...]:
    """The swept values of the setting's defaults, for shapes and dtypes."""
    return split(resolve(program.setting)())[1]


def swept_shapes(program: Program, *axes: int) -> dict[str, jax.ShapeDtypeStruct]:
    """The shapes and dtypes of the swept fields' arrays along these axes."""
    return {k: jax.ShapeDtypeStruct(axes, v.dtype) for k, v in swept_arrays(program, [any_cell(program)]).items()}


def run_one(program: Program) -> Callable[[Any, Any, Any], Observables]:
    """``(swept, seed, shared) -> Observables`` of one run; its key comes from the seed alone.

    ``shared`` is what all runs have in common (:mod:`jaxdyn.engine.claims.resource`), mostly nothing.
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
    """Run the Python code of a program's trial, once; nothing that was traced before is used.

    Args:
        program: the program.
        platform: for which its text is written; by default that of the devices that plans are made for.
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
        return Traced(staged.jaxpr, results, f"{UNKEPT}{secrets.token_hex(8)}")
    cls = resolve(program.setting)
    named = [(name, cls.code_names.get(name)) for name in cls.swept_fields]
    return Traced(staged.jaxpr, results, f"{platform}-{fingerprint(text, staged.jaxpr.consts, named, results)}")


def _lowered(staged: Any, platform: str) -> Any:
    """The program for a platform; for a processor where the platform lacks an operation, on which it will not run."""
    try:
        return staged.lower(lowering_platforms=(PLATFORMS.get(platform, platform),))
    except NotImplementedError:
        return staged.lower(lowering_platforms=("cpu",))


def trace_pure(program: Program) -> Traced:
    """:func:`trace`, twice where the program is new to this process; jaxdyn's own trials are held to purity by its tests.

    Raises:
        Impure: it is another program then.
    """
    one = trace(program)
    own = program.trial, program.label, one.fingerprint
    known = packaged(program.trial) or own in _pure or one.fingerprint.startswith(UNKEPT)
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
        while len(_kept) > KEPT:
            _kept.popitem(last=False)
    return one


def traced(program: Program) -> Traced:
    """The traced run with the fingerprint of a program that was planned: that of the plan where it was made here.

    Raises:
        UsageError: this process imports the trial anew, and it is another program here than where the runs were planned.
    """
    with _remembering:
        if (one := _kept.get(program.fingerprint)) is not None:
            return one
    if not program.fingerprint:  # it raised where it was planned
        return trace_pure(program)
    if program.fingerprint.startswith(UNKEPT):
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
