"""Answers and excuses."""

import pytest

from jaxdyn.attacks.answer import Finding, answered, excused, not_asked, refuse_idle
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
    [({"laws": "since"}, "no attack"), ({"law: speed": "since"}, "excuses nothing"), ({"words": "since"}, "excuses nothing")],
)
def test_idle_excuses_are_refused(excuses, words):
    with pytest.raises(UsageError, match=words):
        refuse_idle(excuses, {"law": FOUND, "words": answered("asked")})


def test_what_was_not_asked_may_be_excused():
    refuse_idle({"law: rate": "since"}, {"law": not_asked("too dear")})
