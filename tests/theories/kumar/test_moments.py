"""Both sides of the identities, the cubature, and the judge on made-up runs."""

import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.theories.kumar.moments import Moments, cubature, judge, trial


def test_identities_hold_for_normal_inputs_only():
    ds = jd.sweep(trial, jd.grid(Moments, dimension=3, nodes=5, law=["normal", "uniform"]), seeds=2)
    assert float(jd.relative_error(ds, "kernel", "point other").max()) < 1e-12
    loss = jd.relative_error(ds, "loss")
    assert float(loss.sel(law="normal").max()) < 1e-12 < 1e-2 < float(loss.sel(law="uniform").max())


@pytest.mark.parametrize(("kind", "fourth"), [("normal", 3.0), ("uniform", 9 / 5)])
def test_cubature_has_the_moments_of_its_law(kind, fourth):
    at, weight = cubature(kind, 2)
    x = at * np.sqrt(2)
    assert weight.sum() == pytest.approx(1) and (weight @ x**2) == pytest.approx(1)
    assert (weight @ x**4) == pytest.approx(fourth) and weight @ (x[:, 0] * x[:, 1]) ** 2 == pytest.approx(1)


def test_judge_holds_on_lawful_data_and_rejects_others():
    rng = np.random.default_rng(0)
    loss, kernel = rng.random(8), rng.normal(size=(8, 3, 3))
    arrays = {f"{side}_loss": (("seed",), loss) for side in ("predicted", "measured")}
    arrays |= {f"{side}_kernel": (("seed", "point", "other"), kernel) for side in ("predicted", "measured")}
    ds = xr.Dataset(arrays)
    assert all(c.passed for c in judge(ds))
    for name in ("loss", "kernel"):
        assert len([c for c in judge(jd.scaled(**{f"predicted_{name}": 1 + 1e-9})(ds)) if not c.passed]) == 1
