r"""Gradients of the model's own loss, matrix by matrix: stable rank, spectrum, and the share that a rank keeps.

The loss is the mean cross-entropy of next tokens. One layer after another, from the last to the first, the derivative of its block
is applied to the gradient at its output: no more than one layer's gradients are in memory. Shown are gradients of single pieces
and that of all pieces at once ("batch"). A gradient's rank is at most its number of tokens.

Source: arXiv:2403.03507, section 3 (gradients become low-rank) and table 2 (ranks that GaLore trains with).
Letters: m the smaller side of a matrix, r rank, n tokens of a piece, P pieces.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, Int, PyTree

from jaxdyn.instruments.drawing import curve, expected, layers_axis
from jaxdyn.instruments.instrument import Cost, Instrument, Number, Tick, need, number
from jaxdyn.instruments.pieces import attention_bytes, first, forward, reading
from jaxdyn.instruments.spectra import energies, gaussian_share, gaussian_stable_rank
from jaxdyn.nn import Transformer
from jaxdyn.nn.transformer import blocks_of, expanded, parts

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from jaxdyn.models.loading import Model

__all__ = ["GRADIENTS", "INSTRUMENTS", "SHARES", "backwards", "block_gradients", "ends", "inputs", "measure", "predict", "summary"]

PIECES, LENGTH = 4, 256
RANKS = {"60M": (128, 512), "130M": (256, 768), "350M": (256, 1024), "1B": (512, 2048)}  # rank and width, table 2
SHARES = (1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2)  # ranks over m
QUARTER = SHARES.index(1 / 4)
POINTS = 32  # of a spectrum
COLORS = {"q": "measured", "k": "third", "v": "fourth", "o": "fifth", "gate": "theory", "up": "failed", "down": "control"}
COLORS |= {"output_gate": "#8f6a4c"}


def inputs(shape: Transformer, params: PyTree, tokens: Int[Array, "P n1"]) -> tuple[Float[Array, "L P n d"], Float[Array, "P n d"]]:
    """The residual stream before each block, and after the last."""
    enter, block, _ = parts(shape)

    def one(x: Array, w: dict[str, Array]) -> tuple[Array, Array]:
        return block(w, x), x

    x, before = jax.lax.scan(one, enter(params, tokens), expanded(shape, blocks_of(shape, params)))
    return before, x


def ends(
    shape: Transformer, params: PyTree, x: Float[Array, "P n d"], tokens: Int[Array, "P n"]
) -> tuple[Array, Float[Array, "P n d"]]:
    """Each piece's loss, and its gradient at the end of the last block."""
    ending = parts(shape)[2]

    def loss(one: Array, targets: Array) -> Array:
        logits = ending(params, one[None])[0]
        wide = jax.nn.log_softmax(logits.astype(jnp.promote_types(logits.dtype, jnp.float32)))
        return -jnp.mean(jnp.take_along_axis(wide, targets[:, None], -1))

    return jax.lax.map(lambda pair: jax.value_and_grad(loss)(*pair), (x, tokens[:, 1:]))


def block_gradients(
    shape: Transformer, w: dict[str, Array], x: Float[Array, "n d"], cotangent: Float[Array, "n d"]
) -> tuple[dict[str, Array], Float[Array, "n d"]]:
    """The gradients of one block's matrices for one piece, and that at its input."""
    block = parts(shape)[1]
    others = {name: value for name, value in w.items() if name not in shape.weights}
    matrices = {name: w[name] for name in shape.weights}
    _, back = jax.vjp(lambda own, one: block(others | own, one[None])[0], matrices, x)
    gradients, before = back(cotangent)
    return gradients, before


def backwards(
    shape: Transformer, w: dict[str, Array], x: Float[Array, "P n d"], cotangent: Float[Array, "P n d"]
) -> tuple[dict[str, Float[Array, "P1 m"]], Float[Array, "P n d"]]:
    """Energies of one block's gradients (of every piece, then of their mean), and the gradient at its input."""
    gradients, before = jax.lax.map(lambda pair: block_gradients(shape, w, *pair), (x, cotangent))
    whole = {name: jnp.concatenate([g, jnp.mean(g, 0, keepdims=True)]) for name, g in gradients.items()}
    return {name: energies(g) for name, g in whole.items()}, before


