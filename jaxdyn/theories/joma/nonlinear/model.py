r"""The nodes of the chapter: near a critical point, and on a mixture.

One node ``h = v . b`` under attention, near a critical point of the upper layers (Theorem 4 and Fig. 4).

One sample per token (``x = e_l``); near the critical point, with curvature one, the upper gradient is ``g_l = mu_l - v_l``. Both v
and the attention logits z follow the gradient of the network: the factor ``exp(v^2/2)`` of the theory is not inserted by hand.
Source: arXiv:2310.00535, section 4. Letters: d tokens, mu critical point.

One node under uniform attention, and the mixture of isotropic components that Theorem 3 is about.

.. math:: f = U_C x + u_m, \qquad h = \phi(w \cdot f), \qquad x = \bar x_c + \epsilon

The upper gradient g is given, and constant within a component: the loss of a sample is -g h. Source: arXiv:2310.00535, Theorem 3.
Letters: d tokens, D = d + 1 embedding dimensions, C components, n samples of each.

The setting with the mixture of Theorem 3, and samples of it; shared by the claims on the field and on the paths.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

import jaxdyn as jd
from jaxdyn.theories.joma import model
from jaxdyn.theories.joma.dynamics.nonlinear import NOISES

ATTENTIONS = ("exp", "normalised", "linear", "none", "softmax")


def sample_mu(key: PRNGKeyArray, low: Float[Array, ""], high: Float[Array, ""], tokens: int) -> Float[Array, " d"]:
    """Critical point: sorted uniform numbers in [low, high)."""
    return low + (high - low) * jnp.sort(jax.random.uniform(key, (tokens,), jnp.float64))


def hidden(v: Float[Array, " d"], z: Float[Array, " d"], attention: jd.Code) -> Float[Array, " d"]:
    """The node's output on each token's sample; ``normalised`` and ``softmax`` divide by A(t), which the latter differentiates."""
    x = jnp.eye(v.shape[0], dtype=v.dtype)
    kind = jd.Code(jnp.where(attention == "linear", 1, 0), ("exp", "linear"))
    z = jnp.where(attention == "none", 0.0, z)
    total = jnp.sum(jnp.exp(z))
    given = jnp.where(attention == "normalised", jax.lax.stop_gradient(total), 1.0)
    total = jnp.where(attention == "softmax", total, given)
    return model.attention(x, jnp.broadcast_to(z, x.shape), kind, normalizer=total) @ v


def gradients(
    v: Float[Array, " d"], z: Float[Array, " d"], g: Float[Array, " d"], attention: jd.Code
) -> tuple[Float[Array, " d"], Float[Array, " d"]]:
    """Ascent gradient of ``sum_l g_l h_l``: that of v per unit of its token's g, and that of z.

    A token's h depends on its own v alone, so the former is the latter's pull-back of ones; g itself may underflow.
    """
    _, pull = jax.vjp(lambda v, z: hidden(v, z, attention), v, z)
    return pull(jnp.ones_like(g))[0], pull(g)[1]


def start_logits(v: Float[Array, " d"], attention: jd.Code, c: Float[Array, ""]) -> Float[Array, " d"]:
    """Logits that satisfy Theorem 1's invariant at the start: ``v^2/2`` (exp), ``sqrt(v^2 + c)`` (linear)."""
    return jnp.where(attention == "linear", jnp.sqrt(v * v + c), 0.5 * v * v)


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


@jd.setting
class Mixture:
    """One node on a mixture.

    Args:
        activation: of the node.
        noise: distribution around a component's centre.
        spread: standard deviation of a noise coordinate.
        anisotropy: variances alternate between spread^2 (1 + anisotropy) and spread^2 (1 - anisotropy); 0 in the theorem.
        g_slope: slope of the upper gradient along a random direction inside each component; 0 in the theorem.
        tokens: dimension of the noise.
        components: of the mixture.
        samples: in all, shared equally by the components.
    """

    activation: jd.Code = jd.code(*model.ACTIVATIONS)
    noise: jd.Code = jd.code(*NOISES)
    spread: jd.Swept = jd.field(0.5, above=0)
    anisotropy: jd.Swept = jd.field(0.0, at_least=-1, at_most=1)
    g_slope: jd.Swept = 0.0
    tokens: int = jd.field(12, at_least=3)
    components: int = jd.field(4, at_least=1)
    samples: int = 20_000

    def __post_init__(self) -> None:
        """Refuse components without samples."""
        jd.require(self, self.samples >= 2 * self.components, "at least 2 samples per component", "samples", "components")


def sample(key: PRNGKeyArray, one: Instance, s: Mixture, each: int) -> tuple[Float[Array, "C n d"], Float[Array, "C n"]]:
    """``each`` samples of each component, and their upper gradients."""
    d = one.centres.shape[1]
    e = jax.random.normal(key, (len(one.g), each, d), jnp.float64)
    sphere = e * (d**0.5 / jnp.linalg.norm(e, axis=-1, keepdims=True))
    e = jnp.where(s.noise == "gauss", e, sphere)
    signs = jnp.asarray(1 - 2 * (np.arange(d) % 2), jnp.float64)
    x = one.centres[:, None] + s.spread * jnp.sqrt(1 + s.anisotropy * signs) * e
    return x, one.g[:, None] + s.g_slope * (e @ one.direction)
