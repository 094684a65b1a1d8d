"""What the engine's rules decide on given runs: where a number moves, ``RULES`` must be raised, since recorded results are stale.

``python -m tests.engine.judging.test_rules`` writes the numbers of today with the number of the rules.
"""

import dataclasses
import json
import math
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn import stats
from jaxdyn.engine.base.jsonable import finite
from jaxdyn.engine.judging.decision import RULES, Terms
from jaxdyn.engine.judging.verdict import decide
from jaxdyn.status import DIVERGED, OK
from tests.engine.handmade import doubled, law

FILE = Path(__file__).with_name("rules.json")


def runs(scatter=0.02, shift=0.0, lost=0):
    """Two settings, 24 seeds and three entries: a law, a measurement that is nearly it, an error and a flag of each run."""
    draw = np.random.default_rng(20261201)
    x = draw.uniform(1, 2, (2, 24, 3))
    y = x * (1 + shift + scatter * draw.normal(size=x.shape))
    error = np.abs(y / x - 1).mean(-1)
    dims = ("lr", "seed", "entry")
    status = np.full((2, 24), OK)
    status.reshape(-1)[:lost] = DIVERGED
    parts = {"predicted_z": (dims, x), "measured_z": (dims, y), "err": (dims[:2], error), "big": (dims[:2], error > 0.005)}
    return xr.Dataset({**parts, "status": (dims[:2], status)}, {"lr": [0.1, 0.2], "seed": range(24)})


def judge(ds):
    """A check of every kind."""
    error = jd.relative_error(ds, "z", "entry")
    return [
        jd.gate("spread", float(ds.measured_z.std()), at_least=0.01),
        jd.at_most("relative error", error, 0.1),
        jd.mean_within("mean error", ds.err, over=["lr", "seed"], high=0.03),
        jd.mean_within("mean error at each rate", ds.err, over="seed", low=0.0, high=0.05),
        jd.rms_within("root mean square", (ds.measured_z - ds.predicted_z) ** 2, over=["lr", "seed", "entry"], high=0.1),
        jd.share_within("share of large errors", ds.big, over=["lr", "seed"], low=0.4),
        jd.within("ratio", (ds.measured_z / ds.predicted_z).mean(), 0.9, 1.1),
    ]


def readings(ds):
    """A reading of every kind."""
    return [
        jd.mean_reading("mean error", ds.err, over=["lr", "seed"]),
        jd.share_reading("share of large errors", ds.big, over=["lr", "seed"]),
    ]


CLAIM = law(
    judge=judge,
    seeds=24,
    min_ok=0.5,
    controls={"doubled": doubled, "other errors": lambda ds: ds.assign(err=20 * ds.err, big=0 * ds.big)},
    rivals={"constant": lambda ds: ds.assign(predicted_z=xr.full_like(ds.predicted_z, float(ds.predicted_z.mean())))},
)
MEASURED = law(judge=readings, seeds=24, expected="measured", bounds=None, title="How large errors are", controls={})
CASES = {
    "upheld": (CLAIM, runs(), Terms()),
    "a third look": (CLAIM, runs(), Terms(look=3)),
    "refuted": (CLAIM, runs(shift=0.3), Terms()),
    "undecided": (CLAIM, runs(0.035), Terms()),
    "lost runs": (CLAIM, runs(lost=3), Terms()),
    "measured": (MEASURED, runs(), Terms()),
}


def numbers(name):
    """What is decided on a case, without words."""
    claim, ds, terms = CASES[name]
    decision = decide(claim, ds, {}, terms)
    assert decision.verdict != "error", decision.message
    words = ("name", "trend", "worst", "reason", "gate", "needed")
    parts = {}
    for kind in ("gates", "checks", "readings"):
        parts[kind] = {
            one.name: {k: v for k, v in dataclasses.asdict(one).items() if k not in words} for one in getattr(decision, kind)
        }
    for kind in ("controls", "rivals"):
        parts[kind] = {
            one.name: [one.rejected, [[c.name, c.value, c.passed] for c in one.checks]] for one in getattr(decision, kind)
        }
    return json.loads(json.dumps(finite({"verdict": decision.verdict, "resolution": decision.resolution, **parts})))


def statistics():
    """The statistics on which judges rest, which a judge's digest knows by name."""
    x, y = np.arange(1.0, 9.0), np.arange(1.0, 9.0) ** 1.5 * (1 + 0.1 * np.sin(np.arange(8)))
    line = xr.DataArray(x, dims="n"), xr.DataArray(y, dims="n")
    parts = {
        "t": stats.bonferroni_t(3, 8, 0.997),
        "wilson": stats.wilson_ends(5, 9, 0.99),
        "slope": stats.loglog_slope(*line, "n"),
    }
    return {name: np.asarray(value, float).reshape(-1).tolist() for name, value in parts.items()}


def now():
    return {"rules": RULES, "decided": {name: numbers(name) for name in CASES}, "statistics": statistics()}


def close(one, other):
    """Whether two trees of JSON agree, numbers to rounding."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(close(one[k], other[k]) for k in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(close, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-7, abs_tol=1e-12)
    return one == other


RECORDED = json.loads(FILE.read_text(encoding="utf-8")) if FILE.is_file() else {"rules": 0, "decided": {}, "statistics": {}}


def test_the_file_is_of_these_rules():
    assert RECORDED["rules"] == RULES


@pytest.mark.parametrize("name", CASES)
def test_the_same_runs_are_decided_as_these_rules_say(name):
    assert close(numbers(name), RECORDED["decided"][name]), "raise RULES in engine/judging/decision.py, then write the file anew"


def test_the_statistics_are_as_these_rules_say():
    assert close(statistics(), RECORDED["statistics"]), "raise RULES in engine/judging/decision.py, then write the file anew"


if __name__ == "__main__":
    FILE.write_text(json.dumps(now(), indent=1) + "\n", encoding="utf-8")