def observe(shape: Transformer, params: PyTree, tokens: Int[Array, "P n"]) -> tuple[Array, dict[str, dict[str, Array]]]:
    """Each piece's loss, and the spectra of all layers, from the last one down."""
    before, x = inputs(shape, params, tokens[:, :-1])
    losses, cotangent = ends(shape, params, x, tokens)

    def one(cotangent: Array, pair: tuple[dict[str, Array], Array]) -> tuple[Array, dict[str, dict[str, Array]]]:
        found, cotangent = backwards(shape, *pair, cotangent)
        return cotangent, {name: summary(energy) for name, energy in found.items()}

    layers = (expanded(shape, blocks_of(shape, params)), before)
    _, seen = jax.lax.scan(one, cotangent, layers, reverse=True)
    return losses, seen


def ranks_of(m: int) -> np.ndarray:
    """The whole ranks at which shares of a spectrum of m numbers are taken."""
    return np.maximum(1, np.round(np.asarray(SHARES) * m)).astype(int)


def summary(energy: Float[Array, "P1 m"]) -> dict[str, Array]:
    """What is stored of a spectrum: the energy, the shares that ranks keep, and singular values over the largest at some places."""
    m = energy.shape[-1]
    total = jnp.sum(energy, -1)
    ranks = ranks_of(m)
    places = np.minimum((np.geomspace(1, m, POINTS)).round().astype(int), m) - 1
    return {
        "norm": jnp.sqrt(total),
        "rank": total / energy[:, 0],
        "share": jnp.cumsum(energy, -1)[:, ranks - 1] / total[:, None],
        "spectrum": jnp.sqrt(energy[:, places] / energy[:, :1]),
    }


def measure(model: Model, tokens: Int[np.ndarray, "piece n"], tick: Tick) -> xr.Dataset:
    """Spectra of the gradients of every matrix, by layer; the last of the ``sample`` is the batch.

    Raises:
        NotApplicable: for other outputs than logits of tokens, and where attention is the same whatever a query asks for.
    """
    need(model.shape, "logits", "several keys")
    shape, used = model.shape, first(tokens, PIECES, LENGTH)
    losses, seen = jax.device_get(_program(shape, model.params, jnp.asarray(used, jnp.int32)))
    tick(1.0)
    names = list(shape.weights)
    stacked = {key: np.stack([seen[name][key] for name in names], 2) for key in ("norm", "rank", "share", "spectrum")}
    more = {"share": ("part",), "spectrum": ("point",)}
    data = {
        f"{which}_{key}": ((*dims, "layer", "matrix", *more.get(key, ())), value)
        for key, x in stacked.items()
        for which, dims, value in (
            ("piece", ("piece",), np.moveaxis(x[:, :-1], 1, 0)),
            ("batch", (), x[:, -1]),
        )
    }
    data["loss"] = (("piece",), losses)
    data["size"] = (("matrix", "side"), np.asarray([shape.weights[name] for name in names]))
    coords = {"layer": np.arange(1, shape.depth + 1), "matrix": names, "part": list(SHARES), "side": ["rows", "columns"]}
    return xr.Dataset(data, coords, {"tokens": used.shape[1] - 1, "pieces": len(used), "width": shape.width} | reading(used))


_program = jax.jit(observe, static_argnums=0)


def predict(ds: xr.Dataset) -> xr.Dataset:
    """Gaussian matrices: no low rank; and the ranks that GaLore trains with, over the width."""
    sizes = [(int(rows), int(columns)) for rows, columns in ds["size"].transpose("matrix", "side").values]
    shares = [[gaussian_share(r, c, rank) for rank in ranks_of(min(r, c))] for r, c in sizes]
    data = {"share": (("matrix", "part"), shares), "rank": ("matrix", [gaussian_stable_rank(r, c) for r, c in sizes])}
    ranks = xr.DataArray([r / d for r, d in RANKS.values()], dims="model", coords={"model": list(RANKS)})
    return xr.Dataset(data, {"matrix": ds.matrix.values, "part": ds.part.values}).assign(published=ranks)


