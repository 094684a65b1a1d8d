"""The judges of Figure 6 and of the learning rates' effect, on made-up data."""

import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.theories.snap import published
from jaxdyn.theories.snap.claims import fig6


def made_up_fig6(seeds=10, shift=0.0):
    """Runs with the published means and standard deviations."""
    queries = [1, 3]
    z = np.random.default_rng(0).normal(size=(2, 4, 4, seeds))
    z = (z - z.mean(-1, keepdims=True)) / z.std(-1, ddof=1, keepdims=True)
    mean, sd = (np.stack([published.FIG6[q][..., i] for q in queries])[..., None] for i in (0, 1))
    dims = ("num_last", "lr", "ratio", "seed")
    full = lambda a: (dims, np.broadcast_to(a, z.shape).copy())  # noqa: E731
    growth = np.array(published.LRS)[:, None, None] / np.array(published.RATIOS)[:, None]
    return xr.Dataset(
        {"measured_entropy": full(mean + sd * z + shift), "predicted_entropy": full(mean), "published_sd": full(sd),
         "known": full(np.ones(1)), "measured_growth": full(growth + 0.01 * z), "predicted_growth": full(growth)},
        coords={"num_last": queries, "lr": list(published.LRS), "ratio": list(published.RATIOS)},
    )  # fmt: skip


def test_judge_of_figure_6():
    ds = made_up_fig6()
    verdicts = lambda ds: [c.passed for c in fig6.judge_fig6(ds)]  # noqa: E731
    assert verdicts(ds) == [True] * 3
    assert not verdicts(ds.assign(predicted_entropy=1.1 * ds.predicted_entropy))[0]
    assert not verdicts(made_up_fig6(shift=0.15))[0]
    assert not verdicts(ds.assign(measured_entropy=ds.measured_entropy.isel(lr=slice(None, None, -1)).assign_coords(lr=ds.lr)))[1]
    assert not verdicts(ds.assign(measured_entropy=ds.measured_entropy + 0.1 * (ds.ratio == 2)))[2]
    for unusable in (ds.isel(seed=[0]), ds.assign(known=0 * ds.known)):
        with pytest.raises(jd.Inconclusive):
            fig6.judge_fig6(unusable)


def test_allowed_difference_is_the_stated_one():
    bound = fig6.allowed(made_up_fig6())
    three = 3 * np.sqrt(2 * published.FIG6[1][..., 1] ** 2 / 10)
    assert np.allclose(bound.sel(num_last=1), np.maximum(0.08, three))
    assert np.allclose(bound.sel(num_last=3).sel(lr=0.5), 0.04)


def test_judge_of_learning_rates():
    ds = made_up_fig6()
    assert all(c.passed for c in fig6.judge_lr_effect(ds))
    assert not fig6.judge_lr_effect(ds.assign(measured_growth=-ds.measured_growth))[0].passed
    assert not fig6.judge_lr_effect(ds.assign(measured_growth=ds.measured_growth + ds.ratio))[1].passed
    with pytest.raises(jd.Inconclusive):
        fig6.judge_lr_effect(ds.isel(ratio=[0]))
