"""Laws by variants: in which of them each law holds at its own bound, and in which it fails."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import xarray as xr

import jaxdyn as jd
from jaxdyn.laboratory.variants import PLAIN, VARIANTS
from jaxdyn.theories.variants.homes import HOMES
from jaxdyn.theories.variants.model import LAWS, Varied, make_judge, make_plot, rivals, trial

FACTS = HOMES["facts"].fields | {"laws": "+".join(HOMES["facts"].laws)}
BRIEF = FACTS | {"steps": 200, "width": 32}
CLASSES = {"data": "classes", "laws": "collapse", "steps": 400, "every": 40, "lr": 0.1, "batch": 16}
ON_FACTS, ON_CLASSES = ["plain", "rotary positions", "RMS norm", "Adam"], ["plain", "learned positions", "RMS norm", "gated MLP"]
ALONE = "of the plain block alone, in which the law holds: in the others nothing would be decided by it"
CAPTION = "Error of the law until each step, by variant: mean over seeds with its 95% interval; dotted: the bound."
STUDY = jd.Study(
    trial=trial,
    evidence="network",
    quick=jd.grid(Varied, **BRIEF, variant=ON_FACTS),
    paper=jd.grid(Varied, **FACTS, width=64, variant=list(VARIANTS)),
    seeds=20,
    max_seeds=128,
    paper_seeds=32,
    bounds="derived: the law's own bound; which variants keep it was seen before",
    source="arXiv:1806.00900, theorem 2.2",
    tested="Transformers of {layers} layers and width {width} on 48 facts in one batch, for {steps} steps at the rate {lr} "
    "(Adam: .003), variant by variant; {seeds} seeds.",
    caption=CAPTION,
)
TERMINAL = dataclasses.replace(
    STUDY,
    quick=jd.grid(Varied, **CLASSES, width=32, variant=ON_CLASSES),
    paper=jd.grid(Varied, **CLASSES, width=64, variant=list(VARIANTS)),
    seeds=20,
    max_seeds=128,
    paper_seeds=32,
    tested="Transformers of {layers} layers and width {width} on four sequence classes, for {steps} steps at the rate {lr}, "
    "variant by variant; {seeds} seeds.",
)


def known_backwards(ds: xr.Dataset) -> xr.Dataset:
    """A control: of one-way facts the direction that is held out is known as well as the other."""
    both = ds.measured_reversal
    axis = next(str(dim) for dim in both.dims if str(dim).startswith("reversal_"))
    return ds.assign(measured_reversal=both.copy(data=np.broadcast_to(both.isel({axis: [1]}), both.shape)))


def as_at_start(name: str) -> Callable[[xr.Dataset], xr.Dataset]:
    """A control: what is measured is what it was at the start."""
    return jd.swap(**{f"measured_{name}": lambda ds: ds[f"measured_{name}"].isel(time=0, drop=True)})


CLAIMS = (
    STUDY.claim(
        id="variants.balance",
        title="Balance of queries and keys survives a norm, not rotations or Adam",
        statement=r"In a transformer of two layers on facts, what $W_Q^\top W_Q$ of a head has changed by in training is what "
        r"$W_K^\top W_K$ has, within 5% on average over starts, in the plain block and with RMS norm, and not with rotary "
        "positions nor with Adam.",
        judge=make_judge(LAWS["balance"], ("plain", "RMS norm"), ("rotary positions", "Adam")),
        controls={"weight decay": jd.Control({"weight_decay": 0.3, "variant": PLAIN}, why=ALONE, breaks="the plain block")},
        excused={
            f"data read: {name}: error of the law": "the statement is that the law fails there: data that keep it are against it"
            for name in ("rotary positions", "Adam")
        },
        rivals=rivals(LAWS["balance"]),
        plot=make_plot(LAWS["balance"]),
    ),
    STUDY.claim(
        id="variants.reversal",
        talks=("training:rev-theorem-3",),
        title="The reversal curse survives rotary positions, a norm and Adam",
        source="arXiv:2405.04669, theorem 3",
        statement="In a transformer of two layers on facts, of some of which one direction is held out, the right answer in that "
        "direction beats half of the answers of its kind, and in the trained direction as many as those of facts trained both ways "
        "do: in the plain block, with rotary positions, with RMS norm and with Adam, within .125 on average over starts.",
        judge=make_judge(LAWS["reversal"], ON_FACTS, (), learned=0.1),
        controls={"answers in the held-out direction are as in the trained one": known_backwards},
        rivals=rivals(LAWS["reversal"], fails=False),
        plot=make_plot(LAWS["reversal"]),
    ),
    TERMINAL.claim(
        id="variants.collapse",
        title="Class means and the read-out become one with a norm, not without",
        source="arXiv:2008.08186, section 2 (NC3)",
        statement="In a transformer of two layers and width 32 that has learned four sequence classes, class means of the last "
        "stream and the read-out's rows, both centred, have a cosine of at least .98 on average over starts with RMS norm, and "
        "less in the plain block, with learned positions, and with a gated MLP.",
        judge=make_judge(LAWS["collapse"], ("RMS norm",), ("plain", "learned positions", "gated MLP")),
        controls={"class means as at the start": as_at_start("collapse")},
        rivals=rivals(LAWS["collapse"], course=False),
        plot=make_plot(LAWS["collapse"]),
    ),
)
