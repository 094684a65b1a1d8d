"""The judges of Figure 6 and of the learning rates' effect, on made-up data."""

import numpy as np
import pytest
import scipy.stats
import xarray as xr

import jaxdyn as jd
from jaxdyn.theories.snap import published
from jaxdyn.theories.snap.synthetic import fig6_lr_effect


def made_up_fig6(seeds=16, shift=0.0):
    """Runs with the published means and standard deviations."""
    queries = [1, 3]
    z = np.random.default_rng(0).normal(size=(2, 4, 4, seeds))
    z = (z - z.mean(-1, keepdims=True)) / z.std(-1, ddof=1, keepdims=True)
    mean, sd = (np.stack([published.FIG6[q][..., i] for q in queries])[..., None] for i in (0, 1))
    dims = ("num_last", "lr", "ratio", "seed")
    full = lambda a: (dims, np.broadcast_to(a, z.shape).copy())  # noqa: E731
    growth = np.array(published.LRS)[:, None, None] / np.array(published.RATIOS)[:, None]
    curve = np.stack([np.full(z.shape, 2.1), mean + sd * z], -1)
    return xr.Dataset(
        {"measured_entropy": full(mean + sd * z + shift), "predicted_entropy": full(mean), "published_sd": full(sd),
         "known": full(np.ones(1)), "measured_growth": full(np.log(growth) + 0.01 * z), "predicted_growth": full(growth),
         "curve": ((*dims, "record"), curve)},
        coords={"num_last": queries, "lr": list(published.LRS), "ratio": list(published.RATIOS)},
    )  # fmt: skip


def test_judge_of_figure_6():
    ds = made_up_fig6()
    verdicts = lambda ds: [c.passed for c in fig6_lr_effect.judge_fig6(ds)]  # noqa: E731
    assert verdicts(ds) == [True] * 3
    assert not verdicts(ds.assign(predicted_entropy=1.1 * ds.predicted_entropy))[0]
    assert verdicts(made_up_fig6(shift=0.2))[0] is False
    one = 0.25 * ((ds.lr == 1) & (ds.ratio == 2) & (ds.num_last == 3))
    assert verdicts(ds.assign(measured_entropy=ds.measured_entropy + one))[0] is False
    loose = 0.25 * ((ds.lr == 3) & (ds.ratio == 10) & (ds.num_last == 3))  # a cell whose published standard deviation is .1
    assert verdicts(ds.assign(measured_entropy=ds.measured_entropy + loose))[0] is True
    assert verdicts(made_up_fig6(seeds=3))[0] is None
    turned = ds.measured_entropy.isel(lr=slice(None, None, -1)).assign_coords(lr=ds.lr)
    assert verdicts(ds.assign(measured_entropy=turned))[1] is False
    assert verdicts(ds.assign(measured_entropy=ds.measured_entropy + 0.2 * (ds.ratio == 2)))[2] is False
    assert verdicts(fig6_lr_effect.STILL(ds)) == [False] * 3
    assert False in verdicts(fig6_lr_effect.BY_GROWTH(ds))
    for unusable in (ds.isel(seed=[0]), ds.assign(known=0 * ds.known)):
        with pytest.raises(jd.Inconclusive):
            fig6_lr_effect.judge_fig6(unusable)


def test_errors_of_both_sides_are_joined():
    gap, error, freedom = fig6_lr_effect.from_published(made_up_fig6(seeds=10, shift=0.05))
    sd = published.FIG6[3][..., 1]
    np.testing.assert_allclose(gap, 0.05)
    np.testing.assert_allclose(error.sel(num_last=3), np.sqrt(2 * sd**2 / 10))
    np.testing.assert_allclose(freedom, 18.0)  # Welch, two sides alike


def test_interval_of_one_cell_is_that_of_a_t_test_with_unequal_variances():
    ds = made_up_fig6(seeds=16).isel(num_last=[1], lr=[0], ratio=[1])
    own, sd = ds.measured_entropy.values.ravel(), float(ds.published_sd[..., 0].squeeze())
    other = scipy.stats.norm.ppf((np.arange(10) + 0.5) / 10)
    other = float(ds.predicted_entropy[..., 0].squeeze()) + sd * (other - other.mean()) / other.std(ddof=1)
    expected = scipy.stats.ttest_ind(own, other, equal_var=False).confidence_interval(0.997)
    check = fig6_lr_effect.judge_fig6(ds)[0]
    np.testing.assert_allclose(check.interval, expected, rtol=1e-6)


def test_judge_of_learning_rates():
    ds = made_up_fig6()
    assert all(c.passed for c in fig6_lr_effect.judge_lr_effect(ds))
    assert fig6_lr_effect.judge_lr_effect(ds.assign(measured_growth=-ds.measured_growth))[0].passed is False
    assert fig6_lr_effect.judge_lr_effect(ds.assign(measured_growth=ds.measured_growth + ds.ratio))[1].passed is False
    assert [c.passed for c in fig6_lr_effect.judge_lr_effect(fig6_lr_effect.STILL(ds))] == [False] * 2
    assert [c.passed for c in fig6_lr_effect.judge_lr_effect(fig6_lr_effect.UNSATURATED(ds))] == [True, False]
    with pytest.raises(jd.Inconclusive):
        fig6_lr_effect.judge_lr_effect(ds.isel(ratio=[0]))


def test_judge_of_fast_rates():
    ds = made_up_fig6()
    ds = ds.assign(measured_growth=ds.measured_growth.where(ds.num_last == 3, -ds.measured_growth))
    both = ["1 query, both rates larger: change", "3 queries, both rates larger: change"]
    checks = {c.name: c.passed for c in fig6_lr_effect.judge_fast(ds)}
    assert len(checks) == 9 and [checks[name] for name in both] == [False, True]
    ds = made_up_fig6()
    assert [c.passed for c in fig6_lr_effect.judge_fast(ds)] == [True] * 9
    assert [c.passed for c in fig6_lr_effect.judge_fast(fig6_lr_effect.UNSATURATED(ds))] == [True, False, False, False] * 2 + [
        False
    ]
    larger = ds.assign(measured_growth=ds.measured_growth + np.log(ds.lr))
    assert fig6_lr_effect.judge_fast(larger)[-1].value == pytest.approx(1.0, abs=0.05)
