"""A cache of heavy hitters without a budget for recent tokens freezes.

One head with random queries and keys reads a stream through the cache: which tokens are left.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import xarray as xr
from jaxtyping import PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.nn import Transformer, cache


@jd.setting
class Stream:
    """A stream of tokens with random logits, read through a small cache."""

    recent: jd.Swept = jd.field(1.0, at_least=1)  # last tokens always kept, the current one included
    spread: jd.Swept = jd.field(0.5, at_least=0)  # standard deviation of the logits
    size: int = jd.field(8, at_least=2)  # keys that the cache holds
    tokens: int = 96  # tokens read

    def __post_init__(self) -> None:
        jd.require(self, self.size < self.tokens, "size is below tokens", "size", "tokens")
        jd.require(self, self.recent <= self.size, "recent is at most size", "recent", "size")


def trial(s: Stream, key: PRNGKeyArray) -> jd.Observables:
    """Numbers of the kept tokens at the end, sorted, and those of a cache whose heavy part never changed."""
    k_q, k_k = jax.random.split(key)
    shape = Transformer(vocabulary=2, width=4, layers=1, heads=1, hidden=1, position="none", dtype="float64")
    policy = cache.Policy(kind="h2o", size=s.size, recent=jnp.asarray(s.recent).astype(jnp.int32))
    queries, keys = (jax.random.normal(k, (s.tokens, 1, 4), jnp.float64) for k in (k_q, k_k))
    empty = jax.tree.map(lambda x: x[0], cache.start(shape, policy).layers)

    def read(layer: cache.Layer, one: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[cache.Layer, None]:
        time, q, k = one
        return cache.attend(shape, policy, layer, time, s.spread * q, k, k)[1], None

    layer, _ = jax.lax.scan(read, empty, (jnp.arange(s.tokens, dtype=jnp.int32), queries, keys))
    place, gone = jnp.arange(s.size), s.tokens - s.size
    frozen = jnp.where(place < s.size - 1, place, place + gone)
    return jd.observables(
        predicted={"kept": jd.named(frozen.astype(jnp.float64), "place")},
        measured={"kept": jd.named(jnp.sort(layer.born[0]).astype(jnp.float64), "place")},
        recorded={"newest": jd.named((place + gone).astype(jnp.float64), "place")},
    )


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """The share of runs in which exactly the predicted tokens are left."""
    there = ds.measured_kept.notnull()  # smaller caches are padded
    same = ((ds.measured_kept == ds.predicted_kept) | ~there).all("place").where(there.any("place"))
    return [jd.share_within("share of runs in which the first tokens are left", same, over="seed", low=0.95)]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Numbers of the kept tokens at the end."""
    ax = fig.subplots()
    plotting.scatter(ax, ds.predicted_kept, ds.measured_kept, label="kept tokens", color="measured", log=False)
    ax.set(xlabel="number of a kept token, frozen cache", ylabel="number of a kept token at the end")


CLAIMS = (
    jd.Study(
        trial=trial,
        quick=jd.grid(Stream, spread=[0.0, 0.2]),
        paper=jd.grid(Stream, spread=[0.0, 0.2], size=[8, 32], tokens=256),
        seeds=512,
        paper_seeds=1024,
        evidence="algebra",
        source="derived; arXiv:2306.14048 keeps recent tokens next to heavy hitters",
    ).claim(
        id="h2o.frozen_cache",
        title="A cache of heavy hitters that protects no recent tokens freezes",
        statement="A cache that evicts the token with the least attention summed so far, and protects no recent token but the "
        "current one, holds the first tokens and the current one alone when it has read twelve times as many as it has room for, "
        "in at least 95% of runs. (The policy on attention of random logits with a standard deviation of at most .2, for a cache "
        "of 8 keys, nothing learned.)",
        tested="A cache of {size} keys after {tokens} tokens, with random logits of standard deviation {spread}; {seeds} seeds.",
        bounds=jd.tuned(on="7000:7512", confirmed_on="8000:8512"),
        judge=judge,
        controls={"the last 4 tokens are kept": {"recent": 4.0}, "logits of standard deviation 3": {"spread": 3.0}},
        rivals={"the last 8 tokens are left": jd.swap(predicted_kept="newest")},
        plot=plot,
        caption="Numbers of the 8 tokens in the cache after 96 tokens, against those of a cache that froze; all runs.",
    ),
)
