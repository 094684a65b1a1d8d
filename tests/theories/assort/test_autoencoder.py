"""The trial of the autoencoder observes training, and both ways to move the codebook."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.assort.autoencoder import trial
from jaxdyn.theories.assort.coder import Coding


@pytest.mark.slow  # a verification runs the same trial, at its full size
def test_training_helps_and_names_of_codes_matter():
    ds = jd.sweep(trial, jd.grid(Coding, book=["gradient", "averages"], height=2, codes=30, vq_steps=200.0), 2)
    assert int(ds.status.max()) == 0
    assert bool((ds.measured_restored > 0.2 + ds.start_restored).all())
    assert bool((ds.measured_restored > 0.2 + ds.mixed).all())
    assert bool((ds.measured_perplexity > 8).all())
