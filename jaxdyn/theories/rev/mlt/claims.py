"""The reversal curse and the chain of thought in GPT-2 style transformers: what is learned, and what stays at chance."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from matplotlib.ticker import MaxNLocator

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.rev.mlt.trial import GROUPS, PAPER, Deep, trial

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CLAIMS", "asked_before", "judge_asym", "judge_nll", "judge_rank", "plot_asym", "plot_nll"]

SOURCE = "arXiv:2405.04669"
LEARNED = 0.05  # NLL below which training sequences are known
STANDS_OUT = 9.0  # z-score, mean over runs, of a diagonal that is learned
EXCESS = 2.5  # z-score among the answers of its kind below which an unseen answer is far from known
CAP = 10.0  # larger z-scores of a run count as this; where all others are nearly equal, one run would decide the mean
CHANCE = 0.02  # what a rank and a z-score must exceed to be better than chance


def known(ds: xr.Dataset) -> xr.DataArray:
    """NLL of training sequences at the end, compared with that of certainty."""
    return abs(ds.measured_train - ds.predicted_train)


def unaware(ds: xr.Dataset, read: str) -> jd.Check:
    """The mean z-score of held-out answers among those of their kind is small compared with that of learned ones."""
    away = (ds.measured_excess - ds.predicted_excess).sel(read=read).clip(-CAP, CAP)
    return jd.mean_within("z of unseen answers among their kind, mean", away, over="seed", low=-EXCESS, high=EXCESS)


def judge_nll(ds: xr.Dataset) -> list[jd.Check]:
    """Training sequences are known; held-out ones no better than by a guess, nor nearly known among answers that never occur."""
    ratio = ds.measured_validation / ds.predicted_validation
    return [
        jd.at_most("NLL of training sequences at the end", known(ds), LEARNED),
        jd.at_least("NLL of held-out sequences at the end over that of a guess", ratio, 1.0),
        unaware(ds, "asked"),
    ]


def judge_rank(ds: xr.Dataset) -> list[jd.Check]:
    """Among the answers of its kind the right one does better than chance, and is far from known."""
    wins, excess = ((ds[f"measured_{n}"] - ds[f"predicted_{n}"]).sel(read="asked") for n in ("wins", "excess"))
    return [
        jd.gate("NLL of training sequences at the end", known(ds), at_most=LEARNED),
        jd.mean_within("share of its kind that the right answer beats minus 1/2, mean", wins, over="seed", low=CHANCE),
        jd.mean_within("z of the right answer among its kind, mean", excess.clip(-CAP, CAP), over="seed", low=CHANCE, high=EXCESS),
    ]


def judge_asym(read: str, mark: float) -> Callable[[xr.Dataset], list[jd.Check]]:
    """Judge of one way of reading: diagonals of learned directions stand out, those of unseen ones do not, on average over runs."""

    def judge(ds: xr.Dataset) -> list[jd.Check]:
        z = ds.group_z.sel(read=read)
        learned = [jd.mean_within(f"z of {name}, mean", z.sel(group=name), over="seed", low=mark) for name in GROUPS[:3]]
        return [*learned, unaware(ds, read)]

    return judge


def unlearned(ds: xr.Dataset) -> xr.Dataset:
    """A rival: nothing is learned, and no answer stands out."""
    stands_out = {"group_z": 0.0} if "group_z" in ds else {}
    return jd.swap(predicted_train="predicted_validation", **stands_out)(ds)


def asked_before(ds: xr.Dataset) -> xr.Dataset:
    """A control: what is asked is what training asks."""
    same = {"measured_validation": "same_kind", "measured_excess": "learned_excess", "measured_wins": 1.0}
    return jd.swap(**{name: by for name, by in same.items() if name in ds})(ds)


# Unseen answers are known as well as learned ones, on average over runs.
REVERSED_TOO = jd.swap(predicted_wins=1.0, predicted_excess=lambda ds: ds.learned_excess.mean("seed"))
# The curse is complete, and the right answer is like any other that is never asked for.
NO_TRACE = jd.swap(measured_wins=0.5, measured_excess=0.0)


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


SMALL = "(V = 80, width 64, two layers, rate .001, 400 epochs, no dropout)"

LOOKED = jd.looked(at="31000000:31000010", confirmed="34000000:34000020")
RIVALS = {"nothing is learned": unlearned, "unseen answers are known, too": REVERSED_TOO}
COMPLETE = {"the curse is complete": NO_TRACE, "unseen answers are known": REVERSED_TOO}
WORLDS = {"tied symmetric read-out": {"readout": "alone"}, "what training asks": asked_before}

reversal = jd.Study(
    trial=trial,
    quick=jd.grid(Deep),
    paper=PAPER,
    seeds=20,  # a run's z scatters by .9
    paper_seeds=10,
    judge=judge_nll,
    evidence="network",
    bounds=LOOKED,
    rivals=RIVALS,
    plot=plot_nll,
    caption="Negative log-probability of the last entity along training, for training and held-out sequences: median and central "
    "90% of the runs; dashed: a uniform guess.",
    source=f"{SOURCE}, section 5 and its heat maps of logits; thresholds ours",
)
CAPTION = (
    "Left: mean z-score of the diagonal of the logits between entities, one point per run and group of pairs, for the two ways of "
    f"asking; dashed: 0 and the threshold {STANDS_OUT:g}. An unseen answer is compared with all answers here, also with those that "
    "training asks for. Right: logits of all A (columns) after each B (rows) and the relation, one run."
)
RANK_CAPTION = (
    "Share of the other answers of its kind that the right answer to an unseen question beats (left) and its z-score among them "
    "(right), one point per run; next to it the same for answers reassigned to other questions; dashed: chance."
)

CLAIMS = (
    reversal.claim(
        id="rev.mlt_curse",
        statement=rf"A GPT-2 style transformer {SMALL} learns facts in the directions on which it is trained (NLL below .05 at the "
        r"end); of pairs trained in one direction it ends no better than a uniform guess in the other, NLL $\ge \ln V$, in every "
        r"run. That alone would be true of any network that has learned which words occur as answers; but among the words that "
        rf"never do, too, the right one stands out by less than {EXCESS:g} standard deviations on average.",
        source=f"{SOURCE}, section 5 and its figure of reversal",
        controls=WORLDS,
    ),
    reversal.claim(
        id="rev.mlt_cot",
        statement=rf"A GPT-2 style transformer {SMALL} that has learned $A \to B$ and $B \to C$ of a triple answers $A \leadsto C$ "
        r"no better than a uniform guess at the end, NLL $\ge \ln V$, in every run, though it is trained on that question for "
        r"other triples; among the C of such triples the right one stands out by less than "
        rf"{EXCESS:g} standard deviations on average.",
        source=f"{SOURCE}, section 5 and its figures of chain of thought and of relevant tokens",
        quick=reversal.quick.replace(task="cot"),
        paper=PAPER.replace(task="cot"),
        seeds=8,
        bounds=jd.looked(at="0:8", confirmed="31000000:31000008"),
        controls={
            "what training asks": asked_before,
            "relevant tokens": {"task": "relevant", "vocabulary": 32, "epochs": 100},  # 20 triples to learn from
        },
    ),
    reversal.claim(
        id="rev.mlt_asym",
        statement=rf"In a GPT-2 style transformer {SMALL}, among the logits of all answers after an entity and the relation that "
        rf"asks for them, the diagonal of each learned direction stands out by more than {STANDS_OUT:g} standard deviations, mean "
        r"over pairs and runs; in the unseen direction of one-way pairs the right answer stands out by less than "
        rf"{EXCESS:g}, mean over pairs and runs, among the answers that training never asks for.",
        judge=judge_asym("asked", STANDS_OUT),
        controls=WORLDS,
        plot=plot_asym,
        caption=CAPTION,
    ),
    reversal.claim(
        id="rev.mlt_rank",
        statement=rf"The reversal curse of a GPT-2 style transformer with tied embeddings {SMALL} is not complete: asked in the "
        r"unseen direction of one-way pairs, it ranks the right answer above the other answers that training never asks for more "
        rf"often than chance, and by a z-score between {CHANCE:g} and {EXCESS:g}, on average over pairs and runs.",
        source=f"derived; {SOURCE}, section 5 reports the mean NLL, to which this is invisible",
        judge=judge_rank,
        controls=WORLDS,
        rivals=COMPLETE,
        plot=plot_rank,
        caption=RANK_CAPTION,
    ),
    reversal.claim(
        id="rev.mlt_cot_rank",
        statement=r"Asked $A \leadsto C$ of a triple of which it knows $A \to B$ and $B \to C$, how does a GPT-2 style "
        rf"transformer with tied embeddings {SMALL} rank the right answer among the C of all such triples? Share of the others "
        r"that it beats minus 1/2, and z-score.",
        source=f"derived; {SOURCE}, section 5 reports the mean NLL",
        quick=reversal.quick.replace(task="cot"),
        paper=PAPER.replace(task="cot"),
        seeds=8,
        judge=judge_rank,
        expected="measured",
        controls={"what training asks": asked_before},
        rivals=COMPLETE,
        found={
            "share of its kind that the right answer beats minus 1/2, mean": (0.0, 0.33),
            "z of the right answer among its kind, mean": (0.1, 1.1),
        },
        plot=plot_rank,
        caption=RANK_CAPTION,
    ),
    reversal.claim(
        id="rev.mlt_asym_alone",
        statement=rf"In a GPT-2 style transformer {SMALL}, how far do the diagonals of learned and unseen directions stand out "
        r"among the logits after an entity alone, without a relation, as in the published heat maps? Measured, not upheld: the "
        r"network is not trained on such inputs.",
        judge=judge_asym("alone", 2.0),
        expected="measured",
        controls={"what training asks": asked_before},
        found={
            "z of training, A to B, mean": (3.0, 4.4),
            "z of training, B to A, mean": (3.0, 4.4),
            "z of one-way, learned, mean": (5.0, 7.5),
            "z of unseen answers among their kind, mean": (-0.4, 0.5),
        },
        plot=plot_asym,
        caption=CAPTION,
    ),
)
