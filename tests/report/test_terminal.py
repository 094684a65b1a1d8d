"""What a verification says in the terminal, of outcomes made by hand."""

import dataclasses
import math

import pytest
import xarray as xr

from jaxdyn.cli.verify import draw
from jaxdyn.engine.base.reference import load_file
from jaxdyn.engine.judging.check import Check
from jaxdyn.engine.judging.decision import Decision, Outcome, error_decision
from jaxdyn.engine.verification import task as task_module
from jaxdyn.engine.verification.result import Result
from jaxdyn.engine.verification.task import Plan
from jaxdyn.engine.verification.verify import make_plan
from jaxdyn.report import terminal
from jaxdyn.report.terminal import JUDGING, STARTING, announcement, lines, summary

from ..engine.conftest import TOYS


@pytest.fixture(scope="module")
def toys():
    return load_file(TOYS)


def outcome(claim, decision, by=None, **options):
    (task,) = make_plan([claim], **options).tasks
    return Result.of(dataclasses.replace(decision, by=by), task)


def test_the_expected_time_is_that_of_the_longest_program_or_of_all_shared_out(toys, monkeypatch):
    """The seconds of the programs are given; minutes are read off the words."""
    plan = make_plan([toys.CLAIMS[0], toys.CLAIMS[-1]])
    monkeypatch.setattr(task_module.timings, "guessed", lambda job: True)
    assert announcement(plan, 1, len(plan.tasks)).startswith("2 claims: 2 programs, 38 runs; ")
    for seconds, workers in (([600.0, 600.0], 2), ([600.0, 60.0], 2), ([600.0, 600.0], 1)):
        monkeypatch.setattr(task_module.timings, "expected", lambda job, s=seconds: s[plan.jobs.index(job)])
        shared = (sum(seconds) + 2 * JUDGING) / workers
        minutes = round((max(shared, *seconds) + (STARTING if workers > 1 else 0)) / 60)
        assert f"; about {minutes} min expected, a guess: 2 programs not timed before" in announcement(
            plan, workers, len(plan.tasks)
        )
    monkeypatch.setattr(task_module.timings, "expected", lambda job: 5.0)
    assert announcement(plan, 1, len(plan.tasks)).endswith("; under a minute expected"), "of a short time it is of no use"
    monkeypatch.setattr(task_module.timings, "expected", lambda job: 600.0)
    monkeypatch.setattr(task_module.timings, "guessed", lambda job: False)
    assert announcement(plan, 1, len(plan.tasks)).endswith(" min expected; Ctrl-C is safe")
    one = make_plan([toys.CLAIMS[0]])
    assert "1 program, 32 runs;" in announcement(one, 1, 1)
    monkeypatch.setattr(terminal, "MANY", 32)
    cells, seeds = len(one.tasks[0].main.grid.cells()), len(one.tasks[0].main.seeds)
    assert f"32 runs ({cells} settings × {seeds} seeds, and controls)" in announcement(one, 1, 1) and cells * seeds < 32
    monkeypatch.undo()
    fresh = make_plan([toys.CLAIMS[0]], fresh=4000)
    assert "32 runs, on seeds from 4000 on;" in announcement(fresh, 1, len(fresh.tasks))
    stored = dataclasses.replace(plan, jobs=[dataclasses.replace(job, done=job.chunks) for job in plan.jobs])
    assert isinstance(stored, Plan) and "38 runs, 38 of them stored;" in announcement(stored, 1, len(stored.tasks))


def test_a_verdict_as_expected_is_one_line(toys):
    assert [line.split() for line in lines(outcome(toys.CLAIMS[0], Decision("upheld")))] == [["✓", "toy.decay", "upheld"]]


