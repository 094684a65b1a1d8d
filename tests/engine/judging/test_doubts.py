"""Judges with reductions and comparisons of their own: what they decide must not rest on undefined numbers or runs not judged."""

import math

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxdyn as jd
from jaxdyn.engine.judging.check import Reading
from jaxdyn.engine.judging.decision import Terms
from jaxdyn.engine.judging.doubts import counting_unjudged, located
from jaxdyn.engine.judging.resolution import judged
from jaxdyn.engine.judging.verdict import decide, judge_cell
from jaxdyn.status import DIVERGED, OK
from tests.engine.handmade import data, failing
from tests.engine.handmade import judge as error

BAD = {"bad": lambda ds: ds.assign(measured_z=2 * ds.measured_z, err=ds.err + 1 + ds.seed)}


def recording(err, **options):
    """Runs by hand that also record an error of each run."""
    ds = data(0.001, **options)
    return ds.assign(err=(("lr", "seed"), np.broadcast_to(err, (ds.sizes["lr"], ds.sizes["seed"])).copy()))


def verdict(claim, check, ds, **fields):
    """The decision of a judge with one more check."""
    return decide(claim(judge=lambda ds: [*error(ds), check(ds)], controls=BAD, **fields), ds, {})


# undefined numbers ----------------------------------------------------------------------------------------------------

REDUCED = {
    "every run": lambda ds: ds.err,
    "the largest": lambda ds: ds.err.max("seed"),
    "the largest of all": lambda ds: float(ds.err.max()),
    "the largest in NumPy": lambda ds: float(np.nanmax(ds.err.values)),
    "a mean": lambda ds: ds.err.mean("seed"),
    "a quantile": lambda ds: ds.err.quantile(0.9, "seed"),
    "filled": lambda ds: ds.err.fillna(0),
    "dropped": lambda ds: ds.err.stack(run=("lr", "seed")).dropna("run").values,
    "a sum of flags": lambda ds: 0.2 * (ds.err > 0.1).sum("seed"),
    "a difference": lambda ds: (ds.err - ds.err.mean("seed")).max("seed"),
    "a sum that skips": lambda ds: ds.err.expand_dims("one").sum("one"),
    "a worst one found by hand": lambda ds: max(v for v in ds.err.values.ravel() if not math.isnan(v)),
}


@pytest.mark.parametrize("reduced", REDUCED.values(), ids=REDUCED)
def test_a_number_that_is_none_decides_whatever_reduction_drops_it(claim, reduced):
    check = lambda ds: jd.at_most("err", reduced(ds), 0.1)  # noqa: E731
    assert verdict(claim, check, recording(0.01)).verdict == "upheld"
    spoilt = recording(0.01)
    spoilt["err"][1, 2] = math.nan
    decision = verdict(claim, check, spoilt)
    assert decision.verdict == "inconclusive" and "no number at lr = 0.2, seed 2" in decision.message
    assert [c.passed for c in decision.checks] == [True, None] and decision.checks[1].worst == {"lr": 0.2, "seed": 2}


def test_what_does_not_rest_on_it_is_decided(claim):
    """A median of others, a failure that another run alone decides, a variable that the judge does not read."""
    spoilt = recording(0.01)
    spoilt["err"][1, 2] = math.nan
    median = verdict(claim, lambda ds: jd.at_most("err", ds.err.median("seed"), 0.1), spoilt)
    assert median.verdict == "upheld"
    unread = verdict(claim, lambda ds: jd.at_most("again", jd.relative_error(ds, "z"), 0.1), spoilt)
    assert unread.verdict == "upheld"
    spoilt["err"][0, 0] = 5.0
    failing_anyway = verdict(claim, lambda ds: jd.at_most("err", ds.err.max("seed"), 0.1), spoilt)
    assert failing_anyway.verdict == "refuted"


def test_a_failure_that_a_number_could_mend_is_undecided(claim):
    spoilt = recording(0.01)
    spoilt["err"][1, 2] = math.nan
    decision = verdict(claim, lambda ds: jd.at_least("best run", float(ds.err.max()), 0.1), spoilt)
    assert decision.verdict == "inconclusive"


