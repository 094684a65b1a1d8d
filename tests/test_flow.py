"""flow.py against closed forms, scipy and the mathematics of its promises."""

import contextlib
import functools
from collections import OrderedDict
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import erf

from jaxdyn import flow
from jaxdyn.errors import UsageError
from jaxdyn.status import DIVERGED, FAILED, MAX_STEPS, OK

RTOLS = np.array([1e-6, 1e-8, 1e-10, 1e-12])
S = 1.3  # the teacher's singular value


def blow_up(t, v, args):
    return jnp.exp(jnp.square(v) / 2)


def deep_loss(params):
    """Scalar linear networks of two and of three weights."""
    a, b = params["pair"]
    return 0.5 * jnp.square(S - a * b) + 0.5 * jnp.square(S - jnp.prod(params["triple"]))


def balanced_time(u, u0, n):
    """The time at which the balanced n-weight product has grown from u0 to u: dt = du / (n u^(2-2/n) (S - u))."""
    rate = lambda x: np.exp(x) / (n * np.exp(x * (2 - 2 / n)) * (S - np.exp(x)))  # noqa: E731 - in ln u: smooth
    return scipy.integrate.quad(rate, np.log(u0), np.log(u), epsabs=1e-13, epsrel=1e-13)[0]


@pytest.mark.thinned
@pytest.mark.parametrize("solver", [pytest.param(n, marks=pytest.mark.slow if n == "kvaerno5" else ()) for n in flow.SOLVERS])
def test_closed_forms_of_deep_linear_networks(x64, solver):
    """Saxe's mode, the unbalanced pair and the balanced triple, at four tolerances in one program."""
    ts = np.array([0.0, 0.5, 1.0, 2.0, 3.0])
    a0, b0, w0 = 0.5, 0.04, 0.01 ** (1 / 3)
    start = {"pair": jnp.array([a0, b0]), "triple": jnp.full(3, w0)}
    run = lambda rtol: flow.gradient_flow(deep_loss, start, ts, solver=solver, rtol=rtol, atol=0.01 * rtol)  # noqa: E731
    sol = jax.jit(jax.vmap(run))(RTOLS)
    assert np.all(sol.status == OK)
    pair = np.asarray(sol.ys["pair"]).prod(-1)
    triple = np.asarray(sol.ys["triple"]).prod(-1)
    # u' = sqrt(c^2 + 4 u^2) (s - u) with c = a^2 - b^2: the time of u by quadrature
    c = a0**2 - b0**2
    time = np.vectorize(
        lambda u: scipy.integrate.quad(lambda x: 1 / (np.hypot(c, 2 * x) * (S - x)), a0 * b0, u, epsabs=1e-14, epsrel=1e-13)[0]
    )
    # A step errs by at most 1.01 rtol in each weight: the products by 2 and 3 times that, their clocks by u/u' times as much,
    # u/u' <= 1/(2 (S - u)) and 1/(3 u0^(1/3) (S - u)), with S - u > 0.7 up to t = 1. The flow carries errors of the clock along.
    each = np.asarray(sol.steps)[:, None] * 1.01 * RTOLS[:, None]
    assert np.all(S - pair[:, 1:3] > 0.7) and np.all(S - triple[:, 1:3] > 0.7)
    assert np.all(np.abs(time(pair[:, 1:3]) - ts[1:3]) < each / 0.7 + 2e-13)
    assert np.all(np.abs(np.vectorize(balanced_time)(triple[:, 1:3], w0**3, 3) - ts[1:3]) < each / (0.7 * w0) + 2e-13)
    squares = np.square(np.asarray(sol.ys["pair"]))  # a step moves c by at most 2 (a^2 + b^2) <= 2 hypot(c, 2 S) times its error
    assert np.all(np.abs(squares[..., 0] - squares[..., 1] - c) < 2 * np.hypot(c, 2 * S) * each + 2e-13)
    assert np.all(np.diff(sol.steps) > 0)  # a tighter tolerance costs steps


