"""Claim on incremental learning: from a small start the singular values of the target are learned one after another."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import flow, linalg, plotting
from jaxdyn.theories.cal.claims.starts import linear_start, orthonormal, spectrum
from jaxdyn.theories.cal.dynamics import linear as theory
from jaxdyn.theories.cal.model import linear_loss
from jaxdyn.theories.cal.setting import Stairs

__all__ = ["CLAIMS", "crossing", "trial"]


def crossing(ts: Float[Array, " t"], y: Float[Array, " t"], level: Float[Array, ""]) -> Float[Array, ""]:
    """First time at which y reaches the level, interpolated between save times; the last time if it never does."""
    above = y >= level
    i = jnp.argmax(above)
    before = jnp.maximum(i - 1, 0)
    share = (level - y[before]) / jnp.where(i > 0, y[i] - y[before], 1.0)
    return jnp.where(jnp.any(above), jnp.where(i > 0, ts[before] + share * (ts[i] - ts[before]), ts[0]), ts[-1])


def trial(s: Stairs, key: PRNGKeyArray) -> jd.Observables:
    """Gradient flow of a two-layer network towards a target of rank ``modes``, from a balanced start of size ``eps``."""
    k_u, k_v, k_r, k_a, k_b, k_s = jax.random.split(key, 6)
    d, k = s.size, s.modes
    u, v = orthonormal(k_u, d, k), orthonormal(k_v, d, k)
    values = spectrum(k_s, k, 0.5, 3.5)
    m = (u * values) @ v.T
    turned = s.start == 1
    full = s.eps * jnp.ones((d,), jnp.float64)
    frames = linear_start(full, 0.0, orthonormal(k_b, d, d), orthonormal(k_a, d, d), orthonormal(k_r, d, d))
    aligned = linear_start(full[:k], 0.0, u, v, orthonormal(k_r, d, d)[:, :k])
    start = jax.tree.map(lambda a, b: jnp.where(turned, b, a), aligned, frames)

    eps = theory.effective_starts(u, v, start)
    times = theory.appearance(values, eps)
    ends = jnp.concatenate([jnp.zeros(1, jnp.float64), times, jnp.max(times)[None] * 1.25])
    ts = jnp.linspace(0.0, 1.0, s.samples + 1, dtype=jnp.float64) * ends[-1]
    sol = flow.gradient_flow(linear_loss, start, ts, m, rtol=1e-9, atol=1e-14)
    learned = linalg.singular_values(sol.ys.w2 @ sol.ys.w1)[:, :k]
    reached = jax.vmap(crossing, (None, 1, 0))(ts, learned, values / 2)
    between = (ends[1:] + ends[:-1]) / 2
    count = jnp.sum(learned > values / 2, -1)[jnp.searchsorted(ts, between)]
    return jd.observables(
        predicted={"time": jd.named(times, "mode"), "rank": jd.named(jnp.arange(k + 1, dtype=jnp.float64), "plateau")},
        measured={"time": jd.named(reached, "mode"), "rank": jd.named(count.astype(jnp.float64), "plateau")},
        recorded={"t": jd.named(ts, "step"), "learned": jd.named(learned, "step mode"), "values": jd.named(values, "mode")},
        status=sol.status,
    )


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Times of appearance within 10%, in the predicted order, and the rank on every plateau between them."""
    gaps = np.diff(ds.measured_time, axis=ds.measured_time.get_axis_num("mode"))
    wrong = (ds.measured_rank != ds.predicted_rank).where(ds.measured_rank.notnull())
    return [
        jd.at_most("relative error of the times", jd.relative_error(ds, "time"), 0.1),
        jd.at_least("smallest gap between successive modes", float(np.nanmin(gaps)), 0.0),
        jd.at_most("plateaus of another rank", wrong.sum(skipna=True), 0),
    ]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Singular values of one run with the predicted times; measured against predicted times of all runs."""
    left, right = fig.subplots(1, 2, width_ratios=(3, 2))
    run = ds.isel({d: -1 for d in ds.status.dims})
    plotting.lines(left, run.t.values, run.learned.transpose("mode", "step").values)
    for time in run.predicted_time.values:
        left.axvline(time, color=plotting.COLORS["theory"], linestyle="--", linewidth=1)
    left.set(xlabel="time", ylabel="singular values of the map, one run")
    plotting.scatter(right, ds.predicted_time, ds.measured_time, "time to reach half", log=False)


CLAIMS = (
    jd.Claim(
        id="cal.staircase",
        statement=r"From a small balanced start the singular values are learned one after another, mode $i$ at "
        r"$t_i \approx \ln(s_i/\varepsilon_i)/(2s_i)$; $\varepsilon_i = \varepsilon$ for an aligned start, else the part "
        r"of the start along mode $i$ that no earlier mode takes.",
        source="arXiv:1312.6120, time to learn a mode; overlap of random directions derived here",
        trial=trial,
        quick=jd.grid(Stairs, eps=1e-6, start=["aligned", "frames"]),
        paper=jd.grid(Stairs, eps=[1e-10, 1e-8, 1e-6], start=["aligned", "frames"], size=10, modes=4),
        seeds=8,
        paper_seeds=64,
        judge=judge,
        controls={r"$\varepsilon = 0.5$: no staircase": {"eps": 0.5}},
        plot=plot,
    ),
)
