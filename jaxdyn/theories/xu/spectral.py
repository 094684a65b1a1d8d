r"""The gap after the second singular value of a window of updates, as a sign that a network will generalise.

One detector fires at the end of the first window with :math:`\sigma_2/\sigma_3 \ge 3`. The published one fires when the logarithm
of the ratio of eigenvalues, :math:`2 \ln(\sigma_2/\sigma_3)`, has risen by 1 within 25 epochs (:func:`rises`).

Recorded are the updates of W along the training of Li2's networks, window by window, and the accuracy on unseen pairs. An update is
the change of W between two records. Letters as in ``dynamics.py``.

Published numbers of arXiv:2605.08119 are of addition modulo 71, 2048 nodes of squares, 40% of the pairs, Adam at a rate of .001.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting, stats
from jaxdyn import train as loop
from jaxdyn.theories.li2 import model, training
from jaxdyn.theories.li2.zero_start import KNOWN
from jaxdyn.theories.xu import dynamics as theory

FIRED_IN_PRINT = (15, 0)  # runs of 15 in which the detector fires: with a decay of 2e-4, and without
FIRES_AT = 174  # epoch, median of the runs with decay
MIDDLE = (173.0, 174.0)  # the middle half of them
RISE, WITHIN = 1.0, 25  # the detector fires when the logarithm of the ratio of eigenvalues has risen by so much in so many epochs
LATE = (300.0, 1.31)  # late ratio of the second to the third eigenvalue, with and without decay
PAPER = (
    f"paper: fires in {FIRED_IN_PRINT[0]} of 15 runs with decay, at epoch {FIRES_AT} (median), in {FIRED_IN_PRINT[1]} of 15 without"
)

RATIOS = 4  # ratios of successive singular values that are recorded


@jd.setting
class Spectral(training.Training):
    """A training run whose updates are watched.

    Args:
        window: updates in a window.
    """

    window: int = 10

    def __post_init__(self) -> None:
        """Refuse windows with fewer values than the ratios need, or longer than the run."""
        super().__post_init__()
        fits = RATIOS < self.window <= self.epochs // self.every
        jd.require(self, fits, f"a window has more than {RATIOS} updates and fits into the run", "window")


def watch(now: model.Params, before: model.Params, _: training.Data) -> dict[str, Array]:
    """The update of W since the record before."""
    return {"update": (now.w - before.w).reshape(-1)}


def trial(s: Spectral, key: PRNGKeyArray) -> jd.Observables:
    """Ratios of successive singular values in every window, the windows' norms, and accuracies."""
    run = training.train(s, key, watch)
    curves = run.curves
    sigma = theory.values(curves["update"][1:], s.window)
    ratios = sigma[:, :RATIOS] / jnp.maximum(sigma[:, 1 : RATIOS + 1], 1e-30)
    epochs = range(0, s.epochs + 1, s.every)
    return jd.observables(
        measured={"test": jd.named(curves["test_accuracy"].astype(jnp.float64), "epoch")},
        recorded={
            "ratio": jd.named(ratios, "end after"),
            "size": jd.named(jnp.sqrt(jnp.sum(sigma**2, 1)), "end"),
            "fitted": curves["train_accuracy"][-1].astype(jnp.float64),
        },
        coords={"epoch": epochs, "end": epochs[s.window :], "after": range(1, RATIOS + 1)},
        status=loop.finite_status(run.params),
    )


HIGH = 3.0  # chosen on six runs with keys of their own: at least 5.5 with decay, at most 2.2 without
AFTER = 2  # the detector's gap stands after this value
SHARE = 0.75  # of the networks with decay that have to generalise; the others are not judged by when they do


def fires(ds: xr.Dataset) -> xr.DataArray:
    """The epoch at which the detector fires; infinity if it never does."""
    ratio = ds.ratio.sel(after=AFTER).transpose(..., "end")
    at = theory.first(ratio.values >= HIGH, ds.end.values)
    return xr.where(ratio.isel(end=0, drop=True).isnull(), np.nan, ratio.isel(end=0, drop=True).copy(data=at))


def rises(ds: xr.Dataset) -> xr.DataArray:
    """The epoch at which the published detector fires; infinity if it never does."""
    curve = 2 * np.log(ds.ratio.sel(after=AFTER, drop=True))
    lags = range(1, max(1, round(WITHIN / float(ds.end[1] - ds.end[0]))) + 1)
    most = functools.reduce(np.maximum, [(curve - curve.shift(end=lag)).fillna(-np.inf) for lag in lags]).transpose(..., "end")
    at = most.isel(end=0, drop=True).copy(data=theory.first(most.values >= RISE, ds.end.values))
    return at.where(curve.isel(end=0, drop=True).notnull())


