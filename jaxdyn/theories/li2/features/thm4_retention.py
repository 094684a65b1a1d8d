r"""How many random pairs retain a maximum of the energy: theorem 4 as an open measurement.

A node starts at an exact maximum of the energy on all pairs and follows the flow of the energy on n of the M^2 pairs, sampled
without replacement, with :math:`n = c\, M \ln M`, thus :math:`p = n/M^2 = c \ln M / M`. Its mass is the share of its squared norm
at the end in the irrep in which it started; it is retained if its mass is above a threshold. The fraction at which half of the
subsets retain it is :math:`p_{50}` (``features/median_share.py``). A subset grows with c: the pairs that come next in one order
are added. Letters and the three energies as in ``dynamics/retention.py``.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.data.groups import parse
from jaxdyn.data.irreps import Irreps, decompose
from jaxdyn.theories.li2 import findings
from jaxdyn.theories.li2.dynamics import energy
from jaxdyn.theories.li2.dynamics import retention as theory
from jaxdyn.theories.li2.features.median_share import LEVELS, MAIN, Halves, constant, halves, slope

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

__all__ = ["CLAIMS", "CYCLIC", "DEGREES", "Retention", "judge", "judge_whitened", "split_start", "trial"]

_EXACT = jax.lax.Precision.HIGHEST
LARGE, SOME = 128, 8  # from this order on, so many subsets at a time
CYCLIC = ("11", "23", "47")
DEGREES = ("D12/1", "D12/2", "S4/3")


@jd.setting
class Retention:
    """Nodes at maxima, one for each subset. A start is a group, or group/degree for an irrep of that degree.

    Each subset has its own random factor on c, up to ``spread``, the ratio of neighbouring values of the grid, so that all values
    between them occur.
    """

    c: jd.Swept = jd.field(2.5, above=0)
    spread: jd.Swept = jd.field(1.3, at_least=1)
    ridge: jd.Swept = jd.field(1e-3, above=0)
    starts: tuple[str, ...] = CYCLIC + DEGREES
    subsets: int = jd.field(26, at_least=1)
    steps: int = jd.field(300, at_least=1)
    step: float = jd.field(0.4, above=0, at_most=0.5)  # beyond which the flow is not followed

    def __post_init__(self) -> None:
        """Refuse starts that do not exist, that are named twice, and no starts."""
        for start in self.starts:
            _could_be(start)
        jd.require(self, len(self.starts) >= 1, "there is at least one start", "starts")
        jd.require(self, len(set(self.starts)) == len(self.starts), "the starts differ", "starts")


def split_start(start: str) -> tuple[str, int]:
    """The group's name and the degree: 1 where a start names none."""
    name, _, degree = start.partition("/")
    if degree and not degree.isdigit():
        raise jd.UsageError(f"start={start!r} is not allowed: it is a group or group/degree, e.g. 23 or S4/3")
    return name, int(degree or 1)


def _could_be(start: str) -> None:
    """Refuse a degree that no group of this order has; other degrees are refused by the trial, which decomposes the group."""
    name, degree = split_start(start)
    order = parse(name).order
    if order % degree or degree**2 >= order:
        raise jd.UsageError(f"start={start!r} is not allowed: {name} has no irrep of degree {degree} but the trivial one")


def _origin(start: str) -> tuple[Irreps, tuple[int, ...]]:
    """The irreps of the start's group, and the first one or pair of its degree: of complex type if there is any."""
    name, degree = split_start(start)
    irreps = decompose(parse(name))
    fitting = [numbers for numbers in irreps.merged[1:] if irreps.degrees[numbers[0]] == degree]
    if not fitting:
        raise jd.UsageError(f"start={start!r} is not allowed: {name} has no irrep of degree {degree} but the trivial one")
    return irreps, max(fitting, key=len)


