"""Reversal, the chain of thought and the asymmetry of attention in GPT-2 style transformers.

The reversal curse and the chain of thought in GPT-2 style transformers: what is learned, and what stays at chance.

How asymmetric attention is between the entities of a trained pair, and whether its asymmetry tells the trained direction.

A slide has the matrix of attention logits as what is not symmetric. Two dull theories are read next to that: independent random
matrices of queries and keys are as asymmetric as a matrix that holds one direction alone, and an asymmetry can be the same on
entities of different facts.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.rev.mlt import trial
from jaxdyn.theories.rev.mlt.logits import PAIRS
from jaxdyn.theories.rev.mlt.trial import GROUPS, LEARNED, PAPER, SMALL, SOURCE, TRAINED, known, reversal, tested
from jaxdyn.theories.rev.mlt.trial import PAIRS as FACTS

STANDS_OUT = 9.0  # z-score, mean over runs, of a diagonal that is learned
WORSE = 1.05  # times the NLL of a uniform guess, at least: above a guess itself; 1.085 to 2 in 48 runs
BETTER, FIRST = 0.55, 0.95  # shares of its kind: of chance, with room, and of an answer that is known, with room
HELD_OUT = "NLL of held-out sequences at the end over that of a guess"
BEATS = "share of its kind that the right answer to an unseen question beats, mean"


def rank(ds: xr.Dataset, read: str = "asked", low: float | None = None) -> jd.Check:
    """Where right answers to unseen questions stand among those of their kind: not first."""
    return jd.mean_within(BEATS, ds.measured_wins.sel(read=read), over="seed", low=low, high=FIRST)


def judge_nll(ds: xr.Dataset) -> list[jd.Check]:
    """Training sequences are known; held-out ones are less probable than by a guess."""
    ratio = ds.measured_validation / ds.predicted_validation
    return [jd.at_most(TRAINED, known(ds), LEARNED), jd.at_least(HELD_OUT, ratio, WORSE)]


def judge_chain(ds: xr.Dataset) -> list[jd.Check]:
    """The same, and held-out answers are not first among the answers that never occur."""
    return [*judge_nll(ds), rank(ds)]


def judge_rank(ds: xr.Dataset) -> list[jd.Check]:
    """Among the answers of its kind the right one does better than chance, and is not known."""
    return [jd.gate(TRAINED, known(ds), at_most=LEARNED), rank(ds, low=BETTER)]


def read_rank(ds: xr.Dataset) -> list[jd.Check | jd.Reading]:
    """Where the right answer stands among those of its kind."""
    gate = jd.gate(TRAINED, known(ds), at_most=LEARNED)
    return [gate, jd.mean_reading(BEATS, ds.measured_wins.sel(read="asked"), over="seed")]


def stands_out(name: str) -> str:
    """What the check or reading of a group is called."""
    return f"z of {name}, mean"


def judge_asym(ds: xr.Dataset) -> list[jd.Check]:
    """Diagonals of learned directions stand out, on average over runs; right answers in the unseen one are not first."""
    z = ds.group_z.sel(read="asked")
    learned = [jd.mean_within(stands_out(name), z.sel(group=name), over="seed", low=STANDS_OUT) for name in GROUPS[:3]]
    return [*learned, rank(ds)]


def read_alone(ds: xr.Dataset) -> list[jd.Reading]:
    """The same after the entity alone."""
    z = ds.group_z.sel(read="alone")
    return [jd.mean_reading(stands_out(name), z.sel(group=name), over="seed") for name in GROUPS[:3]]


def asked_before(ds: xr.Dataset) -> xr.Dataset:
    """A control: what is asked is what training asks."""
    return jd.swap(measured_validation="same_kind", measured_wins=1.0)(ds)


def with_relation(ds: xr.Dataset) -> xr.Dataset:
    """A control: what is read after an entity alone is what is read after the entity and the relation."""
    return ds.assign(group_z=ds.group_z.where(ds.read != "alone", ds.group_z.sel(read="asked", drop=True)))


def guess(ds: xr.Dataset) -> float:
    """NLL of a uniform guess."""
    return float(ds.predicted_validation.max())


# Nothing is learned: all answers are equally likely, and none stands out.
UNTRAINED = {TRAINED: guess, HELD_OUT: 1.0, BEATS: 0.5}
LEVEL = dict.fromkeys(map(stands_out, GROUPS[:3]), 0.0)
FLAT = LEVEL | {BEATS: 0.5}
# Unseen answers are known as well as learned ones.
KNOWN_TOO = {HELD_OUT: lambda ds: float((ds.measured_train / ds.predicted_validation).mean()), BEATS: 1.0}


def plot_rank(ds: xr.Dataset, fig: Figure) -> None:
    """Rank and z-score of the right answer among those of its kind, one point per run, also with reassigned answers."""
    for ax, name, label in zip(fig.subplots(1, 2), ("wins", "excess"), ("share of its kind beaten", "z-score"), strict=True):
        rng = np.linspace(-0.2, 0.2, ds.sizes["seed"])
        for i, (prefix, color) in enumerate((("measured", "measured"), ("reassigned", "control"))):
            values = ds[f"{prefix}_{name}"].sel(read="asked").transpose("seed", ...).values.reshape(len(rng), -1)
            ax.plot(i + rng, values, "o", color=plotting.COLORS[color])
        ax.axhline(0.5 if name == "wins" else 0, linestyle="--", color=plotting.COLORS["theory"])
        ax.set_xticks((0, 1), ["right answer", "another one"])
        ax.set(ylabel=label)


def plot_nll(ds: xr.Dataset, fig: Figure) -> None:
    """NLL of training and held-out sequences along training, and of a uniform guess."""
    ax = fig.subplots()
    for name, label, color in (("train", "training sequences", "third"), ("validation", "held-out sequences", "measured")):
        plotting.band(ax, ds.epoch, ds[name].transpose(..., "epoch"), label, color)
    guess = float(ds.predicted_validation.max())
    ax.axhline(guess, linestyle="--", color=plotting.COLORS["theory"], label=r"uniform guess, $\ln V$")
    ax.set(yscale="log", xlabel="epoch", ylabel="NLL of the last entity")


def plot_asym(ds: xr.Dataset, fig: Figure) -> None:
    """Mean z-scores of the diagonals by group, one point per run; logits of one run."""
    left, right = fig.subplots(1, 2, width_ratios=(1.3, 1))
    rng = np.linspace(-0.2, 0.2, ds.sizes["seed"])
    for read, text, color in (("asked", "entity and relation", "measured"), ("alone", "entity alone", "control")):
        for i, name in enumerate(GROUPS):
            label = text if i == 0 else None
            values = ds.group_z.sel(read=read, group=name).transpose("seed", ...).values.reshape(len(rng), -1)
            left.plot(i + rng, values, "o", color=plotting.COLORS[color], label=label)
    for height in (STANDS_OUT, 0):
        left.axhline(height, linestyle="--", linewidth=1, color=plotting.COLORS["theory"])
    left.set(ylabel="z-score of the diagonal, mean")
    left.set_xticks(range(4), [name.replace(", ", ",\n") for name in GROUPS], fontsize=7.5)
    left.legend()
    one = plotting.first_run(ds).logits.sel(read="asked", map="B to A")
    right.imshow(one.transpose("given", "answer"), interpolation="nearest")
    for axis in (right.xaxis, right.yaxis):
        axis.set_major_locator(MaxNLocator(integer=True))
    right.set(xlabel="answer: A of pair", ylabel="given: B of pair", title="logits, one run")
    right.grid(False)


CHAINS = r"triples: seven tenths of them with $A \to B$, $B \to C$ and $A \leadsto C$, the others without the last"
GUESSED = {"unseen answers are a uniform guess": {HELD_OUT: 1.0}}
RIVALS: dict[str, Any] = {"nothing is learned": jd.off(UNTRAINED), "unseen answers are known, too": KNOWN_TOO} | GUESSED
UNRANKED: dict[str, Any] = {
    "nothing is learned": jd.off({TRAINED: guess, HELD_OUT: 1.0}),
    "unseen answers are known, too": {HELD_OUT: KNOWN_TOO[HELD_OUT]},
} | GUESSED
CHANCE, KNOWN = {BEATS: 0.5}, {BEATS: 1.0}
WORLDS: dict[str, Any] = {"tied symmetric read-out": {"readout": "alone"}, "what training asks": asked_before}

read_along = dataclasses.replace(
    trial.reversal,
    judge=judge_nll,
    rivals=UNRANKED,
    plot=plot_nll,
    caption="Negative log-probability of the last entity along training, for training and held-out sequences: median and central "
    "90% of the runs; dashed: a uniform guess.",
)
CAPTION = (
    "Left: mean z-score of the diagonal of the logits between entities, one point per run and group of pairs, for the two ways "
    "of "
    f"asking; dashed: 0 and the threshold {STANDS_OUT:g}. An unseen answer is compared with all answers here, also with those "
    f"that "
    "training asks for. Right: logits of all A (columns) after each B (rows) and the relation, one run."
)
RANK_CAPTION = (
    "Share of the other answers of its kind that the right answer to an unseen question beats (left) and its z-score among them "
    "(right), one point per run; next to it the same for answers reassigned to other questions; dashed: chance."
)


LEARNING_CLAIMS = (
    read_along.claim(
        id="rev.mlt_curse",
        talks=("training:rev-theorem-3",),
        title="A transformer gives reversed facts less probability than a guess",
        statement=rf"A {SMALL} learns them in the directions on which it "
        rf"is trained (NLL below .05 at the end). In the unseen direction of a pair it is worse than a uniform guess among V "
        rf"answers, NLL $\ge {WORSE:g}\ln V$, in every run: it has learned which answers occur. (Among those that never occur the "
        rf"right one still does better than "
        r"chance: `rev.mlt_rank`.)",
        source=f"{SOURCE}, section 5 and its figure of reversal",
        controls=WORLDS,
    ),
    read_along.claim(
        id="rev.mlt_cot",
        talks=("training:rev-cot",),
        title="A transformer that knows A to B and B to C cannot answer A to C",
        tested=tested(CHAINS),
        statement=rf"A {SMALL} that has learned $A \to B$ and $B \to C$ "
        r"(NLL below .05) answers $A \leadsto C$, a question unseen of this triple and trained for others, worse than by a "
        rf"uniform guess among V answers, NLL $\ge {WORSE:g}\ln V$, in "
        rf"every run; and among the C of such triples the right one beats less than {FIRST:.0%} of the others "
        "on average.",
        source=f"{SOURCE}, section 5 and its figures of chain of thought and of relevant tokens",
        judge=judge_chain,
        rivals=RIVALS,
        quick=read_along.quick.replace(task="cot"),
        paper=PAPER.replace(task="cot"),
        seeds=8,
        max_seeds=64,
        bounds=jd.tuned(on="96000000:96000008", confirmed_on="97000000:97000008"),
        controls={
            "what training asks": asked_before,
            "relevant tokens": jd.Control(
                {"task": "relevant", "vocabulary": 32, "epochs": 100},
                why="32 index tokens make 20 triples to learn from, against 14, and they are learned sooner",
            ),
        },
    ),
    read_along.claim(
        id="rev.mlt_asym",
        talks=("training:rev-asymmetric",),
        title="Logits of learned directions stand out, those of reversed ones do not",
        statement=f"In a {SMALL} the logit of the right answer after an entity and a relation lies, in each learned direction, "
        f"more than {STANDS_OUT:g} standard deviations above the other answers, on average over pairs and runs; in the unseen "
        f"direction of one-way pairs it beats, on average, less than {FIRST:.0%} of the answers that training never asks for.",
        judge=judge_asym,
        controls=WORLDS,
        rivals={"no answer stands out": jd.off(FLAT), "unseen answers are known, too": KNOWN},
        plot=plot_asym,
        caption=CAPTION,
    ),
    read_along.claim(
        id="rev.mlt_rank",
        talks=("training:rev-theorem-3",),
        title="The reversal curse is not complete: right answers rank above chance",
        statement=f"Asked in the unseen direction of a pair, a {SMALL} ranks the right answer "
        f"above {BETTER:.0%} to {FIRST:.0%} of the other answers that training never asks for, on average over pairs and runs, "
        f"where "
        "chance would be a half.",
        source=f"derived; {SOURCE}, section 5 reports the mean NLL, to which this is invisible",
        judge=judge_rank,
        controls=WORLDS,
        rivals={"the curse is complete": jd.off(CHANCE), "unseen answers are known": KNOWN},
        plot=plot_rank,
        caption=RANK_CAPTION,
    ),
    read_along.claim(
        id="rev.mlt_cot_rank",
        talks=("training:rev-cot",),
        title="How a transformer ranks the answer to a composition it has not seen",
        tested=tested(CHAINS),
        statement=r"Asked $A \leadsto C$ of a triple of which it knows $A \to B$ and $B \to C$, what share of the C of the other "
        r"such "
        "triples does a transformer with tied embeddings rank below the right one, on average? (Chance is a half.)",
        source=f"derived; {SOURCE}, section 5 reports the mean NLL",
        quick=read_along.quick.replace(task="cot"),
        paper=PAPER.replace(task="cot"),
        seeds=20,
        judge=read_rank,
        expected="measured",
        controls={"what training asks": asked_before},
        rivals={"the right answer ranks by chance": jd.off(CHANCE)},
        recorded={BEATS: (0.611, 0.68, 0.749)},
        plot=plot_rank,
        caption=RANK_CAPTION,
    ),
    read_along.claim(
        id="rev.mlt_asym_alone",
        title="How far right answers stand out after an entity without a relation",
        statement="How many standard deviations do right answers lie above the others among the logits after an entity alone, "
        "without the relation with which the network is trained, as in the published heat maps, in each learned direction?",
        judge=read_alone,
        expected="measured",
        controls={"asked with the relation": jd.Control(with_relation, breaks="without the relation")},
        rivals={"no answer stands out": jd.off(LEVEL)},
        recorded={
            "z of training, A to B, mean": (3.38, 3.71, 4.05),
            "z of training, B to A, mean": (3.5, 3.78, 4.07),
            "z of one-way, learned, mean": (5.77, 6.349, 6.92),
        },
        plot=plot_asym,
        caption=CAPTION,
    ),
)


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


def read_asymmetry(ds: xr.Dataset) -> list[jd.Check | jd.Reading]:
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
    *LEARNING_CLAIMS,
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
        judge=read_asymmetry,
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
