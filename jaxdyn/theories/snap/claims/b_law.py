r"""Theorem 4: the growth of B with one common token in all classes and one distinct token in each, against the reduced ODE.

One trial serves the law for any number K_m of classes a query, its two branches, its misprints, the effect of the decoder's
learning rate, and (in ``frozen.py``) the end of the attention's movement. "Measured" is the reduced dynamics, integrated.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.errors import given
from jaxdyn.theories.snap.dynamics import growth, reduced
from jaxdyn.theories.snap.dynamics.clock import clock, miss
from jaxdyn.theories.snap.dynamics.gradient import gamma_integral

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CLAIMS", "FORMS", "GRID", "Pair", "SETTLED", "TIMES", "problem_of", "trial"]

SOURCE = "arXiv:2305.16380, Theorem 4"
TIMES = 1e7 * 0.5 ** np.arange(33, -1, -1)  # doubling from about 1e-3
FORMS = ("derived", "no quarter", "constant", "four", "ln t", "always slower")
LATE = 1e3  # times K ln M / eta_Y, from where dB/dln t follows its limit
SETTLED = 2.0  # times K ln M / eta_Y: the end of the transition


@jd.setting
class Pair:
    """One common token and a distinct token a class; ``steady`` and ``restart`` are breaches."""

    odds: jd.Swept = 0.05  # P of the common token over P of the distinct one
    per_query: jd.Swept = 1.0  # K_m, classes a query
    size: jd.Swept = 1000.0  # M
    eta_y: jd.Swept = 1.0
    eta_z: jd.Swept = 2e6
    rho: jd.Swept = 1.0
    factor: jd.Swept = 2.0  # the second run's eta_Y over the first one's
    coupling: jd.Swept = 0.0  # its eta_Z grows by factor^coupling
    steady: jd.Swept = 0.0  # 1: gamma stays as at u = ln M, the loss never saturates
    restart: jd.Swept = 0.0  # the decoder starts anew at this multiple of K ln M / eta_Y (0: never)
    classes: int = 4

    def __post_init__(self) -> None:
        """Refuse numbers for which the law says nothing."""
        if self.classes < 2 or not 1 <= self.per_query <= self.classes:
            raise ValueError(f"classes >= 2 and 1 <= per_query <= classes are needed, {given(self, 'classes', 'per_query')}")
        if min(self.odds, self.eta_y, self.factor) <= 0 or self.size <= 2:
            found = given(self, "odds", "eta_y", "factor", "size")
            raise ValueError(f"odds, eta_y and factor must be positive and size above 2, {found}")


def problem_of(s: Pair) -> reduced.Problem:
    """Laws and rates of the reduced dynamics; token 0 is the common one."""
    p = jnp.concatenate([jnp.full((s.classes, 1), s.odds), jnp.eye(s.classes, dtype=jnp.float64)], 1) / (1 + s.odds)
    member = reduced.queries(s.classes, s.per_query)
    return reduced.Problem(p, member, s.size, float(s.classes), s.eta_y, s.eta_z, s.rho, s.steady)


def trial(s: Pair, key: PRNGKeyArray) -> jd.Observables:
    """B, its growth and the attention's movement by the reduced ODE and by the law, and what another eta_Y changes."""
    ts = jnp.concatenate([jnp.zeros(1), jnp.asarray(TIMES, jnp.float64)])
    problem = problem_of(s)
    late = jnp.log(s.size) * problem.classes / s.eta_y
    restart = jnp.where(s.restart > 0, s.restart * late, jnp.inf)
    rates = jnp.stack([jnp.ones(2), jnp.stack([s.factor, s.factor**s.coupling])])  # of (Y, Z): this run's, and the other's

    def run(scale: Float[Array, " 2"]) -> tuple[reduced.Path, Array, Array]:
        both = problem._replace(eta_y=scale[0] * problem.eta_y, eta_z=scale[1] * problem.eta_z)
        path = reduced.solve(both, ts, restart=restart)
        f = reduced.features(path.z, both)
        return path, reduced.pressure(f, path.u, both)[:, 0], (f / jnp.sum(f, -1, keepdims=True))[:, 0]

    path, pressure, c = jax.vmap(run)(rates)
    b, t = path.b[:, 1:, 0], ts[1:]
    law = jax.vmap(lambda scale: _law(s, t, scale))(rates)
    effect = law["derived"][1] - law["derived"][0]
    growth_now = t * pressure[0, 1:]
    said = {name: values[0] for name, values in law.items()}

    def forms(exact: Array, misprints: dict[str, Array]):
        return jd.named(jnp.stack([misprints.get(form, exact) for form in FORMS]), "form time")

    move, said_move = _moves(c[0, 1:, 0], growth.suppressed(said["derived"], s.odds, s.per_query))
    return jd.observables(
        predicted={
            "b": forms(said["derived"], {form: said[form] for form in ("no quarter", "constant", "four")}),
            "growth": forms(said["growth"], {"ln t": said["ln t"]}),
            "effect": forms(effect, {"always slower": -jnp.abs(effect)}),
            **{name: jd.named(said[name], "time") for name in ("early", "late", "limit")},
            "move": jd.named(said_move, "double"),
        },
        measured={
            "b": jd.named(b[0], "time"),
            "growth": jd.named(growth_now, "time"),
            "effect": jd.named(b[1] - b[0], "time"),
            "early": jd.named(b[0], "time"),
            "late": jd.named(b[0], "time"),
            "limit": jd.named(growth_now, "time"),
            "move": jd.named(move, "double"),
        },
        recorded={
            "four": jd.named(said["four"], "time"),
            "u": jd.named(path.u[0, 1:], "time"),
            "error": jd.named((s.size - 1) * miss(path.u[0, 1:], s.size), "time"),
            "c": jd.named(c[0, 1:, 0], "time"),
            "settles": late,
            "step_ratio": s.factor,
        },
        status=jnp.max(path.status),
        coords={"time": TIMES.tolist(), "double": TIMES[:-1].tolist(), "form": FORMS},
    )


