"""Attention while a language model learns a text: it starts uniform, sharpens, and returns; or it collapses.

The entropy of each layer's attention along training, in a network of two layers, which differ: at rate .006 attention returns in
both, further in the top layer, as published at 1e-4 for a larger network; at .01 that of the bottom layer collapses, as in the
published runs at large rates. JoMA explains the return by the MLP's nonlinearity; attention returns with linear MLPs as well
(on WikiText-2 as far as with ReLUs: ``experiments/joma_fig8.py``). Sizes, rates and length were chosen after a look at seeds 0:8.
With one layer, on WikiText-2, the return is .28 nats (3 seeds, width 64, rate .001; interval .05 to .52) and .34 (1 seed of the
published network, three epochs), ``benchmarks/results/joma_fig6.json``; ``--scale paper --set text=FOLDER`` judges it there.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting, train
from jaxdyn.text import training_run
from jaxdyn.text.training_run import TrainingRun
from jaxdyn.theories.joma import published


def trial(s: TrainingRun, key: PRNGKeyArray) -> jd.Observables:
    """Train on the text; entropy of each layer's attention along training, next to that of uniform attention."""
    built = training_run.build(s, key)
    columns, k_drop = built.data
    data = jnp.asarray(columns), k_drop
    state, records = train.record(
        lambda state: built.step(state, *data), built.start, built.observe, samples=s.steps // s.every, every=s.every
    )
    uniform = jnp.full(s.layers, training_run.uniform_entropy(s.length), s.dtype)
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
MLPS = {"relu": "ReLU", "linear": "linear"}


def _two(ds: xr.Dataset) -> xr.Dataset:
    """The data, if they have a top and a bottom layer and enough seeds."""
    jd.need(ds, layer=2, seed=3)
    return ds


def _risen(ds: xr.Dataset) -> xr.DataArray:
    """Whether a layer's entropy ends ``MARK`` or more above its minimum; NaN where a run failed."""
    back = ds.entropy.isel(record=-1) - ds.entropy.min("record")
    return (back >= MARK).where(back.notnull())


STARTS, FALLS = "start: distance from uniform attention (nats)", "share of runs in which a layer's entropy falls"


def judge_dip(ds: xr.Dataset) -> list[jd.Check]:
    """Every layer starts within ``NEAR`` of uniform attention, and its entropy falls by ``MARK`` or more in most runs."""
    ds = _two(ds)
    fall = ds.entropy.isel(record=0) - ds.entropy.min("record")
    fell = (fall >= MARK).where(fall.notnull())
    return [
        jd.at_most(STARTS, abs(ds.measured_start - ds.predicted_start), NEAR),
        jd.share_within(FALLS, fell, over="seed", low=0.5, level=LEVEL),
    ]


RETURNS = {kind: f"share of runs in which a layer's entropy returns, {name} MLPs" for kind, name in MLPS.items()}
AHEAD = "end of the top layer above that of the bottom layer (nats)"


def judge_return(ds: xr.Dataset) -> list[jd.Check]:
    """The entropy of both layers returns by ``MARK`` or more in most runs; the top layer ends above the bottom layer."""
    jd.need(ds, activation=tuple(MLPS))
    end, risen = _two(ds).entropy.isel(record=-1), _risen(ds)
    ahead = end.isel(layer=-1, drop=True) - end.isel(layer=0, drop=True)
    return [
        *(jd.share_within(RETURNS[kind], risen.sel(activation=kind), over="seed", low=0.5, level=LEVEL) for kind in MLPS),
        jd.mean_within(AHEAD, ahead, over="seed", low=0.1, level=LEVEL),
    ]


BOTTOM = "bottom layer: entropy at the end (nats)"


def judge_collapse(ds: xr.Dataset) -> list[jd.Check]:
    """The bottom layer's entropy ends low and does not return."""
    bottom = _two(ds).isel(layer=0).entropy
    back = bottom.isel(record=-1) - bottom.min("record")
    return [
        jd.mean_within(BOTTOM, bottom.isel(record=-1), over="seed", high=COLLAPSED, level=LEVEL),
        jd.mean_within("bottom layer: end above the minimum (nats)", back, over="seed", high=MARK, level=LEVEL),
    ]


RANK_RETURN = "stable rank of W1: end above its minimum, as a share of its fall (mean of layers and activations)"
RANK_LEFT = "stable rank of W1 at the end, as a share of the start (mean of layers and activations)"


