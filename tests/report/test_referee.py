"""The table of what the referee found: first and today, and how luck came out over all claims together."""

import pytest

from jaxdyn.attacks import recorded
from jaxdyn.errors import UsageError
from jaxdyn.report import referee
from tests.attacks import toys

BEFORE = {"claims": 2, "outcomes": {"law": {"finding": 2}, "words": {"noticed": 1, "not asked": 1}}}


def entry(*attacks):
    return {"digest": "0", "date": "2026-01-02", "attacks": [{"detail": "", "findings": [], **a} for a in attacks]}


def finding(excuse=""):
    return {"subject": "rate", "text": "no check notices", "excuse": excuse}


@pytest.fixture
def claims(monkeypatch):
    known = {
        "toy.a": entry(
            {"name": "law", "outcome": "noticed"},
            {"name": "luck", "outcome": "noticed", "luck": {"sets": 20, "others": 1, "allowed": 0.2}},
        ),
        "toy.b": entry(
            {"name": "law", "outcome": "finding", "findings": [finding(), finding("since")]},
            {"name": "luck", "outcome": "noticed", "luck": {"sets": 10, "others": 0, "allowed": 0.1}},
        ),
        "toy.gone": entry({"name": "law", "outcome": "finding", "findings": [finding()]}),
    }
    monkeypatch.setattr(referee, "recorded_answers", lambda: known)
    return [toys.claim(id=name) for name in ("toy.a", "toy.b", "toy.c")]


def test_claims_are_counted_by_attack_first_and_today(claims):
    text = referee.table(claims, BEFORE)
    assert "on 2 of 3 claims: 1 open finding, 1 excused. The first column counts 2 claims" in text
    assert "| law | 2 | 2 | 2 | 1 | 0 |" in text and "| words | 1 | 0 | 0 | 0 | 0 |" in text
    assert text.rstrip().endswith("Claims with an open finding: `toy.b`.")


def test_luck_is_that_of_all_claims_together(claims):
    low, high = referee.share_interval(1, 30)
    assert f"30 fresh sets of seeds: 1 set came out otherwise, a share of {low:.2g} to {high:.2g}; the levels" in referee.table(
        claims, BEFORE
    )
    assert "allow 0.3" in referee.table(claims, BEFORE)


def test_the_table_stands_between_its_marks(claims, tmp_path):
    (tmp_path / referee.BEFORE).parent.mkdir(parents=True)
    (tmp_path / referee.BEFORE).write_text('{"claims": 1, "outcomes": {}}', encoding="utf-8")
    page = f"a\n{referee.MARKS[0]}\nold\n{referee.MARKS[1]}\nb\n"
    new = referee.with_table(page, claims, tmp_path)
    assert new.startswith(f"a\n{referee.MARKS[0]}\nOn record") and new.endswith(f"{referee.MARKS[1]}\nb\n") and "old" not in new
    with pytest.raises(UsageError, match="lacks the marks"):
        referee.with_table("a\n", claims, tmp_path)


def test_luck_and_factors_are_kept_of_an_answers_facts():
    assert recorded.kept_numbers({"facts": {"sets": 20, "others": 2, "level": 0.01}}) == {
        "luck": {"sets": 20, "others": 2, "allowed": pytest.approx(0.2)}
    }
    assert recorded.kept_numbers({"facts": {"equations": 3}}) == {}