def _moves(c: Float[Array, " T"], said: Float[Array, " T"]) -> tuple[Array, Array]:
    """L1 distance of the attention at time 2t from that at time t; what one of two tokens loses the other gains."""
    return 2 * jnp.abs(c[1:] - c[:-1]), 2 * jnp.abs(said[1:] - said[:-1])


def _law(s: Pair, t: Float[Array, " T"], scale: Float[Array, " 2"]) -> dict[str, Array]:
    """Theorem 4 in its exact form and as it is printed, for learning rates times ``scale``."""
    eta_y, rate = scale[0] * s.eta_y, s.rho * scale[1] * s.eta_z
    k, c0, q = float(s.classes), growth.constant(s.odds, s.classes, s.size), growth.exponent(s.per_query)
    u = clock(s.size * eta_y * t / k, s.size)
    drive = rate * gamma_integral(u, s.size, k, eta_y)
    exact = growth.b_law(drive, c0, q)
    early = growth.b_law(rate * growth.early_drive(t, s.size, k, eta_y), c0, q)
    late = growth.b_law(rate * jnp.where(t * eta_y > k, growth.late_drive(t, s.size, k, eta_y), 0.0), c0, q)
    return {
        "derived": exact,
        "no quarter": q * exact,
        "constant": exact + jnp.log(c0) / q,
        "four": growth.b_law(drive, c0, 4.0),
        "ln t": jnp.broadcast_to(2 / q, t.shape),
        "growth": growth.slope(u, drive, c0, q, s.size),
        "limit": 2 / (q * u),
        "early": early,
        "late": late,
    }


def judge_law(ds: xr.Dataset) -> list[jd.Check]:
    """B at every save."""
    return [jd.at_most("B against the law, relative", jd.relative_error(ds, "b"), 5e-3)]


def judge_phases(ds: xr.Dataset) -> list[jd.Check]:
    """Each branch two e-folds inside its region, and the growth in ln t far beyond the transition."""
    early, late = ds.time < ds.settles * np.exp(-2), ds.time > SETTLED * ds.settles * np.exp(2)
    far = ds.time > LATE * ds.settles
    return [
        jd.at_most("B against the early branch, relative", jd.relative_error(ds, "early").where(early), 0.05),
        jd.at_most("B against the late branch, relative", jd.relative_error(ds, "late").where(late), 0.05),
        jd.at_most("dB/dln t against (2/q)/u, relative", jd.relative_error(ds, "limit").where(far), 0.05),
    ]


def judge_growth(ds: xr.Dataset) -> list[jd.Check]:
    """dB/dln t while the attention scans, before K ln M / eta_Y."""
    scanning = ds.time < ds.settles
    return [jd.at_most("dB/dln t while scanning, relative", jd.relative_error(ds, "growth").where(scanning), 0.05)]


