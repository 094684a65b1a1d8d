"""GaLore in flax nnx: ``nnx.Optimizer`` takes it as it takes optax.adamw; attributes name the parameters."""

import jax
import optax
from flax import nnx

from jaxdyn import optim


class Network(nnx.Module):
    """Attention and a layer."""

    def __init__(self, rngs):
        self.embed = nnx.Embed(16, 32, rngs=rngs)
        self.attention = nnx.MultiHeadAttention(4, 32, decode=False, rngs=rngs)
        self.up, self.down = nnx.Linear(32, 64, rngs=rngs), nnx.Linear(64, 32, rngs=rngs)
        self.head = nnx.Linear(32, 16, rngs=rngs)

    def __call__(self, tokens):
        x = self.embed(tokens)
        x = x + self.attention(x)
        return self.head(x + self.down(nnx.relu(self.up(x))))


model, tokens = Network(nnx.Rngs(0)), jax.random.randint(jax.random.key(0), (8, 12), 0, 16)
heads = {"attention/out/kernel": optim.HEADS_OUT, "attention/*/kernel": optim.HEADS_IN}  # [d, H, e] is one matrix, not d
dims = optim.matching(heads, otherwise=optim.hidden_matrices)
optimizer = nnx.Optimizer(model, optim.galore(1e-2, rank=4, dims=dims), wrt=nnx.Param)


@nnx.jit
def step(model, optimizer):
    """One step on all data."""
    loss = optax.softmax_cross_entropy_with_integer_labels
    value, gradient = nnx.value_and_grad(lambda m: loss(m(tokens), tokens).mean())(model)
    optimizer.update(model, gradient)
    return value


losses = [float(step(model, optimizer)) for _ in range(60)]
