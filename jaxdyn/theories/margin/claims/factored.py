"""The claim that keys and queries trained apart turn to the separating matrix of least nuclear norm."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.margin.trials.factored import Factored, trial

__all__ = ["CLAIMS", "judge"]

ENTRIES = ["row", "column"]
SHARE = 0.6


def cosine(ds: xr.Dataset) -> xr.DataArray:
    """Cosine with the matrix that the theory predicts, by record."""
    return (ds.measured_direction * ds.predicted_direction).sum(ENTRIES, skipna=False)


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """The direction at the end, which of two machines it is nearer to, and whether it still turns to the predicted one."""
    value = cosine(ds)
    end = value.isel(record=-1)
    nearer = end > ds.to_frobenius.isel(record=-1)
    turn = np.log((1 - end) / (1 - value.isel(record=0)))
    return [
        jd.mean_within("cosine with the matrix of least nuclear norm, mean over runs", end, over="seed", low=0.95),
        jd.share_within(
            "runs nearer to it than to the one of least Frobenius norm", nearer.where(end.notnull()), over="seed", low=SHARE
        ),
        jd.mean_within("ln of 1 - cosine, end over step 1280, mean over runs", turn, over="seed", high=-np.log(2)),
    ]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """1 - cosine with both machines against the norm; singular values beside those of the solution."""
    left, right = fig.subplots(1, 2)
    runs = ds.stack(every=ds.status.dims)
    x = runs["norm"].transpose("record", "every").values
    for values, color, label in (
        (cosine(runs), "measured", "least nuclear norm"),
        (runs.to_frobenius, "third", "least Frobenius norm"),
    ):
        lines = left.loglog(x, 1 - values.transpose("record", "every").values, color=plotting.COLORS[color], linewidth=1, alpha=0.6)
        lines[0].set_label(label)
    left.set(xlabel="nuclear norm of W", ylabel="1 - cosine with the matrix of")
    plotting.scatter(right, runs.least, runs.singular, label="runs, all ranks", color="measured", log=False)
    right.set(xlabel="share of a singular value, solution", ylabel="share, network")


CLAIMS = (
    jd.Claim(
        id="margin.factored",
        statement="Normalised gradient descent (10 240 steps of 0.1 from Gaussian factors of size 0.1) on keys and queries apart, "
        "$W = KQ^\\top$ with factors of 6 by 6, in one softmax attention head with the sequences and scores of `margin.matrix`: "
        "where W has the largest weight on every optimal token at the end, its direction turns to that of $\\arg\\min \\|W\\|_*$ "
        "subject to $(x_{i,\\mathrm{opt}} - x_{it})^\\top W z_i \\ge 1$. The cosine is above 0.95 at the end on average over runs, "
        "and in more than 60% of the runs larger than that with the solution of least Frobenius norm; 1 - cosine at least halves "
        "from step 1280 to the end (geometric mean over runs).",
        trial=trial,
        quick=jd.grid(Factored, spread=[0.0, 0.15]),
        seeds=32,
        paper_seeds=64,
        evidence="network",
        source="arXiv:2308.16898, equation (KQ-SVM) and Theorem 2 (of the regularisation path; gradient descent in its "
        "experiments); sizes and bounds ours",
        judge=judge,
        plot=plot,
        assumes=(jd.below("gap", 1e-4), jd.below("optimality", 1e-6), jd.above("selected", 0.99)),
        bounds=jd.looked(at="0:64", confirmed="18200:18232"),
        controls={
            "another token is optimal in one sequence": {"reversed": 1.0},
            "an optimal token is the mean of the others": {"blended": 1.0},
            "factors that start large": {"size": 30.0},
        },
        rivals={
            "the solution of least Frobenius norm": jd.swap(predicted_direction="frobenius"),
            "the direction of the first step": jd.swap(predicted_direction="first"),
            "the direction stays what it is at the first record": lambda ds: ds.assign(
                measured_direction=ds.measured_direction.isel(record=0).broadcast_like(ds.measured_direction)
            ),
        },
        caption="Left: 1 - cosine between W and two solutions against the nuclear norm of W, one line a run. Right: singular "
        "values of W at the end over their sum, against those of the solution of least nuclear norm.",
    ),
)
