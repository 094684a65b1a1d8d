r"""Published figures of scaling laws: the tokens of a lifetime, rounding of the parameters, and sums of exponents.

How many tokens a person meets in a lifetime, by the talk's own factors.

.. math:: 70\ \text{years} \cdot 300\ \frac{\text{days}}{\text{year}} \cdot 12\ \frac{\text{hours}}{\text{day}}
   \cdot 3600\ \frac{\text{seconds}}{\text{hour}} \cdot 10\ \frac{\text{tokens}}{\text{second}} = 9.072 \cdot 10^9

Published parameters of the loss law, the exponents that follow from them, and what rounding and the printed range do to them.

The printed exponents of size and tokens against each other.

A budget of :math:`C = 6ND` operations that is spent whole makes the exponents of the best size and the best number of tokens add up
to one, :math:`a + b = 1`, in a point and in every resample. So a pair of printed ranges has to hold such a pair.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.scal import published
from jaxdyn.theories.scal.dynamics import laws


@jd.setting
class Life:
    """The printed factors, of which none is ours to choose."""


def tokens_trial(s: Life, key: PRNGKeyArray) -> jd.Observables:
    """The product, next to the printed number and to those of whole years."""
    del s, key
    years, days, hours, rate = published.LIFE
    number = lambda x: jnp.asarray(x, jnp.float64)  # noqa: E731
    return jd.observables(
        predicted={"tokens": number(years * days * hours * 3600 * rate)},
        measured={"tokens": number(published.HUMAN_TOKENS)},
        recorded={
            "every_day": number(years * 365 * hours * 3600 * rate),
            "sleepless": number(years * 365 * 24 * 3600 * rate),
        },
    )


HALF = 0.05e9  # of a unit of the last printed digit


def judge_tokens(ds: xr.Dataset) -> list[jd.Check]:
    """The product against the printed number."""
    return [jd.at_most("product minus the printed number, tokens", abs(ds.predicted_tokens - ds.measured_tokens), HALF)]


def plot_tokens(ds: xr.Dataset, fig: Figure) -> None:
    """The three numbers."""
    ax = fig.subplots()
    names = {"measured_tokens": "printed", "predicted_tokens": "product", "sleepless": "every hour of every day"}
    ax.barh(list(names.values()), [float(ds[name].mean()) / 1e9 for name in names], color=plotting.COLORS["measured"])
    ax.set(xlabel="tokens in a lifetime, billions")


HUMAN_TOKENS_CLAIMS = (
    jd.Study(
        trial=tokens_trial,
        quick=jd.grid(Life),
        evidence="numbers",
        bounds="derived: half a unit of the last printed digit",
        source="talks grokking and practical, Comparison between Human and SoTA LMs",
        tested="Published figures against each other.",
        plot=plot_tokens,
        caption="The printed number of tokens in a lifetime, the product of the printed factors, and that of every hour.",
    ).claim(
        id="scal.human_tokens",
        title="Seventy years of ten tokens a second are 9.1 billion tokens",
        statement="70 years of 300 days of 12 hours, at 10 tokens in a second, make 9.072 billion tokens: 9.1 as it is printed.",
        judge=judge_tokens,
        talks=("grokking:scal-human-tokens",),
        controls={"years of 365 days": jd.swap(predicted_tokens="every_day")},
        rivals={"every hour of every day": jd.swap(predicted_tokens="sleepless")},
    ),
)


@jd.setting
class Published:
    """The published fits; no field is swept."""

    budget: jd.Swept = jd.field(published.BUDGET, above=0)  # C, operations of which the best sizes are computed


def rounding_trial(s: Published, key: PRNGKeyArray) -> jd.Observables:
    """Exponents and best sizes that follow from published parameters, and the published exponent with its range."""
    del key
    results = [(laws.exponent(law), laws.optimum(law, s.budget)[0]) for law in published.LAWS.values()]
    point, (low, high), *_ = published.APPROACHES["3, parametric fit"]

    def by_source(values: Any) -> Any:
        return jd.named(jnp.asarray(values, jnp.float64), "source")

    return jd.observables(
        predicted={"exponent": by_source([point] * len(results))},
        measured={"exponent": by_source([a for a, _ in results])},
        recorded={
            "size": by_source([n for _, n in results]),
            "low": jnp.asarray(low, jnp.float64),
            "high": jnp.asarray(high, jnp.float64),
        },
        coords={"source": tuple(published.LAWS)},
    )


DIGITS, PRINTED = "Hoffmann, all digits", "Hoffmann, as printed"


WHOLE, ROUNDED = "exponent minus the printed 0.46, all digits", "exponent minus the printed 0.46, printed parameters"
RATIO, APART = "best size by all digits over that by printed ones", "distance of the exponent from its printed range"


def error(ds: xr.Dataset, source: str) -> xr.DataArray:
    """Distance of the exponent from the printed one."""
    return abs(ds.measured_exponent - ds.predicted_exponent).sel(source=source)


def judge_rounding(ds: xr.Dataset) -> list[jd.Check]:
    """The exponent of both sets of parameters against the printed one and its range, and their best sizes."""
    jd.need(ds, source=(DIGITS, PRINTED))
    size = ds["size"]
    return [
        jd.at_most(WHOLE, error(ds, DIGITS), 0.005),
        jd.at_least(ROUNDED, error(ds, PRINTED), 0.005),
        jd.at_least(RATIO, size.sel(source=DIGITS) / size.sel(source=PRINTED), 1.2),
        jd.at_least(APART, distance(ds, ds.low, ds.high), 0.001),
    ]


def distance(ds: xr.Dataset, low: xr.DataArray | float, high: xr.DataArray | float) -> xr.DataArray:
    """How far both exponents lie outside of a range; negative inside."""
    return np.maximum(low - ds.measured_exponent, ds.measured_exponent - high).sel(source=[DIGITS, PRINTED])


# Rounding the parameters changes nothing.
SAME: dict[str, Any] = {ROUNDED: lambda ds: float(error(ds, DIGITS).max()), RATIO: 1.0}
# The exponents of size and tokens are exchanged.
EXCHANGED = jd.swap(measured_exponent=lambda ds: 1 - ds.measured_exponent)
# The range is as wide as the digits that are printed, 0.455 to 0.465 and down to 0.45.
WIDE = {APART: lambda ds: float(distance(ds, 0.45, 0.465).min())}


def plot_rounding(ds: xr.Dataset, fig: Figure) -> None:
    """Exponents by source, and the printed range."""
    ax = fig.subplots()
    a = ds.measured_exponent.isel({d: 0 for d in ds.measured_exponent.dims if d != "source"})
    ax.plot(a, np.arange(a.size), "o", color=plotting.COLORS["measured"], label="from the parameters")
    ax.axvspan(float(ds.low.min()), float(ds.high.max()), color=plotting.COLORS["theory"], alpha=0.4, label="printed range")
    ax.set_yticks(np.arange(a.size), [str(name) for name in a.source.values])
    ax.set(xlabel="exponent of the best size, a", ylim=(-0.5, a.size - 0.5))


ROUNDING_CLAIMS = (
    jd.Study(
        trial=rounding_trial,
        quick=jd.grid(Published),
        evidence="numbers",
        bounds="derived: half a unit of the last printed digit; the printed figures, rounded down, for the ratio and the distance",
        source="arXiv:2203.15556, Table 2 and appendix D.3; arXiv:2404.10102",
        tested="Published figures against each other; nothing is fitted or trained.",
        plot=plot_rounding,
        caption="The exponent $a = \\beta/(\\alpha+\\beta)$ that follows from published parameters, and the range printed for "
        "the first.",
    ).claim(
        id="scal.rounding",
        talks=("grokking:scal-table-ranges",),
        title="The printed exponent does not follow from the printed parameters",
        statement="The parametric fit's exponent, printed as $a = 0.46$, follows from its parameters with all their digits and "
        r"not from those that are printed; at $5.76 \cdot 10^{23}$ operations the two give best sizes that differ by a factor "
        "of at least 1.2; and the range printed for $a$, 0.454 to 0.455, misses both exponents by 0.001 or more.",
        judge=judge_rounding,
        controls={"exponents of size and tokens exchanged": EXCHANGED},
        rivals={"rounding changes nothing": SAME, "the range covers the digits that are printed": WIDE},
    ),
)


FIT = "3, parametric fit"
ROWS = (*published.APPROACHES, "Kaplan")
DIGIT = 0.0005  # half a unit of the last digit of a range's end


@jd.setting
class Table:
    """The table of printed exponents."""

    spent: jd.Swept = jd.field(1.0, above=0)  # a + b, sum of the exponents if the budget is spent whole


def sums_trial(s: Table, key: PRNGKeyArray) -> jd.Observables:
    """Sums of exponents, and of the lower and the upper ends of their ranges; Kaplan's row has no ranges and repeats its sum."""
    del key
    points = [(a, b) for a, _, b, _ in published.APPROACHES.values()] + [published.KAPLAN]
    ends = [[low + other for low, other in zip(of_a, of_b, strict=True)] for _, of_a, _, of_b in published.APPROACHES.values()]
    by_row = lambda x: jd.named(jnp.asarray(x, jnp.float64), "row")  # noqa: E731
    low, high = zip(*ends, (sum(published.KAPLAN),) * 2, strict=True)
    return jd.observables(
        predicted={"sum": jnp.asarray(s.spent, jnp.float64)},
        measured={"sum": by_row([a + b for a, b in points])},
        recorded={"low": by_row(low), "high": by_row(high)},
        coords={"row": ROWS},
    )


