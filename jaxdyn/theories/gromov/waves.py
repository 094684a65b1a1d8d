"""The constructed network's logits are sums of waves: an identity."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.gromov.constructed import FREE, NETWORK, STUDY


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Every logit of every pair."""
    return [jd.at_most("relative error of the logits", jd.relative_error(ds, "logits", "pair class"), 1e-12)]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """All logits of the first network."""
    first = plotting.first_run(ds)
    plotting.scatter(fig.subplots(), first.predicted_logits, first.measured_logits, "network")


CLAIMS = (
    STUDY.claim(
        id="gromov.waves",
        title="A construction's logits are sums of nine waves for each node",
        statement=rf"The logits of the {NETWORK}, are sums of nine cosine waves for each node, of which "
        r"$\frac12\cos\theta(a+b-c)$ is free of the random phases: an identity, to rounding.",
        tested="The first {step} nodes of the network for the smallest of the moduli {moduli}, on all pairs of operands and "
        "all classes; {seeds} seeds. Nothing is trained.",
        source="arXiv:2301.02679, equation 11",
        judge=judge,
        bounds="derived: float64 rounding of sums of nine waves for each node",
        controls=FREE,
        rivals={"no other wave than the one without a random phase": jd.swap(predicted_logits="coherent")},
        plot=plot,
        caption="Logits of one network (first seed, smallest modulus) against their sums of waves: one dot for each pair of "
        "operands and class. On the line both agree.",
    ),
)
