r"""How many random pairs keep a maximum of the energy: theorem 4 as an open measurement.

A node starts at an exact maximum of the energy on all pairs and follows the flow of the energy on n of the M^2 pairs, drawn
without replacement; it is retained if at the end the share of its squared norm in the irrep it started in, its mass, is above a
threshold. With :math:`n = c\, M \ln M`, that is :math:`p = n/M^2 = c \ln M / M`, the fraction at which half of the subsets retain
it is :math:`p_{50}`. Its interval comes from drawing subsets again. A subset grows with c by the pairs that come next in one order.
Letters and the three energies as in ``dynamics/retention.py``.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.data.groups import parse
from jaxdyn.data.irreps import Irreps, decompose
from jaxdyn.errors import given
from jaxdyn.theories.li2.dynamics import energy
from jaxdyn.theories.li2.dynamics import retention as theory

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

__all__ = ["CLAIMS", "LEVELS", "Halves", "Retention", "halves", "judge", "judge_whitened", "slope", "split_start", "trial"]

LEVELS = (0.5, 0.6, 0.7, 0.8, 0.9)  # thresholds on the mass
MAIN = 0.6
DRAWS = 400
CYCLIC = ("11", "23", "47")
DEGREES = ("D12/1", "D12/2", "S4/3")


@jd.setting
class Retention:
    """Nodes at maxima, one on each subset. A start is a group, or group/degree for an irrep of that degree.

    Every subset has a factor of its own on c, from the ``spread``, the ratio of a grid's values, so that all c between them occur.
    """

    c: jd.Swept = 2.5
    spread: jd.Swept = 1.3
    ridge: jd.Swept = 1e-3
    starts: tuple[str, ...] = CYCLIC + DEGREES
    subsets: int = 26
    steps: int = 300
    step: float = 0.4

    def __post_init__(self) -> None:
        """Refuse starts that do not exist, steps that leap, and no subsets."""
        for start in self.starts:
            _could_be(start)
        if not self.starts or len(set(self.starts)) < len(self.starts):
            raise jd.UsageError(f"starts are at least one, and differ, {given(self, 'starts')}")
        if min(self.subsets, self.steps) < 1 or min(self.c, self.ridge) <= 0 or not (0 < self.step <= 0.5 and self.spread >= 1):
            found = given(self, "subsets", "steps", "c", "ridge", "step", "spread")
            raise jd.UsageError(f"subsets, steps and spread are at least 1, c and ridge positive, step between 0 and .5, {found}")


def split_start(start: str) -> tuple[str, int]:
    """The group's name and the degree: 1 where a start names none."""
    name, _, degree = start.partition("/")
    if degree and not degree.isdigit():
        raise jd.UsageError(f"start {start!r} is not allowed: it is a group or group/degree, e.g. 23 or S4/3")
    return name, int(degree or 1)


def _could_be(start: str) -> None:
    """Refuse a degree that no group of this order has; taking the group apart, which tells the rest, waits for the trial."""
    name, degree = split_start(start)
    order = parse(name).order
    if order % degree or degree**2 >= order:
        raise jd.UsageError(f"start {start!r} is not allowed: {name} has no irrep of degree {degree} but the trivial one")


def _origin(start: str) -> tuple[Irreps, tuple[int, ...]]:
    """The irreps of the start's group, and the first one or pair of its degree: of complex type if there is any."""
    name, degree = split_start(start)
    irreps = decompose(parse(name))
    fitting = [numbers for numbers in irreps.merged[1:] if irreps.degrees[numbers[0]] == degree]
    if not fitting:
        raise jd.UsageError(f"start {start!r} is not allowed: {name} has no irrep of degree {degree} but the trivial one")
    return irreps, max(fitting, key=len)


def trial(s: Retention, key: PRNGKeyArray) -> jd.Observables:
    """The mass left in the irrep of the start, for every energy, start and subset."""
    ends = [_kept(s, start, jax.random.fold_in(key, _number(start))) for start in s.starts]
    origins = [_origin(start) for start in s.starts]
    order = np.array([irreps.group.order for irreps, _ in origins], float)
    share = np.array([sum(irreps.degrees[k] ** 2 for k in numbers) for irreps, numbers in origins]) / order
    mass, gradient = (jnp.stack([end[i] for end in ends], 1) for i in range(2))
    return jd.observables(
        measured={"mass": jd.named(mass, "object start subset")},
        recorded={
            "gradient": jd.named(gradient, "object start subset"),
            "p": jd.named(jnp.stack([end[2] for end in ends]), "start subset"),
            "order": jd.named(jnp.asarray(order), "start"),
            "degree": jd.named(jnp.asarray([float(split_start(start)[1]) for start in s.starts]), "start"),
            "share": jd.named(jnp.asarray(share), "start"),
        },
        coords={"object": theory.OBJECTS, "start": s.starts},
    )


