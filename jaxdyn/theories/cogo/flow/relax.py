r"""The flow of potentials: its form, its decoupling at infinite width, and exponential relaxation under the cross terms.

Measured are velocities of small networks, the metric of wide ones, and gradient flow of the weights. Widths are masks over the
nodes of one array, so that all widths share a program; arrays of groups of different order are padded. Letters as in
``dynamics/flow.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Complex, Float, PRNGKeyArray, Shaped
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import flow, plotting, stats
from jaxdyn.data.abelian import parse
from jaxdyn.theories.cogo import model
from jaxdyn.theories.cogo.dynamics import flow as theory
from jaxdyn.theories.cogo.dynamics import semiring


def padded(arrays: Sequence[Shaped[Array, "..."]]) -> Shaped[Array, "group entry"]:
    """Arrays of any shapes, flattened, as the rows of one array; shorter rows end in zeros."""
    longest = max(x.size for x in arrays)
    return jnp.stack([jnp.pad(x.ravel(), (0, longest - x.size)) for x in arrays])


def parts(arrays: Sequence[Complex[Array, "..."]]) -> Float[Array, "2 group entry"]:
    """Real and imaginary parts of complex arrays, each as a row of :func:`padded`."""
    rows = padded(arrays)
    return jnp.stack([rows.real, rows.imag])


TURNS = 1.5  # lambda t at the end of the flow
SAVES = 5


@jd.setting
class Potentials:
    """Gaussian weights of small networks, zero modes included."""

    std: jd.Swept = jd.field(1.0, above=0)  # standard deviation of the weights
    groups: tuple[str, ...] = ("5", "2x2")  # groups, named by the orders of their cyclic factors
    hidden: int = jd.field(6, at_least=1)  # q, nodes of each network

    def __post_init__(self) -> None:
        """Refuse groups without a name, and an empty list."""
        for name in self.groups:
            parse(name)
        jd.require(self, len(self.groups) > 0, "there is at least one group", "groups")


@jd.setting
class Wide:
    """Independent Gaussian weights of a wide network; ``tied`` breaks their independence."""

    width: jd.Swept = jd.field(256.0, at_least=2)  # q, nodes in use
    std: jd.Swept = jd.field(1.0, above=0)  # standard deviation of the weights at the start
    tied: jd.Swept = jd.field(0.0, at_least=0, at_most=1)  # b = (1 - tied) b + tied a
    nodes: int = 4096  # places for nodes
    group: str = "5"  # orders of the group's cyclic factors, as in 2x4
    loss: Literal["cross", "whole"] = "cross"  # what flows: the cross terms alone, or the whole loss of zero-mean weights

    def __post_init__(self) -> None:
        """Refuse widths beyond the places, and groups without pairs of frequencies."""
        jd.require(self, self.width <= self.nodes, "width is at most nodes", "width", "nodes")
        jd.require(self, len(parse(self.group).pairs) > 0, "the group has a pair of conjugate characters", "group")
        jd.require(self, self.loss in ("cross", "whole"), "loss is cross or whole", "loss")


def rdot_trial(s: Potentials, key: PRNGKeyArray) -> jd.Observables:
    r"""Velocities of spectra and potentials: the direct loss's gradient through the transform, and the formula."""
    # random weights of every group
    groups = [parse(name) for name in s.groups]
    sizes = np.cumsum([3 * group.order * s.hidden for group in groups])
    normal = jnp.split(s.std * jax.random.normal(key, (sizes[-1],), jnp.float64), sizes[:-1])
    # velocities by automatic differentiation, and by the formula
    measured, predicted = [], []
    for group, numbers in zip(groups, normal, strict=True):
        w = numbers.reshape(3, group.order, s.hidden)
        descent = -jax.grad(lambda w, group=group: model.loss(w, group, "paper"))(w)
        z, dz = semiring.transform(w, group), semiring.transform(descent, group)
        r, dr = jax.jvp(theory.every, (z,), (dz,))
        measured.append((dz, dr, jnp.sum(jnp.square(descent))))
        g, velocity = theory.slope(r, group), theory.velocity(z, group)
        predicted.append((theory.spectrum_velocity(z, group), velocity, -jnp.sum(g.real * velocity.real + g.imag * velocity.imag)))

    def named(sides: list[tuple]) -> dict[str, jd.Named]:
        dz, dr, fall = zip(*sides, strict=True)
        return {
            "spectrum": jd.named(parts(dz), "part group entry"),
            "velocity": jd.named(parts(dr), "part group potential"),
            "fall": jd.named(jnp.stack(fall), "group"),
        }

    return jd.observables(
        predicted=named(predicted),
        measured=named(measured),
        recorded={"order": jd.named(jnp.asarray([group.order for group in groups], jnp.float64), "group")},
        coords={"part": ("re", "im"), "group": s.groups},
    )


