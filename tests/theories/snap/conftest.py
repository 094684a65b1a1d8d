"""Runs that several test files judge."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.snap import population, random_laws
from jaxdyn.theories.snap.gradient import frozen_decoder
from jaxdyn.theories.snap.scan import random_laws_flow
from jaxdyn.theories.snap.snapping import common_pair, common_pair_flow


@pytest.fixture(scope="session")
def frozen_runs():
    """Frozen inputs with and without overlap."""
    grid = jd.grid(frozen_decoder.Frozen, eta=[0.5, 2.0], common=[0.0, 0.5], tokens=16, classes=3, distinct=2)
    return jd.sweep(frozen_decoder.trial, grid, seeds=2)


@pytest.fixture(scope="session")
def law_runs():
    """The reduced dynamics on random laws, from a start that is tilted, and on the table's laws."""
    base = jd.grid(random_laws.Laws, per_query=[1.0, 2.0], eta_z=[1000.0], classes=4, distinct=3)
    table = {"laws": "table", "size": 6.0, "eta_z": 1.0, "horizon": 20.0}
    worlds = {"main": {}, "tilt": {"tilt": 2.0}, "table": table}
    return {name: jd.sweep(random_laws.trial, base.replace(**fields), 2) for name, fields in worlds.items()}


@pytest.fixture(scope="session")
def pair_runs():
    """The reduced dynamics with one common and one distinct token a class, and two in which the law's assumptions are broken."""
    base = jd.grid(common_pair.Pair, per_query=[1.0, 2.0, 4.0], odds=[0.05])
    breaches = {"main": {}, "steady": {"steady": 1.0}, "both": {"coupling": 1.0}}
    return {name: jd.sweep(common_pair.trial, base.replace(**fields), 1) for name, fields in breaches.items()}


@pytest.fixture(scope="session")
def flow_runs():
    """The network's own flow to the height at which gains are read off, at slow rates, and to a height that it does not reach."""
    grid = jd.grid(population.Population, ratio=[0.1, 1.0, 10.0], horizon=1e4)
    breaches = {"main": {}, "slow": {"slow": 100.0}, "never": {"height": 50.0}}
    return {name: jd.sweep(population.trial, grid.replace(**fields), 1) for name, fields in breaches.items()}


@pytest.fixture(scope="session")
def laws_flow_runs():
    """The network's own flow on random laws, with one common token and with two, and with each assumption broken."""
    base = jd.grid(random_laws_flow.LawsFlow, ratio=[0.1, 100.0, 1000.0], common=0.1, second=0.05, classes=3)
    breaches = {"main": {}, "alone": {"second": 0.0}, "unequal": {"second": 0.1, "unequal": 1.5}}
    return {name: jd.sweep(random_laws_flow.trial, base.replace(**fields), 8) for name, fields in breaches.items()}


@pytest.fixture(scope="session")
def pair_flow_runs():
    """The network's own flow with one common and one distinct token a class."""
    base = jd.grid(common_pair_flow.PairFlow, ratio=[1e-3, 2e-3, 10.0], odds=[0.02, 0.05], per_query=[1.0, 2.0])
    return jd.sweep(common_pair_flow.trial, base, 1)
