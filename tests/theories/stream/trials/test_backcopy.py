"""What a network lacks in the Bigram-Backcopy task, and short runs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.data import backcopy
from jaxdyn.errors import UsageError
from jaxdyn.theories.sink.trials.language import EDGES
from jaxdyn.theories.stream.trials.backcopy import POLICIES, SPARE, Streamed, drawn, lacking, started, trained, trial

SMALL = {"vocabulary": 9, "triggers": 3, "length": 14, "keys": 10, "width": 8, "hidden": 8, "batch": 8, "steps": 40, "streams": 2}


def test_a_network_that_knows_the_law_lacks_nothing(x64):
    law = backcopy.law(jax.random.key(0), 7, 2, dtype="float64")
    tokens = backcopy.draw(jax.random.key(1), law, 200)
    copied = jax.nn.one_hot(tokens[:-1], 7, dtype="float64")
    pi = jnp.where(law.triggers[tokens[1:]][:, None], copied, law.chain[tokens[1:]])
    logits = jnp.log(jnp.maximum(jnp.concatenate([pi[:1], pi]), 1e-300))
    np.testing.assert_allclose(lacking(law, tokens, logits), 0, atol=1e-12)
    uniform = lacking(law, tokens, jnp.zeros_like(logits))
    np.testing.assert_allclose(uniform[1:], np.log(7) - backcopy.entropies(law)[tokens[1:]], rtol=1e-9)
    other = lacking(law, tokens, 0.1 * logits)
    assert float(jnp.min(other[1:])) >= 0 and float(jnp.max(other)) > 0.1
    assert float(other[0]) == 0


def test_fronts_are_cut_off():
    law = backcopy.law(jax.random.key(0), 9, 2)
    whole, cut = (np.asarray(drawn(law, n, jax.random.key(1), 5, 20)) for n in (0, SPARE))
    assert whole.shape == cut.shape == (5, 20) and (whole[:, 0] == 0).all() and (cut > 0).all()
    np.testing.assert_array_equal(whole[:, SPARE:], cut[:, :-SPARE])


def test_shares_of_what_is_lost():
    ds = jd.sweep(trial, jd.grid(Streamed, **SMALL), 2)
    late = (ds.measured_lacks * xr.DataArray(np.diff(EDGES), dims="stretch")).isel(stretch=slice(2, None)).sum("stretch")
    lost = {name: late.sel(policy=name) - late.sel(policy="1 sink") for name in ("replaced", "window")}
    np.testing.assert_allclose(ds.measured_share.squeeze(), (lost["replaced"] / lost["window"]).squeeze(), rtol=0.02)
    np.testing.assert_array_equal(ds.predicted_share.isel(seed=0).squeeze(), [1, 0])


def test_short_runs():
    ds = jd.sweep(trial, jd.grid(Streamed, decay=[0.0, 0.1], **SMALL), 2)
    assert ds.sizes["policy"] == len(POLICIES) and ds.sizes["stretch"] == 7
    assert bool((ds.measured_lacks > 0).all()) and bool((ds.status == 0).all())
    first = ds.measured_lacks.isel(stretch=0)
    np.testing.assert_allclose(first.sel(policy="window"), first.sel(policy="dense"), rtol=1e-4, err_msg="nothing has left yet")
    assert np.ptp(ds.measured_lacks.isel(stretch=-1).values, axis=-1).min() > 1e-6
    assert bool((ds.idle > 0).all()) and bool((ds.idle < 1).all())
    np.testing.assert_allclose(ds.place.values[0, 0], [5, 15, 30, 60, 120, 240, 410])


@pytest.mark.parametrize(
    "wrong",
    [
        {"lr": 0.0},
        {"decay": -1.0},
        {"cut": 4},
        {"triggers": 32},
        {"keys": 33},
        {"keys": 1},
        {"steps": 3},
        {"width": 0},
        {"hidden": 0},
    ],
)
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Streamed(**wrong)


def test_embeddings_start_with_entries_of_size_one_and_training_reads_other_sequences_by_another_key():
    s = Streamed(**SMALL)
    law = backcopy.law(jax.random.key(0), 9, 3)
    first = started(s, jax.random.key(1))
    assert float(jnp.std(first["embed"])) == pytest.approx(1, rel=0.2)
    params, same, other = (trained(s, law, jax.random.key(1), jax.random.key(n)) for n in (2, 2, 3))
    np.testing.assert_array_equal(params["embed"], same["embed"])
    assert float(jnp.max(jnp.abs(params["embed"] - other["embed"]))) > 1e-3
    assert float(jnp.max(jnp.abs(params["embed"] - first["embed"]))) > 1e-2


def test_one_unit_is_the_default_and_many_are_another_program():
    assert Streamed().shape.hidden == 1 and Streamed(hidden=64).shape.hidden == 64
    assert {"hidden", "steps"} <= set(Streamed.static_fields) and "lr" in Streamed.swept_fields