def trial(s: Retention, key: PRNGKeyArray) -> jd.Observables:
    """The mass at the end in the irrep of the start, for each energy, start and subset."""
    origins = [_origin(start) for start in s.starts]
    orders = [irreps.group.order for irreps, _ in origins]
    # the flows, order by order
    ends: dict[int, tuple[Array, ...]] = {}
    for m in dict.fromkeys(orders):  # starts in groups of one order share their part of the program
        same = [i for i, order in enumerate(orders) if order == m]
        keys = jnp.stack([jax.random.fold_in(key, _number(s.starts[i])) for i in same])
        groups = theory.Tables(*map(np.stack, zip(*(theory.tables(origins[i][0].group) for i in same), strict=True)))
        nodes = jnp.stack([_maxima(s, k, *origins[i]) for k, i in zip(keys, same, strict=True)])
        w, gradient, p = jax.vmap(lambda key, group, w, m=m: _flows(s, m, key, group, w))(keys, groups, nodes)
        ends |= {i: (_masses(w[place], *origins[i]), gradient[place], p[place]) for place, i in enumerate(same)}
    # the starts' irreps as a share of all dimensions, and everything in the order of the starts
    share = np.array([sum(irreps.degrees[k] ** 2 for k in numbers) for irreps, numbers in origins]) / np.array(orders, float)
    mass, gradient = (jnp.stack([ends[i][part] for i in range(len(orders))], 1) for part in range(2))
    return jd.observables(
        measured={"mass": jd.named(mass, "object start subset")},
        recorded={
            "gradient": jd.named(gradient, "object start subset"),
            "p": jd.named(jnp.stack([ends[i][2] for i in range(len(orders))]), "start subset"),
            "order": jd.named(jnp.asarray(orders, jnp.float64), "start"),
            "degree": jd.named(jnp.asarray([float(split_start(start)[1]) for start in s.starts]), "start"),
            "share": jd.named(jnp.asarray(share), "start"),
        },
        coords={"object": theory.OBJECTS, "start": s.starts},
    )


def _number(start: str) -> int:
    """Stable id: a start's draws do not depend on the other starts."""
    return int.from_bytes(hashlib.sha256(start.encode()).digest()[:4], "big")


def _maxima(s: Retention, key: PRNGKeyArray, irreps: Irreps, numbers: tuple[int, ...]) -> Float[Array, "D S"]:
    """A maximum on all pairs for each subset."""
    return energy.random_maximum(jax.random.split(key, 3)[1], irreps, numbers[0], s.subsets)


def _flows(
    s: Retention, m: int, key: PRNGKeyArray, group: theory.Tables, w: Float[Array, "D S"]
) -> tuple[Float[Array, "object D S"], Float[Array, "object S"], Float[Array, " S"]]:
    """Nodes and gradients at the end for each energy, and p."""
    # the subsets, as masks
    k_subsets, _, k_sizes = jax.random.split(key, 3)
    c = s.c * s.spread ** jax.random.uniform(k_sizes, (s.subsets,), jnp.float64, -0.5, 0.5)
    pairs = jnp.minimum(jnp.round(c * m * np.log(m)), m * m)
    mask = theory.random_order(k_subsets, m, s.subsets) < pairs

    def some(part: tuple[Array, Array]) -> tuple[Array, Array]:
        w, mask = part
        # the cross term alone and the whole energy side by side: one flow
        squares = jnp.repeat(jnp.arange(2.0, dtype=jnp.float64), w.shape[-1])
        both = theory.unwhitened(jnp.concatenate([mask, mask], 2), group, squares)
        first = theory.flow(jnp.concatenate([w, w], 1), group, both, s.steps, s.step)
        last = theory.flow(w, group, theory.make_data(mask, group, "whitened", s.ridge), s.steps, s.step)
        return jnp.stack([*jnp.split(first.w, 2, 1), last.w]), jnp.stack([*jnp.split(first.gradient, 2), last.gradient])

    ends, gradients = in_blocks(some, (w, mask), block(m, s.subsets))
    return ends, gradients, pairs / m**2


def block(m: int, subsets: int) -> int:
    """How many subsets go together: so many that what a step reads stays in a core's cache."""
    return subsets if m < LARGE else next(size for size in range(min(SOME, subsets), 0, -1) if subsets % size == 0)


def in_blocks(f: Callable[[Any], Any], x: Any, size: int) -> Any:
    """The function over blocks of the last axis, one after another."""
    count = jax.tree.leaves(x)[0].shape[-1] // size
    if count == 1:
        return f(x)
    parts = jax.tree.map(lambda a: jnp.moveaxis(a.reshape(*a.shape[:-1], count, size), -2, 0), x)
    return jax.tree.map(lambda a: jnp.moveaxis(a, 0, -2).reshape(*a.shape[1:-1], count * size), jax.lax.map(f, parts))


def _masses(w: Float[Array, "object D S"], irreps: Irreps, numbers: tuple[int, ...]) -> Float[Array, "object S"]:
    """The share of the squared norm in these irreps."""
    projector = jnp.asarray(sum(irreps.projector(k) for k in numbers).real)
    halves = energy.split(jnp.concatenate(list(w), 1), irreps.group)
    return sum(jnp.sum(jnp.square(jnp.matmul(projector, f, precision=_EXACT)), 0) for f in halves).reshape(len(w), -1)


def _against(name: str, theirs: float, measured: tuple[float, float, float]) -> jd.Check:
    """Passes if and only if the theory's number is within the interval of the measured one."""
    value, low, high = measured
    check = jd.within(f"{name}, {theirs:g} within its 95% interval", value, theirs - (high - value), theirs + (value - low))
    return dataclasses.replace(check, interval=(low, high))


