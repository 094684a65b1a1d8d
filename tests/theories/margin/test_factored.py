"""Keys and queries apart turn to the least nuclear norm, more than one matrix does; the judge on directions made by hand."""

import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.theories.margin import factored
from jaxdyn.theories.margin.factored import Factored, trial


def test_directions():
    ds = jd.sweep(trial, jd.grid(Factored, every=320), 4)
    assert int(ds.status.max()) == 0
    assert float(ds.assumed_gap.max()) < 1e-4 and float(ds.assumed_selected.min()) == 1
    np.testing.assert_allclose((ds.measured_direction**2).sum(["row", "column"]), 1, rtol=1e-12)
    cosine = (ds.measured_direction * ds.predicted_direction).sum(["row", "column"])
    assert bool((cosine.isel(record=-1) > ds.to_frobenius.isel(record=-1)).all())
    np.testing.assert_allclose(ds.singular.sum("rank"), 1, rtol=1e-12)
    values = np.linalg.svd(ds.measured_direction.isel(record=-1).transpose("seed", "row", "column"), compute_uv=False)
    np.testing.assert_allclose(ds.singular.transpose("seed", "rank"), values / values.sum(-1, keepdims=True), rtol=1e-7, atol=1e-12)


def turning(angle: float, other: float = 0.5, runs: int = 32) -> xr.Dataset:
    """Runs whose direction is at ``angle`` from the predicted one at first, and at a tenth of it at the end."""
    angles = angle * np.array([1.0, 0.1]) * np.linspace(0.9, 1.1, runs)[:, None]
    w = np.stack([np.cos(angles), np.sin(angles)], -1)[..., None, :]
    return xr.Dataset(
        {
            "measured_direction": (("seed", "record", "row", "column"), w),
            "predicted_direction": (("seed", "row", "column"), np.broadcast_to([[1.0, 0.0]], (runs, 1, 2))),
            "to_frobenius": (("seed", "record"), np.full((runs, 2), other)),
        },
        coords={"seed": np.arange(runs)},
    )


@pytest.mark.parametrize(
    "ds, passed",
    [
        (turning(0.5), [True, True, True]),
        (turning(0.5, other=0.9999), [True, False, True]),
        (turning(0.5).isel(record=[0, 0]), [False, True, False]),
    ],
)
def test_judge(ds, passed):
    assert [c.passed for c in factored.judge(ds)] == passed