def judge_effect(ds: xr.Dataset) -> list[jd.Check]:
    """What a larger eta_Y does to B while the decoder learns and after: sign at all times, size late, and a crossing."""
    early, late = ds.time < np.exp(-2) * ds.settles / ds.step_ratio, ds.time > SETTLED * ds.settles
    agree = np.sign(ds.measured_effect) * np.sign(ds.predicted_effect)
    return [
        jd.at_least("sign of the effect before the transition, agreement", agree.where(early), 1.0),
        jd.at_least("sign of the effect after the transition, agreement", agree.where(late), 1.0),
        jd.at_most("largest effect on B after the transition", ds.measured_effect.where(late), 0.0),
        jd.at_most("size of the late effect against the law, relative", jd.relative_error(ds, "effect").where(late), 0.05),
    ]


def _run(ds: xr.Dataset, **chosen: float) -> xr.Dataset:
    """One run: the first on every axis but those chosen."""
    ds = ds.sel({k: v for k, v in chosen.items() if k in ds.dims}, method="nearest")
    return ds.isel({d: 0 for d in ds.status.dims})


def _form(values: xr.DataArray, form: str) -> xr.DataArray:
    return values.sel(form=form) if "form" in values.dims else values


def plot_law(ds: xr.Dataset, fig: Figure, form: str = "four", name: str = "law, q = 4 for every $K_m$") -> None:
    """B along time for every K_m, with the law and with another form of it."""
    ax = fig.subplots()
    values = ds.per_query.values if "per_query" in ds.dims else [1.0]
    for k, color in zip(values, plotting.CYCLE[2:], strict=False):
        run = _run(ds, per_query=float(k))
        ax.plot(run.time, run.measured_b, color=color, linewidth=3, alpha=0.5, label=rf"ODE, $K_m={k:g}$")
        ax.plot(run.time, _form(run.predicted_b, "derived"), "--", color=plotting.COLORS["theory"], linewidth=1.2)
        if "form" in run.predicted_b.dims:
            ax.plot(run.time, _form(run.predicted_b, form), ":", color=color)
    ax.plot([], [], "--", color=plotting.COLORS["theory"], label=r"law, $q = 2(1+K_m)$")
    ax.plot([], [], ":", color=plotting.COLORS["control"], label=name)
    ax.set(xscale="log", xlabel="time", ylabel="B")
    ax.legend()


def plot_phases(ds: xr.Dataset, fig: Figure) -> None:
    """B with its two branches, and its growth in ln t with the limit."""
    left, right = fig.subplots(1, 2)
    run, colors = _run(ds), plotting.COLORS
    inside = run.time > run.settles / 3
    left.plot(run.time, run.measured_b, color=colors["measured"], label="ODE")
    left.plot(run.time.where(run.time < 3 * run.settles), run.predicted_early, "--", color=colors["third"], label="early branch")
    left.plot(run.time.where(inside), run.predicted_late, "--", color=colors["theory"], label="late branch")
    right.plot(run.time, run.measured_growth, color=colors["measured"], label="ODE")
    right.plot(run.time, _form(run.predicted_growth, "derived"), "--", color=colors["third"], label="exact law")
    right.plot(run.time.where(inside), run.predicted_limit, "--", color=colors["theory"], label="$(2/q)/u$")
    for ax, name in ((left, "B"), (right, r"$dB/d\ln t$")):
        ax.axvline(float(run.settles), color=colors["control"], linewidth=0.8)
        ax.set(xscale="log", xlabel=r"time (line: $K\ln M/\eta_Y$)", ylabel=name)
        ax.legend()


def plot_effect(ds: xr.Dataset, fig: Figure) -> None:
    """What twice the decoder's learning rate adds to B."""
    ax = fig.subplots()
    run = _run(ds)
    ax.plot(run.time, run.measured_effect, color=plotting.COLORS["measured"], linewidth=3, alpha=0.6, label="ODE")
    ax.plot(run.time, _form(run.predicted_effect, "derived"), "--", color=plotting.COLORS["theory"], label="law")
    ax.axhline(0, color=plotting.COLORS["control"], linewidth=0.8)
    ax.set(xscale="log", xlabel="time", ylabel=rf"B at ${float(run.step_ratio):g}\,\eta_Y$ minus B at $\eta_Y$")
    ax.legend()


