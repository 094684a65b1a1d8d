r"""Contextual sparsity: how few units and heads do a token's work, whether other tokens use others, how slowly the stream changes.

A unit's work is :math:`|a_j| \|w_j\|`, its activation times the norm of its row of the MLP's last matrix; a head's is the norm of
what it writes into the stream. The stream x changes by F in a block: with :math:`\rho = \|F\| / \|x\| < 1`

.. math:: \cos(x, x + F) \ge \sqrt{1 - \rho^2}

Source: arXiv:2310.17157, sections 3.1 (sparsity of heads and units) and 4.3 (slowly changing embeddings); the bound is derived.
Letters: h heads, f units, n tokens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Bool, Float, Int, PyTree

from jaxdyn.instruments.drawing import curve, expected, layers_axis
from jaxdyn.instruments.instrument import Instrument, Number, Tick, extreme, need, number
from jaxdyn.instruments.moment import Moment
from jaxdyn.instruments.pieces import each_piece, first, mean_reading, reading, reading_cost
from jaxdyn.nn import Transformer
from jaxdyn.nn.activations import BlockActivations, reduce_blocks

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from jaxdyn.instruments.instrument import Model

__all__ = ["CARRIED", "IDLE", "INSTRUMENTS", "SPARSITY", "TOP", "Overlaps", "carrying", "measure", "observe", "overlaps", "predict"]

CARRIED = 0.95  # of the sum of squares
TOP = 0.1  # share of the units in a token's own set
IDLE = 0.01  # of the stream's length, below which a head does nothing
NEEDED = ("MLP", "heads' matrix")
SHOWN = {  # along training
    "carry": "share of units with 95% of the work",
    "others": "overlap of the top 10% of units",
    "cosine": "cosine from block to block",
}
PIECES, LENGTH = 8, 256


def carrying(work: Float[Array, "n f"]) -> Float[Array, " n"]:
    """The smallest share of the entries that has 95% of each row's sum of squares; NaN for a row of zeros."""
    largest = jnp.max(jnp.abs(work), -1, keepdims=True)  # squares of small numbers would be zero
    energy = jnp.flip(jnp.sort(jnp.square(work / jnp.where(largest > 0, largest, 1)), -1), -1)
    total = jnp.sum(energy, -1, keepdims=True)
    needed = jnp.sum(jnp.cumsum(energy, -1) < CARRIED * total, -1) + 1
    return jnp.where(total[:, 0] > 0, needed / work.shape[-1], jnp.nan)


def mean_where(values: Float[Array, " n *rest"], there: Bool[Array, " n"]) -> Float[Array, " *rest"]:
    """Mean over those rows that are there; NaN if none is."""
    chosen = there.reshape(-1, *(1,) * (values.ndim - 1))
    return jnp.sum(jnp.where(chosen, values, 0), 0) / jnp.sum(there)


class Overlaps(NamedTuple):
    """Sets of units, one for each token: what they share, and what sets of the same sizes share if they are independent."""

    others: Float[Array, ""]  # mean number of units that two tokens share, over the mean size of a set
    neighbours: Float[Array, ""]  # the same of a token and the next one
    union: Float[Array, ""]  # share of the units in any set
    chance: Float[Array, ""]  # of the first two
    chance_union: Float[Array, ""]


def overlaps(work: Float[Array, "n f"]) -> Overlaps:
    """Of each token's set of units that work most, a tenth of all; units that do not work belong to no set; NaN if none works."""
    n, f = work.shape
    count = max(1, round(TOP * f))
    top = jax.vmap(lambda row: jnp.zeros(f, work.dtype).at[jax.lax.top_k(row, count)[1]].set(1))(work)
    sets = jnp.where(work > 0, top, 0)  # of equal numbers, such as zeros, top_k takes the first: the same units for all tokens
    sizes = jnp.sum(sets, -1)
    every = jnp.sum(sizes)
    shared = jnp.sum(jnp.square(jnp.sum(sets, 0))) - every
    next_to = jnp.sum(sets[1:] * sets[:-1]) / (n - 1)
    chance = (every**2 - jnp.sum(sizes**2)) / (f * (n - 1) * every)
    union = jnp.mean(jnp.any(sets > 0, 0))
    chance_union = 1 - jnp.prod(1 - sizes / f)
    found = Overlaps(shared / ((n - 1) * every), next_to * n / every, union, chance, chance_union)
    return Overlaps(*(jnp.where(every > 0, value, jnp.nan) for value in found))