def _start(s: Wide, key: PRNGKeyArray) -> Float[Array, "3 d q"]:
    """Weights at the start; nodes beyond the width are zero, and stay so."""
    a, b, c = s.std * jax.random.normal(key, (3, parse(s.group).order, s.nodes), jnp.float64)
    return jnp.where(jnp.arange(s.nodes) < s.width, jnp.stack([a, (1 - s.tied) * b + s.tied * a, c]), 0.0)


def decouple_trial(s: Wide, key: PRNGKeyArray) -> jd.Observables:
    r"""J J^* over q kappa of one start: its diagonal and the root mean square of the rest, for cross and for autopotentials."""
    group = parse(s.group)
    z = semiring.transform(_start(s, key), group)
    unit = s.width * theory.kappa(s.std, group.order)
    cross, auto = theory.off_diagonal(theory.cross_gram(z[:, 1:])), theory.off_diagonal(theory.auto_gram(z, group))
    return jd.observables(
        predicted={
            "diagonal": jnp.ones((), jnp.float64),
            "ratio": jnp.asarray(theory.spread(group, s.width), jnp.float64),
            "auto_ratio": jnp.float64(theory.coupling(group)),
        },
        measured={"diagonal": cross[0] / unit, "ratio": cross[1] / unit, "auto_ratio": auto[1] / auto[0]},
        recorded={"own_ratio": cross[1] / cross[0], "largest": cross[2], "auto_largest": auto[2]},
    )


def flow_trial(s: Wide, key: PRNGKeyArray) -> jd.Observables:
    """Gradient flow of the weights, and every cross potential's exponential from its start."""
    group = parse(s.group)
    turns = jnp.linspace(0, TURNS, SAVES, dtype=jnp.float64)
    pace = 1 / theory.rate(s.std, s.width, group.order)

    def objective(w: Float[Array, "3 d q"]) -> Float[Array, ""]:
        if s.loss == "cross":
            return theory.modified_loss(w, group)
        return model.loss(w - jnp.mean(w, 1, keepdims=True), group, "paper")

    # steps this long are good for eight digits (dopri8 agrees), where the theory is a few percent off
    solution = flow.gradient_flow(objective, _start(s, key), turns, rate=pace, rtol=1e-6, atol=1e-8)
    # potentials along it, and by the theory
    r = jax.vmap(lambda w: semiring.potentials(semiring.transform(w, group)[:, 1:]))(solution.ys)
    predicted, start = theory.relaxed(r[0], turns), r[0] - theory.goal(group.order - 1)

    def stored(x: Complex[Array, "t n n n"]) -> jd.Named:
        flat = x.reshape(SAVES, -1)
        return jd.named(jnp.stack([flat.real, flat.imag], 1), "turns part potential")

    return jd.observables(
        predicted={"r": stored(predicted)},
        measured={"r": stored(r)},
        recorded={"start": jnp.sqrt(jnp.mean(jnp.square(jnp.abs(start)))), "steps": solution.steps},
        status=solution.status,
        coords={"turns": np.linspace(0, TURNS, SAVES).tolist(), "part": ("re", "im")},
    )


