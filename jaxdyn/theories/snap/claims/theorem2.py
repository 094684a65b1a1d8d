r"""Theorem 2: distinct tokens gain, a common token loses; and two unequal common tokens, which the theorem does not cover.

One trial, the reduced dynamics on random laws, serves the claims of Theorems 2 and 3 and of the final attention. Tokens are
ordered common, then the distinct tokens of class 1, 2, ... by increasing probability; the last of a class is its dominant one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import metrics, plotting
from jaxdyn.errors import given
from jaxdyn.theories.snap.dynamics import growth, reduced
from jaxdyn.theories.snap.dynamics.gradient import attention

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CLAIMS", "GAIN_FORMS", "Laws", "draw", "trial"]

SOURCE = "arXiv:2305.16380, Theorem 2"
COMMONS, SAVES = 2, 33
TABLE = ((0.30, 0.10, 0.60, 0.0), (0.02, 0.38, 0.0, 0.60))  # two unequal common tokens; then the distinct token of each class
TABLE_LOGITS = (0.0045, -0.1448, 0.1402, 0.0)  # of the first class at t = 20, to four digits
GAIN_FORMS = ("derived", "squared")  # chi, and the chi^2 of one set of slides


@jd.setting
class Laws:
    """Laws of ``classes`` classes; ``unequal``, ``leak``, ``tilt`` and ``ascent`` are breaches."""

    laws: jd.Code = jd.code("random", "table")
    common: jd.Swept = 0.3  # weight of the first common token; the distinct tokens of a class have total weight 1
    second: jd.Swept = 0.0  # weight of the second common token
    unequal: jd.Swept = 0.0  # common tokens' weights times and over exp(unequal) in class 1, over and times in the others
    leak: jd.Swept = 0.0  # weight of every distinct token in the next class, over its weight in its own
    tilt: jd.Swept = 0.0  # start of the distinct tokens' logits, -tilt ln P
    per_query: jd.Swept = 1.0  # K_m, classes a query
    size: jd.Swept = 1000.0  # M
    eta_y: jd.Swept = 1.0
    eta_z: jd.Swept = 1000.0
    rho: jd.Swept = 1.0
    ascent: jd.Swept = 1.0  # -1 lets Z descend J
    horizon: jd.Swept = 1e7
    classes: int = 4
    distinct: int = 4

    def __post_init__(self) -> None:
        """Refuse laws without overlap or without pairs of distinct tokens."""
        if self.classes < 2 or self.distinct < 3:
            raise ValueError(f"classes >= 2 and distinct >= 3 are needed, got {self.classes} and {self.distinct}")
        if self.per_query < 1 or self.size <= 2 or self.eta_y <= 0 or self.horizon <= 0:
            found = given(self, "per_query", "size", "eta_y", "horizon")
            raise ValueError(f"per_query >= 1, size > 2, eta_y > 0 and horizon > 0 are needed, {found}")
        if min(self.common, self.second, self.leak) < 0:
            raise ValueError(f"weights of tokens are not negative, {given(self, 'common', 'second', 'leak')}")


def own(s: Laws) -> np.ndarray:
    """Places of the distinct tokens of every class, (K, number)."""
    return COMMONS + np.arange(s.classes * s.distinct).reshape(s.classes, s.distinct)


def _table(s: Laws) -> np.ndarray:
    """The two laws of the table; classes beyond them keep to a token of their own, where they overlap with nothing."""
    p = np.zeros((s.classes, COMMONS + s.classes * s.distinct))
    p[:2, :COMMONS] = np.array(TABLE)[:, :COMMONS]
    p[np.arange(s.classes), own(s)[:, -1]] = np.where(np.arange(s.classes) < 2, 0.6, 1.0)
    return p


def draw(s: Laws, key: PRNGKeyArray) -> tuple[Float[Array, "K D"], Float[Array, "R D"]]:
    """Laws of the contextual tokens, and the logits at the start."""
    gaps = jax.random.uniform(key, (s.classes, s.distinct), jnp.float64, 0.3, 1.0)
    weights = jnp.cumsum(gaps, -1)
    weights = weights / jnp.sum(weights, -1, keepdims=True)
    row, place = np.arange(s.classes), own(s)
    p = jnp.zeros((s.classes, COMMONS + place.size), jnp.float64).at[row[:, None], place].set(weights)
    p = p + s.leak * jnp.roll(p, 1, 0)
    sign = jnp.asarray(np.where(row == 0, 1, -1)[:, None] * np.array([1.0, -1.0]))
    p = p.at[:, :COMMONS].set(jnp.stack([s.common, s.second]) * jnp.exp(s.unequal * sign))
    p = jnp.where(s.laws == 0, p / jnp.sum(p, -1, keepdims=True), jnp.asarray(_table(s)))
    logits = jnp.where(p > 0, -jnp.log(jnp.where(p > 0, p, 1.0)), 0.0).at[:, :COMMONS].set(0.0)
    return p, s.tilt * reduced.queries(s.classes, s.per_query) @ jnp.where(s.laws == 0, logits, 0.0)


def trial(s: Laws, key: PRNGKeyArray) -> jd.Observables:
    """The reduced dynamics, and what Theorems 2 and 3 say along its path."""
    p, start = draw(s, key)
    member = reduced.queries(s.classes, s.per_query)
    count = jnp.where(s.laws == 0, float(s.classes), 2.0)
    problem = reduced.Problem(p, member, s.size, count, s.eta_y, s.ascent * s.eta_z, s.rho)
    ts = s.horizon * jnp.concatenate([jnp.zeros(1), jnp.logspace(-9, 0, SAVES, dtype=jnp.float64)])
    path = reduced.solve(problem, ts, start=start)
    z = jnp.einsum("rk,trd->tkd", member, path.z)
    f = reduced.features(path.z, problem)
    rates = jnp.einsum("rk,trd->tkd", member, reduced.logit_rates(f, path.u, problem))
    pressure = reduced.pressure(f, path.u, problem)
    mine = np.arange(s.classes)[:, None], own(s)
    z_own, f_own, p_own = z[:, *mine], f[:, *mine], p[mine]
    gains = _gains(z, z_own, p, p_own)
    reach = _bounds(z_own, f_own, path.b)
    final = _final(z[-1], p, p_own, z_own[-1], mine)
    return jd.observables(
        predicted={
            "rise": jd.named((pressure[..., None] * f_own**2)[1:], "time class distinct"),
            "gain": jd.named(gains["predicted"], "form time class other"),
            **{name: jd.named(reach[name], "time class") for name in ("lower", "upper")},
            "entropy": jd.named(final["predicted"], "class"),
        },
        measured={
            "rise": jd.named(rates[:, *mine][1:], "time class distinct"),
            "gain": jd.named(gains["measured"], "time class other"),
            "lower": jd.named(z_own[1:, :, -1], "time class"),
            "upper": jd.named(z_own[1:, :, -1], "time class"),
            "entropy": jd.named(final["measured"], "class"),
        },
        recorded={
            "t": jd.named(ts, "save"),
            "z": jd.named(z, "save class token"),
            "p": jd.named(p, "class token"),
            "z_own": jd.named(z_own, "save class distinct"),
            "f_own": jd.named(f_own, "save class distinct"),
            "p_own": jd.named(p_own, "class distinct"),
            "c_own": jd.named(final["c_own"], "class distinct"),
            "pair_common": jd.named(gains["common"], "side time class other"),
            "lower_weakest": jd.named(reach["lower_weakest"], "time class"),
        },
        status=path.status,
        coords={"form": GAIN_FORMS},
    )


def _gains(z: Array, z_own: Array, p: Array, p_own: Array) -> dict[str, Array]:
    """Relative gains of the dominant token over the other distinct ones; for the control, over the first common token."""

    def measure(z_other: Array, p_other: Array) -> tuple[Array, Array]:
        ratio = 2 * (jnp.log(p_own[:, -1:] / p_other) + z_own[..., -1:] - z_other)
        start = jnp.square(p_own[:, -1:] / p_other) - 1
        return growth.gain(start, z_own[..., -1:])[1:], jnp.expm1(ratio)[1:]

    there = p_own[:, :-1] > 0  # an absent token counts as the dominant one, whose gain over itself is 0
    others = jnp.where(there, p_own[:, :-1], p_own[:, -1:])
    predicted, measured = measure(jnp.where(there, z_own[..., :-1], z_own[..., -1:]), others)
    squared = growth.gain(jnp.square(p_own[:, -1:] / others) - 1, z_own[1:, :, -1:], power=2.0)
    here = p[:, :1] > 0
    common = measure(jnp.where(here, z[..., :1], z_own[..., -1:]), jnp.where(here, p[:, :1], p_own[:, -1:]))
    common = jnp.stack([jnp.broadcast_to(side, measured.shape) for side in common])
    return {"predicted": jnp.stack([predicted, squared]), "measured": measured, "common": common}


def _bounds(z_own: Array, f_own: Array, b: Array) -> dict[str, Array]:
    """Theorem 3's bounds of the dominant token's logit by B, and the lower one of the least probable token."""
    f0 = jnp.square(f_own[0])
    return {"lower": (b * f0[:, -1])[1:], "upper": b[1:], "lower_weakest": (b * f0[:, 0])[1:]}


def _final(z: Array, p: Array, p_own: Array, z_own: Array, mine: tuple) -> dict[str, Array]:
    """Final attention on the distinct tokens of a class, and its entropy from the dominant token's logit alone."""
    c = attention(z, p)[mine]
    logits = growth.partner(z_own[:, -1:], p_own / p_own[:, -1:])
    said = attention(logits, p_own)
    return {"measured": metrics.entropy(c / jnp.sum(c, -1, keepdims=True)), "predicted": metrics.entropy(said), "c_own": c}


