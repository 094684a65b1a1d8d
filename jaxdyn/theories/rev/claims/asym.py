"""Claims on where the asymmetry sits: in the decoder's entries, and not in the attention, which does not move."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.rev.claims.one_layer import SOURCE, OneLayer, trial

__all__ = ["CLAIMS", "asymmetry", "judge", "judge_skip", "judge_still"]

MATRICES = ("Y", "Z")


def asymmetry(entry: xr.DataArray) -> xr.DataArray:
    r"""The share :math:`\|W - W^\top\|_F / \|W + W^\top\|_F` of a matrix on the one-way pairs of a run."""
    there, back = entry.isel(side=0), entry.isel(side=1)
    return np.sqrt(((there - back) ** 2).sum("test", min_count=1) / ((there + back) ** 2).sum("test", min_count=1))


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Both entries of every one-way pair, in both matrices, and the share of the antisymmetric part of the decoder."""
    share = [asymmetry(ds[name].isel(matrix=0)) for name in ("measured_entry", "predicted_entry")]
    entry = ds.measured_entry.isel(matrix=0)
    return [
        jd.at_most("entries of Y and Z on one-way pairs, error", abs(ds.measured_entry - ds.predicted_entry), 1e-10),
        jd.at_most("asymmetry of Y on one-way pairs against theory", abs(share[0] - share[1]), 1e-12),
        jd.at_least("trained minus reversed entry of Y, over ln M", (entry[..., 0] - entry[..., 1]) / np.log(ds["size"]), 1.0),
    ]


def judge_skip(ds: xr.Dataset) -> list[jd.Check]:
    """The entry (A, C) of every chain is the clock's, and negative."""
    entry = ds.measured_entry.isel(matrix=0)
    return [
        jd.at_most("entries (A, B) and (A, C), error", abs(ds.measured_entry - ds.predicted_entry), 1e-10),
        jd.at_most("entry (A, C) over entry (A, B)", entry[..., 1] / entry[..., 0], -1e-6),
    ]


def judge_still(ds: xr.Dataset) -> list[jd.Check]:
    """Not one entry of the attention has moved."""
    return [jd.at_most("largest entry of Z", abs(ds.measured_attention - ds.predicted_attention), 0.0)]


def _plot(sides: tuple[str, str]):
    def plot(ds: xr.Dataset, fig: Figure) -> None:
        left, right = fig.subplots(1, 2)
        derived = ds.sel(form="derived") if "form" in ds.dims else ds
        for i, (side, color) in enumerate(zip(sides, ("measured", "third"), strict=True)):
            part = derived.isel(matrix=0, side=i)
            plotting.scatter(left, part.predicted_entry, part.measured_entry, f"Y, {side}", color, log=False)
            for j, name in enumerate(MATRICES):
                values = np.sort(np.ravel(ds.measured_entry.isel(matrix=j, side=i)))
                height = (np.arange(values.size) + 0.5) / values.size
                style = {"color": plotting.COLORS[color], "linestyle": "-" if name == "Y" else ":", "label": f"{name}, {side}"}
                right.plot(values, height, **style)
        left.set(xlabel="entry by the clock of its row", ylabel="entry of the network")
        right.set(xlabel="entry", ylabel="share of pairs below")

    return plot


def plot_still(ds: xr.Dataset, fig: Figure) -> None:
    """How far the attention has moved, beside the decoder's largest entries."""
    ax = fig.subplots()
    decoder = abs(ds.measured_entry.isel(matrix=0)).max(("test", "side"))
    ax.plot(ds.seed, decoder, "o", color=plotting.COLORS["third"], label="largest |Y| on test pairs")
    ax.plot(ds.seed, ds.measured_attention, "o", color=plotting.COLORS["measured"], label="largest |Z|")
    ax.set(xlabel="seed", ylabel="size of an entry")


_REVERSAL = {"trial": trial, "seeds": 64, "paper_seeds": 64, "quick": jd.grid(OneLayer)}
_PAIRS = {**_REVERSAL, "judge": judge, "plot": _plot(("trained", "reversed"))}

CLAIMS = (
    jd.Claim(
        id="rev.asym",
        statement=r"For a fact seen in one direction the decoder has $Y[A,B] = u(M-1)/M$, beyond $\ln M$, and $Y[B,A] = 0$ "
        r"exactly: all of it is asymmetric, $\|Y-Y^\top\|_F = \|Y+Y^\top\|_F$ on such pairs.",
        source=f"{SOURCE}, abstract and Fig. 3; entries derived",
        form="derived",
        controls={"symmetric decoder Y + Y^T": {"tied": True}},
        **_PAIRS,
    ),
    jd.Claim(
        id="rev.asym_as_printed",
        statement=r"The asymmetric matrix behind the curse is that of the attention logits, $Z[A,B] \ne Z[B,A]$ (the talks' "
        r"slide). In the theorems' own setting Z does not move, and the asymmetry is the decoder's (derived form).",
        source=f"{SOURCE}, as shown in talks",
        form="printed",
        counterpart="derived",
        expected="refuted",
        **_PAIRS,
    ),
    jd.Claim(
        id="rev.z_still",
        statement=r"With x1 as its only key the attention never moves: the gradient of Z is exactly zero at every step, "
        r"$\max|Z| = 0$.",
        source=f"{SOURCE}, section 4; derived",
        judge=judge_still,
        form="derived",
        controls={"relation among the keys": {"context": "both"}},
        plot=plot_still,
        **_REVERSAL,
    ),
    jd.Claim(
        id="rev.intransitive",
        statement=r"Seeing $A \to B$ and $B \to C$ makes C less likely after A: $Y[A,C] = -u/M < 0$ while $Y[A,B] = u(M-1)/M$.",
        source=f"{SOURCE}, section 4.2; entries derived",
        judge=judge_skip,
        form="derived",
        quick=jd.grid(OneLayer, task="cot", train_indices=6),
        controls={"indirect sequences of test indices in training": {"leak": 1.0}},
        plot=_plot(("(A, B)", "(A, C)")),
        trial=trial,
        seeds=16,
        paper_seeds=64,
    ),
)
