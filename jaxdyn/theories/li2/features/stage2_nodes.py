r"""In which irrep each node of a network ends that is trained until it generalises, forecast from its start.

Forms, as in ``dynamics/nodes.py``: ``node`` follows both layers of a node from where they start, ``energy`` lets w climb E(w) from
its start, as if the top layer had none. The trial: ``features/single_nodes.py``.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np
import scipy
import xarray as xr

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.li2.features.single_nodes import trial
from jaxdyn.theories.li2.training import Training

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CLAIMS", "agreement", "judge", "judge_use", "right"]

LABELS = {"node": "by the flow of the node", "energy": "by the climb of E(w)"}
GENERAL = 0.95  # test accuracy that counts as generalising


def right(ds: xr.Dataset, name: str = "predicted_place") -> xr.DataArray:
    """The share of a network's nodes that end in the irrep named."""
    return (abs(ds[name] - ds.measured_place) < 0.5).where(ds.measured_place.notnull()).mean("node")


def judge(ds: xr.Dataset, least: float = 0.5, more: float = 0.1) -> list[jd.Check]:
    """Networks generalise; a share ``least`` of the nodes is forecast, by ``more`` than by the largest irrep of the start."""
    own = right(ds)
    return [
        jd.gate("final test accuracy, mean", float(ds.test_accuracy.mean()), at_least=GENERAL),
        jd.mean_within("share of a network's nodes forecast correctly, mean", own, over="seed", low=least),
        jd.mean_within(
            "its excess over the largest irrep of the start, mean", own - right(ds, "start_place"), over="seed", low=more
        ),
    ]


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
        jd.mean_within("rank correlation over a network's irreps, mean", agreement(ds), over="seed", low=0.0, high=0.45),
    ]


def at_random(ds: xr.Dataset) -> xr.Dataset:
    """A rival: as many nodes miss their forecast, but any of them alike, and end in any irrep alike."""
    place, rng = ds.predicted_place, np.random.default_rng(0)
    missed = rng.permuted((abs(place - ds.measured_place) > 0.5).values, axis=place.get_axis_num("node"))
    anywhere = rng.integers(ds.sizes["irrep"], size=place.shape)
    return ds.assign(measured_place=place.copy(data=np.where(missed, anywhere, place.values)))


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
    left.set(xlabel="epoch", ylabel="share of nodes forecast correctly", ylim=(0, 1))
    plotting.band(side, ds.epoch, ds.curve_energy.mean("node").transpose("seed", "epoch"), "energy", plotting.COLORS["measured"])
    plotting.band(side, ds.epoch, ds.curve_test.transpose("seed", "epoch"), "test accuracy", plotting.COLORS["third"])
    side.set(xlabel="epoch", ylabel="energy over its maximum; accuracy", ylim=(-0.03, 1.03))


STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Training, share=0.8, lr=1.0, decay=1e-4, hidden=64, epochs=120, every=5, optimizer="sgd"),
    paper=jd.grid(Training, group="41", share=0.8, lr=1.0, decay=1e-4, hidden=512, epochs=600, every=10, optimizer="sgd"),
    seeds=64,
    paper_seeds=64,
    judge=judge,
    form="node",
    evidence="network",
    source="arXiv:2509.21519, section 4",
    plot=plot,
    rivals={
        "every node keeps the largest irrep of its start": jd.swap(predicted_place="start_place"),
        "the climb on targets of permuted pairs": jd.swap(predicted_place="other_place"),
        "the irrep that most nodes of the network hold": jd.swap(predicted_place=frequent),
    },
    caption="Left: share of nodes whose largest irrep along training is the one forecast from the start; dotted: mean share that "
    "ends in the largest irrep of its start. Right: energy of nodes on the unit sphere over the maximum in their irrep, mean over "
    "the nodes, and test accuracy. Median and central 90% of the runs.",
)