@pytest.mark.slow
@pytest.mark.parametrize("solver", [pytest.param(n, marks=() if n in ("tsit5",) else pytest.mark.slow) for n in flow.SOLVERS])
def test_event_finds_the_blow_up(x64, solver):
    r"""The flow v' = exp(v^2/2) reaches 6 at sqrt(pi/2) (erf(6/sqrt 2) - erf(v0/sqrt 2)): time, state, save times."""
    v0 = np.array([0.0, 0.5, -3.0])
    ts = np.array([0.0, 0.1, 5.0])

    def run(v0, rtol):
        return flow.solve(blow_up, v0, ts, solver=solver, rtol=rtol, atol=0.01 * rtol, event=lambda t, v, _: v - 6.0)

    sol = jax.jit(jax.vmap(jax.vmap(run, (0, None)), (None, 0)))(v0, RTOLS)
    exact = np.sqrt(np.pi / 2) * (erf(6 / np.sqrt(2)) - erf(v0 / np.sqrt(2)))
    assert np.all(sol.status == OK) and np.all(sol.event)
    # in the clock u = erf(v/sqrt 2), linear in t, a step's error rtol |v| becomes at most rtol |v| exp(-v^2/2) < 0.7 rtol
    assert np.all(np.abs(sol.t_end - exact) < (np.asarray(sol.steps) * RTOLS[:, None] + 1e-14) * exact)
    assert np.all(np.abs(sol.t_end[1:] / exact - 1) < 1e-6)
    # one float in t moves v by exp(18) eps t
    assert np.all(np.abs(sol.y_end - 6.0) < 4 * np.exp(18) * np.finfo(float).eps * exact)
    assert np.all(np.isinf(sol.ts[..., 2])) and np.all(np.isinf(sol.ys[..., 2])) and np.all(np.isfinite(sol.ys[..., :2]))
    assert np.sqrt(np.pi / 2) == pytest.approx(float(sol.t_end[2, 0]), rel=1e-8)  # t* itself: 6 is 2e-9 short of it


@pytest.mark.slow
def test_failures_stay_in_their_own_run(x64):
    """A NaN field, a blow-up and a healthy run side by side: each has its status, and NaN fails fast."""
    ts = np.linspace(0.0, 2.0, 5)

    def field(t, v, kind):
        return jnp.where(kind == 0, -v, jnp.where(kind == 1, blow_up(t, v, None), jnp.nan))

    sol = jax.jit(jax.vmap(lambda kind: flow.solve(field, jnp.float64(0.5), ts, kind)))(np.arange(3))
    assert sol.status.tolist() == [OK, DIVERGED, DIVERGED]
    assert not np.any(sol.event)
    np.testing.assert_allclose(sol.ys[0], 0.5 * np.exp(-ts), rtol=1e-9)
    assert sol.t_end[1] == pytest.approx(np.sqrt(np.pi / 2) * (1 - erf(0.5 / np.sqrt(2))), rel=1e-9)
    reached = ts <= float(sol.t_end[1])
    assert (
        np.all(np.isinf(sol.ts[1][~reached])) and np.all(np.isinf(sol.ys[1][~reached])) and np.all(np.isfinite(sol.ys[1][reached]))
    )
    assert sol.steps[2] < 60 and sol.t_end[2] == 0.0 and sol.ys[2, 0] == 0.5


@pytest.mark.slow
def test_overflowing_trial_steps_are_rejected_under_vmap(x64):
    """A trial step to infinity (inf / inf in the error norm) must not be kept; XLA's max over an axis would drop the NaN."""
    rng = np.random.default_rng(0)
    mu = np.sort(rng.uniform(1, 4, 10))
    delta = 1 - rng.normal(size=(1024, 10)) / mu

    def field(t, s, d):  # s = ln 1/delta of v' = (mu - v) exp(v^2/2)
        return jnp.exp(jnp.square(mu * (1 - d * jnp.exp(-s))) / 2)

    solve = lambda d: flow.solve(field, jnp.zeros(10), np.array([0.0, 0.1]), d, solver="dopri8", rtol=1e-6, atol=1e-6)  # noqa: E731
    sol = jax.jit(jax.vmap(solve))(delta)
    assert np.all(sol.status == OK) and np.all(np.isfinite(sol.ys))
    for run in range(3):
        exact = scipy.integrate.solve_ivp(
            lambda t, s, d=delta[run]: np.exp(np.square(mu * (1 - d * np.exp(-s))) / 2),
            (0, 0.1),
            np.zeros(10),
            rtol=1e-10,
            atol=1e-10,
        )
        np.testing.assert_allclose(sol.y_end[run], exact.y[:, -1], rtol=1e-4)