def test_a_difference_of_two_that_are_none(claim):
    """Infinity minus infinity is no number either: one is infinite at a time."""
    spoilt = recording(0.01).assign(other=lambda ds: 0 * ds.err)
    spoilt["err"][1, 2] = spoilt["other"][1, 2] = math.nan
    check = lambda ds: jd.at_most("err", (ds.err - ds.other).max("seed"), 0.1)  # noqa: E731
    assert verdict(claim, check, spoilt).verdict == "inconclusive"


def test_padding_and_what_a_judge_leaves_out_stay_out(claim):
    """A run that has a number somewhere, one that is not ok, and one that the judge leaves out by a flag of the trial."""
    ragged = recording(0.01).assign(path=(("lr", "seed", "step"), np.full((2, 4, 3), 0.01)))
    ragged["path"][0, :, 1:] = math.nan
    assert verdict(claim, lambda ds: jd.at_most("path", ds.path.max("step"), 0.1), ragged).checks[1].passed is True
    diverged = recording(0.01, status=failing(1))
    diverged["err"][0, 0] = math.nan
    assert verdict(claim, lambda ds: jd.at_most("err", ds.err.max("seed"), 0.1), diverged, min_ok=0.5).verdict == "upheld"
    reached = recording(0.01).assign(reached=lambda ds: ds.err * 0 + (ds.seed > 0))
    chosen = verdict(claim, lambda ds: jd.at_most("err", ds.err.where(ds.reached == 1).max("seed"), 0.1), reached)
    assert chosen.verdict == "upheld"


def test_a_judge_that_cannot_be_asked_again_decides_nothing(claim):
    def check(ds):
        found = ds.err.stack(run=("lr", "seed")).dropna("run").values
        if not np.isfinite(found).all():
            raise ValueError("a fit of infinite numbers")
        return jd.at_most("err", found, 0.1)

    spoilt = recording(0.01)
    spoilt["err"][1, 2] = math.nan
    assert verdict(claim, check, spoilt).verdict == "inconclusive"


def test_readings_without_a_number(claim):
    spoilt = recording(0.01)
    spoilt["err"][1, 2] = math.nan
    measured = claim(expected="measured", controls={}, judge=lambda ds: [Reading("err", float(ds.err.max()))])
    (found,) = decide(measured, spoilt, {}).readings
    assert math.isnan(found.value) and found.worst == {"lr": 0.2, "seed": 2}
    (found,) = decide(measured, recording(0.01), {}).readings
    assert found.value == 0.01


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.lists(st.floats(-1, 1), min_size=8, max_size=8),
    st.sets(st.integers(0, 7), min_size=1, max_size=3),
    st.sampled_from(sorted(REDUCED)),
)
def test_no_number_could_have_changed_what_is_decided(values, places, name):
    """Whatever a check decides on runs without a number, it decides the same if they have one."""
    spoilt = recording(np.reshape(values, (2, 4)))
    spoilt["err"].values.ravel()[list(places)] = math.nan
    judge = lambda ds: [jd.at_most("err", REDUCED[name](ds), 0.1)]  # noqa: E731
    from jaxdyn.engine.judging.doubts import settled

    (check,) = settled(judged(judge, spoilt), lambda ds: judged(judge, ds), spoilt)
    for number in (-1e6, -0.5, 0.0, 0.09, 0.5, 1e6):
        (other,) = judged(judge, spoilt.assign(err=spoilt.err.fillna(number)))
        assert check.passed is None or other.passed is not (not check.passed), (name, number)


# runs that are not judged ---------------------------------------------------------------------------------------------


def gains(share_judged, gain, seeds=40, lr=(0.1,)):
    """Runs that record a gain; the last ones of every setting diverged."""
    ds = data(0.001, lr=lr, seeds=seeds)
    keep = np.arange(seeds) < share_judged * seeds
    return ds.assign(
        status=ds.status.copy(data=np.broadcast_to(np.where(keep, OK, DIVERGED), ds.status.shape)),
        gain=(("lr", "seed"), np.broadcast_to(np.where(keep, gain, math.nan), ds.status.shape).copy()),
        measured_z=ds.measured_z.where(ds.seed < share_judged * seeds),
        predicted_z=ds.predicted_z.where(ds.seed < share_judged * seeds),
    )


