"""Gradient flow of the bilinear model from a small start, compared with closed forms and the theorems' lower bounds."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import flow
from jaxdyn.theories.rev import dynamics as theory
from jaxdyn.theories.rev.bilinear import model

FRACTIONS = (0.0, 0.003, 0.005, 0.01, 0.02, 0.05, 0.1, *(i / 10 for i in range(2, 11)))  # of the horizon: when losses are read
EXPONENT = 0.05  # of the floor of Theorem 1


@jd.setting
class Bilinear:
    """Gradient flow from a small start."""

    kind: jd.Code = jd.code(*model.KINDS)  # of the tokens' vectors: N(0, I/d), or rows of an orthogonal matrix
    d: jd.Swept = jd.field(100.0, at_least=1)  # dimensions of a token's vector
    sigma: jd.Swept = jd.field(0.01, at_least=0)  # standard deviation of an entry of Theta at the start
    symmetric: jd.Swept = jd.field(0.0, at_least=0, at_most=1)  # 1: Theta stays symmetric
    reverse: jd.Swept = 0.0  # weight of the reverse loss in training
    stop: jd.Swept = jd.field(0.0, at_least=0)  # loss at which the flow stops; 0: never
    horizon: jd.Swept = jd.field(200.0, above=0)  # in units of n, since the loss is about n / t
    pairs: int = jd.field(5, at_least=1)  # n, facts to be learned
    per_pair: int = jd.field(4, at_least=2)  # tokens for each pair, of which two are the pair's own: m = per_pair * n
    max_d: int = 200  # the largest d that the arrays hold

    def __post_init__(self) -> None:
        """Refuse dimensions that the arrays cannot hold."""
        jd.require(self, self.d <= self.max_d and self.d == round(self.d), "d is a whole number, at most max_d", "d", "max_d")


def trial(s: Bilinear, key: PRNGKeyArray) -> jd.Observables:
    """Both losses along the flow (constant from where it was stopped), next to closed forms and lower bounds."""
    k_tokens, k_start = jax.random.split(key)
    n, m = s.pairs, s.per_pair * s.pairs
    # tokens and the start
    v = model.sample_tokens(k_tokens, s.kind, m, s.d, s.max_d)
    w0 = model.effective(s.sigma * jax.random.normal(k_start, (s.max_d, s.max_d), jnp.float64), v, n)
    args = model.Flow(v @ v.T, s.reverse, s.symmetric), s.stop

    def move(t: Array, w: Array, packed: Any) -> Array:
        return model.field(w, packed[0], n)

    def above(t: Array, w: Array, packed: Any) -> Array:
        return model.loss(w, n) - packed[1]

    # the flow, until the loss is ``stop``
    t = s.horizon * n * jnp.asarray(FRACTIONS, jnp.float64)
    sol = flow.solve(move, w0, t, args, rtol=1e-10, atol=1e-12, event=above)
    w = jnp.where(jnp.isfinite(sol.ys), sol.ys, sol.y_end)
    # both losses
    forward, reverse = (jax.vmap(lambda x, f=f: f(x, n))(w) for f in (model.loss, model.reverse_loss))
    end, last = model.reverse_loss(sol.y_end, n), model.loss(sol.y_end, n)
    return jd.observables(
        predicted={
            "forward": jd.named(theory.orthonormal_loss(t, m, n), "time"),
            "reverse": math.log(m),
            "floor": jd.named(theory.reverse_floor(reverse[0], forward / forward[0], EXPONENT), "time"),
            "end": theory.half_guess(m),
            "rise": theory.mean_rise(last, n, m, s.d),
        },
        measured={
            "forward": jd.named(forward, "time"),
            "reverse": jd.named(reverse, "time"),
            "floor": jd.named(reverse, "time"),
            "end": end,
            "rise": end - math.log(m),
        },
        recorded={"t": jd.named(t, "time"), "stopped": sol.event, "tau": sol.t_end, "loss_at_end": last},
        status=sol.status,
    )