@pytest.mark.slow
def test_stiff_field_needs_the_implicit_solver(x64):
    """Van der Pol's oscillator at mu = 500 against scipy's Radau; the explicit solver says that it ran out of steps."""

    def field(t, y, mu):
        return jnp.array([y[1], mu * (1 - y[0] ** 2) * y[1] - y[0]])

    ts = np.array([0.0, 150.0, 300.0])
    options = {"rtol": 1e-8, "atol": 1e-10, "max_steps": 1000}
    start = jnp.array([2.0, 0.0])
    sol = jax.jit(lambda mu: flow.solve(field, start, ts, mu, solver="kvaerno5", **options))(500.0)
    exact = scipy.integrate.solve_ivp(
        lambda t, y: [y[1], 500 * (1 - y[0] ** 2) * y[1] - y[0]], (0, 300), [2.0, 0.0], "Radau", ts, rtol=1e-10, atol=1e-12
    )
    assert sol.status == OK and sol.steps < 200
    np.testing.assert_allclose(sol.ys[:, 0], exact.y[0], rtol=1e-6)
    explicit = jax.jit(lambda mu: flow.solve(field, start, ts, mu, **options))(500.0)
    assert explicit.status == MAX_STEPS and explicit.steps == 1000 and 0 < explicit.t_end < 150
    assert np.isinf(explicit.ts[1:]).all()


def test_symmetric_factorisation(x64):
    """U' = (M - U U^T) U against its closed form with matrix exponentials; steps end on many save times."""
    rng = np.random.default_rng(1)
    g = rng.normal(size=(4, 4))
    m, u0 = g @ g.T / 4 + 0.1 * np.eye(4), 0.05 * rng.normal(size=(4, 3))
    ts = np.linspace(0.0, 3.0, 41)
    loss = lambda u, m: 0.25 * jnp.sum(jnp.square(m - u @ u.T))  # noqa: E731 - its gradient is -(M - U U^T) U
    sol = jax.jit(lambda u, m: flow.gradient_flow(loss, u, ts, m, solver="dopri8"))(u0, m)
    for t, u in zip(ts, np.asarray(sol.ys), strict=True):
        grown = scipy.linalg.expm(m * t)
        middle = np.eye(3) + u0.T @ np.linalg.solve(m, grown @ grown - np.eye(4)) @ u0
        exact = grown @ u0 @ np.linalg.solve(middle, u0.T @ grown)
        np.testing.assert_allclose(u @ u.T, exact, atol=1e-9)
    np.testing.assert_array_equal(sol.ts, ts)
    np.testing.assert_array_equal(sol.ys[-1], sol.y_end)


@pytest.mark.slow
def test_time_dependent_field_in_both_clocks(x64):
    """A field that depends on t, on a tree of states, over four decades: in t, in ln t, and by scipy."""

    def field(t, y, k):
        return {"x": -k * y["x"] / (1 + t) + jnp.sin(jnp.log(t)), "z": y["x"][:1] / t}

    ts = np.geomspace(1e-2, 1e2, 5)
    y0 = {"x": jnp.array([1.0, -2.0]), "z": jnp.array([0.5])}
    exact = scipy.integrate.solve_ivp(
        lambda t, y: [*(-0.7 * y[:2] / (1 + t) + np.sin(np.log(t))), y[0] / t],
        (1e-2, 1e2),
        [1, -2, 0.5],
        "DOP853",
        ts,
        rtol=1e-12,
        atol=1e-13,
    ).y
    plain = jax.jit(lambda k: flow.solve(field, y0, ts, k))(0.7)
    logarithmic = jax.jit(lambda k: flow.solve(flow.log_time(field), y0, np.log(ts), k))(0.7)
    for sol in (plain, logarithmic):
        np.testing.assert_allclose(sol.ys["x"].T, exact[:2], rtol=1e-8)
        np.testing.assert_allclose(sol.ys["z"].T, exact[2:], rtol=1e-8)


