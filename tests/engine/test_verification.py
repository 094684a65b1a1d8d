"""Verification: boundaries, refinement, results, selection, and verdicts of the last time."""

import dataclasses
import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given
from hypothesis import strategies as st

import jaxdyn as jd
from jaxdyn.engine.catalogue import library
from jaxdyn.engine.catalogue.registry import all_claims
from jaxdyn.engine.judging.check import Check
from jaxdyn.engine.judging.decision import Decision, Outcome, error_decision
from jaxdyn.engine.verification import last_verdicts as recorded
from jaxdyn.engine.verification.boundary import fit, has_law
from jaxdyn.engine.verification.last_verdicts import not_run, recorded_verdicts, write_verdicts
from jaxdyn.engine.verification.payload import payload
from jaxdyn.engine.verification.refinement import FINE, Leaf, edges, more, start
from jaxdyn.engine.verification.result import Result, entry
from jaxdyn.engine.verification.selection import Candidate, affordable
from jaxdyn.engine.verification.verify import make_plan, run_plan

# The border of a map as a power law.


@pytest.mark.parametrize("exponent", [-2.5, -1.0, 0.0, 0.4, 3.0])
def test_an_exact_law_is_found(exponent):
    x = np.linspace(-3, 4, 40)
    found = fit(x, 0.7 + exponent * x, 1.1)
    assert found.exponent == pytest.approx(exponent, abs=1e-9) and found.factor == pytest.approx(math.exp(0.7))
    assert found.interval == pytest.approx((exponent, exponent), abs=1e-6)
    assert found.spread == pytest.approx(1.0) and found.points == 40


def test_the_slope_is_that_of_orthogonal_regression():
    rng = np.random.default_rng(0)
    t = rng.uniform(-3, 3, 200)
    x, y = t + 0.1 * rng.normal(size=200), 1 - 0.5 * t + 0.1 * rng.normal(size=200)
    found = fit(x, y, 1.1)
    oracle = scipy.optimize.minimize(lambda p: np.sum((y - p[0] * x - p[1]) ** 2) / (1 + p[0] ** 2), [0.0, 0.0], tol=1e-12).x
    assert (found.exponent, math.log(found.factor)) == pytest.approx(tuple(oracle), abs=1e-4)
    assert found.spread == pytest.approx(math.exp(0.1), rel=0.02)


@pytest.mark.slow
def test_the_interval_holds_the_slope_about_as_often_as_it_says():
    rng, held, count = np.random.default_rng(1), 0, 400
    for _ in range(count):
        t = np.linspace(-2, 2, 48)
        low, high = fit(t + 0.1 * rng.normal(size=48), 0.8 * t + 0.1 * rng.normal(size=48), 1.1).interval
        held += low <= 0.8 <= high
    assert 0.9 < held / count < 0.99


def test_an_upright_border_has_no_finite_slope():
    y = np.linspace(0, 3, 32)
    found = fit(np.full(32, 2.0), y, 1.1)
    assert found.exponent == math.inf and found.spread == pytest.approx(1.0)


def test_only_a_border_with_a_finite_interval_has_a_law():
    border = {"exponent": 0.5, "factor": 1.0, "interval": [0.4, 0.6]}
    assert has_law(border) and not has_law(None) and not has_law(border | {"interval": [0.4, None]})


# Recorded verdicts: written from a whole verification, shown of claims that were not run, and stale once checks have changed.


@pytest.fixture
def made(claim, tmp_path, monkeypatch):
    """A claim, and a folder with the result of its verification."""
    one = claim()
    (tmp_path / "result.json").write_text(json.dumps(payload([jd.verify(one)], 1.0)), encoding="utf-8")
    monkeypatch.setattr(recorded, "RECORDED", tmp_path / "verdicts.json")
    recorded_verdicts.cache_clear()
    yield one, tmp_path
    recorded_verdicts.cache_clear()


def test_a_claim_that_was_not_run_has_its_last_verdict(made):
    one, folder = made
    assert not_run(one)["last_verdict"] is None
    result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    result["claims"][0]["checks"] = [{"name": "slope", "value": 1.0213579, "interval": [0.9, 1.1]}]
    result["claims"][0]["readings"] = [{"name": "depth", "value": None, "interval": None}]
    (folder / "result.json").write_text(json.dumps(result), encoding="utf-8")
    assert write_verdicts(folder, recorded.RECORDED) == 1
    entry = not_run(one)
    when = {name: result["environment"][name] for name in ("date", "commit", "device")}
    numbers = {"slope": [1.0214, 0.9, 1.1], "depth": [None]}
    assert entry["last_verdict"] == {"verdict": result["claims"][0]["verdict"], "stale": False, "numbers": numbers, **when}
    assert entry["verdict"] == "not run" and entry["title"] == one.title and entry["command"] == "jaxdyn verify toy.made"


