"""Two results compared: which numbers moved, and what else differs; entries made by hand."""

import copy
import functools
import json

import pytest

import jaxdyn as jd
from jaxdyn.report.diff import LEFT_OUT, MADE_WITH

from ..engine.conftest import TOYS
from .handmade import check, claim, reading


def stored(folder, *claims, **more):
    """The folder of a verification with these claims."""
    folder.mkdir()
    (folder / "result.json").write_text(json.dumps({"claims": claims, **more}), encoding="utf-8")
    return folder


@pytest.fixture
def compared(tmp_path):
    """A function that compares two claims ``toy.one`` with these fields."""

    def compare(one, other, **more):
        a, b = (stored(tmp_path / name, claim("toy.one", **fields), **more) for name, fields in (("a", one), ("b", other)))
        found = jd.diff(a, b)
        return found.claims[0] if found.claims else None

    return compare


def estimate(value, low, high):
    return check("slope", value, (0.0, 2.0)) | {"interval": [low, high]}


@pytest.mark.parametrize(
    ("one", "other", "moved"),
    [
        (estimate(1.0, 0.9, 1.1), estimate(1.15, 1.05, 1.25), False),  # intervals that overlap
        (estimate(1.0, 0.9, 1.1), estimate(1.25, 1.15, 1.35), True),
        (estimate(1.0, None, 1.1), estimate(-5.0, None, -4.0), False),  # an open end is infinite
        (estimate(1.0, 0.9, 1.1), estimate(1.05, None, None) | {"interval": None}, False),  # a point inside, and outside
        (estimate(1.0, 0.9, 1.1), estimate(1.2, None, None) | {"interval": None}, True),
        (check("x", 0.5, (None, 1.0)), check("x", 0.5 + 2e-6, (None, 1.0)), True),  # beyond a millionth of the bound
        (check("x", None, (None, 1.0)), check("x", 0.5, (None, 1.0)), True),  # from no number to a number
        (reading("x", 1.0, None), reading("x", 1.1, None), True),
    ],
)
def test_a_number_moves_when_intervals_are_disjoint(compared, one, other, moved):
    name = "checks" if "bound" in one else "readings"
    (number,) = compared({name: [one]}, {name: [other]}).numbers
    assert number.moved is moved and number.within is not moved


@pytest.mark.parametrize("interval", [[-5.0, 5.0], None])
def test_an_interval_alone_is_a_difference(compared, interval):
    (number,) = compared(
        {"checks": [estimate(1.0, 0.9, 1.1)]}, {"checks": [estimate(1.0, 0.9, 1.1) | {"interval": interval}]}
    ).numbers
    assert number.within and number.value == (1.0, 1.0)


HERE, ELSEWHERE = {"seeds": 8, "settings": {"lr": 0.1}}, {"seeds": 64, "settings": {"lr": 0.2}}
WORST = check("x", 0.5, (None, 1.0))


@pytest.mark.parametrize("other", [HERE | {"seeds": 64}, HERE | {"settings": {"lr": 0.2}}])
def test_the_worst_of_other_runs_has_not_moved(compared, other):
    """Without an interval nothing tells how much it differs from one draw of seeds to another."""
    found = compared(HERE | {"checks": [WORST]}, other | {"checks": [WORST | {"value": 0.6}]})
    (number,) = found.numbers
    assert number.other_runs and not number.moved and not number.within and not found.moved


def test_the_outcome_and_the_interval_of_other_runs_count_all_the_same(compared):
    a, b = [WORST, estimate(1.0, 0.9, 1.1)], [WORST | {"value": 1.5, "passed": False}, estimate(1.5, 1.4, 1.6)]
    worst, mean = compared(HERE | {"checks": a}, ELSEWHERE | {"checks": b}).moved
    assert worst.other_runs and worst.passed == (True, False) and mean.moved


@pytest.mark.parametrize(
    ("one", "other", "bound"),
    [
        (6e-16, 3e-16, (None, 1e-9)),  # rounding, far below the bound
        (1.0, 1.0 + 9e-7, (0.9, 1.1)),
        (None, None, (0.9, 1.1)),
        (7, 7.0, None),
    ],
)
def test_rounding_is_no_difference(compared, one, other, bound):
    assert compared({"checks": [check("x", one, bound)]}, {"checks": [check("x", other, bound)]}) is None