def test_rates_per_leaf(x64):
    """A rate is one number or a tree prefix: a branch with rate 0 rests, and rates add up to the flow of the scaled gradient."""
    loss = lambda p, target: 0.5 * jnp.square(p["w"]["a"] * p["w"]["b"] + p["c"] - target)  # noqa: E731
    start = {"w": {"a": jnp.float64(0.3), "b": jnp.float64(0.8)}, "c": jnp.float64(0.1)}
    ts = np.array([0.0, 1.0])

    def right(t, y):
        a, b, c = y
        gap = 1.5 - a * b - c
        return [2.0 * gap * b, 2.0 * gap * a, 0.5 * gap]

    exact = scipy.integrate.solve_ivp(right, (0, 1), [0.3, 0.8, 0.1], "DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
    run = jax.jit(lambda rate: flow.gradient_flow(loss, start, ts, 1.5, rate=rate).y_end)
    moved = run({"w": 2.0, "c": 0.5})
    np.testing.assert_allclose([moved["w"]["a"], moved["w"]["b"], moved["c"]], exact, rtol=1e-9)
    rested = run({"w": 2.0, "c": 0.0})
    assert rested["c"] == 0.1 and rested["w"]["a"] != 0.3


@pytest.mark.slow
def test_transforms_agree_and_derivatives_are_exact(x64):
    """Jitted = plain, vmap = loop (to rounding), and forward mode gives the closed form's derivative."""
    ts = np.array([0.0, 1.0, 2.0])

    def run(u0):
        return flow.solve(lambda t, u, lam: 2 * u * (lam - u), u0, ts, 1.0)

    starts = jnp.array([0.01, 0.2, 0.7])
    batch, compiled = jax.jit(jax.vmap(run))(starts), jax.jit(run)
    for i, u0 in enumerate(starts):
        np.testing.assert_allclose(batch.ys[i], compiled(u0).ys, rtol=1e-12)  # steps of one run differ by rounding alone
        assert batch.steps[i] == compiled(u0).steps
    np.testing.assert_allclose(run(starts[0]).ys, compiled(starts[0]).ys, rtol=1e-12)
    np.testing.assert_array_equal(compiled(starts[0]).ys, compiled(starts[0]).ys)
    _, slope = jax.jvp(lambda u0: compiled(u0).ys, (jnp.float64(0.2),), (jnp.float64(1.0),))
    grown = np.exp(2 * ts)
    np.testing.assert_allclose(slope, grown / (1 + 0.2 * (grown - 1)) ** 2, rtol=1e-8)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"solver": "euler"}, "tsit5, dopri8, kvaerno5"),
        ({"rtol": 1e-16}, "1e-14"),
        ({"ts": np.array([0.0, 1.0, 0.5])}, "increase"),
        ({"ts": np.zeros(0)}, "save times"),
        ({"y0": jnp.zeros(2, jnp.float32)}, "jax.enable_x64"),
        ({"y0": 1}, "int"),
        ({"event": lambda t, y, args: y > 1}, "real number"),
        ({"event": lambda t, y, args: jnp.stack([y, y])}, "real number"),
        ({"event": lambda t, y, args: None}, "real number"),
        ({"event": 3}, r"event=3 is not allowed: it is a function of \(t, y, args\)"),
        ({"field": None}, r"field=None is not allowed: it is a function of \(t, y, args\)"),
        *(
            ({"y0": y0}, "solved in float64, but its start is")
            for y0 in (True, np.arange(3), 1j, np.ones(2, complex), "a", object())
        ),
        *(({"y0": y0}, "the start of an ODE is a float64 array or a tree of them") for y0 in (None, {}, [])),
        *(({"solver": name}, "is not allowed: it is one of tsit5") for name in (None, 3, ["tsit5"], "TSIT5", np.array("tsit5"))),
        *(
            ({"max_steps": n}, "max_steps is at least 1 and at most")
            for n in (0, -1, np.int64(0), np.array(0), jnp.int32(0), 2**40)
        ),
        *(({"max_steps": n}, "max_steps is a whole number") for n in (10.5, True, np.True_, None, "5", np.array([5]))),
        *(
            ({"rtol": r}, "rtol is at least 1e-14 and below 1")
            for r in (0, 1, -1.0, np.float32(1e-16), np.array(1e-16), jnp.array(2.0))
        ),
        *(({"rtol": r}, "rtol is a finite number") for r in (np.nan, np.inf, True, "1e-5", None, 1j, np.array([1e-5, 1e-6]))),
        *(({"atol": a}, "atol is at least 0") for a in (-1.0, np.float32(-1), np.array(-1), jnp.array(-1.0))),
        *(({"atol": a}, "atol is a finite number") for a in (np.nan, np.inf, True, "1e-5", None, np.array([1e-5, 1e-6]))),
        *(({"ts": ts}, "array of save times") for ts in (1.0, None, np.zeros((2, 2)), np.array([False, True]), np.array([0, 1j]))),
        *(({"ts": ts}, "array of save times") for ts in ([], np.array(1.0), np.array(["a", "b"]))),
        *(
            ({"ts": ts}, "must be finite and increase")
            for ts in ([0.0, 0.0], [np.nan], [0.0, np.nan], [0.0, np.inf], [-np.inf, 0.0])
        ),
        ({"ts": jnp.array([1.0, 0.0])}, "must be finite and increase"),
        ({"ts": np.array([2**53, 2**53 + 1])}, "must be finite and increase"),  # the same float
        ({"ts": [0, 10**400]}, "array of save times"),
        ({"field": np.zeros((3, 3))}, r"field=float64\[3,3\] is not allowed: it is a function of \(t, y, args\)"),
    ],
)
def test_wrong_input_is_told_in_one_sentence(x64, change, message):
    arguments = {"field": lambda t, y, args: -y, "y0": jnp.float64(0.5), "ts": np.array([0.0, 1.0])} | change
    with pytest.raises(UsageError, match=message) as error:
        flow.solve(**arguments)
    assert "\n" not in str(error.value)


