r"""Long sequences: the attention of T contextual tokens converges to its value at infinite length like 1/sqrt(T).

Contexts are sampled token by token. With ``memory`` rho each token is a copy of the one before with probability rho, else sampled
from P: the tokens have the law P, and their mean over T has (1 + rho)/(1 - rho) times the variance of independent ones.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting, stats
from jaxdyn.theories.snap import model
from jaxdyn.theories.snap.dynamics import gradient as theory

LONG = 256  # from this length on the spread is compared with its leading order


@jd.setting
class Context:
    """One class and its query: random probabilities of the tokens, random attention logits."""

    logits: jd.Swept = 1.0  # standard deviation of the attention logits
    memory: jd.Swept = jd.field(0.0, at_least=0, at_most=1)  # probability of copying the token before
    tokens: int = 8  # M, contextual tokens
    sequences: int = 64  # sampled at the largest length; their beginnings are the shorter ones
    shortest: int = jd.field(4, at_least=0)  # lengths are powers of two, 2^shortest ... 2^longest
    longest: int = 14  # exponent of the largest length
    weights: tuple[float, ...] | None = None  # of the tokens, proportional to their probabilities; none: random

    def __post_init__(self) -> None:
        """Refuse fewer than three lengths, and impossible weights."""
        lengths = self.shortest <= self.longest - 2
        jd.require(self, lengths, "a slope needs three lengths, shortest <= longest - 2", "shortest", "longest")
        given = self.weights is None or (len(self.weights) == self.tokens and min(self.weights) > 0)
        jd.require(self, given, f"weights is none or {self.tokens} positive numbers", "weights")


def prefix_counts(
    key: PRNGKeyArray, p: Float[Array, " M"], memory: float | Float[Array, ""], sequences: int, lengths: tuple[int, ...]
) -> Float[Array, "T n M"]:
    """Counts of the tokens among the first 1 .. T of each sequence, at each of the lengths (rising)."""
    edges = jnp.cumsum(p)[:-1]

    def advance(carry: tuple[Array, Array], i: Array) -> tuple[Array, Array]:
        counts, last = carry
        copied, place = jax.random.uniform(jax.random.fold_in(key, i), (2, sequences), jnp.float32)
        fresh = jnp.sum(place[:, None] > edges, 1, dtype=jnp.int32)
        token = jnp.where((copied < memory) & (i > 0), last, fresh)
        return counts + jax.nn.one_hot(token, len(p), dtype=p.dtype), token

    def to_length(carry: tuple[Array, Array], ends: Array) -> tuple[tuple[Array, Array], Array]:
        carry = jax.lax.fori_loop(ends[0], ends[1], lambda i, c: advance(c, i), carry)
        return carry, carry[0]

    ends = np.stack([(0, *lengths[:-1]), lengths], 1)
    start = (jnp.zeros((sequences, len(p)), p.dtype), jnp.zeros(sequences, jnp.int32))
    return jax.lax.scan(to_length, start, jnp.asarray(ends, jnp.int32))[1]


def trial(s: Context, key: PRNGKeyArray) -> jd.Observables:
    """The attention of growing sequences, its limit, and its predicted distance from it."""
    k_p, k_z, k_data = jax.random.split(key, 3)
    normal = jax.random.normal(k_p, (s.tokens,), jnp.float64)
    p = jax.nn.softmax(normal if s.weights is None else jnp.log(jnp.asarray(s.weights, jnp.float64)))
    z = s.logits * jax.random.normal(k_z, (s.tokens,), jnp.float64)
    lengths = tuple(2**i for i in range(s.shortest, s.longest + 1))
    counts = prefix_counts(k_data, p, s.memory, s.sequences, lengths)
    attended = model.attend(jnp.broadcast_to(z, counts.shape), counts)
    ts = jnp.asarray(lengths, jnp.float64)
    spread, uniform, limit = theory.spread(z, p, ts), theory.spread(0 * z, p, ts), theory.attention(z, p)
    numerator = jnp.sqrt(jnp.sum(limit**2 / p * (1 - p)) / ts)
    return jd.observables(
        predicted={"spread": jd.named(spread, "length")},
        measured={"spread": jd.named(jnp.sqrt(jnp.mean(jnp.sum((attended - limit) ** 2, -1), -1)), "length")},
        recorded={"uniform_spread": jd.named(uniform, "length"), "numerator_spread": jd.named(numerator, "length")},
        coords={"length": lengths},
    )


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """The distance over its leading order, at long lengths: its slope in the length, and its level."""
    long = ds.sel(length=ds.length >= LONG)
    ratio = long.measured_spread / long.predicted_spread.clip(1e-30)
    slope = stats.loglog_slope(long.length, ratio, "length")
    level = (ratio**2).mean("length", skipna=False)
    return [
        jd.mean_within("slope in T beyond that of the leading order, T >= 256", slope, over="seed", low=-0.05, high=0.05),
        jd.mean_within("mean square distance / leading order, mean over runs, T >= 256", level, over="seed", low=0.85, high=1.15),
        jd.within("mean square distance / leading order, every run, T >= 256", level, 0.7, 1.3),
    ]


# The error falls like 1/T.
ONE_OVER_LENGTH = jd.swap(predicted_spread=lambda ds: ds.predicted_spread * np.sqrt(LONG / ds.length))


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Distance from the limit against the length, and over its predicted level."""
    left, right = fig.subplots(1, 2)
    one = ds.isel(logits=-1) if "logits" in ds.dims else ds
    color, length = plotting.COLORS, one.length
    plotting.band(left, length, one.measured_spread, "sequences, rms over runs", "measured")
    plotting.band(left, length, one.predicted_spread, "leading order in 1/T", "theory", linestyle="--")
    left.set(xscale="log", yscale="log", xlabel="length T", ylabel=r"$\|c_T - c\|$")
    plotting.band(right, length, (ds.measured_spread / ds.predicted_spread).transpose(..., "length"), "all runs", "measured")
    right.axhline(1.0, color=color["theory"], label="leading order")
    right.set(xscale="log", xlabel="length T", ylabel="measured / predicted", ylim=(0, None))


