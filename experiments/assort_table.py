"""Token Assorted: right solutions and generated tokens by how a trace is trained on, next to the paper's rows.

Small decoders learn searches in chains, written in sentences of 8 tokens: with the solution alone, the trace as text, or codes of a
trained autoencoder in the place of all of it, of a part that grows, of a random part, and of a random part with codes that say
nothing. The paper's tasks and networks are of another kind (arXiv 2502.03275: ProsQA, and mathematics with Llama-3.1-8B), and its
rows serve as references. An interrupted run resumes.
"""

import sys
from pathlib import Path

import xarray as xr
from matplotlib.figure import Figure

from jaxdyn import experiment, plotting
from jaxdyn.theories.assort.order import LABELS, PAPER, right, trial
from jaxdyn.theories.assort.order import QUICK as CLAIMED
from jaxdyn.theories.assort.published import REPLACED, SYNTHETIC, TASKS

TALKS = ("practical:assort-better", "practical:assort-shorter")

QUICK = CLAIMED.replace(steps=2400, samples=12)  # twice as long as in the claims
SCALES = {"quick": (QUICK, 4), "paper": (PAPER, 3)}
OPTIONS = {
    "--height": {"type": int, "metavar": "N", "help": "edges from a root to its leaves (default: 2; 4 at --scale paper)"},
    "--codes": {"type": int, "metavar": "N", "help": "codes of the autoencoder (default: 32; 128 at --scale paper)"},
    "--rate": {"type": int, "metavar": "N", "help": "tokens per code (default: 8)"},
    "--steps": {
        "type": int,
        "metavar": "N",
        "help": "steps of training (default: 2400, a multiple of 12; 4000 at --scale paper, of 4)",
    },
    "--seeds": {"type": int, "metavar": "N", "help": "number of seeds (default: 4; 3 at --scale paper)"},
}
COLORS = ("control", "theory", "third", "fourth", "measured", "control")


def rows(ds: xr.Dataset) -> list[dict]:
    """A line for each kind: right solutions (mean over runs), tokens and codes, next to the paper's rows."""
    lines = []
    for kind in ds.kind.values:
        share, (low, high) = right(ds, kind)
        end = ds.isel(step=-1).sel(kind=kind)
        line = {"sequences": LABELS[kind], "right, %": 100 * share, "low": 100 * low, "high": 100 * high}
        line |= {"tokens": float(end.measured_length.mean()), "codes": float(end.measured_used.mean())}
        paper = SYNTHETIC.get(str(kind), (None,) * len(TASKS))[TASKS.index("ProsQA")]
        line |= {"paper ProsQA, %": paper and paper.accuracy, "paper ProsQA, tokens": paper and paper.tokens}
        lines.append(line | {"paper mathematics, %": REPLACED.get(str(kind))})
    return lines


def draw(ds: xr.Dataset, fig: Figure) -> None:
    """Right solutions and generated tokens along training, by kind: means of the runs, and each run (thin)."""
    axes = fig.subplots(1, 2)
    steps = ds.steps.values.reshape(-1, ds.sizes["step"])[0]
    for kind, color in zip(ds.kind.values, COLORS, strict=True):
        style = "--" if kind == "permuted" else "-"
        for ax, name in zip(axes, ("measured_accuracy", "measured_length"), strict=True):
            curves = ds[name].sel(kind=kind).transpose("step", "seed")[1:]
            label = LABELS[str(kind)] if ax is axes[0] else None
            ax.plot(steps[1:], curves.mean("seed"), style, color=plotting.COLORS[color], label=label)
            ax.plot(steps[1:], curves, style, color=plotting.COLORS[color], lw=0.5, alpha=0.5)
    axes[0].axhline(0.5, linestyle=":", color=plotting.COLORS["control"])
    axes[0].set(xlabel="step", ylabel="right solutions", ylim=(0, 1.02))
    axes[1].set(xlabel="step", ylabel="generated tokens", ylim=(0, None))


def run(scale: str, out: Path, seeds: int | None = None, **chosen: object) -> None:
    """Sweep, print, draw and save."""
    grid, usual = SCALES[scale]
    grid = grid.replace(**{k: v for k, v in chosen.items() if v is not None})
    ds = experiment.sweep(out, "runs", trial, grid, seeds or usual, chunk=6)
    title = f"Right solutions (95% interval of the mean over runs) and tokens, {ds.sizes['seed']} seeds; paper: references only"
    experiment.table(out, "table", rows(ds), title)
    experiment.figure(out, "assort_table", lambda fig: draw(ds, fig), (10, 4))
    experiment.save(out, "table", ds)


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__, options=OPTIONS))
