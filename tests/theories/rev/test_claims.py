"""Trials and judges of the reversal claims: against NumPy replays, and against what the judges must reject."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import jaxdyn as jd
from jaxdyn.theories.rev import data
from jaxdyn.theories.rev.claims import CLAIMS, asym, bilinear, clock, context, one_layer, thm3, thm4, transformer

BY_ID = {c.id: c for c in CLAIMS}
SIZES = {"vocabulary": 60, "train_indices": 4, "test_indices": 3, "steps": 3000}
N, M = 2 * 4 + 3, 60


def inside(setting):
    """The setting as a trial sees it: swept numbers as float64 arrays, names as indices."""
    cls = type(setting)
    leaves = {n: getattr(setting, n) for n in cls.swept_fields}
    as_arrays = {n: jnp.int32(cls.code_names[n].index(v)) if n in cls.code_names else jnp.float64(v) for n, v in leaves.items()}
    return jax.tree.unflatten(jax.tree.structure(setting), [as_arrays[n] for n in cls.swept_fields])


def passed(judge, ds):
    with np.errstate(all="ignore"):
        return all(c.passed for c in judge(ds))


def distorted(ds, name, factor):
    return ds.assign({f"predicted_{name}": factor * ds[f"predicted_{name}"]})


@pytest.fixture(scope="module")
def reversal_runs():
    return jd.sweep(one_layer.trial, jd.grid(one_layer.OneLayer, context=["entity", "both"], leak=[0.0, 1.0], **SIZES), 16)


@pytest.fixture(scope="module")
def cot_runs():
    grid = jd.grid(one_layer.OneLayer, task="cot", context=["entity", "both"], leak=[0.0, 1.0], eta=[0.5, 0.9], **SIZES)
    return jd.sweep(one_layer.trial, grid, 16)


@pytest.fixture(scope="module")
def flow_runs_all():
    axes = {"kind": ["gaussian", "orthonormal"], "symmetric": [0.0, 1.0], "stop": [0.0, 0.1], "d": [15, 20, 50, 200]}
    return jd.sweep(bilinear.trial, jd.grid(bilinear.Bilinear, sigma=0.0, **axes), 12)


@pytest.fixture(scope="module")
def flow_runs(flow_runs_all):
    return flow_runs_all.sel(kind="gaussian", stop=0.0, d=[20, 50, 200])


def plain(ds, form="derived"):
    return ds.sel(form=form, context="entity", leak=0.0)


def test_training_is_the_replayed_recursion(x64):
    """SGD replayed in NumPy on the trial's own draws of sequences."""
    s = inside(one_layer.OneLayer(**SIZES | {"steps": 60}))
    key = jax.random.key(3)
    facts = data.draw(jax.random.key(4), s.task, s.vocabulary, s.train_indices, s.test_indices)
    last, seen = jax.jit(lambda: one_layer.train_sgd(s, key, facts, lambda run: run.visits))()
    y, visits = np.zeros((M, M)), np.zeros(N + 3, int)
    for step in range(60):
        u = float(jax.random.uniform(jax.random.fold_in(key, step), (), jnp.float64))
        i = int(u * N)
        x1, _, x3 = np.asarray(facts.train[i])
        p = np.exp(y[x1]) / np.exp(y[x1]).sum()
        y[x1] += 0.5 * (np.eye(M)[x3] - p)
        visits[i] += 1
    np.testing.assert_allclose(last.params.y, y, atol=1e-13)
    np.testing.assert_array_equal(last.visits, visits)
    np.testing.assert_array_equal(seen.sum(1), one_layer.record_steps(60))
    assert np.all(np.asarray(last.params.z) == 0)


def test_mean_is_the_binomial_mixture(reversal_runs):
    ds = plain(reversal_runs).isel(seed=0)
    u = [0.0]
    while len(u) < 800:
        u.append(u[-1] + 0.5 * M / (M - 1 + np.exp(u[-1])))
    p = 1 / (1 + (M - 1) * np.exp(-np.array(u)))
    for i, t in enumerate(one_layer.record_steps(3000)):
        weight = scipy.stats.binom.pmf(np.arange(800), t, 1 / N)
        np.testing.assert_allclose(ds.predicted_mean.sel(token="target")[i], weight @ p, rtol=1e-9)


