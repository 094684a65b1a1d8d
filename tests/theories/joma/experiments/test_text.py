"""Attention along training on a text: what a short run records, and the judges on made-up entropies."""

import jax
import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.text import training_run
from jaxdyn.text.training_run import TrainingRun
from jaxdyn.theories.joma.experiments import text
from jaxdyn.theories.joma.experiments.text import trial
from tests.theories.joma.helpers import refutes, upheld


@pytest.fixture(scope="module")
def short():
    """A tiny run on the text that ships with the package."""
    setting = TrainingRun(layers=2, width=8, hidden=8, max_words=50, columns=2, length=6, steps=4, every=2, windows=2)
    return setting, jax.jit(trial)(setting, jax.random.key(0))


@pytest.mark.slow
def test_every_layer_at_every_record(short):
    setting, found = short
    entropy = found.recorded["entropy"]
    assert entropy.dims == ("record", "layer") and entropy.value.shape == (3, setting.layers)
    assert np.all(
        (np.asarray(entropy.value) > 0) & (np.asarray(entropy.value) <= training_run.uniform_entropy(setting.length) + 1e-6)
    )
    np.testing.assert_array_equal(found.measured["start"].value, entropy.value[0])


@pytest.mark.slow
def test_the_prediction_is_uniform_attention(short):
    setting, found = short
    np.testing.assert_allclose(found.predicted["start"].value, np.mean(np.log(np.arange(1, setting.length + 1))), rtol=1e-6)


UNIFORM = training_run.uniform_entropy(35)


def made_up(bottom):
    """A fall by one nat and a return by half of it in the top layer, another path in the bottom layer, with a little noise."""
    top = UNIFORM - np.array([0.0, 0.4, 1.0, 0.7, 0.5])
    noise = 0.02 * np.random.default_rng(0).normal(size=(8, 5, 2))
    entropy = xr.DataArray(np.stack([np.array(bottom), top], -1) + noise, dims=("seed", "record", "layer"))
    start = xr.full_like(entropy.isel(record=0), UNIFORM)
    ds = xr.Dataset({"entropy": entropy, "measured_start": entropy.isel(record=0), "predicted_start": start})
    ds["stable_rank"] = (10 * (entropy - entropy.min("record")) + 2).transpose(*entropy.dims)
    return ds.expand_dims(activation=["relu", "linear"])


@pytest.fixture
def ds():
    """The bottom layer returns, less far than the top layer."""
    return made_up([UNIFORM, 1.5, 1.0, 1.4, 1.7])


DECIDED = [claim for claim in text.CLAIMS if claim.expected == "upheld"]


@pytest.mark.parametrize("claim", DECIDED, ids=lambda claim: claim.id)
def test_judges_uphold_their_own_path_and_nothing_else(ds, claim):
    collapsing = made_up([UNIFORM, 0.5, 0.2, 0.1, 0.1])
    own, other = (collapsing, ds) if claim.id == "joma.text_collapse" else (ds, collapsing)
    assert upheld(claim.judge, own)
    assert claim.id == "joma.text_dip" or not upheld(claim.judge, other)
    functions = [c.breach for c in claim.controls.values() if callable(c.breach)]
    for change in (*functions, *claim.rivals.values()):
        assert refutes(claim.judge, change, own)


def test_attention_that_only_falls_has_no_return(ds):
    least = np.minimum.accumulate(ds.entropy.values, ds.entropy.get_axis_num("record"))
    falling = ds.assign(entropy=ds.entropy.copy(data=least))
    assert upheld(text.judge_dip, falling) and not upheld(text.judge_return, falling)


def test_both_kinds_of_mlp_are_needed(ds):
    with pytest.raises(jd.Inconclusive, match="activation = linear is needed"):
        text.judge_return(ds.sel(activation=["relu"]))


def test_one_layer_has_no_top_and_bottom(ds):
    with pytest.raises(jd.Inconclusive, match="at least 2 values of layer"):
        text.judge_collapse(ds.isel(layer=[0]))


def test_share_of_the_fall_that_the_rank_regains(ds):
    path = np.array([10.0, 6.0, 2.0, 3.0, 4.0])
    shaped = xr.DataArray(path, dims="record") + 0 * ds.entropy
    left, back = text.judge_rank(ds.assign(stable_rank=shaped))
    assert left.value == pytest.approx(4 / 10) and back.value == pytest.approx(2 / 8)