POINTS, INSIDE = "sums of exponents minus 1, absolutely", "distance of 1 from the sums that ranges allow, first two approaches"
OUTSIDE = "distance of 1 from the sums that ranges allow, parametric fit"


def outside(ds: xr.Dataset) -> xr.DataArray:
    """How far the sum lies outside of what both ranges allow, rounding of their ends included; negative inside."""
    return np.maximum(ds.low - ds.predicted_sum, ds.predicted_sum - ds.high) - 2 * DIGIT


def judge_sums(ds: xr.Dataset) -> list[jd.Check]:
    """Points of all rows, and ranges of the three approaches."""
    far = outside(ds)
    return [
        jd.at_most(POINTS, abs(ds.measured_sum - ds.predicted_sum), 1e-9),
        jd.at_most(INSIDE, far.sel(row=[name for name in published.APPROACHES if name != FIT]), 0.0),
        jd.at_least(OUTSIDE, far.sel(row=FIT), 0.001 - 1e-9),
    ]


def plot_sums(ds: xr.Dataset, fig: Figure) -> None:
    """Sums of exponents with the range of sums, by row."""
    ax = fig.subplots()
    flat = ds[["measured_sum", "low", "high"]].isel({d: 0 for d in ds.sizes if d != "row"}, drop=True)
    at = np.arange(len(ROWS))
    ax.hlines(at, flat.low, flat.high, color=plotting.COLORS["theory"], label="sums that the ranges allow")
    ax.plot(flat.measured_sum, at, "o", color=plotting.COLORS["measured"], label="sums of the points")
    ax.axvline(1, linestyle=":", color=plotting.COLORS["control"])
    ax.set_yticks(at, ROWS)
    ax.set(xlabel="$a + b$")
    ax.legend()