NODES = STUDY.claim(
    id="li2.stage2_nodes",
    statement=r"In networks of 64 nodes with $\sigma = x^2$ on $Z_{23}$ that gradient descent with momentum trains until they "
    r"generalise, the irrep in which a node ends is forecast from its start: the flow of both layers of the node alone, towards "
    r"the targets, names it for more than half of the nodes of a network on average, by 10 percentage points more than the "
    r"largest irrep of the start does.",
    bounds=jd.looked(at="0:64", confirmed="6000:6064"),
    controls={"the nodes of another network": jd.rolled(measured_place="seed")},
)
DIHEDRAL = STUDY.claim(
    id="li2.stage2_nodes_dihedral",
    statement=r"In networks of 64 nodes with $\sigma = x^2$ on the dihedral group $D_7$, not commutative, that gradient descent "
    r"with momentum trains until they generalise, the flow of both layers of a node alone names the irrep in which it ends for "
    r"more than half of the nodes of a network on average, by 10 percentage points more than the largest irrep of the start does.",
    quick=STUDY.quick.replace(group="D7", share=0.9, epochs=200),
    paper=STUDY.paper.replace(group="D11", share=0.9),
    seeds=32,
    bounds=jd.looked(at="0:32", confirmed="6000:6032"),
    controls={"the nodes of another network": jd.rolled(measured_place="seed")},
)
ADAM = STUDY.claim(
    id="li2.stage2_nodes_adam",
    statement=r"In networks of 64 nodes with $\sigma = x^2$ on $Z_{23}$ that Adam trains until they generalise, the gradient flow "
    r"of both layers of a node alone names the irrep in which it ends for more than half of the nodes of a network on average, "
    r"by 10 percentage points more than the largest irrep of the start does.",
    quick=STUDY.quick.replace(lr=0.01, optimizer="adam", epochs=100),
    paper=STUDY.paper.replace(lr=0.005, optimizer="adam"),
    seeds=32,
    bounds=jd.looked(at="0:32", confirmed="6000:6032"),
    controls={"the nodes of another network": jd.rolled(measured_place="seed")},
)

RELU = STUDY.claim(
    id="li2.stage2_nodes_relu",
    statement=r"In networks of 64 ReLU nodes on $Z_{23}$ that gradient descent with momentum trains until they generalise, the "
    r"flow of both layers of a node alone names the irrep in which it ends for more than two fifths of the nodes of a network on "
    r"average, by 5 percentage points more than the largest irrep of the start does.",
    quick=STUDY.quick.replace(activation="relu", lr=0.35, epochs=500, every=20),
    paper=STUDY.paper.replace(activation="relu", lr=0.35, hidden=128, epochs=2000, every=100),
    seeds=32,
    judge=functools.partial(judge, least=0.4, more=0.05),
    bounds=jd.looked(at="0:32", confirmed="7000:7032"),
    controls={"the nodes of another network": jd.rolled(measured_place="seed")},
    caption="Left: share of ReLU nodes whose largest irrep along training is the one forecast from the start; dotted: mean share "
    r"that ends in the largest irrep of its start. Right: energy (that of $\sigma = x^2$) of nodes on the unit sphere over the "
    "maximum in their irrep, mean over the nodes, and test accuracy. Median and central 90% of the runs.",
)
USE = STUDY.claim(
    id="li2.forecast",
    statement=r"In networks of 64 nodes with $\sigma = x^2$ on $Z_{23}$ that gradient descent with momentum trains until they "
    r"generalise, the start tells where most nodes end, but little of what the network uses: the flow of both layers of a node "
    r"alone names its irrep for more than 65% of the nodes of a network on average, while the rank correlation over the 11 irreps "
    r"of the number of nodes forecast there with the number found is on average between 0 and .45.",
    judge=judge_use,
    bounds=jd.looked(at="31000000:31000064", confirmed="32000000:32000064"),
    controls={"the nodes of another network": jd.rolled(measured_place="seed")},
    rivals={
        "every node keeps the largest irrep of its start": jd.swap(predicted_place="start_place"),
        "the climb on targets of permuted pairs": jd.swap(predicted_place="other_place"),
        "nodes miss their forecasts at random": at_random,
    },
)

CLAIMS = (
    NODES,
    NODES.as_printed(
        id="li2.stage2_nodes_naive",
        form="energy",
        statement=r"In the same networks the irrep in which a node ends is that of the maximum to which $E(w)$ climbs from the "
        r"node's start, as if its top layer had none: for more than half of the nodes, and a tenth more than by the largest irrep "
        r"of the start.",
    ),
    DIHEDRAL,
    ADAM,
    RELU,
    USE,
)
