"""Claim on training from a small start with separate keys and queries: the loss rests on plateaus, one eigenvalue after another."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.icl.trials.plateaus import Plateaus, trial

__all__ = ["CLAIMS", "judge"]

LEVEL, STRENGTH = 0.02, 0.05  # how near a level and the strengths of the eigenvalues on it must be
SHARE = 0.5


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Runs that rest at all levels, and those that have learned on each plateau what they should."""
    off = jd.relative_error(ds, "level")
    wrong = abs(ds.measured_strength - ds.predicted_strength)
    rested = (off.max("learned") <= LEVEL).where(off.notnull().all("learned"))
    learned = (wrong.max(["learned", "eigenvalue"]) <= STRENGTH).where(wrong.notnull().all(["learned", "eigenvalue"]))
    return [
        jd.share_within("runs that rest within 2% of every level", rested, over="seed", low=SHARE),
        jd.share_within("runs whose strengths on every plateau are within 0.05", learned, over="seed", low=SHARE),
    ]


def still(ds: xr.Dataset) -> xr.Dataset:
    """A rival: the loss rests where it starts, and nothing is learned."""
    first = ds.predicted_level.isel(learned=0, drop=True).broadcast_like(ds.predicted_level)
    return ds.assign(
        predicted_level=first.transpose(*ds.predicted_level.dims), predicted_strength=xr.zeros_like(ds.predicted_strength)
    )


def reversed_order(ds: xr.Dataset) -> xr.Dataset:
    """A rival: the smallest eigenvalue is learned first."""
    flipped = ds.predicted_strength.isel(eigenvalue=slice(None, None, -1))
    return ds.assign(predicted_strength=flipped.assign_coords(ds.predicted_strength.coords))


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Losses of all runs along time over the levels."""
    ax = fig.subplots()
    runs = ds.loss.isel(time=slice(1, None)).stack(every=ds.status.dims).transpose("time", "every")
    lines = ax.semilogx(ds.time.values[1:], runs, color=plotting.COLORS["measured"], linewidth=1)
    lines[0].set_label("flow")
    for level in ds.predicted_level.values.reshape(-1, ds.sizes["learned"])[0]:
        ax.axhline(level, linestyle="--", color=plotting.COLORS["theory"], linewidth=1)
    ax.plot([], [], "--", color=plotting.COLORS["theory"], label="levels")
    ax.set(xlabel="t", ylabel="loss")


STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Plateaus),
    seeds=32,
    paper_seeds=32,
    evidence="flow",
    source="arXiv:2501.16265, section 4; bounds ours",
    plot=plot,
    caption=r"Loss along the flow from small random starts, one line a run, and the levels $L_m$ of the theory (dashed).",
)

CLAIMS = (
    STUDY.claim(
        id="icl.plateaus",
        statement=r"In the gradient flow of linear attention with three heads of rank one and separate keys and queries, in all "
        r"entries, from random starts of standard deviation 0.05, on in-context regression (3 inputs, $\Lambda$ with eigenvalues "
        r"2, 1, 0.5 and random eigenvectors, 50 examples), the loss rests in more than half of the runs within 2% of every "
        r"$L_m = \frac12[\mathrm{tr}\Lambda - \sum_{i\le m}\lambda_i^2/\Gamma_i]$, m = 0, 1, 2, 3, before t = 794, and in more "
        "than half the m largest eigenvalues are learned there and the others are not, within 0.05.",
        bounds=jd.looked(at="0:32", confirmed="18000000:18000032"),
        judge=judge,
        controls={"merged keys and queries": {"keys": "merged"}, "equal eigenvalues": {"ratio": 1.0}},
        rivals={
            "nothing moves": still,
            "one drop to the least loss": jd.swap(predicted_level="merged_level"),
            "the smallest eigenvalue is learned first": reversed_order,
        },
    ),
)
