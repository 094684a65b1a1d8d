r"""Suppression: whether Muon's step is smaller in irreps that other nodes of a trained network hold already.

Theorem 8 puts a factor of one half there. Measured is what the polar factor leaves of each node's gradient,

.. math:: \text{gain}_S^2 = \frac{\sum_{(k, j) \in S} \|\Pi_j\, \mathrm{polar}(G)_k\|^2}{\sum_{(k, j) \in S} \|\Pi_j G_k\|^2}

over pairs of a node k and an irrep j that is not its main one; S is "held" where another node has most of its mass in j, "free"
where none has. Lemma 9 has a held part shrink compared with a free one by :math:`\|v_\perp\| / (1 + \|v_\perp\|)`, at most a half
for a column of norm one. Letters as in ``training.py``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Bool, Float, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting, stats
from jaxdyn.data.groups import parse
from jaxdyn.data.irreps import Irreps, decompose
from jaxdyn.optim.muon import polar
from jaxdyn.theories.li2 import model
from jaxdyn.theories.li2.dynamics import energy
from jaxdyn.theories.li2.training import Data, Training, gradient, train

EARLY = "logarithm of the gain in held irreps over free ones, first record, mean"
LATE = "the same at the end of training, mean"
HELD = 0.5  # share of a node's mass in an irrep from which on it holds it


def masses(w: Float[Array, "D K"], irreps: Irreps) -> Float[Array, "K irrep"]:
    """Squared norms of each column's parts in the irreps (conjugate pairs as one), the trivial one left out."""
    u, v = energy.split(w, irreps.group)
    mass = energy.masses(u, irreps) + energy.masses(v, irreps)
    return jnp.stack([jnp.sum(mass[:, list(numbers)], 1) for numbers in irreps.merged[1:]], 1)


def gains(w: Float[Array, "D K"], g: Float[Array, "D K"], irreps: Irreps) -> Float[Array, " 2"]:
    """What the polar factor of g multiplies the gradient's held and its free parts by."""
    share = masses(w / jnp.maximum(jnp.linalg.norm(w, axis=0), 1e-30), irreps)
    holds = share >= HELD
    held = jnp.sum(holds, 0) - holds > 0
    others = jnp.arange(share.shape[1]) != jnp.argmax(share, 1)[:, None]
    before, after = masses(g, irreps), masses(polar(g), irreps)

    def gain(where: Bool[Array, "K irrep"]) -> Float[Array, ""]:
        return jnp.sqrt(jnp.sum(jnp.where(where, after, 0)) / jnp.sum(jnp.where(where, before, 0)))

    return jnp.stack([gain(others & held), gain(others & ~held)])


def watch(s: Training, irreps: Irreps, now: model.Params, before: model.Params, d: Data) -> dict[str, Array]:
    """Both gains of the gradient at the recorded weights."""
    del before
    w, g = (x.astype(jnp.float64) for x in (now.w, gradient(now, d, s).w))
    return {"gain": gains(w, g, irreps)}


def trial(s: Training, key: PRNGKeyArray) -> jd.Observables:
    """Both gains, and the test accuracy, at every record after the start."""
    run = train(s, key, functools.partial(watch, s, decompose(parse(s.group))))
    return jd.observables(
        measured={"gain": jd.named(run.curves["gain"][1:], "epoch part")},
        recorded={"test_accuracy": jd.named(run.curves["test_accuracy"][1:].astype(jnp.float64), "epoch")},
        coords={"epoch": range(s.every, s.epochs + 1, s.every), "part": ("held", "free")},
    )


def ratio(ds: xr.Dataset) -> stats.Labelled:
    """The logarithm of the gain in held irreps over that in free ones."""
    gain = np.log(ds.measured_gain)
    return gain.sel(part="held", drop=True) - gain.sel(part="free", drop=True)


def judge(ds: xr.Dataset) -> list[jd.Check | jd.Reading]:
    """The mean logarithm of the ratio of gains at the first record and at the last."""
    jd.need(ds, seed=16)
    off = ratio(ds)
    over = [str(axis) for axis in off.dims if axis != "epoch"]
    return [jd.mean_reading(name, off.isel(epoch=at), over=over) for name, at in ((EARLY, 0), (LATE, -1))]


def halved(part: str) -> Callable[[xr.Dataset], xr.Dataset]:
    """A control: the gain in one part of the irreps is half of what it is."""
    return jd.swap(measured_gain=lambda ds: ds.measured_gain.where(ds.part != part, ds.measured_gain / 2))


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """The ratio of gains along training, with Theorem 8's factor, and the test accuracy."""
    left, right = fig.subplots(1, 2)
    plotting.band(left, ds.epoch, np.exp(ratio(ds)).transpose(..., "epoch"), "networks", plotting.COLORS["measured"])
    plotting.band(right, ds.epoch, ds.test_accuracy.transpose(..., "epoch"), "networks", plotting.COLORS["measured"])
    left.axhline(0.5, color=plotting.COLORS["theory"], linestyle="--", label="Theorem 8")
    left.set(xlabel="epoch", ylabel="gain in held over free irreps", ylim=(0, None))
    right.set(xlabel="epoch", ylabel="test accuracy")


CLAIMS = (
    jd.Study(
        trial=trial,
        quick=jd.grid(
            Training, group="41", optimizer="muon_polar", share=0.6, lr=0.005, decay=5e-5, hidden=24, epochs=300, every=100
        ),
        paper=jd.grid(
            Training, group="71", optimizer="muon_polar", share=0.6, lr=0.005, decay=5e-5, hidden=[48, 64], epochs=2000, every=200
        ),
        seeds=32,
        paper_seeds=32,
        source="arXiv:2509.21519, Lemma 9 and Theorem 8",
        evidence="network",
        tested="Networks of {hidden} nodes on {share} of the pairs of residues modulo {group}, exact polar factor for W, Adam "
        "at rate {lr} for V, decay {decay}, {epochs} epochs, recorded every {every}; a node holds an irrep with half of its "
        "squared weights; {seeds} seeds.",
    ).claim(
        id="li2.muon_suppression",
        title="Does Muon slow what other nodes have already learned?",
        statement="Theorem 8 supposes that Muon halves a node's step in irreps that other nodes hold. Measured in networks "
        r"with $\sigma = x^2$ that Muon trains: by what factor does the polar factor of the gradient shrink a node's part in "
        "such irreps other than its own main one, compared with its part in irreps that no other node holds, early in training and "
        "late?",
        judge=judge,
        expected="measured",
        controls={"the gain in held irreps halved": halved("held"), "the gain in free irreps halved": halved("free")},
        rivals={
            "all irreps alike": jd.off({EARLY: 0.0, LATE: 0.0}),
            "Theorem 8: held features are halved": dict.fromkeys((EARLY, LATE), float(np.log(0.5))),
        },
        recorded={
            "logarithm of the gain in held irreps over free ones, first record, mean": (-0.029, -0.006995, 0.015),
            "the same at the end of training, mean": (-0.0765, -0.0393, -0.00214),
        },
        plot=plot,
        caption="Left: the gain of the polar factor in irreps that another node holds, over that in irreps that none holds, "
        "along training; dashed: the factor of Theorem 8. Right: test accuracy. Median and central 90% of the runs.",
    ),
)
