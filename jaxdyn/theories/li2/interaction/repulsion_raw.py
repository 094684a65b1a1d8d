r"""A heuristic for repulsion, along training: nodes with similar features repel each other.

The authors' training (Adam, decay coupled into the gradient of both layers) on a random half of a small table; the sign of
:math:`B_{jl}` is compared with that of the two nodes' similarity. Letters as in ``dynamics/repulsion.py``.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting, train
from jaxdyn.data.groups import parse
from jaxdyn.theories.li2 import model
from jaxdyn.theories.li2.dynamics import ridge

KINDS = ("square", "relu")
WHICH = ("most similar", "random")
SHARE = "share of the most similar pairs that repel, end minus start, {}, mean"
EXCESS = "its excess over random pairs, end minus start, {}, mean"
COMPARED = KINDS[:1]  # with random pairs; for the other activation the excess stays as it is at the start


@jd.setting
class Similar:
    """A short training, along which pairs of nodes are compared."""

    activation: jd.Code = jd.code(*KINDS)  # sigma of the hidden nodes
    lr: jd.Swept = jd.field(0.005, above=0)  # rate of Adam
    decay: jd.Swept = jd.field(2e-4, above=0)  # of both layers, added to the gradient
    group: str = "23"  # whose multiplication is learned; a number M is addition modulo M
    samples: int = jd.field(265, at_least=2)  # random pairs of elements to train on
    hidden: int = 256  # K, nodes
    every: int = jd.field(50, at_least=1)  # epochs between two records
    records: int = jd.field(6, at_least=1)  # after the first
    counted: int = jd.field(200, at_least=1)  # pairs of nodes compared: the most similar, and as many random ones
    dtype: str = "float32"

    def __post_init__(self) -> None:
        """Refuse more pairs than there are."""
        every, pairs = parse(self.group).order ** 2, self.hidden * (self.hidden - 1) // 2
        jd.require(self, self.counted <= pairs, f"counted is at most {pairs}, the pairs of nodes", "counted", "hidden")
        jd.require(self, self.samples <= every, f"samples is at most {every}, the pairs of elements", "samples", "group")


def trial(s: Similar, key: PRNGKeyArray) -> jd.Observables:
    """Signs of similarity and of B for both kinds of pairs, along the training."""
    # the trainer
    group = parse(s.group)
    k_rows, k_init, k_pairs = jax.random.split(key, 3)
    samples = jax.random.choice(k_rows, model.pairs(group.order), (s.samples,), replace=False)
    labels = model.products(group, samples)

    def loss(params: model.Params) -> Float[Array, ""]:
        return model.loss(params, samples, labels, s.activation)

    tx = optax.chain(optax.add_decayed_weights(s.decay), optax.adam(s.lr))
    # signs of B and of similarity, for the most similar pairs of nodes and for random ones
    upper = jnp.triu_indices(s.hidden, 1)
    chosen = jax.random.choice(k_pairs, len(upper[0]), (s.counted,), replace=False)

    def observe(state: train.State) -> tuple[Array, Array]:
        w = state.params.w.astype(jnp.float64)
        f = model.features(w, samples, s.activation)
        b = ridge.gram_inverse(f, s.samples * s.decay.astype(jnp.float64) / 2)[upper]
        unit = model.centred(f)
        unit = unit / jnp.maximum(jnp.linalg.norm(unit, axis=0), 1e-30)
        similar = (unit.T @ unit)[upper]
        closest = jax.lax.top_k(jnp.abs(similar), s.counted)[1]
        at = jnp.stack([closest, chosen])
        return -jnp.sign(similar[at]), jnp.sign(b[at])

    # the network along training
    state = train.init(tx, model.init(k_init, group.order, s.hidden, s.dtype))
    state, (predicted, measured) = train.record(train.make_step(loss, tx), state, observe, samples=s.records, every=s.every)
    epochs = tuple(s.every * i for i in range(s.records + 1))
    return jd.observables(
        predicted={"sign": jd.named(predicted, "epoch which pair")},
        measured={"sign": jd.named(measured, "epoch which pair")},
        status=train.finite_status(state.params),
        coords={"epoch": epochs, "which": WHICH},
    )


def _rate(ds: xr.Dataset) -> xr.DataArray:
    """The share of pairs whose signs agree; NaN for runs that are not ok."""
    return (ds.measured_sign == ds.predicted_sign).mean("pair").where(ds.status == 0)


def exchanged(ds: xr.Dataset) -> xr.Dataset:
    """A control: random pairs in place of the most similar ones."""
    return ds.isel(which=[1, 0]).assign_coords(which=list(WHICH))


def judge(ds: xr.Dataset) -> list[jd.Reading]:
    """Changes along training: of the share of repelling pairs among the most similar ones, and of its excess over random pairs."""
    rate = _rate(ds)
    change = rate.isel(epoch=-1, drop=True) - rate.isel(epoch=0, drop=True)
    similar, random = (change.sel(which=which, drop=True) for which in WHICH)
    readings = []
    for kind in map(str, np.atleast_1d(ds.activation.values)):
        for name, share in ((SHARE, similar), (EXCESS, similar - random))[: 2 if kind in COMPARED else 1]:
            one = share.sel(activation=kind, drop=True) if "activation" in share.dims else share
            readings.append(jd.mean_reading(name.format(kind), one, over="seed"))
    return readings


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Shares of agreeing signs along training."""
    axes = fig.subplots(1, 2, sharey=True)
    for ax, kind in zip(axes, KINDS, strict=True):
        part = ds.sel(activation=kind) if kind in np.atleast_1d(ds.activation.values) else ds.isel(activation=0)
        agree = (part.measured_sign == part.predicted_sign).mean("pair")
        for which, color in zip(WHICH, ("measured", "control"), strict=True):
            plotting.band(ax, ds.epoch, agree.sel(which=which), which, color, marker="o")
        ax.set(xlabel="epoch", title=str(part.activation.values))
    axes[0].set(ylabel="share of pairs with the predicted sign")


