"""Claim on the memory of a streaming cache."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.stream.trials.cost import Cost, trial

__all__ = ["CLAIMS", "judge"]


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Bytes of keys and values, exactly, for texts of all lengths."""
    return [jd.at_most("bytes beside the formula", abs(ds.measured_bytes - ds.predicted_bytes), 0)]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Bytes over the length of the text."""
    ax = fig.subplots()
    run = plotting.first_run(ds)
    for name in run.network.values:
        ax.plot(run.length, run.measured_bytes.sel(network=name), "o", label=str(name))
        ax.plot(run.length, run.predicted_bytes.sel(network=name), "--", color=plotting.COLORS["theory"])
    ax.set(xscale="log", yscale="log", xlabel="tokens read", ylabel="bytes of keys and values")
    ax.legend()


CLAIMS = (
    jd.Study(
        trial=trial,
        quick=jd.grid(Cost),
        paper=jd.grid(Cost, size=[32, 1024]),
        evidence="algebra",
        bounds="derived",
        source="arXiv:2309.17453, figure 1; arXiv:2305.13245 (grouped queries)",
    ).claim(
        id="stream.cost",
        statement=r"What decoding with a streaming cache of $L$ keys carries from token to token takes $2 \cdot \text{layers} "
        r"\cdot g\, e\, L$ numbers for keys and values of $g$ heads with $e$ entries, to the byte, after 64, 256 and 4096 tokens. "
        "(A count of arrays; no training.)",
        judge=judge,
        controls={"dense: a place for every token": {"kind": "dense"}},
        rivals={
            "keys alone": jd.swap(predicted_bytes="keys_alone"),
            "a key for each head of queries, in four bytes": jd.swap(predicted_bytes="every_head"),
        },
        plot=plot,
        caption="Bytes of keys and values after texts of several lengths (points) and the formula (dashed), three networks.",
    ),
)