def observe(shape: Transformer, params: PyTree, tokens: Int[Array, " n"]) -> dict[str, Array]:
    """Everything by layer, for all tokens but the first.

    What is a share of nothing is left out: of a token's work where no unit works, of a stream of zero length.
    """

    def reduce(block: BlockActivations) -> dict[str, Array]:
        wide = jnp.float32
        units = block.units[0, 1:].astype(wide)
        work = jnp.abs(units) * jnp.linalg.norm(block.weights["down"].astype(wide), axis=-1)
        x, y = (part[0, 1:].astype(wide) for part in (block.before, block.after))
        length, after = jnp.linalg.norm(x, axis=-1), jnp.linalg.norm(y, axis=-1)
        there, both = length != 0, (length != 0) & (after != 0)  # whether there is a stream, and a direction of both
        ratio, cosine = jnp.linalg.norm(y - x, axis=-1) / length, jnp.sum(x * y, -1) / (length * after)
        out = block.weights["o"].astype(wide).reshape(shape.heads, shape.entries, -1)
        gram = jnp.einsum("hed,hfd->hef", out, out)
        heads = jnp.sqrt(
            jnp.maximum(jnp.einsum("nhe,hef,nhf->nh", *(block.mixed[0, 1:].astype(wide), gram, block.mixed[0, 1:].astype(wide))), 0)
        ) * jnp.abs(jnp.asarray(shape.residual, wide))
        small = (ratio < 1) & both
        bound = jnp.sqrt(jnp.maximum(1 - ratio**2, 0))
        return {
            "silent": jnp.mean(units == 0),
            "carry": mean_where(carrying(work), jnp.any(work != 0, -1)),
            **overlaps(work)._asdict(),
            "cosine": mean_where(cosine, both),
            "ratio": mean_where(ratio, there),
            "small": mean_where(small.astype(wide), both),
            "slack": jnp.min(jnp.where(small, cosine - bound, jnp.inf)),
            "bound": mean_where(bound, both),
            "heads": mean_where(carrying(heads), jnp.any(heads != 0, -1)),
            "idle": mean_where((heads < IDLE * length[:, None]).astype(wide), there),
        }

    return reduce_blocks(shape, params, tokens[None], reduce)[1]


def measure(model: Model, tokens: Int[np.ndarray, "piece n"], tick: Tick) -> xr.Dataset:
    """Shares, overlaps and cosines by layer; ``idle`` also by head.

    Raises:
        NotApplicable: without an MLP, and where heads do not write by a matrix of their own.
    """
    need(model.shape, *NEEDED)
    used = first(tokens, PIECES, LENGTH)
    seen = each_piece(model, observe, used, tick)
    data = {name: (("piece", "layer", "head")[: x.ndim], x) for name, x in seen.items()}
    attrs = {"tokens": used.shape[1], "units": model.shape.hidden, "heads": model.shape.heads, "activation": model.shape.activation}
    return xr.Dataset(data, {"layer": np.arange(1, model.shape.depth + 1)}, attrs | reading(used))


def predict(ds: xr.Dataset) -> xr.Dataset:
    """Independent sets of each token (chance), the share that Gaussian units would need, and the bound on the cosine."""
    gaussian = np.random.default_rng(0).normal(size=(64, int(ds.attrs["units"])))
    chance = {"others": ds.chance.mean("piece"), "union": ds.chance_union.mean("piece")}
    flat = float(np.mean(carrying(jnp.asarray(gaussian, jnp.float32))))
    return xr.Dataset({**chance, "carry": flat, "cosine": ds.bound.mean("piece")})


