"""What a trained searching layer does with a thought: it adds exactly the vertices that one more step reaches."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.emer.search import SearchSgd, sgd_trial

EVERY, SHARE = (
    "share of 128 new graphs with exactly the right vertices, every run",
    "share of new graphs with exactly the right vertices",
)


FEWER = "one of the thought's three vertices has an edge to the demonstrated one"


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """The next thoughts of all new graphs."""
    return [jd.at_least(EVERY, ds.measured_support, 1.0)]


def read_full(ds: xr.Dataset) -> list[jd.Reading]:
    """The same share where the full matrix was trained."""
    return [jd.mean_reading(SHARE, ds.measured_support, over="seed")]


def untrained(ds: xr.Dataset) -> float:
    """The share before training, the best run."""
    return float(ds.untrained.max())


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Share of new graphs that are expanded, against mu."""
    ax = fig.subplots()
    mu = ds.measured_mu.isel(record=-1)
    plotting.scatter(ax, mu, ds.measured_support, label="trained", color="measured", log=False)
    ax.set(xlabel=r"$\mu$ after training", ylabel="share of new graphs", ylim=(-0.05, 1.05))


STUDY = jd.Study(
    trial=sgd_trial,
    quick=jd.grid(SearchSgd, target="middle", train="diagonal", density=0.2),
    seeds=16,
    paper_seeds=64,
    evidence="network",
    bounds="derived: a graph is expanded correctly or not, and none may fail",
    source="arXiv:2509.23365, Theorem 2",
    plot=plot,
    caption="Share of new graphs and thoughts from which the next thought holds exactly the vertices within one more step, "
    "against "
    r"$\mu$ after training; one point per run.",
)
TESTED = (
    "{records} times {span} steps of SGD at rate {lr} with Coconut's loss (cross-entropy of one demonstrated next vertex) on "
    "ENTRIES of the searching layer's matrix, on one digraph of {vertices} vertices that are renamed at random in every example, "
    "with an edge density of {density}; orthonormal embeddings in {width} dimensions; then {fresh} new graphs of the same density, "
    "and thoughts over 1 to 7 vertices; {seeds} seeds."
)

CLAIMS = (
    STUDY.claim(
        id="emer.expansion",
        title="A diagonal trained on one graph expands thoughts in others by one step",
        tested=TESTED.replace("ENTRIES", "the diagonal"),
        statement="After SGD on the diagonal of the searching layer's matrix with Coconut's loss on one graph, in which two "
        "of a thought's three vertices have an edge to the demonstrated one and fewer to the mean vertex ($F(0) < d_p$ of "
        "`emer.bounded`), the next thought in every new graph holds exactly the vertices of the thought and those within one more "
        "step, with a weight above $10^{-4}$.",
        talks=("practical:sup-figure-search",),
        judge=judge,
        decides=dict.fromkeys(("exactly", "every new graph"), (EVERY, FEWER)),
        assumes=(jd.above("above_mean", 0.0),),
        controls={FEWER: {"gap": 2.0}},
        rivals={"nothing is learned": jd.off({EVERY: untrained})},
    ),
    STUDY.claim(
        id="emer.expansion_full",
        title="How often a layer trained in its full matrix expands a thought",
        tested=TESTED.replace("ENTRIES", "all entries"),
        statement="After training of all entries of the searching layer's matrix with Coconut's loss on one graph, in which two "
        "of a thought's three vertices have an edge to the demonstrated one, in which share of new graphs does the next thought "
        "hold exactly the vertices of the thought and those within one more step?",
        expected="measured",
        quick=jd.grid(SearchSgd, target="middle", train="full", density=0.2),
        judge=read_full,
        recorded={SHARE: (0.133, 0.2573, 0.381)},
        rivals={
            "nothing is learned": jd.off({SHARE: lambda ds: float(ds.untrained.mean())}),
            "every graph, as after training of the diagonal": {SHARE: 1.0},
        },
    ),
)