SECTION = "arXiv:2410.01779, section 5"


def deviation(ds: xr.Dataset) -> xr.DataArray:
    """Root mean square distance of the potentials from their exponentials over that of the start from the goal, at all times."""
    square = ((ds.measured_r - ds.predicted_r) ** 2).sum("part", min_count=1).mean("potential")
    return np.sqrt(square) / ds.start


def judge_rdot(ds: xr.Dataset) -> list[jd.Check]:
    """Both velocities, and the rate at which the loss falls."""
    return [
        jd.at_most("velocity of spectra, relative error", jd.relative_error(ds, "spectrum", "part entry"), 1e-8),
        jd.at_most("velocity of potentials, relative error", jd.relative_error(ds, "velocity", "part potential"), 1e-8),
        jd.at_most("rate at which the loss falls, relative error", jd.relative_error(ds, "fall"), 1e-8),
    ]


COUPLED = "off-diagonal ratio of r_p,k',-k',k at the largest width over its limit minus 1"


def judge_decouple(ds: xr.Dataset) -> list[jd.Check]:
    """The slope over widths, the constant before it, the mean of the diagonal, and that the others stay coupled."""
    slope = stats.loglog_slope(ds.width, ds.measured_ratio, "width")
    square = (ds.measured_ratio / ds.predicted_ratio) ** 2 - 1  # of mean 0 at every width
    diagonal = ds.measured_diagonal / ds.predicted_diagonal - 1
    widest = (ds.measured_auto_ratio / ds.predicted_auto_ratio - 1).sel(width=float(ds.width.max()))
    return [
        jd.mean_within("slope of the off-diagonal ratio over width", slope, over="seed", low=-0.6, high=-0.4),
        jd.mean_within("its square over the exact mean minus 1", square, over="seed", low=-0.1, high=0.1, level=0.99),
        jd.mean_within("diagonal of J J* / q over kappa minus 1", diagonal, over="seed", low=-0.05, high=0.05),
        jd.mean_within(COUPLED, widest, over="seed", low=-0.05, high=0.05),
    ]


def own(ds: xr.Dataset) -> xr.DataArray:
    """Which potentials are r_kkk."""
    n = round(ds.sizes["potential"] ** (1 / 3))
    return xr.DataArray(np.arange(n**3) % (n * n + n + 1) == 0, dims="potential")


def pace(r: stats.Labelled, diagonal: xr.DataArray) -> xr.DataArray:
    """By how many powers of e the potentials other than r_kkk have fallen at the end."""
    first, rest = r.isel(turns=0, drop=True), ~diagonal
    left = (first * r.isel(turns=-1, drop=True)).where(rest).sum(["part", "potential"], min_count=1)
    return -np.log(left / (first**2).where(rest).sum(["part", "potential"], min_count=1))


def judge_relax(ds: xr.Dataset) -> list[jd.Check]:
    """At the largest width the distance of all potentials and of each, the rate, and how far r_kkk get; the slope over widths."""
    jd.need(ds, width=3)
    wide = ds.sel(width=float(ds.width.max()))
    worst = deviation(wide).max("turns", skipna=False)
    slope = stats.loglog_slope(ds.width, deviation(ds).max("turns", skipna=False), "width")
    difference, diagonal = wide.measured_r - wide.predicted_r, own(ds)
    each = np.sqrt((difference**2).sum("part", min_count=1)) / wide.start
    rate = (pace(wide.measured_r, diagonal) - pace(wide.predicted_r, diagonal)) / float(ds.turns[-1])
    end = difference.isel(part=0, turns=-1).where(diagonal).mean("potential")
    return [
        jd.mean_within("root mean square distance from the exponentials, largest width", worst, over="seed", high=0.05),
        jd.at_most("distance of any potential, largest width", each, 0.12),
        jd.mean_within("rate / lambda minus the predicted one, largest width", rate, over="seed", low=-0.03, high=0.03, level=0.99),
        jd.mean_within("r_kkk at the end minus the predicted ones, largest width", end, over="seed", low=-0.12, high=0.12),
        jd.mean_within("slope of the root mean square distance over width", slope, over="seed", low=-0.65, high=-0.35),
    ]


