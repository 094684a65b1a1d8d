r"""Line breaks in the place of the first tokens, in a published language model: is it their place that counts, or their content?

Each piece of text is read through a cache that keeps its first four tokens, and again with four line breaks in their place.
Perplexities are those of the tokens beyond the size of the cache, the same ones in both; keys have positions within the cache.

Equal tokens that see nothing but each other have equal streams: a mean of equal values is that value. So their keys differ by a
rotation only, and they share the weight of a sink evenly, but for that rotation.

Source: arXiv:2309.17453, section 3.1 and table 1; the even shares: derived.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, Int, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.models.on_text import SMOLLM2, ModelAndText, OnText, on_text_with_line_break, piece
from jaxdyn.nn import cache
from jaxdyn.nn.activations import BlockActivations, cross_entropies, reduce_blocks
from jaxdyn.nn.cache.full_text import prefill_residual
from jaxdyn.nn.cache.published import LINEBREAK
from jaxdyn.theories.sink.instrument import received
from jaxdyn.theories.stream import instrument as streaming

BREAKS = 4  # line breaks in the place of the first tokens
READINGS = ("window", "own tokens", "line breaks", "line breaks, dropped")  # of a piece through a cache
TEXTS = ("own tokens", "line breaks", "line breaks in the middle")  # whose four tokens get weight
UPPER = range(13, 31)  # layers whose sinks are compared
PRINTED = float(np.log(LINEBREAK["window"] / LINEBREAK["replaced"]) / np.log(LINEBREAK["window"] / LINEBREAK["4 sinks"]))
OVER_OWN = "perplexity, line breaks over own first tokens, mean over pieces"
WINDOW = "log perplexity, window minus line breaks, mean over pieces"
SAVED = "share of a window's loss that line breaks save, minus the printed share, mean over pieces"
HELD = "weight on the first four places, line breaks / own tokens, mean over layers 13 to 30 and pieces"
EVEN = "weight on each line break / a quarter of their weight, mean over layers 13 to 30 and pieces"
TENTH, FIFTH = 0.1, 0.2  # of perplexities and shares; of weights
WITHOUT = np.log(1.6), np.log(9.0)  # of a window over line breaks, in nats: as over one first token in stream.model_sinks


def lost(shared: ModelAndText, own: Int[Array, " n"], broken: Int[Array, " n"]) -> Float[Array, " reading"]:
    """Nats of the tokens beyond the size of the cache, with the text's own first tokens dropped and kept, and with line breaks."""
    shape, params = shared.shape, shared.params
    size = int(streaming.spots(own.size)[0])

    def one(text: Int[Array, " n"], kept: Int[Array, ""]) -> Float[Array, ""]:
        policy = cache.Policy(kind="streaming", size=size, sinks=kept)
        stream = prefill_residual(shape, params, policy, text[:-1])
        return jnp.mean(cross_entropies(shape, params, stream, text[1:])[size:])

    texts, kept = jnp.stack([own, own, broken, broken]), jnp.asarray([0, BREAKS, BREAKS, 0], jnp.int32)
    return jax.lax.map(lambda given: one(*given), (texts, kept))


def weights(shared: ModelAndText, text: Int[Array, " n"], begin: Int[Array, ""]) -> Float[Array, "layer place"]:
    """Weight on four tokens from a place on, mean over heads and later queries."""
    shape = shared.shape

    def on_four(block: BlockActivations) -> Float[Array, " place"]:
        alpha = jnp.mean(received(block.attention.astype(jnp.float32)), 0)
        return jax.lax.dynamic_slice(alpha, (begin + shape.sink_token,), (BREAKS,))

    return reduce_blocks(shape, shared.params, text[None], on_four)[1]


@on_text_with_line_break
def trial(s: OnText, key: PRNGKeyArray, shared: ModelAndText) -> jd.Observables:
    """Nats with a window, with the first tokens and with line breaks in their place; weights on both, and in the middle."""
    own, middle = piece(s, key, shared), s.length // 2
    broken = own.at[:BREAKS].set(shared.line_break)
    within = own.at[middle : middle + BREAKS].set(shared.line_break)
    nats = lost(shared, own, broken)
    texts, begins = jnp.stack([own, broken, within]), jnp.asarray([0, 0, middle], jnp.int32)
    on_four = jax.lax.map(lambda given: weights(shared, *given), (texts, begins))
    each = on_four[TEXTS.index("line breaks")]
    return jd.observables(
        predicted={
            "saved": PRINTED * (nats[0] - nats[1]),
            "each": jd.named(jnp.broadcast_to(jnp.mean(each, -1, keepdims=True), each.shape), "layer place"),
        },
        measured={"saved": nats[0] - nats[2], "each": jd.named(each, "layer place")},
        recorded={"nats": jd.named(nats, "reading"), "weights": jd.named(on_four, "text layer place")},
        coords={
            "reading": READINGS,
            "text": TEXTS,
            "layer": tuple(range(1, shared.shape.depth + 1)),
            "place": tuple(range(1, BREAKS + 1)),
        },
    )


def more(ds: xr.Dataset, reading: str, than: str = "own tokens") -> xr.DataArray:
    """Log perplexity of one reading minus that of another, piece by piece."""
    return ds.nats.sel(reading=reading, drop=True) - ds.nats.sel(reading=than, drop=True)


def upper(on_four: xr.DataArray) -> xr.DataArray:
    """Mean over the layers above the twelfth."""
    return on_four.sel(layer=list(UPPER)).mean("layer")


