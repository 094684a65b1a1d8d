"""Judges of the claims on one linear node, on the smallest grids that they can judge."""

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.theories.joma.linear import erf
from tests.theories.joma.helpers import distorted, upheld

JUDGES = {
    "erf": (erf.erf_judge, ["ratio", "trained_ratio"]),
    "blow-up": (erf.blow_up_judge, ["escape", "limit", "path"]),
    "sparse": (erf.sparse_judge, ["entropy"]),
    "clock": (erf.clock_judge, ["ratio"]),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", JUDGES)
def test_derived_form_is_upheld_and_a_distortion_rejected(linear_runs, name):
    judge, variables = JUDGES[name]
    main = linear_runs.sel(form="derived")
    assert int(linear_runs.status.max()) == 0
    assert upheld(judge, main), judge(main)
    for variable in variables:
        for factor in (0.9, 1.1):
            assert not upheld(judge, distorted(main, variable, factor))


def test_printed_form_is_refuted(linear_runs):
    assert not upheld(erf.erf_judge, linear_runs.sel(form="printed"))


def test_other_laws_are_rejected(linear_runs):
    main = linear_runs.sel(form="derived")
    for rival in erf.LAWS.values():
        assert not upheld(erf.erf_judge, rival(main))
    assert not upheld(erf.blow_up_judge, jd.scaled(predicted_escape=1 / 0.9)(main))
    assert not upheld(erf.blow_up_judge, jd.swap(predicted_path="unattended")(main))


def test_blow_up_time_of_zero_start(linear_runs):
    """The constant of the quick runs is 2, that of these is 1."""
    main = linear_runs.sel(form="derived")
    np.testing.assert_allclose(erf.FROM_ZERO(main).predicted_escape, erf.NORMALIZER * main.predicted_escape, rtol=1e-6)


def test_the_rival_of_width_two_is_the_printed_law(linear_runs):
    """From zero start the rival and the printed form of the trial are the same numbers."""
    got = erf.LAWS["erf(v/2)"](linear_runs.sel(form="derived")).predicted_ratio
    np.testing.assert_allclose(
        got.isel(time=slice(-1)), linear_runs.predicted_ratio.sel(form="printed").isel(time=slice(-1)), rtol=1e-8
    )


def test_rising_entropy_is_rejected(linear_runs):
    main = linear_runs.sel(form="derived")
    bumped = main.measured_entropy.copy()
    bumped[..., 5] = bumped[..., 4] + 1e-6
    assert not upheld(erf.sparse_judge, main.assign(measured_entropy=bumped))


def test_order_needs_three_steps(linear_runs):
    with pytest.raises(jd.Inconclusive):
        erf.erf_judge(linear_runs.sel(form="derived").isel(step=slice(2)))
