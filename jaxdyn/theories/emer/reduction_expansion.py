"""What training the full matrix of the searching layer comes down to, and what the trained layer does.

Training the full matrix of the searching layer comes down to two numbers: its gradient, its flow, and SGD with random names.

What a trained searching layer does with a thought: it adds exactly the vertices that one more step reaches.
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting, stats
from jaxdyn.theories.emer import search
from jaxdyn.theories.emer.search import SearchFlow, SearchSgd, sgd_trial

NEAR = 5e-4  # of the largest mu and nu of SGD: 16 runs leave 1e-4
FLOW = jd.grid(SearchFlow, loss=["coconut", "bfs"], target=["middle", "top"], train="full", density=0.2)


def judge_gradient(ds: xr.Dataset) -> list[jd.Check]:
    """The gradient at a random mu and nu."""
    return [
        jd.at_most("mean diagonal and mean off it, against the formula", abs(ds.measured_rate - ds.predicted_rate), 1e-10),
        jd.at_most("root mean square of the rest", ds.rate_rest, 1e-12),
    ]


def judge_flow(ds: xr.Dataset) -> list[jd.Check]:
    """mu, nu and the rest of the matrix at all times."""
    error = [abs(ds[f"measured_{x}"] - ds[f"predicted_{x}"]) / (1 + abs(ds[f"predicted_{x}"])) for x in ("mu", "nu")]
    return [
        jd.at_most("mu against the equation, at all times, over 1 + |mu|", error[0], 1e-4),
        jd.at_most("nu against the equation, at all times, over 1 + |nu|", error[1], 1e-4),
        jd.at_most("root mean square of the rest of the matrix, at all times", ds.rest, 1e-4),
    ]


def extrapolated(ds: xr.Dataset, name: str) -> xr.DataArray:
    """A number at the end of SGD, extrapolated from the two smallest step sizes to none, minus the theory's.

    In units of its largest size along the run: nu changes sign in some of them, and may be near zero at the end.
    """
    jd.need(ds, lr=2)
    path = ds[f"measured_{name}"].sortby("lr")
    end = path.isel(record=-1)
    limit: xr.DataArray = stats.richardson(end.isel(lr=1), end.isel(lr=0))
    return (limit - ds[f"predicted_{name}"].isel(record=-1, lr=0)) / abs(path.isel(lr=0)).max("record")


def judge_sgd(ds: xr.Dataset) -> list[jd.Check]:
    """Mu and nu of SGD in the limit of small steps, and how the rest of the matrix falls with the step size."""
    order = stats.loglog_slope(ds.lr, ds.rest.isel(record=-1), "lr")
    runs = [d for d in ds.status.dims if d != "lr"]
    return [
        *(
            jd.mean_within(
                f"distance of {name} from the theory's, extrapolated to small steps, over its largest size",
                abs(extrapolated(ds, name)),
                over=runs,
                high=NEAR,
            )
            for name in ("mu", "nu")
        ),
        jd.mean_within("order of the rest of the matrix in the step size", order, over=runs, low=0.4, high=0.6),
    ]


STILL = jd.swap(predicted_mu=0.0, predicted_nu=0.0)
FROZEN = {"the matrix stays a multiple of the identity": jd.swap(predicted_nu=0.0)}
# nu moves at the rate 1/n, like mu, and not n - 1 = 6 times slower
ONE_RATE = jd.swap(predicted_rate=lambda ds: ds.predicted_rate * xr.DataArray([1.0, 6.0], dims="number"))


def plot_flow(ds: xr.Dataset, fig: Figure) -> None:
    """Mu and nu of all runs along time, of the flow and by the equations."""
    axes = fig.subplots(1, 2)
    time = ds.time.values[1:]
    for ax, name, label in zip(axes, ("mu", "nu"), (r"$\mu$", r"$\nu$"), strict=True):
        for side, color, style, title in (("measured", "measured", "-", "flow"), ("predicted", "theory", "--", "two numbers")):
            runs = ds[f"{side}_{name}"].isel(time=slice(1, None)).stack(every=ds.status.dims).transpose("time", "every")
            ax.semilogx(time, runs, style, color=plotting.COLORS[color], linewidth=1, alpha=0.5)
            ax.plot([], [], style, color=plotting.COLORS[color], label=title)
        ax.set(xlabel="t", ylabel=label)
        ax.set_yscale("symlog", linthresh=1)


def plot_sgd(ds: xr.Dataset, fig: Figure) -> None:
    """Mu and the rest of the matrix along SGD, for either step size."""
    left, right = fig.subplots(1, 2)
    rates = np.atleast_1d(ds.lr.values)
    for rate, color in zip(rates, ("measured", "third", "fourth"), strict=False):
        part = ds.sel(lr=rate) if "lr" in ds.dims else ds
        time = part.t.values.reshape(-1, ds.sizes["record"])[0]
        plotting.band(left, time, part.measured_mu.transpose(..., "record"), f"SGD, step {rate:g}", color)
        plotting.band(right, time, part.rest.transpose(..., "record"), f"SGD, step {rate:g}", color)
    plotting.band(left, time, part.predicted_mu.transpose(..., "record"), "two numbers", "theory")
    left.set(xlabel="t", ylabel=r"$\mu$")
    right.set(xlabel="t", ylabel="rest of the matrix, rms")


FLOWS = jd.Study(
    trial=search.flow_trial,
    quick=FLOW,
    seeds=4,
    paper_seeds=16,
    evidence="flow",
    form="joint",
    bounds="derived: float64 rounding of an average over all names",
    source="arXiv:2509.23365, Theorem 1 and its Lemma 1 (reduction); the equation of nu is derived",
    tested="Gradient flow to $t = 10^{12}$ from zero of all entries of the searching layer's matrix, for Coconut's loss "
    "(cross-entropy of one demonstrated next vertex) and Coconut-BFS's (any vertex in reach), averaged over names of the "
    "vertices; random digraphs of {vertices} vertices with an edge density of {density}, {inside} of the vertices in the thought, "
    "the demonstrated one with edges from all of these or from all but one; {seeds} graphs.",
    plot=plot_flow,
    caption=r"$\mu$ and $\nu$ of the full matrix along its gradient flow and by the two equations; one line per run.",
)
SGD = jd.Study(
    trial=search.sgd_trial,
    quick=jd.grid(SearchSgd, target="top", train="full", lr=[1.0, 0.5, 0.25], density=0.2),
    seeds=16,
    paper_seeds=64,
    evidence="network",
    bounds=jd.tuned(on="96000000:96000016", confirmed_on="97000000:97000016"),
    source="arXiv:2509.23365, Lemma 1 (reduction); sizes and step sizes ours",
    tested="SGD at rates {lr} on all entries of the searching layer's matrix with Coconut's loss, until $t$ = {records} times "
    "{span} (rate times steps): {vertices} vertices, {inside} of them in the thought, an edge density of {density}, embeddings "
    "in {width} dimensions, {batch} random namings a step; {seeds} seeds.",
    plot=plot_sgd,
    caption=r"$\mu$ and the rest of the matrix along SGD for both step sizes, and $\mu$ by the two equations: median and central "
    "90% of the runs.",
)
NAMED = {"every example has the same names": {"renaming": 0.0}}

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
    FLOWS.claim(
        id="emer.gradient",
        title="Averaged over names, the search layer's gradient has two numbers",
        tested="Automatic differentiation at random values of both numbers, for Coconut's loss (cross-entropy of one "
        "demonstrated next vertex) and Coconut-BFS's (any vertex in reach); random digraphs of {vertices} vertices with an "
        "edge density of {density}, {inside} of the vertices in the thought; {seeds} graphs.",
        statement="With linear attention and orthonormal embeddings, and averaged over names of the n vertices, minus the "
        r"gradient of the searching layer's loss in its full matrix at $\mu I + \nu(\mathbb{1}\mathbb{1}^\top - I)$, with two "
        r"numbers $\mu$ and $\nu$, is $\frac1n(E_G[a] - E_P[a])$ on the diagonal and $\frac{1}{n(n-1)}(E_G[b] - E_P[b])$ off it, "
        r"to $10^{-10}$. With $\lambda_s$ the thought's weight of vertex s, $a_v$ sums $\lambda_s$ and $b_v$ sums $\sum_u "
        r"\lambda_u - \lambda_s$ over the edges from any s to v; P is the layer's output, and G the demonstrated vertex, or P "
        "within reach for Coconut-BFS. (An identity; no training.)",
        evidence="algebra",
        judge=judge_gradient,
        controls={"every example has the same names": {"renaming": 0.0, "loss": "coconut"}},
        rivals={"the matrix does not move": jd.off(predicted_rate=0.0), "both numbers move at the rate of one entry": ONE_RATE},
    ),
    FLOWS.claim(
        id="emer.reduction",
        title="Training a whole matrix to search a graph comes down to two numbers",
        statement=r"Trained from zero, the searching layer's full matrix stays $\mu I + \nu(\mathbb{1}\mathbb{1}^\top - I)$ to "
        r"$10^{-4}$ (root mean square of the rest), and its two numbers follow the two equations $\dot\mu = "
        r"\frac1n(E_G[a] - E_P[a])$ and $\dot\nu = \frac{1}{n(n-1)}(E_G[b] - E_P[b])$ of `emer.gradient` (letters of "
        "that claim) within $10^{-4}$, relative to 1 plus their size, at all times up to $10^{12}$.",
        bounds=jd.tuned(on="0:4", confirmed_on="7000:7004"),
        judge=judge_flow,
        controls={
            "every example has the same names": {"renaming": 0.0, "loss": "coconut"},
            "a random start": {"spread": 0.3, "loss": "coconut"},
        },
        rivals={"nothing moves": jd.off(STILL), **FROZEN},
    ),
    SGD.claim(
        id="emer.reduction_sgd",
        title="SGD with random names follows the two numbers of the search layer",
        statement=r"The mean diagonal $\mu$ and the mean off the diagonal $\nu$ of the searching layer's matrix at t = 160 "
        "(rate times steps) of SGD with Coconut's loss, which demonstrates the vertex with the most edges from the thought, and 40 "
        rf"random namings a step, extrapolated to small steps, are those of the two equations of `emer.reduction` within "
        rf"{NEAR:.2%} of their largest size in a run, on average over runs; the rest of the matrix "
        "falls with the step size like its square root (order 0.4 to 0.6).",
        judge=judge_sgd,
        controls=NAMED,
        rivals={"nothing moves": jd.off(STILL), **FROZEN},
    ),
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
