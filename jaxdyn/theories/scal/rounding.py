"""Published parameters of the loss law, the exponents that follow from them, and what rounding and the printed range do to them."""

from __future__ import annotations

from collections.abc import Callable
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

__all__ = ["CLAIMS", "Published", "judge", "trial"]


@jd.setting
class Published:
    """The published fits; no field is swept."""

    budget: jd.Swept = jd.field(published.BUDGET, above=0)


def trial(s: Published, key: PRNGKeyArray) -> jd.Observables:
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


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """The exponent of both sets of parameters against the printed one and its range, and their best sizes."""
    jd.need(ds, source=(DIGITS, PRINTED))
    error = abs(ds.measured_exponent - ds.predicted_exponent)
    outside = np.maximum(ds.low - ds.measured_exponent, ds.measured_exponent - ds.high).sel(source=[DIGITS, PRINTED])
    size = ds["size"]
    return [
        jd.at_most("exponent minus the printed 0.46, all digits", error.sel(source=DIGITS), 0.005),
        jd.at_least("exponent minus the printed 0.46, printed parameters", error.sel(source=PRINTED), 0.005),
        jd.at_least("best size by all digits over that by printed ones", size.sel(source=DIGITS) / size.sel(source=PRINTED), 1.2),
        jd.at_least("distance of the exponent from its printed range", outside, 0.001),
    ]


def with_all_digits(name: str) -> Callable[[xr.Dataset], xr.DataArray]:
    """A variable that is the same by printed parameters as by those with all digits."""
    return lambda ds: xr.where(ds.source == PRINTED, ds[name].sel(source=DIGITS, drop=True), ds[name])


# Rounding the parameters changes nothing.
SAME = jd.swap(**{name: with_all_digits(name) for name in ("measured_exponent", "size")})
# The exponents of size and tokens are exchanged.
EXCHANGED = jd.swap(measured_exponent=lambda ds: 1 - ds.measured_exponent)
# The range is as wide as the digits that are printed, 0.455 to 0.465 and down to 0.45.
WIDE = jd.swap(low=lambda ds: 0 * ds.low + 0.45, high=lambda ds: 0 * ds.high + 0.465)


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Exponents by source, and the printed range."""
    ax = fig.subplots()
    a = ds.measured_exponent.isel({d: 0 for d in ds.measured_exponent.dims if d != "source"})
    ax.plot(a, np.arange(a.size), "o", color=plotting.COLORS["measured"], label="from the parameters")
    ax.axvspan(float(ds.low.min()), float(ds.high.max()), color=plotting.COLORS["theory"], alpha=0.4, label="printed range")
    ax.set_yticks(np.arange(a.size), [str(name) for name in a.source.values])
    ax.set(xlabel="exponent of the best size, a", ylim=(-0.5, a.size - 0.5))


CLAIMS = (
    jd.Study(
        trial=trial,
        quick=jd.grid(Published),
        evidence="numbers",
        bounds="derived",  # half a unit of the last printed digit
        source="arXiv:2203.15556, Table 2 and appendix D.3; arXiv:2404.10102",
        plot=plot,
        caption="The exponent $a = \\beta/(\\alpha+\\beta)$ that follows from published parameters, and the range printed for the "
        "first.",
    ).claim(
        id="scal.rounding",
        statement=r"Published figures against each other: the parametric fit's exponent, printed as $a = 0.46$, "
        r"follows from the "
        r"parameters with all their digits and not from those that are printed; at $5.76 \cdot 10^{23}$ "
        r"operations the two give best "
        r"sizes that differ by a factor of at least 1.2; and the range printed for $a$, 0.454 to 0.455, holds neither of the two "
        "exponents, by 0.001 or more.",
        judge=judge,
        controls={"exponents of size and tokens exchanged": EXCHANGED},
        rivals={"rounding changes nothing": SAME, "the range covers the digits that are printed": WIDE},
    ),
)
