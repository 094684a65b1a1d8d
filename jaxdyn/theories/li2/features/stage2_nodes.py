r"""In which irrep each node of a network ends that is trained until it generalises, forecast from its start.

Forms, as in ``dynamics/nodes.py``: ``node`` follows both layers of a node from where they start, ``energy`` lets w climb E(w) from
its start, as if the top layer had none. The trial: ``features/single_nodes.py``. Rivals without a flow are rules that read the
winner off the start, of arXiv:2602.16849: magnitude and alignment, or alignment alone (``dynamics/nodes.lots``).
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import scipy
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.li2.features.single_nodes import trial
from jaxdyn.theories.li2.training import Training

LABELS = {"node": "by the flow of the node", "energy": "by the climb of E(w)"}
GENERAL = 0.95  # test accuracy that counts as generalising
PURE = 0.5  # share of a node's squared weights in one irrep from which on it is in no other
USED = "rank correlation over a network's irreps, mean"


def right(ds: xr.Dataset, name: str = "predicted_place", where: xr.DataArray | bool = True) -> xr.DataArray:
    """The share of a network's nodes, or of some of them, whose largest irrep at the end is the one named."""
    return (abs(ds[name] - ds.measured_place) < 0.5).where(ds.measured_place.notnull() & where).mean("node")


def judge(ds: xr.Dataset, least: float = 0.5, more: float = 0.1, lots: bool = True) -> list[jd.Check]:
    """Networks generalise; a share ``least`` of the nodes, and of the pure ones, is forecast, ``more`` than by the start."""
    own, pure = right(ds), right(ds, where=ds.purity > PURE)
    checks = [
        jd.gate("final test accuracy, mean", float(ds.test_accuracy.mean()), at_least=GENERAL),
        jd.mean_within("share of a network's nodes forecast correctly, mean", own, over="seed", low=least),
        jd.mean_within("the same among nodes of which one irrep has more than half, mean", pure, over="seed", low=least),
        jd.mean_within(
            "its excess over the largest irrep of the start, mean", own - right(ds, "start_place"), over="seed", low=more
        ),
    ]
    if lots:
        excess = own - right(ds, "lot_place")
        checks.append(jd.mean_within("its excess over magnitude and alignment at the start, mean", excess, over="seed", low=more))
    return checks


def agreement(ds: xr.Dataset, name: str = "predicted_place") -> xr.DataArray:
    """Rank correlation over irreps of the number of a network's nodes that are forecast there with the number measured, [seed]."""
    predicted, measured = ((ds[place] == ds.irrep).sum("node") for place in (name, "measured_place"))

    def one(a: np.ndarray, b: np.ndarray) -> float:
        return float(scipy.stats.spearmanr(a, b).statistic) if np.ptp(a) and np.ptp(b) else 0.0

    return xr.apply_ufunc(one, predicted, measured, input_core_dims=[["irrep"], ["irrep"]], vectorize=True)


def judge_use(ds: xr.Dataset) -> list[jd.Check]:
    """Networks generalise; most nodes are forecast, and hardly how often a network uses its irreps."""
    return [
        jd.gate("final test accuracy, mean", float(ds.test_accuracy.mean()), at_least=GENERAL),
        jd.mean_within("share of a network's nodes forecast correctly, mean", right(ds), over="seed", low=0.65),
        jd.mean_within(USED, agreement(ds), over="seed", low=0.0, high=0.5),
    ]


def at_random(ds: xr.Dataset) -> float:
    """The rank correlation if as many nodes missed their forecast, but any of them alike, and ended in any irrep alike."""
    place, rng = ds.predicted_place, np.random.default_rng(0)
    missed = rng.permuted((abs(place - ds.measured_place) > 0.5).values, axis=place.get_axis_num("node"))
    anywhere = rng.integers(ds.sizes["irrep"], size=place.shape)
    return float(agreement(ds.assign(measured_place=place.copy(data=np.where(missed, anywhere, place.values)))).mean())


