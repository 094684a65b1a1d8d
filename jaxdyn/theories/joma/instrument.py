r"""How concentrated attention is, and how few directions each matrix uses.

Attention entropy is in nats, mean over queries; uniform causal attention has :math:`\frac1n \sum_{i \le n} \ln i`, and less where a
query sees fewer keys. Stable ranks of all weight matrices are compared with Gaussian matrices of the same size. JoMA predicts that
entropy falls and then, with a nonlinear MLP, partly returns during training, in step with the stable rank of the MLP's lower
matrices: along a series of checkpoints.

Source: arXiv:2310.00535, sections 4 and 5 and figures 6 to 8. Letters: h heads, n tokens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Int, PyTree

from jaxdyn import metrics
from jaxdyn.instruments.drawing import curve, expected, layers_axis
from jaxdyn.instruments.instrument import Cost, Instrument, Number, Tick, extreme, need, number
from jaxdyn.instruments.pieces import attention_bytes, each_piece, first, forward, reading, uniform_weights
from jaxdyn.instruments.spectra import energies, gaussian_stable_rank, stable_ranks
from jaxdyn.nn import Transformer
from jaxdyn.nn.activations import reduce_blocks
from jaxdyn.nn.transformer import blocks_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from jaxdyn.models.loading import Model

__all__ = ["ENTROPY", "INSTRUMENTS", "measure", "observe", "predict", "uniform"]

PIECES, LENGTH = 8, 256
COLORS = {"q": "measured", "k": "third", "v": "fourth", "o": "fifth", "gate": "theory", "up": "failed", "down": "control"}
COLORS |= {"output_gate": "#8f6a4c"}


def uniform(shape: Transformer, length: int) -> float:
    """Entropy of uniform attention, mean over queries; that of a query which sees no key is 0."""
    seen = np.sum(uniform_weights(shape, length) > 0, 1)
    return float(np.mean(np.log(np.maximum(seen, 1))))


def observe(shape: Transformer, params: PyTree, tokens: Int[Array, " n"]) -> Array:
    """Entropy by layer and head, mean over queries."""
    return reduce_blocks(
        shape, params, tokens[None], lambda block: jnp.mean(metrics.entropy(block.attention[0].astype(jnp.float32)), -1)
    )[1]


def ranks(shape: Transformer, params: PyTree) -> dict[str, Array]:
    """Stable rank of every matrix of every block."""
    blocks = blocks_of(shape, params)
    return {name: jax.lax.map(lambda w: stable_ranks(energies(w)), blocks[name]) for name in shape.weights}


def measure(model: Model, tokens: Int[np.ndarray, "piece n"], tick: Tick) -> xr.Dataset:
    """Entropy by piece, layer and head; stable rank by block and matrix; sizes of the matrices.

    Raises:
        NotApplicable: for attention whose weights are no shares.
    """
    need(model.shape, "shares")
    used = first(tokens, PIECES, LENGTH)
    entropy = each_piece(model, observe, used, lambda share: tick(share / 2))
    found = jax.device_get(jax.jit(ranks, static_argnums=0)(model.shape, model.params))
    tick(0.5)
    names, length = list(model.shape.weights), used.shape[1] + model.shape.sink_token
    data = {
        "uniform": ((), uniform(model.shape, length)),
        "entropy": (("piece", "layer", "head"), entropy),
        "rank": (("block", "matrix"), np.stack([found[name] for name in names], -1)),
        "size": (("matrix", "side"), np.asarray([model.shape.weights[name] for name in names])),
    }
    coords = {
        "layer": np.arange(1, model.shape.depth + 1),
        "block": np.arange(1, model.shape.layers + 1),
        "matrix": names,
        "side": ["rows", "columns"],
    }
    return xr.Dataset(data, coords, {"tokens": length} | reading(used))


def predict(ds: xr.Dataset) -> xr.Dataset:
    """Uniform attention, and Gaussian matrices."""
    ranks_ = [gaussian_stable_rank(*map(int, size)) for size in ds["size"].transpose("matrix", "side").values]
    return xr.Dataset({"entropy": ds.uniform, "rank": ("matrix", ranks_)}, {"matrix": ds.matrix.values})


def numbers(ds: xr.Dataset) -> list[Number]:
    """Entropies of the whole, of the lowest and of the highest layer; stable ranks by matrix."""
    law = predict(ds)
    mean = ds.entropy.mean("head", skipna=False)
    least = extreme(mean, "layer")
    shown = [
        number("attention entropy in nats, mean over layers and heads", mean, law.entropy, "uniform attention"),
        number("attention entropy in the first layer", mean.isel(layer=0), law.entropy, "uniform attention"),
        number("attention entropy in the last layer", mean.isel(layer=-1), law.entropy, "uniform attention"),
        number(
            f"attention entropy in layer {least + 1}, where it is least", mean.isel(layer=least), law.entropy, "uniform attention"
        ),
    ]
    for name in ds.matrix.values:
        shown.append(
            number(
                f"stable rank of {name}, mean over layers", ds["rank"].sel(matrix=name), law["rank"].sel(matrix=name), "Gaussian"
            )
        )
    return shown


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Entropy by layer, all heads and their mean; stable ranks by layer and matrix over the Gaussian ones."""
    left, right = fig.subplots(1, 2)
    law = predict(ds)
    for head in range(ds.sizes["head"]):
        left.plot(ds.layer, ds.entropy.isel(head=head).mean("piece"), color="#868c95", alpha=0.35, linewidth=0.8)
    curve(left, ds.entropy.mean("head", skipna=False), "layer", "mean over heads")
    expected(left, None, float(law.entropy), "uniform attention")
    layers_axis(left, "attention entropy, nats", ylim=(0, None))
    for name in ds.matrix.values:
        curve(right, ds["rank"].sel(matrix=name) / law["rank"].sel(matrix=name), "block", str(name), COLORS[str(name)])
    expected(right, None, 1.0, "Gaussian")
    layers_axis(right, "stable rank over Gaussian", yscale="log")


