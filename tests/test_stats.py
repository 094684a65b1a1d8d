"""stats.py against scipy and numpy, by coverage, and in the company of runs that are not ok."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.stats
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdyn import stats
from jaxdyn.errors import Inconclusive, UsageError

SEEDS = st.integers(0, 2**32 - 1)
SOME = settings(deadline=None, max_examples=25)
ETA = xr.DataArray([0.1, 0.05, 0.025, 0.0125], dims="eta", coords={"eta": [0.1, 0.05, 0.025, 0.0125]})


def curves(seed, order=1.0, runs=5, noise=0.05):
    """Errors C eta^order with noise, one run after another."""
    rng = np.random.default_rng(seed)
    size = np.exp(rng.normal(size=(runs, 1)) + noise * rng.normal(size=(runs, 4)))
    return xr.DataArray(size * ETA.values**order, dims=("seed", "eta"), coords={"eta": ETA.eta, "seed": range(runs)})


@pytest.mark.slow
@SOME
@given(SEEDS, st.floats(-2, 3))
def test_loglog_slope(seed, order):
    """Numpy's polyfit run by run; the order exactly without noise; units of x and y do not matter."""
    y = curves(seed, order)
    slope = stats.loglog_slope(ETA, y, "eta")
    assert slope.dims == ("seed",)
    np.testing.assert_allclose(slope, [np.polyfit(np.log(ETA), np.log(run), 1)[0] for run in y.values], atol=1e-9)
    np.testing.assert_allclose(stats.loglog_slope(7 * ETA, 1e-30 * y, "eta"), slope, atol=1e-9)
    np.testing.assert_allclose(stats.loglog_slope(ETA, curves(seed, order, noise=0), "eta"), order, atol=1e-9)
    np.testing.assert_allclose(stats.loglog_slope(ETA.values, y.values, "eta"), slope, atol=1e-12)  # plain arrays: last axis
    np.testing.assert_allclose(stats.loglog_slope(y.eta, y.transpose("eta", "seed"), "eta"), slope, atol=1e-12)


def test_slope_leaves_out_what_is_not_ok():
    """NaN and zero points are left out; a run with fewer than three points is NaN; none with three is inconclusive."""
    y = curves(0, noise=0)
    y[0, 1] = np.nan
    y[1, :2] = 0.0
    y[2] = np.nan
    slope = stats.loglog_slope(ETA, y, "eta")
    assert slope[0] == pytest.approx(1) and np.isnan(slope[1:3]).all() and np.allclose(slope[3:], 1)
    for short in (y.isel(eta=slice(2)), y[1:3], y.isel(seed=slice(0))):
        with pytest.raises(Inconclusive, match="at least 3 points"):
            stats.loglog_slope(short.eta, short, "eta")
    two = stats.loglog_slope(ETA[[0, -1]], curves(0, noise=0).isel(eta=[0, -1]), "eta", least=2)
    np.testing.assert_allclose(two, 1, atol=1e-9)


def test_slope_interval():
    """Scipy's one-sample t interval of the runs' slopes; NaN runs do not count; one run is inconclusive."""
    y = curves(1)
    y[3] = np.nan
    slopes = stats.loglog_slope(ETA, y, "eta").dropna("seed").values
    expected = scipy.stats.ttest_1samp(slopes, 0).confidence_interval(0.9)
    slope, low, high = stats.slope_interval(ETA, y, "eta", level=0.9)
    assert slope == pytest.approx(slopes.mean()) and (low, high) == pytest.approx(tuple(expected))
    with pytest.raises(Inconclusive, match="(two|eight) runs"):
        stats.slope_interval(ETA, y[:1], "eta")


@SOME
@given(SEEDS, st.sampled_from([1.0, 2.0]), st.sampled_from([2.0, 3.0]))
def test_richardson(seed, order, ratio):
    """Removes the leading term exactly, and leaves the next order: limit + c h^p + d h^(p+1)."""
    limit, c, d = np.random.default_rng(seed).normal(size=3)
    at = lambda h, d: limit + c * h**order + d * h ** (order + 1)  # noqa: E731
    assert stats.richardson(at(0.1, 0), at(0.1 / ratio, 0), ratio, order) == pytest.approx(limit, abs=1e-13)
    left = stats.richardson(at(0.1, d), at(0.1 / ratio, d), ratio, order) - limit
    expected = d * 0.1 ** (order + 1) * (1 / ratio - 1) / (ratio**order - 1)
    assert left == pytest.approx(expected, abs=1e-13)


