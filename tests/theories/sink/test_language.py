"""A small language model: the sink metric, stretches of a text, short runs."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn import nn
from jaxdyn.errors import UsageError
from jaxdyn.theories.sink.language import EDGES, POLICIES, Language, alpha, begun, places, stretches, trial

SMALL = {"text": "markov", "level": "words", "vocabulary": 30, "width": 8, "hidden": 8, "layers": 2, "heads": 2, "length": 10}
SMALL |= {"batch": 4, "steps": 40, "records": 2, "streams": 2}


@pytest.mark.thinned
@pytest.mark.parametrize("token", [False, True])
def test_uniform_attention_has_the_weight_of_counting(token, x64):
    shape = nn.Transformer(vocabulary=5, width=4, layers=2, heads=2, hidden=4, sink_token=token, dtype="float64")
    net = nn.network(shape)
    params = net.init(jax.random.key(0))
    params["blocks"]["q"] = 0 * params["blocks"]["q"]
    weight = alpha(net, params, jnp.zeros((3, 9), jnp.int32))
    np.testing.assert_allclose(weight, np.mean(1 / np.arange(2, 10 + token)), rtol=1e-12)
    assert weight.shape == (2, 2)


def test_stretches_are_means_between_the_edges():
    values = jnp.arange(EDGES[-1] * 3, dtype=jnp.float32)[None]
    np.testing.assert_allclose(stretches(values, 3)[0], places(3, "float32") - 0.5)


def test_sequences_begin_with_a_token_of_their_own():
    tokens = jnp.arange(6).reshape(2, 3)
    for name, first in (("anywhere", [0, 3]), ("token", [9, 9])):
        s = dataclasses.replace(Language(**SMALL), begins=name)
        np.testing.assert_array_equal(begun(s, 9, tokens)[:, 0], first)
        np.testing.assert_array_equal(begun(s, 9, tokens)[:, 1:], tokens[:, 1:])


@pytest.mark.slow  # a verification runs the same trial, at its full size
def test_short_runs():
    ds = jd.sweep(trial, jd.grid(Language, begins=["anywhere", "token"], sink_token=[False, True], **SMALL), 2)
    assert bool((ds.status == 0).all()) and ds.sizes["policy"] == len(POLICIES) and ds.sizes["step"] == 3
    assert float(ds.validation.isel(step=-1).max()) < float(ds.validation.isel(step=0).min())
    first = ds.measured_loss.isel(stretch=0).sel(sink_token=False)
    for name in ("recomputed", "dense", "absolute"):
        np.testing.assert_allclose(first.sel(policy="window"), first.sel(policy=name), rtol=1e-4, err_msg="nothing has left yet")
    late = ds.measured_loss.isel(stretch=-1)
    assert np.abs(late.sel(policy="window") - late.sel(policy="dense")).min() > 1e-6
    assert bool((ds.measured_alpha > 0).all()) and bool((ds.measured_alpha < 1).all())


WRONG = [{"steps": 41}, {"heads": 3}, {"attention": "cosine"}]


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Language(**wrong)
