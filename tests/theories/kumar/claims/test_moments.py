"""The judge of the identities."""

import numpy as np
import xarray as xr

import jaxdyn as jd
from jaxdyn.theories.kumar.claims.moments import judge


def test_judge_holds_on_lawful_data_and_rejects_others():
    rng = np.random.default_rng(0)
    loss, kernel = rng.random(8), rng.normal(size=(8, 3, 3))
    arrays = {f"{side}_loss": (("seed",), loss) for side in ("predicted", "measured")}
    arrays |= {f"{side}_kernel": (("seed", "point", "other"), kernel) for side in ("predicted", "measured")}
    ds = xr.Dataset(arrays)
    assert all(c.passed for c in judge(ds))
    for name in ("loss", "kernel"):
        assert len([c for c in judge(jd.scaled(**{f"predicted_{name}": 1 + 1e-9})(ds)) if not c.passed]) == 1
