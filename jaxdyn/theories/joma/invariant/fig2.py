r"""The experiment of Figure 2: estimates of the attention logits from the weights, early and over the whole run.

The paper's estimate is the softmax law with the mean attention of the start. NC is the correlation of mean-removed vectors.
Letters as in ``dynamics/invariants.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting, stats
from jaxdyn.engine.judging.comparisons import by_axis
from jaxdyn.theories.joma.invariant.classes import DATA, SAMPLES, Classes, fig2_trial


def relative(ds: xr.Dataset) -> xr.DataArray:
    """Distance of the estimate from the logits over the size of the logits, at each record."""
    return by_axis(_distance, ds.measured_z, ds.predicted_z)


def _distance(measured: stats.Labelled, predicted: stats.Labelled) -> xr.Variable:
    error, size = (measured - predicted) ** 2, measured**2
    return np.sqrt(error.sum("token", min_count=1) / size.sum("token", min_count=1))


def correlation(a: xr.DataArray, b: xr.DataArray) -> xr.DataArray:
    """NC: correlation over tokens of the mean-removed vectors."""

    def of_axes(a: xr.Variable, b: xr.Variable) -> xr.Variable:
        a, b = a - a.mean("token"), b - b.mean("token")
        return (a * b).sum("token") / np.sqrt((a**2).sum("token") * (b**2).sum("token"))

    return by_axis(of_axes, a, b)


def early(ds: xr.Dataset) -> xr.DataArray:
    """Records of the early phase: mean attention within 5% of its start (the first record always counts), without the start."""
    return by_axis(lambda drift, record: ((drift <= 0.05) | (record == 1)) & (record > 0), ds.drift, ds.record)


def last(values: xr.DataArray, phase: xr.DataArray) -> xr.DataArray:
    """The value at each run's last record of a phase."""

    def at(values: xr.Variable, phase: xr.Variable, record: xr.Variable) -> xr.Variable:
        return values.isel(record=(phase * record).max("record").astype(int))

    return by_axis(at, values, phase, phase.record)


def change(ds: xr.Dataset) -> tuple[xr.DataArray, xr.DataArray]:
    """Distance of the estimated change of the logits since the start over the size of their change; the share that is estimated."""

    def moved(measured: xr.Variable, predicted: xr.Variable) -> tuple[xr.Variable, xr.Variable]:
        start = measured.isel(record=0)
        return measured - start, predicted - start

    def share(measured: xr.Variable, predicted: xr.Variable) -> xr.Variable:
        change, estimate = moved(measured, predicted)
        return (change * estimate).sum("token", min_count=1) / (change**2).sum("token", min_count=1)

    sides = ds.measured_z, ds.predicted_z
    return by_axis(lambda *sides: _distance(*moved(*sides)), *sides), by_axis(share, *sides)


RESIDUAL = "residual of the factorisation, end of the phase"
FELT = "its part that acts on the logits, end of the phase"


def judge_early(ds: xr.Dataset) -> list[jd.Check]:
    """In the early phase the law gives the logits and their change, although its factorisation assumption fails there.

    Means over seeds. NC and relative error are means over the phase, for ratios up to 1; the change is judged where it is largest,
    at the end, and so are the two residuals of the assumption.
    """
    phase = early(ds)
    error, share, gap, felt = (last(v, phase) for v in (*change(ds), ds.gap, ds.felt_gap))
    checks = [
        jd.mean_within("change of the logits: relative error, end of the phase", error, over="seed", high=0.4),
        jd.mean_within("change of the logits: predicted share of it, end of the phase", share, over="seed", low=0.9, high=1.2),
        jd.mean_within(RESIDUAL, gap, over="seed", low=0.7, high=0.8),
        jd.mean_within(FELT, felt, over="seed", high=0.12),
    ]
    if (ds.ratio <= 1).any():
        slow = ds[["measured_z", "predicted_z"]].assign(phase=phase).sel(ratio=ds.ratio <= 1)
        both = correlation(slow.measured_z, slow.predicted_z), relative(slow)
        nc, rel = (by_axis(lambda values, phase: values.where(phase).mean("record"), v, slow.phase) for v in both)
        checks += [
            jd.mean_within("NC, mean over the phase", nc, over="seed", low=0.98),
            jd.mean_within("relative error, mean over the phase", rel, over="seed", high=0.15),
        ]
    return checks


