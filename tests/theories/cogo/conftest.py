"""Runs that several tests of cogo share."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.cogo.potentials import partial_minimal_order
from jaxdyn.theories.cogo.trained import decomposed
from jaxdyn.theories.cogo.training import Training


@pytest.fixture(scope="session")
def trained_runs():
    """Networks on seven elements, hardly trained."""
    grid = jd.grid(Training, decay=[5e-5, 5e-4], group="7", hidden=15, epochs=40, every=20)
    return jd.sweep(decomposed.trial, grid, 2)


@pytest.fixture(scope="session")
def searched():
    """The search for blocks of few nodes."""
    return jd.sweep(partial_minimal_order.order_trial, jd.grid(partial_minimal_order.Search), seeds=1)
