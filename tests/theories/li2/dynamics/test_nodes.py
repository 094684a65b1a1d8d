"""Independent nodes against autodiff of what they climb, and the maxima they reach."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn.data.groups import parse
from jaxdyn.data.irreps import decompose
from jaxdyn.theories.li2 import model
from jaxdyn.theories.li2.dynamics import nodes

GROUP = parse("5")
PAIRS = model.pairs(5)


def start(known=None):
    known = jnp.ones(25, bool) if known is None else known
    return model.init(jax.random.key(1), 5, 6), nodes.aims(model.products(GROUP, PAIRS), known, 5)


def test_targets_are_centred_over_the_known_pairs():
    known = jnp.arange(25) % 3 > 0
    y = np.asarray(start(known)[1])
    np.testing.assert_allclose(y.sum(0), 0, atol=1e-6)
    assert np.all(y[~np.asarray(known)] == 0)


def test_velocities_are_the_gradient_of_the_overlap_with_the_targets():
    p, y = start()
    slope = jax.grad(lambda p: jnp.sum(y * model.predict(p, PAIRS, "square")))(p)
    for mine, theirs in zip(nodes.pulls(p, y, "square"), slope, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-6)


def test_every_node_ends_in_one_irrep():
    p, y = start()
    irreps = decompose(GROUP)
    for form in nodes.FORMS:
        share = nodes.shares(nodes.follow(p, y, form, steps=800), irreps)
        assert np.median(np.max(share, 1)) > 0.95
        np.testing.assert_allclose(np.sum(share, 1), 1, rtol=1e-4)
