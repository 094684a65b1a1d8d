"""The JSON object of a verification: what is counted, null for what is no number, and where it was made."""

import json
import math
import subprocess

import pytest

from jaxdyn.engine.judging.check import Check
from jaxdyn.engine.judging.decision import Decision, Outcome
from jaxdyn.engine.runs.blocks import Request, Runs
from jaxdyn.engine.verification import payload as module
from jaxdyn.engine.verification.payload import by_chance, environment, payload
from jaxdyn.engine.verification.result import Cost, Result, entry
from jaxdyn.engine.verification.verify import distinct_runs, make_plan

DECISION = Decision(
    "upheld",
    [Check("error", math.nan, (0.0, math.inf), True, {"lr": 0.1}, (-math.inf, 0.2))],
    controls=[Outcome("10% off", True, [Check("error", 0.1, (-math.inf, 1e-9), False)])],
)


@pytest.fixture(scope="module")
def plan(toys):
    """Two claims on the same runs, one of them with a control of two runs more each; and one on other runs."""
    return make_plan([toys.CLAIMS[0], toys.CLAIMS[1], toys.CLAIMS[-1]])


@pytest.fixture
def results(plan):
    """Judged by hand: the first claim failed before its program had run to its end, the second knows all of its cost."""
    shared, own = sorted((job.program for job in plan.jobs), key=lambda p: p.trial.qualname)
    costs = [(Cost(shared, 1.0, 0.5, 8),), (Cost(shared, 2.0, 1.0, 32),), (Cost(own, 4.0, 3.0, 6),)]
    return [Result.of(DECISION, t, costs=c) for t, c in zip(plan.tasks, costs, strict=True)]


def test_different_runs_and_programs_are_counted_once(results):
    whole = payload(results, 7.5)
    assert [c["runs"] for c in whole["claims"]] == [16, 16, 6], "a claim's own"
    assert whole["runs"] == 16 + 16 + 6, "16 of two claims, 16 of a control, 6 of the third"
    assert whole["programs"] == 2 and whole["seconds"] == 7.5
    assert whole["counts"] == {"upheld": 2, "misprint": 1, "beyond print": 0, "measured": 0}
    assert [c["counted"] for c in whole["claims"]] == ["upheld", "misprint", "upheld"]
    costs = {c["program"]: c for c in whole["costs"]}
    assert costs["toys:decay"]["claims"] == ["toy.decay", "toy.decay_as_printed"]
    assert (costs["toys:decay"]["compile_seconds"], costs["toys:decay"]["runs"]) == (2.0, 32), "of the one that knows all"
    assert costs["toys:solved"]["claims"] == ["solver.decay"]
    assert costs["toys:decay"]["static"]["weights"] == [1, 2] and costs["toys:decay"]["static"]["size"] == 3


def test_a_run_that_several_requests_ask_for_is_counted_once(toys):
    """Against all runs one by one: the same cells with seeds that overlap, and another cell."""
    grid = toys.CLAIMS[0].quick
    asked = [Request(toys.decay, grid, seeds) for seeds in ((0, 1, 2), (2, 3), (2, 3), (7,))]
    asked.append(Request(toys.decay, grid.replace(lr=[0.7]), (0, 1)))
    one_by_one = {(key, swept, seed) for r in asked for p, swept in r.cells for key in [Runs.program_key(p)] for seed in r.seeds}
    assert sum(distinct_runs(asked).values()) == len(one_by_one)


def test_what_is_no_number_is_null_and_all_of_it_is_json(results):
    whole = json.loads(json.dumps(payload(results, 1.0), allow_nan=False))
    (check,) = whole["claims"][0]["checks"]
    assert check["value"] is None and check["bound"] == [0.0, None] and check["interval"] == [None, 0.2]
    assert whole["claims"][0]["teeth"] == {"error": ["10% off"]}
    made_from = whole["claims"][0]["made_from"]
    assert whole["claims"][0] == json.loads(json.dumps(entry(results[0])))
    assert made_from["programs"] == [cost.program.fingerprint for cost in results[0].costs] and made_from["jax"]


def test_the_commit_is_that_of_the_checkout_and_a_plus_tells_of_changes(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "PACKAGE", tmp_path)
    assert environment()["commit"] is None, "no checkout"

    def git(*words):
        identity = ("-c", "user.name=a", "-c", "user.email=a@b")
        return subprocess.run(
            ["git", *identity, *words], cwd=tmp_path, check=True, capture_output=True, encoding="utf-8"
        ).stdout.strip()

    git("init")
    (tmp_path / "a.py").write_text("x = 1\n", encoding="utf-8")
    git("add", ".")
    git("commit", "-m", "first")
    head = git("rev-parse", "HEAD")
    assert head.startswith(environment()["commit"]) and len(environment()["commit"]) == 10
    (tmp_path / "untracked.py").write_text("", encoding="utf-8")
    assert not environment()["commit"].endswith("+")
    (tmp_path / "a.py").write_text("x = 2\n", encoding="utf-8")
    assert environment()["commit"].endswith("+")


@pytest.mark.parametrize(
    ("verdict", "levels", "claims", "expected"),
    [
        ("upheld", [0.997], 1, 0.003),
        ("upheld", [0.997, 0.99, None], 1, 0.01),  # the likeliest of its checks bounds it
        ("upheld", [None], 0, 0.0),  # every run passes or fails
        ("refuted", [0.997], 0, 0.0),
    ],
)
def test_how_many_claims_would_be_upheld_by_chance(toys, verdict, levels, claims, expected):
    (task,) = make_plan([toys.CLAIMS[0]]).tasks
    checks = [Check(f"{i}", 1.0, (0.0, 2.0), True, level=level) for i, level in enumerate(levels)]
    one = Result.of(Decision(verdict, checks), task)
    assert by_chance([one]) == {"claims": claims, "expected": pytest.approx(expected)}
    assert by_chance([one, one])["expected"] == pytest.approx(2 * expected)
