r"""Claims on greedy choices: exact for scores that add up, a guarantee for submodular values, less for evictions in one pass."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.h2o.trials.greedy import Sets, trial

__all__ = ["CLAIMS"]


def judge_kept(ds: xr.Dataset) -> list[jd.Check]:
    """What is kept after every token against the best choice among the tokens so far."""
    return [jd.at_most("score of what is kept: relative error", jd.relative_error(ds, "kept"), 1e-12)]


def judge_share(ds: xr.Dataset) -> list[jd.Check]:
    """The share of the optimum that additions reach, at least and on the hardest instance."""
    return [
        jd.at_least("share of the optimum less the guarantee", ds.measured_share - ds.predicted_share, -1e-12),
        jd.at_most("the same on the hardest instance, absolutely", abs(ds.measured_hardest - ds.predicted_hardest), 1e-6),
    ]


def plot_kept(ds: xr.Dataset, fig: Figure) -> None:
    """Scores of what is kept, against the best."""
    ax = fig.subplots()
    plotting.scatter(ax, ds.predicted_kept, ds.measured_kept, label="a step of a run", color="measured", log=False)
    ax.set(xlabel="best score of 4 tokens so far", ylabel="score of what greedy evictions keep")


def plot_share(ds: xr.Dataset, fig: Figure) -> None:
    """Shares of the optimum by kind of value, additions and evictions."""
    axes = fig.subplots(1, 2, sharey=True)
    kinds = np.atleast_1d(ds.objective.values)
    for ax, name, title in zip(axes, ("measured_share", "evicting"), ("additions", "evictions in one pass"), strict=True):
        for i, kind in enumerate(kinds):
            part = ds[name].sel(objective=kind) if "objective" in ds.dims else ds[name]
            ax.plot(np.full(part.size, i), part.values.ravel(), ".", color=plotting.COLORS["measured"])
        ax.axhline(float(ds.predicted_share.max()), color=plotting.COLORS["theory"], linestyle="--")
        ax.set_xticks(range(len(kinds)), list(map(str, kinds)))
        ax.set(title=title, ylabel="share of the optimum")


STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Sets, objective=["coverage", "logdet"]),
    seeds=64,
    paper_seeds=1024,
    evidence="algebra",
    bounds="derived",
    source="arXiv:2306.14048, definition 4.3 and theorem 4.4; G. Nemhauser, L. Wolsey, M. Fisher 1978 (additions)",
)

CLAIMS = (
    STUDY.claim(
        id="h2o.greedy_opt",
        statement="If every token has a fixed score and a set is worth the sum of its scores, then evicting the least of 5 "
        "in one pass over 12 tokens keeps, after every token, 4 with the largest sum of all 495 sets among the tokens so far. (By "
        "enumeration, on scores from random attention; no training. With scores that grow as attention accumulates it fails.)",
        quick=jd.grid(Sets, objective="additive"),
        judge=judge_kept,
        controls={"scores are the attention accumulated so far": {"growing": 1.0}},
        rivals={
            "the first tokens are kept": jd.swap(predicted_kept="first_ones"),
            "the last tokens are kept": jd.swap(predicted_kept="last_ones"),
        },
        plot=plot_kept,
        caption="Sum of scores of what greedy evictions keep against the largest sum, after every token; one point a step and run.",
    ),
    STUDY.claim(
        id="h2o.submodular",
        statement=r"Choosing 4 of 12 tokens by greedy additions reaches at least $1 - (1 - 1/4)^4 = 0.684$ of the best of all 495 "
        r"sets, for random coverage $\sum_u \max_{s \in S} A_{us}$, random $\log\det(I + K_S^\top K_S)$ and the hardest instance "
        "of coverage, where it reaches just that. (By enumeration; no training. A value that is submodular but falls as tokens "
        "are added breaks it.)",
        judge=judge_share,
        controls={"a value that is not monotone": {"objective": "penalty"}},
        rivals={
            "greedy additions are optimal": jd.swap(predicted_share=1.0, predicted_hardest=1.0),
            "no more than 1/2 is certain": jd.swap(predicted_share=0.5, predicted_hardest=0.5),
        },
        plot=plot_share,
        caption="Share of the optimum reached by greedy additions (left) and by evictions in one pass (right), by kind of value; "
        "dashed: the guarantee for additions. One point a run.",
    ),
)
