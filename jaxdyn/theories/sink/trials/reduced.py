r"""The reduced flow of margin and value, beside its late law.

Letters: n other keys, :math:`\Delta` margin, :math:`\beta` size of the sink's value.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

import jaxdyn as jd
from jaxdyn.theories.sink.dynamics import reduced

__all__ = ["LATE", "Reduced", "trial"]

RECORDS = 33
TIMES = tuple(float(t) for t in np.geomspace(1e-2, 1e6, RECORDS))
LATE = 1e4  # from here on the late law is compared
QUERIES = 32
SHARE = 0.1  # of the uniform part of the next token's law, as in the networks' task
CONCENTRATION = 0.5


@jd.setting
class Reduced:
    """Size of the sink's value at the start, of what the other keys write, their number, and the value's rate (0: frozen)."""

    value: jd.Swept = 1.0
    others: jd.Swept = 1.0
    number: jd.Swept = 16.0
    rate: jd.Swept = 1.0
    vocabulary: int = 16

    def __post_init__(self) -> None:
        jd.require(self, self.number > 0, "number is positive", "number")
        jd.require(self, self.others >= 0, "others is at least 0", "others")
        jd.require(self, self.rate >= 0, "rate is at least 0", "rate")
        jd.require(self, self.vocabulary >= 2, "vocabulary is at least 2", "vocabulary")


def trial(s: Reduced, key: PRNGKeyArray) -> jd.Observables:
    """Margin, share and value along time from equal scores, and the late law, from the loss and from the heuristic."""
    k_target, k_sink, k_others = jax.random.split(key, 3)
    size = s.vocabulary
    drawn = jax.random.dirichlet(k_target, jnp.full((size,), CONCENTRATION, jnp.float64), dtype=jnp.float64)
    query = reduced.Query(
        target=(1 - SHARE) * drawn + SHARE / size,
        sink=jax.random.normal(k_sink, (size,), jnp.float64),
        others=s.others * jax.random.normal(k_others, (QUERIES, size), jnp.float64),
        keys=jnp.asarray(s.number, jnp.float64),
    )
    ts = jnp.asarray(TIMES, jnp.float64)
    start = reduced.Point(jnp.zeros((), jnp.float64), jnp.asarray(s.value, jnp.float64))
    solution = reduced.solve(start, query, ts, jnp.asarray(s.rate, jnp.float64))
    margin, value = solution.ys
    late = int(np.argmax(np.asarray(TIMES) > 0.999 * LATE))
    spread = jnp.maximum(reduced.variance(query), 1e-12)
    law = reduced.late_law(ts, spread, query.keys)
    return jd.observables(
        predicted={"margin": jd.named(jnp.stack([law, reduced.heuristic_law(ts, ts[late], margin[late])]), "form t")},
        measured={"margin": jd.named(margin, "t")},
        recorded={
            "still": jd.named(jnp.zeros_like(ts), "t"),
            "root": jd.named(margin[late] + jnp.sqrt(ts) - jnp.sqrt(ts[late]), "t"),
            "linear": jd.named(margin[late] + ts / ts[late] - 1, "t"),
            "share": jd.named(reduced.share(margin, query.keys), "t"),
            "size": jd.named(value, "t"),
            "start": start.value,
            "error": jd.named(reduced.late_error(ts, spread, query.keys), "t"),
        },
        status=solution.status,
        coords={"form": ("derived", "heuristic"), "t": TIMES},
    )
