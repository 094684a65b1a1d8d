r"""Claim on SGD over shuffled epochs: its mean follows a modified gradient flow with a gradient penalty for each batch."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.stats import richardson
from jaxdyn.theories.cal.orders import distance, error_curve, halvings, limit_ratio, order_check
from jaxdyn.theories.cal.trials.shuffle import Shuffled, trial

__all__ = ["CLAIMS", "judge"]


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Order 2 in the step size, and a Richardson limit within 3 (standard error + error estimate)."""
    ds = halvings(ds)
    noise = distance(ds.standard_error)
    coarse, fine = noise.isel(eta=-2, drop=True), noise.isel(eta=-1, drop=True)
    limit_noise = np.hypot(richardson(0 * coarse, fine, order=2), richardson(coarse, 0 * fine, order=2))
    ratio = limit_ratio(ds.measured_mean - ds.predicted_mean, 2, limit_noise)
    return [
        order_check("fitted order in the step size", error_curve(ds, "mean"), 2, 0.15),
        jd.at_most("Richardson limit against the prediction, in standard errors + error estimates", ratio, 3.0),
    ]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Distance of the mean from the modified flow and from the plain one."""
    ax = fig.subplots()
    plotting.order(ax, ds.eta, error_curve(ds, "mean"), 2, "mean of SGD minus modified flow")
    plotting.order(ax, ds.eta, distance(ds.measured_mean - ds.plain_flow), 1, "minus plain flow", "control")
    plotting.order(ax, ds.eta, distance(ds.standard_error), None, "standard error of the mean", "third")
    ax.set_ylabel("distance over the trajectory")


study = jd.Study(
    evidence="network",
    bounds=jd.looked(at="0:8", confirmed="4000:4008"),
    trial=trial,
    quick=jd.grid(Shuffled, eta=[1 / 16, 1 / 32, 1 / 64, 1 / 128]),
    paper=jd.grid(Shuffled, eta=[1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256], shuffles=256),
    seeds=8,
    paper_seeds=64,
    source="arXiv:2101.12176, modified loss of SGD",
)

CLAIMS = (
    study.claim(
        id="cal.sgd_mean",
        statement=r"For regression with a two-layer linear network, the mean of SGD over shuffled epochs of $m$ batches follows "
        r"the gradient flow of $L + \tfrac{\eta}{4m}\sum_i\|\nabla L_i\|^2$ up to $O(\eta^2)$, $L_i$ being the loss of a batch.",
        judge=judge,
        controls={"fixed order of the batches": {"order": "cyclic"}},
        rivals={
            "flow of L alone": jd.swap(predicted_mean="plain_flow"),
            r"flow of $L + \tfrac\eta4\|\nabla L\|^2$": jd.swap(predicted_mean="full_batch_flow"),
        },
        plot=plot,
        caption="Distance over the trajectory between the mean of SGD over shuffled orders and two flows, and the standard error "
        "of that mean, against the step size: median and range over random problems; dashed: slopes 2 and 1.",
    ),
)
