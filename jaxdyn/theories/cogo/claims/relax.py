r"""Claims on the flow of potentials: its form, its decoupling at infinite width, and exponential relaxation under the cross terms.

Letters as in ``dynamics/relax.py``. Widths are masks over the nodes of one array, so that all widths share a program.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import flow, plotting, stats
from jaxdyn.data.abelian import parse
from jaxdyn.errors import given
from jaxdyn.theories.cogo import model
from jaxdyn.theories.cogo.claims.loss import parts
from jaxdyn.theories.cogo.dynamics import relax as theory
from jaxdyn.theories.cogo.dynamics import spectrum

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CLAIMS", "Potentials", "Wide", "decouple_trial", "deviation", "flow_trial", "rdot_trial"]

SOURCE = "arXiv:2410.01779, section 5"
TURNS = 1.5  # lambda t at the end of the flow
SAVES = 5


@jd.setting
class Potentials:
    """Gaussian weights of small networks, zero modes included."""

    std: jd.Swept = 1.0
    groups: tuple[str, ...] = ("5", "2x2")
    hidden: int = 6

    def __post_init__(self) -> None:
        """Refuse groups without a name, empty networks, and weights that are all zero."""
        for name in self.groups:
            parse(name)
        if not self.groups or self.hidden < 1 or self.std <= 0:
            found = given(self, "groups", "hidden", "std")
            raise jd.UsageError(f"at least one group and one node, and std > 0 are needed, {found}")


@jd.setting
class Wide:
    """Independent Gaussian weights of a network with ``width`` nodes; ``tied`` is a breach."""

    width: jd.Swept = 256.0
    std: jd.Swept = 1.0
    tied: jd.Swept = 0.0  # b = (1 - tied) b + tied a
    nodes: int = 4096  # places for nodes
    group: str = "5"
    loss: str = "cross"  # what flows: the cross terms alone, or the whole loss of zero-mean weights

    def __post_init__(self) -> None:
        """Refuse widths beyond the places, groups without pairs of frequencies, and unknown losses."""
        if not 2 <= self.width <= self.nodes:
            raise jd.UsageError("width lies between 2 and nodes, " + given(self, "width", "nodes"))
        if len(parse(self.group).pairs) < 1:
            raise jd.UsageError("group needs a pair of conjugate characters, " + given(self, "group"))
        if self.std <= 0 or not 0 <= self.tied <= 1:
            raise jd.UsageError("std > 0 and 0 <= tied <= 1 are needed, " + given(self, "std", "tied"))
        if self.loss not in ("cross", "whole"):
            raise jd.UsageError("loss is cross or whole, " + given(self, "loss"))


def rdot_trial(s: Potentials, key: PRNGKeyArray) -> jd.Observables:
    r"""Velocities of spectra and potentials: the direct loss's gradient through the transform, and the formula."""
    groups = [parse(name) for name in s.groups]
    sizes = np.cumsum([3 * group.order * s.hidden for group in groups])
    normal = jnp.split(s.std * jax.random.normal(key, (sizes[-1],), jnp.float64), sizes[:-1])
    felt, said = [], []
    for group, draw in zip(groups, normal, strict=True):
        w = draw.reshape(3, group.order, s.hidden)
        descent = -jax.grad(lambda w, group=group: model.loss(w, group, "paper"))(w)
        z, dz = spectrum.transform(w, group), spectrum.transform(descent, group)
        r, dr = jax.jvp(theory.every, (z,), (dz,))
        felt.append((dz, dr, jnp.sum(jnp.square(descent))))
        g, velocity = theory.slope(r, group), theory.velocity(z, group)
        said.append((theory.spectrum_velocity(z, group), velocity, -jnp.sum(g.real * velocity.real + g.imag * velocity.imag)))

    def named(sides: list[tuple]) -> dict[str, jd.Named]:
        dz, dr, fall = zip(*sides, strict=True)
        return {
            "spectrum": jd.named(parts(dz), "part group entry"),
            "velocity": jd.named(parts(dr), "part group potential"),
            "fall": jd.named(jnp.stack(fall), "group"),
        }

    return jd.observables(
        predicted=named(said),
        measured=named(felt),
        recorded={"order": jd.named(jnp.asarray([group.order for group in groups], jnp.float64), "group")},
        coords={"part": ("re", "im"), "group": s.groups},
    )


