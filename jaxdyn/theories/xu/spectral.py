r"""The gap after the second singular value of a window of updates, as a sign that a network will generalise.

One detector fires at the end of the first window with :math:`\sigma_2/\sigma_3 \ge 3`. The published one fires when the logarithm
of the ratio of eigenvalues, :math:`2 \ln(\sigma_2/\sigma_3)`, has risen by 1 within 25 epochs (:func:`rises`).

Recorded are the updates of W along the training of Li2's networks, window by window, and the accuracy on unseen pairs. An update is
the change of W between two records. Letters as in ``dynamics/window.py``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn import train as loop
from jaxdyn.theories.li2 import model, training
from jaxdyn.theories.li2.zero_start import KNOWN, reached
from jaxdyn.theories.xu.dynamics import window as theory
from jaxdyn.theories.xu.published import FIRES_AT, MIDDLE, PAPER, RISE, WITHIN

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CLAIMS", "HIGH", "RATIOS", "Spectral", "fires", "judge", "judge_relu", "judge_rise", "rises", "trial"]


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
    """Ratios of successive singular values in every window, the windows' norms, accuracies, and when the network generalises."""
    run = training.train(s, key, watch)
    curves = run.curves
    sigma = theory.values(curves["update"][1:], s.window)
    ratios = sigma[:, :RATIOS] / jnp.maximum(sigma[:, 1 : RATIOS + 1], 1e-30)
    epochs = range(0, s.epochs + 1, s.every)
    return jd.observables(
        measured={"time": reached(curves["test_accuracy"], s.every)},
        recorded={
            "ratio": jd.named(ratios, "end after"),
            "size": jd.named(jnp.sqrt(jnp.sum(sigma**2, 1)), "end"),
            "test": jd.named(curves["test_accuracy"].astype(jnp.float64), "epoch"),
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


def generalised(ds: xr.Dataset) -> xr.DataArray:
    """1 for every network whose final test accuracy is .95 or more, 0 for the others; NaN where a run is not ok."""
    last = ds.test.isel(epoch=-1)
    return (last >= KNOWN).astype(float).where(last.notnull())


def ahead(ds: xr.Dataset, fired: xr.DataArray) -> xr.DataArray:
    """Epochs from firing to generalising, of networks that do; a detector that never fires counts with twice the run's epochs."""
    return (ds.measured_time - np.minimum(fired, 2 * float(ds.epoch[-1]))).where(generalised(ds) == 1)


def sooner(ds: xr.Dataset, fired: xr.DataArray) -> xr.DataArray:
    """Whether the detector fires before the network generalises, of networks that do."""
    return (fired < ds.measured_time).astype(float).where(generalised(ds) == 1)


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Whether the detector fires before the network generalises, in runs with decay and in those without."""
    jd.need(ds, seed=8, decay=(0.0,))
    on, off = worlds(ds)
    fired = fires(on)
    return [
        *gates(ds),
        jd.share_within("with decay: share that fires before the test accuracy is .95", sooner(on, fired), over="seed", low=0.5),
        jd.share_within("without decay: share that fires", np.isfinite(fires(off)), over="seed", high=0.5),
        jd.mean_within("with decay: epochs from firing to a test accuracy of .95, mean", ahead(on, fired), over="seed", low=50.0),
    ]


def judge_late(ds: xr.Dataset) -> list[jd.Check]:
    """Whether networks generalise before the detector fires, and whether they do so without decay."""
    jd.need(ds, seed=8, decay=(0.0,))
    on, off = worlds(ds)
    fired = fires(on)
    return [
        *gates(ds),
        jd.share_within("with decay: share that fires before the test accuracy is .95", sooner(on, fired), over="seed", high=0.5),
        jd.share_within("with decay: share that fires", np.isfinite(fired), over="seed", low=0.5),
        jd.mean_within("with decay: epochs from firing to a test accuracy of .95, mean", ahead(on, fired), over="seed", high=-20.0),
        jd.at_least("without decay: final test accuracy", off.test.isel(epoch=-1), KNOWN),
    ]


def judge_rise(ds: xr.Dataset) -> list[jd.Check]:
    """When the published detector fires, and how long before the network generalises."""
    jd.need(ds, seed=8, decay=(0.0,))
    on, off = worlds(ds)
    fired = rises(on)
    at = fired.clip(max=2 * float(ds.epoch[-1]))
    return [
        *gates(ds),
        jd.share_within("with decay: share that fires", np.isfinite(fired), over="seed", low=0.5),
        jd.mean_within(f"with decay: epoch of firing, mean (paper: {FIRES_AT})", at, over="seed", low=MIDDLE[0], high=MIDDLE[1]),
        jd.mean_within("with decay: epochs from firing to a test accuracy of .95, mean", ahead(on, fired), over="seed", low=0.0),
        jd.share_within("without decay: share that fires", np.isfinite(rises(off)), over="seed", high=0.5),
    ]


def judge_relu(ds: xr.Dataset) -> list[jd.Check]:
    """Whether networks generalise without a gap."""
    jd.need(ds, seed=8)
    return [
        jd.gate("final test accuracy", ds.test.isel(epoch=-1), at_least=KNOWN),
        jd.share_within("share that fires", np.isfinite(fires(ds)), over="seed", high=0.5),
        jd.mean_within(
            "largest ratio of the second to the third value, mean", ds.ratio.sel(after=AFTER).max("end"), over="seed", high=2.0
        ),
    ]


def instead(curve: Callable[[xr.Dataset], xr.DataArray | float]) -> Callable[[xr.Dataset], xr.Dataset]:
    """The detector watches another curve."""
    return jd.swap(ratio=lambda ds: xr.where(ds.after == AFTER, curve(ds), ds.ratio))


def exchanged(ds: xr.Dataset) -> xr.Dataset:
    """A control: the updates of runs without decay in place of those with it, and the reverse."""
    return ds.assign(ratio=ds.ratio.copy(data=ds.ratio.isel(decay=slice(None, None, -1)).values))


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """The gap along training, and the test accuracy."""
    left, right = fig.subplots(1, 2)
    for decay in np.atleast_1d(ds.decay):
        color = "measured" if decay > 0 else "control"
        part = ds.sel(decay=decay) if "decay" in ds.dims else ds
        label = f"decay {decay:g}"
        plotting.band(left, ds.end, part.ratio.sel(after=AFTER).transpose("seed", "end"), label, color)
        plotting.band(right, ds.epoch, part.test.transpose("seed", "epoch"), label, color)
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
    bounds=jd.looked(at="0:12", confirmed="51000000:51000016"),
    source=f"arXiv:2605.08119, sections 2 and 5 ({PAPER})",
    plot=plot,
    caption="Left: ratio of the second to the third singular value of the last ten updates of W, against the epoch, and the level "
    "at which the detector fires. Right: test accuracy. Median and central 90% of the runs.",
)
NO_GAP = instead(lambda ds: ds.ratio.sel(after=AFTER, drop=True).isel(end=0, drop=True))
CLAIMS = (
    STUDY.claim(
        id="xu.spectral",
        statement="Networks of squares (128 nodes) that learn addition modulo 23 from half of the pairs announce that they will "
        r"generalise: with weight decay, the second singular value of the last ten updates of $W$ (one update: five epochs) "
        "exceeds three times the third before the test accuracy is .95, in most networks that generalise within 400 epochs (at "
        "least three quarters of all do) and on average over these by at least 50 epochs. Without weight "
        "decay networks fit their pairs as well, and most never show this gap.",
        judge=judge,
        controls={"updates with and without decay exchanged": exchanged},
        rivals={
            "no gap opens": NO_GAP,
            "updates that shrink to a third": instead(lambda ds: ds["size"].isel(end=0, drop=True) / ds["size"]),
            "gap after the first value": instead(lambda ds: ds.ratio.sel(after=1, drop=True)),
            "gap after the third value": instead(lambda ds: ds.ratio.sel(after=3, drop=True)),
        },
    ),
    STUDY.claim(
        id="xu.rise",
        statement="The published detector watches the logarithm of the ratio of the second to the third eigenvalue, and fires when "
        "it has risen by 1 within 25 epochs. In two-layer networks with quadratic activation (128 nodes) that learn addition "
        "modulo 23 from half of the pairs with weight decay, when does it fire, how long before the test accuracy is .95 (in "
        "networks in which it is in the end), and in how many networks without decay, which never generalise? At the published "
        "sizes (the study: modulo 71, 2048 nodes, 15 runs) it fires at epoch 173 or 174 in every run with decay, as published, but "
        "44 epochs after the test accuracy is .95, and in two without.",
        expected="measured",
        judge=judge_rise,
        controls={"updates with and without decay exchanged": exchanged},
        rivals={"no gap opens": NO_GAP},
        found={
            "with decay: share that fires": (0.9, 1.0),
            f"with decay: epoch of firing, mean (paper: {FIRES_AT})": (150.0, 165.0),
            "with decay: epochs from firing to a test accuracy of .95, mean": (120.0, 195.0),
            "without decay: share that fires": (0.4, 1.0),
        },
    ),
    STUDY.claim(
        id="xu.late",
        quick=GRID.replace(share=0.8),
        paper=PAPER_GRID.replace(share=0.8),
        statement="On 0.8 of the pairs, beyond the paper's shares, the gap is no early sign: most two-layer networks with "
        "quadratic activation (128 nodes, modulo 23) with weight decay show it, but generalise first (in most, and on average at "
        "least 20 epochs before it opens), and they generalise without weight decay too. (Modulo 71 with 2048 nodes it is there "
        "from the first window on, with decay and without: the study is refuted.)",
        judge=judge_late,
        controls={"half of the pairs": jd.Control({"share": 0.5}, every_seed=True)},
        rivals={
            "no gap opens": NO_GAP,
            "the gap opens at the start": instead(lambda ds: HIGH + 0 * ds["size"]),
        },
    ),
    STUDY.claim(
        id="xu.relu",
        quick=GRID.replace(share=0.8, decay=5e-4, activation="relu"),
        paper=PAPER_GRID.replace(decay=2e-4, activation="relu"),
        statement="Networks with ReLU learn addition modulo 23 from 0.8 of the pairs with weight decay, and generalise, without "
        "this gap: most never have a second singular value of three times the third, and the largest ratio of the "
        "two along training is at most 2 on average.",
        judge=judge_relu,
        controls={"squares": {"activation": "square"}},
        rivals={
            "the gap opens": instead(lambda ds: HIGH + 0 * ds["size"]),
            "gap after the first value": instead(lambda ds: ds.ratio.sel(after=1, drop=True)),
        },
    ),
)
