"""Energies of Fourier and of memorising nodes by the definition in numpy, and what is read of them."""

import jax
import numpy as np
import pytest
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn.data.groups import parse
from jaxdyn.theories.li2.features import boundary_energy
from tests.theories.li2.energy_oracle import dense, oracle
from tests.theories.li2.helpers import opponents, read, refused

(CLAIM,) = boundary_energy.CLAIMS
SMALL = jd.grid(boundary_energy.Boundary, order=23, pairs=110, nodes=4)


def test_waves_have_norm_1_and_on_all_pairs_the_energy_of_a_maximum():
    with jax.enable_x64(True):
        w = np.asarray(boundary_energy.waves(jax.random.key(0), 7, 5))
    np.testing.assert_allclose(np.linalg.norm(w, axis=0), 1)
    np.testing.assert_allclose(oracle(w, *dense(parse("7")), "square")[0], 7 / 4)


def test_memorising_nodes_are_higher_on_training_pairs_and_lower_on_all():
    ds = jd.sweep(boundary_energy.trial, SMALL, seeds=6)
    assert (ds.measured_memory.mean("node") > 1.5 * ds.measured_fourier.mean("node")).all()
    assert (ds.memory_whole < ds.fourier_whole).all() and (ds.largest > 0.4).all()
    found = read(CLAIM, ds)
    assert found[boundary_energy.WHOLE].value == pytest.approx(23 / 4)
    assert all(refused(CLAIM, ds, rival) for rival in opponents(CLAIM).values())
    fig = Figure()
    CLAIM.plot(ds, fig)
    assert fig.axes[0].has_data()


def test_more_pairs_than_there_are_are_refused():
    with pytest.raises(jd.UsageError, match="pairs is at most 25"):
        boundary_energy.Boundary(order=5, pairs=26)