def test_bounds_outcomes_and_checks_of_one_result(compared):
    before = [check("x", 0.5, (None, 1.0)), check("gone", 1.0, None), check("same", 1.0), check("same", 2.0)]
    after = [check("x", 0.5, (None, 0.4), False), check("new", 1.0, None), check("same", 1.0), check("same", 3.0)]
    found = compared({"checks": before}, {"checks": after})
    x, new, same, gone = found.numbers
    assert x.bound_changed and not x.moved and x.passed == (True, False) and x in found.moved
    assert (new.only_in, gone.only_in, same.value) == ("b", "a", (2.0, 3.0)) and found.moved == [x, same]


def test_what_else_differs(compared):
    made = {"jax": "1", "python": "3", "platform": "cpu", "code": "c", "programs": ["cpu-aa"]}
    rival = {"name": "still", "rejected": True}
    cells = [{"at": {"lr": 0.1}, "verdict": "upheld"}, {"at": {"lr": 1.0}, "verdict": "upheld"}]
    one = {"digest": "d1", "made_from": made, "rivals": [rival], "by": {"fields": ["lr"], "cells": cells}, "run_seconds": 0.5}
    cells = [cells[0], {"at": {"lr": 1.0}, "verdict": "refuted"}, {"at": {"lr": 9.0}, "verdict": "refuted"}]
    other = {
        "digest": "d2",
        "made_from": made | {"programs": ["cpu-bb"]},
        "rivals": [rival | {"rejected": False}],
        "by": {"fields": ["lr"], "cells": cells},
        "settings": {"lr": [0.1, 0.2], "optimizer": "adam", "noise": None, "more": 1},
        "seed_range": "0:4",
        "expected": "refuted",
        "compile_seconds": 3.0,
        "run_seconds": 1.0,
        "cpu_seconds": 9.0,
    }
    found = compared(one, other)
    assert found.verdict == ("upheld", "upheld") and found.verdict_differs
    assert found.cells == {"lr=1.0": ("upheld", "refuted"), "lr=9.0": (None, "refuted")}
    assert (
        found.opponents == {"still": (True, False)}
        and found.turned == ["still"]
        and found.facts == {"expected": ("upheld", "refuted")}
    )
    assert found.settings == {"optimizer": ("gd", "adam"), "bias": (False, None), "more": (None, 1)}
    assert found.runs == {"seeds": (8, "0:4")} and found.seconds == {"wall": (2.0, 4.0)}
    assert found.digests == {"judge": ("d1", "d2"), "programs": (["cpu-aa"], ["cpu-bb"])}


def outcome(name="adam", value=1.4, rejected=True, **more):
    return {"name": name, "rejected": rejected, "checks": [check("order", value, (0.9, 1.1), False)], "reason": None, **more}


COUNTER = {"counterpart": "derived", "counterpart_checks": [check()]}
SAID = "bounds or design changed once after runs were seen; confirm with --fresh 8"
BY = {"fields": ["lr"], "cells": [{"at": {"lr": 0.1}, "verdict": "upheld", "checks": [check("x", 1.0, (0, 9))]}]}
OTHER_BY = {"fields": ["lr"], "cells": [BY["cells"][0] | {"checks": [check("x", 5.0, (0, 9))]}]}