def test_richardson_takes_labelled_arrays():
    y = curves(0, noise=0)
    limit = stats.richardson(y.isel(eta=0, drop=True), y.isel(eta=1, drop=True))
    np.testing.assert_allclose(limit, 0, atol=1e-15)
    for wrong in ({"ratio": 1.0}, {"order": 0.0}):
        with pytest.raises(UsageError, match="above"):
            stats.richardson(1.0, 1.0, **wrong)


@SOME
@given(st.lists(st.integers(0, 60), min_size=1, max_size=4), st.integers(1, 60), st.floats(0.5, 0.9999))
def test_ends_of_many_proportions_are_scipys(successes, n, level):
    """Arrays of them, and fractions of successes between those of whole numbers."""
    successes = np.minimum(successes, n)
    low, high = stats.wilson_ends(successes, np.full(len(successes), n), level)
    for k, *ends in zip(successes, low, high, strict=True):
        oracle = scipy.stats.binomtest(int(k), n).proportion_ci(level, method="wilson")
        assert ends == pytest.approx([oracle.low, oracle.high], abs=1e-12)
    assert (low[successes == 0] == 0).all() and (high[successes == n] == 1).all()
    between = stats.wilson_ends(n / 2 + 0.25, n, level)
    assert all(a < b for a, b in zip(stats.wilson_ends(n / 2, n, level), between, strict=True))


@SOME
@given(st.integers(0, 40), st.integers(1, 40), st.sampled_from([0.9, 0.95]))
def test_wilson(k, n, level):
    """The two ends solve (p - k/n)^2 = z^2 p (1 - p) / n."""
    k = min(k, n)
    low, high = stats.wilson(k, n, level)
    z = scipy.stats.norm.ppf(0.5 + level / 2)
    assert 0 <= low <= k / n <= high <= 1
    for p in (low, high):
        assert (p - k / n) ** 2 == pytest.approx(z**2 * p * (1 - p) / n, abs=1e-12)
    with pytest.raises(Inconclusive):
        stats.wilson(0, 0)


@SOME
@given(SEEDS)
def test_mean_interval(seed):
    """Scipy's t interval on each column; NaN runs are left out; one ok run has a mean and no interval."""
    values = np.random.default_rng(seed).normal(size=(6, 3))
    values[0, 0] = np.nan
    values[1:, 2] = np.nan
    mean, low, high = stats.mean_interval(xr.DataArray(values, dims=("seed", "step")), "seed", 0.9)
    for i in range(2):
        ok = values[~np.isnan(values[:, i]), i]
        expected = scipy.stats.ttest_1samp(ok, 0).confidence_interval(0.9)
        assert float(mean[i]) == pytest.approx(ok.mean(), abs=1e-13)
        assert (float(low[i]), float(high[i])) == pytest.approx(tuple(expected), abs=1e-12)
    assert float(mean[2]) == values[0, 2] and np.isnan(low[2]) and np.isnan(high[2])


def test_mean_interval_covers():
    """Of 2000 intervals of level 0.9 the true mean lies in 0.9, within four standard errors (sqrt(.09/2000) = .0067)."""
    draws = np.random.default_rng(0).normal(3.0, 2.0, size=(2000, 5))
    _, low, high = stats.mean_interval(draws, "run", 0.9)
    assert abs(np.mean((low < 3.0) & (high > 3.0)) - 0.9) < 4 * 0.0067


def test_bootstrap_interval():
    """The percentiles of resampled means, drawn here by numpy; NaN runs are left out whole; the same seed, the same interval."""
    values = np.random.default_rng(0).exponential(size=(30, 2))
    low, high = stats.bootstrap_interval(values, axis=0, level=0.9, n=4000, seed=3)
    means = values[np.random.default_rng(9).integers(0, 30, size=(20000, 30))].mean(1)
    spread = means.std(0)
    # the 5% quantile of 4000 draws has standard error sqrt(.05 .95/4000)/density = .034 spreads; four of them and numpy's own
    np.testing.assert_array_less(np.abs(low - np.quantile(means, 0.05, axis=0)) / spread, 0.15)
    np.testing.assert_array_less(np.abs(high - np.quantile(means, 0.95, axis=0)) / spread, 0.15)
    spoiled = np.insert(values, 4, [np.nan, 1e9], axis=0)
    for again in (spoiled, np.moveaxis(spoiled, 0, 1)):
        axis = 0 if again is spoiled else 1
        np.testing.assert_array_equal(stats.bootstrap_interval(again, axis, 0.9, 4000, 3), (low, high))
    with pytest.raises(Inconclusive, match="(two|eight) runs"):
        stats.bootstrap_interval([1.0, np.nan])


