"""Reversal curse and chain of thought in the one-layer transformer, trained by batch-1 SGD (arXiv:2405.04669, Theorems 3 and 4).

Probabilities of trained, reversed, indirect and chained answers next to the exact law of the mean (a mixture of clocks over the
visits of a row), its gradient flow, and the theorem's exponent; the model whose query is among its own keys next to the theorem's;
and the fluctuation of a row that must serve two targets. Reference numbers: the law evaluated independently, and an independent
run of the two models.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import experiment, plotting
from jaxdyn.theories.rev.one_layer import OneLayer, trial

TALKS = ("training:rev-theorem-3", "training:rev-theorem-4")

STEPS = {"quick": 10_000, "paper": 100_000}
SEEDS = {"quick": 8, "paper": 64}  # of the smaller sweeps
WIDE = jd.grid(OneLayer, vocabulary=1000, test_indices=20)
KEYS = jd.grid(OneLayer, vocabulary=60, train_indices=8, test_indices=4, steps=60_000, context=["entity", "both"])
LAW = {  # N = 100, M = 1000, eta = .5: mean probability of the target and of another token, flow, exponent of the flow
    1_000: (0.16575979, 8.35075e-4, 0.11589999, 0.74400),
    10_000: (0.97549390, 2.45306e-5, 0.97528960, 0.91630),
    100_000: (0.99795693, 2.04512e-6, 0.99795252, 0.94531),
}
RUNS = {  # last step of M = 60: mean and least training probability, largest test probability
    ("reversal", "entity"): (0.9993, None, 0.016667),
    ("reversal", "both"): (0.9993, None, 0.0111),
    ("cot", "entity"): (0.749, 0.17, 1.8e-5),
    ("cot", "both"): (0.998, 0.995, 1.3e-4),
}
SHARED = jd.grid(OneLayer, task="cot", train_indices=6, eta=[0.5, 0.25, 0.1, 0.05], steps=20_000)


def run(scale: str, out: Path) -> None:
    wide = {"reversal": WIDE.replace(train_indices=40, steps=STEPS[scale])}
    wide["cot"] = WIDE.replace(task="cot", train_indices=20, steps=STEPS[scale])
    runs = {task: experiment.sweep(out, task, trial, grid, 64) for task, grid in wide.items()}
    keys = {task: experiment.sweep(out, f"keys_{task}", trial, KEYS.replace(task=task), SEEDS[scale]) for task in wide}
    shared = experiment.sweep(out, "shared", trial, SHARED, 4 * SEEDS[scale])
    experiment.table(out, "law", law_rows(runs["reversal"]), "Batch-1 SGD, N = 100, M = 1000, eta = .5: 64 seeds next to the law")
    experiment.table(out, "keys", key_rows(keys), f"Keys of the attention, M = 60, last step, {SEEDS[scale]} seeds")
    experiment.table(out, "shared", shared_rows(shared), "A row with two targets: share of one, and its fluctuation")
    experiment.figure(out, "rev_training", lambda fig: draw(fig, runs, keys["cot"]), (11.0, 3.8))
    for name, ds in runs.items():
        experiment.save(out, f"{name}_runs", ds)


def law_rows(ds: xr.Dataset) -> list[dict]:
    """Means over seeds next to the law and the reference, at the reference's times."""
    rows = []
    for i, t in enumerate(ds.t.isel(seed=0).values):
        if int(t) not in LAW:
            continue
        one, (hit, other, flow, exponent) = ds.isel(record=i), LAW[int(t)]
        mean, law = one.measured_mean, one.predicted_mean.isel(seed=0)
        error = mean.std("seed", ddof=1) / np.sqrt(mean.sizes["seed"])
        exact, in_flow = law, one.flow_mean.isel(seed=0)
        flow_exponent = np.log(999 / (2 * (1 - in_flow.sel(token="target")))) / np.log(one.s.isel(seed=0))
        for name, ours, spread, theory, reference in (
            ("target", mean.sel(token="target").mean(), error.sel(token="target"), exact.sel(token="target"), hit),
            ("another token", mean.sel(token="other").mean(), error.sel(token="other"), exact.sel(token="other"), other),
            ("target in the flow", None, None, in_flow.sel(token="target"), flow),
            ("exponent of the flow", None, None, flow_exponent, exponent),
            ("reversed target, largest", one.measured_test.max(), None, one.predicted_test.max(), 1e-3),
        ):
            numbers = {"SGD": ours, "s.e.": spread, "law": theory, "reference": reference}
            rows.append({"t": int(t), "quantity": name} | {k: None if v is None else f"{float(v):.6g}" for k, v in numbers.items()})
    return rows


