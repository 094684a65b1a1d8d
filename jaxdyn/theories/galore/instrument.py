r"""Gradients of the model's own loss, matrix by matrix: stable rank, spectrum, and the share that a rank keeps.

The loss is the mean cross-entropy of next tokens. One layer after another, from the last to the first, the derivative of its block
is applied to the gradient at its output: no more than one layer's gradients are in memory. Shown are gradients of single pieces
and that of all pieces at once ("batch"). A gradient's rank is at most its number of tokens.

A law, read along descent on one batch: the stable rank of every matrix' gradient as long as curvature stays as it is. The whole
gradient is that of a quadratic, as in ``dynamics.py``,

.. math:: g_t = (I - \eta S)^t g_0, \qquad S = \sum_i w_i J_i^\top (\mathrm{diag}\, p_i - p_i p_i^\top) J_i

with the derivatives J of logits at the start: of one matrix alone S is :math:`\sum_i C_i \otimes B_i`. All that are trained move,
so S is that of all of them. It is taken to the span of :math:`g_0, S g_0, \dots`, in which descent stays for as many steps as there
are vectors.

Source: arXiv:2403.03507, lemma 3.4; section 3 (gradients become low-rank) and table 2 (ranks that GaLore trains with).
Letters: m the smaller side of a matrix, r rank, n tokens of a piece, P pieces.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int, PyTree

from jaxdyn import linalg
from jaxdyn.instruments.drawing import curve, expected, layers_axis
from jaxdyn.instruments.instrument import Cost, Instrument, Number, Tick, need, number
from jaxdyn.instruments.law import Law
from jaxdyn.instruments.moment import Moment
from jaxdyn.instruments.pieces import attention_bytes, first, forward, reading
from jaxdyn.instruments.spectra import energies, gaussian_share, gaussian_stable_rank
from jaxdyn.nn import Transformer
from jaxdyn.nn.transformer import apply, blocks_of, expanded, parts

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from jaxdyn.instruments.instrument import Model

__all__ = [
    "GRADIENTS",
    "INSTRUMENTS",
    "RANK",
    "SHARES",
    "backwards",
    "block_gradients",
    "ends",
    "inputs",
    "measure",
    "predict",
    "summary",
]

PIECES, LENGTH = 4, 256
RANKS = {"60M": (128, 512), "130M": (256, 768), "350M": (256, 1024), "1B": (512, 2048)}  # rank and width, table 2
SHARES = (1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2)  # ranks over m
QUARTER = SHARES.index(1 / 4)
POINTS = 32  # of a spectrum
BATCH_RANK, BATCH_SHARE = "stable rank of the batch's gradient", "share of the batch's gradient in a quarter of the rank"
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
    shape: Transformer, params: PyTree, x: Float[Array, "P places d"], tokens: Int[Array, "P n"]
) -> tuple[Array, Float[Array, "P places d"]]:
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


def along(moment: Moment) -> dict[str, Array]:
    """The same of the gradient of the loss on a whole batch, of the matrices that are trained."""
    seen = [summary(energies(moment.gradient["blocks"][name])) for name in trained(moment)]
    mean = {key: jnp.mean(jnp.stack([one[key] for one in seen]), 0) for key in ("rank", "share")}
    return {BATCH_RANK: mean["rank"], BATCH_SHARE: mean["share"][:, QUARTER]}


def trained(moment: Moment) -> list[str]:
    """Names of the blocks' matrices that are not frozen; of all, if no other weights are trained."""
    return [name for name in moment.shape.weights if name not in moment.frozen] or list(moment.shape.weights)


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
    read=along,
    dims={BATCH_RANK: "block", BATCH_SHARE: "block"},
    needs=("several keys",),
    passes=0.2,
)

# stable ranks along descent

VECTORS = 8  # of the span
SQUARINGS = 8  # of a Gram matrix: its largest eigenvalue to .2%
TINY = 1e-30


class Decay(NamedTuple):
    """Curvature in the span of the gradient at the start and of what it makes of it."""

    vectors: Float[Array, "k p"]
    values: Float[Array, " k"]
    turn: Float[Array, "k k"]  # eigenvectors as columns
    size: Float[Array, ""]  # of the gradient


def moving(moment: Moment) -> Float[Array, " p"]:
    """1 for weights that are trained, 0 for others."""
    return ravel_pytree(
        jax.tree.map_with_path(lambda path, w: jnp.full(w.shape, path[-1].key not in moment.frozen, jnp.float32), moment.params)
    )[0]


