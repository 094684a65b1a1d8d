"""Short training on a text, then all parts."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import jaxdyn as jd
from jaxdyn.errors import UsageError
from jaxdyn.theories.dejavu.contextual.trial import HEAD_SHARES, SHARES, Parts, sloped, trial
from jaxdyn.theories.dejavu.model import MODES

SMALL = {"width": 8, "hidden": 20, "length": 8, "batch": 4, "steps": 30, "fitted": 8, "fits": 20, "texts": 4}


@pytest.mark.slow
def test_short_runs():
    ds = jd.sweep(trial, jd.grid(Parts, lr=[1e-2, 2e-2], **SMALL), 2)
    assert ds["mode"].values.tolist() == list(MODES) and ds.share.values.tolist() == list(SHARES)
    assert ds.head_share.values.tolist() == list(HEAD_SHARES)
    assert float((ds.start - ds.whole).min()) > 0
    assert float((ds.measured_units.sel(mode="random", share=0.1) - ds.measured_units.sel(mode="own", share=0.5)).mean()) > 0
    for name in ("measured_units", "measured_heads", "measured_recall", "measured_union", "measured_cosine"):
        assert bool(np.isfinite(ds[name]).all()), name
    assert bool((ds.measured_recall >= 0).all() and (ds.measured_recall <= 1).all())
    assert bool((ds.measured_union >= 1).all() and (ds.measured_room > -1e-5).all())
    assert bool((ds.measured_void >= 0).all() and (ds.measured_void <= 1).all() and (ds.active < 1).all())


def test_predictors_follow_the_gradient_of_the_cross_entropy():
    logits = jnp.linspace(-4.0, 4.0, 20)
    labels = (jnp.arange(20) % 3 == 0).astype(logits.dtype)
    ours, theirs = (jax.grad(lambda z, f=f: jnp.sum(f(z, labels)))(logits) for f in (sloped, optax.sigmoid_binary_cross_entropy))
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("wrong", [{"width": 30}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Parts(**wrong)
