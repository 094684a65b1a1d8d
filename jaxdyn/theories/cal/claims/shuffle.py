r"""Claim on SGD over shuffled epochs: its mean follows a modified gradient flow with a gradient penalty for each batch."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.stats import richardson
from jaxdyn.theories.cal.orders import VECTOR, distance, error_curve, halvings, order_check
from jaxdyn.theories.cal.trials.shuffle import Shuffled, trial

__all__ = ["CLAIMS", "judge"]

COEFFICIENT = 0.005  # how far the coefficient of the penalty may be off


def judge(ds: xr.Dataset) -> list[jd.Check]:
    r"""Order 2 in the step size, and the coefficient of the predicted penalty.

    The part of the measured drift away from the flow of L that lies along the predicted one is :math:`1 + O(\eta)` times as long.
    """
    ds = halvings(ds)
    predicted, measured = ds.predicted_mean - ds.plain_flow, ds.measured_mean - ds.plain_flow
    product, square = ((predicted * other).sum(VECTOR[:2], skipna=False) for other in (measured, predicted))
    along = xr.where(square == 0, 0.0, product / square)  # of a theory without a drift nothing is seen
    limit = richardson(along.isel(eta=-2, drop=True), along.isel(eta=-1, drop=True), order=1)
    words = "drift from the flow of L along the predicted one / predicted, limit of small steps"
    return [
        order_check("fitted order in the step size", error_curve(ds, "mean"), 2, 0.15),
        jd.mean_within(words, limit, over="seed", low=1 - COEFFICIENT, high=1 + COEFFICIENT),
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
    bounds=jd.looked(at="0:8", confirmed="43000000:43000008"),
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
        r"the gradient flow of $L + \tfrac{\eta}{4m}\sum_i\|\nabla L_i\|^2$ up to $O(\eta^2)$, $L_i$ being the loss of a batch. "
        r"In the limit of small steps the drift away from the flow of $L$, projected on the predicted one, has that one's length "
        r"to 0.5% (mean over problems).",
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
