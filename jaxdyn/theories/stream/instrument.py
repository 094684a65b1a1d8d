r"""Streaming: perplexity of long texts with a cache of L keys, which holds the last ones, or S first tokens and the last L - S.

Policies are those of :mod:`jaxdyn.nn.cache`; keys have positions within the cache. Perplexity is that of the tokens beyond the
cache's size, the same for all policies; "recomputed" reads the last L tokens from scratch for some of these tokens.

Source: arXiv:2309.17453, section 3.2, figure 1 and tables 1 to 3. Letters: L keys in the cache, S sinks, n tokens of a piece.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, Int, PyTree

from jaxdyn import stats
from jaxdyn.instruments.drawing import curve
from jaxdyn.instruments.instrument import Cost, Instrument, Number, Table, Tick, exponential, need, number
from jaxdyn.instruments.pieces import attention_bytes, each_piece, first, forward, reading
from jaxdyn.nn import Transformer
from jaxdyn.nn.activations import cross_entropies
from jaxdyn.nn.cache.full_text import prefill_residual
from jaxdyn.nn.cache.policy import Policy
from jaxdyn.nn.cache.published import FIGURE_1, FOUR_HUNDRED_K, PRETRAINED
from jaxdyn.nn.transformer import trunk
from jaxdyn.plotting import COLORS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from jaxdyn.instruments.instrument import Model

__all__ = ["INSTRUMENTS", "POLICIES", "SHARE", "SINKS", "STREAMING", "measure", "observe", "predict", "spots"]

PIECES, LENGTH = 4, 2048
SHARE = 4  # a piece is this many times as long as the cache
SINKS = {"window": 0, "1 sink": 1, "2 sinks": 2, "4 sinks": 4, "8 sinks": 8}
POLICIES = ("dense", *SINKS)
SPOTS = 8  # tokens of a piece that are predicted with recomputation
BINS = 16  # stretches of a piece in the figure
DRAWN = {"window": "theory", "1 sink": "third", "4 sinks": "measured"}


def observe(shape: Transformer, params: PyTree, tokens: Int[Array, " n"]) -> dict[str, Array]:
    """Cross-entropy of every token but the first with each policy, and of some with recomputation."""
    read, size = tokens[:-1], _size(tokens.size)

    def lost(policy: Policy) -> Float[Array, " n1"]:
        return cross_entropies(shape, params, prefill_residual(shape, params, policy, read), tokens[1:])

    dense = lost(Policy(kind="dense", size=read.size + shape.sink_token, positions="absolute"))
    sinks = jnp.asarray(list(SINKS.values()), jnp.int32)
    cached = jax.lax.map(lambda s: lost(Policy(kind="streaming", size=size, sinks=s)), sinks)
    places = spots(tokens.size)

    def again(i: Int[Array, ""]) -> Float[Array, ""]:
        window = jax.lax.dynamic_slice(read, (i - size + 1,), (size,))
        return cross_entropies(shape, params, trunk(shape, params, window[None])[0, -1:], tokens[i + 1][None])[0]

    return {"nats": jnp.concatenate([dense[None], cached]), "recomputed": jax.lax.map(again, places)}


def _size(length: int) -> int:
    """Keys in the cache, for pieces of this length."""
    return max(length // SHARE, max(SINKS.values()) + 1)


def spots(length: int) -> Int[np.ndarray, " spot"]:
    """Places of the last tokens before those that are predicted with recomputation."""
    return np.linspace(_size(length), length - 2, SPOTS).astype(np.int32)


def measure(model: Model, tokens: Int[np.ndarray, "piece n"], tick: Tick) -> xr.Dataset:
    """Nats of each token by policy; token i is predicted from those before it.

    Raises:
        NotApplicable: for attention that is not causal, and for other outputs than logits of tokens.
    """
    need(model.shape, "causal", "logits")
    used = first(tokens, PIECES, LENGTH)
    seen = each_piece(model, observe, used, tick)
    n = used.shape[1]
    data = {"nats": (("piece", "policy", "token"), seen["nats"]), "recomputed": (("piece", "spot"), seen["recomputed"])}
    coords = {"policy": list(POLICIES), "token": np.arange(1, n), "spot": spots(n) + 1}
    return xr.Dataset(data, coords, {"size": _size(n), "tokens": n} | reading(used))


def predict(ds: xr.Dataset) -> xr.Dataset:
    """Perplexities over those with four sinks, as published for Llama-2-7B; for dense and recomputation Llama-2-13B."""
    seven, thirteen = FOUR_HUNDRED_K["Llama-2-7B"], FIGURE_1
    values = [1.0, *(seven[name] / seven["4 sinks"] for name in SINKS)]
    return xr.Dataset(
        {"ratio": ("policy", values), "recomputed": thirteen["recomputed"] / thirteen["4 sinks"]}, {"policy": list(POLICIES)}
    )


def late(ds: xr.Dataset) -> xr.DataArray:
    """Mean nats of the tokens beyond the cache's size, by piece and policy."""
    return ds.nats.sel(token=slice(ds.attrs["size"] + 1, None)).mean("token", skipna=False)