COUNTING = {
    "a mean of flags": lambda ds: (ds.gain > 0.1).mean("seed"),
    "a mean of flags in NumPy": lambda ds: float(np.mean(ds.gain.values > 0.1)),
    "hits over seeds": lambda ds: (ds.gain > 0.1).sum("seed") / ds.sizes["seed"],
    "the others": lambda ds: 1 - (ds.gain > 0.1).mean("seed"),
    "a number of those without": lambda ds: (~(ds.gain > 0.9)).sum("seed") / 100,
    "without a number": lambda ds: ds.gain.isnull().mean("seed"),
    "zeros in the mean": lambda ds: ds.gain.fillna(0).mean("seed"),
    "sums of nothing": lambda ds: ds.gain.expand_dims("one").sum("one").std("seed"),
}
SKIPPING = {
    "a mean": lambda ds: ds.gain.mean("seed"),
    "a median": lambda ds: ds.gain.median("seed"),
    "a standard error": lambda ds: ds.gain.std("seed") / np.sqrt(ds.gain.count("seed")),
    "masked flags": lambda ds: (ds.gain > 0.1).where(ds.gain.notnull()).mean("seed"),
    "flags by status": lambda ds: (ds.gain > 0.1).where(ds.status == OK).mean("seed"),
    "those that end well": lambda ds: (ds.status == OK).mean("seed"),
    "hits": lambda ds: (ds.gain > 0.1).sum("seed") / 100,
    "dropped": lambda ds: float(np.quantile(ds.gain.values[~np.isnan(ds.gain.values)], 0.9)),
    "one seed": lambda ds: ds.gain.isel(seed=0),
    "no number": lambda ds: np.median(ds.gain.values),
}


@pytest.mark.parametrize("value", COUNTING.values(), ids=COUNTING)
@pytest.mark.parametrize("lr", [(0.1,), (0.1, 0.2)])
def test_a_judge_that_counts_runs_that_are_not_judged_is_told(claim, value, lr):
    judge = lambda ds: [*error(ds), jd.within("value", value(ds), -9, 9)]  # noqa: E731
    noisy = np.random.default_rng(0).uniform(0, 1, 40)
    decision = decide(claim(judge=judge, min_ok=0.1), gains(0.7, noisy, lr=lr), {})
    assert decision.verdict == "inconclusive" and decision.message.startswith("'value': the value changes with the number of runs")
    assert decide(claim(judge=judge, min_ok=0.1), gains(1.0, noisy, lr=lr), {}).verdict != "inconclusive"
    assert judge_cell(claim(judge=judge, min_ok=0.1), gains(0.7, noisy))["failed"].startswith("'value'")


@pytest.mark.parametrize("value", SKIPPING.values(), ids=SKIPPING)
@settings(max_examples=20, deadline=None, derandomize=True)
@given(st.integers(0, 2**32 - 1), st.integers(1, 39))
def test_a_judge_that_skips_them_is_left_alone(value, seed, left):
    ds = gains(left / 40, np.random.default_rng(seed).uniform(-1, 1, 40), lr=(0.1, 0.2))
    judge = lambda ds: [jd.at_most("value", value(ds), 0.2), jd.mean_within("helper", ds.gain, over="seed", high=0.1)]  # noqa: E731
    if left > 1:
        assert counting_unjudged(judged(judge, ds), lambda other: judged(judge, other), ds) == []


def test_cells_without_such_runs_do_not_matter():
    """They are not asked: there, a judge may well rely on every seed."""
    ds = gains(0.7, np.linspace(0, 1, 40), lr=(0.1, 0.2, 0.3))
    whole = gains(1.0, np.linspace(0, 1, 40), lr=(0.1, 0.2, 0.3))
    ds = xr.where(ds.lr == 0.2, ds, whole).transpose("lr", "seed", ...).assign(status=ds.status.where(ds.lr == 0.2, OK).astype(int))
    for value, counts in ((lambda ds: (ds.gain.sel(lr=0.1) > 0.1).mean("seed"), False), (COUNTING["a mean of flags"], True)):
        judge = lambda ds, value=value: [jd.at_most("value", value(ds), 2)]  # noqa: E731
        assert bool(counting_unjudged(judged(judge, ds), lambda other, judge=judge: judged(judge, other), ds)) is counts


def test_a_gate_may_count_every_run(claim):
    """Runs that do not converge do not generalise."""
    gated = claim(judge=lambda ds: [*error(ds), jd.gate("generalise", ds.gain.notnull().mean("seed"), at_least=0.5)], min_ok=0.1)
    assert decide(gated, gains(0.7, 0.5), {}).gates[0].passed is True
    assert decide(gated, gains(0.4, 0.5), {}).message.startswith("gate not met")


