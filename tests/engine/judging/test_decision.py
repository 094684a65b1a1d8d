"""What a judged claim comes to: the table of teeth, and decisions that are kept as JSON and come back."""

import dataclasses
import json
import math

import pytest

from jaxdyn.engine.judging.check import Check, Reading
from jaxdyn.engine.judging.decision import Decision, Outcome, decision_from, error_decision, teeth


def check(name, passed):
    return Check(name, 1.0, (0.5, math.inf), passed, {"seed": 3}, (0.4, 1.2))


def test_teeth_name_for_every_check_what_it_rejects():
    marks = {"a": (False, True), "b": (None, False), "c": (True, True)}  # on the opponents "shift" and "noise"
    opponents = [Outcome(o, True, [check(c, m[i]) for c, m in marks.items()]) for i, o in enumerate(("shift", "noise"))]
    opponents.append(Outcome("not asked", True, [], "its runs diverged"))
    assert teeth([check(c, True) for c in "abc"], opponents) == {"a": ["shift"], "b": ["noise"], "c": []}


def test_a_decision_comes_back_from_json():
    decision = Decision(
        "inconclusive",
        [check("a", None)],
        [Reading("share", 0.5, (0.4, 0.6), {"lr": 0.1})],
        [dataclasses.replace(check("g", True), gate=True, interval=None)],
        [Outcome("shift", False, [check("a", True)], "too few")],
        [Outcome("still", True, [check("a", False)]), Outcome("open", True, readings=[Reading("share", 0.9)], apart=["share"])],
        {"scale": {"z": 1e-3, "sign": None}, "mix": {"shift": 0.02}},
        [check("a", True)],
        3,
        2,
        "undecided: a",
    )
    assert decision_from(json.loads(json.dumps(dataclasses.asdict(decision)))) == decision


PASSED, FAILED, OPEN = (check("a", passed) for passed in (True, False, None))
SECOND = check("b", True)


@pytest.mark.parametrize(
    ("decision", "undecided"),
    [
        (Decision("upheld", [PASSED]), False),
        (Decision("inconclusive", [PASSED, OPEN]), True),
        (Decision("refuted", [FAILED, OPEN]), False),  # more runs would refute it as well
        (Decision("inconclusive", message="2 of 4 runs are not ok"), False),
        (Decision("inconclusive", [FAILED], counterpart_checks=[PASSED, OPEN]), True),  # a printed form, next to the right one
        (Decision("inconclusive", [FAILED], counterpart_checks=[FAILED, OPEN]), False),
        (Decision("refuted", [FAILED], counterpart_checks=[PASSED]), False),
        (Decision("toothless", [PASSED], controls=[Outcome("shift", False, [PASSED])]), False),
        (Decision("toothless", [PASSED], controls=[Outcome("shift", False, [OPEN])]), True),
        (Decision("toothless", [PASSED], rivals=[Outcome("still", False, [PASSED, OPEN])]), True),
        (Decision("toothless", [PASSED], rivals=[Outcome("still", True, [FAILED, OPEN])]), False),
        (Decision("toothless", [PASSED, SECOND], controls=[Outcome("shift", True, [FAILED, check("b", None)])]), True),
        (Decision("toothless", [PASSED, SECOND], controls=[Outcome("shift", True, [FAILED, SECOND])]), False),
        (Decision("measured", readings=[Reading("share", 0.5)]), False),
    ],
)
def test_more_runs_could_decide_where_nothing_is_decided(decision, undecided):
    assert decision.undecided is undecided


@pytest.mark.parametrize("saved", [{}, {"verdict": "upheld"}, {"controls": 3}])
def test_other_objects_are_no_decision(saved):
    with pytest.raises(ValueError, match="no decision"):
        decision_from(saved)
    whole = dataclasses.asdict(Decision("upheld"))
    with pytest.raises(ValueError, match="no decision"):
        decision_from(whole | {"odd": 1})


def test_an_error_says_what_was_raised_and_where():
    try:
        raise KeyError("nothing")
    except KeyError as error:
        decision = error_decision(error, check)
    assert decision.verdict == "error" and "KeyError" in decision.message and decision.checks == []
    assert decision.failure.kind == "KeyError" and "test_decision.py" in decision.failure.place
    assert error_decision(decision.failure).message == decision.message