CLAIMS = (
    *HUMAN_TOKENS_CLAIMS,
    *ROUNDING_CLAIMS,
    jd.Study(
        trial=sums_trial,
        quick=jd.grid(Table),
        evidence="numbers",
        bounds="derived: half a unit of the last printed digit of both ends of a sum",
        source="arXiv:2203.15556, Table 2, with the row of arXiv:2001.08361; talks grokking and practical, the same table",
        tested="Published figures against each other.",
        plot=plot_sums,
        caption="Sums of the printed exponents, and of the ends of their ranges, by approach; dotted: 1.",
    ).claim(
        id="scal.table_sums",
        title="The parametric fit's printed ranges allow no pair that adds up to one",
        statement="If a budget $C = 6ND$ for $N$ weights and $D$ tokens is spent whole, the exponents of size and tokens add up "
        "to 1. The printed ones do in all four rows, and so may those of the first two approaches within their ranges; but 0.454 "
        "to 0.455 and 0.542 to 0.543, the ranges of the parametric fit, leave sums of at most 0.999, rounding included.",
        judge=judge_sums,
        talks=("grokking:scal-table-ranges",),
        controls={
            "a twentieth of the budget's exponent is not spent": {"spent": 0.95},
            "ranges of the approaches exchanged": jd.rolled(low="row", high="row"),
        },
        rivals={"ranges are those of rounded points, .45 to .46 and .54 to .55": {OUTSIDE: -0.01}},
    ),
)
