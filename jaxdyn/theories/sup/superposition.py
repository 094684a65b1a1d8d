"""What thoughts hold and answer: sets of breadth-first search, margins, and how many thoughts an answer takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure, SubFigure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.sup.graph_search import Search, trial
from jaxdyn.theories.sup.supports import STILL, members, wrong

EXACT = 1e-12  # some thousand sums in float64


def judge_thought(ds: xr.Dataset) -> list[jd.Check]:
    """Sets, and weights, of all thoughts."""
    return [
        jd.at_most("tokens in which a thought's set is wrong", wrong(ds), 0),
        jd.at_most("weights in thoughts: absolute error", abs(ds.measured_thought - ds.predicted_thought), EXACT),
    ]


def judge_answer(ds: xr.Dataset) -> list[jd.Check]:
    """Margins of the right candidate over all other tokens after the last thought."""
    end = ds.isel(thoughts=-1)
    return [jd.at_most("margin of the right answer: absolute error", abs(end.measured_margin - end.predicted_margin), EXACT)]


def judge_steps(ds: xr.Dataset) -> list[jd.Check]:
    """Thoughts that an answer takes, and margins after fewer."""
    early = ds.measured_margin.where(ds.thoughts < ds.predicted_steps)
    return [
        jd.gate("largest distance of a target", ds.predicted_steps.max(), at_least=8),
        jd.at_most("thoughts needed minus the distance, absolutely", abs(ds.measured_steps - ds.predicted_steps), 0),
        jd.at_most("margin after fewer thoughts, absolutely", abs(early), EXACT),
    ]


def frontier(ds: xr.Dataset) -> xr.DataArray:
    """Thoughts that hold only what was reached last."""
    before = ds.predicted_thought.shift(thought=1, fill_value=0.0) > 0
    fresh = (ds.predicted_thought > 0) & ~before
    return fresh / np.sqrt(np.maximum(fresh.sum("token"), 1))


def plot_thought(ds: xr.Dataset, fig: Figure | SubFigure) -> None:
    """Sizes of sets by thought, and of those of discrete thoughts."""
    ax = fig.subplots()
    for name, label, color in (("measured_thought", "thoughts", "measured"), ("discrete_thought", "discrete thoughts", "control")):
        size = members(ds[name]).sum("token").transpose(..., "thought")
        plotting.band(ax, ds.thought, size, label, color)
    expected = members(ds.predicted_thought).sum("token").transpose(..., "thought")
    plotting.band(ax, ds.thought, expected, "breadth-first search", "theory", linestyle="--")
    ax.set(xlabel="thought", ylabel="vertices in a thought")
    ax.legend()


def plot_answer(ds: xr.Dataset, fig: Figure | SubFigure) -> None:
    """Margins after the last thought against the formula."""
    ax = fig.subplots()
    end = ds.isel(thoughts=-1)
    plotting.scatter(ax, end.predicted_margin, end.measured_margin, label="graphs", color="measured", log=False)
    ax.set(xlabel=r"$1 / \sqrt{|V_C| + 5}$", ylabel="margin of the right answer")


def plot_steps(ds: xr.Dataset, fig: Figure | SubFigure) -> None:
    """Thoughts needed over the distance, with thoughts that are fed back whole and one vertex of them."""
    ax = fig.subplots()
    away = ds.predicted_steps.values.ravel()
    for name, label, color in (("measured_steps", "thoughts", "measured"), ("discrete_steps", "discrete thoughts", "control")):
        needed = ds[name].values.ravel()
        here = [needed[away == d] for d in range(1, int(away.max()) + 1)]
        ax.plot(
            range(1, len(here) + 1), [h.mean() if h.size else np.nan for h in here], "o-", color=plotting.COLORS[color], label=label
        )
    ax.plot([1, away.max()], [1, away.max()], "--", color=plotting.COLORS["theory"], label="distance")
    ax.set(xlabel="distance of the target", ylabel="thoughts needed, mean")
    ax.legend()


KINDS = ["random", "tree", "cycle", "dense"]
KINDS_SAID = "independent edges, trees with forward edges, two cycles, nearly complete digraphs"
ASSUMED: dict[str, Any] = {
    "no edge leaves the root": {"kind": "no_exit"},
    "random token vectors": jd.Control({"embedding": "random"}, breaks="orthonormal"),
}
STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Search, kind=KINDS, nodes=[8.0, 24.0, 48.0]),
    paper=jd.grid(Search, kind=KINDS, nodes=[8.0, 24.0, 48.0, 64.0], names=64, edges=96, thoughts=16),
    seeds=3,
    paper_seeds=8,
    evidence="algebra",
    bounds="derived: float64 rounding of some thousand sums; thoughts are counted",
    form="printed",
    source="arXiv:2505.12514, Lemma 2 and Theorem 1; threshold of layer 2: corrected",
    tested="Explicit weights in float64, no training: {graphs} random digraphs of {nodes} vertices and {edges} edges, some "
    "repeated, out of {names} names, {width} numbers for positions, of "
    f"each kind ({KINDS_SAID}) for each of {{seeds}} sets of random orthonormal token vectors; {{thoughts}} thoughts. The "
    "target is within reach and the root has an edge.",
)

CLAIMS = (
    STUDY.claim(
        id="sup.superposition",
        title="One continuous thought holds all vertices within reach",
        statement="In the construction, a two-layer transformer with explicit weights and orthonormal token vectors that is fed "
        r"its own last outputs, thought $c$ is $|V_c|^{-1/2} \sum_{v \in V_c} u_v$ to $10^{-12}$, where $V_c$ are the vertices "
        r"within $c$ steps of the root and $u_v$ is the vector of vertex $v$, if an edge leaves the root and the threshold of "
        r"layer 2 is $1/(4\max(m, n))$ for $m$ edges and $n$ possible vertices.",
        talks=("practical:sup-theorem", "practical:sup-sauce", "practical:sup-figure-search", "practical:sup-equation-thought"),
        judge=judge_thought,
        decides={"all vertices": ("tokens in which a thought's set is wrong", "one vertex of a thought is fed back")},
        controls={
            **ASSUMED,
            "one vertex of a thought is fed back": jd.swap(measured_thought="discrete_thought"),
        },
        rivals=STILL | {"only the newest vertices": jd.swap(predicted_thought=frontier)},
        plot=plot_thought,
        caption="Vertices in a thought: median and central 90% of all graphs; grey: one vertex of each thought is fed back.",
    ),
    STUDY.claim(
        id="sup.steps",
        title="As many continuous thoughts are needed as the target is steps away",
        statement=r"In the construction, with orthonormal token vectors and layer 2's threshold $1/(4\max(m, n))$ for $m$ edges "
        r"and $n$ possible vertices, the right answer leads after as many thoughts as the target is steps away from the root (1 to "
        "8), and not before: with fewer thoughts it ties with another token to $10^{-12}$.",
        talks=("practical:sup-theorem-steps",),
        judge=judge_steps,
        controls={
            "random token vectors": ASSUMED["random token vectors"],
            "one vertex of a thought is fed back": jd.swap(measured_steps="discrete_steps", measured_margin="discrete_margin"),
        },
        rivals={
            "no thought is needed": jd.swap(predicted_steps=0),
            "one thought for each vertex that is reached no later": jd.swap(predicted_steps="visited"),
        },
        plot=plot_steps,
        caption="Mean number of thoughts until the right answer leads, by distance of the target (9 if it never does); dashed: "
        "the distance; grey: one vertex of each thought is fed back.",
    ),
    STUDY.claim(
        id="sup.answer",
        title="The right candidate wins by a margin known in closed form",
        statement="If the target is 1 to $C = 8$ steps away and the token vectors are orthonormal, then after $C$ thoughts the "
        r"construction's logit of the right candidate exceeds those of all other tokens by $1/\sqrt{|V_C| + 5}$, to $10^{-12}$, "
        r"where $V_C$ are the vertices within $C$ steps of the root, with layer 2's threshold $1/(4\max(m, n))$ for $m$ edges and "
        "$n$ possible vertices.",
        talks=("practical:sup-theorem",),
        quick=jd.grid(Search, kind=["random", "tree"], nodes=24.0),
        paper=jd.grid(Search, kind=KINDS, nodes=24.0, names=64, edges=96, thoughts=16),
        seeds=1,
        tested="Explicit weights in float64, no training: {graphs} random digraphs and {graphs} trees with forward edges, of "
        "{nodes} vertices and {edges} edges, with one set of random orthonormal token vectors.",
        judge=judge_answer,
        controls={
            "random token vectors": ASSUMED["random token vectors"],
            "no positions": jd.Control({"position": 0.0}, breaks="the right candidate"),
            r"$\eta$ a twentieth": jd.Control({"eta": 0.05}, breaks="to $10^{-12}$"),
            r"$\xi = 0$": jd.Control({"xi": 0.0}, breaks="to $10^{-12}$"),
            r"$\tau$ a fiftieth": jd.Control({"tau": 0.02}, breaks="to $10^{-12}$"),
            r"threshold $\epsilon_2 = 1/2$": jd.Control({"threshold": "half"}, breaks="to $10^{-12}$"),
            "one vertex of a thought is fed back": jd.swap(measured_margin="discrete_margin"),
        },
        rivals={
            "both candidates tie": jd.swap(predicted_margin=0.0),
            r"$1/\sqrt{|V_C| + 1}$": jd.swap(predicted_margin=lambda ds: (ds.predicted_margin**-2 - 4) ** -0.5),
        },
        plot=plot_answer,
        caption="Margin of the right candidate over all other tokens after 8 thoughts, against the formula. One point per graph.",
    ),
)
