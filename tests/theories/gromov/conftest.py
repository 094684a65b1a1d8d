"""Runs that the tests of gromov's claims share."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.gromov import constructed


@pytest.fixture(scope="session")
def gromov_runs():
    """Small constructed networks of three moduli."""
    return jd.sweep(constructed.trial, jd.grid(constructed.Constructed, moduli=(11, 17, 23), step=16, blocks=9), seeds=96)
