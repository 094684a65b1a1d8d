"""Error rates of the statistics, by simulation: on data for which the law is true, refusals are as frequent as stated."""

import itertools

import numpy as np
import pytest
import scipy.stats
import xarray as xr

import jaxdyn as jd
from jaxdyn import stats

REPEATS = 4000
RUNS = [3, 8, 30]


def draws(runs, repeats=REPEATS, seed=0):
    """Standard normal numbers (repeat, run)."""
    values = np.random.default_rng(seed).normal(size=(repeats, runs))
    return xr.DataArray(values, dims=("repeat", "seed"))


def in_errors(values):
    """Means over runs in their standard errors."""
    return values.mean("seed") / (values.std("seed", ddof=1) / np.sqrt(values.sizes["seed"]))


def agrees(refused, level, repeats=REPEATS):
    """Whether a number of refusals is one that the nominal level makes likely (both sides at 0.01%)."""
    low, high = scipy.stats.binom.ppf([1e-4, 1 - 1e-4], repeats, 1 - level)
    return low <= refused <= high


@pytest.mark.parametrize("runs", RUNS)
@pytest.mark.parametrize("level", [0.9, 0.99])
def test_mean_interval(runs, level):
    _, low, high = stats.mean_interval(draws(runs), "seed", level)
    assert agrees(int(((low > 0) | (high < 0)).sum()), level)


@pytest.mark.parametrize("runs", RUNS)
def test_means_in_standard_errors_with_students_quantile(runs):
    """And with the normal one they refuse far too often."""
    z = abs(in_errors(draws(runs)))
    assert agrees(int((z > stats.bonferroni_t(1, runs, 0.99)).sum()), 0.99)
    assert runs > 8 or not agrees(int((z > stats.bonferroni_z(1, 0.99)).sum()), 0.99)


@pytest.mark.parametrize("runs", RUNS)
def test_simultaneous_tests_hold_together(runs):
    """Five means at once: all of them pass with the stated probability (independent, so Bonferroni is all but exact)."""
    z = abs(in_errors(draws(runs, 5 * REPEATS))).values.reshape(REPEATS, 5)
    assert agrees(int((z > stats.bonferroni_t(5, runs, 0.95)).any(1).sum()), 1 - (1 - (1 - 0.05 / 5) ** 5))


@pytest.mark.parametrize("count", [1, 7])
def test_normal_quantile_where_the_error_is_known(count):
    z = abs(draws(count).values)
    assert agrees(int((z > stats.bonferroni_z(count, 0.95)).any(1).sum()), (1 - 0.05 / count) ** count)


@pytest.mark.parametrize("runs", [3, 4, 8])
def test_slope_interval(runs):
    """Y = x² times noise: the mean slope over runs is 2. All repeats at once, and some of them one by one."""
    x = xr.DataArray(2.0 ** np.arange(4), dims="eta")
    noise = np.random.default_rng(1).normal(size=(REPEATS, 4, runs))
    y = x**2 * xr.DataArray(np.exp(0.1 * noise), dims=("repeat", "eta", "seed"))
    _, low, high = stats.mean_interval(stats.loglog_slope(x, y, "eta"), "seed", 0.95)
    assert agrees(int(((low > 2) | (high < 2)).sum()), 0.95)
    for repeat in range(20):
        _, *ends = stats.slope_interval(x, y.isel(repeat=repeat), "eta", 0.95)
        np.testing.assert_allclose(ends, [low[repeat], high[repeat]], rtol=1e-12)


@pytest.mark.parametrize("runs", [8, 30])
def test_bootstrap_interval(runs):
    """Normal data; the expanded percentiles are right for few runs to within two per cent."""
    values = draws(runs, 2000).values
    low, high = stats.bootstrap_interval(values, axis=1, level=0.95, n=1000)
    refused = int(((low > 0) | (high < 0)).sum()) / 2000
    assert refused == pytest.approx(0.05, abs=0.02)


@pytest.mark.parametrize("n", [5, 8, 64])
@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_wilson(n, p):
    """A count has steps: the exact rate of refusals, averaged over nearby p, is the nominal one to within two per cent."""
    low, high = np.transpose([stats.wilson(k, n, 0.95) for k in range(n + 1)])
    rates = []
    for q in np.linspace(p - 0.08, p + 0.08, 41):
        inside = np.flatnonzero((low <= q) & (q <= high))
        rates.append(float(scipy.stats.binom.pmf(inside, n, q).sum()))
    assert np.mean(rates) == pytest.approx(0.95, abs=0.02)


