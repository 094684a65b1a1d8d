r"""The network of Li2: two group elements, one hidden layer, a linear top layer; no biases.

.. math:: \hat Y = \sigma(XW)\,V, \qquad (XW)_{ij} = W[h_1, j] + W[M + h_2, j], \qquad y = h_1 h_2

Samples are pairs (h1, h2) of numbers of elements; a one-hot input only picks a row of W, so X is never built. Two losses:

- the theory's, :math:`J = \frac12 \|\tilde Y - \tilde F V\|_F^2 + \frac\eta2 \|V\|_F^2` with F = sigma(XW) and a tilde for what is
  centred over the *samples*;
- the training runs', the mean over samples of :math:`\|P_M \hat y - P_M e_y\|^2`, centred over the *outputs*.

A weight decay ``decay`` (coupled) on V in the mean loss of n samples is a ridge of :math:`\eta = n \cdot` decay / 2.
Source: arXiv:2509.21519, section 3 and its code. Letters: M elements, K hidden nodes, n samples.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Inexact, Int, PRNGKeyArray

import jaxdyn as jd
from jaxdyn.data.cayley import Group

ACTIVATIONS = {
    "square": jnp.square,
    "relu": jax.nn.relu,
    "silu": jax.nn.silu,
    "relu2": lambda x: jnp.square(jax.nn.relu(x)),
    "tanh": jnp.tanh,
    "cube": lambda x: x * x * x,
    "linear": lambda x: x,
}
Activation = Literal["square", "relu", "silu", "relu2", "tanh", "cube", "linear"]
AnyActivation = str | Callable[[Array], Array] | jd.Code
STUDIED = ("square", "relu", "silu")  # the switch of the claims on random features


def activate(x: Inexact[Array, "*n"], activation: AnyActivation) -> Inexact[Array, "*n"]:
    """sigma(x), entry by entry.

    Args:
        x: preactivations.
        activation: a name of ``ACTIVATIONS`` or of ``jax.nn``, a function, or a traced switch between names.

    Raises:
        UsageError: if there is no activation of that name.
    """
    if isinstance(activation, jd.Code):
        return jax.lax.switch(activation.index, [_named(name) for name in activation.names], x)
    return (activation if callable(activation) else _named(activation))(x)


def _named(name: str) -> Callable[[Array], Array]:
    if name in ACTIVATIONS:
        return ACTIVATIONS[name]
    if name.startswith("_") or not callable(found := getattr(jax.nn, name, None)):
        allowed = f"it is {', '.join(ACTIVATIONS)}, or a function of jax.nn"
        raise jd.UsageError(f"activation={name!r} is not allowed: {allowed}")
    return found


class Params(NamedTuple):
    """Rows of ``w`` (D = 2M) are the first operand's elements, then the second's; ``v`` maps hidden nodes to elements."""

    w: Float[Array, "D K"]
    v: Float[Array, "K M"]


def init(key: PRNGKeyArray, order: int, hidden: int, dtype: str = "float32") -> Params:
    r"""The start of the training runs: uniform within one over the root of the fan-in, 2M for W and K for V."""
    k_w, k_v = jax.random.split(key)
    w = jax.random.uniform(k_w, (2 * order, hidden), dtype, -1, 1) / jnp.sqrt(jnp.array(2 * order, dtype))
    v = jax.random.uniform(k_v, (hidden, order), dtype, -1, 1) / jnp.sqrt(jnp.array(hidden, dtype))
    return Params(w, v)


def pairs(order: int) -> Int[Array, "n 2"]:
    """All M^2 pairs, row by row of the Cayley table."""
    return jnp.stack(jnp.divmod(jnp.arange(order**2), order), -1)


def products(group: Group, samples: Int[Array, "n 2"]) -> Int[Array, " n"]:
    """The labels h1 h2."""
    return jnp.asarray(group.table)[samples[:, 0], samples[:, 1]]


def preactivations(w: Inexact[Array, "D K"], samples: Int[Array, "n 2"]) -> Inexact[Array, "n K"]:
    """XW: two rows of W for each sample."""
    return w[samples[:, 0]] + w[w.shape[0] // 2 + samples[:, 1]]


def features(w: Inexact[Array, "D K"], samples: Int[Array, "n 2"], activation: AnyActivation = "square") -> Inexact[Array, "n K"]:
    """F = sigma(XW); the activation as in :func:`activate`."""
    return activate(preactivations(w, samples), activation)


def predict(params: Params, samples: Int[Array, "n 2"], activation: AnyActivation = "square") -> Float[Array, "n M"]:
    """The network's outputs."""
    return features(params.w, samples, activation) @ params.v


def centred(x: Float[Array, "n k"]) -> Float[Array, "n k"]:
    """PX: the columns without their means over the samples."""
    return x - jnp.mean(x, 0)


def targets(group: Group, samples: Int[Array, "n 2"], dtype: str = "float64") -> Float[Array, "n M"]:
    """Y: a one for each sample's label."""
    return (products(group, samples)[:, None] == jnp.arange(group.order)).astype(dtype)


def theory_loss(v: Float[Array, "K M"], f: Float[Array, "n K"], y: Float[Array, "n M"], eta: Float[Array, ""]) -> Float[Array, ""]:
    """J for features and targets that are not yet centred."""
    return (jnp.sum(jnp.square(centred(y) - centred(f) @ v)) + eta * jnp.sum(jnp.square(v))) / 2


def loss(
    params: Params, samples: Int[Array, "n 2"], labels: Int[Array, " n"], activation: AnyActivation = "square"
) -> Float[Array, ""]:
    """The training runs' loss: mean over samples, centred over outputs."""
    o = predict(params, samples, activation)
    o = o - jnp.mean(o, 1, keepdims=True)
    hit = jnp.take_along_axis(o, labels[:, None], 1)[:, 0]
    return jnp.mean(jnp.sum(jnp.square(o), 1) - 2 * hit) + (1 - 1 / o.shape[1])