def test_a_control_is_not_rejected_for_runs_that_are_not_ok(claim):
    """Some of its runs diverge, the others learn as well as the claim's own."""
    judge = lambda ds: [*error(ds), jd.at_least("share that gains", (ds.gain > 0.1).mean("seed"), 0.9)]  # noqa: E731
    own = claim(judge=judge, controls={"fast": {"lr": 0.5}})
    main, control = gains(1.0, 0.5), gains(0.5, 0.5)
    (outcome,) = decide(own, main, {"fast": control}, Terms()).controls
    assert not outcome.rejected and [c.passed for c in outcome.checks] == [True, None]
    (outcome,) = decide(own, main, {"fast": gains(0.5, 0.0)}, Terms()).controls
    assert outcome.rejected, "no run gains, however many there are"


# cells ----------------------------------------------------------------------------------------------------------------


def located_check(error, bound, **axes):
    """The check that the mean over all runs is at most a bound; the error is a function of the fields, and differs by seed."""
    cell = error(*np.meshgrid(*map(np.asarray, axes.values()), indexing="ij"))
    runs = cell[..., None] * (1 + np.linspace(-0.2, 0.2, 6))
    dims = (*axes, "seed")
    coords = {**{name: list(values) for name, values in axes.items()}, "seed": range(6)}
    ds = xr.Dataset({"err": (dims, runs), "status": (dims, np.full(runs.shape, OK))}, coords)

    def ask(part):
        return [jd.mean_within("mean error", part.err, over=list(dims), high=bound)]

    return located(ask(ds), ask, ds)[0]


def test_a_check_that_does_not_pass_names_its_worst_cell_and_the_field_that_helps():
    check = located_check(lambda n, lr: 1 / n + 0 * lr, 0.13, n=[4, 8, 50], lr=[0.1, 0.2])
    assert check.passed is None and check.worst["n"] == 4
    assert check.trend == "it comes nearer to its bound along n: 0.25 at n = 4, 0.02 at n = 50"
    assert str(check).endswith(f"; {check.trend}")


def test_a_design_along_which_nothing_helps_says_so():
    check = located_check(lambda n, lr: 0.131 + 0 * n * lr, 0.13, n=[4, 8, 64], lr=[0.1, 0.2])
    assert check.passed is None and check.needed > 1000
    assert check.trend == "no field of the grid brings it nearer to its bound"


def test_where_an_error_rises_and_falls_again_its_least_place_is_named():
    check = located_check(lambda n: 1 - abs(n - 8) / 16, 0.4, n=[4, 8, 14])
    assert check.worst == {"n": 8} and check.trend == "it is nearest to its bound with 0.625 at n = 14"


def test_large_grids_are_not_asked():
    check = located_check(lambda n, lr: lr / n, 0.01, n=range(1, 11), lr=np.arange(1, 11) / 10)
    assert check.passed is False and check.worst == {} and check.trend == ""


def on_grid(cells, ask):
    """The check of a judge on runs without spread, whose cells (a, b) have these values."""
    a, b = (sorted({key[i] for key in cells}, key=str) for i in (0, 1))
    runs = np.array([[[cells[x, y]] * 4 for y in b] for x in a], float)
    dims = ("a", "b", "seed")
    ds = xr.Dataset({"x": (dims, runs), "status": (dims, np.zeros(runs.shape, int))}, {"a": a, "b": b, "seed": range(4)})
    return located(ask(ds), ask, ds)[0]


def test_the_worst_cell_lies_where_the_check_says_that_it_is_worst():
    cells = {(1, 1): 0, (1, 2): 4, (2, 1): 0, (2, 2): 4, (3, 1): 7, (3, 2): 0}
    check = on_grid(cells, lambda d: [jd.at_most("m", d.x.mean(["a", "seed"]), 1)])
    assert check.worst == {"a": 1, "b": 2}, "of the cells with b = 2, not the best one"


def test_cells_on_both_sides_of_a_bound_do_not_cancel():
    cells = {(1, 1): 5, (1, 2): -5, (2, 1): 3, (2, 2): 3}
    check = on_grid(cells, lambda d: [jd.within("m", float(d.x.mean()), -1, 1)])
    assert check.trend == "it comes nearer to its bound along a: a = 1, a = 2"