def worlds(ds: xr.Dataset) -> tuple[xr.Dataset, xr.Dataset]:
    """The runs with weight decay, and those without."""
    return ds.sel(decay=ds.decay.max().item(), drop=True), ds.sel(decay=0.0, drop=True)


def gates(ds: xr.Dataset) -> list[jd.Check]:
    """All networks fit their pairs, and of those with decay enough generalise."""
    right = generalised(worlds(ds)[0])
    return [
        jd.gate("training accuracy", ds.fitted, at_least=0.99),
        jd.gate("share of networks with decay that generalise", right.mean("seed"), at_least=SHARE),
    ]


def generalises(ds: xr.Dataset) -> xr.DataArray:
    """The first epoch at which the test accuracy is .95; infinity for a network that never gets there."""
    curve = ds.measured_test.transpose(..., "epoch")
    first = curve.isel(epoch=0, drop=True)
    return first.copy(data=theory.first(curve.values >= KNOWN, ds.epoch.values)).where(first.notnull())


def generalised(ds: xr.Dataset) -> xr.DataArray:
    """1 for every network whose final test accuracy is .95 or more, 0 for the others; NaN where a run is not ok."""
    last = ds.measured_test.isel(epoch=-1)
    return (last >= KNOWN).astype(float).where(last.notnull())


def ahead(ds: xr.Dataset, fired: xr.DataArray) -> xr.DataArray:
    """Epochs from firing to generalising, of networks that do; a detector that never fires counts with twice the run's epochs."""
    return (generalises(ds) - np.minimum(fired, 2 * float(ds.epoch[-1]))).where(generalised(ds) == 1)


def ever(fired: stats.Labelled) -> xr.DataArray:
    """1 where the detector fires, 0 where it never does; NaN where there is no curve that it could watch."""
    return np.isfinite(fired).astype(float).where(fired.notnull())


def sooner(ds: xr.Dataset, fired: xr.DataArray) -> xr.DataArray:
    """Whether the detector fires before the network generalises, of networks that do."""
    return (fired < generalises(ds)).astype(float).where((generalised(ds) == 1) & fired.notnull())


