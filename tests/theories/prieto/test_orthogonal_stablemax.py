"""The judges of orthogonal gradients and StableMax on made-up runs."""

import numpy as np
import xarray as xr

import jaxdyn as jd
from jaxdyn.plotting import render
from jaxdyn.theories.prieto import orthogonal_stablemax


def runs():
    """Orthogonal gradients learn unseen sums, others do not."""
    rng, seeds, records = np.random.default_rng(5), 6, 21
    ends = np.array([0.95, 0.0, 0.005]) + 0.005 * rng.random((seeds, 3))
    curve = ends[..., None] * np.linspace(0, 1, records)
    return xr.Dataset(
        {
            "measured_test": (("seed", "projection"), ends),
            "predicted_test": (("seed", "projection"), np.ones((seeds, 3))),
            "chance": (("seed", "projection"), np.full((seeds, 3), 0.05)),
            "test_curve": (("seed", "projection", "record"), curve),
            "train_curve": (("seed", "projection", "record"), np.ones((seeds, 3, records))),
            "at": (("seed", "projection", "record"), np.arange(records) * np.ones((seeds, 3, 1))),
            "stable_zeros": (("seed", "projection", "record", "bits"), np.array([0.5, 0.0]) * np.ones((seeds, 3, records, 1))),
            "measured_zeros": (("seed", "projection", "record", "bits"), np.ones((seeds, 3, records, 2))),
        },
        {"projection": ["weights", "none", "random"], "bits": [11, 24]},
    )


def failed(judge, ds):
    return {c.name for c in judge(ds) if not c.passed}


def test_orthogonal_holds_on_lawful_data_and_rejects_others():
    ds = runs()
    assert not failed(orthogonal_stablemax.judge_orthogonal, ds)
    assert len(failed(orthogonal_stablemax.judge_orthogonal, jd.rolled(measured_test="projection")(ds))) == 2
    assert failed(orthogonal_stablemax.judge_orthogonal, jd.swap(predicted_test="chance")(ds)) == {
        "accuracy / predicted, orthogonal"
    }
    assert "<svg" in render(orthogonal_stablemax.plot, ds)


def test_stablemax_counts_its_own_zeros():
    ds = runs().sel(projection="none", drop=True)
    assert not failed(orthogonal_stablemax.judge_stable, ds)
    assert failed(orthogonal_stablemax.judge_stable, jd.swap(stable_zeros="measured_zeros")(ds)) == {
        "share of zeros in float32 at the end"
    }
    assert failed(orthogonal_stablemax.judge_stable, jd.swap(stable_zeros=0.0)(ds)) == {"share of zeros in float16 at the end"}
    nothing = failed(orthogonal_stablemax.judge_stable, jd.swap(predicted_test=0.0)(ds))
    assert nothing == {"predicted less measured accuracy on unseen pairs"}
    assert "<svg" in render(orthogonal_stablemax.plot, ds)
