"""Maps of where a claim holds."""

import dataclasses
import io
import json
import math

import jax
import jax.numpy as jnp
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

import jaxdyn as jd
from jaxdyn.engine.verification import refinement, verdict_map
from jaxdyn.engine.verification.rounds import judged_cell

FINE = (1e-3, 1.0, "log")
OVER = {"rate": (0.1, 10.0, "log"), "lr": (1e-3, 0.1, "log")}
EDGE = 1 - math.exp(-1 / 20)  # lr · rate at which twenty steps shrink x by e


def shrinks(ds):
    """After twenty steps x is at most 1/e of its start."""
    return [jd.at_most("what is left", ds.measured_x / ds.start, math.exp(-1))]


STILL = {"nothing moves": {"what is left": 1.0}}


@pytest.fixture
def halved(claim):
    return claim(judge=shrinks, rivals=STILL, form="derived")


@pytest.mark.slow
def test_the_border_is_where_theory_puts_it(halved):
    found = jd.map(halved, over=OVER, cells=243, seeds=1)
    assert isinstance(found, jd.Map) and len(found.cells) == 243 and found.runs == 243
    for cell in found.cells:
        assert cell["verdict"] == ("upheld" if cell["at"]["lr"] * cell["at"]["rate"] >= EDGE else "refuted")
    assert found.border.exponent == pytest.approx(-1, abs=0.03) and found.border.factor == pytest.approx(
        EDGE, rel=0.08
    )  # half a step of the finest lattice
    assert found.border.interval[0] < -0.97 and found.border.interval[1] > -1.03
    for a, b in found.edges:
        assert min(a["lr"] * a["rate"], b["lr"] * b["rate"]) < EDGE <= max(a["lr"] * a["rate"], b["lr"] * b["rate"])


@pytest.mark.slow
def test_over_one_field_the_border_is_bracketed(halved):
    found = jd.map(halved, over={"lr": FINE}, cells=51, seeds=1, rate=1.0)
    ((a, b),) = found.edges
    assert len(found.cells) == 51, "every round asks for as many cells as the first, so that its program serves"
    assert found.border is None and a["lr"] < EDGE < b["lr"] < 1.04 * a["lr"]


@pytest.mark.slow
def test_values_make_rows_of_their_own(halved):
    found = jd.map(halved, over={"optimizer": ["gd", "sign"], "lr": (1e-3, 0.09, "log")}, cells=34, seeds=1, rate=1.0)
    assert {cell["at"]["optimizer"] for cell in found.cells} == {"gd", "sign"} and found.border is None
    assert {a["optimizer"] for a, _ in found.edges} >= {"gd"}
    whole = jd.map(halved, over={"size": range(1, 4), "lr": [0.01, 0.09]}, seeds=1, rate=1.0)
    assert [c["verdict"] for c in whole.cells] == ["refuted", "upheld"] * 3 and whole.programs == 3


def test_a_cell_in_which_a_rival_passes_is_toothless(claim):
    lax = claim(judge=lambda ds: [jd.at_most("what is left", ds.measured_x / ds.start, 2.0)], rivals=STILL, form="derived")
    found = jd.map(lax, over={"lr": [0.01]}, seeds=1)
    assert [(c["verdict"], c["failed"]) for c in found.cells] == [("toothless", "not rejected: nothing moves")]


def noisy(s, key):
    x = 0.1 * jax.random.normal(key, (), jnp.float64)
    return jd.observables(predicted={"x": 0.0 * s.rate}, measured={"x": x})


def test_a_cell_in_which_a_rival_is_undecided_is_toothless_as_the_claim_is(claim):
    """The rival moves the mean of eight runs with a deviation of .1 onto the bound."""
    lax = claim(
        trial=noisy,
        judge=lambda ds: [jd.mean_within("mean", ds.measured_x + ds.predicted_x, over="seed", high=1.0)],
        controls={"far away": lambda ds: ds.assign(measured_x=ds.measured_x + 9)},
        rivals={"near": lambda ds: ds.assign(predicted_x=ds.predicted_x + 1)},
    )
    found = jd.map(lax, over={"rate": [1.0]}, seeds=8)
    assert [(c["verdict"], c["failed"]) for c in found.cells] == [("toothless", "not rejected: near")]
    assert jd.verify(lax, seeds=8).verdict == "toothless"