def test_a_claim_asked_for_alone_says_which_errors_would_be_noticed(toys):
    found = {"scale": {"$z_1$": 0.12, "y": 0.0031, "n": None}, "mix": {name: i / 100 for i, name in enumerate("abcde", 1)}}
    result = outcome(toys.CLAIMS[0], Decision("upheld", [Check("c", 0.0, (0.0, 1.0), True)], resolution=found))
    assert len(list(lines(result))) == 1, "among others a claim has one line"
    assert list(lines(result, alone=True))[1:] == [
        "      would also be noticed: a prediction off by 0.31% (y) or 12% (z₁); data with a share of 1% (a), 2% (b), 3% (c) "
        "or 2 more"
    ]
    none = Decision("upheld", [Check("c", 0.0, (0.0, 1.0), True)], resolution={"scale": {"y": None}, "mix": {}})
    failed = Decision("refuted", [Check("c", 2.0, (0.0, 1.0), False)], resolution=found)
    for decision in (none, failed):
        assert not any("noticed" in line for line in lines(outcome(toys.CLAIMS[0], decision), alone=True))


def test_a_figure_that_could_not_be_drawn_is_named_with_its_verdict(toys):
    figure = draw(dataclasses.replace(toys.CLAIMS[0], plot=lambda ds, fig: ds["no <such> value"]), xr.Dataset())
    first, second = lines(outcome(toys.CLAIMS[0], Decision("upheld", figure=figure)))
    assert first.split() == ["✓", "toy.decay", "upheld"]
    assert second.startswith("      its figure could not be drawn: KeyError: ") and "no <such> value" in second


def test_settings_outside_the_stated_domain_are_named(toys):
    claim = dataclasses.replace(toys.CLAIMS[0], holds={"rate": (0.1, 10.0)})
    assert len(list(lines(outcome(claim, Decision("upheld"))))) == 1
    said = list(lines(outcome(claim, Decision("upheld"), overrides={"rate": 40.0})))
    assert said[1:] == ["      at rate = 40 outside the domain for which the claim is stated"]


def test_a_verdict_that_differs_says_what_failed_and_how_to_repeat_it(toys):
    checks = [
        Check("slope", 2.0, (-math.inf, 1.0), False, {"lr": 0.1, "seed": 3}),
        Check("share", 0.5, (-math.inf, 1.0), True),
    ]
    rival = Outcome("nothing moves", False, checks[1:])
    decision = Decision("refuted", checks, controls=[Outcome("off", False, [], "too few")], rivals=[rival], message="it fails")
    told = list(lines(outcome(toys.CLAIMS[0], decision)))
    assert told[0].split() == ["✗", "toy.decay", "refuted", "(expected", "upheld)"]
    assert [line.strip() for line in told[1:]] == [
        "it fails",
        "failed: slope: 2, bound at most 1 (worst at lr = 0.1, seed 3)",
        "control 'off' is not rejected: too few",
        "rival 'nothing moves' is not rejected: the checks also pass with share: 0.5, bound at most 1",
        "repeat: jaxdyn verify toy.decay --seeds 3:4",
    ]
    (*_, repeat) = lines(outcome(toys.CLAIMS[0], decision, seeds=2))
    assert repeat.strip() == "repeat: jaxdyn verify toy.decay --seeds 2", "seeds that were asked for stay"


def test_an_undecided_check_of_an_opponent_is_not_called_passed(toys):
    passed, undecided = Check("share", 0.5, (-math.inf, 1.0), True), Check("mean", 0.9, (0.8, 1.0), None, {}, (0.7, 1.1))
    for checks, said in (
        ([undecided], "undecided is mean: 0.9 [0.7, 1.1], bound 0.8 to 1"),
        (
            [passed, undecided],
            "the checks also pass with share: 0.5, bound at most 1; undecided is mean: 0.9 [0.7, 1.1], bound 0.8 to 1",
        ),
    ):
        told = lines(outcome(toys.CLAIMS[0], Decision("toothless", rivals=[Outcome("still", False, checks)])))
        assert f"      rival 'still' is not rejected: {said}" in [*told]