def _number(start: str) -> int:
    """So that a start has the same draws in whatever company."""
    return int.from_bytes(hashlib.sha256(start.encode()).digest()[:4], "big")


def _kept(
    s: Retention, start: str, key: PRNGKeyArray
) -> tuple[Float[Array, "object subset"], Float[Array, "object subset"], Float[Array, " subset"]]:
    """Masses at the end, what is left of the gradient, and p."""
    k_subsets, k_nodes, k_sizes = jax.random.split(key, 3)
    irreps, numbers = _origin(start)
    group, m = irreps.group, irreps.group.order
    c = s.c * s.spread ** jax.random.uniform(k_sizes, (s.subsets,), jnp.float64, -0.5, 0.5)
    pairs = jnp.minimum(jnp.round(c * m * np.log(m)), m * m)
    seen = (theory.draw(k_subsets, m, s.subsets) < pairs).astype(jnp.float64)
    w = energy.random_maximum(k_nodes, irreps, numbers[0], s.subsets)
    masses, gradients = [], []
    for kind in theory.OBJECTS:
        end = theory.flow(w, group, theory.make_data(seen, group, kind, s.ridge), kind, s.steps, s.step)
        both = sum(energy.masses(f, irreps) for f in energy.split(end.w, group))
        masses.append(jnp.sum(both[:, list(numbers)], 1))
        gradients.append(end.gradient)
    return jnp.stack(masses), jnp.stack(gradients), pairs / m**2


class Halves(NamedTuple):
    """p_50 for every object, start and threshold, for the subsets at hand and for ``DRAWS`` drawings of them with replacement."""

    p: Float[np.ndarray, "object start level"]
    drawn: Float[np.ndarray, "object start level draw"]

    def interval(self) -> Float[np.ndarray, "2 object start level"]:
        """The central 95% of the drawings."""
        return np.quantile(self.drawn, [0.025, 0.975], axis=-1, method="nearest")


def halves(ds: xr.Dataset, levels: tuple[float, ...] = LEVELS, above_chance: bool = False) -> Halves:
    """p_50: the median over subsets of the p from which each one retains its node.

    A subset grows with c; if it loses its node at j of its values of p, the j smallest count as lost and its own p is the
    middle, on a logarithmic scale, of the next two. The values differ from subset to subset, so no grid shows in the median.

    Args:
        ds: with axes c and seed.
        levels: thresholds.
        above_chance: whether they are thresholds on (mass - share) / (1 - share) with the share of dimensions that the irrep has,
            the mean mass of a random node; in small groups it is large.

    Raises:
        Inconclusive: with fewer than three values of c, or fewer than eight subsets.
    """
    if ds.sizes.get("c", 0) < 3:
        raise jd.Inconclusive("a threshold in p needs at least three values of c")
    joined = ds[["measured_mass", "p"]].stack(unit=("seed", "subset")).dropna("unit")
    if (units := joined.sizes["unit"]) < 8:
        raise jd.Inconclusive(f"an interval needs at least 8 subsets, not {units}")
    mass = joined.measured_mass.transpose("object", "start", "unit", "c").values
    if above_chance:
        share = _constant(ds.share).values[:, None, None]
        mass = (mass - share) / (1 - share)
    x = np.sort(np.log(joined.p.transpose("start", "unit", "c").values))
    x = np.pad(x, ((0, 0), (0, 0), (1, 1)), constant_values=((0, 0), (0, 0), (-np.inf, np.inf)))
    lost = np.sum(mass[:, :, None] <= np.array(levels)[:, None, None], -1)  # object start level unit
    middle = np.broadcast_to(((x[..., 1:] + x[..., :-1]) / 2)[None, :, None], (*lost.shape, x.shape[-1] - 1))
    own = np.take_along_axis(middle, lost[..., None], -1)[..., 0]
    again = np.random.default_rng(0).integers(units, size=(DRAWS, units))
    return Halves(_median(own), _median(own[..., again]))


