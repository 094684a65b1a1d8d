r"""Gradients of a published language model's own loss: their stable ranks, and the share that a quarter of the rank keeps.

The gradient of a matrix W (m, M) for a piece of n tokens is :math:`X^\top E`, inputs times errors, of rank n at most. Without
structure in either, it is the product of two Gaussian matrices (n, m) and (n, M).
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
from jaxdyn.instruments.spectra import energies
from jaxdyn.models.on_text import SMOLLM2, ModelAndText, OnText, on_text, piece
from jaxdyn.nn.transformer import blocks_of, expanded
from jaxdyn.theories.galore import instrument as gradients

LOOKED_AT = 3  # layers, at most: at a third and two thirds of the depth, and the last
KEEPS = 0.8  # of the squared norm, by a quarter of the rank
LOW = 0.25  # stable rank over that of an unstructured gradient
SHARE = "share of a gradient that a quarter of its rank keeps, every matrix and layer looked at"
RANK = "stable rank over an unstructured one's, every matrix and layer looked at"


def looked_at(depth: int) -> tuple[int, ...]:
    """Numbers of the layers whose gradients are looked at."""
    return tuple(sorted({max(1, depth * i // LOOKED_AT) for i in range(1, LOOKED_AT + 1)}))


def summary(energy: Float[Array, " m"], count: int) -> dict[str, Array]:
    """Stable rank, and the share that a quarter of the largest rank keeps that a product over ``count`` tokens can have."""
    quarter = max(1, round(min(count, energy.shape[-1]) / 4))
    total = jnp.sum(energy)
    return {"rank": total / energy[0], "share": jnp.sum(energy[:quarter]) / total}


def spectra(shared: ModelAndText, tokens: Int[Array, " n"]) -> dict[str, Float[Array, "layer matrix"]]:
    """Stable rank, and share that a quarter of the rank keeps, of the gradients in a few layers."""
    shape, params = shared.shape, shared.params
    before, x = gradients.inputs(shape, params, tokens[None, :-1])
    _, cotangent = gradients.ends(shape, params, x, tokens[None])
    chosen = np.isin(np.arange(1, shape.depth + 1), looked_at(shape.depth))

    def summed(found: dict[str, Array]) -> dict[str, Array]:
        each = [summary(energies(found[name]), len(tokens) - 1) for name in shape.weights]
        return {name: jnp.stack([e[name] for e in each]) for name in ("rank", "share")}

    def one(cotangent: Array, part: tuple[dict[str, Array], Array, Array]) -> tuple[Array, dict[str, Array]]:
        w, x, wanted = part
        found, cotangent = gradients.block_gradients(shape, w, x[0], cotangent)
        none = {name: jnp.zeros(len(shape.weights), jnp.float32) for name in ("rank", "share")}
        return cotangent, jax.lax.cond(wanted, summed, lambda _: none, found)

    layers = (expanded(shape, blocks_of(shape, params)), before, jnp.asarray(chosen))
    _, seen = jax.lax.scan(one, cotangent[0], layers, reverse=True)
    return {name: values[np.flatnonzero(chosen)] for name, values in seen.items()}


def unstructured(shared: ModelAndText, key: PRNGKeyArray, count: int) -> dict[str, Float[Array, " matrix"]]:
    """The same of a product of two Gaussian matrices with a row for each token, of each matrix' size."""
    sizes = shared.shape.weights
    found = {}
    for size in sorted(set(sizes.values())):
        left, right = (
            jax.random.normal(k, (count, side), jnp.float32) for k, side in zip(jax.random.split(key), size, strict=True)
        )
        found[size] = summary(energies(left.T @ right), count)
    return {name: jnp.stack([found[size][name] for size in sizes.values()]) for name in ("rank", "share")}


@on_text
def trial(s: OnText, key: PRNGKeyArray, shared: ModelAndText) -> jd.Observables:
    """Stable rank and kept share of the gradients of one piece, next to those of unstructured ones."""
    tokens = piece(s, key, shared)
    seen, random = spectra(shared, tokens), unstructured(shared, jax.random.fold_in(key, 1), s.length - 1)
    like = {name: jnp.broadcast_to(random[name], seen[name].shape) for name in seen}
    return jd.observables(
        predicted={name: jd.named(x, "layer matrix") for name, x in like.items()},
        measured={name: jd.named(x, "layer matrix") for name, x in seen.items()},
        coords={"layer": looked_at(shared.shape.depth), "matrix": tuple(shared.shape.weights)},
    )


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """What a quarter of the rank keeps, and stable ranks next to unstructured ones, in every piece, matrix and layer."""
    return [
        jd.at_least(SHARE, ds.measured_share, KEEPS),
        jd.at_most(RANK, ds.measured_rank / ds.predicted_rank, LOW),
    ]


def kept_share(ds: xr.Dataset) -> float:
    """Share that a quarter of an unstructured gradient's rank keeps, the largest of all matrices."""
    return float(ds.predicted_share.max())


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Stable rank by layer and matrix, and of unstructured gradients."""
    ax = fig.subplots()
    colors = dict(zip(ds.matrix.values, ("measured", "third", "fourth", "fifth", "theory", "failed", "control"), strict=False))
    ax.set_xticks(ds.layer.values)
    for name, color in colors.items():
        ranks = ds.measured_rank.sel(matrix=name).transpose(..., "layer")
        plotting.band(ax, ds.layer, ranks, str(name), color, marker="o")
    random = ds.predicted_rank.mean([d for d in ds.predicted_rank.dims if d != "matrix"])
    ax.axhspan(float(random.min()), float(random.max()), color=plotting.COLORS["control"], alpha=0.3, linewidth=0)
    ax.text(float(ds.layer[0]), float(random.max()) * 1.15, "no structure", va="bottom")
    ax.set(xlabel="layer", ylabel="stable rank of the gradient", yscale="log", ylim=(1, 300))
    ax.legend(ncols=4, loc="upper right")


CLAIMS = (
    jd.Study(
        trial=trial,
        quick=jd.grid(OnText, length=256),
        seeds=3,
        paper_seeds=16,
        evidence="model",
        judge=judge,
        bounds=jd.tuned(on="0:4", confirmed_on="61000000:61000003"),
        tested=f"{SMOLLM2}; gradients of the mean cross-entropy of a piece, of all seven matrices in the layers 10, 20 and 30.",
        source="arXiv:2403.03507, section 3 (low-rank gradients) and table 2 (a quarter of the ranks)",
        plot=plot,
        caption="Stable rank of the gradient of each matrix of a block by layer: median and central 90% of the pieces of text; "
        "grey: products of Gaussian matrices, one row per token.",
    ).claim(
        id="galore.model_gradients",
        title="Gradients of SmolLM2's own loss have low rank",
        statement="At weights of 4 bits, the gradients of SmolLM2-135M-Instruct's own loss on a piece of 256 tokens of the manual "
        "of the Python interpreter have low rank in layers 10, 20 and 30: for every matrix of these and every piece a quarter of "
        "the largest rank that the gradient can have (of the number of tokens, or of the matrix' smaller side) keeps at least 80% "
        "of the squared norm, and the stable rank is below a quarter of that of the product of Gaussian inputs and errors.",
        controls={"a random network: the same weights in random order": {"weights": "shuffled"}},
        rivals={"neither inputs nor errors have structure": jd.off({SHARE: kept_share, RANK: 1.0})},
    ),
)