BASE = jd.grid(Similar, activation=list(KINDS))
STUDY = jd.Study(
    trial=trial,
    quick=BASE,
    paper=BASE.replace(group="71", samples=2016, hidden=2048),
    seeds=32,
    paper_seeds=32,
    source="arXiv:2509.21519, Theorem 6; arXiv:2605.08119",
    tested="Networks of {hidden} nodes with activations {activation} on {samples} pairs of residues modulo {group}, Adam at "
    "rate {lr} with coupled decay {decay}, {records} times {every} epochs; the {counted} most similar of all pairs of nodes "
    "and as many random ones; {seeds} seeds.",
)

CLAIMS = (
    STUDY.claim(
        id="li2.repulsion_raw",
        title="How training changes how often the most similar nodes repel",
        statement="A heuristic, not an identity: two nodes l and j with similar features $f_l$, $f_j$ repel each other, that "
        r"is, their entry of $(\tilde F^\top \tilde F + \eta I)^{-1}$ has the sign of $-\tilde f_j^\top \tilde f_l$, "
        r"with ridge $\eta$ and all features $\tilde F$ without their means. Measured: how does the share of the most similar "
        r"pairs of nodes that do so change in 300 epochs of training, from a random start on, and, for $\sigma = x^2$, its excess "
        "over random pairs?",
        judge=judge,
        expected="measured",
        evidence="network",
        controls={"random pairs": exchanged},
        rivals={
            "training changes nothing": jd.off(
                {SHARE.format(kind): 0.0 for kind in KINDS} | {EXCESS.format(kind): 0.0 for kind in COMPARED}
            ),
            "similar nodes attract": jd.scaled(predicted_sign=-1.0),
        },
        recorded={
            "share of the most similar pairs that repel, end minus start, square, mean": (-0.0217, -0.01656, -0.0114),
            "its excess over random pairs, end minus start, square, mean": (0.071, 0.09781, 0.125),
            "share of the most similar pairs that repel, end minus start, relu, mean": (-0.0561, -0.04141, -0.0267),
        },
        plot=plot,
        caption=r"Share of the pairs of nodes for which $B_{jl}$ has the sign of $-\tilde f_j^\top \tilde f_l$, over the epoch: "
        "the most similar pairs and random ones, a panel per activation. Median and central 90% of the runs.",
    ),
)
