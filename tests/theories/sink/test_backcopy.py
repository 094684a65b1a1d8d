"""Short training on the Bigram-Backcopy task."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.errors import UsageError
from jaxdyn.theories.sink.backcopy import Backcopy, slowed, trial

SMALL = {"vocabulary": 9, "length": 12, "width": 8, "hidden": 16, "batch": 8, "samples": 2, "every": 10.0, "longest": 20}


@pytest.mark.slow
def test_short_runs():
    ds = jd.sweep(trial, jd.grid(Backcopy, attention=["softmax", "relu"], **SMALL), 2)
    assert float(ds.excess.isel(step=-1).max()) < float(ds.excess.isel(step=0).min())
    for name in ("copy_loss", "measured_idle", "measured_copying", "measured_share", "measured_margin", "measured_drain"):
        assert bool(np.isfinite(ds[name]).all()) and ds.sizes["step"] == 3
    soft = ds.sel(attention="softmax")
    np.testing.assert_allclose(soft.measured_share, soft.measured_idle, rtol=1e-5)
    np.testing.assert_allclose(ds.uniform, np.mean(1 / np.arange(3, 13)), rtol=1e-6)
    assert ds.steps.values.ravel().tolist()[:3] == [0, 10, 20]


@pytest.mark.slow
def test_frozen_values_and_a_world_without_triggers():
    ds = jd.sweep(trial, jd.grid(Backcopy, value_rate=[0.0, 1.0], triggers=[0.0, 3.0], **SMALL), 1)
    assert float(abs(ds.measured_copying.sel(triggers=0.0)).max()) == 0
    assert float(ds.measured_copying.sel(triggers=3.0).min()) > 0
    moved = abs(ds.measured_drain.isel(step=-1) - ds.measured_drain.isel(step=0)).sel(triggers=3.0)
    assert moved.sel(value_rate=0.0).values[0] != moved.sel(value_rate=1.0).values[0]
    np.testing.assert_allclose(ds.pattern.sum("key"), 1, rtol=1e-5)


def test_a_held_array_passes_a_part_of_its_gradient():
    value, slope = jax.value_and_grad(lambda x: jnp.sum(slowed(x, jnp.asarray(0.25)) ** 2))(jnp.array([1.0, 2.0]))
    np.testing.assert_allclose(value, 5)
    np.testing.assert_allclose(slope, [0.5, 1.0])


@pytest.mark.parametrize("wrong", [{"longest": 9}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Backcopy(**wrong)