BEFORE = "with decay: share that fires before the test accuracy is .95"
AHEAD = "with decay: epochs from firing to a test accuracy of .95, mean"
ON, OFF = "with decay: share that fires", "without decay: share that fires"
FIRED = "with decay: epoch of firing, mean"
GAP, SHARE_GAP = "largest ratio of the second to the third value, mean", "share that fires"


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Whether the detector fires before the network generalises, in runs with decay and in those without."""
    jd.need(ds, seed=8, decay=(0.0,))
    on, off = worlds(ds)
    fired = fires(on)
    return [
        *gates(ds),
        jd.share_within(BEFORE, sooner(on, fired), over="seed", low=0.5),
        jd.share_within(OFF, ever(fires(off)), over="seed", high=0.5),
        jd.mean_within(AHEAD, ahead(on, fired), over="seed", low=80.0),
    ]


def judge_late(ds: xr.Dataset) -> list[jd.Check]:
    """Whether networks generalise before the detector fires, and whether they do so without decay."""
    jd.need(ds, seed=8, decay=(0.0,))
    on, off = worlds(ds)
    fired = fires(on)
    return [
        *gates(ds),
        jd.share_within(BEFORE, sooner(on, fired), over="seed", high=0.5),
        jd.share_within(ON, ever(fired), over="seed", low=0.5),
        jd.mean_within(AHEAD, ahead(on, fired), over="seed", high=-80.0),
        jd.at_least("without decay: final test accuracy", off.measured_test.isel(epoch=-1), KNOWN),
    ]


def judge_rise(ds: xr.Dataset) -> list[jd.Check | jd.Reading]:
    """When the published detector fires, and how long before the network generalises."""
    jd.need(ds, seed=8, decay=(0.0,))
    on, off = worlds(ds)
    fired = rises(on)
    at = fired.clip(max=2 * float(ds.epoch[-1]))
    return [
        *gates(ds),
        jd.gate("without decay: final test accuracy", off.measured_test.isel(epoch=-1), at_most=KNOWN),
        jd.share_reading(OFF, ever(rises(off)), over="seed"),
        jd.mean_reading(FIRED, at, over="seed"),
        jd.mean_reading(AHEAD, ahead(on, fired), over="seed"),
    ]


def judge_relu(ds: xr.Dataset) -> list[jd.Check]:
    """Whether networks generalise without a gap."""
    jd.need(ds, seed=8)
    return [
        jd.gate("final test accuracy", ds.measured_test.isel(epoch=-1), at_least=KNOWN),
        jd.share_within(SHARE_GAP, ever(fires(ds)), over="seed", high=0.5),
        jd.mean_within(GAP, ds.ratio.sel(after=AFTER).max("end"), over="seed", high=1.7),
    ]


def instead(curve: Callable[[xr.Dataset], xr.DataArray | float]) -> Callable[[xr.Dataset], xr.Dataset]:
    """A control: the detector watches another curve."""
    return jd.swap(ratio=lambda ds: xr.where(ds.after == AFTER, curve(ds), ds.ratio))


def exchanged(ds: xr.Dataset) -> xr.Dataset:
    """A control: the updates of runs without decay in place of those with it, and the reverse."""
    return ds.assign(ratio=ds.ratio.copy(data=ds.ratio.isel(decay=slice(None, None, -1)).values))


def as_with_decay(ds: xr.Dataset) -> float:
    """How many networks without decay show the gap if decay plays no part: as many as with it."""
    return float(ever(fires(worlds(ds)[0])).mean())


def from_the_start(ds: xr.Dataset) -> float:
    """Epochs from the first window to generalising: what a gap that is there from the start is ahead by."""
    on = worlds(ds)[0]
    return float((generalises(on).where(generalised(on) == 1) - ds.end[0]).mean())


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """The gap along training, and the test accuracy."""
    left, right = fig.subplots(1, 2)
    for decay in np.atleast_1d(ds.decay):
        color = "measured" if decay > 0 else "control"
        part = ds.sel(decay=decay) if "decay" in ds.dims else ds
        label = f"decay {decay:g}"
        plotting.band(left, ds.end, part.ratio.sel(after=AFTER).transpose("seed", "end"), label, color)
        plotting.band(right, ds.epoch, part.measured_test.transpose("seed", "epoch"), label, color)
    left.axhline(HIGH, color=plotting.COLORS["theory"], linewidth=0.8, label="detector")
    left.set(xlabel="epoch at the window's end", ylabel="second / third singular value", yscale="log")
    right.set(xlabel="epoch", ylabel="test accuracy", ylim=(0, 1.02))


GRID = jd.grid(Spectral, decay=[0.0, 5e-4], share=0.5, lr=0.01, hidden=128, every=5)
PAPER_GRID = GRID.replace(group="71", decay=[0.0, 2e-4], share=0.4, lr=0.001, hidden=2048, every=1, window=20)
STUDY = jd.Study(
    trial=trial,
    quick=GRID,
    paper=PAPER_GRID,
    seeds=16,
    paper_seeds=15,
    evidence="network",
    bounds=jd.tuned(on="0:12", confirmed_on="70000001:70000017"),
    tested="A two-layer network with quadratic activation and {hidden} nodes learns addition modulo {group} from a share "
    "{share} of the pairs by Adam at rate {lr}, {epochs} epochs, with weight decay {decay}; {seeds} seeds. An update is the "
    "change of the first layer in {every} epochs, a window has {window} updates.",
    source=f"arXiv:2605.08119, sections 2 and 5 ({PAPER})",
    plot=plot,
    caption="Left: ratio of the second to the third singular value of the last ten updates of W, against the epoch, and the "
    "level at which the detector fires. Right: test accuracy. Median and central 90% of the runs.",
)


CLAIMS = (
    STUDY.claim(
        id="xu.spectral",
        title="With half of the pairs known, a spectral gap precedes generalisation",
        statement="In two-layer networks of 128 nodes with quadratic activation that learn addition modulo 23 from half of the "
        "pairs by Adam at rate .01 with weight decay .0005, the second singular value of the updates of the first layer in ten "
        "times 5 epochs exceeds three times the third before the test accuracy reaches .95: in most of the networks that "
        "generalise, and on average at least 80 epochs before. Without weight decay most networks never show this gap in 400 "
        "epochs. At the published sizes this does not hold: there the gap is present from the first window on, with decay and "
        "without (study: refuted).",
        decides={"never": (OFF, "updates with and without decay exchanged")},
        judge=judge,
        controls={
            "updates with and without decay exchanged": exchanged,
            "0.6 of the pairs instead of half": jd.Control({"share": 0.6}, every_seed=True),
            "watching updates that shrink to a third": instead(lambda ds: ds["size"].isel(end=0, drop=True) / ds["size"]),
            "watching the gap after the first value": instead(lambda ds: ds.ratio.sel(after=1, drop=True)),
            "watching the gap after the third value": instead(lambda ds: ds.ratio.sel(after=3, drop=True)),
        },
        rivals={
            "no gap opens": jd.off({BEFORE: 0.0}),
            "the gap opens when the network generalises": {AHEAD: 0.0},
            "decay plays no part": {OFF: as_with_decay},
        },
    ),
    STUDY.claim(
        id="xu.rise",
        title="How often the published detector fires, with weight decay and without",
        statement="The published detector fires when the logarithm of the ratio of the second to the third eigenvalue of a "
        "window of updates has risen by 1 within 25 epochs. In how many of the networks of `xu.spectral` without weight decay, "
        "none of which generalises, does it fire; with decay, at which epoch does it fire, and how long before the test "
        "accuracy is .95? At the published sizes (study) it fires at epoch 173 with decay, 44 epochs after the test accuracy is "
        ".95, and in 2 of 15 networks without.",
        expected="measured",
        judge=judge_rise,
        seeds=64,
        rivals={
            "it never fires": jd.off({OFF: 0.0}),
            "as published: in no network without decay": {OFF: 0.0},
            "at the published epoch": {FIRED: 174.0},
            "it fires when the network generalises": {AHEAD: 0.0},
        },
        recorded={OFF: (0.599, 0.7812, 0.895), FIRED: (156.0, 157.5, 159.0), AHEAD: (147.0, 159.8, 173.0)},
    ),
    STUDY.claim(
        id="xu.late",
        title="With most pairs known, the gap opens after generalisation",
        quick=GRID.replace(share=0.8),
        paper=PAPER_GRID.replace(share=0.8),
        holds={"share": (0.8, 0.9)},
        statement="Two-layer networks of 128 nodes with quadratic activation that learn addition modulo 23 from 0.8 to 0.9 of the "
        "pairs by Adam at rate .01 with weight decay .0005 generalise before the second singular value of the updates of the "
        "first layer in ten times 5 epochs exceeds three times the third: most show this gap in 400 epochs, most later than a "
        "test accuracy of .95, and on average at least 80 epochs later. They generalise without weight decay, too. At the "
        "published sizes this does not hold: there the gap is present from the first window on (study: refuted).",
        judge=judge_late,
        controls={
            "half of the pairs": jd.Control({"share": 0.5}, every_seed=True),
            "ReLU in place of quadratic activation": jd.Control({"activation": "relu"}, every_seed=True),
        },
        rivals={
            "no gap opens": jd.off({ON: 0.0}),
            "the gap is there from the start": {BEFORE: 1.0, AHEAD: from_the_start},
        },
    ),
    STUDY.claim(
        id="xu.relu",
        title="ReLU networks generalise without the spectral gap",
        quick=GRID.replace(share=0.8, decay=5e-4, activation="relu"),
        paper=PAPER_GRID.replace(decay=2e-4, activation="relu"),
        tested="A two-layer network with ReLU and {hidden} nodes learns addition modulo {group} from a share {share} of the "
        "pairs by Adam at rate {lr}, {epochs} epochs, with weight decay {decay}; {seeds} seeds. An update is the change of "
        "the first layer in {every} epochs, a window has {window} updates.",
        statement="Two-layer networks of 128 nodes with ReLU that learn addition modulo 23 from 0.8 of the pairs by Adam at rate "
        ".01 with weight decay .0005 generalise without the gap of quadratic networks: in most of them the second singular value "
        "of the updates of the first layer in ten times 5 epochs never exceeds three times the third in 400 epochs, and the "
        "largest ratio of the two is at most 1.7 on average. The study at the published sizes is inconclusive: networks with ReLU "
        "do not generalise from the 40% of the pairs there.",
        decides={"never": (SHARE_GAP, "the activation plays no part: the gap opens")},
        judge=judge_relu,
        controls={
            "quadratic activation": {"activation": "square"},
            "watching the gap after the first value": instead(lambda ds: ds.ratio.sel(after=1, drop=True)),
        },
        rivals={
            "the activation plays no part: the gap opens": jd.off({SHARE_GAP: 1.0, GAP: HIGH}),
            "each network that generalises shows the gap": {SHARE_GAP: lambda ds: float(generalised(ds).mean())},
        },
    ),
)