@SOME
@given(SEEDS)
def test_spearman(seed):
    """Scipy's on each run; unchanged by monotone maps; NaN pairs are left out; undefined where a side is constant."""
    rng = np.random.default_rng(seed)
    x, y = xr.DataArray(rng.normal(size=8), dims="token"), xr.DataArray(rng.normal(size=(3, 8)), dims=("seed", "token"))
    rho = stats.spearman(x, y, "token")
    np.testing.assert_allclose(rho, [scipy.stats.spearmanr(x, run).statistic for run in y.values], atol=1e-14)
    np.testing.assert_allclose(stats.spearman(np.exp(x), y**3, "token"), rho, atol=1e-14)
    y[0, 2] = np.nan
    y[1] = 1.0
    again = stats.spearman(x, y, "token")
    expected = scipy.stats.spearmanr(np.delete(x.values, 2), np.delete(y.values[0], 2)).statistic
    assert float(again[0]) == pytest.approx(expected) and np.isnan(again[1]) and float(again[2]) == float(rho[2])


def test_bonferroni_z():
    """All of 50 true normal statements hold together at least at the family level; one test has the usual quantile."""
    assert stats.bonferroni_z(1) == pytest.approx(1.959963984540054)
    assert 2 * 50 * scipy.stats.norm.sf(stats.bonferroni_z(50, 0.99)) == pytest.approx(0.01)
    z = np.random.default_rng(0).normal(size=(4000, 50))
    assert np.mean(np.all(np.abs(z) < stats.bonferroni_z(50, 0.9), axis=1)) > 0.9 - 4 * np.sqrt(0.09 / 4000)
    assert np.isfinite(stats.bonferroni_z(10**9, 0.999999))
    with pytest.raises(UsageError, match="at least 1"):
        stats.bonferroni_z(0)


@pytest.mark.parametrize("level", [0.0, 1.0, 95.0])
def test_levels_lie_between_0_and_1(level):
    calls = [
        lambda: stats.bonferroni_z(3, level),
        lambda: stats.wilson(1, 2, level),
        lambda: stats.mean_interval(np.arange(4.0), "run", level),
        lambda: stats.bootstrap_interval(np.arange(8.0), level=level),
    ]
    for call in calls:
        with pytest.raises(UsageError, match="level is above 0 and below 1$"):
            call()


@given(SEEDS, st.integers(2, 12), st.integers(2, 12))
@SOME
def test_welch_is_scipys_test_of_two_means_with_unequal_variances(seed, n, m):
    rng = np.random.default_rng(seed)
    ours, theirs = rng.normal(size=(3, n)), 2 * rng.normal(size=(3, m)) + 1
    error, freedom = stats.welch(xr.DataArray(ours, dims=("cell", "seed")), "seed", scipy.stats.sem(theirs, axis=1), m)
    expected = scipy.stats.ttest_ind(ours, theirs, axis=1, equal_var=False)
    np.testing.assert_allclose((ours.mean(1) - theirs.mean(1)) / error, expected.statistic, rtol=1e-9)
    np.testing.assert_allclose(freedom, expected.df, rtol=1e-9)


@given(SEEDS, st.integers(1, 9))
@SOME
def test_spearman_with_ties_and_gaps_is_scipys_run_by_run(seed, n):
    rng = np.random.default_rng(seed)
    x, y = rng.integers(0, 4, (2, 20, n)).astype(float)
    x[rng.random(x.shape) < 0.15], y[rng.random(y.shape) < 0.1] = np.nan, np.inf
    for rho, left, right in zip(stats.spearman(x, y, "token").values, x, y, strict=True):
        good = np.isfinite(left) & np.isfinite(right)
        if good.sum() < 3 or np.ptp(left[good]) == 0 or np.ptp(right[good]) == 0:
            assert np.isnan(rho)
        else:
            np.testing.assert_allclose(rho, scipy.stats.spearmanr(left[good], right[good]).statistic, atol=1e-12)