def _law(ds: xr.Dataset) -> Float[np.ndarray, " start"]:
    """How the share of pairs falls with M: ln M / M, or what a rival has in its place."""
    order = constant(ds.order).values
    return np.asarray(constant(ds.law).values if "law" in ds else np.log(order) / order)


def _parts(ds: xr.Dataset) -> tuple[list[str], list[str]]:
    """Starts that differ in M, and those that differ in the degree."""
    names = [str(name) for name in ds.start.values]
    cyclic, degrees = [n for n in names if "/" not in n], [n for n in names if "/" in n]
    if len(cyclic) < 3:
        raise jd.Inconclusive(f"starts in at least 3 cyclic groups are needed, got {', '.join(cyclic) or 'none'}")
    return cyclic, degrees


def _both(halved: Halves, kind: int, level: int) -> Float[np.ndarray, "start draw"]:
    """p_50 for the subsets of the data, then for the bootstrap samples."""
    return np.concatenate([halved.p[kind, :, level, None], halved.drawn[kind, :, level]], 1)


def _table(ds: xr.Dataset, levels: tuple[float, ...]) -> list[jd.Check]:
    """p_50 of each energy and M with its interval, at some thresholds."""
    halved = halves(ds, levels)
    low, high = halved.interval()
    return [
        jd.interval_within(
            f"p_50, {kind}, M = {m:g}, threshold {t:g}", halved.p[k, i, j], (low[k, i, j], high[k, i, j]), low=0.0, high=1.0
        )
        for k, kind in enumerate(ds.object.values)
        for i, m in enumerate(constant(ds.order).values)
        for j, t in enumerate(levels)
    ]


def _slopes(ds: xr.Dataset) -> list[jd.Check]:
    """The decrease of p_50 with M: its slope over ln M / M at each threshold; over ln M, and the drift of c_50, at one."""
    halved, order, law = halves(ds), constant(ds.order).values, _law(ds)
    checks = []
    for k, kind in enumerate(ds.object.values):
        for j, t in enumerate(LEVELS):
            name = f"slope of ln p_50 over ln(ln M / M), {kind}, threshold {t:g}"
            checks.append(_against(name, 1.0, slope(np.log(law), _both(halved, k, j))))
        p = _both(halved, k, LEVELS.index(MAIN))
        theirs = slope(np.log(order), np.stack([law, law], 1))[0]
        checks.append(_against(f"slope of ln p_50 over ln M, {kind}", theirs, slope(np.log(order), p)))
        drift = (p / law[:, None])[-1] / (p / law[:, None])[0]
        low, high = np.quantile(drift[1:], [0.025, 0.975])
        checks.append(
            _against(f"c_50 at the largest M over that at the smallest, {kind}", 1.0, (float(drift[0]), float(low), float(high)))
        )
    return checks


def _exponents(ds: xr.Dataset) -> list[jd.Check]:
    """The exponent of the degree in c_50, from irreps of one type in groups of like order."""
    halved = halves(ds, (MAIN,), above_chance=True)
    degree, law = constant(ds.degree).values, _law(ds)
    checks = []
    for k, kind in enumerate(ds.object.values):
        c = _both(halved, k, 0) / law[:, None]
        for theirs, whose in ((2.0, "theorem"), (1.0, "authors' sweeps")):
            checks.append(_against(f"exponent of the degree in c_50, {kind}: {whose}", theirs, slope(np.log(degree), c)))
    return checks


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """p_50 of the three energies, its decrease with M, and its increase with the degree."""
    cyclic, degrees = _parts(ds)
    checks = [*_table(ds.sel(start=cyclic), (MAIN,)), *_slopes(ds.sel(start=cyclic))]
    return checks + (_exponents(ds.sel(start=degrees)) if len(degrees) >= 3 else [])


def judge_whitened(ds: xr.Dataset) -> list[jd.Check]:
    """p_50 of the whitened energy at each threshold, and its decrease with M."""
    part = ds.sel(start=_parts(ds)[0], object=["whitened"])
    return [*_table(part, LEVELS), *_slopes(part)]


COLORS = dict(zip(theory.OBJECTS, ("measured", "control", "theory"), strict=True))


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """p_50 against M with intervals, and retention over c at the largest M."""
    left, right = fig.subplots(1, 2)
    ds = ds.sel(start=_parts(ds)[0])
    plot_halves(left, ds)
    last = ds.isel(start=int(np.argmax(constant(ds.order).values)))
    for kind in ds.object.values:
        retained = (last.measured_mass.sel(object=kind) > MAIN).mean(["seed", "subset"])
        right.plot(ds.c, retained, "o-", color=plotting.COLORS[COLORS[str(kind)]], label=str(kind))
    right.set(xlabel="c", ylabel="share retained", title=f"M = {float(constant(last.order)):g}")


