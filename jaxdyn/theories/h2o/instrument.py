r"""Heavy hitters: do a few keys get most of the attention, and what does a cache cost that holds those alone?

The attention that a key gets is summed over all queries of a piece; the share of the 20% with the most of it is compared with
uniform attention, where early keys get more because more queries see them. Caches hold a share of the piece, half of it for the
last keys; the other half is for those with the most attention so far (H2O), the least (its opposite), or any (random).

Source: arXiv:2306.14048, sections 3 and 4 and algorithm 1; policies as in :mod:`jaxdyn.nn.cache.budgets`, with positions of the
text. Letters: h heads, n tokens, p policies, B budgets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, Int, PyTree

from jaxdyn import stats
from jaxdyn.instruments.drawing import curve, expected, layers_axis
from jaxdyn.instruments.instrument import Asked, Cost, Instrument, Number, Tick, exponential, need, number
from jaxdyn.instruments.moment import Moment
from jaxdyn.instruments.pieces import attention_bytes, each_piece, first, forward, mean_reading, reading, uniform_weights
from jaxdyn.nn import Transformer
from jaxdyn.nn.activations import BlockActivations, cross_entropies, reduce_blocks
from jaxdyn.nn.cache import budgets
from jaxdyn.plotting import COLORS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from jaxdyn.instruments.instrument import Model

__all__ = ["BUDGETS", "HEAVY", "INSTRUMENTS", "TOP", "evicted", "measure", "predict", "shares", "uniform"]

TOP = 0.2  # of the keys
BUDGETS = (0.05, 0.1, 0.2, 0.4, 0.6)  # of the piece
POLICIES = {"H2O": "sum", "recent": "recent", "random": "random", "H2O's opposite": "anti"}
SINKS = 4  # first tokens that the policy "streaming" holds
SHARE = "share of the top 20% of keys"
PIECES, LENGTH = 4, 192
DRAWN = {"H2O": "measured", "recent": "third", "random": "fifth", "H2O's opposite": "theory"}


def uniform(shape: Transformer, length: int, skip: int = 0) -> float:
    """Share of all attention that the top keys get if each query shares it out equally among the keys that it sees.

    Without the first keys if ``skip``.
    """
    gets = np.cumsum(uniform_weights(shape, length)[::-1], 0)[-1][skip:]
    return float(np.sort(gets)[::-1][: _count(len(gets))].sum() / gets.sum())


def _count(length: int) -> int:
    return max(1, round(TOP * length))


def top_share(gets: Float[Array, "h n"]) -> Float[Array, " h"]:
    """Share of all attention that the keys with the most of it get."""
    return jnp.sum(jax.lax.top_k(gets, _count(gets.shape[-1]))[0], -1) / jnp.sum(gets, -1)


def shares(shape: Transformer, params: PyTree, tokens: Int[Array, " n"]) -> tuple[Float[Array, "n d"], dict[str, Array]]:
    """The last residual stream, and shares by layer and head: of all keys, and without the first."""

    def reduce(block: BlockActivations) -> dict[str, Array]:
        gets = jnp.sum(block.attention[0].astype(jnp.float32), -2)
        return {"share": top_share(gets), "rest": top_share(gets[:, 1:])}

    x, seen = reduce_blocks(shape, params, tokens[None], reduce)
    return x[0], seen


def evicted(
    shape: Transformer, params: PyTree, tokens: Int[Array, " n"], policies: tuple[str, ...], parts: tuple[float, ...]
) -> Float[Array, "p B n1"]:
    """Nats of every token but the first, with a cache that holds a share of the piece, half of it for the last keys."""
    read = tokens[:-1]
    kinds = jnp.asarray([budgets.POLICIES.index(name) for name in policies], jnp.int32)[:, None]
    sizes = jnp.maximum(2, jnp.round(jnp.asarray(parts, jnp.float32) * read.size)).astype(jnp.int32)[None]
    kind, keys = jnp.broadcast_arrays(kinds, sizes)
    sinks = jnp.where(kind == budgets.POLICIES.index("streaming"), jnp.minimum(SINKS, keys // 2), 0)
    traced = budgets.TracedPolicy(kind, keys, keys // 2, sinks)
    given = jnp.zeros((shape.depth, shape.key_heads, read.size), jnp.float32)

    def each(policy: budgets.TracedPolicy) -> Float[Array, " n1"]:
        return cross_entropies(shape, params, budgets.trunk(shape, params, policy, read, given, jax.random.key(0))[0], tokens[1:])

    return jax.lax.map(jax.vmap(each), traced)  # the budgets of one policy at a time


def observe(shape: Transformer, params: PyTree, tokens: Int[Array, " n"]) -> dict[str, Array]:
    """Shares by layer and head, nats with everything, and nats of every policy and budget."""
    x, seen = shares(shape, params, tokens[:-1])
    losses = evicted(shape, params, tokens, tuple(POLICIES.values()), BUDGETS)
    return seen | {"full": cross_entropies(shape, params, x, tokens[1:]), "nats": losses}


def measure(model: Model, tokens: Int[np.ndarray, "piece n"], tick: Tick) -> xr.Dataset:
    """Shares of the top keys, and mean nats of the second half of each piece by policy and budget.

    Raises:
        NotApplicable: for other attention than causal softmax with a token's own key and without a sink token, and for other
            outputs than logits of tokens.
    """
    need(model.shape, "softmax", "causal", "sees itself", "logits")
    used = first(tokens, PIECES, LENGTH)
    seen = each_piece(model, observe, used, tick)
    half, read = (used.shape[1] - 1) // 2, used.shape[1] - 1
    data = {
        "uniform": ((), uniform(model.shape, read)),
        "uniform_rest": ((), uniform(model.shape, read, 1)),
        "share": (("piece", "layer", "head"), seen["share"]),
        "rest": (("piece", "layer", "head"), seen["rest"]),
        "full": (("piece",), seen["full"][:, half:].mean(-1)),
        "nats": (("piece", "policy", "budget"), seen["nats"][..., half:].mean(-1)),
    }
    coords = {"policy": list(POLICIES), "budget": list(BUDGETS), "layer": np.arange(1, model.shape.depth + 1)}
    return xr.Dataset(data, coords, {"tokens": read} | reading(used))


def predict(ds: xr.Dataset) -> xr.Dataset:
    """Uniform attention's share, with and without the first key; and that a fifth of the keys costs nothing with H2O."""
    return xr.Dataset({"share": ds.uniform, "rest": ds.uniform_rest, "ratio": 1.0})


