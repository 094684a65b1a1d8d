"""Boolean hypercube: contrastive loss and downstream accuracy of codes and trained encoders, next to the published table.

Quick: the small cube of the claims (5 relevant bits of 10), whose losses have closed forms of their own; the published numbers
are of the large one. `--scale paper`: the cube that reproduces the published linear loss (10 relevant bits of 50, batches of 512,
12 000 steps; hours of CPU, minutes of an accelerator). Figure: accuracy against loss along training, stars at the codes f (relevant
bits) and g (irrelevant ones). An interrupted run resumes. Paper: arXiv 2202.14037.
"""

import sys
from pathlib import Path

import jax
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import experiment, plotting
from jaxdyn.stats import mean_interval
from jaxdyn.theories.hyper import dynamics as theory
from jaxdyn.theories.hyper import linear_mlp, published, tie_table_losses

TALKS = ("training:hyper-table", "attention:hyper-figure")

SMALL = {"relevant": 5.0, "temperature": 0.5, "batch": 32, "dim": 10.0, "width": 10, "inputs": 10, "hidden": 64}
SCALES = {
    "quick": SMALL | {"steps": 6000, "records": 12, "examples": 1000, "seeds": 5},
    "paper": published.CONSTANTS | {"steps": 12_000, "records": 12, "examples": 5000, "tasks": 10, "seeds": 5},
}
RATES = {"quick": {"adam": 3e-3, "sgd": 1.0}, "paper": {"adam": 1e-3, "sgd": 1.0}}
ROWS = {
    "linear": {"encoder": "linear"},
    "MLP, SGD": {"encoder": "mlp", "optimizer": "sgd"},
    "MLP, Adam": {"encoder": "mlp"},
    "MLP, Adam with weight decay": {"encoder": "mlp", "decoupled": 1.0},
}
COLORS = ("third", "fifth", "measured", "theory")
OPTIONS = {
    "--seeds": {"type": int, "metavar": "N", "help": "number of seeds (default: 5)"},
    "--steps": {"type": int, "metavar": "N", "help": "steps of training, a multiple of 12 (default: 6000; 12000 at --scale paper)"},
    "--only": {"metavar": "ROW", "choices": tuple(ROWS), "help": "one row of the table (default: all)"},
}


def train(scale: str, out: Path, fields: dict, only: str | None) -> dict[str, xr.Dataset]:
    """One sweep a row, each in a folder of its own; a finished seed is not trained again."""
    fields = dict(fields)
    seeds, (every, rest) = fields.pop("seeds"), divmod(fields.pop("steps"), fields["records"])
    if rest or every < 1:
        raise jd.UsageError(f"--steps {every * fields['records'] + rest} is not allowed: it is a multiple of {fields['records']}")
    runs = {}
    for place, (name, change) in enumerate(ROWS.items()):
        if only in (None, name):
            rate = RATES[scale][change.get("optimizer", "adam")]
            grid = jd.grid(linear_mlp.Contrastive, lr=rate, every=every, **fields, **change)
            runs[name] = experiment.sweep(out, f"row{place}", linear_mlp.trial, grid, seeds, chunk=1 if scale == "paper" else 8)
    return runs


