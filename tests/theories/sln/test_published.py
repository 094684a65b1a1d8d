"""The table is that of all embeddings, and its exact columns are reproduced for up to six vertices."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.sln import model, published
from jaxdyn.theories.sln.claims.exact import shares
from jaxdyn.theories.sln.trials.atlas import Atlas, trial


@pytest.mark.slow
def test_exact_columns():
    assert set(published.TABLE) == set(model.METHODS) - {model.CHANCE}
    assert all(len(row) == len(published.COLUMNS) for row in published.TABLE.values())
    ds = jd.sweep(trial, jd.grid(Atlas, largest=6), 1)
    one = shares(ds, "pair").isel(seed=0, missing_dims="ignore")
    sizes = ds.vertices.isel(seed=0, missing_dims="ignore")
    for name, row in published.TABLE.items():
        for n, expected in zip((4, 5, 6), row, strict=False):
            assert abs(100 * float(one.sel(embedding=name).where(sizes == n).mean()) - expected) < 0.051
