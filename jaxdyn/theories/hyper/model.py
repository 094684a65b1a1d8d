r"""Encoders of the hypercube onto a sphere, the contrastive loss (NT-Xent) of a batch, and the linear probe.

.. math:: z = h(x)/\|h(x)\|, \qquad L = \operatorname{mean}_i \Bigl[\operatorname{lse}_{j \ne i} z_i \cdot z_j / T - z_i \cdot
   z_{p(i)} / T\Bigr]

over the 2B views of a batch, p(i) the other view of the same point. The encoder is linear or has one hidden layer of ReLUs; one
set of parameters holds both, so that they share a program. Outputs from ``dim`` on are masked.
Letters: D inputs, f hidden units, d outputs, B points of a batch, n examples of a probe, w tasks.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from jaxdyn import linalg, optim
from jaxdyn.data import hypercube
from jaxdyn.linalg import dense

NEWTON = 12  # steps of the probe
RIDGE = 1e-3


class Params(NamedTuple):
    """A linear encoder and one with a hidden layer."""

    linear: Float[Array, "D d"]
    inner: Float[Array, "D f"]
    bias: Float[Array, " f"]
    outer: Float[Array, "f d"]
    shift: Float[Array, " d"]


def init(key: PRNGKeyArray, inputs: int, hidden: int, outputs: int, dtype: Any = "float32") -> Params:
    """Entries uniform within one over the root of a layer's inputs, biases as well."""
    keys = jax.random.split(key, 5)
    shapes = ((inputs, outputs), (inputs, hidden), (hidden,), (hidden, outputs), (outputs,))
    fans = (inputs, inputs, inputs, hidden, hidden)
    weights = (jax.random.uniform(k, shape, dtype, -1.0, 1.0) / fan**0.5 for k, shape, fan in zip(keys, shapes, fans, strict=True))
    return Params(*weights)


def encode(params: Params, x: Float[Array, "*n D"], mlp: Any, dim: Any) -> Float[Array, "*n d"]:
    """The outputs before they are normalised; ``mlp`` (bool, may be traced) chooses the encoder."""
    deep = dense(jax.nn.relu(dense(x, params.inner) + params.bias), params.outer) + params.shift
    h = jnp.where(mlp, deep, dense(x, params.linear))
    return jnp.where(jnp.arange(h.shape[-1]) < dim, h, 0)


def on_sphere(h: Float[Array, "*n d"]) -> Float[Array, "*n d"]:
    """Unit vectors."""
    return h / jnp.sqrt(jnp.sum(h * h, -1, keepdims=True) + 1e-12).astype(h.dtype)


def represent(s: Any, params: Params, x: Float[Array, "*n D"]) -> Float[Array, "*n d"]:
    """The representation of views; ``s`` is the setting."""
    h = encode(params, x, s.encoder == "mlp", s.dim)
    return jnp.where(s.normalised > 0, on_sphere(h), h)


def nt_xent(z: Float[Array, "two B d"], temperature: Any) -> Float[Array, ""]:
    """The loss of a batch of pairs of views, 2B - 2 negatives each."""
    _, count, width = z.shape
    flat = z.reshape(2 * count, width)
    scores = flat @ flat.T / temperature
    scores = jnp.where(jnp.eye(2 * count, dtype=bool), -1e9, scores).astype(z.dtype)
    positive = jnp.sum(z[0] * z[1], -1) / temperature
    return jnp.mean(jax.nn.logsumexp(scores, -1)) - jnp.mean(positive).astype(z.dtype)


def probe(z: Float[Array, "n d"], y: Bool[Array, " n"]) -> Float[Array, " d1"]:
    """Logistic regression with an intercept (last entry) by Newton's steps; mean loss plus 1e-3/2 times the squared weights."""
    x = jnp.concatenate([z, jnp.ones_like(z[:, :1])], -1)
    ridge = RIDGE * jnp.ones(x.shape[1], x.dtype).at[-1].set(1e-3)  # nearly free intercept

    def step(w: Float[Array, " d1"], _: None) -> tuple[Float[Array, " d1"], None]:
        p = jax.nn.sigmoid(x @ w)
        gradient = x.T @ (p - y) / x.shape[0] + ridge * w
        hessian = (x * (p * (1 - p))[:, None]).T @ x / x.shape[0] + jnp.diag(ridge)
        return w - linalg.solve(hessian, gradient[:, None])[:, 0], None

    return jax.lax.scan(step, jnp.zeros(x.shape[1], x.dtype), None, length=NEWTON)[0]


def accuracy(
    train: Float[Array, "n d"], y_train: Bool[Array, "w n"], test: Float[Array, "m d"], y_test: Bool[Array, "w m"]
) -> Float[Array, " w"]:
    """Test accuracy of a probe for every task."""
    weights = jax.vmap(lambda y: probe(train, y))(y_train)
    logits = weights[:, :-1] @ test.T + weights[:, -1:]
    return jnp.mean((logits > 0) == y_test, -1, dtype=train.dtype)


def irrelevant_share(s: Any, params: Params, key: PRNGKeyArray) -> Float[Array, ""]:
    """Share of the squared change of the representation, over single bits turned, that is due to irrelevant bits."""
    x = hypercube.points(key, 64, s.inputs, s.dtype)
    turned = x[:, None, :] * (1 - 2 * jnp.eye(s.inputs, dtype=x.dtype))
    change = jnp.sum((represent(s, params, turned) - represent(s, params, x)[:, None]) ** 2, -1).mean(0)
    return jnp.sum(jnp.where(jnp.arange(s.inputs) < s.relevant, 0, change)) / jnp.sum(change)


def optimizer(s: Any) -> optax.GradientTransformation:
    """Adam or SGD with both kinds of weight decay; ``s`` is the setting."""
    scaled = optim.method(s.optimizer, None).tx
    tail = optax.stateless(lambda u, p: jax.tree.map(lambda g, w: (-s.lr * (g + s.decoupled * w)).astype(g.dtype), u, p))
    head = optax.stateless(lambda u, p: jax.tree.map(lambda g, w: g + (s.coupled * w).astype(g.dtype), u, p))
    return optax.chain(head, scaled, tail)
