"""What checks read: constants, parts, means over settings, and numbers that no run could give."""

import math

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jaxdyn as jd
from jaxdyn.attacks import averages, parts, reading
from jaxdyn.attacks.attainable import named_range, unattainable, why_not_attained
from tests.attacks import toys
from tests.engine import handmade
from tests.engine.handmade import Fields, case, data, judge, law

# What a check reads: constants, checks that cannot fail and times that are cut off are found; sound checks are not accused.


def test_a_sound_check_is_not_accused():
    assert reading.ask(toys.case()).outcome == "noticed"


def judge_constant(ds):
    return [*toys.judge(ds), jd.at_most("number of records", float(ds.sizes["time"]), 100)]


def judge_certain(ds):
    share = (ds.measured_path > ds.predicted_path.mean("time")).mean("time")
    return [*toys.judge(ds), jd.within("a share", share, 0, 1)]


@pytest.mark.parametrize(
    ("judge", "subject", "words"),
    [(judge_constant, "number of records", "reads no data"), (judge_certain, "a share", "no data make it fail")],
)
def test_checks_that_say_nothing_are_found(judge, subject, words):
    found = reading.ask(toys.case(judge=judge))
    assert [f.subject for f in found.findings] == [subject] and words in found.findings[0].text


def event_trial(s, key):
    """The time at which a weight falls below a level; the number of records where it does not."""
    seen = toys.trial(s, key)
    path = seen.measured["path"].value
    hit = path < 1.4
    when = jnp.where(hit.any(), jnp.argmax(hit), s.steps).astype(jnp.float64)
    return jd.observables(
        predicted={"when": 1.0 * when},
        measured={"when": when},
        recorded={"path": jd.named(path, "time")},
        coords={"time": range(s.steps)},
    )


def judge_event(ds):
    return [jd.at_most("error", abs(ds.measured_when - ds.predicted_when), 0.5)]


EVENT = {
    "trial": event_trial,
    "judge": judge_event,
    "controls": {"later": lambda ds: ds.assign(measured_when=ds.measured_when + 7)},
    "rivals": {"never": jd.off(predicted_when=1e3)},
}


@pytest.mark.parametrize(("steps", "found"), [(10, True), (400, False)])
def test_times_on_the_last_record_are_found(steps, found):
    case = toys.case(quick=jd.grid(toys.Decay, lr=[0.02], steps=steps), seeds=16, **EVENT)
    late = float((case.main.measured_when >= steps - 1).mean())
    assert (late >= reading.CUT) == found, late
    early = float((case.main.measured_when <= 1).mean())
    subjects = [f.subject for f in reading.ask(case).findings]
    assert ("measured_when" in subjects) == (found or early >= reading.CUT)


@pytest.mark.parametrize(
    ("one", "other", "same"), [(1.0, 1.0, True), (np.nan, np.nan, True), (np.nan, 1.0, False), (1.0, 1.001, False)]
)
def test_equal_numbers(one, other, same):
    assert reading.same_number(one, other) is same


def formed(**fields):
    """A law that is right, and a form of it that nobody could uphold: its judge wants the error large as well."""
    derived = law(form="derived", quick=jd.grid(Fields, lr=[0.1, 0.2]), rivals={"nothing": jd.off(predicted_z=0.0)}, **fields)
    return derived.as_printed(id="toy.law_as_printed", title="t", statement="s", form="printed", printed="eq. (1)")


def judge_twice(ds):
    """The law, and that the measurement is small, whatever the form predicts."""
    return [*judge(ds), jd.at_most("size", abs(ds.measured_z), 2.5)]


@pytest.mark.parametrize(("judge_of", "found"), [(judge, False), (judge_twice, True)])
def test_a_form_that_could_never_be_upheld_is_found(judge_of, found):
    runs = data(0.001, forms={"derived": 1.0, "printed": 1.5})
    answer = reading.ask(case(formed(judge=judge_of), runs))
    texts = [f.text for f in answer.findings if f.subject == "form"]
    assert bool(texts) == found, answer
    assert not found or "could never be upheld: size: 3, bound at most 2.5" in texts[0]