def _median(logs: Float[np.ndarray, "... unit"]) -> Float[np.ndarray, "..."]:
    """The median of p; NaN where that is beyond all values of p."""
    ordered = np.sort(logs, -1)
    count = logs.shape[-1]
    value = np.exp((ordered[..., (count - 1) // 2] + ordered[..., count // 2]) / 2)
    return np.where((value > 0) & np.isfinite(value), value, np.nan)


def _constant(values: xr.DataArray) -> xr.DataArray:
    """A number of each start, which no run changes."""
    return values.mean([d for d in values.dims if d != "start"])


def slope(x: Float[np.ndarray, " start"], p: Float[np.ndarray, "start draw"]) -> tuple[float, float, float]:
    """Least-squares slope of ln p over x of the first column, and the central 95% of the others'."""
    x = x - x.mean()
    slopes = x @ np.log(p) / (x @ x)
    return float(slopes[0]), *(float(q) for q in np.quantile(slopes[1:], [0.025, 0.975]))


def _against(name: str, theirs: float, found: tuple[float, float, float]) -> jd.Check:
    """Passes if and only if the theory's number is within the interval of the one that was found."""
    value, low, high = found
    return jd.within(f"{name}, {theirs:g} within its 95% interval", value, theirs - (high - value), theirs + (value - low))


def _parts(ds: xr.Dataset) -> tuple[list[str], list[str]]:
    """Starts that differ in M, and those that differ in the degree."""
    names = [str(name) for name in ds.start.values]
    cyclic, degrees = [n for n in names if "/" not in n], [n for n in names if "/" in n]
    if len(cyclic) < 3:
        raise jd.Inconclusive("a slope over M needs starts in at least three groups")
    return cyclic, degrees


def _both(found: Halves, kind: int, level: int) -> Float[np.ndarray, "start draw"]:
    """p_50 of the subsets at hand, then of all drawings."""
    return np.concatenate([found.p[kind, :, level, None], found.drawn[kind, :, level]], 1)


def _table(ds: xr.Dataset, levels: tuple[float, ...]) -> list[jd.Check]:
    """p_50 of every object and M with its interval, at some thresholds."""
    found = halves(ds, levels)
    low, high = found.interval()
    return [
        jd.within(f"p_50, {kind}, M = {m:g}, threshold {t:g}", found.p[k, i, j], low[k, i, j], high[k, i, j])
        for k, kind in enumerate(ds.object.values)
        for i, m in enumerate(_constant(ds.order).values)
        for j, t in enumerate(levels)
    ]


def _slopes(ds: xr.Dataset) -> list[jd.Check]:
    """How p_50 falls with M, against ln M / M: its slope at every threshold; over ln M, and the drift of c_50, at one."""
    found, order = halves(ds), _constant(ds.order).values
    law = np.log(order) / order
    checks = []
    for k, kind in enumerate(ds.object.values):
        for j, t in enumerate(LEVELS):
            name = f"slope of ln p_50 over ln(ln M / M), {kind}, threshold {t:g}"
            checks.append(_against(name, 1.0, slope(np.log(law), _both(found, k, j))))
        p = _both(found, k, LEVELS.index(MAIN))
        theirs = slope(np.log(order), np.stack([law, law], 1))[0]
        checks.append(_against(f"slope of ln p_50 over ln M, {kind}", theirs, slope(np.log(order), p)))
        drift = (p / law[:, None])[-1] / (p / law[:, None])[0]
        low, high = np.quantile(drift[1:], [0.025, 0.975])
        checks.append(_against(f"c_50 at the largest M over that at the smallest, {kind}", 1.0, (drift[0], low, high)))
    return checks


def _exponents(ds: xr.Dataset) -> list[jd.Check]:
    """The exponent of the degree in c_50, from irreps of one type in groups of like order."""
    found = halves(ds, (MAIN,), above_chance=True)
    order, degree = _constant(ds.order).values, _constant(ds.degree).values
    checks = []
    for k, kind in enumerate(ds.object.values):
        c = _both(found, k, 0) * (order / np.log(order))[:, None]
        for theirs, whose in ((2.0, "theorem"), (1.0, "authors' sweeps")):
            checks.append(_against(f"exponent of the degree in c_50, {kind}: {whose}", theirs, slope(np.log(degree), c)))
    return checks


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """p_50 of the three energies, how it falls with M, and how it rises with the degree."""
    cyclic, degrees = _parts(ds)
    found = [*_table(ds.sel(start=cyclic), (MAIN,)), *_slopes(ds.sel(start=cyclic))]
    return found + (_exponents(ds.sel(start=degrees)) if len(degrees) >= 3 else [])


def judge_whitened(ds: xr.Dataset) -> list[jd.Check]:
    """The same of the whitened energy alone, p_50 at every threshold."""
    part = ds.sel(start=_parts(ds)[0], object=["whitened"])
    return [*_table(part, LEVELS), *_slopes(part)]


COLORS = dict(zip(theory.OBJECTS, ("measured", "control", "theory"), strict=True))


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """p_50 against M with intervals, and retention over c at the largest M."""
    left, right = fig.subplots(1, 2)
    ds = ds.sel(start=_parts(ds)[0])
    draw_halves(left, ds)
    last = ds.isel(start=int(np.argmax(_constant(ds.order).values)))
    for kind in ds.object.values:
        kept = (last.measured_mass.sel(object=kind) > MAIN).mean(["seed", "subset"])
        right.plot(ds.c, kept, "o-", color=plotting.COLORS[COLORS[str(kind)]], label=str(kind))
    right.set(xlabel="c", ylabel="share retained", title=f"M = {float(_constant(last.order)):g}")


def draw_halves(ax: Axes, ds: xr.Dataset) -> None:
    """p_50 at the main threshold over M, and the law of the theorem through each object's first point."""
    order, found = _constant(ds.order).values, halves(ds, (MAIN,))
    low, high = found.interval()
    for k, kind in enumerate(ds.object.values):
        p, color = found.p[k, :, 0], plotting.COLORS[COLORS[str(kind)]]
        ax.errorbar(order, p, [p - low[k, :, 0], high[k, :, 0] - p], fmt="o", capsize=2.5, color=color, label=str(kind))
        law = np.log(order) / order
        ax.plot(order, p[0] * law / law[0], "--", linewidth=1, color=color, label=r"$\propto \ln M / M$" if k == 0 else None)
    ax.set(xscale="log", yscale="log", xlabel="M", ylabel=r"$p_{50}$")
    ax.set_xticks(order, [f"{m:g}" for m in order])
    ax.xaxis.set_minor_formatter(NullFormatter())
    few_ticks(ax.yaxis)


def plot_whitened(ds: xr.Dataset, fig: Figure) -> None:
    """Retention over c for every M, and p_50 over ln M / M at every threshold."""
    left, right = fig.subplots(1, 2)
    ds = ds.sel(start=_parts(ds)[0], object=["whitened"])
    order = _constant(ds.order).values
    kept = (ds.measured_mass.isel(object=0) > MAIN).mean(["seed", "subset"])
    for i, m in enumerate(order):
        left.plot(ds.c, kept.isel(start=i), "o-", color=plotting.CYCLE[i % len(plotting.CYCLE)], label=f"M = {m:g}")
    left.set(xlabel="c", ylabel="share retained")
    found, law = halves(ds), np.log(order) / order
    for j, t in enumerate(LEVELS):
        right.plot(law, found.p[0, :, j], "o-", color=plotting.RAMP(j / (len(LEVELS) - 1)), label=f"mass > {t:g}")
    right.plot(law, found.p[0, 0, 0] * law / law[0], "--", color=plotting.COLORS["control"], label="slope 1")
    right.set(xscale="log", yscale="log", xlabel=r"$\ln M / M$", ylabel=r"$p_{50}$")
    few_ticks(right.xaxis)
    few_ticks(right.yaxis)


def few_ticks(axis: Axis) -> None:
    """Plain numbers on a logarithmic axis of about a decade."""
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 3.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


SPREADS = {"quick": 1.3, "paper": 1.15}
C = {"quick": [round(1.3**i, 3) for i in range(9)], "paper": [round(1.15**i, 3) for i in range(24)]}
_SHARED = {
    "source": "arXiv:2509.21519, theorem 4",
    "trial": trial,
    "quick": jd.grid(Retention, c=C["quick"], spread=SPREADS["quick"]),
    "paper": jd.grid(
        Retention,
        c=C["paper"],
        spread=SPREADS["paper"],
        starts=("11", "23", "47", "71", "101", "151", "251", "D120/1", "D120/2", "2x2xA5/3", "2x2xA5/5"),
        subsets=32,
        steps=600,
    ),
    "seeds": 2,
    "paper_seeds": 4,
    "expected": "measured",
}

CLAIMS = (
    jd.Claim(
        id="li2.thm4",
        statement=r"Theorem 4: $n \gtrsim d_k^2 M \ln(M/\delta)$ random pairs keep the maxima in irrep k, so that half of the "
        r"subsets keep one at $p_{50} = c\, d_k^2 \ln M / M$ with one c. Measured for three energies: cross term alone, "
        r"whole, whitened by the ridge solution.",
        judge=judge,
        plot=plot,
        **_SHARED,
    ),
    jd.Claim(
        id="li2.whitened",
        statement=r"Open: under the energy $\frac12 \|\tilde Y^\top (\tilde F \tilde F^\top + \eta)^{-1} \sigma(Xw)\|^2$ of "
        r"frozen random features, is a maximum retained from $n = c\, M \ln M$ pairs with one c for all M? The slope of "
        r"$\ln p_{50}$ over $\ln(\ln M / M)$ would be 1.",
        judge=judge_whitened,
        plot=plot_whitened,
        **_SHARED,
    ),
)