def judge_up(ds: xr.Dataset) -> list[jd.Check]:
    """Every distinct token's logit rises at every save, at the stated rate."""
    moves = ds.z_own.diff("save").where(ds.p_own > 0)
    share = (moves > 0).where(moves.notnull()).mean(["save", "class", "distinct"])
    return [
        jd.at_least("share of increments above 0", share, 1.0),
        jd.at_most(r"rate against the pressure times f squared", jd.relative_error(ds, "rise"), 1e-9),
    ]


def judge_down(ds: xr.Dataset) -> list[jd.Check]:
    """Every common token's logit falls at every save."""
    moves = ds.z.isel(token=slice(COMMONS)).diff("save").where(ds.p.isel(token=slice(COMMONS)) > 0)
    share = (moves < 0).where(moves.notnull()).mean(["save", "class", "token"])
    return [jd.at_least("share of increments below 0", share, 1.0)]


def judge_unequal(ds: xr.Dataset) -> list[jd.Check]:
    """A common token gains; with the laws of the table the logits are those of the table."""
    first = ds.z.isel({"class": 0, "save": -1})
    tokens = [0, 1, COMMONS + int(ds.sizes["distinct"]) - 1, COMMONS + 2 * int(ds.sizes["distinct"]) - 1]
    error = abs(first.isel(token=tokens) - xr.DataArray(list(TABLE_LOGITS), dims="token"))
    moves = ds.z.isel({"class": 0, "token": 0}).diff("save")
    return [
        jd.at_least("smallest increment of the common token", moves.min("save"), 0.0),
        jd.at_most("logits against the table's digits", error, 5.5e-5),
    ]


