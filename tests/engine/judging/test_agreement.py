"""What agrees with a record and what is told apart: normal theory, and simulations of reruns that are true."""

import math
import re

import numpy as np
import pytest
import scipy
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxdyn as jd
from jaxdyn import stats
from jaxdyn.engine.judging.agreement import apart, differs, predicted
from jaxdyn.engine.judging.check import Reading

RERUNS, ALPHA = 2000, 0.1  # a larger error than is asked for elsewhere can be seen in fewer reruns
NOISE = 3.5 * math.sqrt(ALPHA * (1 - ALPHA) / RERUNS)  # of a share of reruns


def record_of(reading):
    return reading.ends[0], reading.value, reading.ends[1]


def mean_of(draws):
    return jd.mean_reading("x", xr.DataArray(draws, dims="seed"), over="seed", level=1 - ALPHA)


def share_of(draws):
    return jd.share_reading("x", xr.DataArray(draws, dims="seed"), over="seed", level=1 - ALPHA)


# oracle: the difference of two means of n normal numbers each has the variance 2 σ²/n


def test_the_interval_is_that_of_normal_theory():
    """The interval m ± t s √(2/n) is the textbook's prediction interval of another mean (Hahn and Meeker, section 4.8)."""
    draws = np.random.default_rng(0).normal(3.0, 2.0, 12)
    low, high = predicted(record_of(mean_of(draws)))
    half = scipy.stats.t.isf(ALPHA / 2, 11) * draws.std(ddof=1) * math.sqrt(2 / 12)
    assert (low, high) == pytest.approx((draws.mean() - half, draws.mean() + half), rel=1e-5)


def test_of_another_number_of_seeds_it_is_that_of_normal_theory_too():
    draws = np.random.default_rng(1).normal(3.0, 2.0, 12)
    half = scipy.stats.t.isf(ALPHA / 2, 11) * draws.std(ddof=1) * math.sqrt(1 / 12 + 1 / 4)
    assert predicted(record_of(mean_of(draws)), 12 / 4) == pytest.approx((draws.mean() - half, draws.mean() + half), rel=1e-5)


def test_each_side_has_its_own_width():
    assert predicted((0.9, 1.0, 1.4)) == pytest.approx((1 - 0.1 * math.sqrt(2), 1 + 0.4 * math.sqrt(2)), rel=1e-5)
    assert predicted((0.0, 0.0, 0.3))[0] == 0.0, "no run of eight: none is expected"
    assert predicted(2.0) == pytest.approx((2.0, 2.0), rel=1e-5) and predicted(0.0) == (0.0, 0.0)


def test_a_number_that_is_not_estimated_is_the_same_to_rounding():
    for record in (2.0, (2.0, 2.0, 2.0)):
        assert differs(Reading("x", 2.0 * (1 + 1e-8)), record) is None
        assert differs(Reading("x", 2.0 * (1 - 1e-8)), record) is None
        assert differs(Reading("x", 2.001), record) == "x: 2.001, recorded was 2, with which values from 2 to 2 agree"
    assert differs(Reading("x", 1e-300), 0.0) is not None


@given(st.floats(-1e3, 1e3), st.floats(1e-9, 1e-2), st.floats(1e-9, 1e-2), st.sampled_from([-1, 1]))
def test_the_sentence_shows_why_numbers_that_are_close_do_not_agree(value, half, beyond, side):
    record = (value - half, value, value + half)
    below, above = predicted(record)
    other = above + beyond if side > 0 else below - beyond
    said = differs(Reading("x", other), record)
    shown, low, high = (float(text) for text in re.fullmatch(r"x: (\S+), .* from (\S+) to (\S+) agree", said).groups())
    assert shown > high if side > 0 else shown < low


@settings(max_examples=100, deadline=None)
@given(st.floats(-1e3, 1e3), st.floats(2, 1e3), st.floats(2, 1e3), st.floats(-3, 3))
def test_what_differs_is_outside_of_what_is_predicted(value, below, above, shift):
    record = (value - below, value, value + above)
    other = value + shift * (above if shift > 0 else below)
    if abs(abs(shift) - math.sqrt(2)) > 1e-3:
        assert (differs(Reading("x", other), record) is None) == (abs(shift) < math.sqrt(2))


def test_a_reading_that_is_no_number_agrees_with_nothing():
    for record in (1.0, (0.0, 1.0, 2.0), (-math.inf, 1.0, math.inf)):
        assert differs(Reading("x", math.nan), record) is not None
        assert differs(Reading("x", math.nan, (0.0, 2.0)), record) is not None


# simulations


def means(draws):
    """What :func:`mean_of` reads of each row."""
    value, half = draws.mean(1), stats.bonferroni_t(1, draws.shape[1], 1 - ALPHA) * draws.std(1, ddof=1) / math.sqrt(draws.shape[1])
    return [Reading("x", v, (v - h, v + h)) for v, h in zip(value, half, strict=True)]


def shares(draws):
    """What :func:`share_of` reads of each row."""
    ends = stats.wilson_ends(draws.sum(1), draws.shape[1], 1 - ALPHA)
    return [Reading("x", v, pair) for v, *pair in zip(draws.mean(1), *ends, strict=True)]


def test_many_readings_at_once_are_those_of_each():
    draws = np.random.default_rng(0).normal(size=(5, 9))
    for many, one, rows in ((means, mean_of, draws), (shares, share_of, draws > 0)):
        for quick, row in zip(many(rows), rows, strict=True):
            assert (quick.value, *quick.ends) == pytest.approx((one(row).value, *one(row).ends), rel=1e-12)


