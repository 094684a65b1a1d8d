r"""Claims on the parametric fit: what it recovers, when its search ends too early, and whether its bootstrap intervals hold.

Losses by a random law at a grid of sizes and tokens, and what the parametric fit of approach 3 makes of them.

Sizes run over two decades and tokens over two, every pair once. The fit knows neither the law nor its range: it starts from the
grid of starts that was published.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting, sampling
from jaxdyn.theories.scal import fits
from jaxdyn.theories.scal.dynamics import laws
from jaxdyn.theories.scal.random_laws import sample_law

PARAMETERS = ("A", "B", "E", "alpha", "beta")
STRICT, DEFAULT = (1e-15, 1e-12), (2.2e-9, 1e-5)  # least gain of a step, least derivative
DECADES = ((8.0, 10.0), (9.0, 11.0))  # of sizes and of tokens


@jd.setting
class Exact:
    """Losses without noise, and the search.

    Args:
        law: "additive", or "kaplan": then no additive law is true.
        objective: Huber's losses are summed, or averaged.
        stops: "default", those of L-BFGS-B: the search ends when a step gains less than 2.2e-9 max(|f|, 1) or no derivative is
            above 1e-5; "strict": 1e-15 and 1e-12.
        digit: losses are rounded to multiples of it; 0: not at all.
        sizes: number of sizes, and of numbers of tokens.
        starts: the best of the grid's that are used.
    """

    law: jd.Code = jd.code("additive", "kaplan")
    objective: jd.Code = jd.code("sum", "mean")
    stops: jd.Code = jd.code("strict", "default")
    digit: jd.Swept = jd.field(0.0, at_least=0)
    sizes: int = jd.field(7, at_least=3)
    starts: int = jd.field(6, at_least=1, at_most=len(fits.GRID))


def grid(sizes: int) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
    """Logarithms of sizes and tokens, every pair once."""
    n, d = (jnp.linspace(*ends, sizes, dtype=jnp.float64) * jnp.log(10.0) for ends in DECADES)
    n, d = jnp.meshgrid(n, d, indexing="ij")
    return n.ravel(), d.ravel()


def trial(s: Exact, key: PRNGKeyArray) -> jd.Observables:
    """The law's parameters and those of the fit, by L-BFGS from many starts and by variable projection."""
    # losses of the law
    law = sample_law(key)
    n, d = grid(s.sizes)
    other = laws.Kaplan(1e9, 1e10, 0.3 * law.alpha, 0.3 * law.beta)
    losses = jnp.where(s.law == "kaplan", laws.kaplan_loss(other, jnp.exp(n), jnp.exp(d)), laws.loss(law, jnp.exp(n), jnp.exp(d)))
    step = jnp.maximum(s.digit, 1e-300)
    losses = jnp.where(s.digit > 0, jnp.round(losses / step) * step, losses)
    p = fits.Points(n, d, jnp.log(losses), jnp.ones_like(n))
    # both fits
    scale = jnp.where(s.objective == "mean", 1 / n.size, 1.0)
    first = fits.starts(p, s.starts)
    loose = s.stops == "default"
    gain, slope = (jnp.where(loose, a, b) for a, b in zip(DEFAULT, STRICT, strict=True))
    stops = fits.Stops(gain, slope)
    ends, steps = jax.vmap(lambda start: fits.lbfgs(start, p, scale, stops))(first)
    values = jax.vmap(lambda theta: fits.objective(theta, p))(ends)
    best = jnp.argmin(values)
    theta = ends[best]
    projected = fits.fitted(p)

    def numbers(law: laws.Law) -> Any:
        return jd.named(jnp.stack([jnp.asarray(x, jnp.float64) for x in (law.a, law.b, law.e, law.alpha, law.beta)]), "parameter")

    return jd.observables(
        predicted={"parameters": numbers(law), "exponent": laws.exponent(law)},
        measured={"parameters": numbers(fits.as_law(theta)), "exponent": laws.exponent(fits.as_law(theta))},
        recorded={
            "start": numbers(fits.as_law(first[0])),
            "start_exponent": laws.exponent(fits.as_law(first[0] + jnp.array([0, 0, 0, 1e-9, 1e-9]))),
            "projected": numbers(fits.as_law(projected)),
            "value": values[best],
            "steps": steps[best].astype(jnp.float64),
        },
        coords={"parameter": PARAMETERS},
    )


