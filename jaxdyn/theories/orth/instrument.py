r"""How orthogonal vectors of different words are: embeddings, the residual stream by layer, and what each MLP can write.

Mean :math:`|\cos|` over pairs, against directions drawn at random, :math:`\Gamma(d/2) / (\sqrt\pi\, \Gamma((d+1)/2)) \approx
\sqrt{2/(\pi d)}`. The stream is taken where a token occurs for the first time in a piece, as it is and without its mean over those
places. The first place is left out: where it is a sink, its stream is so long that the mean would be its own.

Source: arXiv:2310.00535, the assumption of orthogonal embeddings, and its figure on Pythia's checkpoints. Letters: d width, n
tokens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Bool, Float, Int, PyTree

from jaxdyn.instruments.drawing import curve, expected, layers_axis
from jaxdyn.instruments.instrument import Asked, Cost, Instrument, Number, Tick, need, number
from jaxdyn.instruments.moment import Moment
from jaxdyn.instruments.pieces import attention_bytes, each_piece, first, forward, mean_reading, reading
from jaxdyn.nn import Transformer
from jaxdyn.nn.activations import BlockActivations, reduce_blocks
from jaxdyn.nn.observe import mean_cosine, random_cosine, unit
from jaxdyn.nn.transformer import blocks_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from jaxdyn.instruments.instrument import Model

__all__ = ["INSTRUMENTS", "ORTHOGONALITY", "cosine", "directions", "measure", "observe", "predict", "rows"]

STREAM, WRITTEN = r"mean $|\cos|$ of the stream without its mean", r"mean $|\cos|$ of what units write"
PIECES, LENGTH = 8, 512
LEAST = 8  # tokens of a sequence in training: few directions without their mean are far apart, whatever they are
ROUNDING = 32  # of a mean of some hundred rows, in units of float32


def directions(x: Float[Array, "n d"], least: Any = 0.0) -> tuple[Float[Array, "n d"], Bool[Array, " n"]]:
    """Rows over their largest entries, and which rows have a direction: those with any entry beyond the least."""
    largest = jnp.max(jnp.abs(x), -1)
    return x / jnp.where(largest == 0, 1, largest)[:, None], ~(largest <= least)  # NaN stays, and is seen


def cosine(vectors: Float[Array, "n d"], chosen: Bool[Array, " n"], centred: bool = False) -> Float[Array, ""]:
    """Mean absolute cosine over pairs of chosen rows, from which their mean is taken first if ``centred``.

    Rows of zeros, or without more than rounding once their mean is taken, have no direction and are left out; NaN without a pair.
    """
    x, where, least = vectors.astype(jnp.float32), chosen[:, None], jnp.float32(0)
    if centred:
        mean = jnp.sum(jnp.where(where, x, 0), 0) / jnp.sum(chosen)
        x, least = x - mean, ROUNDING * jnp.finfo(jnp.float32).eps * jnp.max(jnp.abs(mean))
    x, there = directions(x, least)
    there = there & chosen
    u, count = jnp.where(there[:, None], unit(x), 0), jnp.sum(there)
    off = ~jnp.eye(x.shape[0], dtype=bool)
    return jnp.sum(jnp.where(off, jnp.abs(u @ u.T), 0)) / (count * (count - 1))


def observe(shape: Transformer, params: PyTree, tokens: Int[Array, " n"]) -> dict[str, Array]:
    """Cosines of embeddings, and of the stream before each block and after the last, at first occurrences."""
    same = (tokens[:, None] == tokens[None]) & jnp.tri(tokens.size, k=-1, dtype=bool)
    new = ~jnp.any(same, -1) & (jnp.arange(tokens.size) > 0)
    places = jnp.concatenate([jnp.zeros(int(shape.sink_token), bool), new])

    def reduce(block: BlockActivations) -> Array:
        return jnp.stack([cosine(block.after[0], places), cosine(block.after[0], places, centred=True)])

    _, seen = reduce_blocks(shape, params, tokens[None], reduce)
    words = jnp.asarray(params["embed"])[tokens]
    embedding = jnp.stack([cosine(words, new), cosine(words, new, centred=True)])
    found = jnp.concatenate([embedding[None], seen])
    return {"raw": found[:, 0], "centred": found[:, 1], "words": jnp.sum(new)}


def rows(shape: Transformer, params: PyTree, units: Int[Array, " k"] | None = None) -> Array:
    """Mean cosine of the rows of each block's last matrix, each of which a unit writes into the stream; of some units or of all.

    Rows of zeros, of units that were pruned, have no direction and are left out; NaN without a pair of others.
    """

    def one(w: Float[Array, "f d"]) -> Array:
        chosen, there = directions((w if units is None else w[units]).astype(jnp.float32))
        n, count = chosen.shape[0], jnp.sum(there).astype(jnp.float32)
        return mean_cosine(chosen) * (n / count) * ((n - 1) / (count - 1))

    return jax.lax.map(one, blocks_of(shape, params)["down"])


def measure(model: Model, tokens: Int[np.ndarray, "piece n"], tick: Tick) -> xr.Dataset:
    """Cosines by depth, 0 being the embedding, and those of the MLPs' rows by block.

    Raises:
        NotApplicable: without an MLP.
    """
    need(model.shape, "MLP")
    used = first(tokens, PIECES, LENGTH)
    seen = each_piece(model, observe, used, lambda share: tick(0.8 * share))
    written = jax.device_get(jax.jit(rows, static_argnums=0)(model.shape, model.params))
    tick(0.2)
    data: dict[str, Any] = {name: (("piece", "depth"), seen[name]) for name in ("raw", "centred")}
    data |= {"words": (("piece",), seen["words"]), "written": (("block",), np.asarray(written))}
    coords = {"depth": np.arange(model.shape.depth + 1), "block": np.arange(1, model.shape.layers + 1)}
    return xr.Dataset(data, coords, {"width": model.shape.width} | reading(used))


def predict(ds: xr.Dataset) -> xr.Dataset:
    """Random directions: exactly, and as papers print it."""
    d = float(ds.attrs["width"])
    return xr.Dataset({"exact": float(random_cosine(d)), "printed": (2 / (np.pi * d)) ** 0.5})


def numbers(ds: xr.Dataset) -> list[Number]:
    r"""Mean :math:`|\cos|` of embeddings, of two streams, and of the MLPs' rows."""
    law, says = float(predict(ds).exact), r"random directions, $\approx \sqrt{2/\pi d}$"
    middle = ds.sizes["depth"] // 2
    return [
        number("embeddings of different tokens", ds.raw.isel(depth=0), law, says),
        number("embeddings of different tokens, without their mean", ds.centred.isel(depth=0), law, says),
        number(f"residual stream after layer {middle}", ds.raw.isel(depth=middle), law, says),
        number(f"residual stream after layer {middle}, without its mean", ds.centred.isel(depth=middle), law, says),
        number("residual stream after the last layer", ds.raw.isel(depth=-1), law, says),
        number("residual stream after the last layer, without its mean", ds.centred.isel(depth=-1), law, says),
        number("what the MLPs' units write, mean over layers", ds.written, law, says),
    ]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """All of it by layer."""
    ax, law = fig.subplots(), predict(ds)
    curve(ax, ds.raw, "depth", "residual stream (layer 0: embeddings)")
    curve(ax, ds.centred, "depth", "the same without its mean", "third")
    curve(ax, ds.written, "block", "what each unit of the MLP writes", "fourth")
    expected(ax, None, float(law.exact), r"random directions, $\approx \sqrt{2/\pi d}$")
    layers_axis(ax, r"mean $|\cos|$ over pairs of tokens", yscale="log")


