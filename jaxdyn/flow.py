r"""Ordinary differential equations, solved by diffrax; only this module and :mod:`jaxdyn.stepping` use it.

.. math:: \dot y = f(t, y, a), \qquad y(t_0) = y_0

Letters: t time, y state (a pytree of float64 arrays), a further arguments, T number of save times. A field is a function
``field(t, y, args)``. Every solve returns a status (``jaxdyn.status``) that says how it ended: nothing raises inside a batch.

Accuracy. Steps end exactly on the save times, and an event is located with real steps, because the interpolants between steps
are far less accurate than the steps: on the logistic equation at ``rtol=1e-10`` their errors are 2e-9 (Tsit5) and 2e-7 (Dopri8),
compared with 1e-11 and 1e-12 at the ends of steps. The error of a step is measured by its worst component, so that adding
components does not loosen the tolerance of the others. Which solver: ``tsit5`` by default; ``dopri8`` takes 3 to 5 times fewer
steps of twice the work at ``rtol`` below about 1e-8; ``kvaerno5`` (implicit, dense Jacobian) for stiff fields of few components.

Many starts: :func:`solve_many`. If all states are stacked into one solve, all take the steps of the worst; a vmapped solve runs
until its slowest lane is done; blocks of starts of similar stiffness avoid both. The coordinate matters as much:
:math:`\dot v = (\mu - v) e^{v^2/2}` is stiff in v and slow in :math:`s = \ln 1/\delta`, :math:`\delta = 1 - v/\mu`. For 1024
starts of ten such components with rates up to 3000, at equal error, blocks of components are 5 times faster than any other way in v
and 8 times in s; if nothing is stiff, all ways are within a factor of 2 (``benchmarks/ode_batches.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import diffrax
import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Integer, PyTree, Real

from jaxdyn.errors import UsageError, is_traced, number, shown, whole
from jaxdyn.status import DIVERGED, FAILED, MAX_STEPS, OK
from jaxdyn.stepping import Newton, Stepper, largest, over

__all__ = ["SOLVERS", "Solution", "gradient_flow", "log_time", "solve", "solve_many"]

Field = Callable[[Any, Any, Any], Any]
Times = Real[Array | np.ndarray, " T"] | Sequence[float | Real[Array, ""]]
SOLVERS = ("tsit5", "dopri8", "kvaerno5")
TIGHTEST = 1e-14  # smallest relative tolerance that float64 can resolve
EVENT = "an event returns one real number that changes sign, e.g. `jnp.abs(y) - 6.0`"


class Solution(NamedTuple):
    """The result of a solve.

    Args:
        ts: the save times that were reached; ``inf`` from the first unreached one on.
        ys: the state at ``ts`` (a leading time axis on every leaf); ``inf`` where unreached.
        status: ``OK`` (also when stopped by the event), ``DIVERGED`` (the step size shrank to zero: the field is not finite
            there, or the solution escapes to infinity), ``MAX_STEPS``, or ``FAILED`` (any other failure of the solver).
        event: whether the event stopped the solve.
        steps: number of steps, including rejected ones.
        t_end: the time at which the solve ended: at the event, else at the last save time, else where it gave up.
        y_end: the state at ``t_end``.
    """

    ts: Float[Array, " T"]
    ys: PyTree
    status: Int[Array, ""]
    event: Bool[Array, ""]
    steps: Int[Array, ""]
    t_end: Float[Array, ""]
    y_end: PyTree


def solve(
    field: Field,
    y0: PyTree,
    ts: Times,
    args: Any = None,
    *,
    solver: str = "tsit5",
    rtol: float | Float[Array, ""] = 1e-10,
    atol: float | Float[Array, ""] = 1e-12,
    max_steps: int | Integer[Array, ""] = 4096,
    event: Callable[[Any, Any, Any], Float[Array, ""]] | None = None,
) -> Solution:
    r"""Integrate :math:`\dot y = \text{field}(t, y, \text{args})` from ``y(ts[0]) = y0`` with adaptive steps.

    A step is accepted when its estimated error is below ``atol + rtol * |y|`` in every component. The result can be
    differentiated in forward mode (``jax.jvp``, ``jax.jacfwd``) with respect to ``y0`` and ``args``.

    Args:
        field: ``field(t, y, args)``, with the structure, shapes and dtype of ``y``; it may depend on traced values only through
            ``args``.
        y0: the start, float64.
        ts: the save times, finite and increasing as float64; ``ts[0]`` is the start. If traced times violate this, the status is
            ``FAILED``.
        args: passed to the field and to the event.
        solver: one of ``SOLVERS``.
        rtol: relative tolerance of a step, at least 1e-14 and below 1; if a traced one is outside, the status is ``FAILED``.
        atol: absolute tolerance of a step, at least 0; traced as ``rtol``.
        max_steps: number of steps after which to give up (``MAX_STEPS``).
        event: ``event(t, y, args)``, a real number: the solve stops where it changes sign, and ``t_end``, ``y_end`` are that
            point to the solver's accuracy. It must not vanish at the start; two sign changes within one step are missed; if it
            becomes NaN, the status is ``FAILED``.
            Near a blow-up, t itself runs out of floats: :math:`\dot v = e^{v^2/2}` is ``DIVERGED`` near v = 8 at t near 1.

    Raises:
        UsageError: a start that is not float64, a field whose structure, shape or dtype differs from the state's, an unknown
            solver, a tolerance or number of steps that is not allowed, save times that do not increase, or an event that is not
            a real number.
    """
    _refuse_no_functions("(t, y, args)", field=field, **({} if event is None else {"event": event}))
    (y0, tree, field), (ts, wrong_times) = _as_vector(_start(y0), field), save_times(ts)
    failed = wrong_times | _wrong_tolerances(rtol, atol)
    term, method = diffrax.ODETerm(field), _method(solver, rtol, atol)
    crossing: Any = None if event is None else lambda t, y, args: _one_number(event(t, tree(y), args), EVENT)
    inner = diffrax.PIDController(rtol, atol, norm=largest, dtmin=1e-32 * (ts[-1] - ts[0]), force_dtmin=False)
    sol = diffrax.diffeqsolve(
        term,
        method,
        ts[0],
        ts[-1],
        None,
        y0,
        args,
        saveat=diffrax.SaveAt(t1=True, controller_state=True),
        stepsize_controller=Stepper(inner, ts),  # type: ignore[call-arg, arg-type]  # not the abstract fields
        event=None if crossing is None else diffrax.Event(lambda t, y, args, **_: crossing(t, y, args)),
        adjoint=diffrax.ForwardMode(),
        max_steps=whole("max_steps", max_steps, least=1, most=2**31 - 1),
        throw=False,
    )
    return _solution(sol, ts, failed, tree, crossing, term, method, args)


def _solution(
    sol: Any,
    ts: Float[Array, " T"],
    failed: Bool[Array, ""] | bool,
    tree: Callable[[Float[Array, " n"]], PyTree],
    crossing: Any,
    term: Any,
    method: Any,
    args: Any,
) -> Solution:
    """The solution of the state from that of its vector: saved up to the end of the solve, or up to the event."""
    track, t_end, y_end = sol.controller_state, sol.ts[0], jax.tree.map(lambda leaf: leaf[0], sol.ys)
    stopped, saved = sol.result == diffrax.RESULTS.event_occurred, track.saved
    if crossing is not None:
        failed = failed | (stopped & jnp.isnan(crossing(t_end, y_end, args)))
        t_end, y_end = _locate(crossing, term, method, args, (track.t, track.y), (t_end, y_end), stopped)
        saved = jax.tree.map(lambda leaf: jnp.where(over(ts <= t_end, leaf), leaf, jnp.inf), saved)
    steps = jnp.asarray(sol.stats["num_steps"], jnp.int32)
    reached = jnp.where(ts <= t_end, ts, jnp.inf)
    status = jnp.where(failed, jnp.int32(FAILED), _status(sol.result))
    return Solution(reached, jax.vmap(tree)(saved), status, stopped & (status == OK), steps, t_end, tree(y_end))


def _refuse_no_functions(arguments: str, **functions: Any) -> None:
    """Refuse arguments that cannot be called."""
    for name, function in functions.items():
        if not callable(function):
            raise UsageError(f"{name}={shown(function)} is not allowed: it is a function of {arguments}")


def _as_vector(y0: PyTree, field: Field) -> tuple[Float[Array, " n"], Callable[[Float[Array, " n"]], PyTree], Field]:
    """The state as one vector, the way back, and the field of vectors: each separate array would add .3 s of compilation."""
    vector, tree = jax.flatten_util.ravel_pytree(y0)

    def slope(t: Any, y: Any, args: Any) -> Float[Array, " n"]:
        moved = field(t, tree(y), args)
        _refuse_other_structure(moved, y0)
        numbers = jax.tree.map(lambda leaf: leaf if hasattr(leaf, "dtype") else jnp.float64(leaf), moved)
        return jax.flatten_util.ravel_pytree(numbers)[0]

    return vector, tree, slope


def _refuse_other_structure(moved: PyTree, y0: PyTree) -> None:
    """Refuse a field's result whose structure differs from the state's: flattened, they would be added entry by entry."""
    given, wanted = (jax.tree.leaves_with_path(tree) for tree in (moved, y0))
    structure: Any = jax.tree.structure(moved)
    own: Any = jax.tree.structure(y0)
    paths = [", ".join(jax.tree_util.keystr(path) or "one array" for path, _ in leaves) for leaves in (given, wanted)]
    if structure != own:
        if paths[0] == paths[1]:
            paths = [str(tree).removeprefix("PyTreeDef(").removesuffix(")") for tree in (structure, own)]
        raise UsageError(f"the field returns {paths[0] or 'nothing'}, but the state is {paths[1]}: both need the same structure")
    for (path, leaf), (_, start) in zip(given, wanted, strict=True):
        if not _is_number(leaf) or jnp.shape(leaf) != start.shape or getattr(leaf, "dtype", start.dtype) != start.dtype:
            place, kept = jax.tree_util.keystr(path), f"float64[{','.join(map(str, start.shape))}]"
            where = f" at {place}" if place else ""
            raise UsageError(f"the field returns {shown(leaf)}{where}, but the state is {kept}: both need the same shape and dtype")


def _is_number(value: Any) -> bool:
    """Whether a value is a real number or an array of them; truth values are not."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.generic | np.ndarray | jax.Array):
        return False
    dtype = value.dtype if hasattr(value, "dtype") else jnp.result_type(value)
    return any(jnp.issubdtype(dtype, kind) for kind in (jnp.floating, jnp.integer))