@jd.setting
class Noisy:
    """Losses with noise, and the bootstrap.

    Args:
        noise: standard deviation of ln L.
        shared: share of the noise's variance that all models of a size have in common.
        sizes: number of sizes, and of numbers of tokens.
        resamples: of the points, with replacement.
        level: of the interval.
    """

    noise: jd.Swept = jd.field(0.005, above=0)
    shared: jd.Swept = jd.field(0.0, at_least=0, at_most=1)
    sizes: int = jd.field(8, at_least=3)
    resamples: int = jd.field(100, at_least=2)
    level: float = jd.field(0.95, above=0, below=1)


def noisy_trial(s: Noisy, key: PRNGKeyArray) -> jd.Observables:
    """The exponent of the law, that of the fit, and its bootstrap interval."""
    k_law, k_noise, k_boot = jax.random.split(key, 3)
    law = sample_law(k_law)
    n, d = grid(s.sizes)
    own, common = jnp.split(sampling.normal(k_noise, (n.size + s.sizes,)), [n.size])
    noise = jnp.sqrt(1 - s.shared) * own + jnp.sqrt(s.shared) * jnp.repeat(common, s.sizes)
    p = fits.Points(n, d, jnp.log(laws.loss(law, jnp.exp(n), jnp.exp(d))) + s.noise * noise, jnp.ones_like(n))
    theta = fits.fitted(p)
    each = fits.resampled(k_boot, theta, p, s.resamples)
    a = each[:, 4] / (each[:, 3] + each[:, 4])
    low, high = jnp.quantile(a, jnp.array([(1 - s.level) / 2, (1 + s.level) / 2]))
    return jd.observables(
        predicted={"exponent": laws.exponent(law)},
        measured={"exponent": laws.exponent(fits.as_law(theta))},
        recorded={"low": low, "high": high},
    )


PUBLISHED = 0.0005  # half of the width of the range printed for a


def judge_recover(ds: xr.Dataset) -> list[jd.Check]:
    """All parameters and the exponent against those of the law, by both ways to search."""
    searched, projected = (
        abs(x - ds.predicted_parameters) / ds.predicted_parameters for x in (ds.measured_parameters, ds.projected)
    )
    return [
        jd.at_most("parameters by L-BFGS against the law's, relative", searched, 1e-3),
        jd.at_most("exponent a by L-BFGS minus the law's", error(ds), 1e-4),
        jd.at_most("parameters by variable projection and Levenberg-Marquardt against the law's, relative", projected, 1e-3),
    ]


TRAPPED = "share of laws whose exponent is off by more than 0.005, default tolerances"
STRICTLY = "share of laws whose exponent is off by more than 0.001, strict tolerances"


def judge_trap(ds: xr.Dataset) -> list[jd.Check]:
    """Errors of the exponent with default and with strict tolerances, Huber's losses averaged."""
    jd.need(ds, stops=("default", "strict"))
    wrong = error(ds)
    trapped, missed = (
        (wrong.sel(stops=stops, drop=True) > size).where(ds.status.sel(stops=stops, drop=True) == 0)
        for stops, size in (("default", 0.005), ("strict", 0.001))
    )
    return [
        jd.share_within(TRAPPED, trapped, over=over(trapped), low=0.5),
        jd.share_within(STRICTLY, missed, over=over(missed), high=0.2),
    ]


OFF = "share of laws with an exponent off by more than 0.001"


def judge_default(ds: xr.Dataset) -> list[jd.Check | jd.Reading]:
    """How often default tolerances end too early with sums as well."""
    trapped = (error(ds) > 0.001).where(ds.status == 0)
    return [jd.share_reading(OFF, trapped, over=over(trapped), level=0.95)]


HOLD = "share of 95% intervals that hold the law's exponent"
HALVES = "share of repeats whose error is below a quarter of the interval's width"


