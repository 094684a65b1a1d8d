"""Attention while a language model learns a text: it starts uniform, sharpens, and returns; or it collapses.

The entropy of each layer's attention along training, in a network of two layers, which differ: at rate .006 attention returns in
both, further in the top layer, as published at 1e-4 for a larger network; at .01 that of the bottom layer collapses, as in the
published runs at large rates. Sizes, rates and length were chosen after a look at seeds 0:8. With one layer, on WikiText-2, the
return is .28 nats (3 seeds, width 64, rate .001; interval .05 to .52) and .34 (1 seed of the published network, three epochs),
``benchmarks/results/joma_fig6.json``; ``--scale paper --set text=FOLDER`` judges it there. With a linear MLP attention returns as
far (``experiments/joma_fig8.py``): the return does not need the MLP's nonlinearity.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import PRNGKeyArray

import jaxdyn as jd
from jaxdyn import plotting, train
from jaxdyn.text import reading
from jaxdyn.text.reading import Reading
from jaxdyn.theories.joma import published

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CLAIMS", "judge_collapse", "judge_dip", "judge_return", "trial"]


def trial(s: Reading, key: PRNGKeyArray) -> jd.Observables:
    """Train on the text; entropy of each layer's attention along training, next to that of uniform attention."""
    built = reading.build(s, key)
    columns, k_drop = built.data
    data = jnp.asarray(columns), k_drop
    state, records = train.record(
        lambda state: built.step(state, *data), built.start, built.observe, samples=s.steps // s.every, every=s.every
    )
    uniform = jnp.full(s.layers, reading.uniform_entropy(s.length), s.dtype)
    return jd.observables(
        predicted={"start": jd.named(uniform, "layer")},
        measured={"start": jd.named(records.entropy[0], "layer")},
        recorded={
            "entropy": jd.named(records.entropy, "record layer"),
            "stable_rank": jd.named(records.stable_rank, "record layer"),
            "loss": jd.named(records.loss, "record"),
        },
        status=train.finite_status(state.params),
        coords={"record": range(0, s.steps + 1, s.every)},
    )


NEAR = 0.15  # nats between a curve and a published one that count as agreement
MARK = 0.2  # nats of a dip, and of a return, that count
LEVEL = 0.95  # of the intervals
COLLAPSED = 0.3  # nats below which published layers count as collapsed


def _two(ds: xr.Dataset) -> xr.Dataset:
    """The data, if they have a top and a bottom layer and enough seeds."""
    jd.need(ds, layer=2, seed=3)
    return ds


def _risen(ds: xr.Dataset) -> xr.DataArray:
    """Whether a layer's entropy ends ``MARK`` or more above its minimum; NaN where a run failed."""
    back = ds.entropy.isel(record=-1) - ds.entropy.min("record")
    return (back >= MARK).where(back.notnull())


def judge_dip(ds: xr.Dataset) -> list[jd.Check]:
    """Every layer starts within ``NEAR`` of uniform attention, and its entropy falls by ``MARK`` or more in most runs."""
    ds = _two(ds)
    fall = ds.entropy.isel(record=0) - ds.entropy.min("record")
    fell = (fall >= MARK).where(fall.notnull())
    return [
        jd.at_most("start: distance from uniform attention (nats)", abs(ds.measured_start - ds.predicted_start), NEAR),
        jd.share_within("share of runs in which a layer's entropy falls", fell, over="seed", low=0.5, level=LEVEL),
    ]


def judge_return(ds: xr.Dataset) -> list[jd.Check]:
    """The entropy of both layers returns by ``MARK`` or more in most runs; the top layer ends above the bottom layer."""
    end = _two(ds).entropy.isel(record=-1)
    ahead = end.isel(layer=-1, drop=True) - end.isel(layer=0, drop=True)
    return [
        jd.share_within("share of runs in which a layer's entropy returns", _risen(ds), over="seed", low=0.5, level=LEVEL),
        jd.mean_within("end of the top layer above that of the bottom layer (nats)", ahead, over="seed", low=0.1, level=LEVEL),
    ]


def judge_collapse(ds: xr.Dataset) -> list[jd.Check]:
    """The bottom layer's entropy ends low and does not return."""
    bottom = _two(ds).isel(layer=0).entropy
    back = bottom.isel(record=-1) - bottom.min("record")
    return [
        jd.mean_within("bottom layer: entropy at the end (nats)", bottom.isel(record=-1), over="seed", high=COLLAPSED, level=LEVEL),
        jd.mean_within("bottom layer: end above the minimum (nats)", back, over="seed", high=MARK, level=LEVEL),
    ]


