"""What the optimizer changes in the synthetic runs of ``syn.py``: Adam's attention, and the sums that only descent conserves."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.snap import published
from jaxdyn.theories.snap.synthetic.syn import MEDIUM, Syn, medium_trial, small_trial

RISE = 0.02  # nats; the reference, to two decimals, has .03
OWN, COMMON = published.QUANTITIES[0], published.QUANTITIES[2]


def judge_adam(ds: xr.Dataset) -> list[jd.Check]:
    """No attention is left on common tokens, and the entropy among own tokens has risen."""
    jd.need(ds, seed=2)
    mass = abs(ds.measured_numbers - ds.predicted_numbers).sel(quantity=COMMON)
    rise = ds.curve.sel(quantity=OWN).isel(record=-1) - ds.curve.sel(quantity=OWN).isel(record=0)
    return [
        jd.at_most("mass of common tokens after all steps, difference from the predicted", mass, 0.01),
        jd.mean_within("rise of the entropy among own tokens, mean over seeds", rise, over="seed", low=RISE),
    ]


def everywhere(numbers: Sequence[float]) -> Callable[[xr.Dataset], xr.Dataset]:
    """These numbers as the prediction for every run."""
    return jd.swap(predicted_numbers=lambda ds: xr.DataArray(np.array(numbers), dims="quantity", coords={"quantity": ds.quantity}))


# Attention under Adam is that of gradient descent with momentum.
LIKE_DESCENT = everywhere(next(row.numbers for row in published.FIG5 if row.optimizer == "sgd"))


def plot_adam(ds: xr.Dataset, fig: Figure) -> None:
    """Entropy among own tokens, and mass of common tokens, along training."""
    left, right = fig.subplots(1, 2)
    for lr, color in zip(ds.lr.values, plotting.CYCLE, strict=False):
        part = ds.curve.sel(lr=lr)
        plotting.band(left, ds.record, part.sel(quantity=OWN), label=f"Adam, rate {lr:g}", color=color)
        plotting.band(right, ds.record, part.sel(quantity=COMMON), label=f"Adam, rate {lr:g}", color=color)
    left.axhline(published.START[0], linestyle="--", color=plotting.COLORS["control"], label="start")
    left.set(xlabel="iteration", ylabel="entropy, own tokens (nats)")
    right.set(xlabel="iteration", ylabel="mass of common tokens")


def judge_sums(ds: xr.Dataset) -> list[jd.Check]:
    """Sums of rows stay at their initial values, relative to the largest movement of a row's entries."""
    drift = abs(ds.measured_sums - ds.predicted_sums) / ds.moved.max("row")
    return [jd.at_most("change of a row's sum / largest movement of a row", drift, 1e-5)]


# Nothing is conserved, and a row's sum moves as far as its entries do.
UNCONSTRAINED = jd.swap(predicted_sums=lambda ds: ds.predicted_sums + ds.moved)


def plot_sums(ds: xr.Dataset, fig: Figure) -> None:
    """Final sums of rows against the initial ones, and how far the entries have moved meanwhile."""
    left, right = fig.subplots(1, 2)
    plotting.scatter(left, ds.predicted_sums, ds.measured_sums, "a row of Y or Z", log=False)
    left.set(xlabel="initial sum", ylabel="sum after 100 steps")
    ok = np.isfinite(np.ravel(ds.measured_sums))
    drift = np.ravel(abs(ds.measured_sums - ds.predicted_sums))[ok]
    right.plot(np.ravel(ds.moved)[ok], np.where(drift > 0, drift, np.nan), ".", alpha=0.4, label="a row of Y or Z")
    right.set(xscale="log", yscale="log", xlabel="movement of the entries, summed", ylabel="change of the sum")


CLAIMS = (
    jd.Study(
        trial=small_trial,
        quick=jd.grid(Syn, optimizer="adam", lr=[1.0]),
        seeds=10,
        paper_seeds=100,
        source="arXiv:2305.16380, Figure 5 (Adam)",
    ).claim(
        id="snap.adam",
        title="Adam drops common tokens but does not sharpen attention",
        statement="Under Adam attention behaves unlike the theory of gradient descent: in the setting of Figure 5, after 100 "
        "steps at rate 1, the common tokens' share of attention ends at .01 or less in every run, but among a class's own "
        "tokens attention does not sharpen: its entropy rises by at least .02 nats, on average over runs.",
        tested="{num_last} classes with a query each, {common} common tokens of weight 1 and {distinct} distinct tokens of "
        "weights .1 to 1 per class; {steps} steps of Adam at rate {lr} for decoder and attention, on batches of {batch} "
        "sequences of {length} tokens from a zero start, in float32; {seeds} seeds.",
        judge=judge_adam,
        evidence="network",
        bounds=jd.tuned(on="0:10", confirmed_on="83000000:83000010"),
        rivals={"attention does not move": jd.off(everywhere(published.START)), "Adam acts like gradient descent": LIKE_DESCENT},
        controls={"SGD with momentum": jd.Control({"optimizer": "sgd"}, breaks="Under Adam")},
        plot=plot_adam,
        caption="Entropy of the attention among a class's own tokens (left, dashed: the start) and attention mass of the "
        "common tokens (right) along training by Adam; median and central 90% over seeds, a colour for each learning rate.",
    ),
    jd.Study(
        trial=medium_trial,
        quick=MEDIUM.replace(lr=[0.5, 3.0], ratio=[1.0, 10.0]),
        seeds=20,
        paper_seeds=100,
        source="derived from arXiv:2305.16380, Lemma 1: both gradients lie in the space of vectors that sum to 0",
    ).claim(
        id="snap.invariants_sgd",
        title="SGD on sampled sequences conserves row sums",
        statement=r"In 100 steps at $\eta_Z$ of .5 to 3 and $\eta_Y/\eta_Z$ of 1 to 10 gradient descent with momentum on "
        "sampled sequences of finite length conserves the sum of every row of the decoder $Y$ and of the attention logits "
        "$Z$: in single precision they change by at most $10^{-5}$ of the movement, summed over its entries, of the row that "
        "moves most.",
        tested="{num_last} queries with {num_next_per_last} classes each, {common} common and {distinct} distinct tokens per "
        "class; {steps} steps of SGD with momentum {momentum} on batches of {batch} sequences of {length} tokens from a "
        r"random start, in float32, $\eta_Z$ of {lr}, $\eta_Y/\eta_Z$ of {ratio}; {seeds} seeds.",
        judge=judge_sums,
        evidence="network",
        bounds="derived: float32 rounding of a row's entries over the steps",
        rivals={"nothing is conserved: a row's sum moves as far as its entries": jd.off(UNCONSTRAINED)},
        controls={"Adam": {"optimizer": "adam", "lr": 0.5, "ratio": 1.0}},
        plot=plot_sums,
        caption="Left: the sum of each row of $Y$ and $Z$ after training against its initial value, with the line of "
        "equality. Right: change of the sum against the summed movement of the row's entries; rows without any change are "
        "left out. A point for each row of each run.",
    ),
)
