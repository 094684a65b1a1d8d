"""Judges of the order of kinds, on made-up runs."""

import matplotlib
import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

from jaxdyn.errors import Inconclusive
from jaxdyn.stats import wilson
from jaxdyn.theories.assort.claims.order import CLAIMS, LABELS, judge_order, judge_used, kinds_as, plot, right
from jaxdyn.theories.assort.trials.order import KINDS

matplotlib.use("Agg")
SHARES = {"solution": 0.5, "text": 0.95, "all": 0.75, "curriculum": 0.625, "random": 0.875, "permuted": 0.9375}
USED = {"solution": 0.0, "text": 0.0, "all": 4.0, "curriculum": 4.0, "random": 2.0, "permuted": 0.0}


def made_up() -> xr.Dataset:
    """Three runs of each kind, 128 problems."""
    share = np.array([[SHARES[k] + d for d in (-1 / 64, 0, 1 / 64)] for k in KINDS])
    used = np.array([[USED[k]] * 3 for k in KINDS]) + [0, 0.01, -0.01] * np.array([[USED[k] > 0] for k in KINDS])
    both = np.stack([np.zeros_like(share), share / 2, share], -1)
    dims = ("kind", "seed", "step")
    data = {
        "measured_accuracy": (dims, both),
        "measured_used": (dims, np.stack([used] * 3, -1)),
        "measured_length": (dims, np.stack([13 - used] * 3, -1)),
        "asked": (("kind", "seed"), np.full((6, 3), 128.0)),
        "restored": (("kind", "seed"), np.full((6, 3), 0.95)),
        "status": (("kind", "seed"), np.zeros((6, 3), int)),
    }
    return xr.Dataset(data, {"kind": list(KINDS), "seed": range(3)})


def test_the_share_is_that_of_all_problems():
    value, ends = right(made_up(), "all")
    assert value == pytest.approx(0.75) and ends == wilson(288, 384)


def test_judges_read_the_end_and_the_course():
    checks = {c.name: c for c in judge_order(made_up())}
    assert checks["right solutions with the trace as text, in all runs"].passed
    for kind in ("text", "all", "curriculum", "permuted"):
        gap = SHARES["random"] - SHARES[kind]
        assert checks[f"at the end, random m less {LABELS[kind]}"].value == pytest.approx(gap)
        assert checks[f"along training, random m less {LABELS[kind]}"].value == pytest.approx(0.75 * gap)  # half, then all of it
    for kind in ("solution", "all", "curriculum", "random", "permuted"):
        assert checks[f"right solutions, {LABELS[kind]}"].value == pytest.approx(SHARES[kind])
    used = {c.name: c.value for c in judge_used(made_up())}
    assert used["codes, random m, of those of all the trace"] == pytest.approx(0.5)
    assert used["codes, random m, codes permuted"] == 0 and used["tokens that codes save"] == pytest.approx(2)


def test_kinds_take_the_values_of_others():
    ds = made_up()
    other = kinds_as("measured_accuracy", text="solution", solution="text", all=0.25)(ds)
    for kind, of in (("text", "solution"), ("solution", "text"), ("random", "random")):
        np.testing.assert_array_equal(other.measured_accuracy.sel(kind=kind), ds.measured_accuracy.sel(kind=of))
    assert float(other.measured_accuracy.sel(kind="all").max()) == 0.25
    np.testing.assert_array_equal(other.measured_used, ds.measured_used)


def test_a_network_that_learned_nothing_fails_the_gate():
    bad = made_up()
    bad["measured_accuracy"] = bad.measured_accuracy * 0.5
    assert [c.passed for c in judge_order(bad) if c.gate] == [False, True]


def test_codes_that_say_little_fail_the_gate():
    bad = made_up()
    bad["restored"] = bad.restored * 0.8
    for judge in (judge_order, judge_used):
        assert [c.passed for c in judge(bad) if c.gate] == [True, False]


def test_all_kinds_are_needed():
    with pytest.raises(Inconclusive, match="random"):
        judge_order(made_up().drop_sel(kind="random"))


def test_what_was_found_names_checks_and_the_figure_has_three_panels():
    for claim, judge in zip(CLAIMS, (judge_order, judge_used), strict=True):
        assert set(claim.found) <= {c.name for c in judge(made_up())}
    fig = Figure()
    plot(made_up(), fig)
    assert len(fig.axes) == 3
