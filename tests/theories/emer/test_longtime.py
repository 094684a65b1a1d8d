"""Flows to t = 1e12 with a closed form: logarithmic growth, and a limit."""

import jax.numpy as jnp
import numpy as np

from jaxdyn.status import OK
from jaxdyn.theories.emer import longtime


def test_growth_and_limit(x64):
    def field(t, y, rate):
        return {"grows": rate * jnp.exp(-y["grows"]), "settles": rate * (1 - jnp.exp(y["settles"] - 2))}

    ys, status = longtime.solve(field, {"grows": jnp.zeros(3), "settles": jnp.float64(0)}, jnp.float64(0.5))
    assert int(status) == OK and ys["grows"].shape == (13, 3) and longtime.TIMES[-1] == 1e12
    np.testing.assert_allclose(ys["grows"][:, 1], np.log1p(0.5 * np.asarray(longtime.TIMES)), atol=2e-4)
    np.testing.assert_allclose(ys["settles"][4:], 2.0, atol=1e-10)
    assert longtime.DECADE == np.log(10)