def test_truth_values_stay_truth_values():
    runs = data(0.001).assign(drawn=(("lr", "seed"), np.ones((2, 4), bool)))
    for _, ds in reading.exchanged_data(runs):
        assert ds.drawn.dtype == bool


@pytest.mark.parametrize(("axis", "name", "found"), [("epoch", "rise", True), ("nodes", "order", False), ("nodes", "time", True)])
def test_only_times_are_cut_off_by_records(axis, name, found):
    records = np.array([1.0, 2.0, 3.0, 4.0])
    values = np.array([[4.0, 4.0, 2.0, 3.0], [4.0, 2.0, 3.0, 4.0]])
    runs = data(0.001).assign({f"measured_{name}": (("lr", "seed"), values), "curve": ((axis,), records)})
    runs = runs.assign_coords({axis: records})

    def reads(ds):
        return [*judge(ds), jd.at_most("value", ds[f"measured_{name}"], 5.0)]

    answer = reading.ask(case(law(judge=reads), runs))
    assert bool(answer.facts["cut off by the records"]) == found, answer


def test_times_that_no_check_of_a_refuted_form_reads_are_not_accused():
    runs = data(0.001, forms={"derived": 1.0, "printed": 1.5})
    values = np.array([[4.0, 4.0, 2.0, 3.0], [4.0, 2.0, 3.0, 4.0]])
    runs = runs.assign(measured_rise=(("lr", "seed"), values)).assign_coords(epoch=np.array([1.0, 2.0, 3.0, 4.0]))
    answer = reading.ask(case(formed(judge=judge), runs))
    assert answer.facts["cut off by the records"] == [], answer


# Parts of what is measured: one that no opponent violates is found.


def axioms(s, key):
    """Three identities, each with both sides."""
    x = toys.trial(s, key).measured["path"].value[:3]
    sides = jnp.stack([x.sum() * 2, x.prod() ** 2, x.max() - x.min()])
    other = jnp.stack([(2 * x).sum(), (x * x).prod(), -(x.min() - x.max())])
    return jd.observables(
        predicted={"side": jd.named(sides, "axiom")},
        measured={"side": jd.named(other, "axiom")},
        coords={"axiom": ["sum", "product", "range"]},
    )


def judge_axioms(ds):
    return [jd.at_most("error", abs(ds.measured_side - ds.predicted_side), 1e-9)]


def wrong(*names):
    return lambda ds: ds.assign(measured_side=ds.measured_side + 0.1 * ds.axiom.isin(names))


def asked(*names):
    fields = {"trial": axioms, "judge": judge_axioms, "rivals": {"off": jd.off(jd.scaled(predicted_side=1.0 + 0.0))}}
    fields["rivals"] = {}
    fields["evidence"] = "algebra"
    return parts.ask(toys.case(controls={"one": wrong(*names)}, **fields))


def test_an_axiom_that_no_opponent_violates_is_found():
    found = asked("sum")
    assert {f.subject for f in found.findings} == {"measured_side at axiom = product", "measured_side at axiom = range"}


def test_every_axiom_violated_is_no_finding():
    assert asked("sum", "product", "range").outcome == "noticed"


def test_a_single_number_has_no_parts():
    assert parts.ask(toys.case()).outcome == "not applicable"


def judge_each(ds):
    error = abs(ds.measured_side - ds.predicted_side)
    return [jd.at_most(f"error of the {name}", error.sel(axiom=name), 1e-9) for name in ("sum", "product", "range")]


def test_a_rival_that_gives_a_number_violates_what_its_check_reads():
    given = {"trial": axioms, "judge": judge_each, "controls": {"one": wrong("sum")}}
    found = parts.ask(toys.case(**given, rivals={"the product is off by one": {"error of the product": 1.0}}))
    assert [f.subject for f in found.findings] == ["measured_side at axiom = range"]