def numbers(ds: xr.Dataset) -> list[Number]:
    """Shares, and perplexities at a budget of a fifth over that with everything."""
    law = predict(ds)
    shown = [
        number("share of the attention that 20% of the keys get", ds.share, law.share, "uniform attention"),
        number("share of the attention that 20% of the keys get, without the first key", ds.rest, law.rest, "uniform attention"),
    ]
    for policy in POLICIES:
        more = ds.nats.sel(policy=policy, budget=0.2) - ds.full
        one = number(f"perplexity with a fifth of the keys over that with all: {policy}", more)
        shown.append(exponential(one, 1.0, "arXiv:2306.14048") if policy == "H2O" else exponential(one))
    return shown


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Shares by layer; perplexity by budget."""
    left, right = fig.subplots(1, 2)
    law = predict(ds)
    curve(left, ds.share.mean("head", skipna=False), "layer", "all keys")
    curve(left, ds.rest.mean("head", skipna=False), "layer", "without the first key", "third")
    expected(left, None, float(law.share), "uniform")
    layers_axis(left, "share of attention of the top 20%", ylim=(0, 1))
    for policy, color in DRAWN.items():
        mean, low, high = stats.mean_interval(ds.nats.sel(policy=policy) - ds.full, "piece")
        right.fill_between(ds.budget, np.exp(low), np.exp(high), color=COLORS[color], alpha=0.22, linewidth=0)
        right.plot(ds.budget, np.exp(mean), "o-", color=COLORS[color], label=policy)
    expected(right, None, 1.0, "all keys")
    right.set(xlabel="keys in the cache, share of all", ylabel="perplexity over that with all", yscale="log")


def traces(ds: xr.Dataset) -> dict[str, xr.DataArray]:
    """Along training: shares by layer, and the cost of a cache of a fifth of the keys."""
    more = ds.nats.sel(budget=0.2, drop=True) - ds.full
    return {
        SHARE: ds.share.mean("head", skipna=False),
        "nats more than with all keys": more.assign_attrs(colors=[DRAWN[str(name)] for name in ds.policy.values]),
    }


def along(moment: Moment) -> dict[str, Array]:
    """Shares of sequences in training. What a cache costs is about texts: of few tokens in a batch the next one is learned."""
    return mean_reading(moment, lambda *given: {SHARE: jnp.mean(shares(*given)[1]["share"], -1)})


def short(asked: Asked) -> str:
    """Why there is no fifth of the keys."""
    length = asked.shape.length
    return f"A fifth of {length} keys is less than one." if 0 < TOP * length < 1 else ""


def cost(shape: Transformer, tokens: Int[np.ndarray, "piece n"]) -> Cost:
    """A reading for each policy and budget."""
    used = first(tokens, PIECES, LENGTH)
    readings = len(POLICIES) * len(BUDGETS) + 1
    return Cost(readings * used.size * forward(shape, used.shape[1]), len(BUDGETS) * attention_bytes(shape, used.shape[1]))


HEAVY = Instrument(
    name="heavy",
    title="Heavy hitters",
    theory=(
        "A small share of the keys gets nearly all attention, and keeps getting it: a cache of a fifth of them, half heavy and "
        "half recent, loses nothing, and one without the heavy ones fails (arXiv:2306.14048)."
    ),
    caption=(
        "Left: share of all attention that the 20% of the keys with the most of it get, by layer, mean over heads; dashed, uniform "
        "attention. Right: perplexity of the second half of what is read of a piece, with a cache of a share of its keys, over "
        "that with all. Bands: 95% intervals over pieces."
    ),
    source="arXiv:2306.14048, sections 3 and 4",
    pieces=PIECES,
    cost=cost,
    measure=measure,
    predict=predict,
    numbers=numbers,
    plot=plot,
    traces=traces,
    read=along,
    dims={SHARE: "layer"},
    needs=("shares",),
    refuses=short,
)

INSTRUMENTS = (HEAVY,)