def frequent(ds: xr.Dataset) -> xr.DataArray:
    """The irrep that most nodes of a trained network hold, for each of its nodes."""
    return (ds.measured_place == ds.irrep).sum("node").argmax("irrep") + 0 * ds.measured_place


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Left: share of nodes that are in the irrep forecast, along training; right: energy over the maximum, and test accuracy."""
    left, side = fig.subplots(1, 2)
    forms = {"node": ds.curve_right} if "form" not in ds.dims else {f: ds.curve_right.sel(form=f) for f in LABELS}
    for (form, curve), color in zip(forms.items(), ("theory", "third"), strict=False):
        plotting.band(left, ds.epoch, curve.transpose("seed", "epoch"), LABELS[form], plotting.COLORS[color])
    start = float(right(ds, "start_place").mean())
    left.axhline(start, color=plotting.COLORS["control"], linestyle=":", label="largest irrep of the start")
    lot = float(right(ds, "lot_place").mean())
    left.axhline(lot, color=plotting.COLORS["control"], linestyle="--", label="magnitude and alignment at the start")
    left.set(xlabel="epoch", ylabel="share of nodes forecast correctly", ylim=(0, 1))
    plotting.band(side, ds.epoch, ds.curve_energy.mean("node").transpose("seed", "epoch"), "energy", plotting.COLORS["measured"])
    plotting.band(side, ds.epoch, ds.curve_test.transpose("seed", "epoch"), "test accuracy", plotting.COLORS["third"])
    side.set(xlabel="epoch", ylabel="energy over its maximum; accuracy", ylim=(-0.03, 1.03))


RIVALS: dict[str, Any] = {
    "every node keeps the largest irrep of its start": jd.off(predicted_place="start_place"),
    "the climb on targets of permuted pairs": jd.swap(predicted_place="other_place"),
    "the irrep that most nodes of the network hold": jd.swap(predicted_place=frequent),
}
LOTS: dict[str, Any] = {
    "magnitude and alignment at the start decide": jd.swap(predicted_place="lot_place"),
    "the best alignment at the start decides": jd.swap(predicted_place="aligned_place"),
}
PAPER = jd.grid(Training, group="41", share=0.8, lr=1.0, decay=1e-4, hidden=512, epochs=600, every=10, optimizer="sgd")
STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Training, share=0.8, lr=1.0, decay=1e-4, hidden=64, epochs=120, every=5, optimizer="sgd"),
    paper=PAPER,
    seeds=64,
    paper_seeds=64,
    judge=judge,
    form="node",
    evidence="network",
    source="arXiv:2509.21519, section 4; the rules of the start: arXiv:2602.16849",
    tested="Networks of {hidden} nodes with activation {activation} on {share} of the pairs of the group {group}, optimiser "
    "{optimizer}, rate {lr}, decay {decay}, {epochs} epochs; {seeds} seeds. A group named by a number is that of residues.",
    plot=plot,
    rivals=RIVALS | LOTS,
    caption="Left: share of nodes whose largest irrep along training is the one forecast from the start; dotted: mean share "
    "that ends in the largest irrep of its start, dashed: in that of the fastest growth there. Right: energy of nodes on the unit "
    "sphere over the maximum in their irrep, mean over the nodes, and test accuracy. Median and central 90% of the runs.",
)

TRAINED = (
    r"In networks of 64 nodes with $\sigma = x^2$ that gradient descent with momentum trains at a rate of 1 on .8 of the pairs of "
    "residues modulo 23 until they generalise, for 120 epochs (512 nodes, modulo 41 and 600 epochs at paper scale), "
)

NODES = STUDY.claim(
    id="li2.stage2_nodes",
    talks=("grokking:li2-energy",),
    title="Most nodes end in the irrep forecast from their start alone",
    statement=f"{TRAINED}"
    "the flow of both layers of a single node, towards the targets, forecasts from its start the irrep with the largest share of "
    "its squared weights at the end: for more than half of the nodes of a network on average, also of those with more than half "
    "of their squared weights in one irrep, and for 10 percentage points more of the nodes than the largest irrep of the start, "
    "or the published rule of magnitude and alignment of both layers at the start, which takes no flow.",
    bounds=jd.tuned(on="0:64", confirmed_on="96000000:96000064"),
    controls={"the nodes of another network": jd.rolled(measured_place="seed")},
)
DIHEDRAL = STUDY.claim(
    id="li2.stage2_nodes_dihedral",
    title="Forecast of nodes on a group that is not commutative",
    statement=r"In networks of 64 nodes with $\sigma = x^2$ that gradient descent with momentum trains at a rate of 1 on .9 of "
    "the pairs of the dihedral group of 14 elements (512 nodes, 22 elements and 600 epochs at paper scale), which is not "
    "commutative, until they generalise, for 200 epochs, the flow of both layers of a single node forecasts from its start the "
    "irrep with the largest share of its squared weights at the end: for more than half of the nodes of a network on average, "
    "also of those with more than half of their squared weights in one irrep, and for 10 percentage points more of the nodes than "
    "the largest irrep of the start, or magnitude and alignment of both layers there.",
    quick=STUDY.quick.replace(group="D7", share=0.9, epochs=200),
    paper=PAPER.replace(group="D11", share=0.9),
    seeds=32,
    bounds=jd.tuned(on="0:32", confirmed_on="96000000:96000032"),
    controls={"the nodes of another network": jd.rolled(measured_place="seed")},
)
ADAM = STUDY.claim(
    id="li2.stage2_nodes_adam",
    title="Forecast of nodes in networks that Adam trains",
    statement=r"In networks of 64 nodes with $\sigma = x^2$ that Adam trains at a rate of .01 on .8 of the pairs of residues "
    "modulo 23 until they generalise, too, for 100 epochs (512 nodes, .005, modulo 41 and 600 epochs at paper scale), the "
    "gradient flow of both layers of a single node forecasts from its start the irrep with the largest share of its squared "
    "weights at the end: for more than half of the nodes of a network on average, also of those with more than half of their "
    "squared weights in one irrep, and for 10 percentage points more of the nodes than the largest irrep of the start, or "
    "magnitude and alignment of both layers there.",
    quick=STUDY.quick.replace(lr=0.01, optimizer="adam", epochs=100),
    paper=PAPER.replace(lr=0.005, optimizer="adam"),
    seeds=32,
    bounds=jd.tuned(on="0:32", confirmed_on="96000000:96000032"),
    controls={"the nodes of another network": jd.rolled(measured_place="seed")},
)

RELU = STUDY.claim(
    id="li2.stage2_nodes_relu",
    title="Forecast of nodes in ReLU networks",
    statement="In ReLU networks of 64 nodes that gradient descent with momentum trains at a rate of .35 on .8 of the pairs of "
    "residues modulo 23 until they generalise, for 500 epochs (128 nodes, modulo 41 and 2,000 epochs at paper scale), the flow of "
    "both layers of a single node forecasts from its start the irrep with the largest share of its squared weights at the end for "
    "more than two fifths of the nodes of a network on average, also of those with more than half of their squared weights in one "
    "irrep, and for 5 percentage points more of the nodes than the largest irrep of the start does.",
    quick=STUDY.quick.replace(activation="relu", lr=0.35, epochs=500, every=20),
    paper=PAPER.replace(activation="relu", lr=0.35, hidden=128, epochs=2000, every=100),
    seeds=32,
    rivals=RIVALS,
    judge=functools.partial(judge, least=0.4, more=0.05, lots=False),
    bounds=jd.tuned(on="0:32", confirmed_on="96000000:96000032"),
    controls={"the nodes of another network": jd.rolled(measured_place="seed")},
    caption="Left: share of ReLU nodes whose largest irrep along training is the one forecast from the start; dotted: mean share "
    r"that ends in the largest irrep of its start. Right: energy (that of $\sigma = x^2$) of nodes on the unit sphere over the "
    "maximum in their irrep, mean over the nodes, and test accuracy. Median and central 90% of the runs.",
)
USE = STUDY.claim(
    id="li2.forecast",
    title="Single nodes are forecast, the network's use of irreps hardly",
    statement=f"{TRAINED}"
    "the start tells where most nodes end, but little of what the network uses: the flow of both layers of a single node "
    "forecasts the irrep with the largest share of its squared weights at the end for more than 65% of the nodes of a network on "
    "average, while the numbers of nodes forecast and found in each irrep have a rank correlation between 0 and 1/2 on average.",
    judge=judge_use,
    bounds=jd.tuned(on="96000000:96000064", confirmed_on="97000000:97000064"),
    controls={"the nodes of another network": jd.rolled(measured_place="seed")},
    rivals={
        "every node keeps the largest irrep of its start": jd.off(predicted_place="start_place"),
        "the climb on targets of permuted pairs": jd.swap(predicted_place="other_place"),
        "nodes miss their forecasts at random": {USED: at_random},
        **LOTS,
    },
)

CLAIMS = (
    NODES,
    NODES.as_printed(
        id="li2.stage2_nodes_naive",
        talks=("grokking:li2-energy",),
        title="The same forecast from the hidden weights alone",
        form="energy",
        statement=f"{TRAINED}"
        "the irrep with the largest share of a node's squared weights at the end is that of the maximum to which the energy "
        "$E(w)$ of its hidden weights alone climbs, as if the node had no top layer: for more than half of the nodes of a network "
        "on average, and for 10 percentage points more of them than the largest irrep of the start.",
    ),
    DIHEDRAL,
    ADAM,
    RELU,
    USE,
)