def traces(ds: xr.Dataset) -> dict[str, xr.DataArray]:
    """Along training: entropy by layer, and stable ranks of the MLP's lower matrix by layer, if there is one."""
    shown = {"attention entropy, nats": ds.entropy.mean("head", skipna=False)}
    if "up" in ds.matrix:
        shown["stable rank of the MLP's up matrix"] = ds["rank"].sel(matrix="up", drop=True).rename(block="layer")
    return shown


def cost(shape: Transformer, tokens: Int[np.ndarray, "piece n"]) -> Cost:
    """One reading, and the eigenvalues of a Gram matrix for every weight matrix."""
    used = first(tokens, PIECES, LENGTH)
    spectra = shape.layers * sum(2 * min(s) * np.prod(s) + 8 * min(s) ** 3 for s in shape.weights.values())
    return Cost(used.size * forward(shape, used.shape[1]) + float(spectra), attention_bytes(shape, used.shape[1]))


ENTROPY = Instrument(
    name="entropy",
    title="Attention entropy and stable ranks",
    theory=(
        r"During training attention becomes sparse: its entropy falls below that of uniform attention, $\frac1n \sum_{i \le n} "
        r"\ln i$ without a window, and partly returns where the MLP is nonlinear (JoMA, arXiv:2310.00535); the MLP's matrices lose "
        "rank as hidden units learn the salient directions first. Shown is one point of that path, or all of it for a series of "
        "checkpoints."
    ),
    caption=(
        "Left: entropy of the attention, mean over queries; grey, single heads. Right: stable rank of every weight matrix over "
        "that of a Gaussian matrix of its size. Band: 95% interval over pieces."
    ),
    source="arXiv:2310.00535, sections 4 and 5",
    pieces=PIECES,
    cost=cost,
    measure=measure,
    predict=predict,
    numbers=numbers,
    plot=plot,
    traces=traces,
)

INSTRUMENTS = (ENTROPY,)
