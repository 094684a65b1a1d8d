r"""How far the stationarity assumption of JoMA's Theorems 2 to 4 holds while a network with upper layers is trained.

The assumption (A1) says that expectations with the backpropagated gradient, the saliency :math:`\Delta = E[G x]` first of all, do
not change. Letters as in ``model.py``; o samples, one per class, as in the experiment of Figure 2.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting, train
from jaxdyn.theories.joma import model
from jaxdyn.theories.joma.invariant.classes import DATA, DISTINCT, class_data

LAYERS = 3  # upper layers above the first
KINDS = jd.Code.of("softmax", model.ATTENTIONS), jd.Code.of("id", model.ACTIVATIONS)


@jd.setting
class Stacked:
    """Softmax attention and linear nodes below upper layers; one sample per class, cross-entropy, full-batch descent.

    Args:
        depth: upper layers above the first.
        upper: activation below each of them.
        data: frequencies of the tokens in each class.
        lr: learning rate of all parameters.
        every: steps between two records.
        gone: share of the loss that is gone where the saliency is compared with that of the start.
        records: of a run, after its start.
        tokens, nodes, classes, dim: sizes of the arrays; ten of the tokens are distinct tokens.
    """

    depth: jd.Swept = jd.field(0.0, at_least=0, at_most=LAYERS)
    upper: jd.Code = jd.code(*model.UPPERS)
    data: jd.Code = jd.code(*DATA)
    lr: jd.Swept = 0.05
    every: jd.Swept = jd.field(60.0, at_least=1, whole=True)
    gone: jd.Swept = jd.field(0.1, above=0, below=1)
    records: int = jd.field(60, at_least=1)
    tokens: int = jd.field(20, at_least=DISTINCT)
    nodes: int = 20
    classes: int = 20
    dim: int = 30

    def __post_init__(self) -> None:
        """Refuse embeddings that cannot be orthonormal."""
        jd.require(self, self.dim > self.tokens, "orthonormal columns need dim > tokens", "dim", "tokens")


def trial(s: Stacked, key: PRNGKeyArray) -> jd.Observables:
    """The saliency at the start and where a share of the loss is gone, and its value if gradients did not depend on the input."""
    # the network, and its data
    k_data, k_init = jax.random.split(key)
    frame = jnp.eye(s.dim, s.tokens + 1, dtype=jnp.float64)
    block = model.Block(frame[:, :-1], frame[:, -1:], *KINDS, upper=s.upper, depth=s.depth)
    x = class_data(jax.random.uniform(k_data, (s.classes, s.tokens), jnp.float64), s.data)
    weight = jnp.full(s.classes, 1 / s.classes, jnp.float64)
    batch = model.Batch(x, jnp.zeros(s.classes, jnp.int32), jnp.eye(s.classes, dtype=jnp.float64), weight)
    shapes = (s.dim, s.nodes), (1, s.tokens), (s.nodes, s.classes), (LAYERS, s.classes, s.classes)
    w, z, a, c = model.normals(k_init, *shapes)
    params = model.Params(w / s.dim**0.5, 0.01 * z, a / s.nodes**0.5, c * (2 / s.classes) ** 0.5)
    # training
    plain = jd.Code.of("gd", model.OPTIMIZERS)
    tx = model.make_tx(plain, s.lr, model.Params._make((1.0, 1.0, 1.0, 1.0)))

    def observe(state: train.State) -> dict[str, Any]:
        g = weight[:, None] * model.node_gradients(state.params, block, batch)
        mean = jnp.outer(weight @ x, jnp.sum(g, 0))
        return {"saliency": x.T @ g, "independent": mean, "loss": model.cross_entropy(state.params, block, batch)}

    step = train.make_step(lambda p: model.cross_entropy(p, block, batch), tx)
    _, records = train.record(step, train.init(tx, params), observe, samples=s.records, every=jnp.round(s.every).astype(jnp.int32))
    # where the share of the loss is gone
    loss: Array = records["loss"]
    there = jnp.argmax(loss <= (1 - s.gone) * loss[0])
    return jd.observables(
        predicted={"saliency": jd.named(records["saliency"][0], "token node")},
        measured={"saliency": jd.named(records["saliency"][there], "token node")},
        recorded={
            "independent": jd.named(records["independent"][0], "token node"),
            "loss": jd.named(loss, "record"),
            "reached": (1 - jnp.min(loss) / loss[0]) / s.gone,
        },
    )


DIMS = ("token", "node")


def change(ds: xr.Dataset) -> xr.DataArray:
    """Change of the saliency over its size at the start."""
    return jd.relative_error(ds, "saliency", DIMS)


def cosine(ds: xr.Dataset) -> xr.DataArray:
    """Cosine between the saliencies, all tokens and nodes together: whether the change is more than a common factor."""
    a, b = ds.measured_saliency, ds.predicted_saliency
    return (a * b).sum(DIMS, min_count=1) / np.sqrt((a**2).sum(DIMS) * (b**2).sum(DIMS))


def cells(ds: xr.Dataset) -> dict[str, dict[str, Any]]:
    """The cells of the map; without further layers there is no activation below them."""
    jd.need(ds, depth=1, upper=1, seed=8)
    names = {}
    for depth in ds.depth.values:
        for upper in ds.upper.values if depth > 0 else ds.upper.values[:1]:
            names[f"depth {depth:g}, {upper}" if depth > 0 else "depth 0"] = {"depth": depth, "upper": upper}
    return names


def judge(ds: xr.Dataset) -> list[jd.Check | jd.Reading]:
    """Change and direction of the saliency in each cell, means over seeds.

    The change is averaged on a logarithmic scale: behind ReLUs a few runs change by ten times the start.
    """
    found: list[jd.Check | jd.Reading] = [
        jd.gate("share of the loss that is gone at the end, over that of the comparison", ds.reached, at_least=1)
    ]
    for name, cell in cells(ds).items():
        found += [
            jd.mean_reading(f"ln of the relative change, {name}", np.log(change(ds).sel(cell)), over="seed"),
            jd.mean_reading(f"cosine with the start, {name}", cosine(ds).sel(cell), over="seed"),
        ]
    return found


# Assumption A1: the saliency of the start is that of any later time.
STAYS = jd.off(predicted_saliency="measured_saliency")


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Change of the saliency and the angle of its turn against the depth, a line for each activation."""
    left, right = fig.subplots(1, 2)
    for upper, color in zip(ds.upper.values, ("measured", "third", "control"), strict=False):
        for ax, values in ((left, change(ds)), (right, cosine(ds))):
            plotting.band(ax, ds.depth, values.sel(upper=upper).transpose(..., "depth"), str(upper), color)
    left.set(xlabel="upper layers above the first", ylabel="change of the saliency / its size")
    right.set(xlabel="upper layers above the first", ylabel="cosine with the saliency of the start")


