"""A streaming cache next to other ways to the same logits, and attention after the sink's key has left the cache.

A streaming cache next to other ways to the same logits: one masked pass, and a window with recomputation.

A decoder with random weights reads a text token by token.

Attention before and after the key of the sink has left the cache: all other weights grow, by which a window breaks.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import xarray as xr
from jaxtyping import Array, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.nn import Transformer, attention, cache
from jaxdyn.nn.transformer import init

TOKENS, VOCABULARY = 20, 7


@jd.setting
class Stream:
    """A text of 20 tokens through a cache of ``size``, of which ``sinks`` are the first tokens.

    With ``layers`` = 1 the second block of the network writes nothing into the stream, so that both depths share a program.
    """

    sinks: jd.Swept = jd.field(2.0, at_least=0, whole=True)  # first tokens that the cache keeps
    layers: jd.Swept = 1.0  # blocks that write into the residual stream
    size: int = jd.field(6, at_least=2, below=TOKENS)  # L, keys of the cache, sinks included
    std: float = 0.6  # of the weights: attention is far from uniform

    def __post_init__(self) -> None:
        jd.require(self, self.sinks < self.size, "sinks is below size", "sinks", "size")
        jd.require(self, self.layers in (1, 2), "layers is 1 or 2", "layers")


def window_trial(s: Stream, key: PRNGKeyArray) -> jd.Observables:
    """Logits by decoding, by one pass with pairwise offsets, with positions of the text, and by recomputing a window."""
    # network and text; with one layer, the second writes nothing
    k_w, k_t = jax.random.split(key)
    shape = Transformer(vocabulary=VOCABULARY, width=8, layers=2, heads=2, groups=1, hidden=8, std=s.std, dtype="float64")
    params = init(shape, k_w)
    writes = jnp.stack([jnp.ones((), jnp.float64), s.layers - 1])[:, None, None]
    params["blocks"] |= {name: writes * params["blocks"][name] for name in ("o", "down")}
    tokens = jax.random.randint(k_t, (TOKENS,), 0, VOCABULARY, jnp.int32)
    sinks = jnp.asarray(s.sinks).astype(jnp.int32)

    def pass_of(positions: str) -> Array:
        policy = cache.Policy(kind="streaming", size=s.size, sinks=sinks, positions=positions)
        return cache.prefill(shape, params, policy, tokens)

    # the same logits in several ways
    absolute = jd.named(pass_of("absolute"), "token word")
    decoded = cache.decode(shape, params, cache.Policy(kind="streaming", size=s.size, sinks=sinks), tokens)[1]
    axes = "token word"
    measured = {name: jd.named(decoded, axes) for name in ("pairwise", "absolute", "recomputed")}
    return jd.observables(
        predicted={
            "pairwise": jd.named(pass_of("cache"), axes),
            "absolute": absolute,
            "recomputed": jd.named(cache.recompute(shape, params, s.size, tokens), axes),
        },
        measured=measured,
        recorded={"rotated": absolute},
    )


def judge_of(name: str) -> Callable[[xr.Dataset], list[jd.Check]]:
    """The judge of decoded logits against those of one other way."""

    def judge(ds: xr.Dataset) -> list[jd.Check]:
        return [jd.at_most("relative error of all logits", jd.relative_error(ds, name, "token word"), 1e-9)]

    return judge


def plot_of(name: str) -> Callable[[xr.Dataset, Figure], None]:
    """Logits of decoding against those of the other way."""

    def plot(ds: xr.Dataset, fig: Figure) -> None:
        ax = fig.subplots()
        part = ds.isel(seed=slice(0, 8))
        plotting.scatter(ax, part[f"predicted_{name}"], part[f"measured_{name}"], label="logits", color="measured", log=False)
        ax.set(xlabel="predicted logit", ylabel="logit by decoding with the cache")

    return plot


STUDY = jd.Study(
    trial=window_trial,
    quick=jd.grid(Stream, sinks=[0.0, 2.0], layers=[1.0, 2.0]),
    paper=jd.grid(Stream, sinks=[0.0, 1.0, 4.0], layers=[1.0, 2.0], size=[6, 12]),
    seeds=32,
    paper_seeds=128,
    evidence="algebra",
    bounds="derived: float64 rounding of two blocks of attention and products of 8 terms",
    source="arXiv:2309.17453, section 3.2; the pairwise form: derived",
    tested="Decoders with random weights and rotary positions (layers: {layers}) read 20 tokens with a window of {size} keys; "
    "{seeds} seeds.",
    caption="Logits of decoding token by token against the prediction, one point per token and word; 8 runs per cell.",
)


WINDOW_EQUIV_CLAIMS = (
    STUDY.claim(
        id="stream.equiv",
        title="Decoding with a streaming cache equals one pass with shifted offsets",
        statement=r"In a decoder with rotary positions, decoding with a cache of $L$ keys that holds the first $S < L$ tokens and "
        r"the last $L - S$, at positions within the cache, gives the logits of one pass over the text in which query $i$ sees the "
        r"first tokens $j < S$ at the offsets $\min(i, L - 1) - j$ and the last ones, $i - j < L - S$, at $i - j$. (An identity at "
        "random weights.)",
        talks=("practical:stream-position-rolling", "practical:stream-distance"),
        tested="Decoders with random weights and rotary positions (layers: {layers}) read 20 tokens with caches of {size} keys, "
        "of which {sinks} are first tokens; {seeds} seeds.",
        judge=judge_of("pairwise"),
        controls={"keys are stored after their rotation": jd.swap(measured_pairwise="rotated")},
        rivals={"the logits of a window with recomputation": jd.swap(predicted_pairwise="predicted_recomputed")},
        plot=plot_of("pairwise"),
    ),
    STUDY.claim(
        id="stream.window_recompute",
        title="In one layer a window of keys equals encoding the window anew",
        statement="In a decoder of one layer with rotary positions, decoding with a window of the last keys gives the logits of "
        "encoding the same tokens anew at every step. (An identity at random weights.)",
        talks=("practical:stream-figure-policies",),
        quick=jd.grid(Stream, sinks=0.0),
        paper=jd.grid(Stream, sinks=0.0, size=[6, 12]),
        judge=judge_of("recomputed"),
        controls={"two layers": {"layers": 2.0}, "the first two tokens are kept": {"sinks": 2.0}},
        plot=plot_of("recomputed"),
    ),
    STUDY.claim(
        id="stream.positions_window",
        title="For a plain window, positions in the cache or in the text are alike",
        statement="With rotary positions, a window of the last keys gives the same logits at positions within the cache and "
        "within the text. (An identity at random weights.)",
        talks=("practical:stream-position-rolling",),
        quick=jd.grid(Stream, sinks=0.0, layers=[1.0, 2.0]),
        paper=jd.grid(Stream, sinks=0.0, layers=[1.0, 2.0], size=[6, 12]),
        judge=judge_of("absolute"),
        controls={"the first two tokens are kept": {"sinks": 2.0}},
        plot=plot_of("absolute"),
    ),
)


@jd.setting
class Lost:
    """Random logits, of which the first is set so that its weight is ``mass``; its value has the size ``value``."""

    attention: jd.Code = jd.code("softmax", "zero_sink")  # softmax, or with a 1 in the denominator (zero sink)
    mass: jd.Swept = jd.field(0.9, above=0, below=1)  # weight of the first key before it leaves
    value: jd.Swept = 0.0  # factor on the first key's random value
    length: int = jd.field(12, at_least=2)  # keys before the first one leaves


def sink_trial(s: Lost, key: PRNGKeyArray) -> jd.Observables:
    """Growth of the other weights and of the output when the first key goes."""
    k_a, k_v = jax.random.split(key)
    a = jax.random.normal(k_a, (s.length,), jnp.float64)
    v = jax.random.normal(k_v, (s.length, 4), jnp.float64)
    a = a.at[0].set(jax.nn.logsumexp(a[1:]) + jnp.log(s.mass) - jnp.log1p(-s.mass))
    v = v.at[0].set(s.value * v[0])
    kept = jnp.arange(s.length) > 0

    def both(kind: str) -> tuple[jax.Array, jax.Array]:
        return attention.weights(a[None], kind)[0], attention.weights(a[None], kind, kept[None])[0]

    soft, sink = both("softmax"), both("zero_sink")
    before, after = (jnp.where(s.attention == "softmax", x, y) for x, y in zip(soft, sink, strict=True))
    grown = jnp.linalg.norm(after @ v) / jnp.linalg.norm(before @ v)
    factor = 1 / (1 - s.mass)
    return jd.observables(
        predicted={"weights": jd.named(jnp.full((s.length - 1,), factor), "token"), "output": factor},
        measured={"weights": jd.named((after / before)[1:], "token"), "output": grown},
    )


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Growth of every weight and of the output."""
    return [
        jd.at_most("growth of the other weights: relative error", jd.relative_error(ds, "weights"), 1e-11),
        jd.at_most("growth of the output: relative error", jd.relative_error(ds, "output"), 1e-11),
    ]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Growth of weights and output, predicted and measured."""
    ax = fig.subplots()
    plotting.scatter(ax, ds.predicted_weights, ds.measured_weights, label="weights", color="measured")
    plotting.scatter(ax, ds.predicted_output, ds.measured_output, label="output", color="third")
    ax.set(xlabel=r"$1 / (1 - s)$", ylabel="growth")


CLAIMS = (
    *WINDOW_EQUIV_CLAIMS,
    jd.Study(
        trial=sink_trial,
        quick=jd.grid(Lost, mass=[0.03, 0.5, 0.9, 0.99]),
        paper=jd.grid(Lost, mass=[0.03, 0.1, 0.5, 0.9, 0.99], length=[12, 100]),
        seeds=64,
        paper_seeds=256,
        evidence="algebra",
        bounds="derived: float64 rounding, over the weight of at least .01 that is left",
        source="derived; it is the reason that arXiv:2309.17453, section 3.1, gives in words",
    ).claim(
        id="stream.lost_sink",
        title="When an attention sink leaves the cache, all other weights grow",
        statement=r"If a key with the softmax weight $s$ leaves the cache, every other weight grows by the factor $1/(1-s)$, and "
        "so does the norm of the output if the value of that key was 0. (An identity.)",
        decides={
            "all other weights": ("growth of the other weights: relative error", "attention has a zero sink"),
            "every other weight": ("growth of the other weights: relative error", "attention has a zero sink"),
        },
        talks=("practical:sink-softmax-equation",),
        tested=r"{length} random logits, one of which has the weight $s$ = {mass}; {seeds} seeds.",
        judge=judge,
        controls={
            "the key has a value": jd.Control({"value": 1.0}, breaks="the value of that key was 0"),
            "attention has a zero sink": {"attention": "zero_sink"},
        },
        rivals={"nothing grows": jd.swap(predicted_weights=1.0, predicted_output=1.0)},
        plot=plot,
        caption="Growth of the weights and of the output's norm when a key of weight s leaves, against 1 / (1 - s); one point a "
        "weight and run.",
    ),
)
