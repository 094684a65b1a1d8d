r"""One node ``h = v . b`` under attention, near a critical point of the upper layers (Theorem 4 and Fig. 4).

One sample per token (``x = e_l``); near the critical point, with curvature one, the upper gradient is ``g_l = mu_l - v_l``. Both v
and the attention logits z follow the gradient of the network: the factor ``exp(v^2/2)`` of the theory is not inserted by hand.
Source: arXiv:2310.00535, section 4. Letters: d tokens, mu critical point.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

import jaxdyn as jd
from jaxdyn.theories.joma import model

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