def numbers(ds: xr.Dataset) -> list[Number]:
    """Units, heads, and the stream."""
    law = predict(ds)
    relu = ds.attrs["activation"] == "relu"
    silent = [number("share of silent units", ds.silent, 0.95, "OPT-175B's largest, arXiv:2310.17157")] if relu else []
    shown = [
        *silent,
        number("share of the units that carry 95% of a token's work", ds.carry, law.carry, "Gaussian activations"),
        number(
            "share of the units that carry 95%, in the layer with the fewest",
            ds.carry.isel(layer=extreme(ds.carry, "layer")),
        ),
        number("overlap of two tokens' top 10% of units", ds.others, law.others, "independent tokens; one for all: 1"),
        number("overlap of two neighbours' top 10% of units", ds.neighbours, law.others, "independent tokens"),
        number("share of the units in any token's top 10%", ds.union, law.union, "independent tokens; one for all: at most 0.1"),
        number("share of the heads that carry 95% of a token's work", ds["heads"], 0.2, "OPT-175B's least, arXiv:2310.17157"),
        number("share of heads that write less than 1% of the stream", ds.idle),
        number(
            "cosine of the stream from block to block",
            ds.cosine,
            law.cosine.mean(),
            "at least, where the change is smaller than it",
        ),
    ]
    if ds.sizes["layer"] > 2:
        shown.append(number("cosine from block to block without the first and the last", ds.cosine.isel(layer=slice(1, -1))))
    return shown


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Units; overlaps; heads; the stream."""
    fig.set_size_inches(7, 5.2)
    (a, b), (c, d) = fig.subplots(2, 2)
    law = predict(ds)
    curve(a, ds.carry, "layer", "units with 95% of the work")
    if ds.attrs["activation"] == "relu":
        curve(a, 1 - ds.silent, "layer", "units that are on", "third")
    expected(a, None, float(law.carry), "Gaussian units")
    layers_axis(a, "share of units", ylim=(0, None))
    curve(b, ds.others, "layer", "two tokens")
    curve(b, ds.neighbours, "layer", "neighbours", "third")
    expected(b, ds.layer, law.others, "independent tokens")
    layers_axis(b, "overlap of the top 10% of units", ylim=(0, 1))
    curve(c, ds["heads"], "layer", "heads with 95% of the work")
    curve(c, ds.idle.mean("head", skipna=False), "layer", "heads that do nothing", "third")
    layers_axis(c, "share of heads", ylim=(0, 1))
    curve(d, ds.cosine, "layer", "cosine from block to block")
    expected(d, ds.layer, law.cosine, "bound, mean over tokens")
    layers_axis(d, "cosine", ylim=(min(0.0, float(ds.cosine.min())), 1.02))


def traces(ds: xr.Dataset) -> dict[str, xr.DataArray]:
    """Along training, by layer."""
    return {label: ds[name] for name, label in SHOWN.items()}


def along(moment: Moment) -> dict[str, Array]:
    """The same of sequences in training."""

    def one(shape: Transformer, params: PyTree, tokens: Int[Array, " n"]) -> dict[str, Array]:
        seen = observe(shape, params, tokens)
        return {label: seen[name] for name, label in SHOWN.items()}

    return mean_reading(moment, one)


SPARSITY = Instrument(
    name="sparsity",
    title="Contextual sparsity",
    theory=(
        "Few units and heads do a token's work, other ones for other tokens (arXiv:2310.17157: up to 95% of OPT-175B's units and "
        r"80% of its heads can be left out); the residual stream changes slowly, $\cos(x, x + F) \ge \sqrt{1 - \rho^2}$ with "
        r"$\rho = \|F\|/\|x\| < 1$, so that a layer can foresee the next one's units."
    ),
    caption=(
        "By layer. Top left: smallest share of the MLP's units that has 95% of the squares of a token's work. Top right: overlap "
        "of the 10% of the units that work most (fewer where fewer work at all), for two tokens of a piece and for neighbours. "
        "Bottom left: the same share for heads, and those that write less than 1% of the stream's length. Bottom right: cosine of "
        "the stream before and after a block. The first token is left out, and where there is no work, or no stream, there is no "
        "share of it. Bands: 95% intervals over pieces."
    ),
    source="arXiv:2310.17157, sections 3.1 and 4.3",
    pieces=PIECES,
    cost=reading_cost(PIECES, LENGTH, passes=1.5),
    measure=measure,
    predict=predict,
    numbers=numbers,
    plot=plot,
    traces=traces,
    read=along,
    dims=dict.fromkeys(SHOWN.values(), "layer"),
    needs=NEEDED,
    passes=0.8,
)

INSTRUMENTS = (SPARSITY,)