def solve_many(
    field: Field,
    y0: PyTree,
    ts: Times,
    args: PyTree = None,
    *,
    stiffness: Float[Array | np.ndarray, " n"] | None = None,
    block: int = 256,
    **options: Any,
) -> Solution:
    """:func:`solve` for n starts, each with its own arguments and steps, in vmapped blocks of starts of similar stiffness.

    A block takes as many steps as its slowest start. If the components of a state do not interact, make each of them a start of
    its own (then blocks of hundreds are best; for starts of ten components, blocks of about 32).

    Args:
        field: ``field(t, y, args)`` of one start.
        y0: the starts, float64, with a leading axis of length n on every leaf.
        ts: save times, the same for all.
        args: arguments of the field, with a leading axis of length n on every leaf.
        stiffness: a number per start that grows with its number of steps, e.g. its largest rate; starts are sorted by it before
            they are cut into blocks. None: no sorting.
        block: starts in a block.
        options: as in :func:`solve`.

    Returns:
        A :class:`Solution` with a leading axis of length n, in the order of ``y0``.

    Raises:
        UsageError: as for :func:`solve`; leading axes of different lengths, or a block below 1.
    """
    lengths = {leaf.shape[0] if jnp.ndim(leaf) else None for leaf in jax.tree.leaves((y0, args, stiffness))}
    if len(lengths) != 1 or None in lengths:
        raise UsageError("every array of y0, args and stiffness needs the same leading axis, one entry for each start")
    if stiffness is not None and not (_is_number(stiffness) and jnp.ndim(stiffness) == 1):
        raise UsageError(f"stiffness={shown(stiffness)} is not allowed: it is one real number per start")
    block = whole("block", block, least=1)

    def one(row: tuple[PyTree, PyTree]) -> Solution:
        return solve(field, row[0], ts, row[1], **options)

    if stiffness is None:
        return jax.lax.map(one, (y0, args), batch_size=block)
    order = jnp.argsort(jnp.asarray(stiffness))
    ordered = jax.lax.map(one, jax.tree.map(lambda leaf: jnp.asarray(leaf)[order], (y0, args)), batch_size=block)
    return jax.tree.map(lambda leaf: jnp.zeros_like(leaf).at[order].set(leaf), ordered)


