"""A streaming cache next to other ways to the same logits: one masked pass, and a window with recomputation.

A decoder with random weights reads a text token by token.
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
from jaxdyn.nn import Transformer, cache
from jaxdyn.nn.transformer import init

TOKENS, VOCABULARY = 20, 7


@jd.setting
class Stream:
    """A text of 20 tokens through a cache of ``size``, of which ``sinks`` are the first tokens.

    With ``layers`` = 1 the second block of the network writes nothing into the stream, so that both depths share a program.
    """

    sinks: jd.Swept = jd.field(2.0, at_least=0)  # first tokens that the cache keeps
    layers: jd.Swept = 1.0  # blocks that write into the residual stream
    size: int = jd.field(6, at_least=2, below=TOKENS)  # L, keys of the cache, sinks included
    std: float = 0.6  # of the weights: attention is far from uniform

    def __post_init__(self) -> None:
        jd.require(self, self.sinks < self.size, "sinks is below size", "sinks", "size")
        jd.require(self, self.layers in (1, 2), "layers is 1 or 2", "layers")


def trial(s: Stream, key: PRNGKeyArray) -> jd.Observables:
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
    trial=trial,
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

CLAIMS = (
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