class Pair(NamedTuple):
    """Two branches of a state."""

    a: np.ndarray
    b: np.ndarray


V, M, NEED = np.zeros(2), np.zeros((2, 3)), "both need the same"


@pytest.mark.parametrize(
    ("start", "moved", "message"),
    [
        ({"a": V, "b": V}, {"x": V, "y": V}, f"['x'], ['y'], but the state is ['a'], ['b']: {NEED} structure"),
        ({"a": V, "b": V}, {"a": V}, f"['a'], but the state is ['a'], ['b']: {NEED} structure"),
        (OrderedDict(a=V, b=V), OrderedDict(b=V, a=V), f"['b'], ['a'], but the state is ['a'], ['b']: {NEED} structure"),
        (Pair(V, V), (V, V), f"[0], [1], but the state is .a, .b: {NEED} structure"),
        ((V, V), [V, V], f"[*, *], but the state is (*, *): {NEED} structure"),
        ((V, V), np.zeros(4), f"one array, but the state is [0], [1]: {NEED} structure"),
        (V, None, f"nothing, but the state is one array: {NEED} structure"),
        (M, M.T, f"float64[3,2], but the state is float64[2,3]: {NEED} shape and dtype"),
        ({"w": {"u": M}}, {"w": {"u": M.T}}, f"float64[3,2] at ['w']['u'], but the state is float64[2,3]: {NEED} shape and dtype"),
        (V, -1.0, f"-1.0, but the state is float64[2]: {NEED} shape and dtype"),
        (V, np.zeros(1), f"float64[1], but the state is float64[2]: {NEED} shape and dtype"),
        (V, V.astype(np.float32), f"float32[2], but the state is float64[2]: {NEED} shape and dtype"),
        (V, V.astype(int), f"int64[2], but the state is float64[2]: {NEED} shape and dtype"),
        (V, V.astype(complex), f"complex128[2], but the state is float64[2]: {NEED} shape and dtype"),
        (V, V.astype(bool), f"bool[2], but the state is float64[2]: {NEED} shape and dtype"),
        (V, "none", f"none, but the state is float64[2]: {NEED} shape and dtype"),
    ],
)
def test_a_field_has_the_structure_of_its_state(x64, start, moved, message):
    """As vectors they would be added place by place: a fine solve of something else."""
    with pytest.raises(UsageError) as error:
        flow.solve(lambda t, y, args: moved, start, np.array([0.0, 1.0]))
    assert str(error.value) == f"the field returns {message}"


LEAVES = st.sampled_from([(), (1,), (2,), (0,), (2, 3), (3, 2)])
BRANCHES = [lambda *x: x, lambda *x: list(x), Pair, lambda x, y: {"a": x, "b": y}, lambda x, y: OrderedDict(b=x, a=y)]
TREES = st.recursive(
    LEAVES.map(np.zeros), lambda t: st.builds(lambda make, x, y: make(x, y), st.sampled_from(BRANCHES), t, t), max_leaves=3
)


