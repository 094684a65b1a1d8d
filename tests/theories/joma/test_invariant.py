"""JoMA's chapter on the invariant of attention and MLP."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
import xarray as xr

import jaxdyn as jd
from jaxdyn.theories.joma.invariant import classes, fig2, fig3, softmax_flow, stationarity
from jaxdyn.theories.joma.invariant import invariants as claims
from jaxdyn.theories.joma.invariant.classes import SAMPLES, Classes, fig2_trial
from jaxdyn.theories.joma.invariant.fig2 import relative
from jaxdyn.theories.joma.invariant.one_block import OneBlock, identity_trial, invariant_trial
from tests.theories.joma.helpers import inside, panels, refutes, theory, upheld

# Settings of one block.


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"queries": 4.0}, "queries=4.0, max_queries=3 are not allowed: queries is at most max_queries"),
        ({"nodes": 3.0}, "nodes=3.0, hidden=2 are not allowed: nodes is at most hidden"),
        ({"dim": 6}, "dim=6 is not allowed: 7 orthonormal columns need dim >= 7"),
    ],
)
def test_settings_refuse_what_the_arrays_cannot_hold(fields, words):
    with pytest.raises(jd.UsageError, match=words):
        OneBlock(**fields)


# Theorem 1 of JoMA, exp and linear attention: trials on small grids, and judges that can say no.


@pytest.fixture(scope="module")
def runs():
    grid = jd.grid(OneBlock, attention=["exp", "linear"], phi=["relu", "tanh"], optimizer=["gd", "adam"], noise=[0.0, 0.3])
    return jd.sweep(invariant_trial, grid, seeds=2)


def passed(checks):
    return [c.passed for c in checks if not c.gate]


def test_runs_that_hardly_move_have_no_order_but_only_few_may_do_so():
    refinement, axes = np.array([1, 2, 4]), ("seed", "refinement", "time", "token")
    drift = np.full((8, 3, 4, 2), 1e-9) / refinement[:, None, None]
    drift[0] = 1e-14 * np.random.default_rng(0).uniform(1, 2, (3, 4, 2))
    flow = {f"{side}_flow": (("seed", "time", "token"), np.ones((8, 4, 2))) for side in ("measured", "predicted")}
    both = {"measured_descent": (axes, drift), "predicted_descent": (axes, np.zeros_like(drift))}
    ds = xr.Dataset(flow | both, {"refinement": refinement})
    assert [c.passed for c in claims.judge_law(ds)] == [True] * 3
    assert [c.passed for c in claims.judge_law(ds.isel(seed=slice(3)))] == [False, True, True]


@pytest.mark.slow
@pytest.mark.parametrize("attention", ["exp", "linear"])
def test_law_holds_and_its_judge_can_say_no(runs, attention):
    main = runs.sel(attention=attention, optimizer="gd", noise=0.0)
    assert passed(claims.judge_law(main)) == [True, True]
    assert passed(claims.judge_law(claims.NOTHING_MOVES(main))) == [False, False]
    assert passed(claims.judge_law(claims.TWICE(main))) == [False, False]
    assert passed(claims.judge_law(main.assign(predicted_flow=1.1 * main.predicted_flow))) == [False, True]
    assert passed(claims.judge_law(runs.sel(attention=attention, optimizer="adam", noise=0.0))) == [True, False]
    assert passed(claims.judge_law(runs.sel(attention=attention, optimizer="gd", noise=0.3))) == [False, False]
    moved = abs(main.measured_flow.isel(time=-1) - main.measured_flow.isel(time=0)).max("token")
    assert bool((moved > 1e-3).all())


def test_single_query_law_changes_as_many_times_as_there_are_queries():
    start, change = 0.5, np.linspace(0, 1, 5)
    flat = xr.DataArray(np.tile(start + change, (2, 1)), dims=("queries", "time"), coords={"queries": [2.0, 3.0]})
    ds = claims.EACH_QUERY(xr.Dataset({"predicted_flow": flat, "predicted_descent": flat}))
    assert np.allclose(ds.predicted_flow, start + np.outer([2, 3], change))


def test_rivals_scale_the_change():
    start, change = 0.5, np.linspace(0, 1, 5)
    both = xr.DataArray(np.tile(start + change, (2, 1)), dims=("axis", "time"))
    for name, values, rival, factors in (
        ("ratio", [0.1, 10.0], claims.EQUAL_RATES, [10, 0.1]),
        ("tau", [0.5, 2.0], claims.NO_TEMPERATURE, [0.5, 2]),
    ):
        one = both.rename(axis=name).assign_coords({name: values})
        ds = rival(xr.Dataset({"predicted_flow": one, "predicted_descent": one}))
        assert np.allclose(ds.predicted_descent, start + np.outer(factors, change))


IDENTITY = jd.grid(
    OneBlock,
    attention=["exp", "linear"],
    phi="relu",
    fraction=[0.5, 1.0],
    optimizer=["gd", "momentum"],
    weight_decay=[0.0, 0.1],
    lr=0.05,
    horizon=2.0,
)


@pytest.fixture(scope="module")
def identity():
    return jd.sweep(identity_trial, IDENTITY, seeds=2)


@pytest.mark.slow
def test_identity_holds_and_its_judge_can_say_no(identity):
    main = identity.sel(optimizer="gd")
    decay = main.sel(weight_decay=[0.1])
    for rival in (jd.swap(predicted_drift="increments"), jd.swap(predicted_drift="lost"), jd.swap(predicted_drift=0.0)):
        assert passed(claims.judge_identity(rival(decay))) == [False]
    assert float(abs(main.lost.sel(weight_decay=0.0)).max()) == 0.0
    assert passed(claims.judge_identity(main)) == [True]
    assert passed(claims.judge_identity(main.assign(predicted_drift=1.1 * main.predicted_drift))) == [False]
    assert passed(claims.judge_identity(identity.sel(optimizer="momentum"))) == [False]
    half, whole = (main.predicted_drift.sel(fraction=f).isel(time=-1) for f in (0.5, 1.0))
    assert bool((abs(half - whole).max("token") > 1e-6).all())  # mini-batches go another way


@pytest.mark.slow
def test_the_same_sweep_has_the_same_bits(identity):
    assert identity.equals(jd.sweep(identity_trial, IDENTITY, seeds=2))


# The map of how far the saliency changes, on a small network, and its judge on made-up numbers.


@pytest.fixture(scope="module")
def still_runs():
    grid = jd.grid(stationarity.Stacked, depth=[0, 2], upper=["tanh", "id"], tokens=10, nodes=4, classes=4, dim=12)
    return jd.sweep(stationarity.trial, grid, seeds=8)


@pytest.mark.slow
def test_without_upper_layers_the_activation_below_them_does_not_matter(still_runs):
    flat = still_runs.sel(depth=0)
    np.testing.assert_allclose(flat.measured_saliency.sel(upper="tanh"), flat.measured_saliency.sel(upper="id"), rtol=1e-12)
    deep = still_runs.sel(depth=2)
    assert float(abs(deep.measured_saliency.sel(upper="tanh") - deep.measured_saliency.sel(upper="id")).max()) > 1e-3
    assert list(stationarity.cells(still_runs)) == ["depth 0", "depth 2, tanh", "depth 2, id"]


@pytest.mark.slow
def test_judge_measures_change_and_turn(still_runs):
    doubled = still_runs.assign(measured_saliency=2 * still_runs.predicted_saliency, reached=0 * still_runs.reached + 1)
    gate, size, direction, *_ = stationarity.judge(doubled)
    assert gate.passed
    assert (size.value, direction.value) == (pytest.approx(0.0, abs=1e-12), pytest.approx(1.0))
    moved = still_runs.assign(reached=0 * still_runs.reached + 1)
    with np.errstate(all="ignore"):
        stays = stationarity.judge(theory(stationarity.STAYS)(moved))
    assert [reading.value for reading in stays[1:3]] == [-np.inf, pytest.approx(1.0)]
    assert not stationarity.judge(still_runs.assign(reached=0 * still_runs.reached))[0].passed


def test_figure(still_runs):
    assert len(panels(stationarity.CLAIMS[0], still_runs)) == 2


def test_the_dimensions_must_hold_orthonormal_embeddings():
    with pytest.raises(jd.UsageError, match="dim=20, tokens=20 are not allowed"):
        stationarity.Stacked(dim=20)


# The experiment of JoMA's Figure 2 against an independent run in NumPy.


def test_class_data_is_the_recipe(x64):
    uniform = np.random.default_rng(0).random((20, 20))
    want = uniform / 2
    assert np.allclose(
        classes.class_data(jnp.asarray(uniform), jd.Code.of("random", classes.DATA)), want / want.sum(1, keepdims=True)
    )
    for i in range(20):
        for token in range(10):
            want[i, token] = np.exp(-((token - 10 * i / 20) ** 2) / 30)
    assert np.allclose(
        classes.class_data(jnp.asarray(uniform), jd.Code.of("gaussian", classes.DATA)), want / want.sum(1, keepdims=True)
    )


def numpy_run(x, w, z, tau, lr, ratio, steps):
    """Full-batch descent written from the formulas; returns logits, squares, and the moving estimate at every step."""
    m = x.shape[1]
    u = np.eye(len(w))[m]
    z0, v0, moved = z.copy(), w[:m].copy(), np.zeros(m)
    zs, squares, moving = [z], [(v0**2).sum(1)], [z]
    for _ in range(steps):
        e = x * np.exp(z / tau)
        b = e / e.sum(1, keepdims=True)
        f = np.concatenate([b, np.zeros((len(b), len(w) - m))], 1) + u
        g = (np.eye(len(x)) - scipy.special.softmax(f @ w, 1)) / len(x)
        pull = g @ w[:m].T
        old = (w[:m] ** 2).sum()
        z = z + lr * ratio / tau * (b * pull - b * (b * pull).sum(1, keepdims=True)).sum(0)
        w = w + lr * f.T @ g
        moved = moved + b.mean(0) * ((w[:m] ** 2).sum() - old)
        zs.append(z)
        squares.append((w[:m] ** 2).sum(1))
        moving.append(z0 + ratio / (2 * tau) * (squares[-1] - squares[0] - moved))
    return np.array(zs), np.array(squares), np.array(moving)


@pytest.fixture(scope="module")
def short():
    """Forty steps from a start that is larger than the paper's, so that all terms matter; every step is recorded."""
    grid = jd.grid(classes.Classes, data=["gaussian", "random"], optimizer=["gd", "adam"], init=0.5, lr=0.5, ratio=2.0, every=1.0)
    return jd.sweep(classes.fig2_trial, grid, seeds=2)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [pytest.param("gaussian", marks=pytest.mark.slow), "random"])