def numbers(ds: xr.Dataset) -> list[Number]:
    """Perplexities, and their ratios to the dense cache; intervals are those of the mean of logarithms."""
    size, nat, law = int(ds.attrs["size"]), late(ds), predict(ds)
    dense = nat.sel(policy="dense")
    shown = [exponential(number("perplexity, dense", dense))]
    for name in POLICIES[1:]:
        expected = float(law.ratio.sel(policy=name)) if name != "4 sinks" else None
        ratio = exponential(number(f"perplexity over dense, {_written(name, size)}", nat.sel(policy=name) - dense))
        shown.append(ratio)
        if expected is not None:
            over = number(f"perplexity over 4 sinks, {_written(name, size)}", nat.sel(policy=name) - nat.sel(policy="4 sinks"))
            shown.append(exponential(over, expected, "Llama-2-7B, arXiv:2309.17453, table 2"))
    again = ds.recomputed - ds.nats.sel(policy="4 sinks", token=ds.spot)
    shown.append(
        exponential(number("recomputation over 4 sinks", again), float(law.recomputed), "Llama-2-13B, arXiv:2309.17453, figure 1")
    )
    return shown


def _written(policy: str, size: int) -> str:
    """A cache as the paper writes it: ``4+508``."""
    return f"{SINKS[policy]}+{size - SINKS[policy]}" if policy in SINKS else policy


def table(ds: xr.Dataset) -> Table:
    """Perplexities in the paper's columns, published rows below; that of recomputation by its ratio to four sinks."""
    mean, low, high = stats.mean_interval(late(ds), "piece")
    ours = [[float(np.exp(x.sel(policy=p))) for x in (mean, low, high)] for p in (*SINKS, "dense")]
    same = (ds.recomputed - ds.nats.sel(policy="4 sinks", token=ds.spot)).mean("spot", skipna=False)  # at the same tokens
    again = exponential(number("", late(ds).sel(policy="4 sinks") + same))
    cells = [_cell(*values) for values in ours] + [_cell(again.value, again.low, again.high)]
    size, names = int(ds.attrs["size"]), (*SINKS, "dense", "recomputed")
    rows = [(f"this model, L = {size}", tuple(cells))]
    published = {f"{model}, PG19": row for model, row in FOUR_HUNDRED_K.items()} | {"Llama-2-13B, L = 1024": FIGURE_1}
    published |= {"160M, L = 1024": PRETRAINED["vanilla"]}
    rows += [(model, tuple(f"{row[name]:.2f}" if name in row else "–" for name in names)) for model, row in published.items()]
    columns = ("0+L", "1+(L−1)", "2+(L−2)", "4+(L−4)", "8+(L−8)", "dense", "recomputed")
    title = "Perplexity by first tokens + last tokens in a cache of L; each row on its own text, so only ratios compare"
    return Table(title, columns, tuple(rows), "arXiv:2309.17453, figure 1 and tables 2 and 3")


