"""Which trained networks have learned the task: those that answer at least :data:`LEARNED` of all problems right."""

from __future__ import annotations

import numpy as np
import xarray as xr

import jaxdyn as jd

LEARNED = 0.8
STARTS = f"starts from which Coconut answers at least {LEARNED:.0%} right"
THREE_HOPS = {"hops": 3, "width": 64, "heads": 4, "hidden": 128, "lr": 2e-3, "samples": 60, "first": 0.6}  # 7 of 8 learned it
SETUP = (
    "Decoders of {layers} layers and width {width} learn from scratch which of two candidates can be reached from a root: two "
    "trees of random names, with a candidate {hops} steps from the root of each. Training: {samples} times {every} steps of "
    "Adam, each on {batch} new problems, at peak rate {lr}. Then {graphs} new problems are asked; {seeds} seeds."
)
COUNTED = f" Networks that answer fewer than {LEARNED:.0%} right do not count."
BY_COCONUT = f"{SETUP} Training is by Coconut, with {{hops}} thoughts.{COUNTED}"


def starts(accuracy: xr.DataArray, level: float) -> jd.Reading:
    """The share of starts from which a network learns the task: means over few starts hang on a single one that fails."""
    return jd.share_reading(STARTS, (accuracy >= LEARNED).where(accuracy.notnull()), over="seed", level=level)


def learners(ds: xr.Dataset) -> xr.DataArray:
    """Whether each run answers with all its thoughts."""
    return ds.measured_answered.isel(inputs=-1, drop=True) >= LEARNED


def able(ds: xr.Dataset) -> tuple[jd.Check, xr.DataArray]:
    """The gate, and which runs answer with all their thoughts; the others do not count."""
    flags = learners(ds)
    return jd.gate("networks that learned the task", flags.sum("seed"), at_least=2), flags


def among_learners(values: xr.DataArray, flags: xr.DataArray) -> xr.DataArray:
    """The values of networks that learned; of all of them if fewer than two did, so that a control is judged by what it shows."""
    return values.where(flags | (flags.sum("seed") < 2))


def shown(ds: xr.Dataset) -> xr.Dataset:
    """For figures and tables: the networks that learned the task; all of them if none did."""
    learned = np.flatnonzero(learners(ds).values.ravel())
    return ds.isel(seed=learned) if learned.size else ds
