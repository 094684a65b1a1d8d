"""Networks trained on sums, and what their setting refuses."""

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.theories.prieto.arithmetic import SAMPLES, Arithmetic, trial


def test_zeros_lie_between_their_bounds_and_projections_change_training():
    grid = jd.grid(Arithmetic, modulus=7, nodes=24, steps=400, precision="float32", projection=["none", "weights", "random"])
    ds = jd.sweep(trial, grid, seeds=2)
    assert ds.sizes["record"] == SAMPLES + 1 and ds.bits.values.tolist() == [11, 24]
    assert float(ds.measured_zeros.max()) == 1 and bool((ds.measured_zeros >= ds.predicted_zeros - 0.04).all())
    assert bool((ds.measured_zeros <= ds.most + 0.04).all()) and bool((ds.predicted_zeros <= ds.most).all())
    assert bool((ds.underflow <= ds.predicted_zeros).all())
    assert bool((ds.train_curve.isel(record=-1) > 0.9).all())
    assert bool((ds["at"].isel(record=-1) == 400).all())
    norm = ds.norm_curve.isel(record=-1).mean("seed").squeeze()
    assert float(norm.sel(projection="weights")) < 0.8 * float(norm.sel(projection="none"))
    same = abs(ds.norm_curve.sel(projection="random") / ds.norm_curve.sel(projection="none") - 1).max()
    assert 0 < float(same) < 0.1
    cosine = ds.cosine_curve
    assert float(abs(cosine).max()) <= 1 and np.isfinite(cosine).all()


def test_stablemax_and_precisions_share_their_start():
    fields = {"loss": ["softmax", "stablemax"], "precision": ["float64", "float16"], "steps": 40, "modulus": 5, "nodes": 16}
    ds = jd.sweep(trial, jd.grid(Arithmetic, **fields), seeds=1)
    start, end = (ds.norm_curve.isel(record=i).values.ravel() for i in (0, -1))
    assert np.ptp(start) == 0 and len(set(end.tolist())) == 4
    one = ds.norm_curve.isel(record=-1).squeeze()
    near = float(one.sel(loss="softmax", precision="float16") / one.sel(loss="softmax", precision="float64"))
    assert near == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"share": 1.0}, "both sides"),
    ],
)
def test_settings_refuse(fields, words):
    with pytest.raises(jd.UsageError, match=f"{next(iter(fields))}=.* not allowed: .*{words}"):
        Arithmetic(**fields)