def test_training_is_that_of_an_independent_run(short, kind):
    ds = short.sel(data=kind, optimizer="gd", seed=1)
    with jax.enable_x64(True):
        s = inside(classes.Classes(data=kind, init=0.5))
        params, _, batch = classes.build(s, jax.random.fold_in(jax.random.key(0, impl="threefry2x32"), 1))
    x, w, z = (np.asarray(a) for a in (batch.x, params.w, params.z[0]))
    zs, squares, moving = numpy_run(x, w, z, 0.5, 0.5, 2.0, classes.SAMPLES)
    assert np.allclose(ds.measured_z, zs, atol=1e-12)
    assert np.allclose(ds.square_term, 2 * squares, atol=1e-12)
    assert np.allclose(ds.predicted_z.sel(form="moving"), moving, atol=1e-12)
    constant = z + 2 * ((squares - squares[0]) - x.mean(0) * (squares - squares[0]).sum(1, keepdims=True))
    assert np.allclose(ds.predicted_z.sel(form="constant"), constant, atol=1e-12)
    assert np.abs(zs[-1] - z).max() > 0.1


@pytest.mark.slow
def test_exact_bookkeeping_is_exact_for_descent_only(short):
    error = relative(short.sel(form="exact")).isel(record=-1)
    assert float(error.sel(optimizer="gd").max()) < 1e-13
    assert float(error.sel(optimizer="adam").min()) > 1e-3


