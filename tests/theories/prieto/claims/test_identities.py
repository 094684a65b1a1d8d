"""The judge of the identities."""

import numpy as np
import xarray as xr

import jaxdyn as jd
from jaxdyn.theories.prieto.claims.identities import judge


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
