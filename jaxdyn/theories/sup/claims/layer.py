"""Claims on layer 1: its heads look at one place, in two forms of positions and precisions, and its outputs are those printed."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.sup.trials.layer import Copying, trial

__all__ = ["CLAIMS", "judge_layer", "judge_weight"]

PRECISIONS = ["float64", "float32"]


def judge_weight(ds: xr.Dataset) -> list[jd.Check]:
    """Weight that is not at the right place, of every head at every place, over what the theorem allows."""
    return [jd.at_most("weight elsewhere over that allowed", (ds.predicted_weight - ds.measured_weight) / ds.allowed, 1.0)]


def judge_layer(ds: xr.Dataset) -> list[jd.Check]:
    """Outputs against the formulas, and what is left of positions, for both precisions."""
    jd.need(ds, dtype=PRECISIONS)
    error = abs(ds.measured_output - ds.predicted_output)
    return [
        jd.at_most("outputs in float64: absolute error", error.sel(dtype="float64"), 1e-12),
        jd.at_most("outputs in float32: absolute error", error.sel(dtype="float32"), 1e-6),
    ]


def plot_weight(ds: xr.Dataset, fig: Figure) -> None:
    """Weight that is not where it should be, by head."""
    ax = fig.subplots()
    names = ("<e>, source", "<e>, target", "<R>, 2 back", "<R>, 1 back", "<A>, 1 back")
    missing = (ds.predicted_weight - ds.measured_weight).max(("graph", "place"))
    for i in range(len(names)):
        values = missing.isel(head=i).values.ravel()
        ax.plot(np.full(values.size, i), np.maximum(values, 1e-17), ".", color=plotting.COLORS["measured"])
    ax.axhline(float(ds.allowed.max()), linestyle="--", color=plotting.COLORS["theory"])
    ax.set_xticks(range(len(names)), names)
    ax.set(yscale="log", ylabel="weight elsewhere, largest of all places")


def plot_layer(ds: xr.Dataset, fig: Figure) -> None:
    """Outputs against the formulas."""
    ax = fig.subplots()
    run = plotting.first_run(ds)
    there = run.predicted_output.values.ravel(), run.measured_output.values.ravel()
    keep = (there[0] != 0) | (np.arange(there[0].size) % 50 == 0)
    ax.plot(there[0][keep], there[1][keep], ".", color=plotting.COLORS["measured"])
    ax.plot([0, 1], [0, 1], "--", color=plotting.COLORS["theory"])
    ax.set(xlabel="formula", ylabel="output of layer 1")


STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Copying, dtype=PRECISIONS),
    paper=jd.grid(Copying, dtype=PRECISIONS, names=40, edges=60, thoughts=8),
    seeds=4,
    paper_seeds=32,
    evidence="algebra",
    bounds="derived",
    source="arXiv:2505.12514, section 4.1 and appendix B (attention chooser, outputs of layer 1); numbers of the weights: derived",
)
SEQUENCES = "on prompts of 30 random edges among 20 vertices with 4 thoughts behind, without training"

CLAIMS = (
    STUDY.claim(
        id="sup.chooser",
        statement=r"Each of the five heads of layer 1 of the construction puts at least $1 - \epsilon_1 / 5$, $\epsilon_1 = "
        r"1/(2\sqrt n)$, of its attention on one place: the place one or two back where its own token stands, the first place "
        f"everywhere else. (Explicit weights with sinusoids as positions, {SEQUENCES}, in float64 and in float32.)",
        judge=judge_weight,
        controls={
            "no positions": {"position": 0.0},
            r"$\eta$ a fifth": {"eta": 0.2},
            r"$\xi = 0$: no place for other tokens": {"xi": 0.0},
        },
        rivals={"attention is uniform": jd.swap(measured_weight="uniform")},
        plot=plot_weight,
        caption="Weight of each head of layer 1 on all places but the right one, the largest of all places and graphs of a run; "
        "dashed: what the construction allows. A point a run.",
    ),
    STUDY.claim(
        id="sup.rotary",
        statement="With rotary positions in place of sinusoids the five heads of layer 1 look at their places as well, in float64 "
        r"and in float32, if the base of the rotation is about twice the length: $M = 200$ for 101 places. (Explicit weights, "
        rf"{SEQUENCES}. With $M = 10^4$ they miss them in float32.)",
        quick=jd.grid(Copying, dtype=PRECISIONS, positions="rotary"),
        paper=jd.grid(Copying, dtype=PRECISIONS, positions="rotary", names=40, edges=60, thoughts=8, base=400.0),
        source="arXiv:2505.12514, appendix B (rotary form); base and precision: derived",
        judge=judge_weight,
        controls={"$M = 10^4$": {"base": 1e4}, r"$\xi = 0$: no place for other tokens": {"xi": 0.0}},
        rivals={"attention is uniform": jd.swap(measured_weight="uniform")},
        plot=plot_weight,
        caption="Weight of each head of layer 1 on all places but the right one, rotary positions, the largest of all places and "
        "graphs of a run; dashed: what the construction allows. A point a run.",
    ),
    STUDY.claim(
        id="sup.layer1",
        statement=r"Layer 1 of the construction turns the end of every edge into $(u_e, u_s, u_t)/\sqrt 3$, $\langle R\rangle$ "
        rf"into $(u_R, 0, u_{{c_1}} + u_{{c_2}})/\sqrt 3$, $\langle A\rangle$ into $(u_A, \sum_{{V_C}} u_v, 0)/\sqrt{{|V_C| + "
        f"1}}$, and leaves all other tokens and thoughts as they are: to $10^{{-12}}$ in float64 and $10^{{-6}}$ in float32. "
        f"(Explicit weights, {SEQUENCES}.)",
        judge=judge_layer,
        controls={r"$\xi = 0$: no place for other tokens": {"xi": 0.0}, "no positions": {"position": 0.0}},
        rivals={"nothing is copied": jd.swap(predicted_output="alone")},
        plot=plot_layer,
        caption="Entries of the outputs of layer 1, decoded block by block, against the formulas, one run.",
    ),
)