def judge_rank(ds: xr.Dataset) -> list[jd.Reading]:
    """How much of each lower matrix's stable rank is left, and how much of its fall it regains; means over seeds."""
    rank = _two(ds).stable_rank
    start, low, end = rank.isel(record=0), rank.min("record", skipna=False), rank.isel(record=-1)
    axes = [axis for axis in start.dims if axis != "seed"]
    left, back = end / start, (end - low) / (start - low)
    return [jd.mean_reading(name, x.mean(axes, skipna=False), over="seed") for name, x in ((RANK_LEFT, left), (RANK_RETURN, back))]


def half_regained_from_one(ds: xr.Dataset) -> float:
    """How much of its start is left of a rank that falls to one and regains half of its fall; mean over matrices and runs."""
    start = _two(ds).stable_rank.isel(record=0)
    return float(((1 + start) / 2 / start).mean())


def plot_rank(ds: xr.Dataset, fig: Figure) -> None:
    """Stable rank of each layer's lower matrix along training, a panel for each kind of MLP."""
    kinds = list(np.atleast_1d(ds.activation.values)) if "activation" in ds.dims else [None]
    for ax, kind in zip(np.ravel(fig.subplots(1, len(kinds), sharey=True)), kinds, strict=True):
        part = ds if kind is None else ds.sel(activation=kind)
        for layer in ds.layer.values:
            color = "measured" if layer == ds.layer.values[-1] else "third"
            curve = part.stable_rank.sel(layer=layer).transpose(..., "record")
            plotting.band(ax, ds.record, curve, f"layer {layer}", color)
        ax.set(xlabel="step", ylabel="stable rank of the lower matrix", title="" if kind is None else f"{MLPS[str(kind)]} MLPs")