def written(out: Path, fields: dict) -> xr.Dataset:
    """Both codes that are written down."""
    same = {name: fields[name] for name in ("relevant", "temperature", "inputs", "batch")}
    batches = max(4, 4096 // fields["batch"])
    return experiment.sweep(
        out,
        "codes",
        tie_table_losses.tie_trial,
        jd.grid(tie_table_losses.Codes, first=same["relevant"], batches=batches, **same),
        4,
    )


def cells(loss: xr.DataArray, right: xr.DataArray) -> dict:
    """Means with half of their 95% intervals; accuracy in per cent."""
    line = {}
    for name, values in (("loss", loss), ("accuracy", 100 * right)):
        mean, low, _ = (float(x) for x in mean_interval(values, "seed"))
        line |= {name: mean, f"+- {name}": mean - low if np.isfinite(low) else None}
    return line


def rows(runs: dict[str, xr.Dataset], ds: xr.Dataset) -> list[dict]:
    """The table, ours next to the published one."""
    lines = [
        {"encoder": "f, relevant bits", **cells(ds.measured_mean, ds.measured_relevant)},
        {"encoder": "g, irrelevant bits", **cells(ds.measured_other, ds.measured_irrelevant)},
    ]
    for name, part in runs.items():
        end = part.isel(step=-1)
        lines.append({"encoder": name, **cells(end.measured_loss, end.measured_accuracy)})
    for line in lines:
        (loss, _), (right, _) = published.TABLE.get(line["encoder"], ((None, None), (None, None)))
        line |= {"paper loss": loss, "paper accuracy": right}
    return lines


def forms(fields: dict) -> list[dict]:
    """Losses in closed form, of this cube and of the published one."""
    lines = []
    with jax.enable_x64(True):
        for name, f in (("this cube", fields), ("cube of the paper", published.CONSTANTS)):
            n, t, k, d = 2.0 * f["batch"] - 2, f["temperature"], f["relevant"], f["dim"]
            moments = {
                "relevant bits": theory.bit_moment(k, t),
                "sphere": theory.sphere_moment(d, t),
                "simplex": theory.simplex_moment(2.0**k, t),
            }
            lines.append({"": name} | {code: float(theory.loss(n, c, t)) for code, c in moments.items()})
    linear, best = published.TABLE["linear"][0][0], published.TABLE["exists f"][0][0]
    return [*lines, {"": "paper's table", "relevant bits": linear, "sphere": None, "simplex": best}]


def draw(runs: dict[str, xr.Dataset], ds: xr.Dataset, fig: Figure) -> None:
    """Accuracy against loss along training, mean over runs, and the codes."""
    ax = fig.subplots()
    for (name, part), color in zip(runs.items(), COLORS, strict=False):
        loss, right = (part[n].isel(step=slice(1, None)).mean("seed") for n in ("measured_loss", "measured_accuracy"))
        ax.plot(loss, 100 * right, "-o", ms=3, color=plotting.COLORS[color], label=name)
        ax.plot(loss[-1], 100 * right[-1], "s", ms=7, color=plotting.COLORS[color])
    for name, loss, right in (
        ("f", ds.measured_mean, ds.measured_relevant),
        ("g", ds.measured_other, ds.measured_irrelevant),
    ):
        ax.plot(float(loss.mean()), 100 * float(right.mean()), "*", ms=12, color="black")
        ax.annotate(name, (float(loss.mean()), 100 * float(right.mean())), xytext=(6, 4), textcoords="offset points")
    first = next(iter(runs.values()))
    ax.axvline(float(first.predicted_least.mean()), linestyle="--", color=plotting.COLORS["control"], label="bound of the sphere")
    ax.invert_xaxis()
    ax.set(xlabel="contrastive loss on new batches", ylabel="downstream accuracy, %")


def run(scale: str, out: Path, **chosen: object) -> None:
    """Sweep, print, draw and save."""
    only = chosen.pop("only")
    fields = SCALES[scale] | {k: v for k, v in chosen.items() if v is not None}
    runs, ds = train(scale, out, fields, only), written(out, fields)
    experiment.table(out, "losses", forms(fields), "Contrastive losses in closed form")
    experiment.table(out, "encoders", rows(runs, ds), f"{fields['seeds']} seeds, {fields['steps']} steps; paper: the large cube")
    experiment.figure(out, "hyper_table", lambda fig: draw(runs, ds, fig), (6.5, 4.2))
    for name, part in runs.items():
        place = list(ROWS).index(name)
        experiment.save(out, f"row{place}", part)


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__, options=OPTIONS))