def plot_rdot(ds: xr.Dataset, fig: Figure) -> None:
    """Formula against autodiff."""
    one = plotting.first_run(ds)
    for ax, name, title in zip(fig.subplots(1, 2), ("spectrum", "velocity"), ("spectra", "potentials"), strict=True):
        for group, color in zip(one.group.values, plotting.CYCLE[::2], strict=False):
            at = {"group": group}
            plotting.scatter(ax, one[f"predicted_{name}"].sel(at), one[f"measured_{name}"].sel(at), str(group), color, log=False)
        ax.set(title=f"velocity of {title}", xlabel="formula", ylabel="autodiff of the loss over pairs")


def plot_decouple(ds: xr.Dataset, fig: Figure) -> None:
    """Off-diagonal over diagonal against width, for cross and autopotentials, with the exact mean."""
    ax = fig.subplots()
    plotting.order(ax, ds.width, ds.own_ratio, label="cross potentials", color="measured")
    plotting.order(ax, ds.width, ds.measured_auto_ratio, label=r"$r_{p,k',-k',k}$", color="fourth")
    ax.plot(ds.width, ds.predicted_ratio.mean("seed"), color=plotting.COLORS["theory"], label="exact mean")
    limit = ds.predicted_auto_ratio.mean("seed")
    ax.plot(ds.width, limit, "--", color=plotting.COLORS["theory"], label="limit")
    ax.set(xlabel="width q", ylabel=r"off-diagonal / diagonal of $JJ^*$")


def plot_relax(ds: xr.Dataset, fig: Figure) -> None:
    """Potentials of the widest network along time, and the distance from the exponentials over widths."""
    left, right = fig.subplots(1, 2)
    one = plotting.first_run(ds.isel(part=0), "width")
    one = one.isel(width=-1) if "width" in one.dims else one
    some = np.linspace(0, one.sizes["potential"] - 1, 8).astype(int)
    for i, color in zip(some, plotting.CYCLE * 2, strict=False):
        left.plot(one.turns, one.measured_r.isel(potential=i), "o", color=color)
        left.plot(one.turns, one.predicted_r.isel(potential=i), "--", color=color)
    left.set(xlabel=r"$\lambda t$", ylabel="Re r (dashed: exponential)")
    if "width" in ds.dims:
        plotting.order(right, ds.width, deviation(ds).max("turns"), slope=-0.5, label="gradient flow")
    right.set(xlabel="width q", ylabel="distance from the exponentials")


STILL = jd.initial("turns", "predicted_r")


def toward(goal: float) -> Callable[[xr.Dataset], xr.Dataset]:
    """A rival: r_kkk tend to that number."""

    def r(ds: xr.Dataset) -> xr.DataArray:
        return ds.predicted_r + own(ds) * (1 - np.exp(-ds.turns)) * (ds.part == "re") * (goal - 1)

    return jd.swap(predicted_r=r)


def faster(factor: float) -> Callable[[xr.Dataset], xr.Dataset]:
    """A rival: the potentials relax at that multiple of the rate."""

    def r(ds: xr.Dataset) -> xr.DataArray:
        end = own(ds) * (ds.part == "re")
        return end + (ds.predicted_r - end) * np.exp((1 - factor) * ds.turns)

    return jd.swap(predicted_r=r)


NARROW = jd.initial("width", "measured_r", "predicted_r", "start")  # all widths as far from their exponentials as the narrowest