@pytest.mark.parametrize("name, factor", [("mean", 1.1), ("mean", 0.9), ("row", 1.1), ("row", 0.9)])
def test_clock_judge(reversal_runs, name, factor):
    ds = plain(reversal_runs)
    assert passed(clock.judge, ds)
    assert not passed(clock.judge, distorted(ds, name, factor))


def test_clock_judge_rejects_other_models_and_the_flow(reversal_runs):
    assert not passed(clock.judge, reversal_runs.sel(form="derived", context="both", leak=0.0))
    flow_of_mean = plain(reversal_runs, "simplified")
    assert clock.deviation(flow_of_mean).max() > 2 * clock.deviation(plain(reversal_runs)).max()
    with pytest.raises(jd.Inconclusive, match="8 seeds"):
        clock.judge(plain(reversal_runs).isel(seed=slice(4)))


def test_bound_judges(reversal_runs, cot_runs):
    ds = plain(reversal_runs)
    assert passed(thm3.judge_bound, ds)
    assert not passed(thm3.judge_bound, distorted(ds, "exponent", 1.1))
    assert not passed(thm3.judge_bound, distorted(ds, "bound", 1.1))
    assert not passed(thm3.judge_bound, plain(reversal_runs, "simplified"))
    assert not passed(thm3.judge_bound, thm3.exponent_one(ds))
    np.testing.assert_allclose(thm3.exponent_one(ds).predicted_bound, plain(reversal_runs, "simplified").predicted_bound)
    with pytest.raises(jd.Inconclusive, match="no reading is so late"):
        thm3.judge_bound(ds.isel(record=slice(2)))
    chains = plain(cot_runs).sel(eta=0.5)
    assert passed(thm4.judge_direct, chains)
    assert not passed(thm4.judge_direct, cot_runs.sel(form="derived", context="entity", leak=1.0, eta=0.5))


def test_early_data_are_rejected(reversal_runs):
    ds = plain(reversal_runs).isel(seed=slice(8))
    scaled = ds.assign(late=ds.late * 0.1 + (ds.late > 10) * 10)
    assert not passed(thm3.judge_bound, thm3.early(scaled))


def test_test_judges(reversal_runs, cot_runs):
    assert passed(thm3.judge_test, plain(reversal_runs))
    assert not passed(thm3.judge_test, distorted(plain(reversal_runs), "test", 1.1))
    assert not passed(thm3.judge_test, reversal_runs.sel(form="derived", context="entity", leak=1.0))
    chains = plain(cot_runs).sel(eta=0.5)
    assert passed(thm4.judge_indirect, chains)
    assert not passed(thm4.judge_indirect, distorted(chains, "test", 0.9))
    assert not passed(thm4.judge_indirect, thm4.closure(chains))
    assert not passed(thm4.judge_indirect, plain(cot_runs, "simplified").sel(eta=0.5))


def test_chain_judge(cot_runs):
    chains = plain(cot_runs).sel(eta=[0.9]).isel(record=[2, 3, 6])  # so few tokens need long to be certain
    assert passed(thm4.judge_chain, chains)
    assert not passed(thm4.judge_chain, distorted(chains, "chain", 1.1))
    assert not passed(thm4.judge_chain, thm4.shuffled(chains))
    with pytest.raises(jd.Inconclusive, match="so late"):
        thm4.judge_chain(chains.isel(record=slice(2)))


def test_asymmetry_judges(reversal_runs, cot_runs):
    ds = plain(reversal_runs)
    assert passed(asym.judge, ds)
    np.testing.assert_allclose(asym.asymmetry(ds.measured_entry.isel(matrix=0)), 1)
    assert not passed(asym.judge, distorted(ds, "entry", 1.1))
    assert not passed(asym.judge, plain(reversal_runs, "printed"))
    assert passed(asym.judge_still, ds)
    assert not passed(asym.judge_still, reversal_runs.sel(form="derived", context="both", leak=0.0))
    chains = plain(cot_runs).sel(eta=0.5)
    assert passed(asym.judge_skip, chains)
    assert not passed(asym.judge_skip, distorted(chains, "entry", 0.9))
    assert not passed(asym.judge_skip, cot_runs.sel(form="derived", context="entity", leak=1.0, eta=0.5))