def key_rows(keys: dict[str, xr.Dataset]) -> list[dict]:
    """Training and test probabilities with x1 or both tokens as keys, next to the reference run."""
    rows = []
    for (task, context), reference in RUNS.items():
        end = keys[task].sel(context=context).isel(record=-1)
        ours = (float(end.train.mean()), float(end.train.min()), float(end.measured_test.max()))
        for name, value, known in zip(("train, mean", "train, least", "test, largest"), ours, reference, strict=True):
            rows.append(
                {"task": task, "keys": "x1" if context == "entity" else "x1, x2", "p": name, "ours": value, "reference": known}
            )
    return rows


def shared_rows(ds: xr.Dataset) -> list[dict]:
    """Mean and standard deviation of a target's share over rows, and the standard deviation to first order in eta."""
    rows = []
    for eta in ds.eta.values:
        p = ds.measured_share.sel(eta=eta).isel(record=-1)
        share = (p / p.sum("target")).isel(target=0)
        numbers = {"share": share.mean(), "sd": share.std(ddof=1), "sqrt(eta)/4": eta**0.5 / 4}
        numbers["both together"] = p.sum("target").mean()
        rows.append({"eta": float(eta)} | {name: float(v) for name, v in numbers.items()})
    return rows


def _curves(ax: Axes, ds: xr.Dataset, name: str, dim: str, label: str, color: str) -> None:
    plotting.band(ax, ds.t.isel(seed=0).values, ds[name].transpose("seed", dim, "record").values, label, color)


def draw(fig: Figure, runs: dict[str, xr.Dataset], keys: xr.Dataset) -> None:
    """Reversal next to the law; chain of thought; both kinds of keys. Medians and 90% of sequences and runs."""
    left, middle, right = fig.subplots(1, 3, sharey=True)
    reversal, cot = runs["reversal"], runs["cot"]
    t, law = reversal.t.isel(seed=0), reversal.predicted_mean.isel(seed=0).sel(token="target")
    _curves(left, reversal, "measured_bound", "sequence", "trained", "third")
    left.plot(
        t, reversal.measured_mean.sel(token="target").mean("seed"), "o", color=plotting.COLORS["third"], label="trained, mean"
    )
    left.plot(t, law, "--", color=plotting.COLORS["theory"], label="mean: mixture of clocks")
    left.plot(t, reversal.flow_mean.isel(seed=0).sel(token="target"), ":", color=plotting.COLORS["theory"], label="gradient flow")
    _curves(left, reversal, "measured_test", "test", "reversed", "measured")
    left.axhline(1e-3, ls="--", color=plotting.COLORS["control"], label="1/M")
    direct = cot.assign(direct=cot.measured_bound.where(cot.of_test))
    _curves(middle, direct, "direct", "sequence", "direct, test indices", "third")
    _curves(middle, cot, "measured_chain", "test", "chain of two steps", "fourth")
    _curves(middle, cot, "measured_test", "test", "indirect, one step", "measured")
    other = cot.predicted_mean.isel(seed=0).sel(token="other")
    middle.plot(t, other, "--", color=plotting.COLORS["theory"], label="indirect: mean by the clock")
    middle.axhline(1e-3, ls="--", color=plotting.COLORS["control"], label="1/M")
    for context, name, style in (("entity", "x1", ":"), ("both", "x1, x2", "-")):
        part = keys.sel(context=context)
        time = part.t.isel(seed=0)
        for target, color in (("direct", "third"), ("indirect", "fourth")):
            values = part.measured_share.sel(target=target).mean(("seed", "index"))
            right.plot(time, values, style, color=plotting.COLORS[color], label=f"training, {target}; keys {name}")
        values = part.measured_test.mean(("seed", "test"))
        right.plot(time, values, style, color=plotting.COLORS["measured"], label=f"test, indirect; keys {name}")
    right.axhline(1 / 60, ls="--", color=plotting.COLORS["control"], label="1/M")
    for ax, title in ((left, "reversal"), (middle, "chain of thought"), (right, "chain of thought, M = 60, means")):
        ax.set(xscale="log", yscale="log", xlabel="steps t", title=title)
        ax.legend(fontsize=6.5)
    left.set_ylabel("probability of the target")


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__))