def test_classes_the_dimensions_must_hold_orthonormal_embeddings():
    with pytest.raises(jd.UsageError, match="dim=20, tokens=20 are not allowed"):
        classes.Classes(dim=20)


# Theorem 1 of JoMA, softmax attention, in flows with prescribed gradients.


@pytest.fixture(scope="module")
def driven():
    grid = jd.grid(softmax_flow.DrivenBlock, nodes=[1, 3], split=[0.0, 1.0], moving=[0.0, 1.0], ratio=[1.0, 10.0])
    return jd.sweep(softmax_flow.driven_trial, grid, seeds=3)


def softmax_flow_passed(checks):
    return [c.passed for c in checks]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("form", "split", "nodes", "holds"),
    [
        pytest.param("law", 0.0, 3, True, marks=pytest.mark.slow),
        ("law", 1.0, 1, True),
        ("law", 1.0, 3, False),
        ("residual", 1.0, 3, True),
        ("printed", 0.0, 1, False),
    ],
)
def test_softmax_law_in_driven_flows(driven, form, split, nodes, holds):
    """The law needs the factorisation node by node; for one node, or with the residual kept, the summed one is enough."""
    ds = driven.sel(form=form, split=split, nodes=nodes, moving=0.0)
    assert softmax_flow_passed(softmax_flow.judge_driven(ds)) == [True, holds]
    for rival in softmax_flow.RIVALS.values():
        assert not softmax_flow_passed(softmax_flow.judge_driven(rival(ds)))[-1]