RELAX = jd.Study(
    trial=flow_trial,
    source=f"{SECTION}, Theorem on infinite width",
    quick=jd.grid(Wide, width=[32.0, 128.0, 512.0, 2048.0], nodes=2048),
    paper=jd.grid(Wide, width=[32.0, 128.0, 512.0, 2048.0, 8192.0], nodes=8192),
    seeds=20,
    evidence="flow",
    tested="Gradient flow of networks with {width} nodes from independent Gaussian weights of standard deviation {std}, for "
    "the group "
    r"{group}, until $\lambda t = 1.5$; {seeds} seeds.",
    bounds=jd.tuned(on="11000000:11000020", confirmed_on="51000000:51000020"),
    judge=judge_relax,
    rivals={
        "nothing moves": jd.off(STILL),
        "every potential goes to 0": toward(0.0),
        "r_kkk go half the way": toward(0.5),
        "without 1/d: d times the rate": faster(5.0),
        "one layer's share of kappa: a third of the rate": faster(1 / 3),
    },
    plot=plot_relax,
    caption=r"Left: real parts of eight potentials of the widest network (one run) in gradient flow (symbols), with their "
    r"exponentials (dashed). Right: largest root mean square distance from the exponentials along the flow against the width, "
    r"median and range of the runs; dashed: slope $-1/2$.",
)