GRID = jd.grid(Pair, per_query=[1.0, 2.0, 4.0], odds=[0.02, 0.06])
_SHARED = {"trial": trial, "quick": GRID, "source": SOURCE}
_FULL = jd.grid(Pair, per_query=[1.0, 2.0, 4.0], odds=[0.01, 0.02, 0.04, 0.06], eta_z=[1e2, 1e4, 2e6], size=[1e2, 1e3, 1e4])
_LAW = {**_SHARED, "judge": judge_law, "paper": _FULL}
_REFUTED = {"expected": "refuted", "counterpart": "derived"}


def with_four(ds: xr.Dataset) -> xr.Dataset:
    """The law for one class a query, whatever K_m."""
    return ds.assign(predicted_b=ds.four)


CLAIMS = (
    jd.Claim(
        id="snap.B_law",
        statement=r"With one common and one distinct token a class and $K_m$ classes a query, "
        r"$B = \frac1q\ln(1 + q\,\rho\,\eta_Z\Gamma/C_0)$, $q = 2(1+K_m)$, $C_0^{-1} = (P_c/P_d)^2(K-1)M/(M-1)^2$, at all times "
        r"and without a fit (to about $(P_c/P_d)^2$).",
        form="derived",
        controls={
            "the law for one class a query": with_four,
            "a common token as probable as the distinct one": {"odds": 1.0},
            "a decoder that never saturates": {"steady": 1.0},
        },
        plot=plot_law,
        **_LAW,
    ),
    jd.Claim(
        id="snap.two_phase",
        statement=r"B grows in two phases: as $\frac1q\ln(1 + q\rho\,((M-1)/M)^2\eta_Y\eta_Z t^2/2KC_0)$ before $K\ln M/\eta_Y$, "
        r"and after $2K\ln M/\eta_Y$ with $\ln^2(M\eta_Y t/K)$ for $t^2$, so that $dB/d\ln t \to (2/q)/u$ dies out.",
        form="derived",
        judge=judge_phases,
        controls={"a decoder that never saturates": {"steady": 1.0}},
        plot=plot_phases,
        **_SHARED,
    ),
    jd.Claim(
        id="snap.lr_late",
        statement=r"By the law at fixed $\eta_Z$ a larger $\eta_Y$ makes B smaller, and attention denser, only after "
        r"$2K\ln M/\eta_Y$ (of the smaller $\eta_Y$); before the transition it makes B larger: the curves cross.",
        form="derived",
        judge=judge_effect,
        controls={"eta_Z grows as well": {"coupling": 1.0}, "a decoder that never saturates": {"steady": 1.0}},
        plot=plot_effect,
        **_SHARED,
    ),
    jd.Claim(
        id="snap.quarter_as_printed",
        statement=r"$B = \ln(1 + q\,\rho\,\eta_Z\Gamma/C_0)$, without the factor $1/q$ (1/4 for one class a query).",
        form="no quarter",
        **{**_LAW, **_REFUTED, "source": "slides on arXiv:2305.16380, growth of B"},
        plot=functools.partial(plot_law, form="no quarter", name="without 1/q"),
    ),
    jd.Claim(
        id="snap.constant_as_printed",
        statement=r"$B = \frac1q\ln(C_0 + q\,\rho\,\eta_Z\Gamma)$, which is $\frac1q\ln C_0$ and not 0 at the start.",
        form="constant",
        plot=functools.partial(plot_law, form="constant", name=r"$C_0$ inside the logarithm"),
        **{**_LAW, **_REFUTED},
    ),
    jd.Claim(
        id="snap.exponent_as_printed",
        statement=r"The law with the exponent 4 ($q = 4$) whatever the number of classes a query.",
        form="four",
        plot=plot_law,
        **{**_LAW, **_REFUTED},
    ),
    jd.Claim(
        id="snap.scanning_as_printed",
        statement=r"While the attention scans, B is linear in $\ln t$: $dB/d\ln t = 2/q$. It begins as $t^2$.",
        form="ln t",
        judge=judge_growth,
        plot=plot_phases,
        **{**_SHARED, **_REFUTED},
    ),
    jd.Claim(
        id="snap.lr_sign_as_printed",
        statement=r"At fixed $\eta_Z$ a larger $\eta_Y$ makes B smaller at every time.",
        form="always slower",
        judge=judge_effect,
        plot=plot_effect,
        **{**_SHARED, **_REFUTED, "source": SOURCE + " and Figure 6"},
    ),
)