def test_a_control_with_the_claims_own_settings_is_named(toys):
    claim = dataclasses.replace(toys.CLAIMS[0], controls={"same": {"size": toys.CLAIMS[0].quick.base.size}, "other": {"rate": 9.0}})
    passed = [Check("share", 0.5, (-math.inf, 1.0), True)]
    told = [*lines(outcome(claim, Decision("toothless", controls=[Outcome(name, False, passed) for name in claim.controls])))]
    same = "      control 'same' has the settings of the claim's own runs, so that no check can tell them apart: let it break"
    assert f"{same} an assumption" in told and any("'other' is not rejected: the checks also pass" in line for line in told)


def test_minutes_that_were_exceeded_are_said_with_the_reason(toys):
    results = [outcome(toys.CLAIMS[0], Decision("upheld"))]
    assert "more than given" not in summary(results, 2, 62.0, "a.html", minutes=1) + summary(results, 2, 162.0, "a.html")
    said = summary(results, 2, 117.0, "a.html", minutes=1)
    assert "117 s (57 s more than given: a program that has begun is finished, its compilation included)" in said
    assert terminal.too_late(95.0, 1).startswith("importing and tracing took 95 s of the 60 s given, so that only what is stored")


def test_an_errors_traceback_is_shown_when_asked_for(toys):
    decision = error_decision(ValueError("no\nnumber"))
    short, long = (list(lines(outcome(toys.CLAIMS[0], decision), debug=debug)) for debug in (False, True))
    assert short[-1].endswith("--debug") and not any("|" in line for line in short)
    assert any("| ValueError: no" in line for line in long) and not long[-1].endswith("--debug")


def test_a_map_shows_each_cell_and_expects_nothing(toys):
    check = {"name": "slope", "value": 1.0, "bound": (-math.inf, 2.0), "passed": True, "worst": {}}
    cells = [
        {"at": {"lr": 0.1}, "verdict": "upheld", "failed": None, "checks": [check]},
        {"at": {"lr": 0.2}, "verdict": "refuted", "failed": None, "checks": [check, check | {"passed": False}]},
        {"at": {"lr": 0.3}, "verdict": "inconclusive", "failed": "no run is ok"},
    ]
    result = outcome(toys.CLAIMS[0], Decision("refuted"), cells)
    told = [line.strip() for line in lines(result)]
    assert told[0].startswith("· toy.decay") and told[1] == "lr=0.1: upheld  slope: 1, bound at most 2"
    assert told[2:5] == ["lr=0.2: refuted", "✓ slope: 1, bound at most 2", "✗ slope: 1, bound at most 2"]
    assert told[5] == "lr=0.3: inconclusive - no run is ok" and len(told) == 6
    assert summary([result], 1, 3.2, "here") == "3 cells: 1 upheld, 1 refuted, 1 inconclusive; 3 s; report: here"


@pytest.mark.parametrize(("planned", "words"), [(2, ""), (5, ", stopped at the first that differs (3 claims not judged)")])
def test_the_last_line_counts_verdicts(toys, planned, words):
    results = [outcome(toys.CLAIMS[0], Decision(verdict)) for verdict in ("upheld", "refuted")]
    assert summary(results, planned, 61.7, "a.html") == f"1 of 2 verdicts as expected{words}, 62 s; report: a.html"


def test_the_last_line_of_a_single_claim_that_is_upheld_says_so(toys):
    """With the probability that it would be if it were false, where it rests on an interval: 1 - 0.99 at the first look."""
    check = Check("slope", 0.5, (-math.inf, 1.0), True, interval=(0.4, 0.6), level=0.99)
    upheld, refuted = (outcome(toys.CLAIMS[0], Decision(verdict, [check])) for verdict in ("upheld", "refuted"))
    said = "1 claim upheld; were it false, chance would uphold it with a probability of 0.01 at most, 3 s; report: a.html"
    assert summary([upheld], 1, 3.2, "a.html") == said
    assert summary([outcome(toys.CLAIMS[0], Decision("upheld"))], 1, 3.2, "a.html") == "1 claim upheld, 3 s; report: a.html"
    assert summary([refuted], 1, 3.2, "a.html") == "0 of 1 verdict as expected, 3 s; report: a.html"