@pytest.mark.slow
@settings(max_examples=40, deadline=None, derandomize=True)
@given(TREES, TREES)
def test_a_solve_is_refused_where_adding_the_trees_is(start, moved):
    """JAX's own comparison of trees is the oracle; nothing is compiled."""
    with jax.enable_x64(True):
        same = jax.tree.structure(start) == jax.tree.structure(moved)
        same = same and [x.shape for x in jax.tree.leaves(start)] == [x.shape for x in jax.tree.leaves(moved)]
        solve = functools.partial(jax.eval_shape, lambda: flow.solve(lambda t, y, args: moved, start, np.array([0.0, 1.0])))
        if same:
            assert jax.tree.structure(solve().y_end) == jax.tree.structure(start)
        else:
            with pytest.raises(UsageError, match="^the field returns .* need the same"):
                solve()


@pytest.mark.slow
def test_numbers_of_every_library_are_options(x64):
    """A state's number may also move by a Python number, and one save time is a solve that rests."""
    solve = functools.partial(flow.solve, lambda t, y, args: {"x": -y["x"], "rest": 0}, {"x": 1.0, "rest": np.float64(2.0)})
    sol = solve(np.array([0, 1]), rtol=np.array(1e-9), atol=jnp.float64(1e-12), max_steps=np.int64(90), solver=np.str_("tsit5"))
    assert sol.status == OK and sol.y_end["rest"] == 2.0
    np.testing.assert_allclose(sol.y_end["x"], np.exp(-1), rtol=1e-8)
    assert solve([0, 1], max_steps=jnp.int32(2)).status == MAX_STEPS
    alone = solve([3.0])
    assert alone.status == OK and alone.ts == alone.t_end == 3.0 and alone.ys["x"] == alone.y_end["x"] == 1.0


@pytest.mark.slow
def test_traced_times_and_events_that_are_wrong_end_as_failed(x64):
    """They cannot be looked at before the run: the status says it."""
    run = jax.jit(jax.vmap(lambda ts: flow.solve(lambda t, y, args: -y, jnp.float64(1.0), ts)))
    times = np.array([[0, 1, 2], [0, 1, 1], [2, 1, 0], [0, 2, 1], [0, np.nan, 1], [0, 1, np.inf]])
    assert run(times).status.tolist() == [OK] + [FAILED] * 5
    sol = jax.jit(
        jax.vmap(lambda gap: flow.solve(lambda t, y, args: -y, jnp.float64(1.0), [0.0, 1.0], event=lambda t, y, args: y - gap))
    )(np.array([0.5, 0.1, np.nan]))
    assert sol.status.tolist() == [OK, OK, FAILED] and sol.event.tolist() == [True, False, False]


@functools.cache
def driven_pendulum():
    """Compiled: a pendulum with a force that depends on time, until its angle passes a height."""

    def field(t, y, height):
        return {"angle": y["speed"], "speed": jnp.cos(t) - jnp.sin(y["angle"])}

    return jax.jit(functools.partial(flow.solve, field, event=lambda t, y, height: y["angle"] - height))


@pytest.mark.slow
@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.floats(-1, 1), st.floats(-1, 1), st.floats(-5, 5), st.floats(0.1, 3), st.floats(0.1, 3), st.floats(1.1, 4))
def test_a_solve_in_parts_is_the_solve_at_once(angle, speed, start, first, second, height):
    """Time, state and event: the second part begins where the first one ended, unless the event came before."""
    middle, end = start + first, start + first + second

    def solve(y0, *ts):
        return jax.device_get(driven_pendulum()(y0, jnp.array(ts), height))

    with jax.enable_x64(True):
        y0 = {"angle": jnp.float64(angle), "speed": jnp.float64(speed)}
        whole, part = solve(y0, start, middle, end), solve(y0, start, (start + middle) / 2, middle)
        steps = whole.steps + part.steps
        if not part.event:
            np.testing.assert_allclose(whole.ys["angle"][1], part.y_end["angle"], atol=1e-6)
            part = solve(part.y_end, middle, (middle + end) / 2, end)
    assert whole.status == part.status == OK and whole.event == part.event
    # a step errs by at most 1e-10 |y| < 1e-9, which grows like exp(t); an event turns it into time
    bound = 1e-9 * (steps + part.steps) * np.exp(first + second)
    assert abs(whole.t_end - part.t_end) <= bound / abs(whole.y_end["speed"])
    for name in y0:
        np.testing.assert_allclose(whole.y_end[name], part.y_end[name], atol=bound * (1 + 2 / abs(whole.y_end["speed"])))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.sampled_from("uint8 int8 uint16 int16 uint32 int32 uint64 int64 float16 float32 bfloat16".split()), st.data())
