"""Mean and variance of the margin of the right class in the constructed network."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.gromov.constructed import FREE, NETWORK, STUDY

WIDTH = 0.05  # by how much variance / law may differ from 1 at a width
OVERALL = 0.025  # the same on average over widths


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Means over pairs, exactly; variances over pairs over the law, averaged over seeds, at each width and over all of them.

    Moduli are weighted by their size, since the sampling error of the ratio falls about like 1/M.
    """
    measured, predicted = (ds[f"{side}_variance"].mean("offset") for side in ("measured", "predicted"))
    ratio = (measured / predicted).weighted(ds.modulus).mean("modulus", skipna=False)
    return [
        jd.at_most("relative error of the mean margin", jd.relative_error(ds, "mean", "offset"), 1e-9),
        jd.mean_within("variance / law at every width", ratio, over="seed", low=1 - WIDTH, high=1 + WIDTH),
        jd.mean_within("variance / law, mean over widths", ratio.mean("nodes"), over="seed", low=1 - OVERALL, high=1 + OVERALL),
    ]


def crossed(ds: xr.Dataset) -> xr.Dataset:
    """The variance if only products of both operands mattered: of three waves with amplitude 1/2 in place of eight."""
    return ds.assign(predicted_variance=1.5 * ds.predicted_mean)


def alike(ds: xr.Dataset) -> xr.Dataset:
    """The variance if the waves of all nodes fluctuated together: it would grow like the square of the width."""
    return ds.assign(predicted_variance=4 * ds.predicted_mean + ds.predicted_mean**2)


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Mean and variance of margins against the width."""
    for ax, name in zip(fig.subplots(1, 2), ("mean", "variance"), strict=True):
        for modulus, color in zip((ds.modulus.values[0], ds.modulus.values[-1]), ("measured", "third"), strict=True):
            at = ds.sel(modulus=modulus)
            plotting.band(ax, ds.nodes, at[f"measured_{name}"].mean("offset"), f"M = {modulus}", color, marker="o", linestyle="")
            law = at[f"predicted_{name}"].mean(["offset", "seed"])
            ax.plot(ds.nodes, law, color=plotting.COLORS["theory"], label="predicted" if color == "measured" else None)
        ax.set(xlabel="nodes K", ylabel=f"{name} of the margin", xscale="log", yscale="log")


CLAIMS = (
    STUDY.claim(
        id="gromov.margin",
        title="Mean and variance of a random construction's margins",
        bounds=jd.tuned(on="0:192", confirmed_on="31000000:31000192"),
        seeds=192,
        statement=rf"In the {NETWORK}, let $u_j = 1 - \cos\theta_j d$ for the node $j$. "
        r"Over all pairs of operands, the margin of the right class over the class $d$ further has the mean $\frac12\sum_j u_j$ "
        r"at each draw of the phases and, averaged over random phases, the variance $\sum_j(\frac{15}8u_j + \frac18u_j^2)$. The "
        "latter, averaged over networks, $d$ = 1 to 5 and moduli (weighted by their size), is met within 5% at every width from 8 "
        "to 160 nodes and within 2.5% on average over widths.",
        judge=judge,
        controls=FREE,
        rivals={"all nodes fluctuate together": alike, "squares of single operands do not fluctuate": crossed},
        plot=plot,
        caption="Mean (left) and variance (right) of the margin over all pairs, averaged over five wrong classes, against the "
        "number of nodes, for the smallest and the largest modulus M. Dots and bands: median and central 90% of the networks; "
        "lines: predicted, mean over networks.",
    ),
)
