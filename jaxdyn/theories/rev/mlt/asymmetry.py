"""How asymmetric attention is between the entities of a trained pair, and whether its asymmetry tells the trained direction.

A slide has the matrix of attention logits as what is not symmetric. Two dull theories are read next to that: independent random
matrices of queries and keys are as asymmetric as a matrix that holds one direction alone, and an asymmetry can be the same on
entities of different facts.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.rev.mlt.attention import PAIRS
from jaxdyn.theories.rev.mlt.study import LEARNED, SMALL, SOURCE, TRAINED, known, reversal, tested
from jaxdyn.theories.rev.mlt.study import PAIRS as FACTS
from jaxdyn.theories.rev.mlt.trial import GROUPS

LAYERS = {"first": 0, "last": -1}
COLUMNS = [(pairs, layer) for layer in LAYERS for pairs in PAIRS]


def share(pairs: str, layer: str) -> str:
    """The name of a reading: the asymmetry of Z on a group of pairs."""
    return f"asymmetry of {pairs} pairs, {layer} layer, mean"


def start(layer: str) -> str:
    """The name of a reading: the asymmetry of Z before training, mean of both groups of pairs."""
    return f"asymmetry before training, {layer} layer, mean"


def excess(pairs: str, layer: str) -> str:
    """The name of a reading: how far the differences of own pairs stand out."""
    return f"direction of {pairs} pairs, {layer} layer, mean"


def kind(layer: str) -> str:
    """The name of a reading: the difference from a question of one pair to the answer of another."""
    return f"direction from questions to other answers, {layer} layer, mean"


def read(ds: xr.Dataset) -> list[jd.Check | jd.Reading]:
    """The asymmetry of Z before and after training; and how far own differences stand out among those of unrelated entities."""
    readings = []
    for layer, i in LAYERS.items():
        part = ds.sel(partner="own").isel(layer=i)
        values = {start(layer): part.asymmetry_before.mean("pairs")}
        values |= {share(pairs, layer): part.asymmetry.sel(pairs=pairs) for pairs in PAIRS}
        values |= {excess(pairs, layer): part.direction.sel(pairs=pairs) for pairs in PAIRS}
        values[kind(layer)] = part.kind
        readings += [jd.mean_reading(name, value, over="seed") for name, value in values.items()]
    return [jd.gate(TRAINED, known(ds), at_most=LEARNED), *readings]


def mixed(ds: xr.Dataset) -> xr.Dataset:
    """A control: A with the B of the next pair of its group, which may be trained in the other direction."""
    other = ds.asymmetry.sel(partner="any direction", drop=True)
    return ds.assign(asymmetry=ds.asymmetry.where(ds.partner != "own", other))


def asymmetries(name: str) -> dict[str, Callable[[xr.Dataset], float]]:
    """The mean of a recorded asymmetry, for every reading of the trained one."""

    def mean(pairs: str, layer: str) -> Callable[[xr.Dataset], float]:
        return lambda ds: float(ds[name].isel(layer=LAYERS[layer]).sel(pairs=pairs).mean())

    return {share(pairs, layer): mean(pairs, layer) for pairs, layer in COLUMNS}


def answers(ds: xr.Dataset) -> float:
    """How far the learned answers of one-way pairs stand out among the network's own logits."""
    return float(ds.group_z.sel(read="asked", group=GROUPS[2]).mean())


