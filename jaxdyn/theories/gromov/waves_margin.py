"""The constructed network's logits are sums of waves, an identity; mean and variance of the margin of the right class."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.gromov.constructed import FREE, NETWORK, STUDY


def judge_waves(ds: xr.Dataset) -> list[jd.Check]:
    """Every logit of every pair."""
    return [jd.at_most("relative error of the logits", jd.relative_error(ds, "logits", "pair class"), 1e-12)]


def plot_waves(ds: xr.Dataset, fig: Figure) -> None:
    """All logits of the first network."""
    first = plotting.first_run(ds)
    plotting.scatter(fig.subplots(), first.predicted_logits, first.measured_logits, "network")


WIDTH = 0.05  # by how much variance / law may differ from 1 at a width
OVERALL = 0.025  # the same on average over widths


def judge_margin(ds: xr.Dataset) -> list[jd.Check]:
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


def plot_margin(ds: xr.Dataset, fig: Figure) -> None:
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
        id="gromov.waves",
        title="A construction's logits are sums of nine waves for each node",
        statement=rf"The logits of the {NETWORK}, are sums of nine cosine waves for each node, of which "
        r"$\frac12\cos\theta(a+b-c)$ is free of the random phases: an identity, to rounding.",
        tested="The first {step} nodes of the network for the smallest of the moduli {moduli}, on all pairs of operands and "
        "all classes; {seeds} seeds. Nothing is trained.",
        source="arXiv:2301.02679, equation 11",
        judge=judge_waves,
        bounds="derived: float64 rounding of sums of nine waves for each node",
        controls=FREE,
        rivals={"no other wave than the one without a random phase": jd.swap(predicted_logits="coherent")},
        plot=plot_waves,
        caption="Logits of one network (first seed, smallest modulus) against their sums of waves: one dot for each pair of "
        "operands and class. On the line both agree.",
    ),
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
        judge=judge_margin,
        controls=FREE,
        rivals={"all nodes fluctuate together": alike, "squares of single operands do not fluctuate": crossed},
        plot=plot_margin,
        caption="Mean (left) and variance (right) of the margin over all pairs, averaged over five wrong classes, against the "
        "number of nodes, for the smallest and the largest modulus M. Dots and bands: median and central 90% of the networks; "
        "lines: predicted, mean over networks.",
    ),
)