def refused(draw, read, seeds, others=None):
    """The share of pairs of a record and a rerun of the same law that do not agree."""
    rng = np.random.default_rng(seeds)
    records = [record_of(r) for r in read(draw(rng, (RERUNS, seeds)))]
    reruns = read(draw(rng, (RERUNS, others or seeds)))
    ratio = seeds / (others or seeds)
    return np.mean([differs(rerun, record, ratio) is not None for rerun, record in zip(reruns, records, strict=True)])


@pytest.mark.parametrize("seeds", [4, 8, 64])
def test_a_true_rerun_of_normal_numbers_is_refused_as_often_as_allowed(seeds):
    assert refused(lambda rng, n: rng.normal(1.0, 2.0, n), means, seeds) <= ALPHA + NOISE


@pytest.mark.parametrize("seeds", [4, 8, 64])
@pytest.mark.parametrize("share", [0.5, 0.9])
def test_a_true_rerun_of_truth_values_is_refused_as_often_as_allowed(seeds, share):
    """Wilson's interval covers in the mean over shares; at one share it misses up to 1.4 times as often as it should."""
    assert refused(lambda rng, n: rng.random(n) < share, shares, seeds) <= 1.4 * ALPHA + NOISE


@pytest.mark.parametrize("seeds", [8, 64])
def test_a_true_rerun_of_skewed_numbers_is_refused_no_more_often_than_their_interval_misses(seeds):
    """Student's interval of the mean of lognormal numbers misses it more often than it says; a rerun inherits no more than that."""
    draws = np.random.default_rng(1).lognormal(size=(20_000, seeds))
    half = stats.bonferroni_t(1, seeds, 1 - ALPHA) * draws.std(1, ddof=1) / math.sqrt(seeds)
    missed = np.mean(abs(draws.mean(1) - math.exp(0.5)) > half)
    assert ALPHA < missed < 2.5 * ALPHA
    assert refused(lambda rng, n: rng.lognormal(size=n), means, seeds) <= missed + NOISE


@pytest.mark.parametrize("others", [8, 32])
def test_a_record_of_more_or_fewer_seeds_is_compared_at_the_same_level(others):
    assert abs(refused(lambda rng, n: rng.normal(1.0, 2.0, n), means, 16, others) - ALPHA) <= NOISE


@pytest.mark.parametrize("others", [2, 4, 8])
@pytest.mark.parametrize(
    ("draw", "read"),
    [(lambda rng, n: rng.normal(1.0, 2.0, n), means), (lambda rng, n: rng.random(n) < 0.7, shares)],
    ids=["mean", "share"],
)
def test_fewer_seeds_do_not_agree_more_easily(draw, read, others):
    """Their estimates scatter more, and their wide intervals are no excuse."""
    assert refused(draw, read, 16, others) >= refused(draw, read, 16) - NOISE


def test_another_law_is_refused():
    rng = np.random.default_rng(2)
    records, others = means(rng.normal(0, 1, (100, 16))), means(rng.normal(3, 1, (100, 16)))
    assert all(differs(other, record_of(record)) for other, record in zip(others, records, strict=True))


# told apart


def reading(value, half=0.1):
    return Reading("x", value, (value - half, value + half))


@pytest.mark.parametrize(
    ("other", "record", "told"),
    [
        (reading(1.5), None, True),
        (reading(1.05), None, False),  # inside the run's own interval
        (reading(1.5, 0.6), None, False),  # the run's value is inside theirs
        (reading(1.5), (0.6, 1.0, 1.4), True),
        (reading(1.5), (0.4, 1.0, 1.6), False),  # inside what was recorded
        (reading(1.5), 1.0, True),
        (reading(1.5), 1.5, False),
        (Reading("x", 1.5), None, True),
        (Reading("x", 1.0), None, False),
        (Reading("x", 1.5, (-math.inf, math.inf)), None, False),  # one seed, say, whose interval may be anything
        (Reading("x", math.inf), None, True),
    ],
)
def test_an_opponent_is_told_apart_where_both_values_lie_outside(other, record, told):
    assert apart(reading(1.0), other, record) is told
    if record is None:
        assert apart(other, reading(1.0), None) is told, "it does not matter whose are whose"


@pytest.mark.parametrize("record", [None, 1.0, (0.9, 1.0, 1.1)])
def test_nan_tells_nothing_apart(record):
    numbers = [Reading("x", math.nan), Reading("x", math.nan, (0.0, 1.0)), Reading("x", 5.0, (math.nan, math.nan))]
    for odd in numbers:
        assert apart(reading(1.0), odd, record) is False
    for odd in numbers[:2]:
        assert apart(odd, reading(5.0), record) is False


def test_numbers_that_differ_by_rounding_are_not_told_apart():
    assert not apart(Reading("x", 1.0), Reading("x", 1.0 + 1e-12), None)
    assert apart(Reading("x", 1.0), Reading("x", 1.001), None)


@pytest.mark.parametrize("seeds", [4, 16])
def test_the_same_law_is_hardly_ever_told_apart(seeds):
    """Each value lies outside of the other's interval less often than one interval misses the other's value."""
    rng = np.random.default_rng(seeds)
    pairs = list(zip(*(means(rng.normal(size=(RERUNS, seeds))) for _ in range(2)), strict=True))
    misses = 2 * scipy.stats.t.sf(scipy.stats.t.isf(ALPHA / 2, seeds - 1) / math.sqrt(2), seeds - 1)
    assert np.mean([apart(own, other, None) for own, other in pairs]) <= misses + 3.5 * math.sqrt(misses / RERUNS)


def test_a_record_is_compared_at_its_own_level():
    assert predicted((0.9, 1.0, 1.1)) == pytest.approx((1 - 0.1 * math.sqrt(2), 1 + 0.1 * math.sqrt(2)), rel=1e-5)