def test_save_times_of_any_dtype_are_those_of_python(dtype, data):
    """Python's whole numbers are the oracle of what increases: differences of narrow and unsigned integers wrap."""
    low, high = (-128, 127) if not dtype.startswith("u") else (0, 255)
    numbers = data.draw(st.lists(st.integers(low, high), min_size=1, max_size=3))
    with jax.enable_x64(True):
        for times in (np.asarray(numbers).astype(jnp.dtype(dtype)), jnp.asarray(numbers).astype(dtype)):
            if all(a < b for a, b in zip(numbers, numbers[1:], strict=False)):
                found, wrong = flow.save_times(times)
                assert found.dtype == jnp.float64 and found.tolist() == numbers and not wrong
            else:
                with pytest.raises(UsageError, match="must be finite and increase"):
                    flow.save_times(times)


def test_a_traced_unsigned_time_may_follow_a_negative_one(x64):
    found, wrong = jax.jit(lambda t: flow.save_times([-1, t]))(np.uint8(3))
    assert found.tolist() == [-1.0, 3.0] and not wrong


TOLERANCES = [(-1.0, 0.0), (0.0, 0.0), (1e-15, 0.0), (1.0, 0.0), (1e9, 0.0), (np.nan, 0.0), (np.inf, 0.0)]
TOLERANCES += [(1e-6, -1e-12), (1e-6, np.nan), (1e-6, np.inf), (1e-6, 0.0), (1e-14, 1e-9), (0.5, 1.0)]


@pytest.mark.slow
def test_traced_tolerances_end_as_failed_where_known_ones_are_refused(x64):
    """The refusal outside ``jit`` is the oracle."""

    def solve(rtol, atol):
        return flow.solve(lambda t, y, args: -y, jnp.float64(1.0), [0.0, 1.0], rtol=rtol, atol=atol, max_steps=500)

    def refused(rtol, atol):
        with contextlib.suppress(UsageError):
            jax.eval_shape(lambda: solve(rtol, atol))
            return False
        return True

    expected = [FAILED if refused(*pair) else OK for pair in TOLERANCES]
    assert expected == [FAILED] * 10 + [OK] * 3
    assert jax.jit(jax.vmap(solve))(*np.transpose(TOLERANCES)).status.tolist() == expected
    one = jax.jit(lambda rtol: solve(rtol, 1e-9).status)  # the other one known
    assert one(-1.0) == FAILED and one(1e-3) == OK


def test_a_rate_may_be_unsigned(x64):
    """Its negative would wrap: -3 to 253."""
    moved = jax.jit(lambda rate: flow.gradient_flow(lambda x: x * x / 2, jnp.float64(1.0), [0.0, 1.0], rate=rate).y_end)
    assert float(moved(np.uint8(3))) == pytest.approx(np.exp(-3), rel=1e-8)


def test_what_is_no_function_is_refused(x64):
    with pytest.raises(UsageError, match=r"loss=None is not allowed: it is a function of \(params, \*args\)"):
        flow.gradient_flow(None, jnp.float64(1.0), [0.0, 1.0])
    with pytest.raises(UsageError, match=r"field=None is not allowed: it is a function of \(t, y, args\)"):
        flow.log_time(None)


