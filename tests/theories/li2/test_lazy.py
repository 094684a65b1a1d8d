"""Li2's chapter on Stage I."""

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.theories.li2.dynamics import ridge
from jaxdyn.theories.li2.lazy import depth, eta_beta_regimes, gf_ridge, lemma1_width, ridge_top
from tests.theories.li2.helpers import centred, drawn, passes, refuses_opponents, rejects

# The deeper network's judge on small runs.


@pytest.mark.slow
def test_judge_of_depth_rejects_distortions_and_the_masks_alone():
    ds = jd.sweep(depth.trial, jd.grid(depth.Upper, below=6), seeds=16)
    one = ds.sel(form="derived")
    assert all(c.passed for c in depth.judge(one))
    assert not all(c.passed for c in depth.judge(ds.sel(form="printed")))
    assert rejects(depth.judge, one, "sent", 0.9) and rejects(depth.judge, one, "sent", 1.1)


# Stage I's judges on small runs; settings that are refused.


@pytest.mark.slow
def test_judges_of_stage_one_reject_distortions():
    ds = jd.sweep(gf_ridge.trial, jd.grid(gf_ridge.StageOne, activation=["silu"], group="4", samples=12, hidden=3), seeds=2)
    judges = {"fixed": gf_ridge.judge_fixed, "growth": gf_ridge.judge_early}
    judges |= dict.fromkeys(("v", "sent"), gf_ridge.judge_closed)
    for name, judge in judges.items():
        assert all(c.passed for c in judge(ds)), name
        assert rejects(judge, ds, name, 0.9) and rejects(judge, ds, name, 1.1), name
    assert rejects(gf_ridge.judge_closed, ds, "rate", 1.1) and rejects(gf_ridge.judge_closed, ds, "rate", 0.8)


@pytest.mark.slow
def test_the_mean_rate_lies_between_the_slowest_modes_and_what_the_others_add():
    """A start without the slowest mode may converge as fast as it will."""
    ds = jd.sweep(gf_ridge.trial, jd.grid(gf_ridge.StageOne, activation=["silu"], group="4", samples=12, hidden=3), seeds=2)

    def passed(rate, room=ds.room):
        judged = gf_ridge.judge_closed(ds.assign(measured_rate=rate + 0 * ds.measured_rate, room=room))
        return [c.passed for c in judged]

    assert passed(0.99 * ds.predicted_rate) == [True, True, False, True]
    fast = 1.01 * (ds.predicted_rate + ds.room)
    assert passed(fast) == [True, True, True, False]
    assert passed(fast, room=np.inf * ds.room) == [True, True, True, True]


def test_more_samples_than_pairs_are_refused():
    with pytest.raises(jd.UsageError, match="samples=50, .* not allowed: samples is at most 49"):
        gf_ridge.StageOne(samples=50)


# Sizes of wide networks from Gram matrices.


@pytest.mark.slow
def test_sizes_of_wide_networks_are_those_of_the_matrices(x64):
    f, y, _ = drawn(5, (9, 20))
    signal = centred(y) @ centred(y).T
    g, early = np.asarray(ridge.fixed(f, y, 0.7)), np.asarray(ridge.early(f, y))
    expected = np.sum(g * early), np.linalg.norm(g), np.linalg.norm(early)
    found = lemma1_width.sizes(jnp.asarray(centred(f) @ centred(f).T), jnp.asarray(signal), 0.7)
    np.testing.assert_allclose(found, expected, rtol=1e-11)


@pytest.mark.slow
def test_the_lemma_on_its_inputs_is_upheld_and_its_printed_factor_is_not():
    ds = jd.sweep(lemma1_width.equal_trial, jd.grid(lemma1_width.Equal, activation="relu", common=["no", "yes"]), seeds=8)
    one = ds.sel(form="derived")
    assert all(c.passed for c in lemma1_width.judge_equal(one))
    assert not any(c.passed for c in lemma1_width.judge_equal(ds.sel(form="printed"))[:2])
    assert rejects(lemma1_width.judge_equal, one, "factor", 0.9) and rejects(lemma1_width.judge_equal, one, "factor", 1.1)


def test_classes_of_several_sizes_are_refused():
    with pytest.raises(jd.UsageError, match="inputs is a multiple of classes"):
        lemma1_width.Equal(inputs=10, classes=4)


# Judges of small and large ridge on small runs; settings that are refused.


@pytest.mark.slow
def test_judges_of_regimes_reject_distortions():
    ds = jd.sweep(eta_beta_regimes.trial, jd.grid(eta_beta_regimes.Regimes, nodes=[5, 20], group="4", capacity=20), seeds=2)
    for form, holds in (("derived", True), ("printed", False)):
        one = ds.sel(form=form)
        for judge in (eta_beta_regimes.judge_eta, eta_beta_regimes.judge_beta):
            assert all(c.passed for c in judge(one)) == holds, (form, judge)
    one = ds.sel(form="derived")
    for name, judge in (
        ("small", eta_beta_regimes.judge_eta),
        ("large", eta_beta_regimes.judge_eta),
        ("scaled", eta_beta_regimes.judge_beta),
    ):
        assert rejects(judge, one, name, 0.9) and rejects(judge, one, name, 1.1), name


def test_more_nodes_than_there_are_are_refused():
    with pytest.raises(jd.UsageError, match="nodes=201.*not allowed: nodes is at most capacity"):
        eta_beta_regimes.Regimes(nodes=201)


# The judge of the ridge solution as top layer, on planted times.

(CLAIM,) = ridge_top.CLAIMS


def timed(small=(150, 250), large=(40, 20), last=400):
    """Epochs with a trained top layer and with the ridge solution, on both groups."""
    noise = 1 + 0.05 * np.random.default_rng(0).normal(size=(2, 2, 16))
    time = np.array([small, large], float)[..., None] * noise
    coords = {"group": ["23", "41"], "ridge": [False, True], "seed": range(16), "epoch": [0, last]}
    ds = xr.Dataset({"measured_time": (("group", "ridge", "seed"), time)}, coords)
    return ds.assign(accuracy=xr.ones_like(ds.measured_time).expand_dims(epoch=[0, last]))


def test_the_judge_upholds_what_is_planted_and_refuses_others():
    assert passes(CLAIM, timed())
    for other in (timed(small=(150, 120)), timed(large=(40, 30)), timed(small=(150, 150))):
        assert not passes(CLAIM, other)
    refuses_opponents(CLAIM, timed())


def test_networks_that_do_not_get_there_count_with_all_epochs():
    never = timed()
    never = never.assign(measured_time=never.measured_time.where((never.group != "23") | ~never.ridge, 800.0))
    least = ridge_top.gain(never).sel(group="23")
    np.testing.assert_allclose(np.exp(-least) * timed().measured_time.sel(group="23", ridge=False), 400)


def test_networks_with_a_trained_top_layer_must_generalise():
    ds = timed()
    gate = ridge_top.judge(ds.assign(accuracy=ds.accuracy.where(ds.ridge, 0.5)))[0]
    assert gate.gate and not gate.passed
    with pytest.raises(jd.Inconclusive, match="group"):
        ridge_top.judge(ds.sel(group=["41"]))
