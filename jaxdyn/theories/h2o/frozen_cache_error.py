r"""Attention after eviction: its error with a bound that is attained, and a cache that freezes without recent tokens.

The output of attention after eviction: its error, an equality for it, and a bound that is attained.

.. math:: o - o_K = \epsilon\, (\bar v_{K^c} - \bar v_K), \qquad \|o - o_K\| \le 2 \epsilon \max_j \|v_j\|

Letters: K kept keys, :math:`\epsilon` the weight of all others, :math:`\bar v` means of values by weight.

A cache of heavy hitters without a budget for recent tokens freezes.

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
from jaxdyn.nn import Transformer, attention, cache


@jd.setting
class Eviction:
    """Attention with random logits and values, and how much of it is kept."""

    kept: jd.Swept = jd.field(6.0, at_least=1, whole=True)  # keys that are not evicted
    spread: jd.Swept = jd.field(2.0, at_least=0)  # standard deviation of the logits
    opposed: jd.Swept = 0.0  # 1: kept keys share one value, all others have its negative
    keys: int = jd.field(24, at_least=2)  # keys before eviction

    def __post_init__(self) -> None:
        jd.require(self, self.kept < self.keys, "kept is below keys", "kept", "keys")


def bound_trial(s: Eviction, key: PRNGKeyArray) -> jd.Observables:
    """The size of the error with renormalised weights, by attention itself, and what is said of it."""
    # attention, and what is kept of it
    k_a, k_v, k_k = jax.random.split(key, 3)
    a = s.spread * jax.random.normal(k_a, (s.keys,), jnp.float64)
    v = jax.random.normal(k_v, (s.keys, 4), jnp.float64)
    kept = jnp.argsort(jnp.argsort(jax.random.uniform(k_k, (s.keys,), jnp.float64))) < s.kept
    v = jnp.where(s.opposed > 0.5, jnp.where(kept, 1.0, -1.0)[:, None] * v[:1], v)
    p = attention.weights(a[None])[0]
    left = attention.weights(a[None], mask=kept[None])[0]
    # the error, and what is said of it
    error = jnp.linalg.norm(p @ v - left @ v)
    inside, outside = (jnp.where(part, p, 0) for part in (kept, ~kept))
    lost = jnp.sum(outside)
    apart = jnp.linalg.norm(outside @ v / lost - inside @ v / jnp.sum(inside))
    size = jnp.linalg.norm(v, axis=1)
    largest = jnp.max(size)
    return jd.observables(
        predicted={"error": lost * apart, "bound": 2 * lost * largest},
        measured={"error": error, "bound": error},
        recorded={
            "plain": jnp.linalg.norm(p @ v - inside @ v),
            "half": lost * largest,
            "without_mass": 2 * largest,
            "nothing": jnp.zeros((), jnp.float64),
        },
        assumed={"lost": lost},
    )


def judge_bound(ds: xr.Dataset) -> list[jd.Check]:
    """The equality, the bound, and that opposed values attain it."""
    jd.need(ds, opposed=(0.0, 1.0))
    ratio = ds.measured_bound / ds.predicted_bound
    return [
        jd.at_most("size of the error by the equality: relative error", jd.relative_error(ds, "error"), 1e-11),
        jd.at_most("error over its bound", ratio, 1 + 1e-12),
        jd.at_least("error over its bound, opposed values of one size", ratio.sel(opposed=1.0), 1 - 1e-11),
    ]


def plot_bound(ds: xr.Dataset, fig: Figure) -> None:
    """Errors against the equality and against the bound."""
    left, right = fig.subplots(1, 2)
    plotting.scatter(left, ds.predicted_error, ds.measured_error, label="runs", color="measured")
    left.set(xlabel=r"$\epsilon \|\bar v_{K^c} - \bar v_K\|$", ylabel=r"$\|o - o_K\|$")
    for value, label, color in ((0.0, "random values", "measured"), (1.0, "opposed values", "third")):
        part = ds.sel(opposed=value) if "opposed" in ds.dims else ds
        ratio = part.measured_bound / part.predicted_bound
        points = right.plot(part.assumed_lost.values.ravel(), ratio.values.ravel(), ".", label=label, color=plotting.COLORS[color])
        plotting.of_runs(points, ratio)
    right.axhline(1, color=plotting.COLORS["theory"], linestyle="--")
    right.set(xlabel=r"weight $\epsilon$ of what was evicted", ylabel="error over its bound")
    right.legend()


ERROR_BOUND_CLAIMS = (
    jd.Study(
        trial=bound_trial,
        quick=jd.grid(Eviction, kept=[3.0, 6.0, 18.0], opposed=[0.0, 1.0]),
        paper=jd.grid(Eviction, kept=[3.0, 6.0, 18.0], opposed=[0.0, 1.0], spread=[0.3, 2.0, 5.0]),
        seeds=128,
        paper_seeds=512,
        evidence="algebra",
        bounds="derived: float64 rounding, over a lost weight of at least .01",
        assumes=(jd.above("lost", 0.01),),  # of less, double precision does not tell the change to twelve digits
        source="derived, for the renormalised eviction of arXiv:2306.14048",
    ).claim(
        id="h2o.error_bound",
        title="How much the output of attention changes when keys are evicted",
        statement=r"If all keys but a set $K$ are evicted, whose softmax weights add up to $\epsilon$, and the remaining weights "
        r"are renormalised, the output of attention changes by $\epsilon \|\bar v_{K^c} - \bar v_K\|$, where $\bar v$ is the "
        r"weighted mean of the values $v_j$ in and outside of $K$; so it changes by at most $2 \epsilon \max_j \|v_j\|$. The "
        "bound is attained where the keys in $K$ have one value and the others its negative. (An identity, on random logits and "
        "values.)",
        tested=r"{keys} random keys and values, of which {kept} are kept, with $\epsilon > 0.01$; {seeds} seeds.",
        judge=judge_bound,
        controls={"weights are not renormalised": jd.swap(measured_error="plain", measured_bound="plain")},
        rivals={
            "nothing is lost": jd.swap(predicted_error="nothing", predicted_bound="nothing"),
            r"at most $\epsilon \max_j \|v_j\|$": jd.swap(predicted_bound="half"),
            r"at most $2 \max_j \|v_j\|$, whatever the weight": jd.swap(predicted_bound="without_mass"),
        },
        plot=plot_bound,
        caption="Left: size of the change of the output against the equality. Right: that size over its bound, against the "
        "weight of the evicted keys; one point per run.",
    ),
)


@jd.setting
class Stream:
    """A stream of tokens with random logits, read through a small cache."""

    recent: jd.Swept = jd.field(1.0, at_least=1, whole=True)  # last tokens always kept, the current one included
    spread: jd.Swept = jd.field(0.5, at_least=0)  # standard deviation of the logits
    size: int = jd.field(8, at_least=2)  # keys that the cache holds
    tokens: int = 96  # tokens read

    def __post_init__(self) -> None:
        jd.require(self, self.size < self.tokens, "size is below tokens", "size", "tokens")
        jd.require(self, self.recent <= self.size, "recent is at most size", "recent", "size")


def cache_trial(s: Stream, key: PRNGKeyArray) -> jd.Observables:
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


def judge_cache(ds: xr.Dataset) -> list[jd.Check]:
    """The share of runs in which exactly the predicted tokens are left."""
    there = ds.measured_kept.notnull()  # smaller caches are padded
    same = ((ds.measured_kept == ds.predicted_kept) | ~there).all("place").where(there.any("place"))
    return [jd.share_within("share of runs in which the first tokens are left", same, over="seed", low=0.95)]


def plot_cache(ds: xr.Dataset, fig: Figure) -> None:
    """Numbers of the kept tokens at the end."""
    ax = fig.subplots()
    plotting.scatter(ax, ds.predicted_kept, ds.measured_kept, label="kept tokens", color="measured", log=False)
    ax.set(xlabel="number of a kept token, frozen cache", ylabel="number of a kept token at the end")


CLAIMS = (
    *ERROR_BOUND_CLAIMS,
    jd.Study(
        trial=cache_trial,
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
        judge=judge_cache,
        controls={"the last 4 tokens are kept": {"recent": 4.0}, "logits of standard deviation 3": {"spread": 3.0}},
        rivals={"the last 8 tokens are left": jd.swap(predicted_kept="newest")},
        plot=plot_cache,
        caption="Numbers of the 8 tokens in the cache after 96 tokens, against those of a cache that froze; all runs.",
    ),
)