@SOME
@given(st.floats(1e-6, 1e6), st.integers(3, 9), SEEDS)
def test_no_slope_over_one_x_whatever_its_rounding(x, n, seed):
    y = np.exp(np.random.default_rng(seed).normal(size=n))
    assert np.isnan(stats.loglog_slope(np.full(n, x), y, "eta"))
    both = np.stack([np.full(n, x), x * np.arange(1, n + 1)])
    assert np.isnan(stats.loglog_slope(both, np.stack([y, y]), "eta")).values.tolist() == [True, False]


def test_what_a_masked_array_hides_is_left_out():
    y = np.ma.array([1.0, 999.0, 3.0], mask=[False, True, False])
    mean, low, high = stats.mean_interval(y, "run")
    assert (float(mean), float(low), float(high)) == tuple(float(v) for v in stats.mean_interval([1.0, np.nan, 3.0], "run"))


@SOME
@given(st.sampled_from(["int8", "uint8", "int64", "float16", "float32", "bool"]), SEEDS)
def test_values_of_any_dtype_are_those_of_float64(dtype, seed):
    values = np.random.default_rng(seed).integers(0, 2 if dtype == "bool" else 100, size=(2, 8)).astype(dtype)
    wide = values.astype(float)
    for f in (
        lambda v: stats.mean_interval(v, "run"),
        lambda v: stats.spearman(v[0], v[1], "run"),
        lambda v: stats.bootstrap_interval(v[0], n=100),
        lambda v: stats.richardson(v[0], v[1], 2, 1),
        lambda v: stats.welch(v[0], "run", 0.1, 5),
    ):
        np.testing.assert_array_equal(np.asarray(f(values)), np.asarray(f(wide)))


RUNS, LABELLED = np.arange(1.0, 10), xr.DataArray([1.0, 2, 3], dims="seed")
NOT_REAL = [RUNS + 1j, RUNS.astype(str), RUNS.astype("datetime64[s]"), [[1], [1, 2]], {"a": 1}, None, RUNS.astype(object)]


@pytest.mark.parametrize("values", NOT_REAL, ids=lambda x: str(getattr(x, "dtype", type(x).__name__)))
def test_values_that_are_no_real_numbers_are_refused(values):
    calls = [
        lambda: stats.loglog_slope(values, RUNS, "run"),
        lambda: stats.loglog_slope(RUNS, values, "run"),
        lambda: stats.mean_interval(values, "run"),
        lambda: stats.bootstrap_interval(values),
        lambda: stats.spearman(RUNS, values, "run"),
        lambda: stats.bonferroni_t(2, values),
        lambda: stats.welch(values, "run", 0.1, 3),
        lambda: stats.welch(LABELLED, "seed", values, 3),
    ]
    for call in calls:
        with pytest.raises(UsageError, match="^values=.* are not allowed: they are real numbers, an array of floats or integers$"):
            call()


