"""Scaling laws: isoFLOP curves of a ladder of language models trained here, and the best size by the three approaches.

Sizes times budgets, 36 decoders of 464 to 14 thousand weights on the bytes of Python's own manual; every model has a schedule of
its own length and the best of three rates, chosen on the validation part. `--text DIR` reads a WikiText folder. `--scale paper` has
two layers and up to 0.2 million weights. Left: losses over sizes, one curve a budget, and the parametric fit. Middle: best size
over the budget by each approach. Right: exponents with 95% intervals over seeds (jackknife), with schedules of their own and with
one schedule for all budgets. An interrupted run resumes. Paper: arXiv 2203.15556, sections 3.1 to 3.3.
"""

import sys
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import experiment, plotting
from jaxdyn.theories.scal import approaches, fits, published
from jaxdyn.theories.scal.dynamics import laws
from jaxdyn.theories.scal.trained import Rung, one_schedule, sizes, table, trial, tuned

SCALES = {
    "quick": {"width": [4, 8, 12, 16, 24, 32], "factor": [0.5, 1.0, 2.0], "least": 8.3, "budgets": 6, "windows": 32},
    "paper": {
        "width": [16, 24, 32, 48, 64, 96],
        "factor": [0.5, 1.0, 2.0],
        "least": 10.3,
        "budgets": 6,
        "layers": 2,
        "batch": 16,
        "length": 64,
        "windows": 32,
    },
}
OPTIONS = {
    "--text": {"default": "topics", "metavar": "PATH", "help": "a WikiText folder or a plain file (default: Python's own manual)"},
    "--seeds": {"type": int, "default": 3, "metavar": "N", "help": "number of seeds (default: 3)"},
}


def rows(ds: xr.Dataset) -> list[dict]:
    """A line for each size and budget: tokens, rate and losses."""
    best, n = tuned(ds), sizes(ds)
    return [
        {
            "weights": int(n[i]),
            "budget": float(budget),
            "tokens": float(best.tokens.sel(width=width, budget=budget).max()),
            "rate": float(best.rate.sel(width=width, budget=budget).max()),
            "test loss": float(best.measured_loss.sel(width=width, budget=budget, part="test").mean()),
            "sd over seeds": experiment.deviation(best.measured_loss.sel(width=width, budget=budget, part="test")),
            "one schedule": float(best.measured_undecayed.sel(width=width, budget=budget, part="test").mean()),
        }
        for i, width in enumerate(ds.width.values)
        for budget in ds.budget.values
    ]


def exponents(ds: xr.Dataset) -> list[dict]:
    """Exponents by approach with their intervals, own schedules and one schedule, and the published ones."""
    n, budgets, lines = sizes(ds), ds.budget.values, []
    for name, losses in {"own schedules": table(ds), "one schedule": one_schedule(ds)}.items():
        found, pseudo = approaches.jackknife(n, budgets, losses)
        low, high = approaches.interval(found.exponents, pseudo.exponents)
        law = fits.as_law(found.theta)
        for i, (approach, paper) in enumerate(zip(approaches.APPROACHES, published.APPROACHES.values(), strict=True)):
            line = {
                "schedules": name,
                "approach": approach,
                "a": float(found.exponents[i]),
                "2.5%": low[i],
                "97.5%": high[i],
                "paper a": paper[0],
            }
            last = i == 2
            line |= {"alpha": float(law.alpha) if last else None, "beta": float(law.beta) if last else None}
            lines.append(line | {"E": float(law.e) if last else None, "held-out error": float(found.held_out) if last else None})
    return lines


def draw(ds: xr.Dataset, lines: list[dict], fig: Figure) -> None:
    """Curves, best sizes and exponents."""
    left, middle, right = fig.subplots(1, 3)
    n, budgets, losses = sizes(ds), ds.budget.values, table(ds).mean(0)
    found = approaches.estimates(n, budgets, losses)
    law = fits.as_law(found.theta)
    plotting.lines(left, n, list(losses.T), color_by=[f"{c:.1e}" for c in budgets], name="operations", marker="o", ms=3)
    fine = np.geomspace(n[0], n[-1], 60)
    for budget in budgets:
        left.plot(fine, laws.loss(law, fine, budget / (laws.COST * fine)), "--", lw=0.6, color=plotting.COLORS["theory"])
    left.set(xscale="log", xlabel="weights N", ylabel="test loss, nats per token", ylim=(0.97 * losses.min(), 1.03 * losses.max()))
    middle.loglog(budgets, np.exp(found.vertices), "o", color=plotting.COLORS["measured"], label="vertices of parabolas")
    steps = np.geomspace(budgets[0], budgets[-1], found.lowest.size)
    middle.loglog(steps, np.exp(found.lowest), "-", color=plotting.COLORS["control"], label="lowest curve")
    middle.loglog(budgets, laws.optimum(law, budgets)[0], "--", color=plotting.COLORS["theory"], label="parametric fit")
    middle.set(xlabel="budget, operations", ylabel="best size N")
    middle.set_xticks(budgets[::2], [f"{c:.1e}" for c in budgets[::2]])
    middle.set_yticks(n, [f"{size:.0f}" for size in n])
    middle.minorticks_off()
    for (name, color), shift in zip({"own schedules": "measured", "one schedule": "control"}.items(), (-0.1, 0.1), strict=True):
        part = [r for r in lines if r["schedules"] == name]
        at = np.arange(len(part)) + shift
        right.plot([r["a"] for r in part], at, "o", color=plotting.COLORS[color], label=name)
        right.hlines(at, [r["2.5%"] for r in part], [r["97.5%"] for r in part], color=plotting.COLORS[color])
    right.plot([r["paper a"] for r in lines[:3]], np.arange(3), "x", color=plotting.COLORS["theory"], label="Hoffmann")
    right.axvline(published.KAPLAN[0], linestyle=":", color=plotting.COLORS["theory"], label="Kaplan")
    right.set_yticks(np.arange(3), ["minimum", "parabolas", "fit"])
    right.set(xlabel="exponent a of the best size", ylim=(2.5, -0.5), xlim=(0, 1.25))


def run(scale: str, out: Path, text: str = "topics", seeds: int = 3) -> None:
    """Sweep, print, draw and save."""
    grid = jd.grid(Rung, text=text, **SCALES[scale])
    ds = experiment.sweep(out, "runs", trial, grid, seeds, chunk=len(SCALES[scale]["factor"]))
    experiment.table(out, "losses", rows(ds), f"Test losses, {seeds} seeds, each model at its own rate")
    lines = exponents(ds)
    experiment.table(out, "exponents", lines, "Exponents of the best size, 95% intervals over seeds (jackknife)")
    experiment.figure(out, "scal_ladder", lambda fig: draw(ds, lines, fig), (13, 4))
    experiment.save(out, "ladder", ds)


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__, options=OPTIONS))
