"""Networks trained with a penalty, what their setting refuses, and the judge on made-up runs."""

import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.theories.morwani.dynamics import largest as theory
from jaxdyn.theories.morwani.margin import SINGLE, Trained, judge, trial


def test_penalty_raises_the_margin_and_shares_sum_to_one():
    ds = jd.sweep(trial, jd.grid(Trained, modulus=5, nodes=16, steps=800), seeds=2)
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
def test_settings_refuse(fields, words):
    with pytest.raises(jd.UsageError, match=f"{next(iter(fields))}=.* not allowed: .*{words}"):
        Trained(**fields)


@pytest.fixture
def lawful():
    """Networks near the largest margin, with scatter over eight seeds."""
    rng = np.random.default_rng(1)
    one = ("seed",)
    arrays = {
        "predicted_margin": (one, np.full(8, 0.008)),
        "measured_margin": (one, 0.008 * (1 - 1e-3 * rng.random(8))),
        "predicted_share": (("seed", "frequency"), np.full((8, 5), 0.2)),
        "measured_share": (("seed", "frequency"), 0.2 + 1e-3 * rng.normal(size=(8, 5))),
        "predicted_purity": (one, np.ones(8)),
        "measured_purity": (one, 1 - 1e-3 * rng.random(8)),
        "accuracy": (one, np.ones(8)),
        "single": (one, np.full(8, 0.001)),
    }
    return xr.Dataset(arrays, {"frequency": np.arange(1, 6)})


def test_judge_holds_on_lawful_data_and_rejects_others(lawful):
    assert all(c.passed for c in judge(lawful))
    for factor in (0.95, 1.05):
        assert not all(c.passed for c in judge(jd.scaled(predicted_margin=factor)(lawful)))
    assert not all(c.passed for c in judge(jd.scaled(predicted_purity=1.1)(lawful)))
    checks = {c.name: c.passed for c in judge(SINGLE(lawful))}
    assert not checks["margin / largest, each run"] and not checks["largest |share of a frequency / equal share - 1|"]
    with pytest.raises(jd.Inconclusive, match="at least 8 values of seed"):
        judge(lawful.isel(seed=slice(4)))
