"""Claims on the reversal curse and the chain of thought in GPT-2 style transformers: what is learned, what stays at chance."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from matplotlib.ticker import MaxNLocator

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.rev.trials.transformer import GROUPS, PAPER, Deep, trial

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CLAIMS", "judge_asym", "judge_nll", "learned_back", "plot_asym", "plot_nll"]

SOURCE = "arXiv:2405.04669"
LEARNED = 0.05  # NLL below which training sequences are known
# z-scores of a diagonal that is learned, and of one that is not; single runs reach 9.9 and more (30 seeds), so learned ones are
# judged in their mean, which was chosen after a look at seeds 0 to 9 and holds on others
STANDS_OUT, HIDDEN = 10.0, 3.0


def judge_nll(ds: xr.Dataset) -> list[jd.Check]:
    """At the end training sequences are known, and held-out ones no better than by a uniform guess, in every run."""
    ratio = ds.measured_validation / ds.predicted_validation
    return [
        jd.at_most("NLL of training sequences at the end", ds.measured_train - ds.predicted_train, LEARNED),
        jd.at_least("NLL of held-out sequences at the end over that of a guess", ratio, 1.0),
    ]


def judge_asym(read: str) -> Callable[[xr.Dataset], list[jd.Check]]:
    """Judge of one way of reading: diagonals of learned directions stand out, mean over runs; of unseen ones not, in every run."""

    def judge(ds: xr.Dataset) -> list[jd.Check]:
        z, unseen = ds.group_z.sel(read=read), (ds.measured_unseen - ds.predicted_unseen).sel(read=read)
        learned = [jd.at_least(f"z of {name}, mean over runs", z.sel(group=name).mean("seed"), STANDS_OUT) for name in GROUPS[:3]]
        return [*learned, jd.at_most(f"|z| of {GROUPS[3]}", abs(unseen), HIDDEN)]

    return judge


def learned_back(ds: xr.Dataset) -> xr.Dataset:
    """A breach: training pairs, whose directions are both learned, in the place of one-way pairs."""
    return ds.assign(measured_unseen=ds.group_z.sel(group=GROUPS[1], drop=True))


def plot_nll(ds: xr.Dataset, fig: Figure) -> None:
    """NLL of training and held-out sequences along training, beside a uniform guess."""
    ax = fig.subplots()
    for name, label, color in (("train", "training sequences", "third"), ("validation", "held-out sequences", "measured")):
        plotting.band(ax, ds.epoch, ds[name].transpose(..., "epoch"), label, color)
    guess = float(ds.predicted_validation.max())
    ax.axhline(guess, linestyle="--", color=plotting.COLORS["theory"], label=r"uniform guess, $\ln V$")
    ax.set(yscale="log", xlabel="epoch", ylabel="NLL of the last entity")


def plot_asym(ds: xr.Dataset, fig: Figure) -> None:
    """Mean z-scores of the diagonals by group, a point a run; logits of one run."""
    left, right = fig.subplots(1, 2, width_ratios=(1.3, 1))
    rng = np.linspace(-0.2, 0.2, ds.sizes["seed"])
    for read, text, color in (("asked", "entity and relation", "measured"), ("alone", "entity alone", "control")):
        for i, name in enumerate(GROUPS):
            label = text if i == 0 else None
            values = ds.group_z.sel(read=read, group=name).transpose("seed", ...).values.reshape(len(rng), -1)
            left.plot(i + rng, values, "o", color=plotting.COLORS[color], label=label)
    for height in (STANDS_OUT, HIDDEN, -HIDDEN):
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

reversal = jd.Study(
    trial=trial,
    quick=jd.grid(Deep),
    paper=PAPER,
    seeds=10,
    paper_seeds=10,
    judge=judge_nll,
    plot=plot_nll,
    caption="Negative log-probability of the last entity along training, for training and held-out sequences: median and central "
    "90% of the runs; dashed: a uniform guess.",
    source=f"{SOURCE}, section 5 and its heat maps of logits; thresholds ours",
)
CAPTION = (
    "Left: mean z-score of the diagonal of the logits between entities, one point per run and group of pairs, for the two ways of "
    f"asking; dashed: the thresholds {STANDS_OUT:g} and ±{HIDDEN:g}. Right: logits of all A (columns) after each B (rows) and the "
    "relation, one run."
)

CLAIMS = (
    reversal.claim(
        id="rev.mlt_curse",
        statement=rf"A GPT-2 style transformer {SMALL} learns facts in the directions on which it is trained (NLL below .05 at the "
        r"end), and for pairs trained in one direction it ends no better than a uniform guess in the other, NLL $\ge \ln V$, in "
        r"every run. The held-out answers never occur as answers in training.",
        source=f"{SOURCE}, section 5 and its figure of reversal",
        controls={
            "held-out direction in training": {"validation": "trained"},
            "training pairs": jd.swap(measured_validation="same_kind"),
        },
    ),
    reversal.claim(
        id="rev.mlt_cot",
        statement=rf"A GPT-2 style transformer {SMALL} that has learned $A \to B$ and $B \to C$ of a triple answers $A \leadsto C$ "
        r"no better than a uniform guess at the end, NLL $\ge \ln V$, in every run, though it is trained on that question for "
        r"other triples.",
        source=f"{SOURCE}, section 5 and its figures of chain of thought and of relevant tokens",
        quick=reversal.quick.replace(task="cot"),
        paper=PAPER.replace(task="cot"),
        controls={
            "indirect sequences of training triples": jd.swap(measured_validation="same_kind"),
            "relevant tokens": {"task": "relevant", "vocabulary": 32, "epochs": 100},  # 20 triples to learn from
        },
    ),
    reversal.claim(
        id="rev.mlt_asym",
        bounds="the marks, on the mean over runs, were chosen after a look at seeds 0:10; upheld on seeds not used before",
        statement=rf"In a GPT-2 style transformer {SMALL}, among the logits of all answers after an entity and the relation that "
        r"asks for them, the diagonal of each learned direction stands out by more than 10 standard deviations (mean over pairs "
        r"and runs), that of the unseen direction of one-way pairs by less than 3 in every run.",
        judge=judge_asym("asked"),
        controls={"training pairs": learned_back},
        plot=plot_asym,
        caption=CAPTION,
    ),
    reversal.claim(
        id="rev.mlt_asym_alone",
        statement=rf"In a GPT-2 style transformer {SMALL}, how far do the diagonals of learned and unseen directions stand out "
        r"among the logits after an entity alone, without a relation, as in the published heat maps? Measured, not upheld: the "
        r"network is not trained on such inputs.",
        judge=judge_asym("alone"),
        expected="measured",
        controls={"training pairs": learned_back},
        plot=plot_asym,
        caption=CAPTION,
    ),
)