def judge_fig2(ds: xr.Dataset) -> list[jd.Check]:
    """NC and relative error at a quarter of the run, and NC at its end for each kind of data."""
    quarter = SAMPLES // 4
    nc, rel = correlation(ds.measured_z, ds.predicted_z), relative(ds)
    final = nc.isel(record=SAMPLES)
    return [
        jd.mean_within("NC at step 500, mean over seeds", nc.isel(record=quarter), over="seed", low=0.97),
        jd.mean_within("relative error at step 500, mean over seeds", rel.isel(record=quarter), over="seed", low=0.1, high=0.3),
        jd.mean_within("NC at step 2000, gaussian, mean over seeds", final.sel(data="gaussian"), over="seed", low=0.97),
        jd.mean_within("NC at step 2000, random, mean over seeds", final.sel(data="random"), over="seed", low=0.92, high=0.97),
    ]


def judge_size(ds: xr.Dataset) -> list[jd.Reading]:
    """The size of the estimate's error, and the drift of the mean attention, at half time and at the end; means over seeds."""
    rel, readings = relative(ds), []
    for kind in ("gaussian", "random"):
        for record, step in ((SAMPLES // 2, 1000), (SAMPLES, 2000)):
            error, drift = (v.sel(data=kind).isel(record=record) for v in (rel, ds.drift))
            readings += [
                jd.mean_reading(f"relative error at step {step}, {kind}", error, over="seed"),
                jd.mean_reading(f"drift of the mean attention at step {step}, {kind}", drift, over="seed"),
            ]
    return readings


def judge_moving(ds: xr.Dataset) -> list[jd.Check]:
    """Relative error at half time, and at the end for each kind of data, mean over seeds."""
    rel = relative(ds)
    end = rel.isel(record=SAMPLES)
    return [
        jd.mean_within("relative error at step 1000", rel.isel(record=SAMPLES // 2), over="seed", high=0.3),
        jd.mean_within("relative error at step 2000, gaussian", end.sel(data="gaussian"), over="seed", high=0.5),
        jd.mean_within("relative error at step 2000, random", end.sel(data="random"), over="seed", high=0.9),
    ]


def estimate(ds: xr.Dataset, *terms: str) -> xr.DataArray:
    """The logits of the start plus the changes since then of some of the law's terms."""

    def added(measured: xr.Variable, *terms: xr.Variable) -> xr.Variable:
        return sum((term - term.isel(record=0) for term in terms), measured.isel(record=0) + 0 * measured)

    return by_axis(added, ds.measured_z, *(ds[term] for term in terms))


def from_terms(*terms: str) -> Callable[[xr.Dataset], xr.Dataset]:
    """Another estimate of the logits: :func:`estimate` with these terms."""
    return jd.swap(predicted_z=lambda ds: estimate(ds, *terms))


TERMS: dict[str, Any] = {
    "nothing moves": jd.off(from_terms()),
    "first term alone, the law of exp attention": from_terms("square_term"),
    "second term alone": from_terms("norm_term"),
    "as printed, no 1/2 on the second term": from_terms("square_term", "norm_term", "norm_term"),
}
CONSTANT_ATTENTION = from_terms("square_term", "norm_term")
PERMUTED_ROWS = jd.swap(predicted_z=lambda ds: estimate(jd.rolled(square_term="token")(ds), "square_term", "norm_term"))


def plot_fig2(ds: xr.Dataset, fig: Figure) -> None:
    """Errors of the estimates along training, for each kind of data, at the ratio nearest to 1: median and 90% of the seeds."""
    if "ratio" in ds.dims:
        ds = ds.sel(ratio=1.0, method="nearest")
    forms = [str(f) for f in ds.form.values if f != "exact"] if "form" in ds.dims else [None]
    share = ds.record[1:] / SAMPLES
    for ax, kind in zip(fig.subplots(1, ds.sizes["data"], squeeze=False)[0], ds.data.values, strict=True):
        part = ds.sel(data=kind).isel(record=slice(1, None))
        for form, color in zip(forms, ("theory", "third"), strict=False):
            one = part if form is None else part.sel(form=form)
            name = "" if form is None else f", {form} mean attention"
            plotting.band(ax, share, relative(one), label="relative error" + name, color=color)
            if form in (None, "constant"):
                plotting.band(ax, share, 1 - correlation(one.measured_z, one.predicted_z), label="1 - NC" + name, color="measured")
        plotting.band(ax, share, part.drift, label="drift of mean attention", color="control")
        ax.set_yscale("log")
        ax.set_title(f"{kind} data")
        ax.set_xlabel("share of the run")


FIG2 = jd.grid(Classes, data=list(DATA))
ADAM = jd.Control(
    {"optimizer": "adam", "lr": 3e-3},
    why="The size of Adam's steps is its rate, whatever the gradient: that of descent is far too large.",
    breaks="MLP's weights",
)
STUDY = jd.Study(
    trial=fig2_trial,
    evidence="network",
    bounds=jd.tuned(on="0:24", confirmed_on="4000:4024"),
    quick=FIG2,
    seeds=48,
    paper_seeds=64,
    tested="The experiment of Figure 2: a block with softmax attention (temperature {tau}) and linear outputs as logits of "
    "{classes} classes, one sample per class over {tokens} tokens, {data} frequencies. Full-batch gradient descent of "
    "attention and MLP at the rate {lr} from a start of size {init}, 40 times {every} steps; seeds: {seeds}.",
    source="arXiv:2310.00535, Theorem 1 (softmax) and Figures 2-3",
    form="constant",
    rivals=TERMS,
    plot=plot_fig2,
    caption=r"Errors of the estimates of the logits from the weights along training, for each kind of data (at the ratio of "
    r"learning rates nearest to 1): relative error with constant and with moving mean attention, $1 -$ NC of the constant "
    r"estimate, and the relative distance of the mean attention from its start. Lines are medians over the runs, bands their "
    r"central 90%.",
)

CLAIMS = (
    STUDY.claim(
        id="joma.softmax_invariant",
        talks=("training:joma-theorem-1-softmax", "training:joma-figure-2"),
        title="Early in training the MLP's weights give the softmax logits",
        statement=r"In Figure 2's experiment, a block with softmax attention ($\tau = .5$) and linear outputs that learns 20 "
        r"classes by gradient descent at the rate .1 from near zero, the law $\hat z = z_0 + \frac{r}{2\tau}\Delta\sum_k(v_k^2 - "
        r"\|v_k\|^2\bar b)$ gives the attention logits from the MLP's weights $v_k$ while the mean attention is within 5% of its "
        r"start $\bar b$ ($\Delta$: change since the start, $\tau$: temperature, $r$: ratio of learning rates), in the mean over "
        "seeds: for $r$ of .1 and 1 to 15%, with a correlation over tokens of at least .98; for $r$ from .1 to 10 their change "
        "to 40%, and 90 to 120% of it along itself. The factorisation that the theorem assumes fails there, with a relative "
        "residual of .7 to .8; but what the residual adds to the pull on the logits is at most .12 of it.",
        tested="The experiment of Figure 2: a block with softmax attention (temperature {tau}) and linear outputs as logits "
        "of {classes} classes, one sample per class over {tokens} tokens, {data} frequencies. Full-batch gradient "
        "descent of attention and MLP at the rate {lr} from a start of size {init}, 40 times {every} steps; ratio of "
        "the learning rates {ratio}; seeds: {seeds}.",
        quick=FIG2.replace(ratio=[0.1, 1.0, 10.0], every=12.0),
        seeds=24,
        judge=judge_early,
        controls={
            "Adam": ADAM,
            "rows of V permuted": jd.Control(PERMUTED_ROWS, breaks="MLP's weights"),
        },
        rivals={
            **TERMS,
            "all of the residual acts on the logits": {FELT: lambda ds: float(last(ds.gap, early(ds)).mean())},
            "the factorisation assumption holds": {RESIDUAL: 0.0, FELT: 0.0},
        },
    ),
    STUDY.claim(
        id="joma.fig2",
        talks=("training:joma-figure-2",),
        title="The MLP's weights predict the direction of the attention logits",
        statement=r"In Figure 2's experiment, a block with softmax attention ($\tau = .5$) and linear outputs that learns 20 "
        r"classes by gradient descent at the rate .1 from near zero for 2000 steps, the estimate $\hat z = z_0 + "
        r"\frac{r}{2\tau}\Delta\sum_k(v_k^2 - \|v_k\|^2\bar b)$ of the attention logits from the MLP's weights $v_k$, with the "
        r"mean attention $\bar b$ of the start ($\Delta$: change since the start, $\tau$: temperature, $r$: ratio of learning "
        "rates, 1), is correlated with the logits over tokens, in the mean over seeds: by at least .97 at a quarter of the run, "
        "and at its end by at least .97 for gaussian and by .92 to .97 for random data. Its relative error at a quarter of the "
        "run is 10 to 30%. (At the end it is several times as large as the logits: `joma.fig2_size`.)",
        judge=judge_fig2,
        bounds=jd.tuned(on="0:48", confirmed_on="21000000:21000048"),
        controls={
            "rows of V permuted": jd.Control(PERMUTED_ROWS, breaks="MLP's weights"),
            "Adam": ADAM,
        },
    ),
    STUDY.claim(
        id="joma.fig2_size",
        talks=("training:joma-figure-2",),
        title="How large the error of JoMA's logit estimate becomes",
        statement="In Figure 2's experiment, 2000 steps of gradient descent at the rate .1, how far from the attention logits, "
        "relative to their size, is the estimate from the MLP's weights with the mean attention of the start, half way and at "
        "the end of training, and how far has the mean attention moved by then?",
        judge=judge_size,
        expected="measured",
        rivals={name: TERMS[name] for name in list(TERMS)[:2]}
        | {
            "the mean attention stays as it is": {
                f"drift of the mean attention at step {step}, {kind}": 0.0
                for step in (1000, 2000)
                for kind in ("gaussian", "random")
            }
        },
        recorded={
            "relative error at step 1000, gaussian": (0.683, 0.714, 0.745),
            "drift of the mean attention at step 1000, gaussian": (0.985, 1.039, 1.1),
            "relative error at step 2000, gaussian": (7.61, 7.742, 7.87),
            "drift of the mean attention at step 2000, gaussian": (2.59, 2.607, 2.62),
            "relative error at step 1000, random": (0.423, 0.453, 0.483),
            "drift of the mean attention at step 1000, random": (0.203, 0.234, 0.265),
            "relative error at step 2000, random": (3.07, 3.729, 4.38),
            "drift of the mean attention at step 2000, random": (1.47, 1.639, 1.8),
        },
    ),
    STUDY.claim(
        id="joma.softmax_tv",
        talks=("training:joma-figure-2",),
        title="With the moving mean attention the logit estimate holds longer",
        statement=r"In Figure 2's experiment, a block with softmax attention ($\tau = .5$) and linear outputs that learns 20 "
        r"classes by gradient descent at the rate .1 from near zero for 2000 steps, the estimate with the mean attention $\bar "
        r"b$ as it moves, $\hat z = z_0 + \frac{r}{2\tau}[\Delta\sum_k v_k^2 - \int\bar b\,d\sum_k\|v_k\|^2]$ ($\Delta$: change "
        r"since the start, $\tau$: temperature, $r$: ratio of learning rates, 1), gives the attention logits from the MLP's "
        "weights $v_k$ with a relative error, mean over seeds, of at most 30% half way through training, and at its end of at "
        "most 50% for gaussian and of at most 90% for random data.",
        source="derived from arXiv:2310.00535, Theorem 1 (softmax)",
        judge=judge_moving,
        form="moving",
        max_seeds=192,
        bounds=jd.tuned(on="0:48", confirmed_on="21000000:21000048"),
        controls={
            "Adam": ADAM,
            "rows of V permuted": jd.Control(PERMUTED_ROWS, breaks="MLP's weights"),
        },
        rivals={**TERMS, "mean attention of the start": CONSTANT_ATTENTION},
    ),
)