@pytest.mark.slow
def test_moving_mean_attention_needs_the_moving_form(driven):
    """An identity of the equations' right-hand sides: no claim."""
    ds = driven.sel(split=0.0, moving=1.0)
    assert float(ds.moved.min()) > 1e-5
    assert softmax_flow_passed(softmax_flow.judge_driven(ds.sel(form="moving"))) == [True, True]
    assert softmax_flow_passed(softmax_flow.judge_driven(ds.sel(form="law"))) == [True, False]
    still = driven.sel(split=0.0, moving=0.0)
    np.testing.assert_allclose(still.predicted_z.sel(form="moving"), still.predicted_z.sel(form="law"), atol=1e-11)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"samples": 5}, "3 tokens need at least 6"),
        ({"nodes": 4.0}, "nodes is at most hidden"),
        ({"dim": 3}, "orthonormal columns need dim > tokens"),
    ],
)
def test_softmax_flow_settings_refuse_what_the_arrays_cannot_hold(fields, words):
    with pytest.raises(jd.UsageError, match=words):
        softmax_flow.DrivenBlock(**fields)


# The judges of JoMA's Figure 2 on made-up data, and other estimates.


def made_up(scale=1.2, tilt=0.0):
    """Logits that grow with time, an estimate that is ``scale`` times as large, and a part that does not belong there."""
    rng = np.random.default_rng(0)
    token = rng.normal(size=20)
    other = rng.normal(size=20)
    time = np.linspace(0, 1, SAMPLES + 1)
    z = time[:, None] * token
    estimate = scale * time[:, None] * (token + tilt * other)
    dims = ("data", "seed", "record", "token")
    wide = lambda a: (dims, np.broadcast_to(a, (2, 3, *a.shape)) * (1 + 1e-3 * np.arange(3))[:, None, None])  # noqa: E731
    each = lambda a: (dims[:3], np.broadcast_to(a, (2, 3, len(time))).copy())  # noqa: E731
    coords = {"data": ["gaussian", "random"], "record": range(SAMPLES + 1)}
    values = {"measured_z": wide(z), "predicted_z": wide(estimate), "drift": each(0.1 * time)}
    return xr.Dataset({**values, "gap": each(0.75 + 0 * time), "felt_gap": each(0.05 + 0 * time)}, coords=coords)


def early_made_up(*how):
    """The same at two ratios of the learning rates."""
    return made_up(*how).expand_dims(ratio=[0.1, 1.0], axis=1)


@pytest.mark.parametrize(
    ("scale", "tilt", "verdicts"),
    [
        (1.2, 0.0, [True, True, True, False]),
        (1.35, 0.0, [True, False, True, False]),
        (1.05, 0.0, [True, False, True, False]),
        (1.2, 0.6, 4 * [False]),
    ],
)
def test_judge_of_fig2(scale, tilt, verdicts):
    """The last check is on random data, for which the correlation at the end is lower."""
    assert [c.passed for c in fig2.judge_fig2(made_up(scale, tilt))] == verdicts


FIG2 = {c.id: c for c in fig2.CLAIMS}


@pytest.mark.parametrize(("scale", "passes"), [(1.0, True), (1.1, True), (1.35, False), (0.7, False)])
def test_judge_of_the_early_phase(scale, passes):
    assert upheld(fig2.judge_early, early_made_up(scale)) == passes


@pytest.mark.parametrize("rival", ["all of the residual acts on the logits", "the factorisation assumption holds"])
def test_judge_of_the_early_phase_rejects_another_residual(rival):
    assert refutes(fig2.judge_early, FIG2["joma.softmax_invariant"].rivals[rival], early_made_up(1.0))


@pytest.mark.parametrize(("scale", "passes"), [(1.0, True), (1.25, True), (1.35, False), (0.6, False)])
def test_judge_of_the_moving_estimate(scale, passes):
    assert upheld(fig2.judge_moving, made_up(scale)) == passes


def test_judge_of_size_reports_error_and_drift():
    readings = fig2.judge_size(made_up(1.1))
    assert [r.value for r in readings] == pytest.approx(2 * [0.1, 0.05, 0.1, 0.1])


