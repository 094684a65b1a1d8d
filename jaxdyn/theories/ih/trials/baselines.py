r"""Losses of the predictors that know nothing, counts of tokens, counts of pairs, or the chain, by sampling; no network.

The mean entropy of a transition row from Dirichlet(1) is :math:`\sum_{j=2}^k 1/j` exactly; the last predictor's loss lies below it,
because its rows are weighed by the stationary law.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import entr
from jaxtyping import Array, PRNGKeyArray

import jaxdyn as jd
from jaxdyn.data import chains
from jaxdyn.theories.ih import published

__all__ = ["Baselines", "trial"]


@jd.setting
class Baselines:
    """Chains and sequences; ``sticky`` adds that much to the diagonal of every transition matrix, a breach of the Dirichlet law."""

    sticky: jd.Swept = 0.0
    tokens: int = 3
    length: int = 100
    count: int = 4000

    def __post_init__(self) -> None:
        allowed = ", ".join(map(str, published.LOSSES))
        jd.require(self, self.tokens in published.LOSSES, f"tokens is one of {allowed}", "tokens")
        jd.require(self, self.sticky >= 0, "sticky is at least 0", "sticky")
        jd.require(self, self.length >= 2 and self.count >= 2, "length and count are at least 2", "length", "count")


def trial(s: Baselines, key: PRNGKeyArray) -> jd.Observables:
    """Losses of all predictors, and the entropy of a row."""
    k, dtype = s.tokens, "float64"

    def one(key: PRNGKeyArray) -> tuple[Array, Array]:
        k_matrix, k_tokens = jax.random.split(key)
        drawn = chains.transitions(k_matrix, k, dtype)
        matrix = (drawn + s.sticky * jnp.eye(k)) / (1 + s.sticky)
        row = chains.sample(k_tokens, matrix, s.length)
        tables = jnp.stack(
            [jnp.full((s.length, k), 1 / k), chains.unigram(row, k, dtype), chains.bigram(row, k, dtype), matrix[row]]
        )
        losses = -jnp.log(jnp.take_along_axis(tables[:, :-1], row[None, 1:, None], 2))
        return jnp.mean(losses, (1, 2)), jnp.mean(jnp.sum(entr(matrix), 1))

    losses, entropy = jax.vmap(one)(jax.random.split(key, s.count))
    table = jnp.asarray(published.LOSSES[k], jnp.float64)
    return jd.observables(
        predicted={
            "loss": jd.named(table, "predictor"),
            "entropy": jnp.asarray(float(np.sum(1 / np.arange(2, k + 1))), jnp.float64),
        },
        measured={"loss": jd.named(jnp.mean(losses, 0), "predictor"), "entropy": jnp.mean(entropy)},
        coords={"predictor": published.PREDICTORS},
    )