def test_outside_of_the_assumptions_all_runs_are_judged_and_said_to_be_outside(halved):
    ds = jd.sweep(halved.trial, halved.quick.replace(lr=0.09, rate=1.0), 2).assign(assumed_pace=("seed", [0.5, 0.6]))
    narrow = dataclasses.replace(halved, assumes=(jd.above("pace", 1.0),))
    entry = judged_cell(narrow, ds.transpose(..., "seed"), {"lr": 0.09})
    assert entry["verdict"] == "upheld" and entry["inside"] is False and entry["assumed"]["pace"] == pytest.approx(0.55)
    wide = dataclasses.replace(halved, assumes=(jd.above("pace", 0.55),))
    assert judged_cell(wide, ds, {"lr": 0.09})["inside"] is True


@pytest.mark.slow
def test_the_same_command_takes_stored_runs(halved, tmp_path):
    def written():
        return {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.nc")}

    first = jd.map(halved, over=OVER, cells=27, seeds=2, out=tmp_path)
    before = written()
    again = jd.map(halved, over=OVER, cells=27, seeds=2, out=tmp_path)
    assert again.cells == first.cells and again.resumed and not first.resumed
    assert before and written() == before


def test_a_map_is_a_labelled_dataset_and_json(halved):
    found = jd.map(halved, over=OVER, cells=9, seeds=1)
    ds = found.data
    assert ds.sizes == {"cell": 9, "check": 1} and set(ds.coords) >= {"rate", "lr", "check"}
    assert float(ds.value[0, 0]) == found.cells[0]["checks"][0]["value"]
    told = json.loads(json.dumps(found.to_json()))
    assert told["over"][0] == {"field": "rate", "low": 0.1, "high": 10.0, "log": True} and len(told["cells"]) == 9


@jd.setting
class Odd:
    """Fields whose names a map's Dataset uses itself, and values that are no numbers."""

    check: jd.Swept = 1.0
    value: jd.Swept = 1.0
    value_: jd.Swept = 1.0
    sizes: tuple[int, ...] = (1, 2)
    opt: int | None = None


def odd(s, key):
    x = jnp.full((), s.check + s.value, jnp.float64)
    return jd.observables(predicted={"x": x}, measured={"x": x}, recorded={"start": 2 * x})


def close(ds):
    return [jd.at_most("error", abs(ds.measured_x / ds.predicted_x - 1), 1e-3)]


@pytest.mark.parametrize(
    ("over", "names", "values"),
    [
        ({"check": [1.0, 2.0]}, ["check_"], [[1.0, 2.0]]),
        ({"value": [1.0], "value_": [2.0]}, ["value__", "value_"], [[1.0], [2.0]]),
        ({"sizes": [(1, 2), (3,)]}, ["sizes"], [["1:2", "3"]]),
        ({"opt": [None, 3]}, ["opt"], [["none", "3"]]),
    ],
)
def test_any_field_can_be_mapped(claim, over, names, values):
    made = claim(trial=odd, judge=close, quick=jd.grid(Odd), rivals={"twice": jd.off(predicted_x="start")})
    found = jd.map(made, over=over, seeds=1)
    with xr.load_dataset(io.BytesIO(bytes(found.data.to_netcdf()))) as ds:
        assert [ds[name].values.tolist() for name in names] == values
        assert ds.check.values.tolist() == ["error"] and ds.value.dims == ("check", "cell") and set(ds.verdict.values) == {"upheld"}
    assert found.to_json()["settings"].keys() == {"check", "value", "value_", "sizes", "opt"} - over.keys()


def test_rivals_that_need_other_cells_are_named(claim):
    def late(ds):
        return ds.assign(predicted_x=2 * ds.predicted_x.sel(check=[2.0]))

    common = {"trial": odd, "judge": close, "quick": jd.grid(Odd, check=[1.0, 2.0])}
    twice = jd.off(predicted_x="start")
    found = jd.map(claim(**common, rivals={"twice": twice, "late": late}), over={"check": [1.0, 2.0, 3.0]}, seeds=1)
    assert [c["verdict"] for c in found.cells] == ["upheld"] * 3
    (entry,) = found.to_json()["unasked"]
    assert (entry["rival"], entry["cells"], entry["of"]) == ("late", 2, 3) and entry["reason"].startswith("KeyError")
    found = jd.map(claim(**common, rivals={"twice": twice, "late": late}), over={"check": [1.0, 3.0]}, seeds=1)
    assert {c["verdict"] for c in found.cells} == {"error"} and "rival 'late', as in every cell: KeyError" in found.cells[0][
        "failed"
    ]


def fading(s, key):
    left = jnp.asarray(0.9**s.every, s.dtype)
    return jd.observables(predicted={"left": left}, measured={"left": left}, recorded={"start": 1.0 + 0 * left})


def test_a_range_of_counts_is_of_whole_numbers_each_once(toys, claim):
    """What is left is below a fourth from 14 on: 0.9 ** 13 = .254; the border is found to one count."""
    made = claim(
        trial=fading,
        judge=lambda ds: [jd.at_most("what is left", ds.measured_left, 0.25)],
        quick=jd.grid(toys.Counted),
        rivals={"nothing fades": {"what is left": 1.0}},
    )
    found = jd.map(made, over={"every": (1, 200, "log")}, cells=51, seeds=1)
    counts = [cell["at"]["every"] for cell in found.cells]
    assert len(set(counts)) == len(counts) > 17 and {1.0, 13.0, 14.0, 200.0} <= set(counts)
    assert all(count.is_integer() for count in counts)
    assert {cell["verdict"] == "upheld" for cell in found.cells if cell["at"]["every"] >= 14} == {True}
    ((a, b),) = found.edges
    assert {a["every"], b["every"]} == {13.0, 14.0}
    few = jd.map(made, over={"every": (12, 15)}, cells=51, seeds=1)
    assert sorted(cell["at"]["every"] for cell in few.cells) == [12.0, 13.0, 14.0, 15.0]


def test_the_cost_is_known_beforehand(halved):
    asked = verdict_map.prepare_survey(halved, OVER, cells=243, seeds=1)
    assert len(asked.first()) == 81 and asked.seconds() > 0


@pytest.mark.parametrize(
    ("over", "options", "message"),
    [
        ({}, {}, "a map is over one or two fields, got 0"),
        (dict.fromkeys(("rate", "lr", "size"), (0.1, 1.0)), {}, "one or two fields, got 3"),
        ({"speed": (0.1, 1.0)}, {}, "Toy has no field 'speed'"),
        ({"size": (1, 5)}, {}, "size: only swept fields .rate, lr, optimizer. have a range; list values for others"),
        ({"lr": (1.0, 0.1)}, {}, "lr=1:0.1 is not allowed: a range goes from a number to a larger one"),
        ({"lr": (0.1000001, 0.1)}, {}, "lr=0.1000001:0.1 is not allowed: a range goes from a number to a larger one"),
        ({"lr": (0.0, 0.1, "log")}, {}, "a logarithmic range starts above 0"),
        ({"lr": (0.1, 0.2, "lin")}, {}, "lr=.* is not allowed: give .low, high., .low, high, 'log'. or a list"),
        ({"lr": [0.1, 0.1]}, {}, "lr: the values of an axis must differ, got 0.1, 0.1"),
        ("lr", {}, "over='lr' is not allowed: it is a dict of fields and their ranges"),
        ({"lr": (0.1, 1.0)}, {"cells": float("nan")}, "cells=nan is not allowed: cells is a whole number, at least 1"),
        ({"lr": []}, {}, "an axis needs at least one value"),
        ({"rate": (-1.0, 1.0)}, {}, "rate is positive"),
        ({"lr": (0.1, 1.0)}, {"cells": 2}, "cells=2 is not allowed: this map needs at least 3"),
        ({"lr": (0.1, 1.0)}, {"scale": "huge"}, "scale='huge' is not allowed"),
    ],
)
def test_wrong_use_is_one_sentence(halved, over, options, message):
    with pytest.raises(jd.UsageError, match=message) as error:
        jd.map(halved, over=over, **options)
    assert "\n" not in str(error.value)


def test_a_map_is_of_one_claim():
    with pytest.raises(jd.UsageError, match="matches 18 claims; a map takes one claim"):
        jd.map("cal.*", over={"lr": (0.1, 1.0)})


@given(st.floats(1e-12, 1e12), st.floats(1.0001, 1e9), st.booleans())
def test_a_range_is_not_left(low, times, log):
    """Rounding may carry low + (high - low) beyond high, as from 0.3 to 0.9, where a field's own range may end."""
    axis = verdict_map.Axis("x", low, low * times, log)
    assert axis.at(0) == axis.low and axis.at(refinement.FINE) == axis.high
    places = [axis.at(place) for place in range(0, refinement.FINE + 1, max(1, refinement.FINE // 16))]
    assert places == sorted(places) and places[0] >= axis.low and places[-1] <= axis.high


def test_a_logarithmic_range_may_be_wider_than_the_largest_number():
    axis = verdict_map.Axis("x", 1e-200, 1e200, log=True)
    assert axis.at(refinement.FINE // 2) == pytest.approx(1.0) and axis.at(refinement.FINE // 4) == pytest.approx(1e-100)
    with pytest.raises(jd.UsageError, match="the difference of its ends is more than float64 holds"):
        verdict_map.Axis("x", -1.5e308, 1.5e308)