def traces(ds: xr.Dataset) -> dict[str, xr.DataArray]:
    """Along training: the stream without its mean, and the MLPs' rows, by layer."""
    return {STREAM: ds.centred.rename(depth="layer"), WRITTEN: ds.written.rename(block="layer")}


def along(moment: Moment) -> dict[str, Array]:
    """The same of sequences in training."""
    stream = mean_reading(moment, lambda shape, params, tokens: {STREAM: observe(shape, params, tokens)["centred"]})
    return stream | {WRITTEN: rows(moment.shape, moment.params)}


def short(asked: Asked) -> str:
    """Why sequences have no angles."""
    length = asked.shape.length - asked.shape.sink_token
    return f"Sequences of {length} tokens have too few for angles between them." if 0 < length < LEAST else ""


def cost(shape: Transformer, tokens: Int[np.ndarray, "piece n"]) -> Cost:
    """One reading, Gram matrices of the stream, and of the MLPs' rows."""
    used = first(tokens, PIECES, LENGTH)
    n = used.shape[1]
    grams = 4.0 * used.size * n * shape.width * shape.depth + 2.0 * shape.layers * (shape.hidden or 0) ** 2 * shape.width
    return Cost(used.size * forward(shape, n) + grams, attention_bytes(shape, n) + 4.0 * 1024 * (shape.hidden or 0))


ORTHOGONALITY = Instrument(
    name="orthogonality",
    title="Orthogonality of embeddings",
    theory=(
        r"JoMA assumes that vectors of different words are orthogonal. Random directions have a mean $|\cos|$ of "
        r"$\Gamma(d/2) / (\sqrt\pi\,\Gamma((d+1)/2)) \approx \sqrt{2/(\pi d)}$; Pythia's vectors were reported near it all along "
        "training (arXiv:2310.00535, appendix). A common mean of all vectors hides this: it is shown with and without."
    ),
    caption=(
        "Mean absolute cosine between vectors of different tokens, by layer: of the residual stream after each layer where tokens "
        "occur for the first time, with and without the mean over these places, and of the rows of the MLP's last matrix. The "
        "first place of each piece is left out, and so are vectors of zero length, which have no direction. Dashed: random "
        "directions in as many dimensions. Bands: 95% intervals over pieces."
    ),
    source="arXiv:2310.00535, appendix (orthogonality of embeddings)",
    pieces=PIECES,
    cost=cost,
    measure=measure,
    predict=predict,
    numbers=numbers,
    plot=plot,
    traces=traces,
    read=along,
    dims={STREAM: "depth", WRITTEN: "block"},
    needs=("MLP",),
    refuses=short,
)

INSTRUMENTS = (ORTHOGONALITY,)