def _never_rising(ds: xr.Dataset) -> xr.DataArray:
    """The least entropy up to each record."""
    return ds.entropy.copy(data=np.minimum.accumulate(ds.entropy.values, ds.entropy.get_axis_num("record")))


FALLING = jd.swap(entropy=_never_rising)
EXCHANGED = jd.swap(entropy=lambda ds: ds.entropy.isel(layer=slice(None, None, -1)).assign_coords(layer=ds.layer))
STILL = {"attention stays as it is at the start": jd.initial("record", "entropy")}


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Entropy of each layer, and the validation loss, along training."""
    left, right = fig.subplots(1, 2)
    for layer in ds.layer.values:
        color = "measured" if layer == ds.layer.values[-1] else "third"
        plotting.band(left, ds.record, ds.entropy.sel(layer=layer).transpose(..., "record"), f"layer {layer}", color)
    uniform = float(ds.predicted_start.max())
    left.axhline(uniform, linestyle="--", color=plotting.COLORS["theory"], label="uniform attention")
    at = np.array([0.0, 0.25, 1.0]) * float(ds.record.max())
    for layer, curve in published.ENTROPY[2, 1e-4].items():
        color = plotting.COLORS["measured" if layer == ds.layer.values[-1] else "third"]
        numbers = "→".join(f"{x:.2f}" for x in curve.values())
        left.plot(at, list(curve.values()), "sd"[layer], color=color, mfc="none", label=f"layer {layer} in the paper: {numbers}")
    left.set(xlabel="step", ylabel="entropy of attention (nats)")
    plotting.band(right, ds.record, ds.loss.transpose(..., "record"), "validation", "measured")
    right.set(xlabel="step", ylabel="loss (nats per word)")


SMALL = "(At small scale: two layers, width 64, the interpreter's manual with its 1000 most frequent words, 280 steps of Adam.)"
PAPER = jd.grid(Reading, lr=1e-4, max_words=0, width=200, hidden=200, layers=2, steps=58_000, every=1000, windows=0)
STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Reading, lr=6e-3, max_words=1000, layers=2, steps=280, every=20),
    paper=PAPER,
    seeds=6,
    paper_seeds=3,
    evidence="network",
    bounds=jd.looked(at="0:8", confirmed="4000:4006"),
    source="arXiv:2310.00535, section 5, figure 6",
    plot=plot,
    caption=r"Left: entropy of each layer's attention along training (mean over validation windows and positions); dashed: "
    r"uniform causal attention; open squares and diamonds: start, minimum and end of the published two-layer runs at rate 1e-4 "
    r"(width 200, 58,000 steps; shown at the start, a quarter and the end of the axis). Right: validation loss. Lines are medians "
    r"over the runs, bands their central 90%.",
)

CLAIMS = (
    STUDY.claim(
        id="joma.text_dip",
        statement=r"In a language model that learns a text at rate .006, the entropy of each layer's attention starts within .15 "
        r"nats of that of uniform causal attention, $\ln(n!)/n$, and falls by at least .2 nats in most runs. "
        rf"{SMALL}",
        judge=judge_dip,
        controls={"the last record in place of the first": jd.swap(measured_start=lambda ds: ds.entropy.isel(record=-1))},
        rivals=STILL | {"uniform over twice as many words": jd.swap(predicted_start=reading.uniform_entropy(70))},
    ),
    STUDY.claim(
        id="joma.wiki_entropy",
        seeds=12,
        bounds=jd.looked(at="0:8", confirmed="18000000:18000012"),
        statement=r"In a language model that learns a text at rate .006, the entropy of each layer's attention falls and then "
        r"returns: in most runs it ends at least .2 nats above its minimum. The top layer ends at least .1 nats above the bottom "
        rf"layer, mean over seeds. {SMALL}",
        judge=judge_return,
        controls={
            "the bottom layer in place of the top layer": EXCHANGED,
            "rate 1e-2": jd.Control({"lr": 1e-2}, every_seed=True),
        },
        rivals=STILL | {"the entropy never rises": FALLING},
    ),
    STUDY.claim(
        id="joma.text_collapse",
        statement=r"In a language model that learns a text at the large rate .01, attention of the bottom layer collapses: its "
        r"entropy ends below .3 nats and less than .2 nats above its minimum, means over seeds. "
        rf"{SMALL}",
        quick=STUDY.quick.replace(lr=1e-2),
        paper=PAPER.replace(lr=1e-2),
        judge=judge_collapse,
        controls={"rate .006": {"lr": 6e-3}},
        rivals=STILL,
    ),
)
