"""Both sides of the identities, and the judge on made-up runs."""

import numpy as np
import xarray as xr

import jaxdyn as jd
from jaxdyn.theories.prieto.scale import Identities, judge, trial


def test_identities_hold_without_biases_only():
    ds = jd.sweep(trial, jd.grid(Identities, modulus=5, nodes=6, shift=[0.0, 0.2]), seeds=2)
    for name in ("along", "scaled"):
        error = jd.relative_error(ds, name)
        assert float(error.sel(shift=0.0).max()) < 1e-12 < 1e-2 < float(error.sel(shift=0.2).max())


def test_judge_holds_on_lawful_data_and_rejects_others():
    rng = np.random.default_rng(0)
    along, scaled = rng.normal(size=(8, 2, 3)), rng.normal(size=(8, 2, 3))
    arrays = {f"{side}_along": (("seed", "kind", "layer"), along) for side in ("predicted", "measured")}
    arrays |= {f"{side}_scaled": (("seed", "kind", "factor"), scaled) for side in ("predicted", "measured")}
    ds = xr.Dataset(arrays)
    assert all(c.passed for c in judge(ds))
    for name in ("along", "scaled"):
        failed = [c.name for c in judge(jd.scaled(**{f"predicted_{name}": 1 + 1e-9})(ds)) if not c.passed]
        assert len(failed) == 1
