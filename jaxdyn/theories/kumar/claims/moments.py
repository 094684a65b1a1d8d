"""The claim on expected losses and kernels from two statistics of the weights: identities, nothing is trained."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.kumar.trials.moments import Moments, trial

__all__ = ["CLAIMS", "judge"]

ROUNDING = 1e-12  # sums of some hundred terms in float64


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Relative errors of loss and kernel."""
    jd.need(ds, seed=8)
    return [
        jd.at_most("relative error of the loss", jd.relative_error(ds, "loss"), ROUNDING),
        jd.at_most("relative error of the kernel", jd.relative_error(ds, "kernel", "point other"), ROUNDING),
    ]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Losses and kernels, both sides."""
    left, right = fig.subplots(1, 2)
    plotting.scatter(left, ds.predicted_loss, ds.measured_loss, "losses")
    plotting.scatter(right, ds.predicted_kernel, ds.measured_kernel, "entries of the kernel", log=False)
    left.set(xlabel="loss from the statistics of the weights", ylabel="expected squared error")
    right.set(xlabel="kernel from the statistics of the weights", ylabel="kernel of the network")


STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Moments),
    paper=jd.grid(Moments, dimension=7, nodes=100),
    seeds=8,
    paper_seeds=8,
    evidence="algebra",
    source="arXiv:2310.06110, polynomial regression",
    plot=plot,
    caption="Expected squared error and tangent kernel of random networks against the formulas; a point is a run, or an entry.",
)

CLAIMS = (
    STUDY.claim(
        id="kumar.moments",
        bounds="derived",
        statement=r"For a network $\frac{\alpha}{N}\sum_i \varphi(w_i\cdot x)$ with $\varphi(h) = h + \frac{\epsilon}{2}h^2$, the "
        r"target $\frac12(\beta\cdot x)^2$ and $x \sim N(0, I/D)$, the expected squared error is the sum of "
        r"$\frac14(|\beta|^2 - \alpha\epsilon\,\mathrm{tr}M)^2/D^2$, $\|\alpha\epsilon M - \beta\beta^\top\|_F^2/2D^2$ and "
        r"$\alpha^2|\bar w|^2/D$, and the tangent kernel over $\alpha^2/N$ is "
        r"$(x\cdot x')[1 + \epsilon\,\bar w\cdot(x + x') + \epsilon^2 x^\top M x']$, with the mean $\bar w$ and the second moments "
        "$M$ of the nodes' weights. These are identities, checked for random weights; nothing is trained.",
        judge=judge,
        controls={"uniform inputs": jd.Control({"law": "uniform"}, every_seed=True)},
        rivals={
            "no linear power": jd.swap(predicted_loss="without_linear"),
            "no error of alignment": jd.swap(predicted_loss="without_alignment"),
            "the kernel of linear nodes": jd.swap(predicted_kernel="linear_kernel"),
        },
    ),
)
