"""Claims on where the asymmetry sits: in the decoder's entries, and not in the attention, which does not move."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.rev.trials.one_layer import OneLayer, trial

__all__ = ["CLAIMS", "asymmetry", "judge", "judge_skip", "judge_still"]

SOURCE = "arXiv:2405.04669"
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
    """No entry of the attention has moved."""
    return [jd.at_most("largest entry of Z", abs(ds.measured_attention - ds.predicted_attention), 0.0)]


def make_plot(sides: tuple[str, str]) -> Callable[[xr.Dataset, Figure], None]:
    """Figure of the entries of both kinds of pairs: against their clocks, and their distribution."""

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


study = jd.Study(
    trial=trial,
    quick=jd.grid(OneLayer),
    seeds=64,
    paper_seeds=64,
    form="derived",
    caption="Left: entries of the decoder Y on test pairs against the clock of their row, one point per pair and run. "
    "Right: distribution of the entries of Y (lines) and of the attention Z (dotted) over pairs and runs.",
    source=f"{SOURCE}, section 4; derived",
)

asym = study.claim(
    id="rev.asym",
    statement=r"In the one-layer model trained by batch-1 SGD, for a fact trained in one direction the decoder has "
    r"$Y[A,B] = u(M-1)/M$, more than $\ln M$, and $Y[B,A] = 0$: on such pairs it is wholly asymmetric, "
    r"$\|Y-Y^\top\|_F = \|Y+Y^\top\|_F$, while the attention has $Z[A,B] = Z[B,A] = 0$.",
    judge=judge,
    controls={"symmetric decoder Y + Y^T": {"decoder": "symmetric"}},
    plot=make_plot(("trained", "reversed")),
    source=f"{SOURCE}, abstract and Fig. 3; entries derived",
)
asym_as_printed = asym.as_printed(
    id="rev.asym_as_printed",
    statement=r"The asymmetric matrix behind the reversal curse is that of the attention logits, $Z[A,B] \ne Z[B,A]$: in the "
    r"one-layer model they have the entries of the decoder.",
    form="printed",
    source=f"{SOURCE}, as shown in talks",
)
still = study.claim(
    id="rev.z_still",
    statement=r"In the one-layer model with x1 as its only key the attention does not move under batch-1 SGD: at the end of "
    r"training $\max|Z| = 0$ exactly.",
    judge=judge_still,
    controls={"relation among the keys": {"context": "both"}},
    plot=plot_still,
    caption="Largest entry of the attention Z and of the decoder Y (on test pairs) at the end of training, two points per run.",
)
intransitive = study.claim(
    id="rev.intransitive",
    statement=r"In the one-layer model, training on $A \to B$ and $B \to C$ makes C less likely after A: $Y[A,C] = -u/M < 0$ while "
    r"$Y[A,B] = u(M-1)/M$.",
    judge=judge_skip,
    quick=jd.grid(OneLayer, task="cot", train_indices=6),
    seeds=16,
    controls={"indirect sequences of test indices in training": {"leak": 1.0}},
    plot=make_plot(("(A, B)", "(A, C)")),
    source=f"{SOURCE}, section 4.2; entries derived",
)

CLAIMS = (asym, asym_as_printed, still, intransitive)