REFUSED = {
    "least=1 is not allowed: least is at least 2": lambda: stats.loglog_slope(RUNS, RUNS, "run", 1),
    "least=nan is not allowed: least is a whole number": lambda: stats.loglog_slope(RUNS, RUNS, "run", np.nan),
    "x=float64[9], y=float64[8] are not allowed: dimensions of one name": lambda: stats.loglog_slope(RUNS, RUNS[1:], "run"),
    "x=float64[9], y=float64[2] are not allowed: dimensions": lambda: stats.spearman(RUNS, RUNS[:2], "run"),
    "an array without the dimension run is not allowed: it has seed": lambda: stats.mean_interval(LABELLED, "run"),
    "an array without the dimension run is not allowed: it has none": lambda: stats.mean_interval(1.0, "run"),
    "without the dimension eta is not allowed: it has seed": lambda: stats.loglog_slope(LABELLED, LABELLED, "eta"),
    "without the dimension eta is not allowed: it has none": lambda: stats.spearman(1.0, 2.0, "eta"),
    "without the dimension token is not allowed: it has seed": lambda: stats.welch(LABELLED, "token", 0.1, 3),
    "level=float64[2] is not allowed": lambda: stats.mean_interval(RUNS, "run", np.asarray([0.9, 0.95])),
    "level=nan is not allowed: level is a finite number": lambda: stats.wilson(1, 2, np.nan),
    "level=0.9 is not allowed: level is a finite number": lambda: stats.bonferroni_z(3, "0.9"),
    "ratio=inf is not allowed: ratio is a finite number, above 1": lambda: stats.richardson(1.0, 1.0, np.inf),
    "ratio=float64[2] is not allowed": lambda: stats.richardson(1.0, 1.0, np.asarray([2.0, 3.0])),
    "order=True is not allowed": lambda: stats.richardson(1.0, 1.0, 2.0, True),
    "order=5000.0 are not allowed: ratio to the power of order is a float": lambda: stats.richardson(1.0, 1.0, 2.0, 5000),
    "coarse=float64[3], fine=float64[3,1] are not allowed": lambda: stats.richardson(np.ones(3), np.ones((3, 1))),
    "coarse=float64[3], fine=float64[2] are not allowed: their shapes broadcast": lambda: stats.richardson(LABELLED, np.ones(2)),
    "coarse=float64[3,2], fine=float64[3] are not allowed: their": lambda: stats.richardson(np.ones((3, 2)), LABELLED),
    "coarse=a, fine=b are not allowed: they are numbers": lambda: stats.richardson("a", "b"),
    "successes=2.7 is not allowed: successes is a whole number": lambda: stats.wilson(2.7, 4),
    "successes=5 is not allowed: successes is at least 0 and at most 4": lambda: stats.wilson(5, 4),
    "successes=True is not allowed": lambda: stats.wilson(True, 4),
    "n=4.5 is not allowed: n is a whole number": lambda: stats.wilson(2, 4.5),
    "n=-4 is not allowed: n is at least 0": lambda: stats.wilson(0, -4),
    "axis=3 is not allowed: axis is at least -1 and at most 0": lambda: stats.bootstrap_interval(RUNS, 3),
    "values=1.0 are not allowed: an array of runs has an axis": lambda: stats.bootstrap_interval(1.0),
    "n=1 is not allowed: n is at least 100": lambda: stats.bootstrap_interval(RUNS, n=1),
    "seed=None is not allowed: seed is a whole number": lambda: stats.bootstrap_interval(RUNS, seed=None),
    "count=2.5 is not allowed: count is a whole number": lambda: stats.bonferroni_z(2.5),
    "count=nan is not allowed: count is a whole number": lambda: stats.bonferroni_t(np.nan, 8),
    "count=True is not allowed: count is a whole number": lambda: stats.bonferroni_z(True),
    "count=1000": lambda: stats.bonferroni_z(10**400),
    "count=1 is not allowed: count is at least 2": lambda: stats.welch(LABELLED, "seed", 0.1, 1),
    "error=-0.1 is not allowed: a standard error is at least 0": lambda: stats.welch(LABELLED, "seed", -0.1, 3),
    "error=float64[2] is not allowed: there is one, or one for each of 1 means": lambda: stats.welch(
        LABELLED, "seed", [0.1, 0.2], 3
    ),
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_has_no_such_statistic_is_refused_in_one_sentence(words):
    with pytest.raises(UsageError) as error:
        REFUSED[words]()
    assert words in str(error.value) and "\n" not in str(error.value)


def labelled(coordinates, dim="eta"):
    return xr.DataArray(np.arange(1.0, len(coordinates) + 1), dims=dim, coords={dim: coordinates})


@settings(deadline=None, max_examples=60)
@given(*[st.lists(st.integers(0, 4), min_size=3, max_size=4, unique=True) for _ in range(2)])
def test_arrays_of_different_coordinates_are_refused_by_every_statistic_of_two(one, two):
    """Lists of Python are the oracle: xarray would join what both have, or fill up what one lacks."""
    x, y = labelled(one), labelled(two)
    runs = xr.DataArray(np.random.default_rng(0).normal(size=(len(one), 5)), dims=("eta", "seed"), coords={"eta": one})
    calls = {
        "x": lambda: stats.loglog_slope(x, y, "eta"),
        "x ": lambda: stats.slope_interval(x, xr.concat([y, 2 * y], "seed"), "eta"),
        "x  ": lambda: stats.spearman(x, y, "eta"),
        "coarse": lambda: stats.richardson(x, y),
        "values": lambda: stats.welch(runs, "seed", y, 5),
    }
    for name, call in calls.items():
        if one == two:
            call()
        else:
            words = "are not allowed: dimensions of one name have one length and the same coordinates \\(eta\\)$"
            with pytest.raises(UsageError, match=f"^{name.strip()}=float64.* {words}"):
                call()


def test_arrays_without_coordinates_fit_those_that_have_them():
    x, bare = labelled([3, 1, 2]), xr.DataArray([1.0, 2, 3], dims="eta")
    for other in (bare, bare.values):
        assert stats.richardson(x, other).values.tolist() == [1, 2, 3] and float(stats.spearman(x, other, "eta")) == 1
    both = stats.richardson(x, labelled([5, 6], "other"))
    assert both.dims == ("other", "eta") and both.values.tolist() == [[1, 0, -1], [3, 2, 1]]


def test_numbers_of_any_library_are_counts():
    assert stats.wilson(np.int64(2), xr.DataArray(4)) == stats.wilson(2, 4)
    assert stats.bonferroni_z(np.int8(3), np.float32(0.5)) == stats.bonferroni_z(3, 0.5)
    assert stats.bonferroni_t(np.asarray(3), [8, np.nan, 1]).tolist() == [stats.bonferroni_t(3, 8), np.inf, np.inf]


@pytest.mark.parametrize("shape", [(8,), (51, 3), (200,), (9, 2, 5)])
def test_a_bootstrap_is_scipys(shape):
    values = np.random.default_rng(3).normal(size=shape)
    runs = len(values)
    t = scipy.stats.t.isf(0.025, runs - 1)
    level = 1 - 2 * scipy.stats.norm.sf(np.sqrt(runs / (runs - 1)) * t)
    expected = scipy.stats.bootstrap(
        (values,), np.mean, axis=0, confidence_level=level, n_resamples=500, method="percentile", rng=np.random.default_rng(7)
    ).confidence_interval
    for found, end in zip(stats.bootstrap_interval(values, n=500, seed=7), expected, strict=True):
        assert np.shape(found) == shape[1:]
        np.testing.assert_allclose(found, end, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("shape", [(8,), (51, 3), (200,), (9, 2, 5)])
def test_a_bootstrap_draws_the_same_in_batches_of_any_size(shape, monkeypatch):
    values = np.random.default_rng(3).normal(size=shape)
    whole = stats.bootstrap_interval(values, n=500)
    for batch in (1, 700, 12_345):
        monkeypatch.setattr(stats, "BATCH", batch)
        np.testing.assert_array_equal(stats.bootstrap_interval(values, n=500), whole)


POWERS = st.integers(-1000, 1000)


def exactly(small, large, power):
    """One answer is the other times a power of two, but for a last digit below the normal numbers."""
    for a, b in zip(small, large, strict=True):
        np.testing.assert_allclose(np.asarray(b), np.ldexp(np.asarray(a), power), rtol=0, atol=5e-324)


@settings(deadline=None, max_examples=60)
@given(SEEDS, POWERS)
def test_statistics_scale_with_their_numbers(seed, power):
    """Means, intervals, standard errors and limits times a power of two, to the bit; ratios and ranks as they are."""
    rng = np.random.default_rng(seed)
    x = xr.DataArray(rng.normal(size=(2, 8)), dims=("cell", "run"))
    y = x * 2.0**power
    exactly(stats.mean_interval(x, "run"), stats.mean_interval(y, "run"), power)
    exactly(stats.bootstrap_interval(x, 1, n=100), stats.bootstrap_interval(y, 1, n=100), power)
    exactly([stats.richardson(x[0], x[1])], [stats.richardson(y[0], y[1])], power)
    (small, freedom), (large, same) = stats.welch(x, "run", 0.3, 5), stats.welch(y, "run", np.ldexp(0.3, power), 5)
    exactly([small], [large], power)
    np.testing.assert_allclose(same, freedom, rtol=1e-12)
    np.testing.assert_array_equal(stats.spearman(y[0], x[1], "run"), stats.spearman(x[0], x[1], "run"))
    eta = xr.DataArray(2.0 ** np.arange(8), dims="run")
    slopes = [stats.loglog_slope(eta, np.exp(x) * unit, "run") for unit in (1.0, 2.0**power)]
    np.testing.assert_allclose(slopes[1], slopes[0], atol=1e-11)


@pytest.mark.parametrize("scale", [1e-320, 1e-300, 1e-200, 1e-160, 1e160, 1e200, 1e307])
def test_spreads_of_tiny_and_huge_numbers(scale):
    """Against the same numbers near 1, within the digits that denormals have."""
    values = np.asarray([1.0, 2.0, 4.0, 3.0, 2.0, 1.0, 3.0, 4.0])
    near = max(1e-12, 2 * 5e-324 / scale)
    for f in (
        lambda v: stats.mean_interval(v, "run"),
        lambda v: stats.bootstrap_interval(v, n=100),
        lambda v: stats.welch(v, "run", v[0] / 4, 5)[:1],
    ):
        np.testing.assert_allclose(np.asarray(f(values * scale)) / scale, np.asarray(f(values)), rtol=4 * near)
    assert float(stats.welch(values * scale, "run", scale / 4, 5)[1]) == pytest.approx(
        float(stats.welch(values, "run", 0.25, 5)[1]), rel=40 * near
    )


def test_a_limit_whose_products_are_no_floats():
    assert stats.richardson(1.5e308, 1.6e308) == pytest.approx(1.7e308)
    assert stats.richardson(1.0, 10.0, 2.0, 1023.0) == pytest.approx(10.0)
    found = stats.richardson(xr.DataArray([1.0, 1.5e308, np.nan]), xr.DataArray([2.0, 1.6e308, 1.0]))
    np.testing.assert_allclose(found, [3.0, 1.7e308, np.nan])


@SOME
@given(st.floats(0, 1), st.integers(1, 1000), st.floats(1e-300, 1), st.floats(0.5, 0.999999))
def test_ends_of_small_shares_lie_around_them(share, n, factor, level):
    """With fractions of a success; the lower end is of relative accuracy, by the exact product of both ends."""
    p = share * factor
    low, high = stats.wilson_ends(p * n, n, level)
    p = p * n / n
    assert 0 <= low <= p <= high <= 1
    z = scipy.stats.norm.isf((1 - level) / 2)
    if 1e-150 < p < 0.5:
        assert low * high == pytest.approx(p**2 / (1 + z**2 / n), rel=1e-8)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=1, max_size=5))