def test_a_judge_that_has_no_answer_on_some_cell_names_none():
    def ask(d):
        if d.sizes["a"] == 1 and float(d.a[0]) == 1:
            raise ValueError("one point has no slope")
        return [jd.at_most("m", float(d.x.mean()), 1)]

    check = on_grid({(a, b): a + b for a in (1, 2, 3) for b in (1, 2)}, ask)
    assert check.passed is False and check.worst == {} and check.trend == ""


SLOPE = {
    "slope": lambda d: float(np.polyfit(np.log(d.a), np.log(d.x.mean(["b", "seed"])), 1)[0]),
    "spread": lambda d: float(d.x.max() - d.x.min()),
    "ratio": lambda d: float(d.x.max() / d.x.min()),
}


@pytest.mark.filterwarnings("ignore:Polyfit may be poorly conditioned")
@pytest.mark.parametrize("name", SLOPE)
def test_a_number_across_the_grid_says_nothing_of_a_cell(name):
    cells = {(a, b): 5 * a**2 for a in (0.01, 0.03, 0.1, 0.3) for b in (1, 2)}
    check = on_grid(cells, lambda d: [jd.within(name, SLOPE[name](d), 1e-6, 0.1)])
    assert check.passed is False and check.worst == {} and check.trend == ""


def test_words_and_values_between_may_be_nearest():
    words = on_grid(
        {("sgd", 1): 5, ("sgd", 2): 5, ("adam", 1): 0.5, ("adam", 2): 0.5}, lambda d: [jd.at_most("m", float(d.x.mean()), 1)]
    )
    assert words.worst["a"] == "sgd" and words.trend == "it is nearest to its bound with 0.5 at “adam”"
    valley = on_grid(
        {(a, b): x for a, x in ((1, 5), (2, 0.5), (3, 6)) for b in (1, 2)}, lambda d: [jd.at_most("m", float(d.x.mean()), 1)]
    )
    assert valley.trend == "it is nearest to its bound with 0.5 at a = 2"


@given(st.lists(st.floats(-10, 10), min_size=6, max_size=6), st.floats(-5, 5))
@settings(max_examples=50, deadline=None)
def test_the_named_cell_is_the_worst_of_all(values, bound):
    cells = dict(zip([(a, b) for a in (1, 2, 3) for b in (1, 2)], values, strict=True))
    check = on_grid(cells, lambda d: [jd.at_most("m", float(d.x.mean()), bound)])
    if check.worst:
        named = cells[check.worst["a"], check.worst["b"]]
        assert named - bound == max(values) - bound > 0  # equal in rounding is equally far
    else:
        assert check.passed or max(values) <= bound + 1e-9


def test_where_a_cell_is_infinite_no_cell_is_said_to_be_nearer():
    check = on_grid({("sgd", 1): 5, ("sgd", 2): math.inf, ("adam", 1): 2, ("adam", 2): 3}, lambda d: [jd.at_most("m", d.x, 1)])
    assert check.worst["a"] == "sgd" and check.trend == ""


def test_what_passes_or_lies_inside_its_bound_has_no_trend():
    passing = located_check(lambda n: 0.1 + 0 * n, 1.0, n=[4, 8])
    assert passing.passed and passing.worst == {} and passing.trend == ""
    inside = located_check(lambda n: 0.1 + 0 * n, 0.101, n=[4, 8])
    assert inside.passed is None and inside.trend == "" and inside.needed


def test_a_judge_that_answers_on_no_cell_leaves_its_checks_as_they_are():
    dims = ("n", "seed")
    ds = xr.Dataset({"err": (dims, np.ones((2, 6))), "status": (dims, np.full((2, 6), OK))}, {"n": [1, 2], "seed": range(6)})

    def ask(part):
        return [jd.at_most("slope", float(part.err.sel(n=2).mean() / part.err.sel(n=1).mean()), 0.5)]

    assert located(ask(ds), ask, ds) == ask(ds)


def test_the_verdict_of_an_undecided_claim_names_the_cell(claim):
    ds = recording(np.array([[0.1], [0.3]]) * (1 + np.linspace(-0.3, 0.3, 4)))
    decision = verdict(claim, lambda ds: jd.mean_within("error", ds.err, over=["lr", "seed"], high=0.19), ds)
    assert decision.verdict == "inconclusive"
    assert "it comes nearer to its bound along lr: 0.3 at lr = 0.2, 0.1 at lr = 0.1 (worst at lr = 0.2)" in decision.message
