r"""Caches of fixed size in a published language model: what a window breaks, how many first tokens mend it, and bytes held.

Perplexities are those of the tokens beyond the size of the caches, the same ones for all policies; keys have positions within the
cache. Bytes are counted in the caches themselves, places that hold a key, while the model decodes the beginning of the text:
:math:`2 \cdot \text{depth} \cdot g\, e \min(t, L)` numbers after t tokens.
Letters: L keys of a cache, g heads of keys with e numbers.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Int, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.models.on_text import SMOLLM2, ModelAndText, OnText, on_text, piece
from jaxdyn.nn import cache
from jaxdyn.nn.cache.published import FIGURE_1, FOUR_HUNDRED_K
from jaxdyn.theories.stream import instrument as streaming

FORMS = ("one", "four")  # first tokens that are needed
COUNTS = (1, 2, 8)  # first tokens in caches that are compared with four
NAMES = ("1 sink", "2 sinks", "8 sinks")
STRETCHES = 6  # of the tokens beyond the size of the caches
HALF = slice(STRETCHES // 2, None)
SMALL, DECODED = 6, 12  # keys of the cache, and tokens, while bytes are counted
CACHES = {
    "streaming": cache.Policy(kind="streaming", size=SMALL, sinks=4),
    "dense": cache.Policy(kind="dense", size=DECODED),
}
LLAMA = [FOUR_HUNDRED_K["Llama-2-7B"][name] / FOUR_HUNDRED_K["Llama-2-7B"]["4 sinks"] for name in NAMES]
WINDOW = "log perplexity, window minus 4 sinks, mean over pieces"
AGAIN = "log perplexity, 4 sinks minus recomputation, mean over pieces"
OVER = "log perplexity, 4 sinks minus a cache for everything, mean over pieces"
RATIO = "log of perplexity over that with 4 sinks, over predicted, mean over pieces"
ONE = "log perplexity, window minus 1 sink, mean over pieces"
COUNTED = "bytes in the caches / formula, minus 1, every token"
FLAT = "bytes of the streaming cache, end / when full"
LINEAR = "bytes of the dense cache, the same"
LEVEL = "log perplexity, 4 sinks minus a cache for everything, second half, mean over pieces"
LEAST, SAME, CLOSE = np.log(1.35), np.log(1.1), np.log(2.0)  # of ratios of perplexities
BROKEN = np.log(1.8), np.log(8.0)  # the same, of a window over four first tokens, mean over pieces
WITHOUT = np.log(1.6), np.log(9.0)  # over one, which may differ from four by a tenth


def bytes_by_token(shared: ModelAndText, policy: cache.Policy, tokens: Int[Array, " n"]) -> Int[Array, " n"]:
    """Bytes of the places that hold a key and a value, in all layers, after each token."""

    def one(state: cache.State, token: Int[Array, ""]) -> tuple[cache.State, Int[Array, ""]]:
        state, _ = cache.step(shared.shape, shared.params, policy, state, token)
        layers = state.layers
        place = (layers.key.nbytes + layers.value.nbytes) // layers.born.size
        return state, place * jnp.sum(layers.born >= 0, dtype=jnp.int32)

    return jax.lax.scan(one, cache.start(shared.shape, policy), tokens)[1]


@on_text
def trial(s: OnText, key: PRNGKeyArray, shared: ModelAndText) -> jd.Observables:
    """Nats beyond the size of the caches with every policy, ratios of perplexities, and bytes in two caches by token."""
    # perplexities
    tokens = piece(s, key, shared)
    seen = streaming.observe(shared.shape, shared.params, tokens)
    spots = streaming.spots(s.length)
    late = seen["nats"][:, spots[0] :]
    part = late.shape[1] // STRETCHES
    stretches = jnp.mean(late[:, : STRETCHES * part].reshape(len(late), STRETCHES, part), -1)
    nats = jnp.mean(late, -1)
    at = {name: streaming.POLICIES.index(name) for name in streaming.POLICIES}
    counted = jnp.asarray([at[name] for name in NAMES])
    # bytes
    begun = tokens[:DECODED]
    bytes_ = jnp.stack([bytes_by_token(shared, policy, begun) for policy in CACHES.values()])
    shape = shared.shape
    number = 2 * shape.depth * shape.key_heads * shape.entries * jnp.dtype(shape.dtype).itemsize
    steps = np.arange(1, DECODED + 1)
    formula = number * np.stack([np.minimum(steps, SMALL), steps])
    return jd.observables(
        predicted={
            "ratio": jd.named(jnp.asarray([[1.0] * len(COUNTS), LLAMA], jnp.float32), "form sinks"),
            "bytes": jd.named(jnp.asarray(formula, jnp.float32), "cache token"),
        },
        measured={
            "ratio": jd.named(jnp.exp(nats[counted] - nats[at["4 sinks"]]), "sinks"),
            "bytes": jd.named(bytes_.astype(jnp.float32), "cache token"),
        },
        recorded={
            "nats": jd.named(nats, "policy"),
            "stretches": jd.named(stretches, "policy stretch"),
            "again": jnp.mean(seen["nats"][at["4 sinks"], spots] - seen["recomputed"]),
            "again_window": jnp.mean(seen["nats"][at["window"], spots] - seen["recomputed"]),
            "begins": jd.named(jnp.asarray(spots[0] + part * np.arange(STRETCHES), jnp.int32), "stretch"),
        },
        coords={"form": FORMS, "sinks": COUNTS, "cache": tuple(CACHES), "token": steps.tolist(), "policy": streaming.POLICIES},
    )


def more(ds: xr.Dataset, policy: str, than: str, name: str = "nats") -> xr.DataArray:
    """Log perplexity with one policy minus that with another, piece by piece."""
    return ds[name].sel(policy=policy, drop=True) - ds[name].sel(policy=than, drop=True)


def judge_window(ds: xr.Dataset) -> list[jd.Check]:
    """A window against four sinks; these against recomputation and a cache for everything."""
    return [
        jd.mean_within(WINDOW, more(ds, "window", "4 sinks"), over="seed", low=BROKEN[0], high=BROKEN[1]),
        jd.mean_within(AGAIN, ds.again, over="seed", low=-LEAST, high=LEAST),
        jd.mean_within(OVER, more(ds, "4 sinks", "dense"), over="seed", high=CLOSE),
    ]


def judge_sinks(ds: xr.Dataset) -> list[jd.Check]:
    """One, two and eight first tokens against four, next to what is predicted; one against none."""
    return [
        jd.mean_within(RATIO, np.log(ds.measured_ratio / ds.predicted_ratio), over="seed", low=-SAME, high=SAME),
        jd.mean_within(ONE, more(ds, "window", "1 sink"), over="seed", low=WITHOUT[0], high=WITHOUT[1]),
    ]


def judge_bytes(ds: xr.Dataset) -> list[jd.Check]:
    """Bytes against the formula, their growth once the smaller cache is full, and the perplexity at the end of the pieces."""
    late = more(ds, "4 sinks", "dense", "stretches").isel(stretch=HALF).mean("stretch")
    grown = ds.measured_bytes.isel(token=-1) / ds.measured_bytes.sel(token=SMALL, drop=True)
    return [
        jd.within(COUNTED, ds.measured_bytes / ds.predicted_bytes - 1, -1e-6, 1e-6),
        jd.within(FLAT, grown.sel(cache="streaming", drop=True), 1, 1),
        jd.within(LINEAR, grown.sel(cache="dense", drop=True), DECODED / SMALL, DECODED / SMALL),
        jd.mean_within(LEVEL, late, over="seed", high=CLOSE),
    ]


def published(ds: xr.Dataset) -> xr.DataArray:
    """Perplexities of Llama-2-7B over that with four first tokens."""
    return xr.DataArray(np.asarray(LLAMA, np.float32), {"sinks": ds.sinks.values}, "sinks")


def as_window(*policies: str) -> Callable[[xr.Dataset], xr.Dataset]:
    """What is named as these policies is read with a window."""

    def by(name: str) -> Callable[[xr.Dataset], xr.DataArray]:
        return lambda ds: xr.where(ds.policy.isin(policies), ds[name].sel(policy="window", drop=True), ds[name])

    def ratio(ds: xr.Dataset) -> xr.DataArray:
        window = np.exp(more(ds, "window", "4 sinks")).astype(np.float32)
        one = (ds.sinks == 1) & ("1 sink" in policies)
        return xr.where(one, window, ds.measured_ratio)

    return jd.swap(nats=by("nats"), stretches=by("stretches"), measured_ratio=ratio, again="again_window")


def plot_text(ds: xr.Dataset, fig: Figure) -> None:
    """Log perplexity over that with a cache for everything, along the pieces."""
    ax = fig.subplots()
    along = ds.stretches - ds.stretches.sel(policy="dense", drop=True)
    x = ds.begins.values.reshape(-1, ds.sizes["stretch"])[0]
    x = x + (x[1] - x[0]) / 2
    for name, color in (("window", "theory"), ("1 sink", "third"), ("4 sinks", "measured")):
        plotting.band(ax, x, along.sel(policy=name).transpose(..., "stretch"), name, color)
    ax.axhline(0, color=plotting.COLORS["control"], linewidth=1)
    ax.set(xlabel="token of the piece", ylabel="nats, minus those with everything")


def plot_sinks(ds: xr.Dataset, fig: Figure) -> None:
    """Perplexity by the number of first tokens, over that with four, next to published rows."""
    ax = fig.subplots()
    names = list(streaming.SINKS)
    own = np.exp(ds.nats.sel(policy=names) - ds.nats.sel(policy="4 sinks", drop=True))
    plotting.band(ax, range(len(names)), own.transpose(..., "policy"), "SmolLM2-135M-Instruct", marker="o")
    for (model, row), color in zip(FOUR_HUNDRED_K.items(), ("fourth", "fifth", "third", "theory"), strict=True):
        ax.plot(range(len(names)), [row[n] / row["4 sinks"] for n in names], "--", color=plotting.COLORS[color], label=model)
    ax.set_xticks(range(len(names)), [str(n) for n in streaming.SINKS.values()])
    ax.set(xlabel="first tokens in the cache", ylabel="perplexity over that with 4", yscale="log")


def plot_bytes(ds: xr.Dataset, fig: Figure) -> None:
    """Bytes by token, and the perplexity along the pieces."""
    left, right = fig.subplots(1, 2)
    one = plotting.first_run(ds)
    for name, color in (("dense", "theory"), ("streaming", "measured")):
        left.plot(ds.token, one.measured_bytes.sel(cache=name) / 2**20, "o", color=plotting.COLORS[color], label=name)
        left.plot(ds.token, one.predicted_bytes.sel(cache=name) / 2**20, "--", color=plotting.COLORS[color])
    left.set_xticks(range(0, DECODED + 1, 3))
    left.set(xlabel="tokens decoded", ylabel="MiB of keys and values", ylim=(0, None))
    along = ds.stretches - ds.stretches.sel(policy="dense", drop=True)
    for name, color in (("window", "theory"), ("4 sinks", "measured")):
        plotting.band(right, one.begins, along.sel(policy=name).transpose(..., "stretch"), name, color)
    right.set(xlabel="token of the piece", ylabel="nats, minus those with everything")


STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(OnText, length=256),
    seeds=16,
    paper_seeds=24,
    evidence="model",
    bounds=jd.tuned(on="72000000:72000010", confirmed_on="73000000:73000016"),
    tested=f"{SMOLLM2}, through caches of 64 keys; perplexities are of the tokens after the 64th, recomputation of 8 of "
    "them, and means over pieces are of their logarithms.",
    source="arXiv:2309.17453, sections 3.1 and 3.2, figure 1 and table 2 (Llama-2, MPT, Falcon and Pythia)",
)
LOOKED = jd.tuned(on="72000000:73000016", confirmed_on="74000000:74000024")
BANDS = "Lines and bands: median and central 90% of the pieces of text"
SINKS = STUDY.claim(
    id="stream.model_sinks",
    title="One first token in the cache is enough for SmolLM2",
    statement="For SmolLM2-135M-Instruct one first token in the cache does what it needs: with one, two and eight the perplexity "
    "is within 10% of that with four, in caches of 64 keys and on average over pieces of 256 tokens of the Python interpreter's "
    "manual. Without any it is 1.6 to 9 times that with one, on average.",
    talks=("practical:stream-pretraining-vanilla",),
    form="one",
    judge=judge_sinks,
    controls={"a window in place of one sink": jd.Control(as_window("1 sink"), breaks="one first token")},
    rivals={
        "first tokens do not matter": jd.off({ONE: 0.0}),
        "more first tokens help as in Llama-2-7B": jd.swap(predicted_ratio=published),
    },
    plot=plot_sinks,
    caption=f"Perplexity by the number of first tokens in a cache of 64 keys, over that with four. {BANDS}; dashed: published rows "
    "of larger models.",
)
CLAIMS = (
    STUDY.claim(
        id="stream.model_window",
        title="A window breaks SmolLM2, and four first tokens mend it",
        statement="When its window drops the first token, the perplexity of SmolLM2-135M-Instruct is 1.8 to 8 times that of a "
        "cache of the same 64 keys which keeps the first four tokens, on average over pieces of 256 tokens of the Python "
        "interpreter's manual. With these it is, on average over pieces, that of encoding each window anew within a factor of "
        "1.35, on the few tokens for which that is done, and at most twice that with a cache for everything.",
        talks=(
            "practical:stream-table-linebreak",
            "practical:stream-window-13b",
            "practical:stream-four-tokens-13b",
            "practical:stream-figure-policies",
        ),
        form="one",
        bounds=LOOKED,
        max_seeds=24,
        judge=judge_window,
        controls={"a window in place of four sinks": as_window("4 sinks")},
        rivals={
            "first tokens do not matter": jd.off({WINDOW: 0.0}),
            "four are as far from recomputation as a window": {AGAIN: lambda ds: float(ds.again_window.mean())},
            "it breaks as Llama-2-13B does": {WINDOW: float(np.log(FIGURE_1["window"] / FIGURE_1["4 sinks"]))},
        },
        plot=plot_text,
        caption="Cross-entropy with caches of 64 keys minus that with a cache for everything, along the pieces. " + BANDS + ".",
    ),
    SINKS,
    SINKS.as_printed(
        id="stream.model_sinks_beyond",
        title="SmolLM2 needs four first tokens in the cache, as Llama-2 does",
        statement="For SmolLM2-135M-Instruct, as for Llama-2-7B, one or two first tokens in the cache do not do: perplexities "
        "with one, two and eight are to that with four as those of Llama-2-7B, within 10% on average over pieces of text. "
        "Without any it is 1.6 to 9 times that with one, on average.",
        form="four",
    ),
    STUDY.claim(
        id="stream.model_constant_memory",
        title="SmolLM2 decodes with four first tokens in constant memory",
        statement=r"While SmolLM2-135M-Instruct decodes, its streaming cache of $L$ keys holds $2 \cdot 30 \cdot 3 \cdot 64 "
        r"\min(t, L)$ numbers after $t$ tokens: no more once it is full, where a dense cache doubles from $L$ to $2L$ tokens. In "
        "the last three eighths of a piece of four such lengths of the Python interpreter's manual, with 64 keys, its perplexity "
        "is at most twice that with everything, on average over pieces.",
        talks=("practical:stream-constant-memory",),
        tested=f"{SMOLLM2}: the first 12 tokens are decoded with caches of 6 and of 12 keys, whose places that hold a key are "
        "counted after each token; perplexities are with caches of 64 keys and of 256, over the second half of those after "
        "the 64th, means over pieces of their logarithms.",
        form="one",
        bounds=LOOKED,
        judge=judge_bytes,
        controls={"a window in place of four sinks": as_window("4 sinks")},
        rivals={
            "nothing is dropped": jd.off(
                jd.swap(predicted_bytes=lambda ds: ds.predicted_bytes.sel(cache="dense", drop=True) + 0 * ds.predicted_bytes)
            ),
            "the streaming cache grows, too": {FLAT: DECODED / SMALL},
            "the dense cache does not grow": {LINEAR: 1.0},
        },
        plot=plot_bytes,
        caption="Left: bytes of keys and values in the cache after each token; dashed: formula. Right: cross-entropy minus that "
        "with "
        f"a cache for everything, along the pieces. {BANDS}.",
    ),
)
