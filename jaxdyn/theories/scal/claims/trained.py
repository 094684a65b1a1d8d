"""Claim on a ladder of language models trained here: exponents of the best size by three approaches, and what cooling is worth."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.scal import approaches
from jaxdyn.theories.scal.approaches import APPROACHES
from jaxdyn.theories.scal.dynamics import laws
from jaxdyn.theories.scal.trials.ladder import Rung, trial

__all__ = ["CLAIMS", "interval", "judge", "one_schedule", "sizes", "table", "tuned"]

WIDTHS = [4, 8, 12, 16, 20]
LEVEL, RESAMPLES = 95, 200
FOUND = {  # seeds 0:4 and 4000:4004, with room
    "exponent of the best size, minimum over curves": (0.4, 0.75),
    "exponent of the best size, isoFLOP parabolas": (0.45, 0.8),
    "exponent of the best size, parametric fit": (0.45, 0.65),
    "exponent, minimum over curves less parametric fit": (-0.15, 0.25),
    "exponent, isoFLOP parabolas less parametric fit": (-0.15, 0.3),
    "loss at the largest budget by a fit to the others, relative error": (0.0, 0.02),
    "loss before the rate falls less after, same tokens, mean over models": (0.004, 0.036),
}


def tuned(ds: xr.Dataset) -> xr.Dataset:
    """Every size and budget at the rate with the lowest validation loss, mean over seeds."""
    if "factor" not in ds.dims:
        return ds
    valid = ds.measured_loss.sel(part="valid", drop=True).mean("seed")
    return ds.isel(factor=valid.fillna(np.inf).argmin("factor"))


def table(ds: xr.Dataset, name: str = "measured_loss") -> np.ndarray:
    """Test losses [seed, size, budget], each model at its own rate."""
    return tuned(ds)[name].sel(part="test").transpose("seed", "width", "budget").values


def sizes(ds: xr.Dataset) -> np.ndarray:
    """Weights of each size."""
    return ds.weights.max([d for d in ds.weights.dims if d != "width"]).values


def one_schedule(ds: xr.Dataset) -> np.ndarray:
    """Losses as with one schedule made for the largest budget: at the others the rate has not fallen yet."""
    losses = table(ds, "measured_undecayed").copy()
    losses[..., -1] = table(ds)[..., -1]
    return losses


def interval(draws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Percentiles of resampled values."""
    low, high = np.percentile(draws, [50 - LEVEL / 2, 50 + LEVEL / 2], axis=0)
    return low, high


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Exponents, their differences, a budget that was not fitted, and what a falling rate is worth."""
    jd.need(ds, width=3, budget=4, seed=2)
    n, budgets, losses = sizes(ds), ds.budget.values, table(ds)
    best = approaches.estimates(n, budgets, losses.mean(0))
    draws = approaches.resampled(n, budgets, losses, RESAMPLES)
    late = (tuned(ds).measured_undecayed - tuned(ds).measured_loss).sel(part="test", drop=True).mean(["width", "budget"])

    def check(name: str, value: np.ndarray, drawn: np.ndarray, low: float, high: float) -> jd.Check:
        return jd.interval_within(name, float(value), interval(drawn), low=low, high=high)

    start = tuned(ds).start.sel(part="test", drop=True)
    end = tuned(ds).measured_loss.sel(part="test", drop=True).isel(budget=-1, drop=True)
    a = best.exponents
    return [
        jd.gate("loss at the start less that at the largest budget", start - end, at_least=1.0),
        *(check(f"exponent of the best size, {name}", a[i], draws[:, i], 0.3, 0.7) for i, name in enumerate(APPROACHES)),
        *(
            check(f"exponent, {APPROACHES[i]} less parametric fit", a[i] - a[2], draws[:, i] - draws[:, 2], -0.3, 0.3)
            for i in range(2)
        ),
        jd.at_most("loss at the largest budget by a fit to the others, relative error", float(best.held_out), 0.02),
        jd.mean_within(
            "loss before the rate falls less after, same tokens, mean over models", late, over="seed", low=0.002, level=0.95
        ),
    ]


def replaced(f: Callable[[xr.DataArray, xr.Dataset], xr.DataArray]) -> Callable[[xr.Dataset], xr.Dataset]:
    """Losses of both kinds replaced by a function of their means over seeds."""

    def breach(ds: xr.Dataset) -> xr.Dataset:
        names = ("measured_loss", "measured_undecayed")
        new = {name: f(ds[name].mean("seed"), ds) + 0 * ds[name] for name in names}
        return ds.assign({name: x.transpose(*ds[name].dims) for name, x in new.items()})

    return breach


def kaplan(x: xr.DataArray, ds: xr.Dataset) -> xr.DataArray:
    """Losses by a law whose best size grows with the budget to the power 0.73."""
    tokens = ds.budget / (laws.COST * ds.weights)
    return laws.loss(laws.Law(1.8, 3e3**0.27, 4e4**0.73, 0.27, 0.73), ds.weights, tokens) + 0 * x


def stopped(x: xr.DataArray, ds: xr.Dataset) -> xr.DataArray:
    """Models at the largest budget are those of the one before."""
    return x.where(x.budget < x.budget.max(), x.shift(budget=1))


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """IsoFLOP curves with their parabolas' vertices, and best sizes over budgets."""
    left, right = fig.subplots(1, 2)
    n, budgets, losses = sizes(ds), ds.budget.values, table(ds).mean(0)
    found = approaches.estimates(n, budgets, losses)
    plotting.lines(left, n, list(losses.T), color_by=[f"{c:.1e}" for c in budgets], name="operations", marker="o", ms=3)
    left.set(xscale="log", xlabel="weights N", ylabel="test loss, nats a token")
    left.set_xticks(n, [str(int(x)) for x in n])
    left.minorticks_off()
    right.loglog(budgets, np.exp(found.vertices), "o", color=plotting.COLORS["measured"], label="vertices of parabolas")
    fine = np.geomspace(budgets[0], budgets[-1], found.lowest.size)
    right.loglog(fine, np.exp(found.lowest), "-", color=plotting.COLORS["control"], label="lowest curve")
    law = approaches.fits.as_law(found.theta)
    best = np.asarray(laws.optimum(law, budgets)[0])
    right.loglog(budgets, best, "--", color=plotting.COLORS["theory"], label="parametric fit")
    right.set(xlabel="budget, operations", ylabel="best size N")
    right.set_xticks(budgets[::2], [f"{c:.1e}" for c in budgets[::2]])
    right.set_yticks(n, [f"{size:.0f}" for size in n])
    right.minorticks_off()


