"""Largest margins on groups: network, equations and judges."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.theories.morwani import dynamics as theory
from jaxdyn.theories.morwani import model
from jaxdyn.theories.morwani.construction import Constructed, judge
from jaxdyn.theories.morwani.margin import SINGLE, Trained
from jaxdyn.theories.morwani.margin import judge as margin_judge
from jaxdyn.theories.morwani.margin import trial as margin_trial

# The construction and its margin.


def test_construction_is_a_sum_of_cosines_with_the_largest_margin(x64):
    p, count = 7, 3
    share = jnp.full(count, 1 / count, jnp.float64)
    params = theory.construct(p, share, jnp.zeros(8 * count))
    assert float(jnp.sum(model.cubes(params))) == pytest.approx(1, rel=1e-12)
    a, b = np.divmod(np.arange(p * p), p)
    angle = 2 * np.pi * (a + b)[:, None, None] - 2 * np.pi * np.arange(p)[:, None]
    waves = np.cos(angle * np.arange(1, count + 1) / p).sum(-1) / count
    np.testing.assert_allclose(model.outputs(params), (2 / (3 * p)) ** 1.5 / 2 * waves, atol=1e-15)
    assert float(model.margin(params)) == pytest.approx(theory.largest(p), rel=1e-12)


def test_one_frequency_and_unequal_shares_have_less(x64):
    shift = jnp.zeros(24)
    single = theory.construct(7, jnp.array([1.0, 0.0, 0.0]), shift)
    assert float(model.normalised(single)) == pytest.approx(theory.one_frequency(7), rel=1e-12)
    uneven = theory.construct(7, jnp.array([0.4, 0.3, 0.3]), shift)
    assert float(model.normalised(uneven)) < theory.largest(7)


# The network of squares against NumPy.


def test_outputs_margin_and_penalty_are_numpys(x64):
    params = model.init(jax.random.key(0), 5, 6, 0.5)
    assert params.u.dtype == jnp.float32
    u, v, w = (np.asarray(x, np.float64) for x in params)
    out = np.asarray(model.outputs(params))
    margins = []
    for a in range(5):
        for b in range(5):
            row = np.sum(w * (u[a] + v[b]) ** 2, 1)
            np.testing.assert_allclose(out[5 * a + b], row, atol=1e-5)
            right = (a + b) % 5
            assert int(model.labels(5)[5 * a + b]) == right
            margins.append(row[right] - np.max(np.delete(row, right)))
    assert float(model.margin(params)) == pytest.approx(min(margins), abs=1e-5)
    norms = np.sqrt(np.sum(u**2 + v**2 + w**2, 0))
    assert float(model.penalty(params, 2.0)) == pytest.approx(np.sum(norms**2), rel=1e-5)
    assert float(jnp.sum(model.cubes(params))) == pytest.approx(np.sum(norms**3), rel=1e-5)
    shifted = out - out.max(1, keepdims=True)
    logs = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
    loss = -np.mean(logs[np.arange(25), np.asarray(model.labels(5))])
    assert float(model.cross_entropy(params)) == pytest.approx(loss, rel=1e-5)


def test_normalised_margin_does_not_change_with_scale(x64):
    params = model.init(jax.random.key(1), 7, 24, 1.0, "float64")
    double = jax.tree.map(lambda x: 2 * x, params)
    assert float(model.normalised(double)) == pytest.approx(float(model.normalised(params)), rel=1e-12)


@pytest.mark.slow
def test_spectrum_finds_the_frequencies_of_waves(x64):
    a = jnp.arange(7, dtype=jnp.float64)[:, None]
    one, two = jnp.cos(2 * jnp.pi * a / 7), 2 * jnp.cos(2 * jnp.pi * 3 * a / 7 + 1)
    wave = jnp.concatenate([one, two], 1)
    share, purity = model.spectrum(model.Params(wave, wave, wave))
    np.testing.assert_allclose(share, [1 / 9, 0, 8 / 9], atol=1e-12)
    assert float(purity) == pytest.approx(1)
    flat = model.Params(wave + 1, wave + 1, wave + 1)
    assert float(model.spectrum(flat)[1]) < 0.7
    dead = jnp.concatenate([wave, jnp.zeros((7, 1))], 1)
    share, purity = model.spectrum(model.Params(dead, dead, dead))
    np.testing.assert_allclose(share, [1 / 9, 0, 8 / 9], atol=1e-12)
    assert float(purity) == pytest.approx(1)


# Constructed networks, what their setting refuses, and the judge on made-up runs.


@pytest.mark.parametrize(
    ("fields", "words"),
    [({"moduli": (9,)}, "odd primes"), ({"moduli": ()}, "at least one")],
)
def test_settings_refuse(fields, words):
    with pytest.raises(jd.UsageError, match=f"{next(iter(fields))}=.* not allowed: .*{words}"):
        Constructed(**fields)


def test_judge_holds_on_lawful_data_and_rejects_others():
    best = np.broadcast_to([0.03, 0.008], (8, 2))
    arrays = {
        "predicted_margin": (("seed", "prime"), best),
        "measured_margin": (("seed", "prime"), best),
        "moved": (("seed", "prime", "size"), best[..., None] * np.array([0.99, 0.5])),
    }
    ds = xr.Dataset(arrays, {"prime": [5, 11], "size": [0.01, 0.1]})
    assert all(c.passed for c in judge(ds))
    assert not all(c.passed for c in judge(jd.scaled(predicted_margin=1 + 1e-9)(ds)))
    assert not all(c.passed for c in judge(ds.assign(moved=2 * ds.moved)))


# Networks trained with a penalty, what their setting refuses, and the judge on made-up runs.


@pytest.mark.slow
def test_penalty_raises_the_margin_and_shares_sum_to_one():
    ds = jd.sweep(margin_trial, jd.grid(Trained, modulus=5, nodes=16, steps=800), seeds=2)
    ratio = (ds.measured_margin / ds.predicted_margin).values
    assert float(ds.predicted_margin.max()) == pytest.approx(theory.largest(5))
    assert ratio.min() > 0.5 and ratio.max() < 1 + 1e-5
    assert bool((ds.measured_margin > ds.initial_margin).all())
    assert ds.measured_share.sum("frequency").values == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"modulus": 9}, "odd prime"),
        ({"nodes": 30}, "at least 4"),
        ({"steps": 30}, "multiple of 40"),
    ],
)
def test_margin_settings_refuse(fields, words):
    with pytest.raises(jd.UsageError, match=f"{next(iter(fields))}=.* not allowed: .*{words}"):
        Trained(**fields)


@pytest.fixture
def lawful():
    """Networks near the largest margin, with scatter over eight seeds."""
    rng = np.random.default_rng(1)
    one = ("seed",)
    arrays = {
        "predicted_margin": (one, np.full(8, 0.008)),
        "measured_margin": (one, 0.008 * (1 - 1e-4 * rng.random(8))),
        "predicted_share": (("seed", "frequency"), np.full((8, 5), 0.2)),
        "measured_share": (("seed", "frequency"), 0.2 + 1e-5 * rng.normal(size=(8, 5))),
        "predicted_purity": (one, np.ones(8)),
        "measured_purity": (one, 1 - 1e-4 * rng.random(8)),
        "accuracy": (one, np.ones(8)),
        "single": (one, np.full(8, 0.001)),
    }
    return xr.Dataset(arrays, {"frequency": np.arange(1, 6)})


def test_margin_judge_holds_on_lawful_data_and_rejects_others(lawful):
    assert all(c.passed for c in margin_judge(lawful))
    for factor in (0.95, 1.05):
        assert not all(c.passed for c in margin_judge(jd.scaled(predicted_margin=factor)(lawful)))
    assert not all(c.passed for c in margin_judge(jd.scaled(predicted_purity=1.1)(lawful)))
    checks = {c.name: c.passed for c in margin_judge(SINGLE(lawful))}
    assert not checks["margin / largest, each run"] and not checks["largest |share of a frequency - predicted| / equal share"]
    with pytest.raises(jd.Inconclusive, match="at least 8 values of seed"):
        margin_judge(lawful.isel(seed=slice(4)))
