"""What a check reads: constants, checks that cannot fail and times that are cut off are found; sound checks are not accused."""

import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.attacks import reading
from tests.attacks import toys
from tests.engine.handmade import Fields, case, data, judge, law


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