def gradient_flow(
    loss: Callable[..., Float[Array, ""]], params: PyTree, ts: Times, *args: Any, rate: PyTree = 1.0, **options: Any
) -> Solution:
    r"""Gradient flow :math:`\dot\theta = -r\,\nabla_\theta L(\theta, a)` of the loss that the network is trained on.

    Args:
        loss: ``loss(params, *args)``, a scalar.
        params: the start, float64.
        ts: save times, increasing; ``ts[0]`` is the start.
        args: further arguments of the loss (data).
        rate: :math:`r`, one number for all, or a prefix of the tree ``params`` with a number (or array) for each branch.
        options: as in :func:`solve`; an event has the arguments ``event(t, params, (rate, args))``.

    Raises:
        UsageError: as for :func:`solve`; a loss that is not a function or does not return a real number, or a rate that is not a
            prefix of numbers.
    """
    _refuse_no_functions("(params, *args)", loss=loss)

    def one_number(theta: PyTree, *rest: Any) -> Float[Array, ""]:
        return _one_number(loss(theta, *rest), "a loss returns one real number, e.g. `jnp.mean(jnp.square(y - f(params, x)))`")

    def field(t: Any, theta: PyTree, packed: Any) -> PyTree:
        rates, rest = packed
        gradient = jax.grad(one_number)(theta, *rest)
        # the product is negated, not the rate: the negative of an unsigned number wraps
        return jax.tree.map(lambda r, branch: jax.tree.map(lambda g: -(r * g), branch), rates, gradient)

    try:
        jax.tree.broadcast(rate, params)
    except ValueError:
        raise UsageError(
            "rate is not allowed: it is one number, or a prefix of the tree of parameters with a number per branch"
        ) from None
    if not all(map(_is_number, jax.tree.leaves(rate))):
        raise UsageError(f"rate={shown(rate)} is not allowed: rates are real numbers")
    return solve(field, params, ts, (rate, args), **options)


