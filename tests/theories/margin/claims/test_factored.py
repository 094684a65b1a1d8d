"""The judge on directions made by hand; the claim comes out as expected, with all its controls and rivals."""

import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.theories.margin.claims import factored


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


@pytest.mark.slow
def test_verdicts():
    results = jd.verify_many(list(factored.CLAIMS))
    assert {r.claim.id: r.verdict for r in results} == {c.id: c.expected for c in factored.CLAIMS}
