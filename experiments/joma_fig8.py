"""JoMA, Figure 8: attention on real text at one depth, over learning rates, and with MLPs that are linear.

JoMA's explanation of the return is the MLP's nonlinearity: without it attention should sharpen and stay. The same options and files
as joma_fig6.py, for ReLU and linear MLPs; the table tells how far entropy falls and how far it comes back, and the difference
between the two with its 95% interval over seeds. A second table has every layer, next to the published numbers (ReLU) where there
are any; the figure has those of the top layer.
"""

import dataclasses
import sys
from pathlib import Path

import joma_fig6
import numpy as np
from matplotlib.figure import Figure

from jaxdyn import experiment
from jaxdyn.plotting import COLORS, RAMP
from jaxdyn.stats import mean_interval
from jaxdyn.text import longrun, training_run
from jaxdyn.theories.joma import published

DEPTH = {"quick": 1, "paper": 5}
RATES = {"quick": (3e-4, 1e-3, 3e-3), "paper": (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)}
KINDS = ("relu", "linear")
OPTIONS = {k: v for k, v in joma_fig6.OPTIONS.items() if k != "--layers"}

Runs = dict[tuple[str, float], list[longrun.Run]]


def study(scale: str, out: Path, **chosen: object) -> Runs:
    """The runs, by kind of MLP and rate."""
    pick = joma_fig6.SCALES[scale] | {"lr": RATES[scale]} | {k: v for k, v in chosen.items() if v is not None}
    runs = {}
    for kind in KINDS:
        for lr in pick["lr"]:
            base = dataclasses.replace(pick["run"], activation=kind)
            s = joma_fig6.setting(base, pick["text"], DEPTH[scale], lr, pick["epochs"], pick["records"])
            runs[kind, lr] = training_run.long_runs(s, pick["seeds"], out / "runs", f"{kind}_L{DEPTH[scale]}_lr{lr:g}")
    return runs


def top(group: list[longrun.Run]) -> np.ndarray:
    """Entropy of the top layer, [seeds, records]."""
    return np.stack([r.records["entropy"][:, -1] for r in group])


def rows(runs: Runs) -> list[dict]:
    """Fall and return of the top layer's entropy, means over seeds; what ReLU brings back more than a linear MLP does."""
    found = []
    for (kind, lr), group in runs.items():
        curve = top(group)
        back = curve[:, -1] - curve.min(1)
        row = {"mlp": kind, "lr": lr, "seeds": len(group), "start": float(curve[:, 0].mean()), "min": float(curve.min(1).mean())}
        row |= {"end": float(curve[:, -1].mean()), "return": float(back.mean()), "relu - linear": None, "+-": None}
        if kind == "relu" and ("linear", lr) in runs and len(group) > 1:
            other = top(runs["linear", lr])
            mean, low, high = mean_interval(back - (other[:, -1] - other.min(1)), "seed")
            row |= {"relu - linear": float(mean), "+-": float(high - low) / 2}
        found.append(row)
    return found


def by_layer(runs: Runs) -> list[dict]:
    """Start, minimum and end of every layer's entropy, means over seeds, next to the published numbers, which are of ReLU MLPs."""
    found = []
    for (kind, lr), group in runs.items():
        for row in joma_fig6.rows({(group[0].records["entropy"].shape[1], lr): group}):
            found.append({"mlp": kind} | {k: v if kind == "relu" or not k.startswith("paper") else None for k, v in row.items()})
    return found


def draw(runs: Runs, fig: Figure) -> None:
    """The top layer's entropy along training, a panel for each kind of MLP, rates from dark to light; squares: published."""
    for ax, kind in zip(fig.subplots(1, 2, sharey=True), KINDS, strict=True):
        rates = [lr for name, lr in runs if name == kind]
        for i, lr in enumerate(rates):
            group, colour = runs[kind, lr], RAMP(i / max(1, len(rates) - 1))
            curve, depth = top(group), group[0].records["entropy"].shape[1]
            printed = published.ENTROPY.get((depth, lr), {}).get(depth - 1, {}) if kind == "relu" else {}
            for share, name in ((0.0, "start"), (0.25, "min"), (1.0, "end")):
                if printed.get(name) is not None:
                    ax.plot(share * group[0].steps[-1], printed[name], "s", color=colour, mfc="none")
            ax.plot(group[0].steps, curve.mean(0), color=colour, label=f"rate {lr:g}")
            ax.fill_between(group[0].steps, curve.min(0), curve.max(0), color=colour, alpha=0.2, lw=0)
        ax.axhline(training_run.uniform_entropy(35), color=COLORS["theory"], ls="--", lw=1, label="blind")
        ax.set(title=f"{kind} MLP", xlabel="step")
    fig.axes[0].set_ylabel("entropy of attention, top layer (nats)")


def run(scale: str, out: Path, **chosen: object) -> None:
    """Train what is not there, and write the table and the figure."""
    runs = study(scale, out, **chosen)
    experiment.table(out, "mlp", rows(runs), "entropy of the top layer's attention, ReLU and linear MLPs, nats")
    experiment.table(out, "layers", by_layer(runs), "entropy of every layer's attention, ours and the paper's, nats")
    experiment.figure(out, "joma_fig8", lambda fig: draw(runs, fig), (8.0, 3.5))


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__, options=OPTIONS))