STUDY = jd.Study(
    trial=trial,
    evidence="network",
    quick=jd.grid(Stacked, depth=[0, 1, 3], upper=list(model.UPPERS)),
    paper=jd.grid(Stacked, depth=[0, 1, 2, 3], upper=list(model.UPPERS), data=list(DATA)),
    seeds=32,
    paper_seeds=32,
    tested="A block with softmax attention and {nodes} linear nodes, a linear layer above and {depth} further layers with "
    "{upper} below each, on {classes} classes, one sample per class over {tokens} tokens ({data} frequencies). "
    "Full-batch gradient descent of all parameters at the rate {lr}; seeds: {seeds}.",
    source="arXiv:2310.00535, section 3 (stationary backpropagated gradients), measured",
    plot=plot,
    caption=r"Change of the saliency $E[Gx]$ relative to its size at the start (left), and its cosine with that of the start "
    r"(right), where a tenth of the loss is gone, against the number of upper layers above the first, for each activation below "
    r"them; lines are medians over the runs, bands their central 90%.",
)

CLAIMS = (
    STUDY.claim(
        id="joma.stationarity",
        talks=("training:joma-linear-equation",),
        title="How soon the backward gradient stops being constant",
        statement="Below 0, 1 or 3 upper layers that are added to the first, by the time gradient descent has removed a tenth "
        "of the loss, how far has the saliency $E[Gx]$ ($G$: gradient at the hidden nodes, $x$: token frequencies), which "
        "Theorems 2 to 4 hold constant, changed relative to its size, and what is its cosine with that of the start? Means over "
        "seeds, of the logarithm for the change.",
        judge=judge,
        expected="measured",
        rivals={
            "the saliency stays as it is": STAYS,
            "gradients do not depend on the input": jd.swap(predicted_saliency="independent"),
        },
        recorded={
            "ln of the relative change, depth 0": (0.135, 0.2631, 0.391),
            "cosine with the start, depth 0": (0.653, 0.7041, 0.755),
            "ln of the relative change, depth 1, tanh": (0.364, 0.4722, 0.581),
            "cosine with the start, depth 1, tanh": (0.45, 0.5226, 0.595),
            "ln of the relative change, depth 1, relu": (0.518, 0.6533, 0.788),
            "cosine with the start, depth 1, relu": (0.331, 0.4319, 0.533),
            "ln of the relative change, depth 1, id": (0.393, 0.4955, 0.598),
            "cosine with the start, depth 1, id": (0.433, 0.5063, 0.579),
            "ln of the relative change, depth 3, tanh": (0.0859, 0.2033, 0.321),
            "cosine with the start, depth 3, tanh": (0.35, 0.4484, 0.546),
            "ln of the relative change, depth 3, relu": (0.945, 1.317, 1.69),
            "cosine with the start, depth 3, relu": (-0.0816, 0.1394, 0.36),
            "ln of the relative change, depth 3, id": (0.08, 0.1869, 0.294),
            "cosine with the start, depth 3, id": (0.277, 0.3793, 0.482),
        },
    ),
)
