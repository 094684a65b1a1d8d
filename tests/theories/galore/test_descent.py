"""Problems are what their names say."""

import jax
import numpy as np
import pytest

from jaxdyn import metrics
from jaxdyn.errors import UsageError
from jaxdyn.theories.galore.descent import Quadratic, descend, problem, ranks
from jaxdyn.theories.galore.dynamics import decay

PROBLEM, MODES, LOWEST = map(jax.jit, (problem, decay.modes, decay.lowest))


@pytest.mark.slow
def test_entries_have_the_eigenvalues_that_are_stated(x64):
    b, c, g = PROBLEM(Quadratic(kind="entries"), jax.random.key(0))
    modes = MODES(b, c)
    np.testing.assert_allclose(modes.values[:2], [0.05, 0.5], atol=1e-10)
    assert np.all((modes.values[2:-4] > 0.79) & (modes.values[2:-4] < 1.21)) and np.all(abs(modes.values[-4:] - 3) < 0.031)
    kept, _, second = LOWEST(modes, g)
    assert np.linalg.matrix_rank(kept, tol=1e-10) == 1 and abs(second - 0.5) < 1e-10
    np.testing.assert_allclose(kept @ modes.matrices[1].T, 0, atol=1e-10)  # neither factor is shared
    np.testing.assert_allclose(kept.T @ modes.matrices[1], 0, atol=1e-10)


def test_pairs_are_turned_counterexamples(x64):
    for flip, sign in ((0.0, 1), (1.0, -1)):
        b, c, g = PROBLEM(Quadratic(kind="pair", flip=flip), jax.random.key(0))
        modes = MODES(b, c)
        kept, _, _ = LOWEST(modes, g)
        s = np.linalg.svd(kept)[1]
        assert 0.15 < s[1] / s[0] < 0.35
        u, _, vt = np.linalg.svd(kept)
        assert np.sign(u[:, 0] @ (g - kept) @ vt[0]) == -sign  # negative: the spectral norm is below that of the part


@pytest.mark.slow
def test_a_gradient_that_vanishes_altogether_has_a_rank(x64):
    """At some seeds rounding makes the decayed gradient exactly zero, on some machines."""
    run = jax.jit(descend)(Quadratic(kind="pair", step=0.4), jax.random.key(0))
    found = ranks(run._replace(path=run.path.at[-1].set(0.0)))
    np.testing.assert_array_equal(found[:-1], metrics.stable_rank(run.path[:-1]))
    assert found[-1] == 1


def test_wrong_settings_are_refused():
    with pytest.raises(UsageError, match="not allowed"):
        Quadratic(kind="other")
