"""The claims come out as expected, with all their controls and rivals."""

import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.theories.ih.claims import phases

STEPS = 20


def made(late=0):
    """Sixteen runs that pass counts of tokens and form the circuit, but for as many that are late."""
    formed = (np.arange(16) >= late)[:, None]
    step = np.arange(STEPS + 1)

    def curve(first, then, late):
        end = np.where(formed, then, late)
        return ("seed", "step"), np.where(step < 8, first, end) * (1 + 0.01 * np.cos(np.arange(16)))[:, None]

    return xr.Dataset(
        {
            "measured_from_unigram": (("seed", "step"), curve(0.03, 0.1, 0.04)[1] + 0.2 * (step == 0)),
            "from_uniform": curve(0.08, 0.2, 0.08),
            "measured_from_bigram": curve(0.1, 0.03, 0.1),
            "measured_loss": curve(1.0, 0.92, 0.99),
            "measured_before": curve(0.04, 0.88, 0.3),
            "measured_induced": curve(0.4, 0.88, 0.45),
            "unigram_loss": ("seed", np.full(16, 1.0)),
            "bigram_loss": ("seed", np.full(16, 0.9)),
        }
    )


def passed(checks):
    return [c.passed for c in checks]


@pytest.mark.parametrize("late", [0, 1, 2, 4])
def test_a_quarter_of_the_runs_may_be_late(late):
    ds = made(late)
    assert passed(phases.judge_phases(ds)) == [True] * 3
    assert passed(phases.judge_circuit(ds)) == [True] * 2


def test_if_half_of_the_runs_are_late_it_is_undecided_and_if_all_are_it_is_refuted():
    assert passed(phases.judge_phases(made(8)))[2] is None and passed(phases.judge_circuit(made(8))) == [None] * 2
    assert passed(phases.judge_phases(made(16)))[2] is False and passed(phases.judge_circuit(made(16))) == [False] * 2


def test_nothing_moves_is_rejected_by_every_check_of_the_circuit():
    assert passed(phases.judge_circuit(phases.still(made()))) == [False] * 2
    assert passed(phases.judge_phases(phases.still(made())))[0] is False


@pytest.mark.slow  # a verification judges the same runs
def test_verdicts():
    results = jd.verify_many(list(phases.CLAIMS))
    assert {r.claim.id: r.verdict for r in results} == {c.id: c.expected for c in phases.CLAIMS}