def judge_coverage(ds: xr.Dataset) -> list[jd.Check]:
    """Share of repeats whose interval holds the law's exponent, and how wide the intervals are."""
    ran = ds.status == 0
    inside = ((ds.low <= ds.predicted_exponent) & (ds.predicted_exponent <= ds.high)).where(ran)
    near = (error(ds) <= (ds.high - ds.low) / 4).where(ran)
    return [
        jd.share_within(HOLD, inside, over=over(inside), low=0.9),
        jd.share_within(HALVES, near, over=over(near), low=0.5, high=0.8),
    ]


def widened(end: str) -> Callable[[xr.Dataset], xr.DataArray]:
    """An end of the interval, twice as far from the fit."""
    return lambda ds: 2 * ds[end] - ds.measured_exponent


# A bootstrap of a quarter of the points.
WIDE = jd.swap(low=widened("low"), high=widened("high"))


def over(flags: xr.DataArray) -> list[str]:
    """Axes of the runs."""
    return [str(d) for d in flags.dims]


def error(ds: xr.Dataset) -> xr.DataArray:
    """Distance of the fitted exponent from the law's."""
    return abs(ds.measured_exponent - ds.predicted_exponent)


# The search stays at its best start.
STAYS = jd.swap(measured_parameters="start", projected="start", measured_exponent=lambda ds: 0.5 + 0 * ds.measured_exponent)
# The averaged objective has another minimum, which default tolerances reach.
BIASED = {STRICTLY: lambda ds: float((error(ds).sel(stops="default") > 0.001).mean())}
# The fit is as precise as the printed range.
NARROW = {HOLD: lambda ds: float((error(ds) <= PUBLISHED).mean())}


def plot_exponents(ds: xr.Dataset, fig: Figure) -> None:
    """Exponents of the fit against those of the laws, by tolerance."""
    ax = fig.subplots()
    searches = [ds.sel(stops=name) for name in ds.stops.values] if "stops" in ds.dims else [ds]
    for part, color in zip(searches, ("measured", "control"), strict=False):
        ax.plot(
            part.predicted_exponent.values.ravel(),
            part.measured_exponent.values.ravel(),
            "o",
            label=str(part.stops.item()) if "stops" in part.coords else None,
            color=plotting.COLORS[color],
        )
    ax.axline((0.5, 0.5), slope=1, color=plotting.COLORS["theory"], lw=1)
    ax.set(xlabel="exponent a of the law", ylabel="exponent a of the fit")


def plot_intervals(ds: xr.Dataset, fig: Figure) -> None:
    """Errors of the exponent with their intervals, in order."""
    ax = fig.subplots()
    flat = {name: ds[name].values.ravel() for name in ("predicted_exponent", "measured_exponent", "low", "high")}
    order = (flat["measured_exponent"] - flat["predicted_exponent"]).argsort()
    truth, mid, low, high = (flat[name][order] for name in flat)
    ax.errorbar(
        range(truth.size), mid - truth, yerr=[mid - low, high - mid], fmt=".", ms=3, lw=0.7, color=plotting.COLORS["measured"]
    )
    ax.axhline(0, color=plotting.COLORS["theory"], lw=1)
    ax.set(xlabel="repeat, in order", ylabel="exponent a minus the law's")


STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Exact),
    seeds=6,
    paper_seeds=64,
    evidence="algebra",
    bounds=jd.tuned(on="0:6", confirmed_on="61000000:61000006"),
    source="arXiv:2203.15556, section 3.3; arXiv:2404.10102",
    tested="Simulated losses without noise at {sizes} sizes times {sizes} numbers of tokens, over two decades each, by {seeds} "
    "random laws; L-BFGS from the best {starts} of the published grid of 4500 starts, tolerances: {stops} (strict: 1e-15 on the "
    "gain of a step and 1e-12 on derivatives; default, as of L-BFGS-B: 2.2e-9 and 1e-5); no training.",
    plot=plot_exponents,
    caption="Exponent a that the parametric fit finds against that of the law, losses without noise; one point per law and "
    "tolerance.",
)
LAW = r"$E + AN^{-\alpha} + BD^{-\beta}$ ($N$ weights, $D$ tokens, parameters $E, A, B, \alpha, \beta$)"
CLAIMS = (
    STUDY.claim(
        id="scal.recover",
        talks=("grokking:scal-steps",),
        title="The parametric fit recovers the law from losses without noise",
        statement=f"From exact losses {LAW} the parametric fit, which minimises the sum of Huber's losses of the errors in "
        r"$\ln L$ by L-BFGS with strict tolerances, from the best six of the published starts, recovers all five parameters to a "
        r"relative $10^{-3}$ and the exponent $a = \beta/(\alpha+\beta)$ to $10^{-4}$, for each law with exponents of .2 to .6; a "
        "grid of variable projection followed by Levenberg-Marquardt, which needs no start, recovers the parameters as well.",
        judge=judge_recover,
        controls={
            "losses by Kaplan's law": {"law": "kaplan"},
            "losses rounded to 0.01": {"digit": 0.01},
            "the search stays at its best start": STAYS,
        },
        rivals={"size and tokens grow alike, a = 1/2": jd.swap(predicted_exponent=0.5)},
    ),
    STUDY.claim(
        id="scal.mean_trap",
        title="On averaged losses L-BFGS with default tolerances stops too early",
        statement=f"When the parametric fit of exact losses {LAW} averages Huber's losses, L-BFGS with its default tolerances "
        r"misses the exponent $a = \beta/(\alpha+\beta)$ by more than 0.005 for more than half of the laws (with sums it is less "
        r"frequent: "
        "`scal.sum_default`); with strict ones it finds it to $10^{-3}$ for more than four laws in five.",
        quick=jd.grid(Exact, objective="mean", stops=["strict", "default"]),
        seeds=48,
        bounds=jd.tuned(on="63000000:63000048", confirmed_on="64000000:64000048"),
        judge=judge_trap,
        controls={"fits compared with the next law": jd.Control(jd.rolled(measured_exponent="seed"), breaks="misses the exponent")},
        rivals={"tolerances make no difference": {TRAPPED: 0.0}, "the average has another minimum": BIASED},
    ),
    STUDY.claim(
        id="scal.sum_default",
        title="How often default tolerances are too loose when losses are summed",
        statement=f"When the parametric fit of exact losses {LAW} sums Huber's losses and L-BFGS has its default tolerances, "
        r"for which share of laws is the exponent $a = \beta/(\alpha+\beta)$ off by more than 0.001?",
        quick=jd.grid(Exact, stops="default"),
        seeds=48,
        expected="measured",
        recorded={
            "share of laws with an exponent off by more than 0.001": (0.728, 0.8542, 0.928),
        },
        judge=judge_default,
        rivals={"sums are enough": {OFF: 0.0}},
    ),
    jd.Study(
        trial=noisy_trial,
        quick=jd.grid(Noisy),
        seeds=384,
        paper_seeds=1000,
        evidence="algebra",
        source="arXiv:2404.10102, section 3 (bootstrap); sizes ours",
        tested="Simulated losses at {sizes} sizes times {sizes} numbers of tokens, over two decades each, by {seeds} random "
        "laws, with independent noise of {noise} in $\\ln L$; {resamples} resamples of the points; no training.",
        plot=plot_intervals,
        caption="Exponent a of the fit minus that of the law with its 95% bootstrap interval; one bar per repeat, in order.",
    ).claim(
        id="scal.noise",
        title="Bootstrap intervals of the exponent mostly hold the true one",
        statement=f"From losses {LAW} of 64 models with Gaussian noise of 0.5% that is independent from model to model, the 95% "
        r"bootstrap interval of the exponent $a = \beta/(\alpha+\beta)$ holds the law's own in more than 90% of repeats, and one "
        "of half the width would in 50 to 80%.",
        judge=judge_coverage,
        bounds=jd.tuned(on="0:384", confirmed_on="70000001:70000385"),
        controls={
            "all models of a size share their noise": {"shared": 1.0},
            "intervals twice as wide, as by resamples of a quarter of the points": WIDE,
        },
        rivals={"the fit is as precise as the range that was printed, ±0.0005": NARROW},
    ),
)