CLAIMS = (
    jd.Study(
        trial=rdot_trial,
        source=f"{SECTION}; the factor 1/d made explicit",
        quick=jd.grid(Potentials, std=[0.5, 1.0, 2.0]),
        paper=jd.grid(Potentials, std=[0.25, 0.5, 1.0, 2.0], groups=("5", "6", "7", "2x2", "2x3"), hidden=12),
        seeds=8,
        paper_seeds=32,
        evidence="flow",
        tested="Networks with {hidden} nodes and Gaussian weights of standard deviation {std} for the groups {groups}, one "
        "moment of their gradient flow by automatic differentiation; {seeds} seeds.",
        bounds="derived: float64 rounding",
    ).claim(
        id="cogo.rdot",
        title="How gradient flow moves spectra and sum potentials",
        statement=r"Gradient flow of the loss $L$ over all pairs moves the spectra $z$ of the weights by $\dot z = "
        r"-\frac1d\,\overline{\partial L/\partial z}$ and the sum potentials $r$ by $\dot r = -\frac1d J J^* g$ with $J = "
        r"\partial r/\partial z$ and $g = \overline{\partial L/\partial r}$ (derivatives in which the entries at $k$ and $-k$ are "
        r"independent), so that the loss falls at the rate $-\dot L = -\mathrm{Re}\langle g, \dot r\rangle$. This evaluates both "
        "sides at random weights of networks with quadratic activation.",
        judge=judge_rdot,
        controls={
            "the velocities of another run": jd.Control(
                jd.rolled(measured_spectrum="seed", measured_velocity="seed", measured_fall="seed"), breaks="both sides"
            )
        },
        rivals={
            "nothing moves": jd.off(predicted_spectrum=0.0, predicted_velocity=0.0, predicted_fall=0.0),
            "without 1/d": jd.scaled(predicted_spectrum="order", predicted_velocity="order", predicted_fall="order"),
            "potentials move against steepest descent": jd.scaled(predicted_velocity=-1.0, predicted_fall=-1.0),
        },
        plot=plot_rdot,
        caption=r"Velocities of spectra (left) and of potentials (right) by automatic differentiation of the loss over pairs "
        r"against the formula: real and imaginary parts of one run, a colour for each group. Line: equality.",
    ),
    jd.Study(
        trial=decouple_trial,
        source=f"{SECTION}, Theorem on infinite width; the constant is ours",
        quick=jd.grid(Wide, width=[16.0, 64.0, 256.0, 1024.0], nodes=1024),
        paper=jd.grid(Wide, width=[4.0**i for i in range(2, 7)], nodes=4**6, std=[0.5, 1.0, 2.0]),
        seeds=1024,
        evidence="algebra",
        tested="Independent Gaussian weights of standard deviation {std} in networks with {width} nodes for the group "
        "{group}; {seeds} seeds.",
        bounds=jd.tuned(on="0:256", confirmed_on="31000000:31001024"),
    ).claim(
        id="cogo.decouple",
        title="At large width cross potentials decouple, and one family does not",
        statement="For independent Gaussian weights of standard deviation $s$, the diagonal of $JJ^*/q$ of the cross potentials "
        r"($J$ their derivative by the spectrum, $q$ the width) is $\kappa = 3s^4/d^2$ on average, within 5%. Off the diagonal it "
        r"falls like $q^{-1/2}$ (exponent to 0.1): its mean square is $(0.46\,\kappa)^2/q$ at $d = 5$, within 10%. For the "
        r"potentials $r_{p,k',-k',k}$ the root mean square off the diagonal does not fall: over the diagonal it is $1/(4\sqrt d)$ "
        "at odd $d$, within 5% at the largest width.",
        judge=judge_decouple,
        controls={
            "potentials with both factors of one layer": jd.swap(measured_ratio="measured_auto_ratio"),
            "b = a at the start": jd.Control({"tied": 1.0}, breaks="independent"),
        },
        rivals={"all potentials decouple": jd.swap(predicted_auto_ratio="predicted_ratio")},
        plot=plot_decouple,
        caption=r"Root mean square of the off-diagonal entries of $JJ^*$ over its mean diagonal, against the width: median and "
        r"range of the runs, for cross potentials and for those with both factors of one layer. Line: the exact mean.",
    ),
    RELAX.claim(
        id="cogo.exp_relax",
        title="Potentials of wide networks relax one by one under the cross terms",
        statement="Under gradient flow of the cross terms of the loss alone from independent Gaussian weights of standard "
        "deviation $s$ from 0.5 to 1, the cross potentials $r_{k_1k_2k}$ of a wide network, of $q$ nodes, relax independently "
        "until "
        r"$\lambda t = 1.5$, $r(t) = \delta + (r(0) - \delta)e^{-\lambda t}$ with $\lambda = 2q\kappa/d^2$, $\kappa = 3s^4/d^2$, "
        r"and $\delta = 1$ for $r_{kkk}$, else 0. At $d = 5$ the root mean square deviation falls like the width to the power "
        r"$-1/2$ (within 0.15); with 2048 nodes it stays below 5% of the distance from $\delta$ at the start on average over "
        r"seeds, that of any single potential below 12% in every run; the rate is $\lambda$ within 3%, and $r_{kkk}$ are where "
        "they should be in the end within 0.12, on average.",
        holds={"std": (0.5, 1.0)},
        controls={"b = a at the start": {"tied": 1.0}, "32 nodes": NARROW},
    ),
    RELAX.claim(
        id="cogo.flow",
        title="Potentials relax as at infinite width, zero modes taken out",
        statement="Under gradient flow of the loss over all pairs of the weights without their zero modes (each layer minus its "
        "mean), from independent Gaussian weights of standard deviation $s = 1$, the cross potentials $r_{k_1k_2k}$ relax until "
        r"$\lambda t = 1.5$ by $r(t) = \delta + (r(0) - \delta)e^{-\lambda t}$ with $\lambda = 2q\kappa/d^2$ at width $q$, "
        r"$\kappa = 3s^4/d^2$, and $\delta = 1$ for $r_{kkk}$, else 0. At $d = 5$ the root mean square deviation falls like the "
        r"width to the power $-1/2$ (within 0.15); with 4096 nodes it stays below 5% of the distance from $\delta$ at the start "
        r"on average over seeds, that of any single potential below 12% in every run; the rate is $\lambda$ within 3%, and "
        "$r_{kkk}$ are where they should be in the end within 0.12, on average.",
        quick=jd.grid(Wide, width=[128.0, 1024.0, 4096.0], nodes=4096, loss="whole"),
        paper=jd.grid(Wide, width=[128.0, 512.0, 2048.0, 8192.0], nodes=8192, loss="whole"),
        bounds=jd.tuned(on="11000000:11000020", confirmed_on="51000000:51000020"),
        controls={"b = a at the start": {"tied": 1.0}, "128 nodes": NARROW},
    ),
)
