r"""One node under uniform attention, and the mixture of isotropic components that Theorem 3 is about.

.. math:: f = U_C x + u_m, \qquad h = \phi(w \cdot f), \qquad x = \bar x_c + \epsilon

The upper gradient g is given, and constant within a component: the loss of a sample is -g h. Source: arXiv:2310.00535, Theorem 3.
Letters: d tokens, D = d + 1 embedding dimensions, C components, n samples of each.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

import jaxdyn as jd
from jaxdyn.theories.joma import model


class Instance(NamedTuple):
    """What is random in a run: components, upper gradients, embeddings, the start (v, xi), a direction in which g may vary."""

    centres: Float[Array, "C d"]
    share: Float[Array, " C"]
    g: Float[Array, " C"]
    v: Float[Array, " d"]
    xi: Float[Array, ""]
    tokens: Float[Array, "D d"]
    query: Float[Array, " D"]
    direction: Float[Array, " d"]


def sample_instance(key: PRNGKeyArray, d: int, components: int, low: float, high: float) -> Instance:
    """A random mixture, and a start whose norm is log-uniform in [low, high]."""
    k_normal, k_norm, k_embed = jax.random.split(key, 3)
    tokens, query = model.embed(k_embed, d + 1, d, 1)
    sizes = np.cumsum([components * d, d, d, components, components])
    normals = jax.random.normal(k_normal, (sizes[-1] + 1,), jnp.float64)  # one sample: each has its compile time
    centres, v, direction, share, g, xi = jnp.split(normals, sizes)
    norm = low * (high / low) ** jax.random.uniform(k_norm, (), jnp.float64)
    return Instance(
        centres=2 * centres.reshape(components, d) / d**0.5,
        share=jax.nn.softmax(0.5 * share),
        g=g,
        v=norm * v / jnp.linalg.norm(v),
        xi=0.5 * norm * xi[0],
        tokens=tokens,
        query=query[:, 0],
        direction=direction / jnp.linalg.norm(direction),
    )


def features(one: Instance, x: Float[Array, "*n d"]) -> Float[Array, "*n D"]:
    """Input of the MLP layer under uniform attention, ``f = U_C x + u_m``."""
    return x @ one.tokens.T + one.query


def utility(w: Float[Array, " D"], f: Float[Array, " D"], g: Float[Array, ""], phi: jd.Code) -> Float[Array, ""]:
    """Loss of one sample whose upper gradient is ``g``: ``-g phi(w . f)``."""
    return -g * model.activation(jnp.atleast_1d(f @ w), phi)[0]


def start_weights(one: Instance) -> Float[Array, " D"]:
    """Lower-layer weights with the instance's v and xi."""
    return one.tokens @ one.v + one.query * one.xi


def coordinates(one: Instance, w: Float[Array, "*n D"]) -> Float[Array, "*n d1"]:
    """(v, xi) of a vector in embedding space."""
    return jnp.concatenate([w @ one.tokens, (w @ one.query)[..., None]], -1)
