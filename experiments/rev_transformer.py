"""Reversal curse and chain of thought in GPT-2 style transformers (arXiv:2405.04669, section 5): curves, heat maps, variants.

Mean NLL of training and held-out answers along training, logits between entities with and without the relation that asks, cosines
of embeddings, facts in context (no curse), triples whose members share a token (the answer carries over), and ablations.
Quick scale: V = 80, width 64, two layers, 400 epochs; minutes on two cores. Paper scale: V = 800, width 768, 24 layers, 3000
epochs, ten seeds, an accelerator; an interrupted sweep resumes at the first run that is not done.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

import jaxdyn as jd
from jaxdyn import experiment, plotting
from jaxdyn.theories.rev.mlt import logits
from jaxdyn.theories.rev.mlt.trial import PAPER, Deep, trial

SEEDS = {"quick": (10, 3), "paper": (10, 10)}  # of the two tasks, and of each variant
CURVES = (("train", "training", "third"), ("validation", "held out", "measured"))
REFERENCE = {  # an independent implementation at quick scale, two seeds
    ("reversal", "training NLL, end"): ".012",
    ("reversal", "held-out NLL, epoch 100"): "4.93, 4.97",
    ("reversal", "held-out NLL, end"): "5.54, 5.50",
    ("cot", "training NLL, end"): ".018",
    ("cot", "held-out NLL, epoch 100"): "4.56, 4.58",
    ("cot", "held-out NLL, end"): "5.26, 5.81",
}
SHOWN = {"quick": (2, 5, 10, 20, 50), "paper": (10, 20, 50, 100, 200, 500)}  # training triples with relevant tokens
SHORT = {"quick": {"epochs": 100}, "paper": {}}
ABLATIONS: dict[str, dict[str, tuple]] = {
    "quick": {"layers": (4,), "position": ("none", "rotary"), "vocabulary": (20,), "word": (2, 3)},
    "paper": {"layers": (12, 48), "position": ("none", "rotary"), "vocabulary": (20, 50, 200, 2000), "word": (2, 3)},
}
SWITCHES = {"embeddings": "frozen", "loss": "sequence"}


def run(scale: str, out: Path) -> None:
    base = PAPER if scale == "paper" else jd.grid(Deep)
    main_seeds, seeds = SEEDS[scale]

    def sweep(name: str, n: int = seeds, **fields: Any) -> xr.Dataset:
        return experiment.sweep(out, f"{name}_{scale}", trial, base.replace(**fields), n, chunk=1)

    tasks = {task: sweep(task, main_seeds, task=task) for task in ("reversal", "cot")}
    experiment.table(out, "tasks", [row for task, ds in tasks.items() for row in task_rows(task, ds)], "NLL and z-scores")
    experiment.figure(out, "nll", lambda fig: draw_curves(fig, tasks), (9.0, 3.6))
    for read in logits.READS:
        experiment.figure(out, f"logits_{read}", lambda fig, read=read: draw_maps(fig, tasks, read), (10.0, 6.4))
    context = sweep("context", task="context", loss="sequence", vocabulary=400 if scale == "paper" else 80, **SHORT[scale])
    size = logits.sizes("relevant", base.base.vocabulary)
    shares = [n / size.train_facts for n in SHOWN[scale]]
    relevant = sweep("relevant", task="relevant", shown=shares, **SHORT[scale])
    relevant = relevant.assign_coords(shown=list(SHOWN[scale]))
    experiment.figure(out, "variants", lambda fig: draw_variants(fig, context, relevant), (9.0, 3.6))
    runs = [("as above", tasks["reversal"])]
    runs += [(f"{name} {value}", sweep("reversal", **{name: value})) for name, value in SWITCHES.items()]
    runs += [(f"{name} {v}", sweep("reversal", **{name: v})) for name, values in ABLATIONS[scale].items() for v in values]
    experiment.table(out, "ablations", [ablation_row(*one) for one in runs], "Reversal: what is changed, and NLL at the end")
    for name, ds in {**tasks, "context": context, "relevant": relevant}.items():
        experiment.save(out, name, ds.drop_vars("z", errors="ignore"))


def spread(values: xr.DataArray) -> dict[str, float]:
    """Mean, least and largest value over runs."""
    return {"mean": float(values.mean()), "least": float(values.min()), "largest": float(values.max())}


def task_rows(task: str, ds: xr.Dataset) -> list[dict]:
    """NLL at two times, its lowest value, and how far diagonals stand out, next to the reference."""
    guess, held = float(ds.predicted_validation.max()), ds.sizes["held"]
    measured = {
        "training NLL, end": ds.measured_train,
        "held-out NLL, epoch 100": ds.validation.sel(epoch=100),
        "held-out NLL, end": ds.measured_validation,
        "held-out NLL, lowest on the way": ds.lowest,
    }
    for read in logits.READS:
        for name in ds["map"].values:
            z = ds.z.sel(read=read, map=name)
            measured[f"z, {name}, {read}, training"] = z.isel(given=slice(None, -held)).mean("given")
            known = name != "A to C" if task == "cot" else ds.forward == (name == "A to B")
            rest = z.isel(given=slice(-held, None)).rename(given="held")
            for label, mask in (("learned", known), ("unseen", ~np.asarray(known) if task == "cot" else ~known)):
                part = rest.where(mask).mean("held") if np.any(mask) else None
                measured |= {} if part is None else {f"z, {name}, {read}, one-way, {label}": part}
    if task == "reversal":
        cosine = xr.DataArray(np.asarray(logits.diagonal_z(ds.cosine.transpose(..., "given", "answer").values)))
        measured["z, cosines of embeddings A, B"] = cosine.mean(cosine.dims[-1])
    head = {"task": task, "ln V": guess}
    return [
        {**head, "quantity": name, **spread(values), "reference": REFERENCE.get((task, name))} for name, values in measured.items()
    ]


def ablation_row(name: str, ds: xr.Dataset) -> dict:
    """Training NLL, held-out NLL and the guess of a variant."""
    held = spread(ds.measured_validation)
    return {
        "changed": name,
        "runs": ds.measured_train.size,
        "training NLL, largest": float(ds.measured_train.max()),
        "guess": float(ds.predicted_validation.max()),
        **{f"held-out NLL, {k}": v for k, v in held.items()},
    }


def _curves(ax: Axes, ds: xr.Dataset, title: str) -> None:
    for name, label, color in CURVES:
        plotting.band(ax, ds.epoch, ds[name].transpose(..., "epoch"), label, color)
    ax.axhline(float(ds.predicted_validation.max()), ls="--", color=plotting.COLORS["theory"], label=r"uniform guess, $\ln V$")
    ax.set(yscale="log", xlabel="epoch", ylabel="NLL of the last entity", title=title)


def draw_curves(fig: Figure, tasks: dict[str, xr.Dataset]) -> None:
    """Training and held-out NLL of both tasks: medians and 90% of runs."""
    for ax, (ds, title) in zip(fig.subplots(1, 2), zip(tasks.values(), ("reversal", "chain of thought"), strict=True), strict=True):
        _curves(ax, ds, title)


def _map(ax: Axes, values: np.ndarray, title: str, train: int, forward: int) -> None:
    image = ax.imshow(values, interpolation="nearest")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    for place, style in ((train, "-"), (train + forward, ":")):
        if train <= place < len(values):
            ax.axhline(place - 0.5, color="white", lw=1, ls=style)
            ax.axvline(place - 0.5, color="white", lw=1, ls=style)
    ax.set_title(title, fontsize=9)
    ax.grid(False)
    ax.figure.colorbar(image, ax=ax, shrink=0.85)


def draw_maps(fig: Figure, tasks: dict[str, xr.Dataset], read: str) -> None:
    """One run: logits in both directions and cosines of embeddings; below, the three logits of the chain of thought.

    The bright block of cosines: tokens that are never an answer are pushed one way, given and read by the same embedding.
    """
    top, bottom = fig.subplots(2, 3)
    given = "entity alone" if read == "alone" else "entity and relation"
    fig.suptitle(f"given: {given}. Training facts, then (line) pairs known as A to B, then (dotted) as B to A", fontsize=10)
    ds = tasks["reversal"].isel(seed=0)
    forward = ds.forward.values.astype(bool).ravel()
    train = ds.sizes["given"] - len(forward)
    order = np.concatenate([np.arange(train), train + np.argsort(~forward, kind="stable")])
    ds = ds.isel(given=order, answer=order)
    pictures = [(ds.logits.sel(read=read, map=name), f"reversal: logits, {name}") for name in ds["map"].values]
    for ax, (values, title) in zip(top, [*pictures, (ds.cosine, "reversal: cosines, A and B")], strict=True):
        _map(ax, values.transpose(..., "given", "answer").values.squeeze(), title, train, int(forward.sum()))
    cot = tasks["cot"].isel(seed=0)
    train = cot.sizes["given"] - cot.sizes["held"]
    for ax, name in zip(bottom, cot["map"].values, strict=True):
        values = cot.logits.sel(read=read, map=name).transpose(..., "given", "answer").values.squeeze()
        _map(ax, values, f"chain of thought: logits, {name}", train, cot.sizes["held"])
    for ax in (top[0], bottom[0]):
        ax.set(xlabel="answer", ylabel="given entity")


def draw_variants(fig: Figure, context: xr.Dataset, relevant: xr.Dataset) -> None:
    """Probability of the held-out answer in context; held-out NLL with relevant tokens, by training triples."""
    left, right = fig.subplots(1, 2)
    for name, label, color in CURVES:
        plotting.band(left, context.epoch, np.exp(-context[name].transpose(..., "epoch")), label, color)
    left.set(xlabel="epoch", ylabel="geometric mean probability", title=r"in context: $x \to y \Leftrightarrow y \leftarrow x$")
    n = relevant.shown
    for name, label, color in CURVES:
        plotting.band(right, n, relevant[f"measured_{name}"].transpose(..., "shown"), label, color, marker="o")
    right.axhline(float(relevant.predicted_validation.max()) / 2, ls="--", color=plotting.COLORS["theory"], label=r"$\ln V$")
    right.set(
        xscale="log", yscale="log", xlabel="training triples", ylabel="NLL at the end", title=r"relevant tokens: $A_i = (a, i)$"
    )
    right.set_xticks(n.values, [str(int(x)) for x in n.values])
    right.minorticks_off()


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__))
