r"""Claims on exact solutions of linear networks; they are also the test of every ODE solver of the suite."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.cal.trials.linear import Deep, Symmetric, TwoLayer, deep_trial, symmetric_trial, two_layer_trial

__all__ = ["CLAIMS", "judge", "plot"]

SOLVERS = ["tsit5", "dopri8", "kvaerno5"]
PRECISION = 1e-7  # the solvers' relative tolerance is 1e-10 a step
PERTURBED = {"balance perturbed by 0.1": {"unknown": 0.1}}
CAPTION = (
    "Left: entries of the network's linear map along one run; points from the solver, lines the closed form. "
    "Right: relative error over the trajectory, one point per run, and the bound (dashed)."
)


def still(ds: xr.Dataset) -> xr.Dataset:
    """A rival: the map stays where it started."""
    return ds.assign(predicted_product=ds.predicted_product.isel(time=0).broadcast_like(ds.predicted_product))


STILL = {"nothing moves": still}


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Closed form against the solver: relative error of the network's map over the whole trajectory."""
    error = jd.relative_error(ds, "product", "time row col")
    return [jd.at_most("relative error over the trajectory", error, PRECISION)]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Entries of the map along one run, measured as points and predicted as lines; errors of all runs by solver."""
    left, right = fig.subplots(1, 2, width_ratios=(3, 2))
    first = plotting.first_run(ds)
    names = ("row", "col")
    predicted = first.predicted_product.stack(entry=names).transpose("entry", "time").values
    measured = first.measured_product.stack(entry=names).transpose("entry", "time").values
    left.plot(first.t.values, measured.T, "o", markersize=3, color=plotting.COLORS["measured"], alpha=0.6)
    plotting.lines(left, first.t.values, predicted, color=plotting.COLORS["theory"], alpha=0.9)
    left.set(xlabel="time", ylabel="entries of the map, one run")
    error = jd.relative_error(ds, "product", "time row col")
    axis = next((d for d in ("solver", *error.dims) if d in error.dims and error.sizes[d] > 1), "seed")
    labels = [str(v) for v in error[axis].values]
    for i in range(len(labels)):
        values = error.isel({axis: i}).values.ravel()
        right.plot([i] * values.size, values, "o", color=plotting.COLORS["measured"], alpha=0.4, markeredgewidth=0)
    right.axhline(PRECISION, color=plotting.COLORS["theory"], linestyle="--", label="bound")
    right.set(yscale="log", xticks=range(len(labels)), xticklabels=labels, xlabel=axis, ylabel="relative error")


two_layers = jd.Study(
    evidence="flow",
    bounds="derived",
    rivals=STILL,
    trial=two_layer_trial,
    quick=jd.grid(TwoLayer, solver=SOLVERS),
    paper=jd.grid(TwoLayer, solver=SOLVERS, inputs=6, hidden=5, outputs=4),
    seeds=8,
    paper_seeds=64,
    judge=judge,
    plot=plot,
    caption=CAPTION,
    source="arXiv:1312.6120, growth of one mode",
)
deep = jd.Study(
    evidence="flow",
    bounds="derived",
    rivals=STILL,
    trial=deep_trial,
    quick=jd.grid(Deep, depth=[1, 2, 3, 4]),
    paper=jd.grid(Deep, solver=SOLVERS, depth=[1, 2, 3, 4, 5], max_depth=5, width=4),
    seeds=8,
    paper_seeds=64,
    judge=judge,
    plot=plot,
    caption=CAPTION,
    source="arXiv:1312.6120, deeper networks; N counts weight matrices, the paper counts layers of units",
)
symmetric = jd.Study(
    evidence="flow",
    bounds="derived",
    rivals=STILL,
    trial=symmetric_trial,
    quick=jd.grid(Symmetric, solver="dopri8"),
    paper=jd.grid(Symmetric, solver=SOLVERS, init=[0.1, 0.3]),
    seeds=8,
    paper_seeds=64,
    judge=judge,
    plot=plot,
    caption=CAPTION,
    source="symmetric case of the Riccati equation of Fukumizu 1998",
)

CLAIMS = (
    two_layers.claim(
        id="cal.saxe2",
        statement=r"Under gradient flow a balanced, aligned two-layer linear network with whitened inputs learns each mode "
        r"independently: $\dot u = 2u(s-u)$, $u = s\,e^{2st}/(e^{2st} - 1 + s/u_0)$.",
        paper=two_layers.paper.replace(strength=[0.01, 0.05, 0.2]),
        controls=PERTURBED,
    ),
    two_layers.claim(
        id="cal.unbalanced",
        statement=r"In an aligned two-layer linear network under gradient flow, a mode with conserved imbalance $a^2 - b^2 = c$ "
        r"obeys $\dot u = \sqrt{c^2 + 4u^2}\,(s-u)$, from sigmoidal (c = 0) to exponential (c large).",
        source="from the equations of arXiv:1312.6120 for one mode; solution derived here",
        quick=two_layers.quick.replace(start="unbalanced", imbalance=[0.1, 2.0]),
        paper=two_layers.paper.replace(start="unbalanced", imbalance=[0.01, 0.1, 1.0, 5.0]),
        controls=PERTURBED,
    ),
    two_layers.claim(
        id="cal.riccati",
        statement=r"For a two-layer linear network under gradient flow from any balanced start "
        r"($W_1W_1^\top = W_2^\top W_2$), aligned or not, "
        r"$Q = [W_1^\top; W_2]$ obeys a Riccati equation with the solution "
        r"$QQ^\top = e^{Ft}Q_0[I + \tfrac12Q_0^\top(e^{2Ft} - I)F^{-1}Q_0]^{-1}Q_0^\top e^{Ft}$.",
        source="Braun et al., NeurIPS 2022 (any balanced start), after Fukumizu 1998",
        quick=two_layers.quick.replace(start="frames", strength=0.2),
        paper=two_layers.paper.replace(start="frames", strength=[0.01, 0.05, 0.5]),
        controls=PERTURBED,
    ),
    deep.claim(
        id="cal.saxeN",
        statement=r"Under gradient flow a mode of a balanced, aligned linear network of $N$ weight matrices obeys "
        r"$\dot u = N\,u^{2-2/N}(s-u)$.",
        controls=PERTURBED | {"N counted as layers of units": {"miscount": 1.0}},
    ),
    symmetric.claim(
        id="cal.symmf",
        statement=r"Gradient flow of $\tfrac14\|M - UU^\top\|_F^2$, $\dot U = (M - UU^\top)U$ with $M$ symmetric, has the solution "
        r"$UU^\top = e^{Mt}U_0[I + U_0^\top M^{-1}(e^{2Mt} - I)U_0]^{-1}U_0^\top e^{Mt}$.",
        controls={"factors apart by 0.1": {"split": 0.1}},
    ),
)
