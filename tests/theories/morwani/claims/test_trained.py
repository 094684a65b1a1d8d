"""The judge of trained networks."""

import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.theories.morwani.claims.trained import judge, single


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
    checks = {c.name: c.passed for c in judge(single(lawful))}
    assert not checks["margin / largest, each run"] and not checks["largest |share of a frequency / equal share - 1|"]
    with pytest.raises(jd.Inconclusive, match="at least 8 values of seed"):
        judge(lawful.isel(seed=slice(4)))