def numbers(ds: xr.Dataset) -> list[Number]:
    """Loss; stable ranks; what a quarter of the rank keeps, by matrix, of the batch and of single pieces."""
    law = predict(ds)
    shown = [
        number("loss, nats per token", ds.loss),
        number(
            f"stable rank, batch of {ds.attrs['pieces']} pieces, mean over matrices", ds.batch_rank, law["rank"].mean(), "Gaussian"
        ),
        number("stable rank, single pieces", ds.piece_rank, law["rank"].mean(), "Gaussian"),
    ]
    for name in ds.matrix.values:
        quarter = ds.piece_share.isel(part=QUARTER).sel(matrix=name)
        shown.append(
            number(f"share that a quarter of the rank keeps: {name}", quarter, law.share.sel(matrix=name)[QUARTER], "Gaussian")
        )
    batch = ds.batch_share.isel(part=QUARTER)
    shown.append(
        number(
            "share that a quarter of the rank keeps: batch, mean over matrices",
            batch,
            law.share.isel(part=QUARTER).mean(),
            "Gaussian",
        )
    )
    shown.append(
        number(
            "share that a quarter of the rank keeps: batch, least over matrices and layers",
            batch.min(skipna=False),
            law.share.isel(part=QUARTER).min(),
            "Gaussian",
        )
    )
    return shown


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Shares by rank; stable ranks by layer."""
    left, right = fig.subplots(1, 2)
    law = predict(ds)
    for name in ds.matrix.values:
        color = COLORS[str(name)]
        curve(left, ds.piece_share.sel(matrix=name).mean("layer", skipna=False), "part", str(name), color)
        curve(right, ds.piece_rank.sel(matrix=name), "layer", str(name), color)
    expected(left, ds.part.values, law.share.mean("matrix"), "Gaussian")
    left.axvline(0.25, color="#868c95", linewidth=1, linestyle=":", label="GaLore's rank")
    left.set(xlabel="rank over the smaller side", ylabel="share of the gradient", xscale="log", ylim=(0, 1.02))
    left.set_xticks(SHARES, ["1/64", "1/32", "1/16", "1/8", "1/4", "1/2"], minor=False)
    left.minorticks_off()
    expected(right, None, float(law["rank"].mean()), "Gaussian")
    layers_axis(right, "stable rank of the gradient", yscale="log")


def traces(ds: xr.Dataset) -> dict[str, xr.DataArray]:
    """Along training, by layer, mean over matrices."""
    return {
        "stable rank of gradients": ds.piece_rank.mean("matrix", skipna=False),
        "share that a quarter of the rank keeps": ds.piece_share.isel(part=QUARTER, drop=True).mean("matrix", skipna=False),
    }


def cost(shape: Transformer, tokens: Int[np.ndarray, "piece n"]) -> Cost:
    """Forward, block by block again, and backward; Gram matrices and their eigenvalues; streams of all layers."""
    used = first(tokens, PIECES, LENGTH)
    pieces, n = used.shape
    spectra = shape.depth * (pieces + 1) * sum(2 * min(s) * np.prod(s) + 8 * min(s) ** 3 for s in shape.weights.values())
    block = sum(int(np.prod(s)) for s in shape.weights.values())
    held = 4.0 * (shape.depth * pieces * n * shape.width + 3 * (pieces + 1) * block + 3 * n * shape.vocabulary)
    return Cost(4 * used.size * forward(shape, n) + float(spectra), held + 2 * attention_bytes(shape, n))


GRADIENTS = Instrument(
    name="gradients",
    title="Gradients of low rank",
    theory=(
        "Gradients of a trained network have few large singular values, so that an optimizer's states may live in a subspace: "
        "GaLore trains LLaMAs of 60M to 1B weights with ranks of a quarter to a third of the width (arXiv:2403.03507, table 2). "
        "Of a Gaussian matrix a quarter of the rank keeps far less (dashed)."
    ),
    caption=(
        "Left: share of a gradient's sum of squares in its first singular values, by their number over the smaller side of the "
        "matrix, mean over layers, for gradients of single pieces; dotted, the rank of a quarter. Right: stable rank by layer. "
        "Dashed: Gaussian matrices of the same sizes. Bands: 95% intervals over pieces. A gradient's rank is at most its number "
        "of tokens."
    ),
    source="arXiv:2403.03507, section 3 and table 2",
    pieces=PIECES,
    cost=cost,
    measure=measure,
    predict=predict,
    numbers=numbers,
    plot=plot,
    traces=traces,
)

INSTRUMENTS = (GRADIENTS,)
