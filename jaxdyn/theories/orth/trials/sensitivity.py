r"""JoMA's law along the gradient flow of a block whose embeddings lie between an orthonormal frame and random columns.

.. math:: U = (1-\epsilon)\,Q + \epsilon\,G, \qquad
   \frac{d}{dt}\Bigl(z - \frac{r}{2\tau}\sum_k v_k^2\Bigr) = -\frac{r\,\eta_w}{\tau} \sum_k v_k \odot
   E\bigl[G_k\,\bigl((U^\top U - I)\,b + U^\top u_m\bigr)\bigr]

The right side, from the flow of :math:`v = U^\top w`, is linear in the Gram matrix minus the identity: so is the residual at
first order. This theory rests on JoMA's (arXiv:2310.00535, Theorem 1 and assumption A2), whose network, flow and law it takes.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import flow, nn
from jaxdyn.theories.joma import model
from jaxdyn.theories.joma.trials import one_block

__all__ = ["Mixture", "mixed", "trial"]


@jd.setting
class Mixture:
    """A JoMA block with embeddings between orthonormal and random.

    Args:
        epsilon: share of the random columns.
        floor: a share of random columns that is always there, a breach.
        attention: of the block; for softmax the law of exp is taken, a breach.
        phi: activation.
        ratio: learning rate of z over that of w.
        horizon: training time.
    """

    epsilon: jd.Swept = 0.0
    floor: jd.Swept = 0.0
    attention: jd.Code = jd.code(*model.ATTENTIONS)
    phi: jd.Code = jd.code(*model.ACTIVATIONS)
    ratio: jd.Swept = 1.0
    horizon: jd.Swept = 0.7

    def __post_init__(self) -> None:
        """Refuse shares outside 0 to 1."""
        shares = all(0 <= share <= 1 for share in (self.epsilon, self.floor))
        jd.require(self, shares, "shares are from 0 to 1", "epsilon", "floor")


def mixed(frame: Float[Array, "d n"], random: Float[Array, "d n"], epsilon: float | Float[Array, ""]) -> Float[Array, "d n"]:
    r"""Columns of :math:`(1-\epsilon) Q + \epsilon G`, scaled to unit length.

    Departure: the lengths. Unequal ones break the law as well, by a factor on v that has nothing to do with angles.
    """
    u = (1 - epsilon) * frame + epsilon * random
    return u / jnp.linalg.norm(u, axis=0)


def trial(s: Mixture, key: PRNGKeyArray) -> jd.Observables:
    """Both sides of the law along the gradient flow of the loss, and the mean |cos| over all pairs of embeddings."""
    k_build, k_random = jax.random.split(key)
    whole = {"queries": np.float64(1), "nodes": np.float64(2)}
    one = one_block.OneBlock(attention=s.attention, phi=s.phi, ratio=s.ratio, horizon=s.horizon, **whole)
    params, block, batch = one_block.build(one, k_build)
    frame = jnp.concatenate([block.tokens, block.queries], 1)
    random = jax.random.normal(k_random, (2, *frame.shape), frame.dtype) / frame.shape[0] ** 0.5
    u = mixed(mixed(frame, random[0], s.floor), random[1], s.epsilon)
    block = block._replace(tokens=u[:, : one.tokens], queries=u[:, one.tokens :])
    ts = jnp.linspace(0.0, s.horizon, one_block.SAMPLES + 1, dtype=jnp.float64)
    arguments = (block, batch, 0.0)
    solution = flow.gradient_flow(model.squared_loss, params, ts, *arguments, rate=one_block.rates(one), max_steps=1024)
    v, side = jax.vmap(lambda p: one_block.sides(one, block, p))(solution.ys)
    return jd.observables(
        predicted={"flow": jd.named(one_block.law(one, v, side), "time token")},
        measured={"flow": jd.named(side, "time token")},
        recorded={"cosine": nn.mean_cosine(u.T)},
        status=solution.status,
    )
