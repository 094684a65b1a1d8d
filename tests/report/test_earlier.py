"""Claims that were not run: what was recorded, or what an earlier call with the folder found, greyed, and counted nowhere."""

import json
import re

import pytest

from jaxdyn.errors import UsageError
from jaxdyn.report import page as report
from jaxdyn.report.earlier import add_earlier, read_earlier
from jaxdyn.report.results import read_results, write_results
from tests.report.handmade import DRAWING, check, claim, reading
from tests.report.test_page import Page

FIRST, SECOND = "2026-11-28 05:43 UTC", "2026-11-29 06:44 UTC"
LAST = {"verdict": "refuted", "date": "2026-11-20 01:02 UTC", "commit": "abc", "device": "cpu", "stale": False}


def unchanged(name, entry):
    """Whether a claim's runs have changed."""
    return False


def not_run(name, **more):
    """The entry of a claim that was not run, as the engine describes it."""
    kept = {n: v for n, v in claim(name).items() if n in ("id", "title", "theory", "statement", "source", "expected", "command")}
    return {**kept, "digest": "d", "verdict": "not run", "last_verdict": None, "caption": "Its own caption", **more}


def judged(name, verdict="upheld", expected="upheld", **more):
    return claim(name, verdict, expected, digest="d", gates=[check("converged", 0.5, (None, 1.0))], **more)


def store(folder, claims, figures, date, others=()):
    whole = {"claims": claims, "not_run": list(others), "environment": {"date": date, "commit": "c0ffee"}}
    write_results(folder, whole, figures)
    return whole


def call(folder, run, others, date, figures):
    """A call that judges some claims and not others, as ``jaxdyn verify`` writes it; its page."""
    before = read_earlier(folder)
    entries = [not_run(name) for name in others]
    store(folder, run, {**figures, **add_earlier(entries, before, unchanged)}, date, entries)
    return Page(report.page(*read_results(folder)))


def test_a_claim_that_an_earlier_call_judged_keeps_its_checks_and_figure_with_their_date(tmp_path):
    store(tmp_path, [judged("joma.one"), judged("joma.two", "refuted", "refuted")], {"joma.one": DRAWING}, FIRST)
    page = call(tmp_path, [judged("joma.two")], ["joma.one", "joma.three"], SECOND, {})
    assert f"An earlier call with this folder judged it on {FIRST} ( upheld ), commit c0ffee." in page.words
    assert f"Checks of an earlier call, on {FIRST}; not run here" in page.words
    assert f"Its own caption. 64 runs. Drawn by an earlier call with this folder, on {FIRST}." in page.words.replace("\u00a0", " ")
    assert len(page.all("figure", class_="past")) == len(page.all("div", class_="past")) == 1
    assert "Not run here, and never recorded." in page.words, "the third claim"
    assert "1 of 3" in page.words and "1 upheld, 2 not run here" in page.words
    # a third call, which again does not run it, keeps the date of the call that did
    page = call(tmp_path, [judged("joma.three")], ["joma.one", "joma.two"], "2026-11-30 07:45 UTC", {})
    assert f"judged it on {FIRST} ( upheld )" in page.words and f"judged it on {SECOND} ( upheld )" in page.words
    assert len(page.all("figure", class_="past")) == 1
    whole, figures = read_results(tmp_path)
    assert [c["id"] for c in whole["claims"]] == ["joma.three"] and figures == {"joma.one": DRAWING}


def test_recorded_numbers_are_shown_with_their_intervals(tmp_path):
    numbers = {"order": [1.0213, 0.97, 1.0851], "error": [2.5e-13], "depth": [None]}
    entry = not_run("joma.one", last_verdict={**LAST, "numbers": numbers})
    page = Page(report.page({"claims": [judged("joma.two")], "not_run": [entry]}, {}))
    assert f"Not run here; recorded on {LAST['date']} ( refuted ), commit abc, cpu." in page.words
    assert f"Numbers recorded on {LAST['date']}; not run here" in page.words
    assert re.search(r"order 1\.021 0\.97 … 1\.085 error 2\.5 ?× ?10", page.words.replace("\u202f", " ")), page.words
    assert "1 upheld, 1 not run here" in page.words and "refuted as printed" not in page.all("h1")
    assert "recorded: refuted" in page.words and "The verdict is as expected" in page.words
    bare = Page(report.page({"claims": [], "not_run": [not_run("joma.one", last_verdict={**LAST, "numbers": {}})]}, {}))
    assert "Not run here; recorded on" in bare.words and not bare.all("div", class_="past")
    assert "verdict is as expected" not in bare.words, "nothing was judged"


def test_an_earlier_call_of_this_folder_goes_before_the_record(tmp_path):
    store(tmp_path, [judged("joma.one", command="jaxdyn verify joma.one --set lr=0.1")], {}, FIRST)
    entry = not_run("joma.one", last_verdict={**LAST, "numbers": {"order": [1.5]}}, waiting=True)
    add_earlier([entry], read_earlier(tmp_path), unchanged)
    page = Page(report.page({"claims": [], "not_run": [entry]}, {}))
    assert "Not judged yet when this page was written; recorded on" in page.words
    assert "Numbers recorded" not in page.words and "Run with jaxdyn verify joma.one --set lr=0.1" in page.words
    assert "earlier: upheld" in page.words and "✓ met" in page.words


def test_a_claim_that_has_changed_since_says_so(tmp_path):
    store(tmp_path, [judged("joma.one"), judged("joma.two")], {}, FIRST)
    entries = [not_run("joma.one", digest="other"), not_run("joma.two")]
    add_earlier(entries, read_earlier(tmp_path), unchanged)
    assert [e["earlier"]["stale"] for e in entries] == [True, False]
    other = [not_run("joma.one"), not_run("joma.two")]
    add_earlier(other, read_earlier(tmp_path), lambda name, entry: name == "joma.two" and entry["verdict"] == "upheld")
    assert [e["earlier"]["stale"] for e in other] == [False, True]
    page = Page(report.page({"claims": [], "not_run": entries}, {}))
    assert page.words.count("its runs, checks, controls or rivals have changed since") == 1


@pytest.mark.parametrize("verdict", ["error", "skipped"])
def test_what_decided_nothing_is_not_kept(tmp_path, verdict):
    store(tmp_path, [judged("joma.one", verdict)], {"joma.one": DRAWING}, FIRST)
    assert read_earlier(tmp_path) == {}


def test_damaged_results_are_no_earlier_call(tmp_path):
    assert read_earlier(tmp_path) == {}
    damaged = [judged("joma.one", checks=[3]), judged("joma.two", readings=[reading()]), judged("joma.three")]
    whole = store(tmp_path, damaged, {"joma.two": DRAWING}, FIRST, [3, {"id": "joma.four", "earlier": []}, {"id": 5}])
    found = read_earlier(tmp_path)
    assert list(found) == ["joma.two", "joma.three"] and found["joma.two"].figure == DRAWING
    (tmp_path / "result.json").write_text(json.dumps({**whole, "environment": 3}), encoding="utf-8")
    assert read_earlier(tmp_path) == {}, "without a date"
    (tmp_path / "result.json").write_text("[", encoding="utf-8")
    with pytest.raises(UsageError, match="holds no results"):
        read_earlier(tmp_path)