def _cell(value: float, low: float, high: float) -> str:
    """A perplexity, and its interval on a line of its own: seven of them stand side by side."""
    return f"{value:.4g}" + (f"\n{low:.3g}–{high:.3g}" if np.isfinite(low) else "")


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Nats along the text over those of the dense cache; perplexities by the number of sinks next to the published ones."""
    left, right = fig.subplots(1, 2)
    nat = ds.nats.coarsen(token=max(ds.sizes["token"] // BINS, 1), boundary="trim").mean()
    for name, color in DRAWN.items():
        curve(left, nat.sel(policy=name) - nat.sel(policy="dense"), "token", _written(name, int(ds.attrs["size"])), color)
    left.axvline(ds.attrs["size"], color="#868c95", linewidth=1, linestyle=":", label="size of the cache")
    left.set(xlabel="token of what is read of a piece", ylabel="nats more than with the dense cache")
    counts = np.arange(len(SINKS))
    mean, low, high = stats.mean_interval(late(ds).sel(policy=list(SINKS)) - late(ds).sel(policy="4 sinks"), "piece")
    right.errorbar(
        counts, np.exp(mean), [np.exp(mean) - np.exp(low), np.exp(high) - np.exp(mean)], fmt="o-", capsize=2.5, label="this model"
    )
    for (model, row), color in zip(FOUR_HUNDRED_K.items(), ("fourth", "fifth", "third", "theory"), strict=True):
        right.plot(counts, [row[n] / row["4 sinks"] for n in SINKS], "--", color=COLORS[color], label=model, linewidth=1.2)
    right.set_xticks(counts, [str(s) for s in SINKS.values()])
    right.set(xlabel="first tokens in the cache", ylabel="perplexity over that with 4", yscale="log")


def traces(ds: xr.Dataset) -> dict[str, xr.DataArray]:
    """Along training: the loss, and what a window and four sinks cost."""
    nat = late(ds)
    more = (nat - nat.sel(policy="dense", drop=True)).sel(policy=list(DRAWN))
    return {
        "nats per token, dense": nat.sel(policy="dense", drop=True),
        "nats more than dense": more.assign_attrs(colors=list(DRAWN.values())),
    }


def cost(shape: Transformer, tokens: Int[np.ndarray, "piece n"]) -> Cost:
    """Six readings with rescored sinks, and the windows that are read from scratch."""
    used = first(tokens, PIECES, LENGTH)
    n = used.shape[1]
    again = len(used) * SPOTS * _size(n) * forward(shape, _size(n))
    return Cost(len(POLICIES) * used.size * forward(shape, 2 * n) + again, 2 * attention_bytes(shape, n))


STREAMING = Instrument(
    name="streaming",
    title="Streaming with a cache of fixed size",
    theory=(
        "A model with sinks fails once its window drops the first token, and is as good as recomputation if the cache holds four "
        "first tokens and the last ones (arXiv:2309.17453). Without sinks there is nothing to lose: all ratios are one."
    ),
    caption=(
        "Left: cross-entropy along the text, compared with a cache that holds everything. Right: perplexity of the tokens beyond "
        "the cache's size by the number of first tokens in it, over that with four; dashed, published ratios of larger models on "
        "longer texts. Bands and bars: 95% intervals over pieces."
    ),
    source="arXiv:2309.17453, section 3.2, figure 1 and tables 1 to 3",
    pieces=PIECES,
    cost=cost,
    measure=measure,
    predict=predict,
    numbers=numbers,
    plot=plot,
    traces=traces,
    table=table,
    unread="it is about texts far longer than sequences of the laboratory; jaxdyn probe measures it in checkpoints",
)

INSTRUMENTS = (STREAMING,)
