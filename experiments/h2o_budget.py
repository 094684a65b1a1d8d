"""H2O, after Figures 4 and 8 of arXiv 2306.14048: perplexity over the budget of the cache, by policy.

Small decoders are trained on sequences in which facts are asked for again at any distance, and on a Markov chain without facts;
both are read with every policy and budget. The paper's figures are of OPT, LLaMA and GPT-NeoX on other tasks (20% of the cache at
about no loss) and serve as a reference only. An interrupted run resumes.
"""

import sys
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import experiment, plotting
from jaxdyn.stats import mean_interval
from jaxdyn.theories.h2o.ppl_budget.claims import COLORS, LABELS, STYLES, over, ticked
from jaxdyn.theories.h2o.ppl_budget.trial import Recall, trial

SCALES = {
    "quick": {"seeds": 8},
    "paper": {"length": 80, "keys": 6, "values": 8, "width": 64, "hidden": 128, "heads": 4, "batch": 16, "steps": 2000, "seeds": 8},
}
OPTIONS = {"--seeds": {"type": int, "metavar": "N", "help": "number of seeds (default: 8)"}}
WORLDS = {"recall": {}, "Markov chain": {"stating": 0.0, "asking": 0.0}}


def rows(worlds: dict[str, xr.Dataset]) -> list[dict]:
    """A line for each world, policy and budget: perplexity over that with everything, with its 95% interval."""
    lines = []
    for world, ds in worlds.items():
        for policy in LABELS:
            for budget in ds.budget.values:
                mean, low, high = (float(np.exp(x)) for x in mean_interval(over(ds, policy, "full", budget), "seed"))
                copy = float(ds.measured_copy.sel(policy=policy, budget=budget).mean()) if world == "recall" else None
                line = {"data": world, "policy": LABELS[policy], "budget": f"{budget:.0%}", "perplexity / everything": mean}
                lines.append(line | {"low": low, "high": high, "nats a far answer": copy})
    return lines


def draw(worlds: dict[str, xr.Dataset], fig: Figure) -> None:
    """Perplexity over budgets in both worlds, and far answers."""
    axes = fig.subplots(1, 3)
    for ax, (world, ds) in zip(axes, worlds.items(), strict=False):
        for name, color, style in zip(LABELS, COLORS, STYLES, strict=True):
            values = [mean_interval(over(ds, name, "full", b), "seed") for b in ds.budget.values]
            mean, low, high = (np.exp([float(v[i]) for v in values]) for i in range(3))
            label = LABELS[name] if world == "recall" else None
            ax.plot(100 * ds.budget, mean, style, marker="o", ms=3, color=plotting.COLORS[color], label=label)
            ax.fill_between(100 * ds.budget, low, high, color=plotting.COLORS[color], alpha=0.12, linewidth=0)
        ticked(ax, ds)
        ax.set(ylabel="perplexity / everything", title=world)
    axes[1].set_ylim(axes[0].get_ylim())
    for name, color, style in zip(LABELS, COLORS, STYLES, strict=True):
        one = worlds["recall"].measured_copy.sel(policy=name).mean("seed")
        axes[2].plot(100 * one.budget, one, style, marker="o", ms=3, color=plotting.COLORS[color])
    ticked(axes[2], one)
    axes[2].set(ylabel="nats per answer to a far question", title="recall")


def run(scale: str, out: Path, **chosen: object) -> None:
    """Sweep, print, draw and save."""
    fields = SCALES[scale] | {k: v for k, v in chosen.items() if v is not None}
    seeds = fields.pop("seeds")
    worlds = {
        name: experiment.sweep(out, "runs", trial, jd.grid(Recall, **fields, **breach), seeds) for name, breach in WORLDS.items()
    }
    experiment.table(out, "budget", rows(worlds), f"Perplexity by policy and budget, {seeds} seeds")
    experiment.figure(out, "h2o_budget", lambda fig: draw(worlds, fig), (12, 4))
    for name, ds in worlds.items():
        experiment.save(out, name.replace(" ", "_"), ds)


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__, options=OPTIONS))