@pytest.mark.slow
def test_the_implicit_solver_takes_any_stiffness(x64):
    r"""Prothero and Robinson's :math:`y' = -\lambda (y - \cos t) - \sin t`, solved by :math:`\cos t + (y_0 - 1) e^{-\lambda t}`.

    Its slopes are rounded by up to lambda eps, from 1e4 on by more than the absolute tolerance: Newton's method has to end there.
    """
    rates, starts = np.array([1e0, 1e3, 1e5, 1e6, 1e8, 1e12]), np.array([1.0, 2.0])

    def run(rate, y0):
        times = jnp.array([0.0, 1.0, 2.0]) / rate
        ts = jnp.append(times, 3.0)
        return ts, flow.solve(lambda t, y, a: -a * (y - jnp.cos(t)) - jnp.sin(t), y0, ts, rate, solver="kvaerno5")

    ts, sol = jax.jit(jax.vmap(jax.vmap(run, (0, None)), (None, 0)))(rates, starts)
    exact = np.cos(ts) + (starts - 1)[:, None, None] * np.exp(-rates[:, None] * ts)
    assert np.all(sol.status == OK)  # in fewer than 4096 steps
    # a step errs by 1e-12 + 1e-10 |y|, and the field brings solutions together
    assert np.all(np.abs(sol.ys - exact) < np.asarray(sol.steps)[..., None] * 2.1e-10)


@pytest.mark.parametrize("rate", [1e4, 1e5, 1e10])
def test_the_implicit_solver_decays_at_its_default_tolerances(x64, rate):
    """Its slope at the start is rounded to 1e-16 of the rate."""
    sol = decay(jnp.float64(rate))
    assert sol.status == OK and sol.steps < 300
    np.testing.assert_allclose(sol.ys, np.exp([0.0, -1.0, -rate]), rtol=1e-8, atol=1e-12)


@jax.jit
def decay(rate):
    ts = jnp.stack([jnp.zeros(()), 1 / rate, jnp.ones(())])
    return flow.solve(lambda t, y, a: -a * y, jnp.float64(1.0), ts, rate, solver="kvaerno5")


def test_float32_context_is_refused():
    """Outside the 64-bit context a float64 array is silently cut: the sentence says how to get it."""
    with pytest.raises(UsageError, match="jax.enable_x64"):
        flow.solve(lambda t, y, args: -y, np.float64(0.5), np.array([0.0, 1.0]))


RATES = np.array([3.0, 0.1, 40.0, 1.0, 0.5])


TO_TWO = {"solver": "dopri8", "rtol": 1e-11, "event": lambda t, y, a: y["x"][0] - 2.0}


def decay_to(t, y, a):
    return {"x": a["rate"] * (a["goal"] - y["x"])}


@jax.jit
def solve_alone(start, ts, rate, goal):
    return flow.solve(decay_to, {"x": start}, ts, {"rate": rate, "goal": goal}, **TO_TWO)


@pytest.mark.thinned
@pytest.mark.parametrize(("block", "stiffness"), [pytest.param(2, RATES, marks=pytest.mark.slow), (1, None), (64, -RATES)])
def test_solve_many_is_the_loop_of_solves(x64, block, stiffness):
    starts, goals = np.arange(10.0).reshape(5, 2), np.linspace(-1, 1, 10).reshape(5, 2)
    ts = jnp.linspace(0.0, 2.0, 3)
    solve = functools.partial(flow.solve_many, decay_to, ts=ts, stiffness=stiffness, block=block, **TO_TWO)
    many = jax.device_get(jax.jit(solve)({"x": jnp.asarray(starts)}, args={"rate": RATES, "goal": goals}))
    for i in range(5):
        one = solve_alone(starts[i], ts, RATES[i], goals[i])
        assert abs(int(many.steps[i]) - int(one.steps)) <= 1  # rounding differs under vmap, and may decide on a step
        part = jax.tree.map(lambda leaf, i=i: leaf[i], many)._replace(steps=one.steps)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-10), part, one)
    np.testing.assert_allclose(
        many.ys["x"][:1, 1], goals[:1] + (starts - goals)[:1] * np.exp(-RATES[:1, None]), rtol=1e-9
    )  # the law itself, at a time that no event comes before


def test_solve_many_refuses_what_does_not_match(x64):
    y0 = jnp.ones((3, 2))
    for args, extra in ((jnp.ones(2), {}), (jnp.float64(1.0), {}), (None, {"stiffness": np.ones(4)})):
        with pytest.raises(UsageError, match="same leading axis"):
            flow.solve_many(lambda t, y, a: -y, y0, jnp.array([0.0, 1.0]), args, **extra)
    with pytest.raises(UsageError, match="block=0"):
        flow.solve_many(lambda t, y, a: -y, y0, jnp.array([0.0, 1.0]), block=0)
