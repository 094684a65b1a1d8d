"""How an outcome is shown, and its entry in JSON."""

import dataclasses
import math

from jaxdyn.engine.judging.check import Check
from jaxdyn.engine.judging.decision import Decision, Outcome, error_decision
from jaxdyn.engine.verification.result import Result, entry
from jaxdyn.engine.verification.verify import make_plan

DECISION = Decision("upheld", [Check("error", 0.1, (-math.inf, 0.2), True)])


def test_an_outcome_tells_what_passed_and_what_did_not(toys):
    """Each check with its sign; a gate as a gate; an opponent that nothing rejects with the values that pass."""
    checks = [Check(name, 2.0, (1.0, math.inf), passed) for name, passed in (("good", True), ("bad", False), ("open", None))]
    outcomes = [Outcome("c", True, []), Outcome("d", False, checks[:1])]
    gates = [Check("g", 3.0, (-math.inf, 4.0), True, gate=True)]
    decision = Decision("refuted", checks, gates=gates, controls=outcomes, rivals=[Outcome("r", False, [], "too few")])
    task = make_plan([toys.CLAIMS[0]]).tasks[0]
    outcome = Result.of(decision, task)
    assert repr(outcome).splitlines() == [
        "toy.decay: refuted (expected upheld)",
        "  gate g: 3, bound at most 4",
        "  ok   good: 2, bound at least 1",
        "  FAIL bad: 2, bound at least 1",
        "  ?    open: 2, bound at least 1",
        "  control c: rejected",
        "  control d: NOT rejected: also passes with good: 2, bound at least 1",
        "  rival r: NOT rejected: too few",
    ]
    cells = [row.split("</td>")[0].split("<td>")[-1] for row in outcome._repr_html_().split("<tr>")[2:]]
    assert cells == ["gate: g", "good", "bad", "open", "control: c", "control: d", "rival: r"]
    assert not outcome.as_expected and outcome.teeth == {"good": [], "bad": [], "open": []}


def test_settings_and_seeds_are_those_of_the_task(toys):
    (task,) = make_plan([toys.CLAIMS[0]], seeds=[5, 6, 9], overrides={"rate": 2.0}).tasks
    found = entry(Result.of(DECISION, task))
    assert found["seeds"] == 3 and found["seed_range"] == "5, 6, 9"
    assert found["settings"]["rate"] == [2.0] and found["settings"]["lr"] == [0.01, 0.02]
    (task,) = make_plan([toys.CLAIMS[0]], seeds=range(4, 8)).tasks
    assert entry(Result.of(DECISION, task))["seed_range"] == "4:8"


def test_errors_counterparts_and_maps_have_their_own_entries(toys):
    (printed,) = make_plan([toys.CLAIMS[1]]).tasks
    plain = entry(Result.of(DECISION, printed))
    assert plain["counterpart"] == "derived" and not {"error", "by"} & set(plain)
    cells = [{"at": {"lr": 0.1}, "verdict": "upheld"}]
    mapped = entry(Result.of(dataclasses.replace(error_decision(ValueError("no")), by=cells), printed))
    assert mapped["by"] == {"fields": [], "cells": cells}
    assert (mapped["error"]["type"], mapped["error"]["message"], mapped["verdict"]) == ("ValueError", "no", "error")