def plot_theorem2(ds: xr.Dataset, fig: Figure) -> None:
    """Logits of distinct and common tokens of all classes along time."""
    ax = fig.subplots()
    ds = ds.isel(save=slice(1, None))
    t = ds.t.isel({d: 0 for d in ds.t.dims if d != "save"})
    for name, values, color in (
        ("most probable distinct token", ds.z_own.isel(distinct=-1), "measured"),
        ("least probable distinct token", ds.z_own.isel(distinct=0), "third"),
        ("common token", ds.z.isel(token=0), "theory"),
    ):
        plotting.band(ax, t, values.transpose(..., "save"), name, color)
    ax.axhline(0, color=plotting.COLORS["control"], linewidth=0.8)
    ax.set(xscale="log", xlabel="time", ylabel="attention logit, all runs and classes")
    ax.legend()


def plot_unequal(ds: xr.Dataset, fig: Figure) -> None:
    """The logits of the first class of the table along time, beside the table's numbers."""
    ax = fig.subplots()
    run = ds.isel({d: 0 for d in ds.status.dims}).isel({"class": 0, "save": slice(1, None)})
    last = COMMONS + int(ds.sizes["distinct"]) - 1
    names = ("common, P = .30 and .02", "common, P = .10 and .38", "distinct, P = .60")
    for token, name, end, color in zip((0, 1, last), names, TABLE_LOGITS, ("theory", "control", "measured"), strict=False):
        ax.plot(run.t, run.z.isel(token=token), color=plotting.COLORS[color], label=name)
        ax.plot(run.t[-1], end, "o", color=plotting.COLORS[color])
    ax.set(xlabel="time", ylabel="attention logit of the first class")
    ax.legend()


