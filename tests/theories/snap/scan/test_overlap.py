"""The overlap of the synthetic data against NumPy's singular values."""

import jax
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.data import classes
from jaxdyn.data.classes import Vocabulary
from jaxdyn.theories.snap.scan import overlap


@pytest.mark.parametrize(("k", "weight"), [(2, 1.0), (6, 0.3), (20, 0.01)])
def test_overlap_is_the_largest_singular_value(x64, k, weight):
    v = Vocabulary(k)
    p = np.asarray(jax.jit(lambda: classes.laws(v, classes.law(v, weight)))())
    f = p / np.linalg.norm(p, axis=1, keepdims=True)
    expected = k * np.linalg.norm(f @ f.T - np.eye(k), 2)
    run = jax.jit(overlap.overlap_trial)(overlap.Overlap(number=float(k), weight=weight), jax.random.key(0))
    assert float(run.measured["overlap"].value) == pytest.approx(expected, rel=1e-12)
    assert float(run.predicted["overlap"].value) == pytest.approx(expected, rel=1e-12)


def test_parts_of_classes_are_refused():
    with pytest.raises(jd.UsageError, match="number=2.5 is not allowed: number is a whole number"):
        overlap.Overlap(number=2.5)
