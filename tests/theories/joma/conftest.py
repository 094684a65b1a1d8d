"""Runs that several test files of JoMA share."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.joma.linear.training import LinearLayer, trial
from jaxdyn.theories.joma.nonlinear import fig4_bounce


@pytest.fixture(scope="session")
def linear_runs():
    """Layers with two linear nodes, by flow and by descent at three step sizes."""
    grid = jd.grid(LinearLayer, tokens=4, nodes=2, samples=8, boost=[1.0, 1.5], step=[8e-3, 4e-3, 2e-3])
    return jd.sweep(trial, grid, seeds=2)


@pytest.fixture(scope="session")
def bounce_runs():
    """Runs of the entropy bounce."""
    grid = jd.grid(
        fig4_bounce.Bounce,
        draw=["fig4"],
        logits=["law", "trained", "softmax"],
        drive=["critical", "linear"],
        eta=[0.02, 0.01, 0.005],
    )
    return jd.sweep(fig4_bounce.trial, grid, 2)  # the same twice: an interval of a mean needs two
