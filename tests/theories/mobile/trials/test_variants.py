"""The trial of variants: its records, and what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.errors import UsageError
from jaxdyn.theories.mobile.trials.variants import Variants, trial

SMALL = {"batch": 2, "length": 8, "steps": 20, "records": 2, "windows": 2, "width": 8, "hidden": 6, "layers": 2, "heads": 2}


@pytest.mark.slow
def test_a_trial_learns_and_counts():
    traced = []

    @jax.jit
    def run(s):
        traced.append(s)
        return trial(s, jax.random.key(0))

    cells = jd.grid(Variants, variant=["base", "one", "deep"], lr=2e-2, **SMALL).cells()
    with jax.enable_x64(True):
        base, one, deep = (jax.device_get(run(s)) for s in cells)
    assert len(traced) == 1
    for out in (base, one, deep):
        curve = out.recorded["curve"].value
        assert curve.shape == (3, 2) and np.all(curve[-1] < curve[0] - 0.2)
        np.testing.assert_array_equal(out.measured["loss"].value, curve[-1, 1])
        np.testing.assert_array_equal(out.measured["bytes"].value, out.predicted["bytes"].value)
    assert one.measured["bytes"].value == base.measured["bytes"].value / 2
    assert deep.measured["bytes"].value == 2 * base.measured["bytes"].value
    assert deep.recorded["weights"].value > base.recorded["weights"].value > one.recorded["weights"].value
    assert base.measured["loss"].value.dtype == jnp.float32


@pytest.mark.parametrize(("fields", "why"), [({"heads": 1}, "heads is even"), ({"layers": 1}, "layers is at least 2")])
def test_settings_that_are_not_allowed(fields, why):
    with pytest.raises(UsageError, match=why):
        jd.grid(Variants, **SMALL | fields)