def test_early_phase():
    """It ends where the mean attention has moved by 5%, holds the first record in any case, and never the start."""
    ds = made_up()
    assert fig2.early(ds).isel(data=0, seed=0).values.nonzero()[0].tolist() == list(range(1, 21))
    late = ds.assign(drift=ds.drift + 1)
    assert fig2.early(late).isel(data=0, seed=0).values.nonzero()[0].tolist() == [1]
    assert float(fig2.last(ds.record * (ds.drift >= 0), fig2.early(ds)).max()) == 20


def test_correlation_is_blind_to_size_and_offset():
    ds = made_up(3.0)
    nc = fig2.correlation(ds.measured_z, ds.predicted_z + 5).isel(record=-1)
    assert np.allclose(nc, 1)
    a, b = ds.measured_z.isel(data=0, seed=0, record=3), made_up(1.0, 0.7).predicted_z.isel(data=0, seed=0, record=3)
    assert np.isclose(fig2.correlation(a, b), np.corrcoef(a, b)[0, 1])


@pytest.fixture(scope="module")
def brief():
    """Forty steps from a start that is larger than the paper's, so that all terms matter."""
    grid = jd.grid(Classes, data=["gaussian", "random"], init=0.5, lr=0.5, ratio=2.0, every=1.0)
    return jd.sweep(fig2_trial, grid, seeds=2)


@pytest.mark.slow
def test_other_estimates_start_at_the_logits(brief):
    ds = brief.sel(form="constant")
    for other in (theory(fig2.TERMS["nothing moves"]), fig2.TERMS["second term alone"], fig2.PERMUTED_ROWS):
        wrong = other(ds)
        assert np.allclose(wrong.predicted_z.isel(record=0), ds.measured_z.isel(record=0))
        assert float(fig2.relative(wrong).isel(record=-1).min()) > 0.2
    assert np.allclose(fig2.CONSTANT_ATTENTION(brief.sel(form="moving")).predicted_z, brief.predicted_z.sel(form="constant"))


# The judge of Figure 3 on made-up data.


def fig3_made_up():
    """Four runs whose speed has grown with time, by theory and in training, at the end of the early phase."""
    rng = np.random.default_rng(0)
    wide = xr.DataArray(np.ones((2, 4)), dims=("data", "seed"), coords={"data": ["gaussian", "random"]})
    uniform, bend = (xr.DataArray(rng.normal(size=(3, 2)), dims=("token", "node")) for _ in range(2))
    rate, v = wide * (uniform + 0.1 * bend), wide * (0.5 * uniform + 0.025 * bend)
    rank = (wide * xr.DataArray(np.linspace(3, 1, 5), dims="record")).transpose("data", "seed", "record")
    sides = {f"{side}_{n}": a for side in ("predicted", "measured") for n, a in (("v", v), ("rate", rate), ("srank_v", rank))}
    return xr.Dataset({**sides, "start": 0 * v, "frozen": wide * uniform, "uniform": 1.1 * wide * uniform, "elapsed": 0.5 * wide})


def test_fig3_judge():
    ds = fig3_made_up()
    assert upheld(fig3.fig3_judge, ds)
    assert not upheld(fig3.fig3_judge, ds.assign(predicted_v=1.2 * ds.predicted_v))
    assert not upheld(fig3.fig3_judge, ds.assign(measured_srank_v=ds.measured_srank_v + 0.3))


def test_rivals_leave_the_bend_unexplained():
    ds = fig3_made_up()
    for rival in fig3.CLAIMS[0].rivals.values():
        v, rate, rank = fig3.fig3_judge(theory(rival)(ds))
        assert (v.passed, rate.passed, rank.passed) == (False, False, True)
    assert np.allclose(fig3.early_error(fig3.constant_rate("frozen")(ds), "rate"), 1)


@pytest.mark.slow
def test_the_early_phase_ends_where_the_mean_attention_has_moved():
    """At the last of the records up to which it has always been near its start; at the first where it leaves at once."""
    grid = jd.grid(Classes, data=["gaussian"], ratio=[1.0, 30.0], every=[1.0, 20.0])
    ds = jd.sweep(fig3.fig3_trial, grid, seeds=2)
    step = ds.elapsed / (ds.lr if "lr" in ds else 0.1) / ds.every
    inside = (ds.drift.cumulative("record").max() <= fig3.EARLY).sum("record") - 1
    assert np.allclose(step, np.maximum(inside, 1)) and len(np.unique(inside)) > 2