@pytest.mark.parametrize(
    ("one", "other", "differs", "line"),
    [
        ({"controls": [outcome()]}, {"controls": []}, False, "adam: only in A, rejected"),
        ({"rivals": []}, {"rivals": [outcome("still", rejected=False)]}, False, "still: only in B, not rejected"),
        ({"controls": [outcome()]}, {"controls": [outcome(rejected=False)]}, True, "adam: rejected → not rejected"),
        ({"controls": [outcome()]}, {"controls": [outcome(value=14.0)]}, True, "· control adam: order: 1.4 → 14, moved"),
        (
            {"rivals": [outcome(readings=[reading()])]},
            {"rivals": [outcome(readings=[reading("slope", 3.0, (2.0, 4.0))])]},
            True,
            "· rival adam: slope: 1.02 [0.97, 1.08] → 3 [2, 4], moved",
        ),
        (
            {"controls": [outcome()]},
            {"controls": [outcome(reason="all runs: diverged")]},
            False,
            "control adam, reason: none → all runs: diverged",
        ),
        (
            {"resolution": {"scale": {"z": 1e-3}}},
            {"resolution": {"scale": {"z": 0.9}}},
            True,
            "· resolution scale z: 0.001 → 0.9, moved",
        ),
        (
            {"resolution": {"mix": {"z": 1e-3}}},
            {"resolution": {"mix": {"z": None}}},
            True,
            "· resolution mix z: 0.001 → none, moved",
        ),
        ({"resolution": {"mix": {"z": 0.0}}}, {"resolution": {"mix": {"z": 0.1}}}, True, "· resolution mix z: 0 → 0.1, moved"),
        ({"resolution": {"mix": {"z": 0.1}}}, {"resolution": {"mix": {"z": 0.15}}}, False, "· resolution mix z: 0.1 → 0.15"),
        (
            COUNTER,
            COUNTER | {"counterpart_checks": [check(passed=False)]},
            True,
            "✗ counterpart relative error: 1e-12, passed → failed",
        ),
        (COUNTER, COUNTER | {"counterpart": "other"}, False, "counterpart: derived → other"),
        ({"message": "too few runs"}, {"message": "gate not met: $x$"}, False, "message: too few runs → gate not met: x"),
        ({"looks": ""}, {"looks": SAID}, False, f"looks: none → {SAID}"),
        ({"by": BY}, {"by": OTHER_BY}, True, "✓ at lr=0.1: x: 1 → 5, moved"),
        ({"by": BY}, {}, False, "by: lr → none"),
        ({"look": 1}, {"look": 2}, False, "look: 1 → 2"),
        ({"tested": "8 seeds"}, {"tested": "some seeds"}, False, "tested: changed"),
        ({"made_from": {"runs": "a"}}, {"made_from": {"runs": "b"}}, False, "which runs were made: a → b"),
        ({"later": 1}, {"later": 2}, False, "later: 1 → 2"),  # a part of an entry that this version does not know
    ],
)
def test_what_alone_differs_is_told(tmp_path, one, other, differs, line):
    a, b = (stored(tmp_path / name, claim("toy.one", **fields)) for name, fields in (("a", one), ("b", other)))
    found = jd.diff(a, b)
    lines = str(found).splitlines()
    assert lines[3] == "toy.one" and [text.strip() for text in lines[4:-2]] == [line] and found.differs is differs
    turned = line == "adam: rejected → not rejected"
    assert lines[-1].endswith("another outcome" if turned or differs else "no number moved")
    json.dumps(found.to_json(), allow_nan=False)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"resolution": {"mix": {"z": 0.1}}}, {"resolution": {"mix": {"z": 0.106}}}),  # what bisection leaves open
        ({"resolution": {"mix": {"z": None}}}, {"resolution": {"mix": {}}}),
        ({"controls": [outcome()]}, {"controls": [outcome(value=1.4 + 1e-7)]}),
        ({"command": "jaxdyn verify a"}, {"command": "jaxdyn verify b"}),
        ({}, {"looks": SAID}),  # results of an earlier version lack it
    ],
)
def test_what_is_no_difference(compared, one, other):
    assert compared(one, other) is None


def leaves(value, path=()):
    """The paths of all leaves of JSON; of pairs and lists of text, only whole."""
    if isinstance(value, dict) and value:
        for key in value:
            yield from leaves(value[key], (*path, key))
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        for i, one in enumerate(value):
            yield from leaves(one, (*path, i))
    else:
        yield path


def other_leaf(value, where):
    """Another value of the same kind."""
    if value is None and ("resolution" in where or where[-1] == "value"):
        return 0.5
    if value is None and where[-1] == "bound":
        return [0.5, None]
    if isinstance(value, bool):
        return not value
    if isinstance(value, list):
        return [10 * v + 7 if isinstance(v, int | float) else v for v in value] if value else ["more"]
    return 10 * value + 7 if isinstance(value, int | float) else "more" if value is None else f"{value} more"


def test_no_leaf_of_an_entry_changes_unseen(tmp_path):
    """Each leaf of real entries, changed alone; but for what follows from the rest, where it was made, times, and diagnostics."""
    untold = {
        *LEFT_OUT,
        "interval",
        "worst",
        "needed",
        "level",
        "trend",
        "gate",
        "apart",
        "keys",
        "seeds",
        "run_seconds",
        "cpu_seconds",
    }
    untold |= {"compile_seconds", *MADE_WITH}
    seen = set()
    for result in jd.verify_many(["toy.decay", "toy.decay_as_printed", "toy.open"], load=[TOYS]):
        whole = result.to_json() | {"looks": "once"}
        a = stored(tmp_path / result.claim.id, whole)
        for path in leaves(whole):
            empty = functools.reduce(lambda part, key: part[key], path, whole) in ([], {})
            if path == ("id",) or untold & set(path) or empty:
                continue
            changed = copy.deepcopy(whole)
            part = functools.reduce(lambda part, key: part[key], path[:-1], changed)
            part[path[-1]] = other_leaf(part[path[-1]], path)
            (a / "b.json").write_text(json.dumps({"claims": [changed]}), encoding="utf-8")
            assert not jd.diff(a, a / "b.json").empty, path
            seen.add(path)
    assert {path[0] for path in seen} >= {"checks", "readings", "controls", "counterpart_checks", "resolution", "looks"}