def test_rank_correlation_of_independent_numbers():
    """Its exact distribution, over all orders of 5 pairs: |rho| = 1 in 2 of 120, mean 0, variance 1/4."""
    orders = xr.DataArray(list(itertools.permutations(range(5))), dims=("repeat", "seed"))
    rho = stats.spearman(orders, xr.DataArray(np.arange(5.0), dims="seed"), "seed")
    assert int((abs(rho) > 1 - 1e-9).sum()) == 2
    assert float(rho.mean()) == pytest.approx(0, abs=1e-12) and float(rho.var()) == pytest.approx(1 / 4)


@pytest.mark.parametrize("runs", RUNS)
def test_a_check_of_a_mean_that_is_at_its_bound(runs):
    """A true mean on the bound: passed or failed for certain as rarely as stated, half of it on each side.

    The check decides by the mean in standard errors, seen on some repeats of each outcome; that is counted in all of them.
    """
    values = draws(runs)
    z, quantile = in_errors(values), stats.bonferroni_t(1, runs, 0.95)
    outcomes = {True: z > quantile, False: z < -quantile, None: abs(z) < quantile}
    for outcome, rows in outcomes.items():
        for row in values[rows.values][:20]:
            assert jd.mean_within("m", row, over="seed", low=0.0, level=0.95).passed is outcome
    assert agrees(int(outcomes[True].sum()), 0.975) and agrees(int(outcomes[False].sum()), 0.975)


@pytest.mark.parametrize(("runs", "entries"), [(8, 10), (32, 10)])
def test_a_root_mean_square_that_is_at_its_bound(runs, entries):
    """Deviations of the allowed size, seen with errors of that size that are taken out: not passed more often than stated.

    Their squares are skewed, so that the t interval is not exact; where a run has several entries, it is so within two per cent.
    """
    rng = np.random.default_rng(6)
    seen = 1 + rng.normal(size=(REPEATS, runs, entries))
    squares = xr.DataArray((seen**2 - 1).mean(-1), dims=("repeat", "seed"))
    _, low, high = stats.mean_interval(squares, "seed", 0.95)
    assert (high < 1).mean() < 0.025 + 0.02 and (low > 1).mean() < 0.025 + 0.02
    for row in squares[:20]:
        found = jd.rms_within("rms", row, over="seed", high=1.0, level=0.95)
        _, low, high = stats.mean_interval(row, "seed", 0.95)
        assert found.passed is (True if high <= 1 else False if low > 1 else None)


@pytest.mark.parametrize("runs", [8, 40])
def test_a_check_of_a_share_that_is_at_its_bound(runs):
    """Its outcome follows from the number of hits, whose law is binomial: refusals are as frequent as that says.

    A count has steps, so the exact share of refusals is not the nominal one, but no more than two per cent above it.
    """
    flags = np.random.default_rng(4).random((REPEATS, runs)) < 0.5
    rows = [xr.DataArray(np.arange(runs) < hits, dims="seed") for hits in range(runs + 1)]
    outcomes = [jd.share_within("s", row, over="seed", low=0.5, level=0.95).passed for row in rows]
    chances = scipy.stats.binom.pmf(np.arange(runs + 1), runs, 0.5)
    for outcome in (True, False):
        exact = float(sum(chance for chance, one in zip(chances, outcomes, strict=True) if one is outcome))
        assert 0 < exact <= 0.025 + 0.02
        assert agrees(sum(outcomes[hits] is outcome for hits in flags.sum(1).tolist()), 1 - exact)


def test_convergence_order_of_a_law_that_holds():
    """The least-squares slope itself is unbiased: its mean over many noisy laws is the order."""
    x = xr.DataArray(2.0 ** np.arange(5), dims="eta")
    rng = np.random.default_rng(5)
    y = x**1.5 * xr.DataArray(np.exp(0.2 * rng.normal(size=(5, REPEATS))), dims=("eta", "seed"))
    slopes = stats.loglog_slope(x, y, "eta")
    assert abs(float(in_errors(slopes - 1.5))) < stats.bonferroni_t(1, REPEATS, 0.9999)
