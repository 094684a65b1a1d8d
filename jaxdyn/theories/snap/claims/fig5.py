r"""Figure 5, Syn-Small: how sparse attention is after 100 steps by SGD and by Adam, and that it is not winner-take-all.

The prediction side of ``snap.fig5`` is an independent run of the paper's setting; that of ``snap.not_wta`` is the order of the
tokens' frequencies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

import jaxdyn as jd
from jaxdyn import plotting, stats
from jaxdyn.theories.snap import published
from jaxdyn.theories.snap.trials.syn import Syn, small_trial

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CLAIMS", "plot_fig5", "rows_of"]


def judge_fig5(ds: xr.Dataset) -> list[jd.Check]:
    """Means over seeds within .03 of the reference, and the start's digits; cells without a reference are passed over."""
    gap = (ds.measured_numbers - ds.predicted_numbers).where(ds.known == 1)
    if not bool(gap.notnull().any()):
        raise jd.Inconclusive("no cell has the optimizer, momentum, ratio and tokens of a reference run")
    start = ds.curve.isel(record=0) - xr.DataArray(np.array(published.START), dims="quantity")
    return [
        jd.at_most("mean over seeds after all steps, difference from the reference", abs(gap.mean("seed")), 0.03),
        jd.at_most("numbers at the start, difference from the reference", abs(start), 6e-4),
    ]


def judge_not_wta(ds: xr.Dataset) -> list[jd.Check]:
    """The order of attention among own tokens is that of their frequencies, and several tokens keep attention."""
    c = ds.measured_attention / ds.measured_attention.sum("token", min_count=1)
    kept = np.exp(-(c * np.log(c.clip(1e-30))).sum("token", min_count=1))
    rank = stats.spearman(ds.predicted_attention, ds.measured_attention, "token")
    return [
        jd.at_least("Spearman correlation of attention with frequency", rank, 1 - 1e-12),
        jd.at_least("tokens that keep attention, exp(entropy)", kept, 2.0),
    ]


def winner_takes_all(ds: xr.Dataset) -> xr.Dataset:
    """A breach: all of a class's attention is on its most attended token."""
    c = ds.measured_attention
    return ds.assign(measured_attention=c.where(c == c.max("token"), 0.0).where(c.notnull()))


def rows_of(ds: xr.Dataset) -> list[tuple[published.Row, xr.Dataset]]:
    """The reference runs that the data hold, each with its part of the data."""
    rows = []
    for row in published.FIG5:
        cell = {"optimizer": row.optimizer, "momentum": row.momentum, "ratio": row.ratio}
        if all(value in ds[axis].values for axis, value in cell.items()):
            rows.append((row, ds.sel(cell)))
    return rows


def plot_fig5(ds: xr.Dataset, fig: Figure) -> None:
    """Entropy of attention among a class's own tokens, and mass of common tokens, along training; crosses: the reference."""
    for ax, quantity, label in zip(
        fig.subplots(1, 2), (0, 2), ("entropy, own tokens (nats)", "mass of common tokens"), strict=True
    ):
        for (row, part), color in zip(rows_of(ds), plotting.CYCLE, strict=False):
            plotting.band(ax, ds.record, part.curve.isel(quantity=quantity), label=row.name, color=color)
            ax.plot(ds.record[-1], row.numbers[quantity], "x", color=color, markersize=7, clip_on=False, zorder=5)
        ax.plot([], [], "x", color=plotting.COLORS["control"], label="reference, 5 seeds")
        ax.set(xlabel="iteration", ylabel=label)
    fig.axes[0].legend(loc=(0.33, 0.2))
    fig.axes[1].legend(handles=fig.axes[1].lines[-1:])


def plot_not_wta(ds: xr.Dataset, fig: Figure) -> None:
    """Attention within a class's own tokens against their frequency there: every class and seed; dashed: the start."""
    p = ds.predicted_attention / ds.predicted_attention.sum("token")
    c = ds.measured_attention / ds.measured_attention.sum("token")
    panels = fig.subplots(1, ds.sizes["ratio"], sharey=True, squeeze=False)[0]
    for ax, ratio in zip(panels, ds.ratio.values, strict=True):
        part = c.sel(ratio=ratio).transpose(..., "token").values.reshape(-1, ds.sizes["token"])
        x = p.transpose(..., "token").values.reshape(-1, ds.sizes["token"])[0]
        plotting.band(ax, x, part, label="after 100 steps", color="measured", marker="o")
        ax.plot(x, x, "--", color=plotting.COLORS["theory"], label="start: attention = frequency")
        ax.set(xlabel="frequency among own tokens", title=f"rate of Y / rate of Z = {ratio:g}")
    panels[0].set_ylabel("attention among own tokens")


study = jd.Study(
    trial=small_trial,
    quick=jd.grid(Syn, optimizer=["sgd", "adam"], momentum=[0.9, 0.0], ratio=[1.0, 10.0]),
    seeds=10,
    paper_seeds=100,
    source="arXiv:2305.16380, section 7, Syn-Small (Figures 4 and 5)",
)

CLAIMS = (
    study.claim(
        id="snap.fig5",
        statement=r"In the setting of Figure 5 (two classes, 100 steps in batches of 128 sampled sequences) attention has these "
        r"entropies among a class's own tokens: 1.94 for SGD with momentum .9 and $\eta_Y = \eta_Z = 1$, 2.08 for $\eta_Y = 10$, "
        r"2.06 without momentum, 2.18 for Adam (2.151 at the start); also the entropy over all tokens, the mass of common tokens, "
        r"and the attention on the most frequent token, each within .03 of an independent run.",
        source=f"{study.source}; the numbers are those of an independent run in NumPy, the paper shows pictures",
        judge=judge_fig5,
        controls={
            "references of momentum 0 and .9 exchanged": jd.rolled(predicted_numbers="momentum"),
            "SGD at half the rate": {"lr": 0.5, "optimizer": "sgd"},
        },
        plot=plot_fig5,
        caption=r"Entropy of the attention among a class's own tokens (left) and attention mass of the common tokens (right) along "
        r"training; lines and bands are the median and the central 90% over seeds, a colour for each optimizer, momentum and "
        r"$\eta_Y/\eta_Z$. Crosses: the independent run after 100 steps, mean over 5 seeds.",
    ),
    study.claim(
        id="snap.not_wta",
        statement=r"Trained attention is sparse but not winner-take-all: after 100 steps of SGD with momentum from a zero start, "
        r"several of a class's own tokens keep attention (the exponential of its entropy is at least 2), and their order is that "
        r"of their frequencies $P(l|n)$ (Spearman's correlation is 1 in every run).",
        source="arXiv:2305.16380, abstract and section 6; data of section 7, Syn-Small",
        quick=jd.grid(Syn, optimizer="sgd", momentum=0.9, ratio=[1.0, 10.0]),
        judge=judge_not_wta,
        controls={"Adam": {"optimizer": "adam"}, "winner takes all": winner_takes_all},
        plot=plot_not_wta,
        caption=r"Final attention on each of a class's own tokens against its frequency, both as shares of the own tokens; a panel "
        r"for each $\eta_Y/\eta_Z$. Dots and band: median and central 90% over classes and seeds. Dashed: the start, where "
        r"attention is the frequency.",
    ),
)