CLAIMS = (
    jd.Study(
        trial=trial,
        quick=jd.grid(Context, logits=[0.0, 1.0], sequences=256),
        paper=jd.grid(Context, logits=[0.0, 1.0, 2.0], tokens=[8, 32], sequences=256),
        seeds=16,
        paper_seeds=32,
        source="arXiv:2305.16380, Lemma 2; the constant is ours",
    ).claim(
        id="snap.limit",
        talks=(
            "training:snap-assumptions",
            "training:snap-initial",
        ),
        title="Attention on a context of T tokens converges like 1/sqrt(T)",
        statement="For independent contextual tokens of 8 to 32 types with probabilities $P(l)$ and attention logits $z_l$, the "
        r"attention on a context of length $T$ converges to $c_l \propto P(l)\,e^{z_l}$: averaged over lengths from $T = 256$ on, "
        r"$E\|c_T - c\|^2$ over $\frac{1}{T}\sum_l \frac{c_l^2}{P(l)}\, (1 - 2c_l + \|c\|^2)$ is 1 within 15% in the mean over "
        r"random $P$ and $z$ (normal $\ln P$ and $z$, standard deviations 1 and up to 2) and within 30% for each of them, and the "
        r"slope of the logarithm of the distance in $\ln T$ is $-1/2$ within .05, in the mean.",
        holds={"logits": (0.0, 2.0), "tokens": (8, 32)},
        tested="Contexts of 16 to 16,384 tokens of {tokens} types with random probabilities and random logits (standard "
        "deviation {logits}), {sequences} sequences of each; no training; {seeds} seeds.",
        judge=judge,
        evidence="algebra",
        bounds=jd.tuned(on="0:16", confirmed_on="51000000:51000016"),
        rivals={
            "uniform attention": jd.swap(predicted_spread="uniform_spread"),
            "the sum over the context does not fluctuate": jd.swap(predicted_spread="numerator_spread"),
            "an error that falls like 1/T": ONE_OVER_LENGTH,
        },
        controls={
            "tokens remember: each copies the last with probability 0.9": {"memory": 0.9},
            "one token copied throughout": {"memory": 1.0},
        },
        plot=plot,
        caption="Left: distance of the attention from its limit against the length of the sequence, measured (root mean "
        "square over sequences) and to leading order in $1/T$ (dashed), at the largest spread of the logits. Right: measured "
        "over predicted, all runs. Lines and bands: median and central 90% over runs.",
    ),
)
