"""Recorded answers: what is kept of them, counted, and shown in brief."""

import dataclasses
import json
import math

import pytest

from jaxdyn.attacks import recorded
from jaxdyn.engine.judging.digest import digest
from jaxdyn.errors import UsageError
from tests.attacks import toys

FINDING = {"subject": "rate", "text": "no check notices", "excuse": ""}
FACTORS = [
    {"where": "a.py:1, mul", "code": "x", "low": 0.5, "high": 1.05},
    {"where": "a.py:2, exp", "code": "y", "low": 0.0, "high": 1.2},
]
ENTRY = {
    "id": "toy.decay",
    "attacks": [
        {
            "name": "law",
            "outcome": "finding",
            "detail": "asked",
            "findings": [FINDING],
            "facts": {"factors": FACTORS, "equations": 2},
        },
        {"name": "words", "outcome": "excused", "detail": "asked", "findings": [FINDING | {"excuse": "since"}], "facts": {}},
    ],
}


@pytest.fixture
def written(tmp_path, monkeypatch):
    target = tmp_path / "recorded.json"
    monkeypatch.setattr(recorded, "RECORDED", target)
    recorded.recorded_answers.cache_clear()
    claim = toys.claim()
    entry = ENTRY | {"asked": recorded.what_was_asked(claim)}
    (tmp_path / recorded.ANSWERS).write_text(json.dumps({"claims": [entry, entry | {"id": "no.such"}]}), encoding="utf-8")
    assert recorded.write_answers(tmp_path, "2026-01-02", {claim.id: claim}, target) == 1
    yield claim
    recorded.recorded_answers.cache_clear()


def test_the_answers_on_a_claim_are_kept_without_their_facts_but_for_factors(written):
    said = recorded.summary_of(written)
    assert said["date"] == "2026-01-02" and said["open"] == 1 and not said["stale"]
    assert "facts" not in said["attacks"][0] and len(said["attacks"][0]["factors"]) == 2


def test_a_claim_that_is_judged_otherwise_now_is_stale(written):
    other = toys.claim(judge=toys.judge_start)
    assert digest(other) != digest(written) and recorded.summary_of(other)["stale"]


def test_answers_on_a_claim_that_said_something_else_are_left_out(written, tmp_path):
    other = dataclasses.replace(written, title="Another title")
    assert recorded.write_answers(tmp_path, "2026-01-03", {other.id: other}, tmp_path / "other.json") == 0


def test_in_brief_the_weakest_factor_is_the_largest_that_is_not_noticed(written):
    brief = recorded.brief_of(written.id)
    assert (brief["open"], brief["excused"]) == (1, 1)
    assert brief["weakest"] == {"factor": None, "where": "a.py:2, exp"}, "half is not noticed there"
    assert recorded.brief_of("no.such") is None


def test_outcomes_are_counted_by_attack():
    assert recorded.counted([ENTRY, ENTRY]) == {"law": {"finding": 2}, "words": {"excused": 2}}


@pytest.mark.parametrize(
    ("low", "high", "text"), [(0.91, 1.1, "0.91 to 1.1"), (0.0, None, "below 0.5 to above 2"), (0.5, 2.0, "0.5 to 2")]
)
def test_factors_in_words(low, high, text):
    assert recorded.factor_text({"low": low, "high": high}) == text
    assert math.isfinite(low)


def test_a_folder_without_answers_is_refused(tmp_path):
    with pytest.raises(UsageError, match="holds no answers"):
        recorded.write_answers(tmp_path, "2026-01-02", {})


def test_the_shipped_answers_can_be_read():
    for name, entry in recorded.recorded_answers().items():
        assert entry.keys() == {"digest", "date", "attacks"}, name
