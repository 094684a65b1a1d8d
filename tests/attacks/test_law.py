"""The law and its misprints: a judge that looks where a number does not show is found."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jaxdyn as jd
from jaxdyn.attacks import law
from jaxdyn.attacks.misprints import ask, power
from tests.attacks import toys
from tests.engine.handmade import Fields, case, data
from tests.engine.handmade import law as right_law

# The attack on the law: a judge that looks where a number does not show is found, one that sees all is not.


@pytest.fixture(scope="module")
def right():
    return law.ask(toys.case())


def test_every_number_of_a_right_claim_is_noticed(right):
    assert right.outcome == "noticed", right
    assert right.facts["equations"] == right.facts["noticed at a factor of 2"] >= 4


def test_the_factors_at_which_checks_begin_to_notice_lie_around_one(right):
    for factor in right.facts["factors"]:
        assert 0 <= factor["low"] < 1 < factor["high"], factor
        assert "toys.py" in factor["where"]
    # the law's overall factor is noticed at 10%, as the check's bound of 5% says
    assert any(f["low"] > 0.9 and f["high"] < 1.11 and f["code"].startswith("law =") for f in right.facts["factors"])


def test_a_judge_that_looks_at_the_start_alone_does_not_notice_the_rate():
    found = law.ask(toys.case(judge=toys.judge_start))
    assert found.outcome == "finding"
    assert any("rate" in f.text for f in found.findings), found.findings


def test_a_sign_is_no_law():
    case = toys.case(judge=toys.judge_sign, controls={"growth": lambda ds: ds.assign(measured_path=-ds.measured_path)})
    found = law.ask(case)
    assert found.outcome == "finding" and len(found.findings) >= 1


def judged_prediction(ds):
    return [jd.at_most("e", abs(ds.measured_path / (ds.start * np.exp(-0.0 * ds.time)) - 1), 1.0)]


def test_a_law_in_the_judge_cannot_be_asked():
    found = law.ask(toys.case(judge=judged_prediction, rivals={"none": jd.off({"e": 2.0})}))
    assert found.outcome == "not applicable" and "judge" in found.detail


def joined_trial(s, key):
    """The network's curve and the theory's go through one function together."""
    seen = toys.trial(s, key)
    both = jnp.stack([seen.predicted["path"].value, seen.measured["path"].value])
    size = jax.vmap(lambda path: jnp.sqrt(jnp.sum(path**2)))(both)
    return jd.observables(predicted={"size": size[0]}, measured={"size": size[1]})


def judge_size(ds):
    return [jd.at_most("error of the size", abs(ds.measured_size / ds.predicted_size - 1), 0.05)]


def test_both_sides_in_one_array_are_told_apart():
    opponents = {
        "controls": {"twice the size": lambda ds: ds.assign(measured_size=2 * ds.measured_size)},
        "rivals": {"none": jd.off(predicted_size=1e-3)},
    }
    found = law.ask(toys.case(trial=joined_trial, judge=judge_size, **opponents))
    assert found.facts.get("equations", 0) >= 4, found
    assert found.outcome == "noticed"


@pytest.mark.parametrize(
    ("values", "before", "change"),
    [
        ([1.1, 2.0], [1.0, 2.0], 0.1),
        ([5e-9, 2.0], [1e-9, 2.0], 0.0),  # too small to count
        ([np.nan, 2.0], [1.0, 2.0], np.inf),
        ([7.0, 2.0], [np.nan, 2.0], 0.0),  # no number before
        ([3.0], [0.0], 3.0),
    ],
)
def test_changes_count_where_numbers_are_large(values, before, change):
    assert law.largest_change(values, before) == pytest.approx(change)


def constant_trial(s, key):
    """The law is a number that depends on no run."""
    noise = 0.01 * jax.random.normal(key, (), jnp.float64)
    return jd.observables(
        predicted={"size": jnp.sum(jnp.sqrt(jnp.arange(1.0, 5.0, dtype=jnp.float64)))},
        measured={"size": 6.146264 + noise + 0.0 * s.lr},
    )


def judge_constant(ds):
    return [jd.at_most("e", abs(ds.measured_size / ds.predicted_size - 1), 0.1)]


def test_a_law_of_constants_is_asked():
    case = toys.case(
        trial=constant_trial,
        judge=judge_constant,
        controls={"twice": jd.scaled(measured_size=2.0)},
        rivals={"none": jd.off(predicted_size=0.0)},
    )
    found = law.ask(case)
    assert found.outcome == "noticed" and found.facts["equations"] >= 1, found


def judge_without_late(ds):
    """Does not read the late value, but says nothing of runs that lack it."""
    there = np.isfinite(ds.predicted_late)
    if not bool(there.all()):
        return [jd.at_most("relative error", float("nan"), 0.05)]
    return toys.judge(ds)


def test_a_prediction_is_read_where_other_numbers_say_something_else():
    assert law.read_predictions(toys.case()) == ["predicted_path"]
    assert law.read_predictions(toys.case(judge=judge_without_late)) == ["predicted_path"]


def placed_trial(s, key):
    """Two laws in one prediction, at named places; each has a factor of its own."""
    seen = toys.trial(s, key)
    path, start = seen.measured["path"].value, seen.recorded["start"].value
    times = jnp.arange(s.steps, dtype=jnp.float64)
    law = start * jnp.exp(-s.lr * s.curvature * times)
    return jd.observables(
        predicted={"both": jd.named(jnp.stack([law, law * jnp.cos(0.01 * times)]), "place time")},
        measured={"both": jd.named(jnp.stack([path, path * jnp.cos(0.01 * times)]), "place time")},
        coords={"time": range(s.steps), "place": ("plain", "turned")},
    )


def judge_plain(ds):
    return [jd.at_most("error", abs(ds.measured_both / ds.predicted_both - 1).sel(place="plain"), 0.05)]


def judge_both(ds):
    return [jd.at_most("error", abs(ds.measured_both / ds.predicted_both - 1), 0.05)]


def judge_turned_loosely(ds):
    error = abs(ds.measured_both / ds.predicted_both - 1)
    return [*judge_plain(ds), jd.at_most("error, turned", error.sel(place="turned"), 50.0)]


def test_what_moves_where_the_judge_does_not_read_is_another_claims():
    """The cosine's factor moves a prediction of the judge's, at a place that it does not read."""
    rivals = {"nothing moves": jd.off(jd.initial("time", "predicted_both"))}
    controls = {"twice": lambda ds: ds.assign(measured_both=ds.measured_both**2)}
    given = {"trial": placed_trial, "rivals": rivals, "controls": controls}
    assert law.ask(toys.case(**given, judge=judge_plain)).outcome == "noticed"
    assert law.ask(toys.case(**given, judge=judge_both)).outcome == "noticed"
    found = law.ask(toys.case(**given, judge=judge_turned_loosely))
    assert found.outcome == "finding" and all("cos" in f.text or "stack" in f.text for f in found.findings), found.findings


# Misprints: a form that comes true along a swept number is none.


LR = (0.01, 0.02, 0.04)


def printed(errors, evidence="reduced", lr=LR):
    """A printed form that is wrong by these shares at the rates."""
    derived = right_law(
        form="derived", evidence=evidence, quick=jd.grid(Fields, lr=list(lr)), rivals={"nothing": jd.off(predicted_z=0.0)}
    )
    form = derived.as_printed(id="toy.law_as_printed", title="t", statement="s", form="printed", printed="eq. (1)")
    runs = data(0.001, lr=lr, forms={"derived": 1.0, "printed": 1.0})
    factor = np.where(runs.form.values == "printed", 1 + np.asarray(errors)[:, None], 1.0)
    return case(form, _times(runs, factor))


def _times(runs, factor):
    import xarray as xr

    return runs.assign(
        predicted_z=runs.predicted_z * xr.DataArray(factor, dims=("lr", "form"), coords={"lr": runs.lr, "form": runs.form})
    )


def test_a_form_that_is_right_in_a_limit_is_no_misprint():
    (finding,), fact = ask(printed([0.1, 0.2, 0.4]))
    assert finding.text == "the printed form comes true along lr: its error falls from 0.399 to 0.0989, with the power 1"
    assert finding.subject == "lr"
    assert abs(fact["power of the printed form's error"]["lr"] - 1) < 0.05


@pytest.mark.parametrize("errors", [[0.3, 0.3, 0.3], [0.25, 0.28, 0.3], [0.1, 0.4, 0.2]])
def test_a_form_that_stays_wrong_is_a_misprint(errors):
    assert ask(printed(errors))[0] == []


def test_an_identity_is_exact():
    assert ask(printed([0.1, 0.2, 0.4], evidence="algebra")) == ([], "fails against an exact formula")


def test_without_a_sweep_it_is_not_asked():
    found, why = ask(printed([0.1, 0.2], lr=(0.01, 0.02)))
    assert found == [] and why.startswith("not asked: no number is swept over a factor of 4")


@given(st.floats(-3, 3), st.floats(0.1, 10))
def test_the_power_is_that_of_a_power_law(exponent, size):
    values = np.array([0.5, 1.0, 3.0, 8.0])
    found = power(values, size * values**exponent)
    assert abs(found - exponent) < 1e-6 or abs(exponent) < 1e-6


def test_a_form_that_passes_at_an_end_is_found():
    """The errors of handmade's judge are bounded by 1%."""
    ((finding,), _) = ask(printed([0.3, 0.4, 0.001]))
    assert finding.text == "the printed form passes at lr = 0.04, all else as in the claim"


@pytest.mark.parametrize("errors", [[0.3, 0.001, 0.4], [0.3, 0.3, 0.3]])
def test_a_form_that_passes_inside_or_nowhere_is_not(errors):
    assert ask(printed(errors))[0] == []
