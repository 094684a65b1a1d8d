"""The reversal curse and the chain of thought in GPT-2 style transformers: what is learned, and what stays at chance."""

from __future__ import annotations

import dataclasses

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.rev.mlt import study
from jaxdyn.theories.rev.mlt.study import LEARNED, SMALL, SOURCE, TRAINED, known, tested
from jaxdyn.theories.rev.mlt.trial import GROUPS, PAPER

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
RIVALS = {"nothing is learned": jd.off(UNTRAINED), "unseen answers are known, too": KNOWN_TOO} | GUESSED
UNRANKED = {
    "nothing is learned": jd.off({TRAINED: guess, HELD_OUT: 1.0}),
    "unseen answers are known, too": {HELD_OUT: KNOWN_TOO[HELD_OUT]},
} | GUESSED
CHANCE, KNOWN = {BEATS: 0.5}, {BEATS: 1.0}
WORLDS = {"tied symmetric read-out": {"readout": "alone"}, "what training asks": asked_before}

reversal = dataclasses.replace(
    study.reversal,
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

CLAIMS = (
    reversal.claim(
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
    reversal.claim(
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
        quick=reversal.quick.replace(task="cot"),
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
    reversal.claim(
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
    reversal.claim(
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
    reversal.claim(
        id="rev.mlt_cot_rank",
        talks=("training:rev-cot",),
        title="How a transformer ranks the answer to a composition it has not seen",
        tested=tested(CHAINS),
        statement=r"Asked $A \leadsto C$ of a triple of which it knows $A \to B$ and $B \to C$, what share of the C of the other "
        r"such "
        "triples does a transformer with tied embeddings rank below the right one, on average? (Chance is a half.)",
        source=f"derived; {SOURCE}, section 5 reports the mean NLL",
        quick=reversal.quick.replace(task="cot"),
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
    reversal.claim(
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
