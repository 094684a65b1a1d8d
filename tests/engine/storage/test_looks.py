"""Bounds and designs that are changed after runs were seen are counted, until seeds that never ran before confirm them."""

import pytest

from jaxdyn.engine.storage.looks import LookRecord, remember, sentence


def look(bound=0.1, design="lr=0.1", judge="a", seeds=range(8), upheld=True, value=0.05, file=None):
    """A look; the file is another one with every judge, unless it is given."""
    ends, seeds = {"error": ["-inf", repr(bound)]}, list(seeds)
    return LookRecord(ends, {"error": value}, design, judge, file or f"file of {judge}", seeds, upheld, "2026-12-01 10:00")


def said(tmp_path, *looks):
    """What is said after these looks, one after the other."""
    return sentence([remember("mine.decay", tmp_path / "mine.py", "quick", one) for one in looks][-1])


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("JAXDYN_CACHE", str(tmp_path / "cache"))


def test_looks_at_an_unchanged_claim_say_nothing(tmp_path):
    assert said(tmp_path, look(), look(seeds=range(100, 108)), look()) == ""


def test_changes_are_counted_and_the_first_free_seed_is_named(tmp_path):
    text = said(tmp_path, look(0.1), look(0.2, judge="b"), look(0.3, judge="c"), look(0.3, "lr=0.2", "c"))
    assert text == "judge, bounds or design changed 3 times after runs were seen; confirm with --fresh 8"
    assert "changed once" in said(tmp_path / "other", look(0.1), look(0.2, judge="b"))


def test_a_change_and_its_opposite_are_two(tmp_path):
    assert "changed 2 times" in said(tmp_path, look(0.1), look(0.2, judge="b"), look(0.1))


def test_seeds_that_never_ran_before_confirm_and_stay_confirmed(tmp_path):
    fresh = look(0.2, judge="b", seeds=range(8, 16))
    confirmed = "and confirmed on 8 seeds that had not run before"
    assert said(tmp_path, look(0.1), look(0.2, judge="b"), fresh).endswith(confirmed)
    assert said(tmp_path, look(0.2, judge="b")).endswith(confirmed)
    assert said(tmp_path, look(0.3, judge="c")).endswith("confirm with --fresh 16")


def test_seeds_that_ran_before_the_change_confirm_nothing(tmp_path):
    looks = look(0.1, seeds=range(100, 108)), look(0.1), look(0.2, judge="b", seeds=range(107, 115))
    assert said(tmp_path, *looks).endswith("confirm with --fresh 115")


def test_fresh_seeds_that_refute_do_not_confirm(tmp_path):
    text = said(tmp_path, look(0.1), look(0.2, judge="b", seeds=range(8, 16), upheld=False))
    assert text.endswith("the seeds that had not run before did not confirm it")


def test_of_several_sets_of_fresh_seeds_none_may_be_left_out(tmp_path):
    fresh = [look(0.2, judge="b", seeds=range(start, start + 8), upheld=start > 100) for start in (100, 200)]
    assert said(tmp_path, look(0.1), *fresh).endswith("1 of 2 samples of seeds that had not run before did not confirm it")


def test_a_judge_that_reads_the_same_runs_otherwise_is_a_change(tmp_path):
    """Half the error under the same bound is twice the bound."""
    assert "changed once" in said(tmp_path, look(), look(judge="b", value=0.025))
    late = look(judge="b", value=0.03, seeds=range(8, 16)), look(judge="b", value=0.025)
    assert "changed once" in said(tmp_path / "late", look(), *late)
    assert said(tmp_path / "tidied", look(), look(judge="b")) == ""


def test_a_trial_that_was_mended_is_no_change_of_the_judge(tmp_path):
    assert said(tmp_path, look(value=0.3, upheld=False), look(value=0.05, file="another")) == ""


def test_bounds_that_the_same_judge_computes_from_the_data_are_no_change(tmp_path):
    assert said(tmp_path, look(0.1), look(0.2, seeds=range(8, 16))) == ""


@pytest.mark.parametrize("judges", [(None, None, None), ("a", "b", "c")], ids=["unknown", "with a state"])
def test_a_judge_whose_hash_says_nothing_is_known_by_its_file(tmp_path, judges):
    """Locks have no content, and random generators and loggers another one after each call."""
    seeds = range(8), range(8, 16), range(16, 24)
    same = [look(0.1 * (i + 1), judge=judges[i], seeds=seeds[i], file="one") for i in range(3)]
    assert said(tmp_path, *same) == ""
    edited = look(0.9, judge=judges[0], seeds=seeds[0], file="two")
    assert "changed once" in said(tmp_path, edited)


def test_claims_of_one_name_in_two_files_are_apart(tmp_path):
    remember("mine.decay", tmp_path / "one.py", "quick", look(0.1))
    assert sentence(remember("mine.decay", tmp_path / "two.py", "quick", look(0.2, judge="b"))) == ""
    assert sentence(remember("mine.decay", tmp_path / "one.py", "paper", look(0.2, judge="b"))) == ""


def test_a_damaged_file_is_begun_anew(tmp_path):
    remember("mine.decay", tmp_path / "mine.py", "quick", look(0.1))
    (file,) = (tmp_path / "cache" / "looks").iterdir()
    file.write_text("nonsense", encoding="utf-8")
    assert said(tmp_path, look(0.2, judge="b")) == ""
