"""Networks that do not learn, and treatments at their least: claims that hold of them are found, and no others."""

import time

import jax
import jax.numpy as jnp
import pytest

import jaxdyn as jd
from jaxdyn.attacks import learning
from jaxdyn.attacks.case import Case
from jaxdyn.engine.base.reference import ref_to
from jaxdyn.engine.programs.tracing import trace
from jaxdyn.engine.verification.verify import make_tasks
from tests.attacks import toys, trained


def judge_bounded(ds):
    """Holds at the start, too."""
    return [jd.at_most("distance over its start", ds.measured_distance / ds.measured_distance.isel(record=0), 1.0)]


BOUNDED = {
    "judge": judge_bounded,
    "controls": {"it grows": lambda ds: ds.assign(measured_distance=ds.measured_distance[..., ::-1])},
    "rivals": {"it doubles": jd.off({"distance over its start": 2.0})},
}


def test_a_claim_on_training_does_not_hold_without_it():
    answer = learning.ask(trained.case())
    assert answer.outcome == "noticed" and answer.facts["asked"] == {"a network that does not learn": "refuted"}


def test_a_claim_that_needs_no_training_is_found_unless_it_says_so():
    answer = learning.ask(trained.case(**BOUNDED))
    assert [f.subject for f in answer.findings] == ["learning"] and "distance over its start" in answer.findings[0].text
    assert learning.ask(trained.unrun(**BOUNDED, invariant=True)).outcome == "not applicable"


def judge_read(ds):
    """One reading that training changes, and one that it does not."""
    return [
        jd.mean_reading("end", ds.measured_distance.isel(record=-1), over="seed"),
        jd.mean_reading("start", ds.measured_distance.isel(record=0), over="seed"),
    ]


def test_readings_that_agree_without_training_are_found():
    one = trained.measured(judge_read, {"end": (0.02, 0.05, 0.1), "start": (2.0, 4.0, 6.0)})
    answer = learning.ask(trained.case(of=one))
    assert [f.subject for f in answer.findings] == ["start"]
    assert learning.ask(trained.unrun(of=trained.measured(judge_read, None))).outcome == "not applicable"


def test_what_does_not_train_is_not_asked():
    answer = learning.ask(toys.case())
    assert answer.outcome == "not applicable" and "jaxdyn.train" in answer.detail


def test_the_frozen_trial_has_a_name_and_runs_of_its_own():
    (task,) = make_tasks([trained.claim()])
    (program,) = task.main.programs.values()
    still = learning.frozen(trained.trial)
    assert ref_to(still).qualname == "trial that does not learn" and ref_to(still) != ref_to(trained.trial)
    before = trace(program).fingerprint
    assert learning.trains([program]) and trace(program).fingerprint == before


FALL = "distance at the end over that at the start"


def judge_falls(ds):
    """With noise the end is no farther away than without: a comparison that needs both."""
    end = ds.measured_distance.isel(record=-1) / ds.measured_distance.isel(record=0)
    return [jd.within(FALL, end, 0.0, 0.5)]


def test_a_treatment_that_makes_no_difference_is_found():
    grid = jd.grid(trained.Fit, noise=[0.0, 0.1])
    fields = {"quick": grid, "judge": judge_falls, "rivals": {"it stays": jd.off({FALL: 1.0})}}
    fields["controls"] = {"no training": {"lr": 1e-6}}
    answer = learning.ask(trained.case(**fields))
    assert [f.subject for f in answer.findings] == ["noise"] and "noise at 0" in answer.findings[0].text
    assert answer.facts["asked"] == {"a network that does not learn": "refuted", "noise at 0": "upheld"}


def judge_noisy(ds):
    """With noise the end is farther away."""
    end = ds.measured_distance.isel(record=-1)
    return [jd.at_least("what noise adds", end.sel(noise=0.1) - end.sel(noise=0.0), 0.001)]


def test_a_treatment_that_matters_is_noticed():
    grid = jd.grid(trained.Fit, noise=[0.0, 0.1])
    fields = {"quick": grid, "judge": judge_noisy, "rivals": {"nothing": jd.off({"what noise adds": 0.0})}}
    answer = learning.ask(trained.case(**fields, controls={"exchanged": jd.rolled(measured_distance="noise")}))
    assert answer.outcome == "noticed"


def endless(s, key):
    """Trains until it has learned."""
    aim = 1 + jnp.abs(jax.random.normal(key, (), jnp.float64))

    def step(w):
        return jd.train.learned(w, w - s.lr * (w - aim))

    w = jax.lax.while_loop(lambda w: abs(w - aim) > 1e-3, step, jnp.zeros_like(aim))
    return jd.observables(predicted={"w": aim}, measured={"w": w})


def judge_endless(ds):
    return [jd.at_most("error", abs(ds.measured_w - ds.predicted_w), 0.01)]


def test_training_that_waits_for_a_condition_is_left_to_itself(monkeypatch):
    monkeypatch.setattr(learning, "LEAST", 1.0)
    monkeypatch.setattr(learning, "TIMES", 0.0)
    fields = {"trial": endless, "judge": judge_endless, "rivals": {"nothing": jd.off(predicted_w=0.0)}}
    case = trained.case(**fields, controls={"half": lambda ds: ds.assign(measured_w=ds.measured_w / 2)})

    def run(tasks):
        time.sleep(3)
        return []

    began = time.monotonic()
    answer = learning.ask(Case(case.claim, case.result, run, case.budget, False))
    assert answer.outcome == "noticed" and time.monotonic() - began < 2.5


def test_what_costs_too_much_is_not_asked():
    answer = learning.ask(trained.case(budget=0.0))
    assert answer.outcome == "not asked" and answer.facts["left_out"] == ["a network that does not learn"]


@pytest.mark.parametrize("evidence", ["flow", "model"])
def test_what_is_not_trained_is_not_asked(evidence):
    assert learning.ask(trained.unrun(evidence=evidence)).outcome == "not applicable"


def judge_start(ds):
    """At every record, against what is predicted from the same state."""
    return [jd.at_most("error", abs(ds.measured_distance / ds.predicted_distance - 1), 0.5)]


def formed(s, key, at_start):
    """Two forms of the law: one that is right, and one that is wrong by factors at the start and later."""
    right = trained.trial(s, key)
    path, law = right.measured["distance"].value, right.predicted["distance"].value
    wrong = law * jnp.where(jnp.arange(11) > 0, 3.0, at_start)
    predicted = {"distance": jd.named(jnp.stack([law, wrong]), "form record")}
    coords = {"form": ("derived", "printed")}
    return jd.observables(predicted=predicted, measured={"distance": jd.named(path, "record")}, coords=coords)


def wrong_at_start(s, key):
    return formed(s, key, 3.0)


def wrong_later(s, key):
    return formed(s, key, 1.0)


@pytest.mark.parametrize(("both", "found"), [(wrong_at_start, True), (wrong_later, False)])
def test_a_form_that_fails_before_any_step_is_found(both, found):
    """One that is right at the start, and wrong later, is not accused."""
    derived = trained.claim(trial=both, judge=judge_start, form="derived", controls={"fast": {"lr": 1.5}})
    one = derived.as_printed(id="toy.fit_as_printed", title="t", statement="s", form="printed", printed="eq. (1)")
    answer = learning.ask(trained.case(of=one))
    assert ("start" in [f.subject for f in answer.findings]) == found, answer
