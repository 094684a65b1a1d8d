r"""Repulsion: the entries of the inverse Gram matrix (theorem 6).

All pairs of the first nodes; the network has ``nodes`` of them. Letters as in ``dynamics/repulsion.py``.
"""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.data.groups import parse
from jaxdyn.theories.li2 import model
from jaxdyn.theories.li2.dynamics import repulsion, ridge

SOURCE = "arXiv:2509.21519, Theorem 6"
FIRST = 12
PAIRS = tuple(itertools.combinations(range(FIRST), 2))


@jd.setting
class Pairs:
    """Random nodes on random pairs of a group; ``more`` is a breach."""

    activation: jd.Code = jd.code(*model.STUDIED)  # sigma of the hidden nodes
    nodes: jd.Swept = jd.field(12.0, at_least=FIRST, whole=True)  # nodes of the network, the first of those sampled
    eta: jd.Swept = jd.field(0.5, above=0, role="none")  # ridge added to the Gram matrix of the nodes
    more: jd.Swept = jd.field(0.0, at_least=0, role="breach")  # nodes in the inverse that the formula leaves out
    group: str = "7"  # whose pairs are sampled; a number M is the residues modulo M
    samples: int = jd.field(40, at_least=2)  # random pairs of elements
    capacity: int = 129  # nodes that are sampled, of which the first are used

    def __post_init__(self) -> None:
        """Refuse more nodes than are sampled, and more samples than the group has pairs."""
        pairs = parse(self.group).order ** 2
        most = self.nodes + self.more <= self.capacity
        jd.require(self, most, "the sum of nodes and more is at most capacity", "nodes", "more", "capacity")
        jd.require(self, self.samples <= pairs, f"samples is at most {pairs}, the number of pairs", "samples", "group")


def trial(s: Pairs, key: PRNGKeyArray) -> jd.Observables:
    """B of all pairs of the first nodes, from the inverse and by Theorem 6."""
    group = parse(s.group)
    k_rows, k_w = jax.random.split(key)
    samples = jax.random.choice(k_rows, model.pairs(group.order), (s.samples,), replace=False)
    w = jax.random.normal(k_w, (2 * group.order, s.capacity), jnp.float64) / 2
    every, place = model.features(w, samples, s.activation), jnp.arange(s.capacity)
    f, with_more = every * (place < s.nodes), every * (place < s.nodes + s.more)
    pairs = jnp.asarray(PAIRS, jnp.int32)
    predicted = jax.vmap(lambda pair: repulsion.coefficient(f, pair, s.eta))(pairs)
    inverse = ridge.gram_inverse(with_more, s.eta)
    similar = _similarity(f[:, :FIRST])[pairs[:, 0], pairs[:, 1]]
    return jd.observables(
        predicted={"b": jd.named(predicted, "pair")},
        measured={"b": jd.named(inverse[pairs[:, 0], pairs[:, 1]], "pair")},
        recorded={"similarity": jd.named(similar, "pair")},
    )


def _similarity(f: Float[Array, "n k"]) -> Float[Array, "k k"]:
    """Cosines of the centred columns."""
    f = model.centred(f)
    f = f / jnp.linalg.norm(f, axis=0)
    return f.T @ f


def judge_identity(ds: xr.Dataset) -> list[jd.Check]:
    """Every entry, relative to the largest of the run, and every sign."""
    size = abs(ds.measured_b).max("pair")
    same = (np.sign(ds.measured_b) == np.sign(ds.predicted_b)).mean("pair").where(ds.status == 0)
    return [
        jd.at_most("largest error over the largest entry", abs(ds.measured_b - ds.predicted_b).max("pair") / size, 1e-10),
        jd.at_least("share of equal signs", same, 1.0),
    ]


def plot_identity(ds: xr.Dataset, fig: Figure) -> None:
    """Both sides; and the entry against the similarity of the nodes, which does not determine its sign."""
    left, right = fig.subplots(1, 2)
    one = ds.isel(seed=0)
    for count, color in zip(np.atleast_1d(ds.nodes.values), ("measured", "third", "fourth"), strict=False):
        part = one.sel(nodes=count)
        size = abs(part.predicted_b).max("pair")
        plotting.scatter(left, part.predicted_b / size, part.measured_b / size, f"{count:g} nodes", color, log=False)
        x, y = xr.broadcast(part.similarity, part.measured_b / size)
        points = right.plot(
            x.values.ravel(), y.values.ravel(), "o", alpha=0.4, color=plotting.COLORS[color], label=f"{count:g} nodes"
        )
        plotting.of_runs(points, y)
    left.set(xlabel="Theorem 6, over the largest entry", ylabel=r"$B_{jl}$ from the inverse")
    right.set(xlabel="cosine of the two nodes' features", ylabel=r"$B_{jl}$ over the largest entry")


BASE = jd.grid(Pairs, activation=list(model.STUDIED), nodes=[12, 32, 128])
STUDY = jd.Study(
    trial=trial,
    quick=BASE,
    paper=BASE.replace(nodes=[12, 64, 256], capacity=257, group="23", samples=100),
    seeds=8,
    paper_seeds=16,
    source=SOURCE,
    tested="{nodes} nodes with Gaussian weights and activations {activation}, on {samples} random pairs of residues modulo "
    "{group}, ridge {eta}: all entries between the first 12 nodes; {seeds} seeds.",
)

CLAIMS = (
    STUDY.claim(
        id="li2.thm6",
        title="Two nodes repel each other in what the others lack",
        statement=r"An identity for features $\tilde F$ minus their means: the entry of $(\tilde F^\top \tilde F + \eta I)^{-1}$ "
        r"for nodes j and l, with columns $f_j$, $f_l$ of $\tilde F$, is $-f_j^\top P f_l / [(\eta + f_j^\top P f_j)(\eta + "
        r"f_l^\top P f_l) - (f_j^\top P f_l)^2]$, where P leaves of a column what a fit by all other nodes with ridge $\eta$ "
        "does not explain: nodes that share what the others lack repel each other.",
        judge=judge_identity,
        evidence="algebra",
        bounds="derived: float64 rounding of an inverse; a sign is right or not",
        controls={"another node that the formula leaves out": jd.Control({"more": 1.0}, breaks="all other nodes")},
        rivals={
            "no interaction": jd.swap(predicted_b=0.0),
            "attraction": jd.scaled(predicted_b=-1.0),
            "the similarity of two nodes alone": jd.swap(predicted_b=lambda ds: -ds.similarity * abs(ds.predicted_b).max("pair")),
        },
        plot=plot_identity,
        caption=r"Left: entries $B_{jl}$ of the inverse against Theorem 6, both over the run's largest entry, for one seed; a "
        r"colour per number of nodes, the line is equality. Right: the entries against the cosine of the two nodes' features.",
    ),
)
