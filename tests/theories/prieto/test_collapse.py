"""The judges of collapse, precision and direction on made-up runs."""

import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.plotting import render
from jaxdyn.theories.prieto import collapse

COLLAPSE, PRECISION, _ = collapse.CLAIMS


@pytest.fixture
def lawful():
    """Zeros that rise to all samples, first in float16, and a cosine that ends at .78, in float64; worse in other precisions."""
    rng, seeds, records = np.random.default_rng(3), 6, 21
    share = np.clip(np.linspace(-1, 2, records)[:, None] - np.array([0.0, 0.8]), 0, 1) * np.ones((seeds, 1, 1))
    worse = {"float64": 0.0, "float32": 5.0, "float16": 6.0}
    line = np.linspace(0, 1, records)
    kinds = {}
    for kind, powers in worse.items():
        zeros = share * (1.0 if kind == "float64" else 0.4)
        curve = 10 ** (-8 * line + powers * line + 0.1 * rng.normal(size=(seeds, 1)))
        cosine = 0.78 - 0.013 * 2 * (1 - line) + 1e-3 * rng.normal(size=(seeds, 1))
        kinds[kind] = xr.Dataset(
            {
                "measured_zeros": (("seed", "record", "bits"), zeros),
                "predicted_zeros": (("seed", "record", "bits"), zeros),
                "most": (("seed", "record", "bits"), np.minimum(zeros + 0.02, 1)),
                "underflow": (("seed", "record", "bits"), 0 * zeros),
                "loss_curve": (("seed", "record"), curve),
                "train_curve": (("seed", "record"), np.ones((seeds, records))),
                "cosine_curve": (("seed", "record"), cosine),
                "measured_cosine": (("seed",), cosine[:, -1]),
                "predicted_cosine": (("seed",), np.ones(seeds)),
                "any_direction": (("seed",), np.full(seeds, 0.01)),
                "kept": (("seed",), np.full(seeds, 0.997)),
                "grown": (("seed",), np.full(seeds, 1.3)),
                "measured_test": (("seed",), np.full(seeds, 0.01)),
                "at": (("seed", "record"), np.arange(records) * np.ones((seeds, 1))),
            },
            {"bits": [11, 24]},
        )
    return xr.concat(list(kinds.values()), xr.DataArray(list(kinds), dims="precision", name="precision"))


def failed(judge, ds):
    return {c.name for c in judge(ds) if not c.passed and not c.gate}


def test_collapse_holds_on_lawful_data_and_rejects_others(lawful):
    ds = lawful.sel(precision="float64", drop=True)
    assert not failed(collapse.judge_collapse, ds)
    wrong = {"share of zeros outside the bounds, largest", "|share of zeros - least share|, float16, mean over records"}
    never, underflow, right = (rival(ds) for rival in COLLAPSE.rivals.values())
    assert failed(collapse.judge_collapse, never) == wrong
    assert failed(collapse.judge_collapse, underflow) == wrong
    loose = "largest share - share of zeros, mean over records"
    assert failed(collapse.judge_collapse, right) == wrong | {loose}
    assert failed(collapse.judge_collapse, ds.assign(most=0 * ds.most + 1)) == {loose}
    assert failed(collapse.judge_collapse, ds.assign(measured_zeros=0 * ds.measured_zeros, predicted_zeros=0 * ds.most))
    with pytest.raises(jd.Inconclusive, match="at least 5 values of seed"):
        collapse.judge_collapse(ds.isel(seed=slice(3)))


def test_precision_and_direction(lawful):
    assert not failed(collapse.judge_precision, lawful)
    (alike,) = PRECISION.rivals.values()
    assert len(failed(collapse.judge_precision, alike(lawful))) == 4
    assert failed(collapse.judge_precision, jd.swap(measured_test=1.0)(lawful)) == {"accuracy on unseen pairs, every precision"}
    ds = lawful.sel(precision="float64", drop=True)
    assert not failed(collapse.judge_direction, ds)
    assert "cosine at the end / predicted" in failed(collapse.judge_direction, jd.swap(predicted_cosine="any_direction")(ds))
    for name in ("kept", "grown"):
        assert len(failed(collapse.judge_direction, ds.assign({name: 0.5 * ds[name]}))) == 1


def test_figures_are_drawn(lawful):
    for plot, ds in (
        (collapse.plot_zeros, lawful),
        (collapse.plot_zeros, lawful.sel(precision="float64", drop=True)),
        (collapse.plot_cosine, lawful.sel(precision="float64", drop=True)),
    ):
        assert "<svg" in render(plot, ds)
