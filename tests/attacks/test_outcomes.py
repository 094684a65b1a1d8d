"""Stored answers: used for the same basis, ignored for another and when damaged."""

from jaxdyn.attacks import outcomes
from jaxdyn.attacks.outcomes import basis, load_answers, save_answers
from jaxdyn.engine.catalogue import registry
from jaxdyn.engine.verification.verify import make_tasks
from tests.attacks import toys

ENTRY = {"id": "toy.decay", "attacks": []}


def test_answers_are_kept_by_their_basis(tmp_path):
    claim = toys.claim()
    save_answers(tmp_path, claim, "one", True, ENTRY)
    assert load_answers(tmp_path, claim, "one", True) == ENTRY
    assert load_answers(tmp_path, claim, "other", True) is None
    assert load_answers(tmp_path, claim, None, True) is None
    assert load_answers(tmp_path, claim, "one", False) is None, "a quick inquiry is no whole one"


def test_a_whole_inquiry_answers_a_quick_one(tmp_path):
    claim = toys.claim()
    save_answers(tmp_path, claim, "one", False, ENTRY)
    assert load_answers(tmp_path, claim, "one", True) == ENTRY


def test_a_damaged_file_is_ignored(tmp_path):
    claim = toys.claim()
    save_answers(tmp_path, claim, "one", True, ENTRY)
    (file,) = (tmp_path / "referee").iterdir()
    file.write_bytes(file.read_bytes()[:-9])
    assert load_answers(tmp_path, claim, "one", True) is None


def test_a_users_claim_has_no_basis_and_ours_has_where_no_other_code_runs(monkeypatch):
    ours = registry.select(["cal.gd_order1"])
    assert basis(make_tasks(ours)[0]) is None, "the tests are loaded"
    monkeypatch.setattr(outcomes.direct, "alone", lambda: True)
    assert basis(make_tasks([toys.claim()])[0]) is None
    assert basis(make_tasks(ours)[0]) == basis(make_tasks(ours)[0]) is not None
