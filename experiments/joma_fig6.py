"""JoMA, Figure 6: how sharp attention is while a language model learns real text, layer by layer, for depths and rates.

Trains the published encoder on a text and records validation loss, entropy of attention, stable rank of each MLP's lower matrix
(joma_fig7.py draws it from the same runs) and mean |cos| of the embeddings. `--scale paper --text DIR` is the published study on a
WikiText folder: 7 depths, 7 rates, 3 seeds, 20 epochs; `--layers`, `--lr`, `--seeds` and `--epochs` choose a part of it. Runs lie
in files of their own: stop at any time, the same command resumes, and other parts of the study may be added later.
"""

import dataclasses
import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from jaxdyn import experiment
from jaxdyn.errors import UsageError
from jaxdyn.plotting import COLORS, RAMP
from jaxdyn.text import longrun, training_run
from jaxdyn.theories.joma import published as paper

TALKS = ("training:joma-figure-6",)

SCALES = {
    "quick": {
        "run": training_run.TrainingRun(steps=1, every=1),
        "layers": (1, 3),
        "lr": (1e-3, 1e-2),
        "seeds": (1, 2, 3),
        "epochs": 8,
        "records": 12,
    },
    "paper": {
        "run": training_run.TrainingRun(max_words=0, width=200, hidden=200, windows=60, steps=1, every=1),
        "layers": (1, 2, 3, 4, 5, 8, 10),
        "lr": (1e-4, 1e-3, 1e-2, 1e-6, 5e-6, 1e-5, 5e-5),
        "seeds": (1, 2, 3),
        "epochs": 20,
        "records": 12,
    },
}
OPTIONS = {
    "--text": {"default": "topics", "metavar": "PATH", "help": "a WikiText folder or a plain file (default: Python's own manual)"},
    "--layers": {"type": int, "nargs": "+", "metavar": "L", "help": "numbers of layers (default: 1 3; up to 10 at --scale paper)"},
    "--lr": {"type": float, "nargs": "+", "metavar": "RATE", "help": "learning rates (default: those of the figure)"},
    "--seeds": {"type": int, "nargs": "+", "metavar": "SEED", "help": "seeds (default: 1 2 3)"},
    "--epochs": {
        "type": int,
        "metavar": "N",
        "help": "passes over the text, to a record (default: 8; 20 at --scale paper)",
    },
}


def setting(
    base: training_run.TrainingRun, source: str, layers: int, lr: float, epochs: int, records: int
) -> training_run.TrainingRun:
    """The setting of one run: ``records`` or more an epoch, and its end at the record nearest to that of the epochs."""
    s = dataclasses.replace(base, text=source, layers=layers, lr=lr)
    every = s.epoch // records
    if every < 1:
        raise UsageError(f"the text {source} is too short: {s.epoch} windows an epoch, {records} or more are needed")
    return dataclasses.replace(s, steps=every * round(s.epoch * epochs / every), every=every)


def dip(steps: np.ndarray, entropy: np.ndarray) -> dict[str, float]:
    """Entropy of one layer at the start, at its lowest (and when), and at the end; nats."""
    low = int(np.argmin(entropy))
    return {"start": float(entropy[0]), "min": float(entropy[low]), "at": int(steps[low]), "end": float(entropy[-1])}


def rows(runs: dict[tuple[int, float], list[longrun.Run]]) -> list[dict]:
    """A row for each depth, rate and layer: means over seeds, next to the published numbers where there are any."""
    found = []
    for (layers, lr), group in runs.items():
        for layer in range(layers):
            each = [dip(r.steps, r.records["entropy"][:, layer]) for r in group]
            mean = {k: float(np.mean([e[k] for e in each])) for k in each[0]}
            back = [e["end"] - e["min"] for e in each]
            published = paper.ENTROPY.get((layers, lr), {}).get(layer, {})
            found.append(
                {
                    "layers": layers,
                    "lr": lr,
                    "layer": layer,
                    "seeds": len(group),
                    "steps": int(group[0].steps[-1]),
                    "best loss": float(np.mean([r.records["loss"].min() for r in group])),
                    "paper best loss": paper.BEST_LOSS.get((layers, lr)),
                    **mean,
                    "return": float(np.mean(back)),
                    "return sd": experiment.deviation(back),
                    **{f"paper {k}": published.get(k) for k in ("start", "min", "end")},
                }
            )
    return found


def draw(runs: dict[tuple[int, float], list[longrun.Run]], name: str, label: str, fig: Figure) -> None:
    """Curves over training, a panel for each depth and rate, colours from the lowest layer (dark) up."""
    axes = fig.subplots(1, len(runs), sharey=True, squeeze=False)[0]
    for ax, ((layers, lr), group) in zip(axes, runs.items(), strict=True):
        count = group[0].records[name].shape[1]
        for layer in range(count):
            curves = np.stack([r.records[name][:, layer] for r in group])
            colour = RAMP(layer / max(1, count - 1)) if count > 1 else COLORS["measured"]
            steps = np.maximum(group[0].steps, 1)
            ax.plot(steps, curves.mean(0), color=colour, label=f"layer {layer}")
            ax.fill_between(steps, curves.min(0), curves.max(0), color=colour, alpha=0.2, lw=0)
        if name == "entropy":
            ax.axhline(training_run.uniform_entropy(35), color=COLORS["theory"], ls="--", lw=1, label="blind")
        ax.set(title=f"L = {layers}, rate {lr:g}", xlabel="step")
    axes[0].set_ylabel(label)


def study(scale: str, out: Path, **chosen: object) -> dict[tuple[int, float], list[longrun.Run]]:
    """The runs of what was chosen, by depth and rate; what lies in ``out`` is not computed again."""
    plan = SCALES[scale]
    pick = plan | {k: v for k, v in chosen.items() if v is not None}
    runs = {}
    for lr in pick["lr"]:
        for layers in pick["layers"]:
            s = setting(plan["run"], pick["text"], layers, lr, pick["epochs"], plan["records"])
            runs[layers, lr] = training_run.long_runs(s, pick["seeds"], out / "runs", f"L{layers}_lr{lr:g}")
    return runs


def run(scale: str, out: Path, **chosen: object) -> None:
    """Train what was chosen, and write the table and the figure."""
    runs = study(scale, out, **chosen)
    experiment.table(out, "entropy", rows(runs), "entropy of attention over training, nats")
    size = (3.2 * len(runs) + 1, 3.5)
    experiment.figure(out, "entropy", lambda fig: draw(runs, "entropy", "entropy of attention (nats)", fig), size)


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__, options=OPTIONS))