CLAIMS = (
    jd.Study(
        trial=trial,
        quick=jd.grid(Rung, width=WIDTHS),
        paper=jd.grid(
            Rung, width=[16, 24, 32, 48, 64, 96], factor=[0.5, 1.0, 2.0], least=10.3, budgets=6, layers=2, batch=16, length=64
        ),
        seeds=4,
        paper_seeds=5,
        evidence="network",
        source="arXiv:2203.15556, section 3; arXiv:2404.10102",
        plot=plot,
        caption="Left: test loss over the number of weights at each budget, mean over seeds. Right: best size over the budget by "
        "the three approaches.",
    ).claim(
        id="scal.trained",
        statement="How does the best size of a language model grow with compute? A ladder of 25 decoders, five sizes (464 to 6120 "
        r"weights, read-out included) at five budgets $6ND$ from $2 \cdot 10^8$ to $3.2 \cdot 10^9$ operations, "
        "on the Python interpreter's manual, each with a schedule of its own length at a rate of 0.04 over the root of its width: "
        "exponents by the minimum over curves, by isoFLOP parabolas and by the parametric fit, "
        "with 95% bootstrap intervals over four seeds; the differences between them; how far a fit to the four "
        "smaller budgets misses the losses of the three best sizes at the largest; and by how much a "
        "loss falls, mean over models, when its rate falls to zero over the last 30% of the same tokens.",
        expected="measured",
        judge=judge,
        controls={"sizes in reverse": replaced(lambda x, ds: x.isel(width=slice(None, None, -1)).assign_coords(width=x.width))},
        rivals={
            "nothing is learned": replaced(lambda x, ds: ds.start.mean("seed") + 0 * x),
            "the best size grows with the budget to the power 0.73": replaced(kaplan),
            "the last doubling of the budget changes nothing": replaced(stopped),
            "tokens do not matter: every budget has the losses of the largest": replaced(
                lambda x, ds: x.isel(budget=-1, drop=True) + 0 * x
            ),
        },
        found=FOUND,
    ),
)
