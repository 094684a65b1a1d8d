"""What a trained searching layer does with a thought: it adds exactly the vertices that one more step reaches."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.emer.search_sgd import SearchSgd, trial

__all__ = ["CLAIMS", "judge", "judge_full"]


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """The next thoughts of all new graphs."""
    return [jd.at_least("share of 128 new graphs with exactly the right vertices, every run", ds.measured_support, 1.0)]


def judge_full(ds: xr.Dataset) -> list[jd.Check]:
    """The same share where the full matrix was trained."""
    return [jd.mean_within("share of new graphs with exactly the right vertices", ds.measured_support, over="seed", high=0.9)]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Share of new graphs that are expanded, against mu."""
    ax = fig.subplots()
    mu = ds.measured_mu.isel(record=-1)
    plotting.scatter(ax, mu, ds.measured_support, label="trained", color="measured", log=False)
    ax.set(xlabel=r"$\mu$ after training", ylabel="share of new graphs", ylim=(-0.05, 1.05))


STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(SearchSgd, target="middle", train="diagonal", density=0.2),
    seeds=16,
    paper_seeds=64,
    evidence="network",
    bounds="derived",
    source="arXiv:2509.23365, Theorem 2",
    plot=plot,
    caption="Share of new graphs and thoughts from which the next thought holds exactly the vertices within one more step, against "
    r"$\mu$ after training; one point per run.",
)
SETUP = (
    "SGD with Coconut's loss on one graph, its vertices renamed at random in every example (10 vertices, embeddings in 16 "
    "dimensions, 160 steps)"
)

CLAIMS = (
    STUDY.claim(
        id="emer.expansion",
        statement=rf"After {SETUP}, on the diagonal of the searching layer's matrix, the next thought from any thought over 1 to 7 "
        "vertices holds exactly the vertices within one more step, with positive weight (above $10^{-4}$): in each of 128 random "
        "graphs a run that were not trained on.",
        judge=judge,
        assumes=(jd.above("above_mean", 0.0),),
        controls={"training on a dense graph, where few edges lead to the demonstrated vertex": {"target": "low", "density": 0.8}},
        rivals={"nothing is learned": jd.swap(measured_support="untrained")},
    ),
    STUDY.claim(
        id="emer.expansion_full",
        statement=rf"After {SETUP}, on the full matrix, in which share of random graphs and thoughts over 1 to 7 vertices does the "
        "next thought hold exactly the vertices within one more step? In about a quarter, on average over 16 runs.",
        expected="measured",
        quick=jd.grid(SearchSgd, target="middle", train="full", density=0.2),
        judge=judge_full,
        rivals={"every graph, as the diagonal does": jd.swap(measured_support=1.0)},
        found={"share of new graphs with exactly the right vertices": (0.12, 0.4)},
    ),
)
