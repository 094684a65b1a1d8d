"""GaLore in a plain optax loop: a dict of arrays, one transformation, nothing else of jaxdyn."""

import jax
import jax.numpy as jnp
import optax

from jaxdyn import optim

WIDTH, HIDDEN, RANK = 64, 256, 8
up, down = jax.random.split(jax.random.key(0))
params = {
    "up": jax.random.normal(up, (WIDTH, HIDDEN)) / WIDTH**0.5,
    "bias": jnp.zeros(HIDDEN),
    "down": jax.random.normal(down, (HIDDEN, WIDTH)) / HIDDEN**0.5,
}


def loss(params, x):
    """How far the network is from reversing its input."""
    y = jax.nn.relu(x @ params["up"] + params["bias"]) @ params["down"]
    return jnp.mean(jnp.square(y - x[:, ::-1]))


tx = optim.galore(1e-2, RANK, every=20, scale=1.0)  # in place of optax.adam(1e-2)
state = tx.init(params)
print(optim.listing(params, optim.MemoryLayout(rank=RANK)))


@jax.jit
def step(params, state, key):
    """One step on a fresh batch."""
    value, gradient = jax.value_and_grad(loss)(params, jax.random.normal(key, (128, WIDTH)))
    updates, state = tx.update(gradient, state, params)
    return optax.apply_updates(params, updates), state, value


losses = []
for key in jax.random.split(jax.random.key(1), 100):
    params, state, value = step(params, state, key)
    losses.append(float(value))
