"""Scan & Snap, Figure 7: the lowest layer's attention on one piece of real text, before training and after 500 to 1500 steps.

Two controls on the same text: queries and keys that are not trained, and words read in random order. `--scale paper --text DIR` is
the published run on a WikiText folder (200 wide, all words); every run has a file of its own, from which the same command
resumes it. Paper: arXiv 2305.16380, which shows one run and no numbers.
"""

import sys
from pathlib import Path

import numpy as np
from jaxtyping import Array, PyTree
from matplotlib.figure import Figure

from jaxdyn import experiment
from jaxdyn.stats import mean_interval
from jaxdyn.text import longrun, training_run
from jaxdyn.theories.snap import text as fig7

TALKS = ("training:snap-figure-7",)

SCALES = {
    "quick": {"base": training_run.TrainingRun(), "layers": (1, 3), "seeds": (0, 1, 2), "every": 100},
    "paper": {
        "base": training_run.TrainingRun(max_words=0, width=200, hidden=200),
        "layers": (1, 3),
        "seeds": (0, 1, 2),
        "every": 100,
    },
}
VARIANTS = {"trained": {}, "queries and keys fixed": {"query_key": 0.0}, "words shuffled": {"shuffled": True}}
SHOWN = (0, 500, 1000, 1500)
OPTIONS = {
    "--text": {"default": "topics", "metavar": "PATH", "help": "a WikiText folder or a plain file (default: Python's own manual)"},
    "--layers": {"type": int, "nargs": "+", "metavar": "L", "help": "numbers of layers (default: 1 3)"},
    "--seeds": {"type": int, "nargs": "+", "metavar": "SEED", "help": "seeds (default: 0 1 2)"},
}


def train(s: training_run.TrainingRun, variant: str, seed: int, out: Path) -> longrun.Run:
    """One run; records the attention maps of all texts in the window."""
    shown = fig7.columns_shown(s)

    def observe(built: training_run.Built, params: PyTree) -> dict[str, Array]:
        maps = fig7.attention_map(built.net, params, shown, s.length)
        return {"maps": maps, "entropy": fig7.entropy_share(maps), "top three": fig7.top_three(maps)}

    return training_run.long_run(s, seed, out / "runs" / f"L{s.layers}_{variant.replace(' ', '_')}_seed{seed}.run", observe)


def numbers(run: longrun.Run) -> dict[str, float]:
    """A run's numbers: its attention's entropy and top three at the start and the end, and how much it moved early and late."""
    at = [int(np.flatnonzero(run.steps == step)[0]) for step in SHOWN]
    maps = run.records["maps"][at]
    early, late = (float(np.mean(fig7.movement(maps[i], maps[i + 1]))) for i in (0, 2))
    start, end = (float(run.records["entropy"][i].mean()) for i in (at[0], at[-1]))
    top = [float(run.records["top three"][i].mean()) for i in (at[0], at[-1])]
    values = {"entropy at 0": start, "entropy at 1500": end, "entropy ratio": end / start}
    values |= {"top 3 at 0": top[0], "top 3 at 1500": top[1], "moved 0-500": early, "moved 1000-1500": late}
    return values | {"movement ratio": late / early if early else float("nan")}


def rows(runs: dict[tuple[int, str], list[longrun.Run]]) -> list[dict]:
    """Means over seeds, half of the ratios' 95% intervals, and whether both marks are met."""
    table = []
    for (layers, variant), group in runs.items():
        each = [numbers(r) for r in group]
        row = {"layers": layers, "run": variant, "seeds": len(group)}
        for name in each[0]:
            values = np.array([e[name] for e in each])
            row[name] = float(values.mean())
            if name in fig7.MARKS and len(values) > 1:
                _, low, high = mean_interval(values, "seed")
                row["+- " + name] = float(high - low) / 2
        row |= {f"{name} < {mark}": str(row[name] < mark) for name, mark in fig7.MARKS.items()}
        table.append(row)
    return table


def draw(runs: dict[tuple[int, str], list[longrun.Run]], fig: Figure) -> None:
    """Maps of the first seed's first text, a row for each depth and variant."""
    panels = fig.subplots(len(runs), len(SHOWN), squeeze=False)
    for number, (line, ((layers, variant), group)) in enumerate(zip(panels, runs.items(), strict=True)):
        for ax, step in zip(line, SHOWN, strict=True):
            run = group[0]
            image = run.records["maps"][int(np.flatnonzero(run.steps == step)[0]), 0]
            ax.imshow(image, vmin=0, vmax=0.5, interpolation="nearest", cmap="magma")
            ax.set(xticks=[], yticks=[])
            ax.grid(visible=False)
            if number == 0:
                ax.set_title(f"step {step}")
        line[0].set_ylabel(f"L = {layers}\n{variant}")


def run(scale: str, out: Path, **chosen: object) -> None:
    """Train, print the numbers, draw the maps."""
    plan = SCALES[scale] | {k: v for k, v in chosen.items() if v is not None}
    runs: dict[tuple[int, str], list[longrun.Run]] = {}
    for layers in plan["layers"]:
        for variant, fields in VARIANTS.items():
            s = fig7.setting(plan["base"], layers, text=plan["text"], every=plan["every"], **fields)
            runs[layers, variant] = [train(s, variant, seed, out) for seed in plan["seeds"]]
    experiment.table(out, "attention", rows(runs), "the lowest layer's attention; entropies as shares of a uniform query's")
    experiment.figure(out, "snap_fig7", lambda fig: draw(runs, fig), (8.0, 2.0 * len(runs)))


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__, options=OPTIONS))