def test_a_verdict_by_other_checks_is_stale(made):
    one, folder = made
    write_verdicts(folder, recorded.RECORDED)
    other = dataclasses.replace(one, controls={"halved": lambda ds: ds.assign(predicted_x=ds.predicted_x / 2)})
    assert not_run(other)["last_verdict"]["stale"]


def test_verdicts_of_another_call_are_added(made):
    one, folder = made
    write_verdicts(folder, recorded.RECORDED)
    result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    result["claims"][0] |= {"id": "toy.other", "verdict": "refuted"}
    result["environment"]["date"] = "later"
    (folder / "result.json").write_text(json.dumps(result), encoding="utf-8")
    assert write_verdicts(folder, recorded.RECORDED) == 1
    both = recorded_verdicts()
    assert (both["toy.other"]["verdict"], both["toy.other"]["date"]) == ("refuted", "later")
    assert both[one.id]["date"] != "later" and not_run(one)["last_verdict"]["stale"] is False


def test_skipped_claims_and_other_seeds_are_not_recorded(made):
    one, folder = made
    result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    result["claims"][0]["verdict"] = "skipped"
    (folder / "result.json").write_text(json.dumps(result), encoding="utf-8")
    assert write_verdicts(folder, recorded.RECORDED) == 0
    for options in ({"fresh": 4000}, {"seeds": range(3, 4)}, {"seeds": 2 * one.seeds}):
        results = run_plan(make_plan([one], **options), None)
        (folder / "result.json").write_text(json.dumps(payload(results, 1.0)), encoding="utf-8")
        with pytest.raises(jd.UsageError, match="toy.made was run with other seeds or settings than its own"):
            write_verdicts(folder, recorded.RECORDED)
    with pytest.raises(jd.UsageError, match="holds no results of `jaxdyn verify`"):
        write_verdicts(folder / "nowhere")


def test_a_damaged_record_is_none(made):
    one, _ = made
    recorded.RECORDED.write_text("[1", encoding="utf-8")
    assert not_run(one)["last_verdict"] is None


# Points on a dyadic lattice.

BORDER = ("in", "out")


def ask(dims, cells, inside, rounds):
    """Leaves and labels after some rounds in which points inside are told from others."""
    leaves, points = start(dims, cells)
    labels = {}
    for _ in range(rounds):
        labels |= {p: "in" if inside([x / FINE for x in p]) else "out" for p in points}
        leaves, points = more(leaves, labels, (len(labels) if not points else len(points)), BORDER)
    labels |= {p: "in" if inside([x / FINE for x in p]) else "out" for p in points}
    return leaves, labels


@pytest.mark.parametrize(("dims", "cells", "first"), [(1, 243, 17), (2, 243, 81), (2, 100, 25), (2, 9, 9), (1, 3, 3), (0, 5, 1)])
def test_the_first_round_takes_a_third_of_the_cells_at_most_if_it_can(dims, cells, first):
    leaves, points = start(dims, cells)
    assert len(points) == len(set(points)) == first
    assert math.isclose(sum((leaf.side / FINE) ** dims for leaf in leaves), float(dims > 0))


@given(st.floats(0.05, 0.95), st.floats(-2, 2), st.integers(1, 4))
def test_leaves_cover_the_plane_once_and_all_their_corners_are_known(offset, slope, rounds):
    leaves, labels = ask(2, 75, lambda p: p[1] < offset + slope * (p[0] - 0.5), rounds)
    assert math.isclose(sum((leaf.side / FINE) ** 2 for leaf in leaves), 1.0)
    assert all(corner in labels for leaf in leaves for corner in leaf.corners)
    assert len(set(leaves)) == len(leaves)


def test_points_gather_at_the_border():
    _, labels = ask(2, 243, lambda p: p[0] ** 2 + p[1] ** 2 < 0.5, 4)
    distance = [abs(math.hypot(*p) / FINE - 0.5**0.5) for p in labels]
    near = sum(d < 0.05 for d in distance) / len(distance)
    grid = [abs(math.hypot(a / 64, b / 64) - 0.5**0.5) for a, b in itertools.product(range(65), repeat=2)]
    assert near > 3 * sum(d < 0.05 for d in grid) / len(grid)


def test_what_lies_between_the_two_labels_of_the_border_is_cut_first():
    leaves, points = start(1, 9)
    labels = {p: "other" if p[0] < 2048 else "in" if p[0] < 3072 else "out" for p in points}
    _, new = more(leaves, labels, 1, BORDER)
    assert points == [(0,), (2048,), (4096,)] and new == [(3072,)]


def test_islands_are_looked_for_when_nothing_is_mixed():
    leaves, points = start(2, 27)
    labels = dict.fromkeys(points, "in")
    cut, new = more(leaves, labels, 5, BORDER)
    assert len(new) == 5 and len(cut) == len(leaves) + 3, "one square into four"
    assert all(p not in labels for p in new)