def _draw(s: Wide, key: PRNGKeyArray) -> Float[Array, "3 d q"]:
    """Weights at the start; nodes beyond the width are zero, and stay so."""
    a, b, c = s.std * jax.random.normal(key, (3, parse(s.group).order, s.nodes), jnp.float64)
    return jnp.where(jnp.arange(s.nodes) < s.width, jnp.stack([a, (1 - s.tied) * b + s.tied * a, c]), 0.0)


def decouple_trial(s: Wide, key: PRNGKeyArray) -> jd.Observables:
    r"""J J^* over q kappa of one draw: its diagonal and the root mean square of the rest, for cross and for autopotentials."""
    group = parse(s.group)
    z = spectrum.transform(_draw(s, key), group)
    unit = s.width * theory.kappa(s.std, group.order)
    cross, auto = theory.off_diagonal(theory.cross_gram(z[:, 1:])), theory.off_diagonal(theory.auto_gram(z, group))
    return jd.observables(
        predicted={"diagonal": jnp.ones((), jnp.float64), "ratio": jnp.asarray(theory.spread(group, s.width), jnp.float64)},
        measured={"diagonal": cross[0] / unit, "ratio": cross[1] / unit},
        recorded={
            "own_ratio": cross[1] / cross[0],
            "largest": cross[2],
            "auto_ratio": auto[1] / auto[0],
            "auto_largest": auto[2],
        },
    )


def flow_trial(s: Wide, key: PRNGKeyArray) -> jd.Observables:
    """Gradient flow of the weights, and every cross potential's exponential from its start."""
    group = parse(s.group)
    turns = jnp.linspace(0, TURNS, SAVES, dtype=jnp.float64)
    pace = 1 / theory.rate(s.std, s.width, group.order)

    def objective(w: Float[Array, "3 d q"]) -> Float[Array, ""]:
        if s.loss == "cross":
            return theory.modified_loss(w, group)
        return spectrum.loss(spectrum.transform(w - jnp.mean(w, 1, keepdims=True), group), group)  # so few elements beat q^2

    # steps this long are good for eight digits (dopri8 agrees), where the theory is a few percent off
    solution = flow.gradient_flow(objective, _draw(s, key), turns, rate=pace, rtol=1e-6, atol=1e-8)
    r = jax.vmap(lambda w: spectrum.potentials(spectrum.transform(w, group)[:, 1:]))(solution.ys)
    said, start = theory.relaxed(r[0], turns), r[0] - theory.goal(group.order - 1)

    def stored(x: Array) -> jd.Named:
        flat = x.reshape(SAVES, -1)
        return jd.named(jnp.stack([flat.real, flat.imag], 1), "turns part potential")

    return jd.observables(
        predicted={"r": stored(said)},
        measured={"r": stored(r)},
        recorded={"start": jnp.sqrt(jnp.mean(jnp.square(jnp.abs(start)))), "steps": solution.steps},
        status=solution.status,
        coords={"turns": np.linspace(0, TURNS, SAVES), "part": ("re", "im")},
    )


def deviation(ds: xr.Dataset) -> xr.DataArray:
    """Root mean square distance of the potentials from their exponentials, over that of the start from the goal; at every time."""
    square = ((ds.measured_r - ds.predicted_r) ** 2).sum("part", min_count=1).mean("potential")
    return np.sqrt(square) / ds.start