RANDOM = jd.grid(Laws, per_query=[1.0, 2.0], eta_z=[1.0, 1000.0])
_SHARED = {"source": SOURCE, "trial": trial, "form": "derived", "seeds": 8, "paper_seeds": 64}

CLAIMS = (
    jd.Claim(
        id="snap.distinct_up",
        statement=r"A distinct token of a class gains: $\dot z_l = \rho\,\eta_Z\,\xi_n f_{nl}^2 > 0$, for any number of classes a "
        r"query.",
        quick=RANDOM,
        judge=judge_up,
        controls={
            "each distinct token also in the next class": {"leak": 0.5},
            "descent instead of ascent": {"ascent": -1.0},
            "f for f squared": lambda ds: ds.assign(predicted_rise=ds.predicted_rise / ds.f_own.isel(save=slice(1, None)).values),
        },
        plot=plot_theorem2,
        **_SHARED,
    ),
    jd.Claim(
        id="snap.common_down",
        statement=r"A common token loses, $\dot z_c < 0$, if it is the only one or if all common tokens have the same probability "
        r"in every class.",
        quick=jd.grid(Laws, per_query=[1.0, 2.0], second=[0.0, 0.2]),
        judge=judge_down,
        controls={
            "two unequal common tokens": {"unequal": 1.5},
            "the two common tokens of the table": {"laws": "table", "size": 6.0, "eta_z": 1.0, "horizon": 20.0},
            "descent instead of ascent": {"ascent": -1.0},
        },
        plot=plot_theorem2,
        **_SHARED,
    ),
    jd.Claim(
        id="snap.unequal_commons",
        statement=r"Of two unequal common tokens one may gain: with $P = (.30,.10,.60,0)$ and $(.02,.38,0,.60)$, $M = 6$, unit "
        r"rates and $\rho = 1$ the first class has $z = (+.0045, -.1448, +.1402, 0)$ at $t = 20$. "
        r"Theorem 2(b) does not cover this.",
        source=SOURCE + "(b), beyond its assumption",
        trial=trial,
        form="derived",
        quick=jd.grid(Laws, laws="table", size=6.0, eta_z=1.0, horizon=20.0),
        judge=judge_unequal,
        controls={
            "equal common tokens": {"laws": "random", "second": 0.2},
            "rho = 1/2": {"rho": 0.5},
        },
        plot=plot_unequal,
    ),
)