def test_hashes_made_with_other_versions_are_not_compared(compared):
    made = {"jax": "1", "python": "3", "platform": "cpu", "code": "c", "programs": ["cpu-aa"]}
    assert compared({"made_from": made, "digest": None}, {"made_from": made | {"jax": "2", "code": "d"}, "digest": "d"}) is None


@pytest.mark.parametrize(
    ("one", "other"),
    [((0.1, 0.0), (0.5, 0.0)), ((2.0, 0.0), (2.5, 0.3)), ((0.0, 0.0), (9.0, 9.0))],
    ids=["short", "near", "stored"],
)
def test_times_that_tell_nothing(compared, one, other):
    names = ("compile_seconds", "run_seconds")
    assert compared(dict(zip(names, one, strict=True)), dict(zip(names, other, strict=True))) is None


def test_the_calls_as_a_whole(tmp_path):
    costs = [{"runs": 8, "cpu_seconds": 10.0}]
    made = {"date": "2026-01-01", "commit": "aa", "jax": "1", "device": "cpu"}
    a = stored(tmp_path / "a", claim("toy.one"), claim("toy.two"), environment=made, seconds=10.0, costs=costs)
    made = made | {"date": "2026-01-02", "commit": "bb", "numpy": "2"}
    b = stored(
        tmp_path / "b", claim("toy.three"), claim("toy.one"), environment=made, seconds=30.0, costs=costs, unfinished="2 of 9"
    )
    found = jd.diff(str(a), b)
    assert (found.compared, found.only_a, found.only_b, found.claims) == (1, ("toy.two",), ("toy.three",), ())
    assert found.environment == {"commit": ("aa", "bb")} and found.seconds == {"wall": (10.0, 30.0)} and not found.differs
    assert found.a["date"] == "2026-01-01" and found.b["unfinished"] == "2 of 9"
    text = str(found).splitlines()
    assert text[1].endswith("b (2026-01-02, commit bb, 2 claims, unfinished: 2 of 9)")
    assert text[3:] == [
        "only in A: toy.two",
        "only in B: toy.three",
        "commit: aa → bb",
        "wall time: 10 s → 30 s (× 3)",
        "1 claim in both: no verdict differs, no number moved",
    ]
    json.dumps(found.to_json(), allow_nan=False)


def test_nothing_but_the_time_differs(tmp_path):
    costs = [{"runs": 8, "cpu_seconds": 10.0}]
    a, b, c = (
        stored(tmp_path / f"{s}", claim("toy.one"), seconds=s, costs=[cost | {"runs": n} for cost in costs])
        for s, n in ((10.0, 8), (2.0, 8), (1.0, 0))
    )
    assert str(jd.diff(a, b)) == "Nothing differs in 1 claim but the wall time, 10.0 s → 2.0 s (× 0.2)."
    assert str(jd.diff(a, c)) == "Nothing differs in 1 claim.", "all runs of the second call were stored"


def test_no_claim_in_common_is_wrong_use(tmp_path):
    a, b = stored(tmp_path / "a", claim("toy.one")), stored(tmp_path / "b", claim("toy.two"))
    with pytest.raises(jd.UsageError, match="have no claim in common: there is nothing to compare"):
        jd.diff(a, b)


@pytest.mark.parametrize("given", [3, None, [], ["x"], {}])
def test_what_is_no_result_is_refused(tmp_path, given):
    with pytest.raises(jd.UsageError, match="b=.* is not allowed: b is the --out of `jaxdyn verify`, or what jd.verify"):
        jd.diff(stored(tmp_path / "a", claim("toy.one")), given)


@pytest.mark.parametrize(
    "checks", [3, [3], [{"name": 1, "value": 1.0}], [check(value="x")], [check(bound=(1, 2, 3))], [check(bound="no")]]
)
def test_a_damaged_entry_is_named(compared, checks):
    with pytest.raises(jd.UsageError, match="the entry of toy.one is damaged"):
        compared({}, {"checks": checks})


def test_a_claim_that_is_named_twice(tmp_path):
    a = stored(tmp_path / "a", claim("toy.one"), claim("toy.one"))
    with pytest.raises(jd.UsageError, match="name toy.one twice"):
        jd.diff(a, a)
