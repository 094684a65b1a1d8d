"""Top-down modulation: residuals on S3, the judges on small runs, irreps that are given, settings that are refused."""

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.theories.li2.interaction import thm7_modulation
from jaxdyn.theories.li2.interaction.thm7_modulation import CLAIMS, Learned, trial
from tests.theories.li2.helpers import Small

SMALL = Small({trial: jd.grid(Learned, groups=("S3",), steps=150)})


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda c: c.id)
def test_a_judge_upholds_what_is_right_and_refutes_what_is_printed(claim):
    SMALL.upholds_what_is_right(claim)


@pytest.mark.parametrize("claim", [c for c in CLAIMS if c.expected == "upheld"], ids=lambda c: c.id)
def test_a_judge_notices_a_tenth_and_every_breach(claim):
    SMALL.notices_a_tenth_and_every_breach(claim)


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda c: c.id)
def test_figures_can_be_drawn(claim):
    SMALL.draws(claim)


def test_the_residual_of_a_learned_sign_on_s3():
    ds = SMALL.runs(thm7_modulation.trial)
    sign = np.array([1 if np.linalg.det(np.eye(3)[list(p)]) > 0 else -1 for p in
                     [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]])  # fmt: skip
    left = np.eye(6) - 1 / 6 - np.outer(sign, sign) / 6
    np.testing.assert_allclose(ds.measured_residual.isel(seed=0, learned=0, group=0, missing_dims="ignore"), left, atol=1e-12)
    gap = abs(ds.predicted_residual.sel(form="printed") - ds.predicted_residual.sel(form="derived")).isel(seed=0)
    np.testing.assert_allclose(gap.max(), 2 / 3, rtol=1e-9)


def test_irreps_that_are_given_are_those_held():
    default, given = Learned(groups=("7", "A4")), Learned(groups=("7", "A4"), irreps=("1", "0"))
    assert default.learned_irreps(0) == [0, 2] and given.learned_irreps(1) == [0]
    ds = jd.sweep(trial, jd.grid(Learned, groups=("S3",), irreps=("1",), steps=150), 2).sel(form="derived", drop=True)
    sign = np.array([1, -1, -1, 1, 1, -1])  # of the permutations in order: the sign is left to learn
    np.testing.assert_allclose(ds.measured_residual.isel(seed=0, group=0), np.outer(sign, sign) / 6, atol=1e-12)
    assert all(check.passed for check in thm7_modulation.judge(ds))


def test_irreps_held_by_default_are_every_second_one():
    default, given = (jd.sweep(trial, jd.grid(Learned, groups=("S3",), irreps=i, steps=20), 1) for i in (None, ("0",)))
    np.testing.assert_array_equal(default.measured_residual, given.measured_residual)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"groups": ("2",)}, "not allowed"),
        ({"groups": ()}, "at least one group"),
        ({"groups": ("S3",), "irreps": ("0+1",)}, "some are held"),
        ({"groups": ("S3",), "irreps": ("2",)}, "S3 has 2 irreps"),
        ({"groups": ("S3",), "irreps": ("x",)}, "S3 has 2 irreps"),
        ({"groups": ("S3",), "irreps": ("0", "1")}, "one entry for each group"),
    ],
)
def test_impossible_settings_are_refused(fields, words):
    with pytest.raises(jd.UsageError, match=words):
        jd.grid(Learned, **fields)
