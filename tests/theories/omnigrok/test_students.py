"""Students on spheres and with decay, and what their setting refuses."""

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.theories.omnigrok.students import Student, trial


@pytest.fixture(scope="module")
def tiny():
    grid = jd.grid(Student, decays=(1.0, 0.5), horizon=0.5, settle=200, hidden=8, samples=30, tests=50)
    return jd.sweep(trial, grid, seeds=2)


def test_spheres_hold_their_norm_and_decay_follows_its_law(tiny):
    start = tiny.sphere_norm / tiny.sphere_norm.sel(start=1.0)
    np.testing.assert_allclose(start, np.broadcast_to(start.start, start.shape), rtol=1e-4)
    assert set(tiny.sizes) >= {"seed", "decay", "start", "student", "record"} and tiny.sizes["student"] == 4
    np.testing.assert_allclose(tiny.steps.isel(student=0, record=-1), 500)
    product = tiny.predicted_delay * tiny.decay
    np.testing.assert_allclose(product.isel(decay=0), product.isel(decay=1), rtol=1e-5)
    assert float(tiny.fit_curve.isel(record=-1).max()) < float(tiny.fit_curve.isel(record=0).min())


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"decays": (0.1, 0.2)}, "positive and falling"),
        ({"decays": (0.1,)}, "two or more"),
    ],
)
def test_settings_refuse(fields, words):
    with pytest.raises(jd.UsageError, match=f"{next(iter(fields))}=.* not allowed: .*{words}"):
        Student(**fields)
