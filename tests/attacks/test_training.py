"""Luck of seeds, more time, and networks that do not learn."""

import dataclasses
import time

import jax
import jax.numpy as jnp
import pytest
from scipy import stats

import jaxdyn as jd
from jaxdyn.attacks import learning, luck, more_time
from jaxdyn.attacks.case import Case
from jaxdyn.engine.base.reference import ref_to
from jaxdyn.engine.judging.check import Check
from jaxdyn.engine.programs.tracing import trace
from jaxdyn.engine.verification.verify import make_tasks
from tests.attacks import toys, trained

# Luck: claims that hold on some seeds only are found; their stated level is not held against them.


def judge_lucky(ds):
    """A bound on every run that a fifth of all sets break."""
    return [*trained.judge(ds), jd.at_most("luck", ds.luck, 0.95)]


LUCKY = {"rivals": {"nothing": jd.off({"error": 1.0, "luck": 2.0})}, "seeds": 4}


def test_a_claim_that_holds_on_some_seeds_is_found():
    case = trained.case(judge=judge_lucky, **LUCKY)
    answer = luck.ask(case)
    assert answer.facts["sets"] == luck.SETS and answer.facts["level"] == 0
    assert answer.facts["others"] == answer.facts["verdicts"].count("refuted") > 0
    assert [f.subject for f in answer.findings] == ["seeds"] and "luck" in answer.findings[0].text


def test_a_right_claim_stands():
    answer = luck.ask(trained.case())
    assert answer.outcome == "noticed" and answer.facts["others"] == 0


def judge_mean(ds):
    return [
        jd.mean_within("mean", ds.luck, over="seed", high=1.0),
        jd.mean_within("other", ds.luck, over="seed", high=1.0, level=0.99),
        jd.at_most("error", 0.0 * ds.luck, 1.0),
    ]


def test_the_stated_level_is_that_of_all_intervals_over_all_looks():
    fields = {"rivals": {"nothing": jd.off({"mean": 2.0, "other": 2.0, "error": 2.0})}, "seeds": 8}
    case = trained.case(judge=judge_mean, controls={"more": lambda ds: ds.assign(luck=ds.luck + 3)}, **fields)
    assert case.result.verdict == "upheld" or case.result.checks
    assert luck.stated_level(case) == pytest.approx(0.003 + 0.01)
    later = dataclasses.replace(case.result.task, main=dataclasses.replace(case.result.task.main, seeds=range(16)))
    checks = [Check("mean", 0.5, (0.0, 1.0), True, level=1 - 0.003 / 4)]
    result = dataclasses.replace(case.result, task=later, checks=checks)
    assert luck.stated_level(dataclasses.replace(case, result=result)) == pytest.approx(0.003), "the second look spends a quarter"


def test_a_measured_claim_states_the_level_of_its_records():
    one = trained.measured(lambda ds: [jd.mean_reading("end", ds.luck, over="seed")], {"end": (0.1, 0.5, 0.9)})
    assert luck.stated_level(trained.case(of=one)) == pytest.approx(0.003)


@pytest.mark.parametrize(("hits", "sets"), [(0, 1), (1, 20), (20, 20), (3, 7)])
def test_the_interval_is_exact(hits, sets):
    low, high = luck.share_interval(hits, sets)
    assert low <= hits / sets <= high
    if hits:
        assert stats.binom.sf(hits - 1, sets, low) == pytest.approx(0.05)
    if hits < sets:
        assert stats.binom.cdf(hits, sets, high) == pytest.approx(0.05)


def test_one_refusal_in_twenty_is_within_the_level_of_one_interval():
    assert luck.share_interval(1, 20)[0] < 0.003 < luck.share_interval(2, 20)[0]


def test_one_seed_means_that_nothing_is_random():
    assert luck.ask(trained.unrun(seeds=1)).outcome == "not applicable"


def test_sets_are_as_many_as_the_budget_allows(monkeypatch):
    monkeypatch.setattr(luck, "seconds_of", lambda *tasks: 10.0 + len(tasks))
    assert luck.ask(trained.case(budget=13.5)).facts["sets"] == 3
    assert luck.ask(trained.case(budget=10.5)).outcome == "not asked"


# More time: what holds at one time of training only is found, unless the statement names the time.