EXCHANGED = jd.swap(entropy=lambda ds: ds.entropy.isel(layer=slice(None, None, -1)).assign_coords(layer=ds.layer))
STILL = "attention stays as it is at the start"
WHOLE = jd.swap(predicted_start=float(np.log(TrainingRun().length)))  # uniform over the words of a window, also over later ones


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Entropy of each layer, and the validation loss, along training; with linear MLPs dashed."""
    left, right = fig.subplots(1, 2)
    parts = {MLPS[str(kind)]: ds.sel(activation=kind) for kind in ds.activation.values} if "activation" in ds.dims else {"": ds}
    for name, part in parts.items():
        style, fill = ("--", 0.0) if name == "linear" else ("-", 0.9)
        for layer in ds.layer.values:
            color = "measured" if layer == ds.layer.values[-1] else "third"
            label = f"layer {layer}, {name} MLPs" if name else f"layer {layer}"
            curve = part.entropy.sel(layer=layer).transpose(..., "record")
            plotting.band(left, ds.record, curve, label, color, fill, linestyle=style)
        plotting.band(right, ds.record, part.loss.transpose(..., "record"), name or "validation", "measured", fill, linestyle=style)
    uniform = float(ds.predicted_start.max())
    left.axhline(uniform, linestyle="--", color=plotting.COLORS["theory"], label="uniform attention")
    at = np.array([0.0, 0.25, 1.0]) * float(ds.record.max())
    for layer, curve in published.ENTROPY[2, 1e-4].items():
        color = plotting.COLORS["measured" if layer == ds.layer.values[-1] else "third"]
        numbers = "→".join(f"{x:.2f}" for x in curve.values())
        left.plot(at, list(curve.values()), "sd"[layer], color=color, mfc="none", label=f"layer {layer} in the paper: {numbers}")
    left.set(xlabel="step", ylabel="entropy of attention (nats)")
    right.set(xlabel="step", ylabel="loss (nats per word)")


PAPER = jd.grid(TrainingRun, lr=1e-4, max_words=0, width=200, hidden=200, layers=2, steps=58_000, every=1000, windows=0)
STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(TrainingRun, lr=6e-3, max_words=1000, layers=2, steps=280, every=20),
    paper=PAPER,
    seeds=6,
    paper_seeds=3,
    evidence="network",
    bounds=jd.tuned(on="0:8", confirmed_on="4000:4006"),
    tested="A language model ({layers} layers, width {width}, {activation} MLPs, one head in each layer) learns the interpreter's "
    "manual with its {max_words} most frequent words: {steps} steps of Adam at the rate {lr}, windows of {length} "
    "words; seeds: {seeds}.",
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
        talks=("training:joma-figure-6",),
        title="Attention starts uniform and sharpens while a text is learned",
        statement="In a language model of two layers and width 64 that learns the interpreter's manual with 1000 words by 280 "
        "steps of Adam at the rate .006, with ReLU MLPs, the entropy of each layer's attention starts within .15 nats of that of "
        r"uniform causal attention, $\ln(n!)/n$ for windows of $n$ words, and falls by at least .2 nats in most runs; so it does "
        "if the words are read in random order.",
        quick=STUDY.quick.replace(shuffled=[False, True]),
        paper=PAPER.replace(shuffled=[False, True]),
        judge=judge_dip,
        max_seeds=24,
        controls={
            "the last record in place of the first": jd.Control(
                jd.swap(measured_start=lambda ds: ds.entropy.isel(record=-1)), breaks="starts"
            )
        },
        rivals={STILL: jd.off({FALLS: 0.0}), "uniform over the whole window, without the causal mask": WHOLE},
    ),
    STUDY.claim(
        id="joma.wiki_entropy",
        talks=("training:joma-figure-6", "training:joma-catch-up"),
        title="Attention spreads again after sharpening, with linear MLPs as well",
        seeds=12,
        max_seeds=48,
        quick=STUDY.quick.replace(activation=list(MLPS)),
        paper=PAPER.replace(activation=list(MLPS)),
        bounds=jd.tuned(on="0:8", confirmed_on="96000000:96000012"),
        statement="In a language model of two layers and width 64 that learns the interpreter's manual with 1000 words by 280 "
        "steps of Adam at the rate .006, the entropy of each layer's attention returns after its fall: with ReLU MLPs and with "
        "linear ones it ends at least .2 nats above its minimum in most runs, so that the return does not need the MLPs' "
        "nonlinearity. The top layer ends at least .1 nats above the bottom layer, mean over seeds.",
        judge=judge_return,
        controls={
            "the bottom layer in place of the top layer": EXCHANGED,
            "rate 1e-2": jd.Control({"lr": 1e-2}, every_seed=True),
            "words in random order": jd.Control({"shuffled": True}, breaks="learns the interpreter's manual"),
        },
        rivals={
            STILL: jd.off({**dict.fromkeys(RETURNS.values(), 0.0), AHEAD: 0.0}),
            "no return without the MLP's nonlinearity": {RETURNS["linear"]: 0.0},
        },
    ),
    STUDY.claim(
        id="joma.text_rank",
        talks=("short:joma-stable-rank",),
        title="How far the stable rank of the lower MLP matrix returns",
        seeds=12,
        quick=STUDY.quick.replace(activation=list(MLPS)),
        paper=PAPER.replace(activation=list(MLPS)),
        expected="measured",
        recorded={RANK_LEFT: (0.366, 0.4072, 0.448), RANK_RETURN: (0.126, 0.1917, 0.258)},
        statement="In a language model of two layers that learns the interpreter's manual by 280 steps of Adam at the rate "
        ".006, the stable rank of each MLP's lower matrix falls. (The talks have it fall and return, as the entropy of "
        "attention does.) How much of its start is left at the end, and what share of its fall has it regained by then? Means "
        "over layers, over ReLU and linear MLPs and over seeds.",
        judge=judge_rank,
        rivals={
            "the rank returns to its start": jd.off({RANK_LEFT: 1.0, RANK_RETURN: 1.0}),
            "the rank falls to one and regains half of its fall": {RANK_LEFT: half_regained_from_one, RANK_RETURN: 0.5},
        },
        plot=plot_rank,
        caption=r"Stable rank of the lower matrix of each layer's MLP along training, a panel for each activation: lines are "
        r"medians over the runs, bands their central 90%.",
    ),
    STUDY.claim(
        id="joma.text_collapse",
        title="At a large learning rate the bottom layer's attention collapses",
        seeds=12,
        max_seeds=48,
        statement="In a language model of two layers and width 64 that learns the interpreter's manual with 1000 words by 280 "
        "steps of Adam at a rate of .01 to .02, with ReLU MLPs, attention of the bottom layer collapses: its entropy ends below "
        ".3 nats and less than .2 nats above its minimum, means over seeds.",
        quick=STUDY.quick.replace(lr=1e-2),
        paper=PAPER.replace(lr=1e-2),
        holds={"lr": (0.01, 0.02)},
        judge=judge_collapse,
        controls={"rate .006": jd.Control({"lr": 6e-3}, every_seed=True)},
        rivals={STILL: jd.off({BOTTOM: lambda ds: float(ds.predicted_start.mean())})},
    ),
)
