"""Answers and excuses."""

import pytest

from jaxdyn.attacks.answer import Finding, answered, excused, not_asked, with_idle
from jaxdyn.errors import UsageError

FOUND = answered("asked", [Finding("rate", "wrong"), Finding("time", "late")])


def test_findings_make_the_outcome():
    assert answered("asked").outcome == "noticed" and FOUND.outcome == "finding" and len(FOUND.open) == 2


@pytest.mark.parametrize(
    ("excuses", "outcome", "left"),
    [
        ({}, "finding", 2),
        ({"law: rate": "since"}, "finding", 1),
        ({"law": "since"}, "excused", 0),
        ({"words": "since"}, "finding", 2),
    ],
)
def test_excuses(excuses, outcome, left):
    found = excused(FOUND, "law", excuses)
    assert found.outcome == outcome and len(found.open) == left


@pytest.mark.parametrize(
    ("excuses", "words"),
    [({"law: speed": "since"}, "law"), ({"words": "since"}, "words")],
)
def test_idle_excuses_are_findings(excuses, words):
    found = with_idle({"law": FOUND, "words": answered("asked")}, excuses)[words]
    assert found.outcome == "finding" and "excuses nothing" in found.open[-1].text


def test_an_excuse_that_names_no_attack_is_refused():
    with pytest.raises(UsageError, match="no attack"):
        with_idle({"law": FOUND}, {"laws": "since"})


def test_what_was_not_asked_may_be_excused():
    dear = {"law": not_asked("too dear")}
    assert with_idle(dear, {"law: rate": "since"}) == dear