def judge_early(ds):
    """Much of the distance is left."""
    return [jd.at_least("share left", ds.measured_distance.isel(record=-1) / ds.measured_distance.isel(record=0), 0.005)]


EARLY = {
    "judge": judge_early,
    "rivals": {"it arrives": jd.off({"share left": 0.0})},
    "controls": {"a steeper slope": {"curvature": 9.0}},
}


def test_a_right_law_stands():
    answer = more_time.ask(trained.case())
    assert answer.outcome == "noticed" and list(answer.facts["asked"]) == [
        "twice the time (steps = 80)",
        "eight times the time (steps = 320)",
    ]


def test_what_holds_for_a_while_is_found():
    answer = more_time.ask(trained.case(**EARLY))
    assert [f.subject for f in answer.findings] == ["time"] and "steps = 80" in answer.findings[0].text


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("After 40 steps more than .5% of the distance is left.", True),
        ("More than .5% of the distance is left at $t = 4$.", True),
        ("More than .5% is left until the loss is fitted.", True),
        ("From $t = 3$ on more is left.", True),
        ("Of the 40 that are made, more than .5% is left.", True),
        ("At the end of training more than .5% is left.", False),
        ("Within the same number of steps more is left, late in training.", False),
    ],
)
def test_a_statement_may_name_the_time(words, named):
    assert more_time.names_time(trained.claim(statement=words)) is named


def test_a_claim_that_names_the_time_is_about_it():
    case = trained.unrun(**EARLY, statement="After 40 steps some is left.")
    assert more_time.ask(case).outcome == "not applicable" and more_time.seconds(case) == 0


def judge_read(ds):
    """The end, which moves on, and the start, which does not."""
    return [
        jd.mean_reading("end", ds.measured_distance.isel(record=-1), over="seed"),
        jd.mean_reading("end after 40 steps", ds.measured_distance.isel(record=-1), over="seed"),
        jd.mean_reading("start", ds.measured_distance.isel(record=0), over="seed"),
    ]


def test_other_readings_are_found():
    records = {"end": (0.04, 0.06, 0.08), "end after 40 steps": (0.04, 0.06, 0.08), "start": (2.0, 4.0, 6.0)}
    answer = more_time.ask(trained.case(of=trained.measured(judge_read, records)))
    assert [f.subject for f in answer.findings] == ["end"]
    assert more_time.ask(trained.unrun(of=trained.measured(judge_read, None))).outcome == "not applicable"


def test_what_costs_too_much_is_not_asked():
    assert more_time.ask(trained.case(budget=0.0)).outcome == "not asked"


def test_what_is_not_trained_is_not_asked():
    assert more_time.ask(trained.unrun(evidence="algebra")).outcome == "not applicable"


def test_all_times_are_made_twice_as_long():
    grid = jd.grid(trained.Fit, steps=[20, 40])
    assert more_time.times(grid) == {"steps": [40, 80]}


def test_what_stands_at_twice_the_time_may_fall_later():
    case = trained.case(**EARLY | {"quick": jd.grid(trained.Fit, curvature=0.2)})
    (finding,) = more_time.ask(case).findings
    assert "eight times the time (steps = 320)" in finding.text


# Networks that do not learn, and treatments at their least: claims that hold of them are found, and no others.


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


def judge_read_of_learning(ds):
    """One reading that training changes, and one that it does not."""
    return [
        jd.mean_reading("end", ds.measured_distance.isel(record=-1), over="seed"),
        jd.mean_reading("start", ds.measured_distance.isel(record=0), over="seed"),
    ]


def test_readings_that_agree_without_training_are_found():
    one = trained.measured(judge_read_of_learning, {"end": (0.02, 0.05, 0.1), "start": (2.0, 4.0, 6.0)})
    answer = learning.ask(trained.case(of=one))
    assert [f.subject for f in answer.findings] == ["start"]
    assert learning.ask(trained.unrun(of=trained.measured(judge_read_of_learning, None))).outcome == "not applicable"


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


def test_what_costs_too_much_is_not_asked_of_learning():
    answer = learning.ask(trained.case(budget=0.0))
    assert answer.outcome == "not asked" and answer.facts["left_out"] == ["a network that does not learn"]


@pytest.mark.parametrize("evidence", ["flow", "model"])
def test_what_is_not_trained_is_not_asked_of_learning(evidence):
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