def log_time(field: Field) -> Field:
    r"""The same field in :math:`s = \ln t`: :math:`dy/ds = t\,f(t, y, a)` with :math:`t = e^s`; for decades of time.

    Raises:
        UsageError: for a field that is not a function.
    """
    _refuse_no_functions("(t, y, args)", field=field)

    def in_log_time(s: Any, y: Any, args: Any) -> Any:
        t = jnp.exp(s)
        return jax.tree.map(lambda leaf: t * leaf, field(t, y, args))

    return in_log_time


def _start(y0: PyTree) -> PyTree:
    for leaf in (leaves := jax.tree.leaves(y0)):
        array = isinstance(leaf, bool | int | float | complex | np.generic | np.ndarray | jax.Array)
        kind = jnp.result_type(leaf) if array else type(leaf).__name__
        if kind != jnp.dtype("float64"):
            cure = "inside `with jax.enable_x64(True):` make it with dtype=jnp.float64"
            raise UsageError(f"an ODE is solved in float64, but its start is {kind}: {cure}")
    if not leaves:
        raise UsageError(f"y0={shown(y0)} is not allowed: the start of an ODE is a float64 array or a tree of them")
    return jax.tree.map(jnp.asarray, y0)


def save_times(ts: Times) -> tuple[Float[Array, " T"], Bool[Array, ""] | bool]:
    """The save times, and whether they are wrong: a traced truth value if only the run can tell."""
    array: Any = ts
    if isinstance(ts, list | tuple) and all(_is_number(t) and jnp.ndim(t) == 0 for t in ts):
        traced = any(map(is_traced, ts))  # then each is converted separately: stacked with an unsigned number, -1 would wrap
        array = jnp.stack([jnp.asarray(t, jnp.float64) for t in ts]) if traced else np.asarray(ts)
    if not _is_number(array) or jnp.ndim(array) != 1 or len(array) == 0:
        raise UsageError(f"ts is an array of save times, the start first; got {shown(array)}")
    times = jnp.asarray(array, jnp.float64)
    if is_traced(array):
        return times, ~(jnp.all(jnp.diff(times) > 0) & jnp.all(jnp.isfinite(times)))
    known = np.asarray(array).astype(np.float64)  # before taking differences: those of narrow and unsigned integers wrap
    if not (np.all(np.diff(known) > 0) and np.all(np.isfinite(known))):
        raise UsageError("the save times ts must be finite and increase from one to the next")
    return times, False


