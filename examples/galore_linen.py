"""GaLore in flax linen: attention kernels with heads are one matrix each, and the read-out is chosen by its name."""

import flax.linen as nn
import jax
import optax

from jaxdyn import optim


class Network(nn.Module):
    """A block that repeats its input; the read-out, which nobody has named, is Dense_2."""

    @nn.compact
    def __call__(self, tokens):
        x = nn.Embed(16, 32)(tokens)
        x = x + nn.MultiHeadDotProductAttention(num_heads=4)(nn.LayerNorm()(x))
        x = x + nn.Dense(32)(nn.relu(nn.Dense(64)(nn.LayerNorm()(x))))
        return nn.Dense(16)(x)


network, tokens = Network(), jax.random.randint(jax.random.key(0), (8, 12), 0, 16)
params = network.init(jax.random.key(1), tokens)
dims = optim.matching({"*/Dense_2/*": None}, otherwise=optim.hidden_matrices)
tx = optim.galore(1e-2, rank=4, dims=dims)
state, entropy = tx.init(params), optax.softmax_cross_entropy_with_integer_labels
print(optim.listing(params, optim.MemoryLayout(rank=4), dims))


@jax.jit
def step(params, state):
    """One step on all data."""
    value, gradient = jax.value_and_grad(lambda p: entropy(network.apply(p, tokens), tokens).mean())(params)
    updates, state = tx.update(gradient, state, params)
    return optax.apply_updates(params, updates), state, value


losses = []
while len(losses) < 60:
    params, state, value = step(params, state)
    losses.append(float(value))
