"""The edge of numerical stability: network, equations and judges."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.engine.claims.edits import Off
from jaxdyn.plotting import render
from jaxdyn.theories.prieto import collapse_stablemax, dynamics, model
from jaxdyn.theories.prieto.arithmetic import SAMPLES, Arithmetic, trial
from jaxdyn.theories.prieto.scale import Identities, judge
from jaxdyn.theories.prieto.scale import trial as scale_trial

# Softmax in finite precision and the scale of logits.

# Bounds on when a loss is zero, against NumPy's own float16 and float32.


@pytest.mark.parametrize("kind", ["float16", "float32"])
def test_numpys_sums_round_to_one_between_the_bounds(x64, kind):
    rng = np.random.default_rng(0)
    top = dynamics.SIGNIFICANT[kind] * np.log(2)
    z = np.zeros((400, 5))
    z[:, 1:] = -(top + rng.uniform(-3, 3, (400, 1)) + rng.uniform(0, 2, (400, 4)))
    answers = jnp.zeros(400, jnp.int32)
    low, high = (np.asarray(f(jnp.asarray(z), answers, kind)) for f in (dynamics.certain, dynamics.possible))
    assert (low <= high).all() and 0.1 < low.mean() < high.mean() < 0.9
    parts = np.exp(z).astype(kind)
    for order in ([0, 1, 2, 3, 4], [1, 2, 3, 4, 0], [3, 0, 1, 4, 2]):
        total = parts[:, order[0]]
        for i in order[1:]:
            total = (total + parts[:, i]).astype(kind)
        zero = total == 1
        near = 0.002  # exponentials are themselves rounded
        assert (low & ~zero).mean() <= near and (zero & ~high).mean() <= near


def test_significands_and_smallest_numbers_are_numpys():
    for kind, bits in dynamics.SIGNIFICANT.items():
        info = np.finfo(kind)
        assert bits == info.nmant + 1 and 2.0 ** dynamics.SMALLEST[kind] == float(info.smallest_subnormal)


def test_underflow_needs_all_wrong_classes_below_the_smallest_number(x64):
    z = jnp.array([[0.0, -17.0, -17.0], [0.0, -16.0, -17.0], [0.0, -200.0, -200.0]])
    answers = jnp.zeros(3, jnp.int32)
    assert np.asarray(dynamics.underflow(z, answers, "float16")).tolist() == [True, False, True]
    assert np.asarray(dynamics.underflow(z, answers, "float32")).tolist() == [False, False, True]


# Closed forms of StableMax against finite differences.


@pytest.mark.parametrize("stable", [False, True])
def test_derivatives_and_scale_are_finite_differences(x64, stable):
    z = np.asarray(2 * jax.random.normal(jax.random.key(3), (6, 4), jnp.float64))
    answers = np.array([0, 1, 2, 3, 1, 0])
    each = np.asarray(dynamics.derivative(jnp.asarray(z), jnp.asarray(answers), stable))

    def loss(x):
        return -np.log(np.asarray(dynamics.probabilities(jnp.asarray(x), stable))[np.arange(6), answers])

    np.testing.assert_allclose(np.asarray(dynamics.probabilities(jnp.asarray(z), stable)).sum(1), 1, rtol=1e-12)
    for c in range(4):
        step = np.zeros((1, 4))
        step[0, c] = 1e-6
        np.testing.assert_allclose((loss(z + step) - loss(z - step)) / 2e-6, each[:, c], atol=1e-8)
    along = (loss(z * (1 + 1e-6)) - loss(z * (1 - 1e-6))).mean() / 2e-6
    assert float(dynamics.along_weights(jnp.asarray(z), jnp.asarray(answers), stable)) == pytest.approx(along, abs=1e-8)


# The network, StableMax and the orthogonal gradient against NumPy.


def test_outputs_are_those_of_two_hot_inputs(x64):
    weights = model.init(jax.random.key(0), 5, 6)
    assert all(w.dtype == jnp.float32 for w in weights) and [w.shape for w in weights] == [(10, 6), (6, 6), (6, 5)]
    a, b, answers = (np.asarray(v) for v in model.pairs(5))
    assert [tuple(v[:3]) for v in (a, b, answers)] == [(0, 0, 0), (0, 1, 2), (0, 1, 2)] and answers[-1] == 3
    x = np.zeros((25, 10))
    x[np.arange(25), a] = x[np.arange(25), 5 + b] = 1
    first, second, last = (np.asarray(w, float) for w in weights)
    for shift in (0.0, 0.3):
        hidden = np.maximum(np.maximum(x @ first + shift, 0) @ second + shift, 0) @ last
        np.testing.assert_allclose(model.outputs(weights, a, b, shift), hidden, atol=1e-5)
    bound = np.sqrt(1 / np.array([10, 6, 6]))
    assert all(np.abs(w).max() <= top for w, top in zip((first, second, last), bound, strict=True))


def test_softmax_of_signed_logs_is_stablemax(x64):
    z = 5 * jax.random.normal(jax.random.key(1), (8, 4), jnp.float64)
    rise = np.where(z >= 0, z + 1, 1 / (1 - np.minimum(z, 0)))
    expected = rise / rise.sum(1, keepdims=True)
    np.testing.assert_allclose(jax.nn.softmax(model.signed_log(z)), expected, rtol=1e-12)
    answers = jnp.array([0, 1, 2, 3, 0, 1, 2, 3])
    np.testing.assert_allclose(
        model.losses(model.signed_log(z), answers), -np.log(expected[np.arange(8), np.asarray(answers)]), rtol=1e-12
    )


def test_orthogonal_gradients_keep_their_norm_and_are_orthogonal(x64):
    g, w = jax.random.normal(jax.random.key(2), (2, 7, 3), jnp.float64)
    left = model.orthogonal(g, w)
    assert abs(float(jnp.vdot(left, w))) < 1e-12
    np.testing.assert_allclose(jnp.linalg.norm(left), jnp.linalg.norm(g), rtol=1e-12)
    assert float(jnp.vdot(left, g)) > 0
    np.testing.assert_allclose(model.orthogonal(2 * w, w), np.zeros((7, 3)), atol=1e-12)


def test_a_loss_is_zero_where_the_derivative_by_the_right_logit_is(x64):
    z = jnp.stack([jnp.zeros(60), -jnp.linspace(10.0, 25.0, 60), -30 * jnp.ones(60)], 1).astype(jnp.float32)
    answers = jnp.zeros(60, jnp.int32)
    zero = np.asarray(model.losses(z, answers) == 0)
    by_right = np.asarray(jax.grad(lambda x: jnp.sum(model.losses(x, answers)))(z))[:, 0]
    assert 0.2 < zero.mean() < 0.8 and np.array_equal(zero, by_right == 0)


# Networks trained on sums, and what their setting refuses.


@pytest.mark.slow
def test_zeros_lie_between_their_bounds_and_projections_change_training():
    grid = jd.grid(Arithmetic, modulus=7, nodes=24, steps=400, precision="float32", projection=["none", "weights", "random"])
    ds = jd.sweep(trial, grid, seeds=2)
    assert ds.sizes["record"] == SAMPLES + 1 and ds.bits.values.tolist() == [11, 24]
    assert float(ds.measured_zeros.max()) == 1 and bool((ds.measured_zeros >= ds.predicted_zeros - 0.04).all())
    assert bool((ds.measured_zeros <= ds.most + 0.04).all()) and bool((ds.predicted_zeros <= ds.most).all())
    assert bool((ds.underflow <= ds.predicted_zeros).all())
    assert bool((ds.train_curve.isel(record=-1) > 0.9).all())
    assert bool((ds["at"].isel(record=-1) == 400).all())
    norm = ds.norm_curve.isel(record=-1).mean("seed").squeeze()
    assert float(norm.sel(projection="weights")) < 0.8 * float(norm.sel(projection="none"))
    same = abs(ds.norm_curve.sel(projection="random") / ds.norm_curve.sel(projection="none") - 1).max()
    assert 0 < float(same) < 0.1
    cosine = ds.cosine_curve
    assert float(abs(cosine).max()) <= 1 and np.isfinite(cosine).all()


@pytest.mark.slow
def test_stablemax_and_precisions_share_their_start():
    fields = {"loss": ["softmax", "stablemax"], "precision": ["float64", "float16"], "steps": 40, "modulus": 5, "nodes": 16}
    ds = jd.sweep(trial, jd.grid(Arithmetic, **fields), seeds=1)
    start, end = (ds.norm_curve.isel(record=i).values.ravel() for i in (0, -1))
    assert np.ptp(start) == 0 and len(set(end.tolist())) == 4
    one = ds.norm_curve.isel(record=-1).squeeze()
    near = float(one.sel(loss="softmax", precision="float16") / one.sel(loss="softmax", precision="float64"))
    assert near == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"share": 1.0}, "both sides"),
    ],
)
def test_settings_refuse(fields, words):
    with pytest.raises(jd.UsageError, match=f"{next(iter(fields))}=.* not allowed: .*{words}"):
        Arithmetic(**fields)


# The judges of collapse, precision and direction on made-up runs.

COLLAPSE, PRECISION, *_ = collapse_stablemax.CLAIMS


@pytest.fixture
def lawful():
    """Zeros that rise to all samples, first in float16, and a cosine that ends at .78, in float64; worse in other precisions."""
    rng, seeds, records = np.random.default_rng(3), 6, 21
    share = np.clip(np.linspace(-1, 2, records)[:, None] - np.array([0.0, 0.8]), 0, 1) * np.ones((seeds, 1, 1))
    worse = {"float64": 0.0, "float32": 5.0, "float16": 6.0}
    line = np.linspace(0, 1, records)
    kinds = {}
    for kind, powers in worse.items():
        zeros = share * (1.0 if kind == "float64" else 0.4)
        curve = 10 ** (-8 * line + powers * line + 0.1 * rng.normal(size=(seeds, 1)))
        cosine = 0.78 - 0.013 * 2 * (1 - line) + 1e-3 * rng.normal(size=(seeds, 1))
        kinds[kind] = xr.Dataset(
            {
                "measured_zeros": (("seed", "record", "bits"), zeros),
                "predicted_zeros": (("seed", "record", "bits"), zeros),
                "most": (("seed", "record", "bits"), np.minimum(zeros + 0.02, 1)),
                "underflow": (("seed", "record", "bits"), 0 * zeros),
                "coarse_least": (("seed", "record", "bits"), np.concatenate([zeros[:, 1:], zeros[:, -1:]], 1)),
                "coarse_most": (("seed", "record", "bits"), np.concatenate([zeros[:, 1:], zeros[:, -1:]], 1)),
                "loss_curve": (("seed", "record"), curve),
                "train_curve": (("seed", "record"), np.ones((seeds, records))),
                "cosine_curve": (("seed", "record"), cosine),
                "measured_cosine": (("seed",), cosine[:, -1]),
                "predicted_cosine": (("seed",), np.ones(seeds)),
                "any_direction": (("seed",), np.full(seeds, 0.01)),
                "kept": (("seed",), np.full(seeds, 0.997)),
                "grown": (("seed",), np.full(seeds, 1.3)),
                "measured_test": (("seed",), np.full(seeds, 0.01)),
                "at": (("seed", "record"), np.arange(records) * np.ones((seeds, 1))),
            },
            {"bits": [11, 24]},
        )
    return xr.concat(list(kinds.values()), xr.DataArray(list(kinds), dims="precision", name="precision"))


def failed(judge, ds):
    return {c.name for c in judge(ds) if not c.passed and not c.gate}


def rejected(rival, ds, bounds):
    """The checks that reject what a rival says of them."""
    theory = rival.rival if isinstance(rival, Off) else rival
    said = {name: value(ds) if callable(value) else value for name, value in theory.items()}
    return {name for name, value in said.items() if not bounds[name][0] <= value <= bounds[name][1]}


def readings(judge, ds):
    return {r.name: r for r in judge(ds) if isinstance(r, jd.Reading)}


def test_collapse_holds_on_lawful_data_and_rejects_others(lawful):
    ds = lawful.sel(precision="float64", drop=True)
    assert not failed(collapse_stablemax.judge_collapse, ds)
    wrong = {"share of zeros outside the bounds, largest", "|share of zeros - least share|, float16, mean over records"}
    loose = "largest share - share of zeros, mean over records"
    bounds = {c.name: c.bound for c in collapse_stablemax.judge_collapse(ds)}
    never, underflow, right = (rejected(rival, ds, bounds) for rival in COLLAPSE.rivals.values())
    stored = COLLAPSE.controls["without the bit that is not stored"].breach
    assert wrong <= failed(collapse_stablemax.judge_collapse, stored(ds))
    assert never == wrong | {"share of zeros at the end"}
    assert underflow == wrong
    assert right == wrong | {loose}
    assert failed(collapse_stablemax.judge_collapse, ds.assign(most=0 * ds.most + 1)) == {loose}
    assert failed(collapse_stablemax.judge_collapse, ds.assign(measured_zeros=0 * ds.measured_zeros, predicted_zeros=0 * ds.most))
    with pytest.raises(jd.Inconclusive, match="at least 5 values of seed"):
        collapse_stablemax.judge_collapse(ds.isel(seed=slice(3)))


def test_precision_and_direction(lawful):
    found = readings(collapse_stablemax.judge_precision, lawful)
    assert found.keys() == {collapse_stablemax.TEST, *PRECISION.rivals["the precision plays no part"].rival}
    assert found[collapse_stablemax.TEST].value == pytest.approx(0.01)
    assert found[collapse_stablemax.WORSE.format("float32")].value == pytest.approx(5.0, abs=0.1)
    assert min(r.interval[0] for name, r in found.items() if name != collapse_stablemax.TEST) > 0
    ds = lawful.sel(precision="float64", drop=True)
    found = readings(collapse_stablemax.judge_direction, ds)
    assert found[collapse_stablemax.COSINE].value == pytest.approx(0.78, abs=2e-3)
    assert found[collapse_stablemax.RISE].value == pytest.approx(0.013, abs=1e-6)
    anywhere = readings(collapse_stablemax.judge_direction, jd.swap(predicted_cosine="any_direction")(ds))
    assert anywhere[collapse_stablemax.COSINE].value == pytest.approx(78, abs=0.2)


def test_figures_are_drawn(lawful):
    for plot, ds in (
        (collapse_stablemax.plot_zeros, lawful),
        (collapse_stablemax.plot_zeros, lawful.sel(precision="float64", drop=True)),
        (collapse_stablemax.plot_cosine, lawful.sel(precision="float64", drop=True)),
    ):
        assert "<svg" in render(plot, ds)


# The judges of orthogonal gradients and StableMax on made-up runs.


def runs():
    """Orthogonal gradients learn unseen sums, others do not."""
    rng, seeds, records = np.random.default_rng(5), 6, 21
    ends = np.array([0.95, 0.0, 0.005]) + 0.005 * rng.random((seeds, 3))
    curve = ends[..., None] * np.linspace(0, 1, records)
    return xr.Dataset(
        {
            "measured_test": (("seed", "projection"), ends),
            "predicted_test": (("seed", "projection"), np.ones((seeds, 3))),
            "chance": (("seed", "projection"), np.full((seeds, 3), 0.05)),
            "test_curve": (("seed", "projection", "record"), curve),
            "train_curve": (("seed", "projection", "record"), np.ones((seeds, 3, records))),
            "at": (("seed", "projection", "record"), np.arange(records) * np.ones((seeds, 3, 1))),
            "stable_zeros": (("seed", "projection", "record", "bits"), np.array([0.5, 0.0]) * np.ones((seeds, 3, records, 1))),
            "measured_zeros": (("seed", "projection", "record", "bits"), np.ones((seeds, 3, records, 2))),
        },
        {"projection": ["weights", "none", "random"], "bits": [11, 24]},
    )


def missed(judge, ds):
    return {c.name for c in judge(ds) if not c.passed}


def test_orthogonal_holds_on_lawful_data_and_rejects_others():
    ds = runs()
    assert not missed(collapse_stablemax.judge_orthogonal, ds)
    assert len(missed(collapse_stablemax.judge_orthogonal, jd.rolled(measured_test="projection")(ds))) == 2
    assert missed(collapse_stablemax.judge_orthogonal, jd.swap(predicted_test="chance")(ds)) == {"accuracy / predicted, orthogonal"}
    assert "<svg" in render(collapse_stablemax.plot, ds)


def test_stablemax_counts_its_own_zeros():
    one = runs().sel(projection="none", drop=True)
    ds = xr.concat([one, one.assign(stable_zeros=0 * one.stable_zeros + 1)], xr.DataArray([1000, 6000], dims="steps", name="steps"))
    early, late = readings(collapse_stablemax.judge_stable, ds).values()
    assert early.value == 0 and late.value == 1 and collapse_stablemax.softmax_zeros(ds) == 1
    assert "<svg" in render(collapse_stablemax.plot_stable, ds)


# Both sides of the identities, and the judge on made-up runs.


@pytest.mark.slow
def test_identities_hold_without_biases_only():
    ds = jd.sweep(scale_trial, jd.grid(Identities, modulus=5, nodes=6, shift=[0.0, 0.2]), seeds=2)
    for name in ("along", "scaled"):
        error = jd.relative_error(ds, name)
        assert float(error.sel(shift=0.0).max()) < 1e-12 < 1e-2 < float(error.sel(shift=0.2).max())


def test_judge_holds_on_lawful_data_and_rejects_others():
    rng = np.random.default_rng(0)
    along, scaled = rng.normal(size=(8, 2, 3)), rng.normal(size=(8, 2, 3))
    arrays = {f"{side}_along": (("seed", "kind", "layer"), along) for side in ("predicted", "measured")}
    arrays |= {f"{side}_scaled": (("seed", "kind", "factor"), scaled) for side in ("predicted", "measured")}
    ds = xr.Dataset(arrays)
    assert all(c.passed for c in judge(ds))
    for name in ("along", "scaled"):
        failed = [c.name for c in judge(jd.scaled(**{f"predicted_{name}": 1 + 1e-9})(ds)) if not c.passed]
        assert len(failed) == 1