def weights_of(ds: xr.Dataset, text: str) -> xr.DataArray:
    """Weights on four places of a text."""
    return ds.weights.sel(text=text, drop=True)


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Line breaks in the place of the first tokens against these and against a window; the weight on them."""
    jd.need(ds, layer=30)
    loss, each, own = more(ds, "window"), upper(ds.measured_each), upper(weights_of(ds, "own tokens"))
    ratio = np.exp(loss - ds.measured_saved)
    return [
        jd.mean_within(OVER_OWN, ratio, over="seed", low=1 - TENTH, high=1 + TENTH),
        jd.mean_within(WINDOW, ds.measured_saved, over="seed", low=WITHOUT[0], high=WITHOUT[1]),
        jd.mean_within(SAVED, (ds.measured_saved - ds.predicted_saved) / loss, over="seed", low=-TENTH, high=TENTH),
        jd.mean_within(HELD, each.sum("place") / own.sum("place"), over="seed", low=1 - FIFTH, high=1 + FIFTH),
        jd.mean_within(EVEN, each / upper(ds.predicted_each), over="seed", low=1 - TENTH, high=1 + TENTH),
    ]


def dropped(ds: xr.Dataset) -> xr.DataArray:
    """What line breaks save that the cache does not keep."""
    return -more(ds, "line breaks, dropped", "window")


def window_over_own(ds: xr.Dataset) -> float:
    """Perplexity of a window over that with the text's own first tokens, mean over pieces."""
    return float(np.exp(more(ds, "window")).mean())


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """What line breaks cost next to what a window costs; weights on four places by layer."""
    left, right = fig.subplots(1, 2)
    loss = more(ds, "window").values.ravel()
    for reading, color in (("line breaks", "measured"), ("line breaks, dropped", "third")):
        left.plot(loss, more(ds, reading).values.ravel(), "o", color=plotting.COLORS[color], label=reading)
    line = np.asarray([0, np.nanmax(loss)])
    left.plot(line, line, "--", color=plotting.COLORS["theory"], label="the tokens count")
    left.axhline(0, color=plotting.COLORS["control"], linewidth=1, label="their place counts")
    left.set(xlabel="window minus own first tokens, nats", ylabel="line breaks minus own first tokens, nats")
    for text, color in zip(TEXTS, ("theory", "measured", "fourth"), strict=True):
        plotting.band(right, ds.layer, weights_of(ds, text).sum("place").transpose(..., "layer"), text, color)
    first = ds.measured_each.isel(place=0, drop=True).transpose(..., "layer")
    plotting.band(right, ds.layer, first, "the first line break", "fifth", linestyle=":")
    right.set(xlabel="layer", ylabel="weight on four tokens", ylim=(0, None))


CLAIMS = (
    jd.Study(
        trial=trial,
        quick=jd.grid(OnText, length=256),
        seeds=16,
        paper_seeds=24,
        evidence="model",
        bounds=jd.tuned(on="0:16", confirmed_on="76000000:76000016"),
        source="arXiv:2309.17453, section 3.1 and table 1 (line breaks in the place of the first tokens, Llama-2-13B); that equal "
        "tokens share the sink evenly is derived",
    ).claim(
        id="stream.model_linebreak",
        title="Four line breaks in front do for SmolLM2 what its first tokens do",
        statement="For SmolLM2-135M-Instruct the place of the first tokens in the cache counts, not their content. With four line "
        "breaks in the place of the first four tokens, kept in a cache of 64 keys, the perplexity is within 10% of that with the "
        "text's own, on average over pieces of 256 tokens of the Python interpreter's manual; a window without them has 1.6 to 9 "
        "times that with line breaks, on average. Of the nats that a window loses, line breaks save the share that printed "
        "perplexities of Llama-2-13B give, .995, within .1. With line breaks the first four places get .8 to 1.2 times the "
        "weight that they get with the text's own tokens, mean over layers 13 to 30; each of the four line breaks has a quarter "
        "of it within a tenth.",
        talks=(
            "practical:stream-table-linebreak",
            "practical:stream-linebreak-13b",
            "practical:sink-position",
        ),
        tested=f"{SMOLLM2}, through caches of 64 keys, as they are and with four line breaks in the place of the first four "
        "tokens; perplexities are of the tokens after the 64th. Weights are means over heads and later queries in pieces that are "
        "read as a whole.",
        judge=judge,
        controls={
            "line breaks that the cache does not keep": jd.Control(jd.swap(measured_saved=dropped), breaks="kept in a cache"),
            "line breaks in the middle of the piece": jd.Control(
                jd.swap(measured_each=lambda ds: weights_of(ds, "line breaks in the middle")),
                breaks="in the place of the first four tokens",
            ),
        },
        rivals={
            "the tokens count, not their place": jd.off({OVER_OWN: window_over_own, WINDOW: 0.0, SAVED: -PRINTED}),
            "line breaks save nothing": jd.swap(predicted_saved=0.0),
            "the first place alone is the sink": jd.swap(predicted_each=lambda ds: weights_of(ds, "own tokens")),
            "a window breaks as in Llama-2-13B": {WINDOW: float(np.log(LINEBREAK["window"] / LINEBREAK["replaced"]))},
        },
        plot=plot,
        caption="Left: cross-entropy with four line breaks in front, kept in a cache of 64 keys or dropped, minus that with the "
        "text's own first tokens, against what a window loses; one point per piece. Right: weight on four tokens by layer, mean "
        "over heads and later queries; lines and bands: median and central 90% of the pieces of text.",
    ),
)
