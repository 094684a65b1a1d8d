"""The judges of Adam's attention and of the conserved sums, on made-up data."""

import numpy as np
import xarray as xr

from jaxdyn.theories.snap import published
from jaxdyn.theories.snap.synthetic import optimizers


def test_judges_of_optimizers():
    record, quantity = [0, 2], list(published.QUANTITIES)
    numbers = np.array([[2.15, 2.9, 0.64, 0.06], [2.18, 2.18, 0.0, 0.16]]) + 1e-3 * np.random.default_rng(0).random((4, 2, 4))
    adam = np.broadcast_to(published.FIG5[-1].numbers, (4, 4))
    ds = xr.Dataset(
        {
            "curve": (("seed", "record", "quantity"), numbers),
            "measured_numbers": (("seed", "quantity"), numbers[:, -1]),
            "predicted_numbers": (("seed", "quantity"), adam),
        },
        coords={"record": record, "quantity": quantity},
    )
    assert all(c.passed for c in optimizers.judge_adam(ds))
    assert not optimizers.judge_adam(optimizers.LIKE_DESCENT(ds))[0].passed
    assert not any(
        c.passed for c in optimizers.judge_adam(ds.isel(record=[1, 0]).assign(measured_numbers=ds.measured_numbers + 0.3))
    )
    sums = xr.Dataset({k: (("seed", "row"), np.full((2, 3), v)) for k, v in (("predicted_sums", 1.0), ("moved", 5.0))})
    sums["measured_sums"] = sums.predicted_sums + 1e-6
    assert all(c.passed for c in optimizers.judge_sums(sums))
    assert not any(c.passed for c in optimizers.judge_sums(sums.assign(predicted_sums=1.1 * sums.predicted_sums)))
    assert not any(c.passed for c in optimizers.judge_sums(optimizers.UNCONSTRAINED(sums)))
