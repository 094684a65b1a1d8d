r"""Scan & Snap: the overview figure, attention of two classes from the start to its frozen end.

Start, common suppression, winner emergence, frozen: four moments of one run of the reduced dynamics (Theorems 1 and 2), shown as
:math:`\tilde c_l = P(l)\,e^{z_l}`. Paper: arXiv 2305.16380; its figure is a sketch, so the moments are stated in numbers here.
"""

import sys
from pathlib import Path

import numpy as np
import xarray as xr

import jaxdyn as jd
from jaxdyn import experiment, plotting
from jaxdyn.theories.snap.random_laws import Laws, trial

DISTINCT = {"quick": 5, "paper": 10}
TITLES = ("start", "common suppression", "winner emergence", "frozen")


def phases(ds) -> dict[str, int]:
    """Saves of the four panels: start; the common token below half; 80% of the winner's final logit; the end of the run."""
    halved = int(np.argmax(ds.z_common.isel({"class": 0, "common_token": 0}).values < -np.log(2)))
    top = ds.z_own.isel({"class": 0, "distinct": -1}).values
    emerged = int(np.argmax(top > 0.8 * top[-1]))
    return dict(zip(TITLES, (0, halved, emerged, len(top) - 1), strict=True))


def attention(ds):
    """P e^z of both classes at every save: the common token, then the distinct tokens of each class."""
    common = (ds.p_common * np.exp(ds.z_common)).isel(common_token=[0]).rename(common_token="token")
    own = (ds.p_own * np.exp(ds.z_own)).rename(distinct="token")
    parts = [common, *(own.where(own["class"] == n, 0.0) for n in range(ds.sizes["class"]))]
    return xr.concat(parts, "token").transpose("save", "class", "token")


def rows(ds):
    """What the panels show, in numbers, for the first class."""
    c = attention(ds).isel({"class": 0})
    for name, save in phases(ds).items():
        now = c.isel(save=save)
        yield {
            "panel": name,
            "time": float(ds.t[save]),
            "common token": float(now[0]),
            "dominant distinct token": float(now[ds.sizes["distinct"]]),
            "weakest distinct token": float(now[1]),
            "share of the dominant one": float(now[ds.sizes["distinct"]] / now.sum()),
        }


def draw(ds, fig):
    c = attention(ds)
    places = np.arange(c.sizes["token"])
    names = ["c"] + [f"{n + 1}{chr(97 + i)}" for n in range(2) for i in range(ds.sizes["distinct"])]
    axes = fig.subplots(2, 2, sharex=True, sharey=True).ravel()
    for ax, (name, save) in zip(axes, phases(ds).items(), strict=True):
        for n, color in enumerate(("measured", "theory")):
            shown = c.isel({"class": n, "save": save})
            label = f"class {n + 1}" if ax is axes[0] else None
            ax.bar(places + 0.2 * (2 * n - 1), shown, 0.4, color=plotting.COLORS[color], label=label)
        ax.set_title(f"{name}, t = {float(ds.t[save]):.3g}")
        ax.set_xticks(places, names, fontsize=7)
        ax.grid(False, axis="x")
    for ax in axes[::2]:
        ax.set_ylabel(r"$\tilde c_l = P(l)\,e^{z_l}$")
    for ax in axes[2:]:
        ax.set_xlabel("token (c common, others distinct)")
    axes[0].legend()


def run(scale: str, out: Path) -> None:
    grid = jd.grid(Laws, classes=2, distinct=DISTINCT[scale], common=0.6, eta_z=200.0)
    ds = experiment.sweep(out, "run", trial, grid, 1).isel(seed=0)
    experiment.table(out, "panels", list(rows(ds)), "The four panels in numbers (first class)")
    experiment.figure(out, "overview", lambda fig: draw(ds, fig), (9.0, 5.0))
    experiment.save(out, "overview", ds)


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__))