def bent(moment: Moment, v: Float[Array, " p"]) -> Float[Array, " p"]:
    """S times a vector of weights; the derivative of logits along it is that of the transposed one, which is linear."""
    params, back_to = ravel_pytree(moment.params)
    logits, back = jax.vjp(lambda p: apply(moment.shape, back_to(p), moment.batch.tokens).astype(jnp.float32), params)
    along = jax.grad(lambda u: jnp.vdot(back(u)[0], v.astype(params.dtype)).astype(jnp.float32))(jnp.zeros_like(logits))
    p = jax.nn.softmax(logits)
    curved = p * (along - jnp.sum(p * along, -1, keepdims=True)) * moment.batch.weights[..., None]
    return moving(moment) * back(curved)[0].astype(jnp.float32)


def first_curvature(moment: Moment) -> Decay:
    """The span at the start, each vector made orthogonal to all before it, twice."""
    g = moving(moment) * ravel_pytree(moment.gradient)[0].astype(jnp.float32)
    size = jnp.linalg.norm(g)

    def add(carry: tuple[Array, Array], i: Int[Array, ""]) -> tuple[tuple[Array, Array], Array]:
        vectors, v = carry
        vectors = vectors.at[i].set(v)
        w = bent(moment, v)
        row, rest = vectors @ w, w
        for _ in range(2):
            rest = rest - (vectors @ rest) @ vectors
        length = jnp.linalg.norm(rest)
        fine = length > 1e-5 * jnp.linalg.norm(w)  # else rounding errors: the span is closed
        return (vectors, jnp.where(fine, rest / jnp.where(fine, length, 1), 0)), row

    start = (jnp.zeros((VECTORS, g.size), jnp.float32), g / jnp.maximum(size, TINY))
    (vectors, _), rows = jax.lax.scan(add, start, jnp.arange(VECTORS))
    lower = jnp.tril(rows)  # a row knows the vectors up to its own
    values, turn = linalg.eigh(lower + jnp.tril(lower, -1).T)
    return Decay(vectors, jnp.maximum(values, 0), turn, size)


def ranks(gradients: dict[str, Float[Array, "L r c"]]) -> Float[Array, "L matrix"]:
    """Stable ranks; 0 for zeros. The largest eigenvalue is the mean of all by their 2^SQUARINGS-th power."""

    def one(g: Float[Array, "L r c"]) -> Float[Array, " L"]:
        g = g.astype(jnp.float32)
        turned = jnp.swapaxes(g, -1, -2)
        gram = g @ turned if g.shape[-2] <= g.shape[-1] else turned @ g
        total = jnp.trace(gram, axis1=-2, axis2=-1)
        gram = gram / jnp.where(total > 0, total, 1)[:, None, None]
        power = gram
        for _ in range(SQUARINGS):
            power = power @ power
            power = power / jnp.maximum(jnp.trace(power, axis1=-2, axis2=-1), TINY)[:, None, None]
        return jnp.where(total > 0, 1 / jnp.maximum(jnp.sum(power * gram, (-2, -1)), TINY), 0)

    return jnp.stack([one(g) for g in gradients.values()], -1)


def read_ranks(moment: Moment, at: Decay) -> tuple[dict[str, Array], Decay]:
    """Stable ranks of the gradients, and those of the gradient at the start, as it has decayed; the largest step that it allows."""
    lr = jnp.asarray(moment.lr, jnp.float32)
    factors = jnp.power(1 - lr * at.values, moment.step.astype(jnp.int32))
    decayed = at.size * (at.turn @ (factors * at.turn[0])) @ at.vectors
    flat, back_to = ravel_pytree(moment.gradient)

    def of(tree: PyTree) -> Float[Array, "L matrix"]:
        return ranks({name: tree["blocks"][name] for name in trained(moment)})

    return {
        "rank": of(moment.gradient),
        "decayed": of(back_to(decayed.astype(flat.dtype))),
        "steepness": lr * at.values[-1] / 2,
    }, at


RANK = Law(
    name="rank",
    title="Gradients' stable ranks follow from curvature at the start",
    theory=(
        r"While curvature stays what it is, descent has the gradient $g_t = (I - \eta S)^t g_0$ with the Gauss-Newton matrix $S$, "
        r"of one matrix' weights $\sum_i C_i \otimes B_i$: each mode decays at its own rate, and with them the stable rank "
        r"$\|G\|_F^2 / \|G\|_2^2$ of every matrix' gradient goes to that of the slowest. Predicted from the start alone, if no "
        "mode is too steep for the step size."
    ),
    source="arXiv:2403.03507, lemma 3.4",
    read=read_ranks,
    own=("rank",),
    measure=lambda own: own["rank"],
    predict=lambda others: others["decayed"],
    speaks=lambda curves: curves["steepness"] <= 1,
    dims="layer matrix",
    bound=0.1,
    optimizers=("sgd",),
    same_batch=True,
    memory=first_curvature,
    cost=2.5,
)

INSTRUMENTS = (GRADIENTS, RANK)
