"""Sizes of wide networks from Gram matrices."""

import jax.numpy as jnp
import numpy as np

from jaxdyn.theories.li2.dynamics import ridge
from jaxdyn.theories.li2.lazy import lemma1_width
from tests.theories.li2.helpers import centred, drawn


def test_sizes_of_wide_networks_are_those_of_the_matrices(x64):
    f, y, _ = drawn(5, (9, 20))
    signal = centred(y) @ centred(y).T
    g, early = np.asarray(ridge.fixed(f, y, 0.7)), np.asarray(ridge.early(f, y))
    expected = np.sum(g * early), np.linalg.norm(g), np.linalg.norm(early)
    found = lemma1_width.sizes(jnp.asarray(centred(f) @ centred(f).T), jnp.asarray(signal), 0.7)
    np.testing.assert_allclose(found, expected, rtol=1e-11)
