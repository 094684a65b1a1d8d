"""The claim on homogeneous networks and StableMax: identities, nothing is trained."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.prieto.trials.identities import Identities, trial

__all__ = ["CLAIMS", "judge"]

ROUNDING = 1e-12  # sums of some hundred terms in float64


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Every layer's inner product with its gradient, and the loss at every scale of the weights."""
    jd.need(ds, seed=8)
    return [
        jd.at_most("relative error of the inner products", jd.relative_error(ds, "along"), ROUNDING),
        jd.at_most("relative error of losses at other scales", jd.relative_error(ds, "scaled"), ROUNDING),
    ]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Inner products and losses, both sides."""
    left, right = fig.subplots(1, 2)
    plotting.scatter(left, ds.predicted_along, ds.measured_along, "layers", log=False)
    plotting.scatter(right, ds.predicted_scaled, ds.measured_scaled, "losses")
    left.set(xlabel="from the logits alone", ylabel="matrix times gradient")
    right.set(xlabel=r"loss of the logits $c^3z$", ylabel=r"loss of weights times $c$")


STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Identities),
    paper=jd.grid(Identities, modulus=23, nodes=64),
    seeds=8,
    paper_seeds=8,
    evidence="algebra",
    source="arXiv:2501.04697, sections 3 and 4",
    plot=plot,
    caption="Left: inner product of every matrix with its gradient against the mean over samples of logits times their gradients. "
    "Right: loss of scaled weights against that of scaled logits. Softmax and StableMax.",
)

CLAIMS = (
    STUDY.claim(
        id="prieto.scale",
        bounds="derived",
        statement="For random networks of three matrices with ReLU and without biases, on cross-entropy after the softmax and "
        "after StableMax, the inner product of a matrix with the loss's gradient by it is the mean over samples of "
        r"$\sum_c z_c\,\partial\ell/\partial z_c$, for each of the three, with StableMax from its definition by $s(z) = z + 1$ "
        r"above zero and $1/(1 - z)$ below; and weights that are $c$ times as large have the loss of the logits $c^3 z$. These are "
        "identities; nothing is trained.",
        judge=judge,
        controls={"biases": jd.Control({"shift": 0.1}, every_seed=True)},
        rivals={
            "softmax and StableMax exchanged": jd.swap(predicted_along="exchanged", predicted_scaled="exchanged_scaled"),
            "logits grow like the square": jd.swap(predicted_scaled="squares"),
        },
    ),
)
