"""Orders of the batches."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn.theories.cal.trials import shuffle


def test_batches_come_in_every_order(x64):
    def draw(epoch, reverse, cyclic):
        return shuffle.batch_order(jax.random.key(0), epoch, 3, reverse, cyclic)

    draws = jax.jit(jax.vmap(draw, (0, None, None)))
    forward, back, cyclic = (np.asarray(draws(jnp.arange(60), *flags)) for flags in ((False, False), (True, False), (True, True)))
    assert len({tuple(o) for o in forward}) == 6
    assert np.array_equal(forward[:, ::-1], back) and np.all(cyclic == np.arange(3))