def judge_rdot(ds: xr.Dataset) -> list[jd.Check]:
    """Both velocities, and the inner product of the potentials' velocity with steepest descent."""
    return [
        jd.at_most("velocity of spectra, relative error", jd.relative_error(ds, "spectrum", "part entry"), 1e-8),
        jd.at_most("velocity of potentials, relative error", jd.relative_error(ds, "velocity", "part potential"), 1e-8),
        jd.at_most("rate at which the loss falls, relative error", jd.relative_error(ds, "fall"), 1e-8),
        jd.at_least("inner product with steepest descent", ds.predicted_fall, 0.0),
    ]


def judge_decouple(ds: xr.Dataset) -> list[jd.Check]:
    """The slope over widths, the constant before it, and the limit of the diagonal."""
    slope = stats.loglog_slope(ds.width, ds.measured_ratio.mean("seed"), "width")
    square = (ds.measured_ratio / ds.predicted_ratio) ** 2 - 1  # unbiased at every width
    level = 0.9999
    off, on = (abs(stats.standard_errors(x)) for x in (square, ds.measured_diagonal - ds.predicted_diagonal))
    return [
        jd.within("slope of the off-diagonal ratio over width", slope, -0.6, -0.4),
        jd.at_most("its square against the exact mean, in s.e.", off, stats.bonferroni_z(off.size, level)),
        jd.at_most(r"diagonal of J J* / q against kappa, in s.e.", on, stats.bonferroni_z(on.size, level)),
    ]


def judge_relax(ds: xr.Dataset) -> list[jd.Check]:
    """The worst distance along the flow at the largest width, and its slope over widths."""
    worst = deviation(ds).max("turns", skipna=False)
    widest = worst.sel(width=float(ds.width.max()))
    checks = [jd.at_most("distance from the exponentials at the largest width", widest, 0.05)]
    slope = stats.loglog_slope(ds.width, worst.mean("seed"), "width")
    return [*checks, jd.within("slope of the distance over width", slope, -0.65, -0.35)]


def plot_rdot(ds: xr.Dataset, fig: Figure) -> None:
    """Formula against autodiff."""
    one = ds.isel({dim: 0 for dim in ("std", "seed") if dim in ds.dims})
    for ax, name, title in zip(fig.subplots(1, 2), ("spectrum", "velocity"), ("spectra", "potentials"), strict=True):
        for group, color in zip(one.group.values, plotting.CYCLE[::2], strict=False):
            at = {"group": group}
            plotting.scatter(ax, one[f"predicted_{name}"].sel(at), one[f"measured_{name}"].sel(at), str(group), color, log=False)
        ax.set(title=f"velocity of {title}", xlabel="formula", ylabel="autodiff of the loss over pairs")


def plot_decouple(ds: xr.Dataset, fig: Figure) -> None:
    """Off-diagonal over diagonal against width, for cross and autopotentials, with the exact mean."""
    ax = fig.subplots()
    plotting.order(ax, ds.width, ds.own_ratio, label="cross potentials", color="measured")
    plotting.order(ax, ds.width, ds.auto_ratio, label=r"$r_{p,k',-k',k}$", color="fourth")
    ax.plot(ds.width, ds.predicted_ratio.mean("seed"), color=plotting.COLORS["theory"], label="exact mean")
    ax.set(xlabel="width q", ylabel=r"off-diagonal / diagonal of $JJ^*$")


def plot_relax(ds: xr.Dataset, fig: Figure) -> None:
    """Potentials of the widest network along time, and the distance from the exponentials over widths."""
    left, right = fig.subplots(1, 2)
    pick = {"width": -1} if "width" in ds.dims else {}
    one = ds.isel(pick).isel(seed=0, part=0)
    some = np.linspace(0, one.sizes["potential"] - 1, 8).astype(int)
    for i, color in zip(some, plotting.CYCLE * 2, strict=False):
        left.plot(one.turns, one.measured_r.isel(potential=i), "o", color=color)
        left.plot(one.turns, one.predicted_r.isel(potential=i), "--", color=color)
    left.set(xlabel=r"$\lambda t$", ylabel="Re r (dashed: exponential)")
    if "width" in ds.dims:
        plotting.order(right, ds.width, deviation(ds).max("turns"), slope=-0.5, label="gradient flow")
    right.set(xlabel="width q", ylabel="distance from the exponentials")