def test_binades(values):
    unit = stats.binade(values)[0]
    finite = [abs(v) for v in values if np.isfinite(v) and v]
    assert unit == 1 if not finite else unit <= max(finite) and max(finite) / unit < 2
    assert np.frexp(unit)[0] == 0.5


@pytest.mark.parametrize("shape", [(8, 20_000), (200_000,)])
def test_a_bootstrap_of_large_data_takes_little_memory(shape):
    """In a process of its own: all resamples at once would take 320 MB of means, and 3 GB of draws."""
    program = f"""
import resource, numpy as np
from jaxdyn import stats
values = np.random.default_rng(0).normal(size={shape})
stats.bootstrap_interval(np.arange(8.0), n=100)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
stats.bootstrap_interval(values, n={2000 if len(shape) == 2 else 200})
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, encoding="utf-8", check=True)
    assert int(run.stdout) < 160 * 1024


@pytest.mark.parametrize(("ratio", "order"), [(1.0000001, 1e-12), (2.0, 1e-17)])
def test_a_limit_needs_two_steps_that_differ(ratio, order):
    with pytest.raises(UsageError, match="ratio to the power of order is above 1 as a float"):
        stats.richardson(1.0, 2.0, ratio, order)


@pytest.mark.parametrize("n", [10**12, 10**150, 10**163, 10**300])
def test_wilson_of_very_many_runs(n):
    """One success: the ends are (1 + z**2 / 2 -+ z sqrt(1 + z**2 / 4)) / n, which no square of n is needed for."""
    z = scipy.stats.norm.isf(0.025)
    expected = [(1 + z**2 / 2 + sign * z * np.sqrt(1 + z**2 / 4)) / n for sign in (-1, 1)]
    np.testing.assert_allclose(stats.wilson(1, n), expected, rtol=1e-9)