# Numbers of rivals: those that no run could give, and those that only happen to lie beyond what was seen.


INF = math.inf


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("share of restored tokens", (0, 1)),
        ("test accuracy at the end", (0, 1)),
        ("accuracy lost, thoughts left out", (-1, 1)),
        ("rank correlation of loss and lost weight", (-INF, INF)),  # the loss is something else
        ("attention's rank correlation with the frequency", (-1, 1)),
        ("rank correlation with one minus that with another", (-2, 2)),
        ("share of order 4 / that of the least norm", (-INF, INF)),
        ("share, in percentage points", (-INF, INF)),
        ("accuracy over that of the untrained network", (-INF, INF)),
        ("relative error", (-INF, INF)),
        ("epochs until the share is one half", (-INF, INF)),
    ],
)
def test_a_name_tells_the_range_of_a_share_alone(name, expected):
    assert named_range(name) == expected


SPREAD = [0.0, 0.1, 0.3, 0.6, 0.9, 1.0]


@pytest.mark.parametrize(
    ("number", "values", "why"),
    [
        (1.2, SPREAD, "it lies from 0 to 1, whatever the runs are"),
        (-0.1, SPREAD, "it lies from 0 to 1, whatever the runs are"),
        (0.5, SPREAD, None),
        (1.2, [v * 2 - 1 for v in SPREAD], "it lies from -1 to 1, whatever the runs are"),
        (1.2, [v / 2 for v in SPREAD], None),  # errors that are small, not shares
        (1.2, [0.0, 1.0], None),
        (2.5, [-1.0, 2.0, 3.0, 5.0, 8.0, 13.0], "it is a whole number, whatever the runs are"),
        (21.0, [1.0, 2.0, 3.0, 5.0, 8.0, 13.0], None),
        (-2.0, [0.0, 0.5, 2.0, 30.0, 7.0, 0.2], None),  # a distance with a sign may seldom be negative
        (-2.0, [0.0, 2.0, 3.0, 5.0, 8.0, 13.0], "it is a whole number, not negative, whatever the runs are"),
        (-2.0, [20.5, 21.0, 22.0, 23.0, 24.0, 25.0], None),
        (INF, SPREAD, "it is not finite"),
        (INF, [*SPREAD, INF], None),
    ],
)
def test_values_tell_a_range_where_they_fill_it(number, values, why):
    assert why_not_attained("quantity", number, values) == why


def test_a_share_that_was_above_one_is_none():
    assert why_not_attained("share of entries", 1.2, [0.5]) == "it lies from 0 to 1"
    assert why_not_attained("share of entries", 1.2, [0.5, 1.4]) is None


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=20), st.integers(0, 19))
def test_what_was_seen_is_attained(values, place):
    assert why_not_attained("quantity", values[place % len(values)], values) is None


def found(judge, number, **fields):
    name = "quantity"
    made = law(
        judge=lambda ds: [jd.at_least(name, judge(ds), -10.0)], controls={"zero": zero}, rivals={"other": {name: number}}, **fields
    )
    return [f.text.partition(": ")[2] for f in unattainable(case(made))]


def zero(ds):
    return ds.assign(measured_z=0 * ds.measured_z)


def test_the_judge_is_asked_on_changed_runs():
    correlation = lambda ds: np.corrcoef(ds.measured_z.values.ravel(), np.arange(ds.measured_z.size))[0, 1]  # noqa: E731
    counted = lambda ds: int((ds.measured_z > 1).sum())  # noqa: E731
    error = lambda ds: float(abs(ds.measured_z - ds.predicted_z).mean() / 1e4)  # noqa: E731
    assert found(counted, 2.5) == ["it is a whole number, not negative, whatever the runs are"]
    assert found(counted, 3.0) == []
    assert found(error, 1.5) == [], "that it was small in all runs says nothing"
    assert found(lambda ds: float(np.nan_to_num(correlation(ds))), 0.3) == []


