"""Conclusions are used again if and only if nothing that they follow from has changed."""

import dataclasses
import math

import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.cli import conclusions
from jaxdyn.cli.conclusions import basis, load_conclusion, save_conclusion
from jaxdyn.engine.catalogue import registry
from jaxdyn.engine.judging.check import Check
from jaxdyn.engine.judging.decision import Decision, Outcome, error_decision
from jaxdyn.engine.verification.verify import make_plan

CHECKS = [
    Check("slope", 0.98, (0.95, 1.05), True, {"lr": 0.1, "name": "sgd"}),
    Check("share", math.nan, (0.5, math.inf), None),
    Check("mean", 0.94, (0.95, math.inf), None, interval=(0.9, 0.98), needed=40),
]
DECISION = Decision(
    "refuted",
    CHECKS,
    gates=[Check("accuracy", 0.99, (0.95, math.inf), True, {"seed": 3}, gate=True)],
    controls=[Outcome("noise", True, CHECKS[:1]), Outcome("shift", False, [], "not blended: z has another shape")],
    rivals=[Outcome("nothing moves", True, CHECKS[1:])],
    resolution={"scale": {"z": 1e-3, "sign": None}, "mix": {"noise": 0.02}},
    counterpart_checks=CHECKS[1:],
    diverged=3,
    outside=2,
    message="three runs are not ok",
    by=[{"at": {"lr": 0.1}, "verdict": "upheld", "failed": None}],
    figure="<svg/>",
)


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    """As if no tests were loaded: only the package's code."""
    monkeypatch.setattr(conclusions.direct, "alone", lambda: True)


@pytest.fixture(scope="module")
def task():
    return make_plan([registry.select(["cal.quadratic_rate"])[0]]).tasks[0]


@pytest.fixture
def ds():
    return xr.Dataset({"measured_z": (("seed", "kind"), np.arange(6.0).reshape(2, 3))}, {"seed": [0, 1], "kind": ["a", "b", "c"]})


def test_what_is_kept_comes_back_equal(tmp_path):
    save_conclusion(tmp_path, "a.claim", "these data", DECISION)
    found = load_conclusion(tmp_path, "a.claim", "these data")
    assert repr(found) == repr(DECISION)  # NaN is not equal to itself
    assert found.checks[0] == CHECKS[0]
    assert load_conclusion(tmp_path, "a.claim", "other data") is None
    assert load_conclusion(tmp_path, "another.claim", "these data") is None


def test_the_basis_tells_apart_all_that_a_conclusion_follows_from(task, ds):
    changed = ds.copy(deep=True)
    changed.measured_z[1, 2] += 1e-15 * 8
    ways = [
        basis(task, ds, {}),
        basis(task, changed, {}),
        basis(task, ds.astype("float32"), {}),
        basis(task, ds.assign_coords(kind=["a", "b", "d"]), {}),
        basis(task, ds.rename(measured_z="measured_y"), {}),
        basis(task, ds.transpose(), {}),
        basis(task, ds, {}, drawn=False),
        basis(task, ds, {"control": ds}),
        basis(task, ds, {"control": changed}),
        basis(task, ds, {"other": ds}),
        basis(dataclasses.replace(task, by=("seed",)), ds, {}),
        basis(dataclasses.replace(task, overrides={"dimension": 2}), ds, {}),
    ]
    assert len(set(ways)) == len(ways)
    assert basis(task, ds.copy(deep=True), {}) == ways[0]


def test_the_basis_follows_the_modules_behind_judge_plot_and_claim(task, ds, monkeypatch):
    asked = []
    monkeypatch.setattr(conclusions.direct, "modules_behind", lambda *modules: asked.append(modules) or "some code")
    before = basis(task, ds, {})
    assert {task.claim.judge.__module__, "jaxdyn.engine.judging.verdict", "jaxdyn.report.drawing"} <= set(asked[0])
    assert basis(task, ds, {}) == before
    monkeypatch.setattr(conclusions.direct, "modules_behind", lambda *modules: "other code")
    assert basis(task, ds, {}) != before


def test_other_theories_are_not_behind_a_claim(task):
    """An edit in one theory has no claim of another judged again."""
    other = registry.select(["lyu.*"])[0]
    judged = conclusions.direct.modules_behind(task.claim.judge.__module__)
    assert judged != conclusions.direct.modules_behind(other.judge.__module__)


def test_what_is_concluded_is_known_before_the_runs(task, ds, tmp_path):
    assert not conclusions.is_concluded(tmp_path, task.claim)
    save_conclusion(tmp_path, task.claim.id, basis(task, ds, {}), DECISION)
    assert conclusions.is_concluded(tmp_path, task.claim)
    save_conclusion(tmp_path, task.claim.id, "other code", DECISION)
    assert not conclusions.is_concluded(tmp_path, task.claim)


def test_a_users_own_claim_is_judged_each_time(task, ds, tmp_path):
    def judge(ds):
        return [jd.at_most("z", ds.measured_z, 9.0)]

    own = dataclasses.replace(task, claim=dataclasses.replace(task.claim, judge=judge))
    assert basis(own, ds, {}) is None
    save_conclusion(tmp_path, "own.claim", None, DECISION)
    assert load_conclusion(tmp_path, "own.claim", None) is None


@pytest.mark.parametrize("at", [0, 70, 200, -2])
def test_a_damaged_file_counts_as_none(tmp_path, at):
    save_conclusion(tmp_path, "a.claim", "these data", DECISION)
    file = tmp_path / "conclusions" / "a.claim.gz"
    damaged = bytearray(file.read_bytes())
    damaged[at] ^= 1
    file.write_bytes(damaged)
    assert load_conclusion(tmp_path, "a.claim", "these data") is None


def test_errors_and_odd_values_are_not_kept(tmp_path):
    save_conclusion(tmp_path, "a.claim", "these data", error_decision(ValueError("no")))
    odd = dataclasses.replace(DECISION, resolution={"scale": {"x": object()}, "mix": {}})
    save_conclusion(tmp_path, "b.claim", "these data", odd)
    assert not list(tmp_path.rglob("*.gz"))


def test_a_folder_that_cannot_be_written_costs_no_verdict(tmp_path):
    (tmp_path / "conclusions").write_text("a file where a folder should be", encoding="utf-8")
    save_conclusion(tmp_path, "a.claim", "these data", DECISION)
    assert load_conclusion(tmp_path, "a.claim", "these data") is None


def test_where_other_code_runs_nothing_is_concluded_for_good(task, ds, tmp_path, monkeypatch):
    """A user's file or a plugin may have changed what the package's own judges do."""
    save_conclusion(tmp_path, task.claim.id, before := basis(task, ds, {}), DECISION)
    monkeypatch.setattr(conclusions.direct, "alone", lambda: False)
    assert before is not None and basis(task, ds, {}) is None
    assert load_conclusion(tmp_path, task.claim.id, basis(task, ds, {})) is None
    assert not conclusions.is_concluded(tmp_path, task.claim)