def test_context_judges(cot_runs):
    one = plain(cot_runs).sel(eta=0.5)
    assert passed(context.judge_shares, one)
    both = cot_runs.sel(form="simplified", context="both", leak=0.0, eta=0.5)
    assert not passed(context.judge_shares, both)
    assert not passed(context.judge_shares, one.assign(predicted_share=one.predicted_share + [-0.2, 0.2]))
    assert passed(context.judge_query, both)
    assert not passed(context.judge_query, plain(cot_runs, "simplified").sel(eta=0.5))
    with pytest.raises(jd.Inconclusive, match="8 seeds"):
        context.judge_shares(one.isel(seed=slice(2)))


def test_bilinear_judges(flow_runs):
    ds, broken = flow_runs.sel(symmetric=0.0), flow_runs.sel(symmetric=1.0)
    assert passed(bilinear.judge_ratio, ds)
    assert not passed(bilinear.judge_ratio, broken)
    assert not passed(bilinear.judge_ratio, distorted(ds, "floor", 1.1))
    with pytest.raises(jd.Inconclusive, match="three values"):
        bilinear.judge_ratio(ds.sel(d=[20, 50]))


def test_event_and_closed_form_of_the_flow(flow_runs_all):
    ds = flow_runs_all.sel(kind="gaussian", symmetric=0.0, d=[200.0], stop=[0.1])
    assert bool(ds.stopped.all()) and passed(bilinear.judge_lower, ds)
    assert not passed(bilinear.judge_lower, distorted(ds, "end", 1.4))
    assert not passed(bilinear.judge_lower, flow_runs_all.sel(kind="gaussian", symmetric=1.0, d=[200.0], stop=[0.1]))
    ortho = flow_runs_all.sel(kind="orthonormal", symmetric=0.0, stop=0.0)
    assert passed(bilinear.judge_ortho, ortho.sel(d=[20]))
    assert not passed(bilinear.judge_ortho, ortho.sel(d=[15]))
    assert not passed(bilinear.judge_ortho, distorted(ortho.sel(d=[20]), "forward", 1.1))


@pytest.mark.parametrize("ident", sorted(BY_ID.keys() - {c.id for c in transformer.CLAIMS}))
def test_plots_draw(ident, reversal_runs, cot_runs, flow_runs):
    from jaxdyn import plotting

    claim = BY_ID[ident]
    if claim.trial is bilinear.trial:
        ds = flow_runs.sel(symmetric=0.0).expand_dims(stop=[0.5]) if ident == "rev.bil_lower" else flow_runs.sel(symmetric=0.0)
    else:
        ds = (cot_runs if claim.quick.base.task == "cot" else reversal_runs).sel(context="entity", leak=0.0)
        ds = ds if "eta" not in ds.dims or ident == "rev.cot" else ds.sel(eta=0.5)
    assert plotting.render(claim.plot, ds).startswith("<svg")


@pytest.mark.parametrize(
    "fields, message",
    [
        ({"vocabulary": 20}, "tokens are used"),
        ({"test_indices": 0}, "at least 1 index"),
        ({"steps": 10}, "at least 50"),
        ({"eta": 0.0}, "eta must be > 0"),
        ({"leak": -1.0}, ">= 0"),
    ],
)
def test_impossible_runs(fields, message):
    with pytest.raises(jd.UsageError, match=message):
        one_layer.OneLayer(**fields)


@pytest.mark.parametrize(
    "fields, message", [({"pairs": 11}, "pairs"), ({"d": 400.0}, "most"), ({"d": 1.5}, "d=1.5"), ({"sigma": -1.0}, "sigma")]
)
def test_impossible_flows(fields, message):
    with pytest.raises(jd.UsageError, match=message):
        bilinear.Bilinear(**fields)