# Means over settings: a mean of cells that differ in sign is found, one that holds in each cell is not.


NAME = "mean error"


def judge_mean(ds):
    """The mean over cells and seeds of a difference; the second cell's is shifted by ``tilt``."""
    error = (ds.measured_path / ds.predicted_path - 1).isel(time=-1)
    return [jd.mean_within(NAME, error, over=["lr", "seed"], low=-0.05, high=0.05)]


def tilted(ds):
    error = (ds.measured_path / ds.predicted_path - 1).isel(time=-1)
    sign = np.where(np.arange(ds.sizes["lr"]) % 2 == 0, 1.0, -1.0) if ds.sizes["lr"] > 1 else np.where(ds.lr < 0.0075, 1.0, -1.0)
    return [jd.mean_within(NAME, error + 0.2 * ds.lr.copy(data=sign), over=["lr", "seed"], low=-0.25, high=0.25)]


def outside(ds):
    sign = ds.lr.copy(data=np.where(ds.lr.values < 0.0075, 1.0, -1.0))
    noise = (ds.measured_path / ds.predicted_path - 1).isel(time=-1)
    return [jd.mean_within(NAME, noise + 0.2 * sign, over=["lr", "seed"], low=-0.1 - 10 * float(ds.sizes["lr"] > 1), high=0.1)]


def test_a_mean_that_holds_in_every_cell_is_not_accused():
    assert averages.ask(toys.case(judge=judge_mean)).outcome == "noticed"
    assert averages.ask(toys.case(judge=tilted)).outcome == "noticed", "cells differ in sign, but each lies inside"


def test_cells_on_both_sides_are_found():
    found = averages.ask(toys.case(judge=outside))
    assert found.outcome == "finding" and "lr = 0.005" in found.findings[0].text


def test_one_cell_has_no_mean():
    assert averages.ask(toys.case(quick=jd.grid(toys.Decay))).outcome == "not applicable"


@pytest.mark.parametrize(
    ("cells", "name", "found"),
    [
        ((0.5, 1.8), "ratio", True),
        ((1.3, 1.8), "ratio", False),
        ((0.5, 1.8), "loss", False),
        ((0.5, 1.8), "loss over its law", True),
    ],
)
def test_a_ratio_that_is_a_mean_of_both_sides_of_one_is_found(cells, name, found):
    def judge(ds):
        return [jd.mean_reading(name, (ds.measured_z / ds.predicted_z).mean("entry"), over=["lr", "seed"])]

    noise = 0.01 * np.random.default_rng(0).normal(size=(2, 4, 3))
    runs = data(np.asarray(cells)[:, None, None] - 1 + noise)
    one = handmade.law(expected="measured", judge=judge, rivals={"nothing": jd.off({name: 0.0})})
    answer = averages.ask(handmade.case(one, runs))
    assert (answer.outcome == "finding") == found, answer
    if found:
        assert "on both sides of 1: 0.5" in answer.findings[0].text and "lr = 0.2" in answer.findings[0].text


def of_each_rate(ds):
    """Readings of single rates, which a cell of another rate has not."""
    at_one = (ds.measured_path / ds.predicted_path).isel(time=-1).sel(lr=0.005) - 1
    side = at_one.curvature.copy(data=np.where(at_one.curvature.values < 1.5, 0.5, 1.5))
    return [jd.mean_reading("ratio at lr 0.005", at_one + side, over=["curvature", "seed"])]


def test_a_judge_that_needs_all_values_of_one_axis_is_asked_along_the_others():
    grid = jd.grid(toys.Decay, lr=[0.005, 0.01], curvature=[1.0, 2.0])
    rivals = {"nothing": jd.off({"ratio at lr 0.005": 0.0})}
    one = toys.case(quick=grid, judge=of_each_rate, expected="measured", bounds=None, rivals=rivals, controls={})
    answer = averages.ask(one)
    assert answer.outcome == "finding" and "curvature = 2" in answer.findings[0].text, answer
