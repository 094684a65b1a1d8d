"""Means that nodes leave in the output, on exact solutions and against the loss."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.data.abelian import parse
from jaxdyn.theories.cogo import bias, classify, model
from jaxdyn.theories.cogo.dynamics import spectrum
from tests.theories.cogo.oracle import composed


@pytest.mark.parametrize("name", ["7", "8"])
def test_means_of_all_nodes_are_those_of_the_loss(x64, name):
    group = parse(name)
    w = jax.random.normal(jax.random.key(1), (3, group.order, 9), jnp.float64)

    @jax.jit
    def both(w):
        z = spectrum.transform(model.to_scale(w, group, "paper"), group)
        s = spectrum.sums(spectrum.autopotentials(z), group)
        whole = spectrum.potentials(z)[0, 0] + (s[0, 0] + s[1, 0]) / 2
        return bias.means(classify.nodes(w, group, 0.6), group), whole

    parts, whole = both(w)
    np.testing.assert_allclose(parts.sum(0), whole[group.pairs], rtol=1e-10)


def test_without_carriers_the_loss_is_that_of_blocks_of_order_4(x64):
    group = parse("11")
    w = composed(group, 1)

    @jax.jit
    def cut(w):
        nodes = classify.nodes(w, group)
        bare = bias.ablated(nodes, group, bias.node_orders(nodes) == 6)
        return bare, model.loss(bare, group, "code")

    bare, loss = cut(w)
    assert loss == pytest.approx(16 / 11, rel=1e-12)
    assert jnp.sum(jnp.any(jnp.abs(bare - w) > 1e-9, (0, 1))) == 6
