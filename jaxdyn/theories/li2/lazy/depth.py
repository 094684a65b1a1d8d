r"""One more layer: the early signal that a wide random upper layer passes to the layer below.

Letters as in ``dynamics/ridge.py``; the signal is that of :math:`G_F` early.
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
from jaxdyn.data.groups import parse
from jaxdyn.theories.li2 import model
from jaxdyn.theories.li2.dynamics import ridge

FORMS = ("printed", "derived")
COUNTS = (1, 4, 16, 64)  # blocks after which the signal is recorded


@jd.setting
class Upper:
    """Two hidden layers of ReLUs at random initialisation."""

    kind: jd.Code = jd.code("random", "rank_one")  # rank_one: all upper nodes are multiples of one
    group: str = "7"  # whose pairs are sampled; a number M is the residues modulo M
    samples: int = jd.field(30, at_least=2)  # random pairs of elements
    below: int = jd.field(16, at_least=2)  # nodes of the lower layer
    block: int = jd.field(500, at_least=100)  # upper nodes in a block; widths are 1 to 64 blocks

    def __post_init__(self) -> None:
        """Refuse more samples than the group has pairs."""
        pairs = parse(self.group).order ** 2
        jd.require(self, self.samples <= pairs, f"samples is at most {pairs}, the number of pairs", "samples", "group")


def trial(s: Upper, key: PRNGKeyArray) -> jd.Observables:
    """The signal received from growing numbers of nodes, by backward differentiation, and the mean over nodes."""
    # the layer below, on random pairs
    group = parse(s.group)
    k_rows, k_below, k_upper, k_one = jax.random.split(key, 4)
    samples = jax.random.choice(k_rows, model.pairs(group.order), (s.samples,), replace=False)
    y = model.targets(group, samples)
    f = model.features(jax.random.normal(k_below, (2 * group.order, s.below), jnp.float64), samples, "relu")
    f = f + 1e-6  # a row of zeros has no angle
    one = jax.random.normal(k_one, (s.below, 1), jnp.float64)

    # the signal from more and more blocks of upper nodes
    def add(block: Int[Array, ""], total: Float[Array, "n below"]) -> Float[Array, "n below"]:
        w = jax.random.normal(jax.random.fold_in(k_upper, block), (s.below, s.block), jnp.float64)
        w = jnp.where(s.kind == "random", w, one * w[:1])
        upper, back = jax.vjp(lambda f: jax.nn.relu(f @ w), f)
        return total + back(ridge.early(upper, y))[0]

    def grow(total: Float[Array, "n below"], ends: Int[Array, " 2"]) -> tuple[Float[Array, "n below"], Float[Array, "n below"]]:
        total = jax.lax.fori_loop(ends[0], ends[1], add, total)
        return total, total / (ends[1] * s.block).astype(f.dtype)

    ends = jnp.asarray([(0, *COUNTS[:-1]), COUNTS], jnp.int32).T
    sent = jax.lax.scan(grow, jnp.zeros_like(f), ends)[1]
    signal = model.centred(y) @ model.centred(y).T
    return jd.observables(
        predicted={"sent": jd.named(jnp.stack([ridge.masked(f, signal), ridge.received(f, signal)]), "form sample node")},
        measured={"sent": jd.named(sent, "width sample node")},
        recorded={
            "plain": jd.named(signal @ f, "sample node"),
            "hidden": jd.named(jnp.asarray(COUNTS, jnp.float64) * s.block, "width"),
        },
        coords={"form": FORMS},
    )


def _sine(ds: xr.Dataset) -> xr.DataArray:
    """The sine of the angle between both sides."""
    dims = ["sample", "node"]
    m, p = ds.measured_sent, ds.predicted_sent
    cosine = (m * p).sum(dims) / np.sqrt((m**2).sum(dims) * (p**2).sum(dims))
    return np.sqrt(1 - cosine**2)


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """The angle at the largest width, the power of K in it, and the size."""
    sine = _sine(ds)
    ratio = (ds.measured_sent * ds.predicted_sent).sum(["sample", "node"]) / (ds.predicted_sent**2).sum(["sample", "node"])
    ends = [v.isel(width=-1) / v.isel(width=0) for v in (sine, ds.hidden)]
    power = np.log(ends[0]) / np.log(ends[1])
    return [
        jd.at_most("sine of the angle to the prediction, largest width", sine.isel(width=-1), 0.1),
        jd.mean_within("power of K in the sine, mean", power, over="seed", low=-0.6, high=-0.4),
        jd.mean_within("size along the prediction, largest width, mean", ratio.isel(width=-1), over="seed", low=0.97, high=1.03),
    ]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """The sine of the angle to both forms against the width."""
    ax = fig.subplots()
    hidden = plotting.first_run(ds).hidden
    for form, color, words in (("derived", "measured", "both terms"), ("printed", "control", "masks alone, as printed")):
        sine = _sine(ds.sel(form=form))
        plotting.band(ax, hidden, sine, words, color, marker="o")
        if form == "derived":
            guide = float(sine.isel(width=0).mean()) * np.sqrt(float(hidden[0]) / hidden)
            ax.plot(hidden, guide, "--", color=plotting.COLORS["theory"], label=r"$K^{-1/2}$")
    ax.set(xscale="log", yscale="log", xlabel="K, nodes of the upper layer", ylabel="sine of the angle to the prediction")


STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Upper),
    paper=jd.grid(Upper, group="23", samples=200, below=32, block=4000),
    seeds=8,
    paper_seeds=16,
    source="corrected from arXiv:2509.21519, extension to deeper networks",
    form="derived",
    evidence="algebra",
    bounds=jd.tuned(on="0:8", confirmed_on="4000:4008"),
    tested="A layer of {below} random ReLU nodes on {samples} random pairs of the residues modulo {group}, below "
    f"{COUNTS[0]} to {COUNTS[-1]} blocks of {{block}} random ReLU nodes; {{seeds}} seeds. The signal is back-propagated.",
)

LAW = STUDY.claim(
    id="li2.depth",
    title="What a wide random upper layer sends to the layer below",
    statement="At a random start and early on, a layer with features $F_1$ receives through an upper layer of K Gaussian ReLU "
    r"nodes, for large K, K times $\sum_j S_{ij} (\kappa_{ij} F_{1j} + \rho_{ij} F_{1i})$ for sample i: the signal of one hidden "
    r"layer, $S = \tilde Y \tilde Y^\top$ for targets $\tilde Y$ minus their means, reweighted between samples by $\kappa = (\pi - "
    r"\theta)/2\pi$, and with $\rho_{ij} = \|F_{1j}\| \sin\theta_{ij} / 2\pi\|F_{1i}\|$ a multiple of the sample's own features "
    r"($\theta$ is the angle between two samples' features). The sine of the angle between both sides falls as $K^{-1/2}$.",
    judge=judge,
    controls={"an upper layer of rank one": {"kind": "rank_one"}},
    rivals={"the signal of one hidden layer as it is": jd.swap(predicted_sent="plain")},
    plot=plot,
    caption="Sine of the angle between the signal that the layer below receives and its prediction, over the width K of the "
    "upper layer: with both terms, and with the masks alone. Median and central 90% of the runs; dashed, $K^{-1/2}$.",
)

CLAIMS = (
    LAW,
    LAW.as_printed(
        id="li2.depth_as_printed",
        title="Printed: a random upper layer only reweights the samples",
        statement="As printed: at a random start and early on, a layer with features $F_1$ receives through an upper layer of K "
        r"Gaussian ReLU nodes, for large K, K times $\sum_j S_{ij} \kappa_{ij} F_{1j}$ for sample i, $S = \tilde Y \tilde Y^\top$ "
        r"for targets $\tilde Y$ minus their means: the upper layer only reweights samples, by the share $\kappa$ of its nodes "
        "that are active on both.",
        printed=r"arXiv:2509.21519, section on deeper networks: $G_{F_{l-1}} \propto D_l \tilde Y \tilde Y^\top D_l F_{l-1} "
        r"W_l W_l^\top$ with "
        r"$W_l W_l^\top \approx I$ at the start",
        source="arXiv:2509.21519, extension to deeper networks, as printed",
        form="printed",
    ),
)
