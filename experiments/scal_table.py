"""Scaling laws: published estimates of the best size's exponent next to ours, on a published law and on models trained here.

First table: exponents and best sizes that follow from published parameters. Second: published exponents with their ranges, and the
three approaches on losses of the law with Besiroglu's parameters, without and with noise of 0.5% (95% of repeats), and on the
ladder of language models of the claim `scal.trained` (95% intervals over seeds, jackknife). Third: L-BFGS on losses of random laws,
summed and averaged, with strict and default tolerances. An interrupted run resumes.
Papers: arXiv 2203.15556, 2404.10102, 2001.08361.
"""

import sys
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import experiment, plotting
from jaxdyn.theories.scal import approaches, published
from jaxdyn.theories.scal.dynamics import laws
from jaxdyn.theories.scal.fitted import Exact
from jaxdyn.theories.scal.fitted import trial as exact
from jaxdyn.theories.scal.trained import WIDTHS, Rung, sizes, table
from jaxdyn.theories.scal.trained import trial as ladder

TALKS = ("grokking:scal-table",)

SCALES = {"quick": {"seeds": 4, "repeats": 100, "laws": 16}, "paper": {"seeds": 5, "repeats": 1000, "laws": 64}}
BUDGETS, SIZES, NOISE = np.geomspace(6e18, 3e21, 9), np.geomspace(7e7, 1.6e10, 15), 0.005  # of Hoffmann, section 3.2
LADDER = {"width": WIDTHS}
NAMES = dict(zip(approaches.APPROACHES, published.APPROACHES, strict=True))
OPTIONS = {"--seeds": {"type": int, "metavar": "N", "help": "number of seeds of the trained models (default: 4)"}}


def parameters() -> list[dict]:
    """What follows from published parameters."""
    return [
        {
            "source": name,
            "alpha": law.alpha,
            "beta": law.beta,
            "E": law.e,
            "a": float(laws.exponent(law)),
            "best size at 5.76e23": float(laws.optimum(law, published.BUDGET)[0]),
            "tokens": float(laws.optimum(law, published.BUDGET)[1]),
        }
        for name, law in published.LAWS.items()
    ]


def synthetic(repeats: int) -> np.ndarray:
    """Losses [1 + repeats, size, budget] of Besiroglu's law; the first without noise."""
    law = published.LAWS["Besiroglu"]
    losses = laws.loss(law, SIZES[:, None], BUDGETS / (laws.COST * SIZES[:, None]))
    noise = np.random.default_rng(0).normal(size=(1 + repeats, *losses.shape))
    return losses * np.exp(NOISE * noise * (np.arange(1 + repeats) > 0)[:, None, None])


def rows(ds: xr.Dataset, repeats: int) -> list[dict]:
    """One line an approach: the published exponent, and ours on the law and on trained models."""
    law = approaches.estimates(SIZES, BUDGETS, synthetic(repeats)).exponents
    n, budgets, losses = sizes(ds), ds.budget.values, table(ds)
    whole, pseudo = approaches.jackknife(n, budgets, losses)
    draws = approaches.interval(whole.exponents, pseudo.exponents)
    noisy = np.percentile(law[1:], [2.5, 97.5], axis=0)
    lines = []
    for i, (name, there) in enumerate(NAMES.items()):
        a, (low, high), *_ = published.APPROACHES[there]
        line = {"approach": name, "paper a": a, "paper 10%": low, "paper 90%": high}
        line |= {"law, exact": law[0, i], "law, noise 2.5%": noisy[0][i], "law, noise 97.5%": noisy[1][i]}
        lines.append(line | {"trained": whole.exponents[i], "trained 2.5%": draws[0][i], "trained 97.5%": draws[1][i]})
    truth = float(laws.exponent(published.LAWS["Besiroglu"]))
    empty = dict.fromkeys(lines[0])
    return [
        *lines,
        {**empty, "approach": "the law's own", "law, exact": truth},
        {**empty, "approach": "Kaplan", "paper a": published.KAPLAN[0]},
    ]


def searches(ds: xr.Dataset) -> list[dict]:
    """Errors of the exponent by objective and tolerances, over laws."""
    error = abs(ds.measured_exponent - ds.predicted_exponent)
    return [
        {
            "objective": str(o),
            "tolerances": str(s),
            "median error of a": float(error.sel(objective=o, stops=s).median()),
            "largest error of a": float(error.sel(objective=o, stops=s).max()),
            "steps": float(ds.steps.sel(objective=o, stops=s).mean()),
        }
        for o in ds.objective.values
        for s in ds.stops.values
    ]


def draw(lines: list[dict], ds: xr.Dataset, fig: Figure) -> None:
    """Exponents by approach, published and ours; and exponents of searches that end early."""
    left, right = fig.subplots(1, 2, width_ratios=(1.2, 1))
    shown = lines[: len(NAMES)]
    groups = {
        "published, 10% to 90%": ("paper a", "paper 10%", "paper 90%", "theory"),
        "Besiroglu's law, noise 0.5%": ("law, exact", "law, noise 2.5%", "law, noise 97.5%", "third"),
        "trained here": ("trained", "trained 2.5%", "trained 97.5%", "measured"),
    }
    for shift, (label, (mid, low, high, color)) in zip((-0.2, 0.0, 0.2), groups.items(), strict=True):
        value, ends = np.array([r[mid] for r in shown]), np.array([[r[low], r[high]] for r in shown]).T
        at = np.arange(len(shown)) + shift
        left.plot(value, at, "o", ms=5, color=plotting.COLORS[color], label=label)
        left.hlines(at, *ends, color=plotting.COLORS[color])
    left.axvline(lines[-1]["paper a"], linestyle=":", color=plotting.COLORS["control"], label="Kaplan")
    left.set_yticks(np.arange(len(shown)), list(NAMES))
    left.set(xlabel="exponent a of the best size")
    left.invert_yaxis()
    for (o, s), color in zip(
        (("sum", "default"), ("mean", "default"), ("sum", "strict")), ("third", "control", "measured"), strict=True
    ):
        part = ds.sel(objective=o, stops=s)
        right.plot(
            part.predicted_exponent.values.ravel(),
            part.measured_exponent.values.ravel(),
            "o",
            ms=4,
            color=plotting.COLORS[color],
            label=f"{o}, {s}",
        )
    right.axline((0.5, 0.5), slope=1, color=plotting.COLORS["theory"], lw=1)
    right.set(xlabel="exponent a of the law", ylabel="exponent a found by L-BFGS")


def run(scale: str, out: Path, seeds: int | None = None) -> None:
    """Sweep, print, draw and save."""
    chosen = SCALES[scale]
    ds = experiment.sweep(out, "ladder", ladder, jd.grid(Rung, **LADDER), seeds or chosen["seeds"])
    found = experiment.sweep(
        out, "searches", exact, jd.grid(Exact, objective=["sum", "mean"], stops=["default", "strict"]), chosen["laws"]
    )
    experiment.table(out, "parameters", parameters(), "What follows from published parameters")
    lines = rows(ds, chosen["repeats"])
    experiment.table(out, "exponents", lines, "Exponent a of the best size in the budget")
    experiment.table(out, "searches", searches(found), f"L-BFGS on losses without noise, {chosen['laws']} laws")
    experiment.figure(out, "scal_table", lambda fig: draw(lines, found, fig), (11, 4))
    experiment.save(out, "ladder", ds)


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__, options=OPTIONS))