@given(st.sampled_from([1, 2]), st.integers(9, 300), st.integers(1, 40))
def test_a_round_asks_for_as_many_points_as_it_may(dims, cells, count):
    leaves, points = start(dims, cells)
    _, new = more(leaves, dict.fromkeys(points, "in"), count, BORDER)
    assert len(new) == len(set(new)) == count


def test_a_lattice_that_is_used_up_asks_nothing_more():
    leaf = Leaf((0,), 1)
    assert more([leaf], {(0,): "in", (1,): "out"}, 8, BORDER) == ([leaf], [])


def test_edges_lie_across_the_border_and_have_no_point_between():
    leaves, labels = ask(2, 243, lambda p: p[0] + p[1] < 0.9, 3)
    found = edges(leaves, labels, BORDER)
    assert found and all({labels[a], labels[b]} == set(BORDER) for a, b in found)
    for a, b in found:
        assert tuple((x + y) // 2 for x, y in zip(a, b, strict=True)) not in labels
        assert min(sum(a), sum(b)) / FINE < 0.9 <= max(sum(a), sum(b)) / FINE


# How an outcome is shown, and its entry in JSON.

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


# Which claims fit: every theory first, headlines before others, shared programs paid once; against exhaustive search by hand.


def candidate(theory, programs, headline=False, flagship=False):
    return Candidate(theory, frozenset(programs), headline, flagship)


def test_readmes_claim_is_first_even_if_nothing_else_fits():
    some = [candidate("a", "p"), candidate("b", "q", True), candidate("b", "r", flagship=True)]
    assert affordable(some, {"p": 1.0, "q": 2.0, "r": 50.0}, [0.0] * 3, 51.0) == [2, 0]
    assert affordable(some, {"p": 1.0, "q": 2.0, "r": 50.0}, [0.0] * 3, 10.0) == [2]
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    assert f"$ jaxdyn verify {library.flagship()}\n" in readme and library.flagship() in all_claims()


def test_every_theory_comes_before_a_second_claim_of_any():
    some = [candidate("a", "p"), candidate("a", "q"), candidate("b", "r")]
    assert affordable(some, {"p": 1.0, "q": 1.0, "r": 50.0}, [0.0] * 3, 52.0) == [0, 2, 1]
    assert affordable(some, {"p": 1.0, "q": 1.0, "r": 50.0}, [0.0] * 3, 51.0) == [0, 2]


def test_a_theory_is_led_by_its_cheapest_headline_and_other_headlines_follow():
    some = [candidate("a", "p"), candidate("a", "q", True), candidate("a", "r", True), candidate("b", "s")]
    cost = {"p": 1.0, "q": 9.0, "r": 5.0, "s": 2.0}
    assert affordable(some, cost, [0.0] * 4, 100.0) == [3, 2, 1, 0]


def test_a_program_is_paid_once():
    some = [candidate("a", "p"), candidate("a", "pq"), candidate("a", "r")]
    assert affordable(some, {"p": 4.0, "q": 1.0, "r": 5.0}, [0.5] * 3, 6.0) == [0, 1]


def test_a_program_is_not_divided_among_workers():
    """Four workers have 40 seconds in 10, and none of them has 11; a program that is paid for is there."""
    some = [candidate("a", "p"), candidate("b", "q"), candidate("b", "pr")]
    cost = {"p": 1.0, "q": 11.0, "r": 9.0}
    assert affordable(some, cost, [0.0] * 3, 40.0, longest=10.0) == [0, 2]
    assert affordable(some, cost, [0.0] * 3, 40.0) == [0, 2, 1]
    assert affordable(some, cost, [0.0] * 3, 40.0, longest=0.5) == [0], "something is always run"
    assert affordable(some, cost, [0.0] * 3, 40.0, longest=0.5, at_least_one=False) == []


def test_something_is_always_run():
    assert affordable([candidate("a", "p"), candidate("b", "q")], {"p": 9.0, "q": 5.0}, [0.0, 0.0], 1.0) == [1]
    assert affordable([], {}, [], 1.0) == []


@given(st.data())
def test_the_budget_is_kept_and_nothing_that_fits_is_left_out(data):
    programs = "abcdef"
    cost = {p: data.draw(st.floats(0.1, 10), label=p) for p in programs}
    some = data.draw(
        st.lists(
            st.builds(candidate, st.sampled_from("xyz"), st.sets(st.sampled_from(programs), min_size=1), st.booleans()),
            min_size=1,
            max_size=8,
        )
    )
    each = [0.25] * len(some)
    budget = data.draw(st.floats(1, 40))
    chosen = affordable(some, cost, each, budget)

    def seconds(which):
        return sum(cost[p] for p in set().union(*(some[i].programs for i in which))) + 0.25 * len(which)

    assert len(set(chosen)) == len(chosen) >= 1
    if len(chosen) > 1:
        assert seconds(chosen) <= budget + 1e-9
    assert all(seconds([*chosen, i]) > budget - 1e-9 for i in range(len(some)) if i not in chosen)
