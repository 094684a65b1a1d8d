"""Incremental learning: from a small balanced start the singular values of the target are learned one after another.

Measured is gradient flow of a two-layer linear network; predicted are the times at which each singular value appears, and the
rank of the network's map on the plateaus between them.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import flow, linalg, plotting
from jaxdyn.theories.cal import dynamics as theory
from jaxdyn.theories.cal.model import linear_loss
from jaxdyn.theories.cal.spectra import linear_start, orthonormals, require_falling, spectrum


@jd.setting
class Stairs:
    """Incremental learning of the singular values of a target from a small balanced start."""

    eps: jd.Swept = jd.field(1e-6, above=0)  # epsilon, strength of every mode at the start
    start: jd.Code = jd.code("aligned", "frames")  # frames: in random directions, not aligned with the target
    size: int = jd.field(6, at_least=1)  # units in each layer, input and output included
    modes: int = jd.field(3, at_least=1)  # rank of the target
    values: tuple[float, ...] | None = None  # singular values of the target; None: drawn
    samples: int = jd.field(400, at_least=1)  # times after the start that are recorded

    def __post_init__(self) -> None:
        jd.require(self, self.modes <= self.size, "modes is at most size", "modes", "size")
        require_falling(self, "values", self.modes)


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
    # the target, and both starts
    u, v = orthonormals((k_u, k_v), d, k)
    values = spectrum(k_s, k, 0.5, 3.5, s.values)
    m = (u * values) @ v.T
    turned = s.start == "frames"
    full = s.eps * jnp.ones((d,), jnp.float64)
    left, right, hidden = orthonormals((k_b, k_a, k_r), d, d)
    frames = linear_start(full, 0.0, left, right, hidden)
    aligned = linear_start(full[:k], 0.0, u, v, hidden[:, :k])
    start = jax.tree.map(lambda a, b: jnp.where(turned, b, a), aligned, frames)

    # what the theory predicts: times of appearance, with plateaus between them
    eps = theory.effective_starts(u, v, start)
    times = theory.appearance(values, eps)
    ends = jnp.concatenate([jnp.zeros(1, jnp.float64), times, jnp.max(times)[None] * 1.25])
    # gradient flow: when each singular value reaches half its target, and how many have in the middle of each plateau
    ts = jnp.linspace(0.0, 1.0, s.samples + 1, dtype=jnp.float64) * ends[-1]
    sol = flow.gradient_flow(linear_loss, start, ts, m, rtol=1e-9, atol=1e-14)
    learned = linalg.singular_values(sol.ys.w2 @ sol.ys.w1)[:, :k]
    reached = jax.vmap(crossing, (None, 1, 0))(ts, learned, values / 2)
    between = (ends[1:] + ends[:-1]) / 2
    count = jnp.sum(learned > values / 2, -1)[jnp.searchsorted(ts, between)]
    return jd.observables(
        predicted={"time": jd.named(times, "mode"), "rank": jd.named(jnp.arange(k + 1, dtype=jnp.float64), "plateau")},
        measured={"time": jd.named(reached, "mode"), "rank": jd.named(count.astype(jnp.float64), "plateau")},
        recorded={
            "t": jd.named(ts, "step"),
            "learned": jd.named(learned, "step mode"),
            "values": jd.named(values, "mode"),
            "time_by_size": jd.named(theory.appearance(values, s.eps * jnp.ones_like(values)), "mode"),
        },
        status=sol.status,
    )


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Times of appearance within 1%, in the predicted order, and the rank on every plateau between them."""
    gaps = np.diff(ds.measured_time, axis=ds.measured_time.get_axis_num("mode"))
    wrong = (ds.measured_rank != ds.predicted_rank).where(ds.measured_rank.notnull())
    return [
        jd.at_most("relative error of the times", jd.relative_error(ds, "time"), 0.01),
        jd.at_least("smallest gap between successive modes", float(np.nanmin(gaps)), 0.0),
        jd.at_most("plateaus of another rank", wrong.sum(skipna=True), 0),
    ]


# All singular values appear at one time, the mean of the predicted ones, and there is no plateau between them.
AT_ONCE = jd.swap(
    predicted_time=lambda ds: ds.predicted_time.mean("mode"),
    predicted_rank=lambda ds: ds.predicted_rank.where(ds.predicted_rank == 0, ds.predicted_rank.max("plateau")),
)


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Singular values of one run with the predicted times; measured against predicted times of all runs."""
    left, right = fig.subplots(1, 2, width_ratios=(3, 2))
    run = ds.isel({d: -1 for d in ds.status.dims})  # the last cell: a start in random directions
    plotting.lines(left, run.t.values, run.learned.transpose("mode", "step").values)
    for time in run.predicted_time.values:
        left.axvline(time, color=plotting.COLORS["theory"], linestyle="--", linewidth=1)
    left.set(xlabel="time", ylabel="singular values of the map, one run")
    plotting.scatter(right, ds.predicted_time, ds.measured_time, "time to reach half", log=False)


study = jd.Study(
    evidence="flow",
    bounds=jd.tuned(on="0:8", confirmed_on="4000:4008"),
    trial=trial,
    quick=jd.grid(Stairs, eps=1e-6, start=["aligned", "frames"]),
    paper=jd.grid(Stairs, eps=[1e-10, 1e-8, 1e-6], start=["aligned", "frames"], size=10, modes=4),
    seeds=8,
    paper_seeds=64,
    source="arXiv:1312.6120, time to learn a mode; overlap of random directions derived here",
    tested="A linear network with one hidden layer, {size} by {size}, towards random targets of rank {modes}, from balanced "
    "starts of size {eps}, aligned with the target or in random directions; {seeds} seeds. A mode is learned when its singular "
    "value reaches half of the target's.",
)

CLAIMS = (
    study.claim(
        id="cal.staircase",
        title="From a small start, singular values are learned one after another",
        statement=r"From a balanced start of size $\varepsilon \le 10^{-4}$, gradient flow of a two-layer linear network learns "
        r"singular values $3.5 > s_1 > s_2 > \dots > .5$ that are at least .5 apart one after another: mode $i$ reaches $s_i/2$ at "
        r"$\ln(s_i/\varepsilon_i)/(2s_i)$ to 1%, and half way to the next of these times the map has learned $i$ modes. For an "
        r"aligned start $\varepsilon_i = \varepsilon$; in general it is half the squared length of the part of $q_i^\top Q_0$ that "
        r"is orthogonal to those of the earlier modes, with $Q_0 = [W_1^\top; W_2]$ at the start and $q_i = (v_i, u_i)/\sqrt2$ of "
        "the target's singular vectors $u_i$ and $v_i$.",
        holds={"eps": (1e-10, 1e-4)},
        judge=judge,
        controls={r"$\varepsilon = 0.5$: no staircase": {"eps": 0.5}},
        rivals={
            "all modes at once": jd.off(AT_ONCE),
            r"$\varepsilon$ for every $\varepsilon_i$": jd.swap(predicted_time="time_by_size"),
        },
        plot=plot,
        caption="Left: singular values of the network's map along one run (lines) and the predicted times of appearance "
        "(dashed). Right: measured against predicted time at which a mode reaches half its value, one point per mode and run.",
    ),
)