NO_DIRECTION = dict.fromkeys([excess(*column) for column in COLUMNS] + [kind(layer) for layer in LAYERS], 0.0)
ONE_DIRECTION = {share("one-way", layer): 1.0 for layer in LAYERS}
AS_ANSWERS = {excess("one-way", layer): answers for layer in LAYERS}


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Asymmetries before and after training, of reassigned pairs and of random matrices; directions; one point per run."""
    left, right = fig.subplots(1, 2, width_ratios=(1.3, 1))
    places = np.linspace(-0.3, 0.3, ds.sizes["seed"])

    def points(ax: Axes, x: float, values: xr.DataArray, color: str, label: str | None) -> None:
        rows = values.transpose("seed", ...).values.reshape(len(places), -1)
        ax.plot(x + places, rows, "o", markersize=3, color=plotting.COLORS[color], label=label)

    series = (
        ("before training", "third", ds.asymmetry_before),
        ("random matrices", "theory", ds.random_asymmetry),
        ("reassigned partners", "control", ds.asymmetry.sel(partner="reassigned")),
        ("trained pairs", "measured", ds.asymmetry.sel(partner="own")),
    )
    for i, (pairs, layer) in enumerate(COLUMNS):
        for label, color, values in series:
            points(left, i, values.isel(layer=LAYERS[layer]).sel(pairs=pairs), color, label if i == 0 else None)
    # directions, of each layer
    for i, j in enumerate(LAYERS.values()):
        part = ds.isel(layer=j)
        points(right, 3 * i, part.direction.sel(pairs="two-way"), "measured", None if i else "own partner among all")
        points(right, 3 * i + 1, part.direction.sel(pairs="one-way"), "measured", None)
        points(right, 3 * i + 2, part.kind, "control", None if i else "question to other answers")
    right.axhline(0, linestyle="--", color=plotting.COLORS["theory"])
    left.set(ylabel=r"$\|Z-Z^\top\|_F\,/\,\|Z+Z^\top\|_F$", ylim=(0, None))
    right.set(ylabel="$Z[x,y]-Z[y,x]$, standard deviations")
    left.set_xticks(range(4), [f"{pairs},\n{layer} layer" for pairs, layer in COLUMNS], fontsize=7)
    names = [f"{what},\n{layer}" for layer in LAYERS for what in (*PAIRS, "others")]
    right.set_xticks(range(6), names, fontsize=7)
    for ax in (left, right):
        ax.legend(fontsize=7)


CLAIMS = (
    reversal.claim(
        id="rev.mlt_attention",
        talks=("training:rev-asymmetric",),
        title="How asymmetric attention is on pairs, and what it tells of direction",
        statement=f"In a {SMALL} what is the asymmetry $\\|Z-Z^\\top\\|_F/\\|Z+Z^\\top\\|_F$ of the attention logits Z between "
        "the entities of a pair, before and after training (1 if Z holds one direction alone, and about 1 for independent random "
        "matrices of queries and keys); and by how many standard deviations does $Z[x,y]-Z[y,x]$, from the question x to the "
        "trained answer y (from A to B in two-way pairs), exceed what it is between entities of different pairs, and "
        "how large is it from questions to the answers of other one-way pairs?",
        tested=tested(FACTS) + " Z: of each entity alone at the first position, with biases, minus the query's mean over "
        "entities, which softmax ignores; asymmetry over the pairs of a group and all heads, differences in the mean of all "
        "heads, among pairs of the same group and direction.",
        source=f"derived; {SOURCE}, section 5 shows the logits of answers only",
        judge=read,
        expected="measured",
        seeds=40,
        controls={
            "partners of any direction": jd.Control(mixed, breaks="trained answer"),
            "queries and keys untrained": jd.Control({"readout": "alone"}, breaks="after training"),
        },
        rivals={
            "nothing is trained": jd.off(asymmetries("asymmetry_before") | NO_DIRECTION),
            "independent random matrices": asymmetries("random_asymmetry"),
            "Z holds the trained direction alone, as the one-layer decoder does": ONE_DIRECTION,
            "Z tells the trained direction as the logits of answers do": AS_ANSWERS,
        },
        recorded={
            start("first"): (0.975, 1.0458, 1.116),
            share("two-way", "first"): (0.608, 0.6872, 0.767),
            share("one-way", "first"): (0.477, 0.5883, 0.7),
            excess("two-way", "first"): (-0.087, 0.0398, 0.167),
            excess("one-way", "first"): (-0.073, 0.0436, 0.161),
            kind("first"): (0.155, 0.4372, 0.719),
            start("last"): (0.926, 0.9936, 1.062),
            share("two-way", "last"): (0.428, 0.4783, 0.528),
            share("one-way", "last"): (0.453, 0.5153, 0.578),
            excess("two-way", "last"): (-0.159, -0.0543, 0.051),
            excess("one-way", "last"): (-0.12, -0.0257, 0.068),
            kind("last"): (0.687, 1.2074, 1.728),
        },
        plot=plot,
        caption="Left: asymmetry of the attention logits between entities on two-way and one-way pairs, in the first and last "
        "layer: before and after training, after training with the partner of another pair of the same kind, and as independent "
        "random matrices would give for the trained inputs. Right: how far the difference from question to answer (A to B in "
        "two-way pairs) lies from that of unrelated entities, in their standard deviations; and how far the latter, from "
        "questions to the answers of other one-way pairs, lies from 0. One point per run.",
    ),
)