def _auto(ds: xr.Dataset) -> xr.Dataset:
    return ds.assign(measured_ratio=ds.auto_ratio)


def _narrow(ds: xr.Dataset) -> xr.Dataset:
    """Every network as far from its exponentials as the narrowest."""
    first = ds.isel(width=0, drop=True)
    return ds.assign({name: first[name].expand_dims(width=ds.width) for name in ("measured_r", "predicted_r", "start")})


def _undivided(ds: xr.Dataset) -> xr.Dataset:
    return ds.assign({f"predicted_{name}": ds[f"predicted_{name}"] * ds.order for name in ("spectrum", "velocity", "fall")})


CLAIMS = (
    jd.Claim(
        id="cogo.rdot",
        statement=r"Gradient flow of the weights moves spectra by $\dot z = -\frac1d\,\overline{\partial L/\partial z}$ and "
        r"potentials by $\dot r = -\frac1d J J^* g$ with $J = \partial r/\partial z$ and $g = \overline{\partial L/\partial r}$, "
        r"never against steepest descent: $-\mathrm{Re}\langle g, \dot r\rangle = -\dot L \ge 0$.",
        source=f"{SOURCE}; the factor 1/d made explicit",
        trial=rdot_trial,
        quick=jd.grid(Potentials, std=[0.5, 1.0, 2.0]),
        paper=jd.grid(Potentials, std=[0.25, 0.5, 1.0, 2.0], groups=("5", "6", "7", "2x2", "2x3"), hidden=12),
        seeds=8,
        paper_seeds=32,
        judge=judge_rdot,
        controls={
            "without 1/d": _undivided,
            "ascent": lambda ds: ds.assign(predicted_velocity=-ds.predicted_velocity, predicted_fall=-ds.predicted_fall),
        },
        plot=plot_rdot,
    ),
    jd.Claim(
        id="cogo.decouple",
        statement=r"For independent Gaussian weights $JJ^*/q$ of the cross potentials tends to $\kappa I$, $\kappa = 3s^4/d^2$: "
        r"off the diagonal it falls like $q^{-1/2}$, with a mean square known at every width ($(0.460\,\kappa)^2/q$ at d = 5). The "
        r" potentials $r_{p,k',-k',k}$ stay coupled.",
        source=f"{SOURCE}, Theorem on infinite width; the constant is ours",
        trial=decouple_trial,
        quick=jd.grid(Wide, width=[16.0, 64.0, 256.0, 1024.0, 4096.0]),
        paper=jd.grid(Wide, width=[4.0**i for i in range(2, 8)], nodes=4**7, std=[0.5, 1.0, 2.0]),
        seeds=32,
        paper_seeds=64,
        judge=judge_decouple,
        controls={"potentials with both factors of one layer": _auto, "b = a at the start": {"tied": 1.0}},
        plot=plot_decouple,
    ),
    jd.Claim(
        id="cogo.exp_relax",
        statement=r"Under the cross terms of the loss alone every cross potential of a wide network relaxes by itself, "
        r"$r(t) = \delta + (r(0) - \delta)e^{-\lambda t}$ with $\lambda = 2q\kappa/d^2$; what is left falls like $q^{-1/2}$.",
        source=f"{SOURCE}, Theorem on infinite width",
        trial=flow_trial,
        quick=jd.grid(Wide, width=[32.0, 128.0, 512.0, 2048.0], nodes=2048),
        paper=jd.grid(Wide, width=[32.0, 128.0, 512.0, 2048.0, 8192.0], nodes=8192),
        seeds=8,
        paper_seeds=32,
        judge=judge_relax,
        controls={"b = a at the start": {"tied": 1.0}, "32 nodes": _narrow},
        plot=plot_relax,
    ),
)