def _wrong_tolerances(rtol: float | Float[Array, ""], atol: float | Float[Array, ""]) -> Bool[Array, ""] | bool:
    """Refuse tolerances that are not allowed; returns whether a traced one is wrong, which only the run can tell."""
    number("rtol", rtol, least=TIGHTEST, below=1, traced=True)
    number("atol", atol, least=0, traced=True)
    if not (is_traced(rtol) or is_traced(atol)):
        return False
    relative, absolute = jnp.asarray(rtol, jnp.float64), jnp.asarray(atol, jnp.float64)
    return ~((relative >= TIGHTEST) & (relative < 1) & (absolute >= 0) & jnp.isfinite(absolute))


def _method(name: str, rtol: float | Float[Array, ""], atol: float | Float[Array, ""]) -> diffrax.AbstractSolver[Any]:
    if not isinstance(name, str) or name not in SOLVERS:
        raise UsageError(f"solver={shown(repr(name))} is not allowed: it is one of {', '.join(SOLVERS)}")
    if name == "kvaerno5":
        # Newton, not the default chord iteration, whose failures shorten steps ninefold at rtol=1e-10 (logistic equation)
        return diffrax.Kvaerno5(scan_kind="lax", root_finder=Newton(rtol, atol, norm=largest))  # type: ignore[arg-type]
    return {"tsit5": diffrax.Tsit5, "dopri8": diffrax.Dopri8}[name](scan_kind="lax")


def _status(result: diffrax.RESULTS) -> Int[Array, ""]:
    r = diffrax.RESULTS
    ended = [(result == r.successful) | (result == r.event_occurred), result == r.max_steps_reached, result == r.dt_min_reached]
    return jnp.select(ended, [jnp.int32(OK), jnp.int32(MAX_STEPS), jnp.int32(DIVERGED)], jnp.int32(FAILED))


def _one_number(value: Any, refusal: str) -> Float[Array, ""]:
    if not _is_number(value) or jnp.shape(value) != () or jnp.issubdtype(jnp.result_type(value), jnp.integer):
        raise UsageError(refusal)
    return value


def _locate(
    event: Callable[[Any, Any, Any], Float[Array, ""]],
    term: Any,
    method: Any,
    args: Any,
    first: tuple[Any, Any],
    last: tuple[Any, Any],
    stopped: Bool[Array, ""],
) -> tuple[Any, Any]:
    """Locate the event between the ends ``(t, y)`` of a step by the Illinois rule; every trial is a real step from the first."""
    t0, y0 = first

    def at(t: Any) -> tuple[Float[Array, ""], Any]:
        y = method.step(term, t0, t, y0, args, method.init(term, t0, t, y0, args), False)[0]
        return event(t, y, args), y

    def unfinished(carry: tuple[Any, ...]) -> Bool[Array, ""]:
        count, _, _, b, gb, before, _ = carry
        return stopped & (count < 64) & (b != before) & (gb != 0)

    def improve(carry: tuple[Any, ...]) -> tuple[Any, ...]:
        count, a, ga, b, gb, _, _ = carry
        secant = b - gb * (b - a) / (gb - ga)
        t = jnp.where((secant - a) * (secant - b) <= 0, secant, 0.5 * (a + b))  # the middle where a value is not finite
        g, y = at(t)
        crossed = (g < 0) != (gb < 0)
        return count + 1, jnp.where(crossed, b, a), jnp.where(crossed, gb, 0.5 * ga), t, g, b, y

    t1, y1 = last
    start = (0, t0, event(t0, y0, args), t1, event(t1, y1, args), t0, y1)
    _, _, _, t, _, _, y = jax.lax.while_loop(unfinished, improve, start)
    return t, y
