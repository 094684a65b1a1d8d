"""The claim on how many chunks a codebook can restore."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.assort.trials.capacity import Capacity, trial

__all__ = ["CLAIMS", "judge_capacity"]

CODES = 16
DISTINCT = [4.0, 15.0, 16.0, 17.0, 24.0, 36.0]


def judge_capacity(ds: xr.Dataset) -> list[jd.Check]:
    """Restored shares, where they are one, and the best of all sets of chunks."""
    jd.need(ds, distinct=(16.0, 17.0))
    few, many = ds.where(ds.distinct < CODES + 0.5, drop=True), ds.where(ds.distinct > CODES + 0.5, drop=True)
    return [
        jd.at_most("restored share: absolute error", abs(ds.measured_restored - ds.predicted_restored), 1e-12),
        jd.at_least("restored share, up to as many chunks as codes", few.measured_restored, 1 - 1e-12),
        jd.at_most("restored share, more chunks than codes", many.measured_restored, 0.995),
        jd.at_most("largest share of all sets of chunks: absolute error", abs(ds.measured_best - ds.predicted_best), 1e-12),
    ]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Restored share over the number of different chunks."""
    ax = fig.subplots()
    ax.plot(ds.distinct, ds.predicted_restored.mean("seed"), "--", color=plotting.COLORS["theory"], label="largest frequencies")
    ax.plot(ds.distinct, ds.measured_restored.mean("seed"), "o", color=plotting.COLORS["measured"], label="autoencoder")
    ax.axvline(CODES, linestyle=":", color=plotting.COLORS["control"])
    ax.set(xlabel="different chunks", ylabel="restored share", ylim=(0, 1.05))
    ax.legend()


STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Capacity, distinct=DISTINCT),
    paper=jd.grid(Capacity, distinct=DISTINCT, codes=CODES),
    seeds=8,
    paper_seeds=32,
    evidence="algebra",
    bounds="derived",
    source="derived, for the autoencoder of arXiv:2502.03275, section 3.1, without a prompt",
)

CLAIMS = (
    STUDY.claim(
        id="assort.capacity",
        statement="An autoencoder of chunks that has $K$ codes, one a chunk and no prompt, restores at most the sum of the $K$ "
        "largest frequencies of chunks, and explicit weights attain it: all chunks are restored if and only if there are at most "
        "$K$ different ones. (At $K = 16$ and 4 to 36 chunks of two tokens with random frequencies, without training; that no "
        "choice restores more is searched among all sets of 8 chunks.)",
        judge=judge_capacity,
        controls={
            "codes for the rarest chunks": {"kept": "rare"},
            "measured with another number of chunks": jd.rolled(measured_restored="distinct"),
        },
        rivals={
            "everything is restored": jd.swap(predicted_restored="whole", measured_restored="whole"),
            "all chunks count alike": jd.swap(predicted_best="equal"),
        },
        plot=plot,
        caption="Share of chunks that the constructed autoencoder with 16 codes (dotted) restores, and the sum of the 16 largest "
        "frequencies (dashed), over the number of different chunks; means of all runs.",
    ),
)