def power(exponent: float) -> Callable[[xr.Dataset], xr.Dataset]:
    """A rival: the share of pairs falls with this power of M."""
    return lambda ds: ds.assign(law=ds.order**exponent)


def plot_halves(ax: Axes, ds: xr.Dataset) -> None:
    """p_50 at the main threshold over M, and the theorem's law through the first point of each energy."""
    order, halved = constant(ds.order).values, halves(ds, (MAIN,))
    low, high = halved.interval()
    for k, kind in enumerate(ds.object.values):
        p, color = halved.p[k, :, 0], plotting.COLORS[COLORS[str(kind)]]
        ax.errorbar(order, p, [p - low[k, :, 0], high[k, :, 0] - p], fmt="o", capsize=2.5, color=color, label=str(kind))
        law = np.log(order) / order
        ax.plot(order, p[0] * law / law[0], "--", linewidth=1, color=color, label=r"$\propto \ln M / M$" if k == 0 else None)
    ax.set(xscale="log", yscale="log", xlabel="M", ylabel=r"$p_{50}$")
    ax.set_xticks(order, [f"{m:g}" for m in order])
    ax.xaxis.set_minor_formatter(NullFormatter())
    few_ticks(ax.yaxis)


def plot_whitened(ds: xr.Dataset, fig: Figure) -> None:
    """Retention over c for each M, and p_50 over ln M / M at each threshold."""
    left, right = fig.subplots(1, 2)
    ds = ds.sel(start=_parts(ds)[0], object=["whitened"])
    order = constant(ds.order).values
    retained = (ds.measured_mass.isel(object=0) > MAIN).mean(["seed", "subset"])
    for i, m in enumerate(order):
        left.plot(ds.c, retained.isel(start=i), "o-", color=plotting.CYCLE[i % len(plotting.CYCLE)], label=f"M = {m:g}")
    left.set(xlabel="c", ylabel="share retained")
    halved, law = halves(ds), np.log(order) / order
    for j, t in enumerate(LEVELS):
        right.plot(law, halved.p[0, :, j], "o-", color=plotting.RAMP(j / (len(LEVELS) - 1)), label=f"mass > {t:g}")
    right.plot(law, halved.p[0, 0, 0] * law / law[0], "--", color=plotting.COLORS["control"], label="slope 1")
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
STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Retention, c=C["quick"], spread=SPREADS["quick"]),
    paper=jd.grid(
        Retention,
        c=C["paper"],
        spread=SPREADS["paper"],
        starts=("11", "23", "47", "71", "101", "151", "251", "D120/1", "D120/2", "2x2xA5/3", "2x2xA5/5"),
        subsets=32,
        steps=600,
    ),
    seeds=2,
    paper_seeds=4,
    source="arXiv:2509.21519, theorem 4",
    evidence="reduced",
    bounds="derived",
    rivals={"one over the root of M": power(-0.5), "one over M": power(-1.0)},
)
LOST = {"nodes that keep nothing": jd.swap(measured_mass="share")}  # no more of their irrep than a random node has

CLAIMS = (
    STUDY.claim(
        id="li2.thm4",
        statement=r"In the reduced dynamics of one node. Theorem 4: $n \gtrsim d_k^2 M \ln(M/\delta)$ random pairs retain the "
        r"maxima in irrep k, so that half of the subsets retain one at $p_{50} = c\, d_k^2 \ln M / M$ with one c. Measured for "
        r"three energies with $\sigma = x^2$: cross term alone, whole, whitened by the ridge solution.",
        judge=judge,
        expected="measured",
        controls=LOST,
        found=findings.THM4,
        plot=plot,
        caption=rf"Left: the share $p_{{50}}$ of pairs at which half of the subsets retain a maximum (mass above {MAIN}) over M, a "
        r"colour per energy, with the central 95% of bootstrap samples; dashed, $\ln M / M$ through the first point. Right: share "
        "of the subsets that retain it over c, at the largest M.",
    ),
    STUDY.claim(
        id="li2.whitened",
        statement=r"Open, in the reduced dynamics of one node: under the energy $\frac12 \|\tilde Y^\top (\tilde F \tilde F^\top "
        r"+ \eta)^{-1} \sigma(Xw)\|^2$ of frozen random features with $\sigma = x^2$, is a maximum retained from $n = c\, M \ln "
        r"M$ random pairs with one c for all M? The slope of $\ln p_{50}$ over $\ln(\ln M / M)$ would be 1.",
        judge=judge_whitened,
        expected="measured",
        controls=LOST,
        found=findings.WHITENED,
        plot=plot_whitened,
        caption=r"Whitened energy. Left: share of the subsets that retain a maximum over c, a colour per M. Right: the share "
        r"$p_{50}$ of pairs at which half of them do, over $\ln M / M$, a colour per threshold on the mass; dashed, slope 1.",
    ),
)
