r"""The reduced flow of an idle query: its margin grows with the logarithm of time, at half the slope of the heuristic.

Letters: n other keys, :math:`\Delta` margin, :math:`\beta` size of the sink's value.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.sink.dynamics import reduced

RECORDS = 33
TIMES = tuple(float(t) for t in np.geomspace(1e-2, 1e6, RECORDS))
LATE = 1e4  # from here on the late law is compared
QUERIES = 32
SHARE = 0.1  # of the uniform part of the next token's law, as in the networks' task
CONCENTRATION = 0.5
SMALL = 0.1  # the most that the terms left out count in a slope of 1/2


@jd.setting
class Reduced:
    """The reduced flow of one random query."""

    value: jd.Swept = 1.0  # beta, size of the sink's value at the start
    others: jd.Swept = jd.field(1.0, at_least=0)  # size of what the other keys write
    number: jd.Swept = jd.field(16.0, above=0)  # n, keys other than the sink
    rate: jd.Swept = jd.field(1.0, at_least=0)  # r, rate of the value over that of the margin; 0: frozen
    vocabulary: int = jd.field(16, at_least=2)  # V, tokens


def trial(s: Reduced, key: PRNGKeyArray) -> jd.Observables:
    """Margin, share and value along time from equal scores, and the late law, from the loss and from the heuristic."""
    # a random query
    k_target, k_sink, k_others = jax.random.split(key, 3)
    size = s.vocabulary
    target = jax.random.dirichlet(k_target, jnp.full((size,), CONCENTRATION, jnp.float64), dtype=jnp.float64)
    query = reduced.Query(
        target=(1 - SHARE) * target + SHARE / size,
        sink=jax.random.normal(k_sink, (size,), jnp.float64),
        others=s.others * jax.random.normal(k_others, (QUERIES, size), jnp.float64),
        keys=jnp.asarray(s.number, jnp.float64),
    )
    # the flow
    ts = jnp.asarray(TIMES, jnp.float64)
    start = reduced.Point(jnp.zeros((), jnp.float64), jnp.asarray(s.value, jnp.float64))
    solution = reduced.solve(start, query, ts, jnp.asarray(s.rate, jnp.float64))
    margin, value = solution.ys
    # the law at late times
    late = int(np.argmax(np.asarray(TIMES) > 0.999 * LATE))
    spread = jnp.maximum(reduced.variance(query), 1e-12)
    law = reduced.late_law(ts, spread, query.keys)
    return jd.observables(
        predicted={"margin": jd.named(jnp.stack([law, reduced.heuristic_law(ts, ts[late], margin[late])]), "form t")},
        measured={"margin": jd.named(margin, "t")},
        recorded={
            "still": jd.named(jnp.zeros_like(ts), "t"),
            "root": jd.named(margin[late] + jnp.sqrt(ts) - jnp.sqrt(ts[late]), "t"),
            "linear": jd.named(margin[late] + ts / ts[late] - 1, "t"),
            "share": jd.named(reduced.share(margin, query.keys), "t"),
            "size": jd.named(value, "t"),
            "start": start.value,
            "error": jd.named(reduced.late_error(ts, spread, query.keys), "t"),
        },
        status=solution.status,
        coords={"form": ("derived", "heuristic"), "t": TIMES},
    )


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Margins late in time against the law, and their slopes."""
    late = ds.sel(t=slice(0.999 * LATE, None))
    jd.need(late, t=3)

    def slope(margin: xr.DataArray) -> xr.DataArray:
        return margin.diff("t") / np.log(late.t).diff("t")

    away = abs(late.measured_margin - late.predicted_margin)
    difference = abs(slope(late.measured_margin) - slope(late.predicted_margin))
    left_out = (
        np.minimum(late.error, SMALL).shift(t=1).isel(t=slice(1, None))
    )  # at the earlier record of the two that a slope is taken from
    return [
        jd.gate("size of the value at the end, over that at the start", abs(ds["size"].isel(t=-1) / ds.start), at_most=1e-3),
        jd.at_most("margin, largest difference from the law, over the terms that the law leaves out", away / late.error, 1.5),
        jd.at_most("slope in the logarithm of time, largest difference from the law's, over the same", difference / left_out, 1.5),
    ]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Margin, weight of the sink and size of its value along time."""
    axes = fig.subplots(1, 3)
    for ax, name, label, color in (
        (axes[0], "measured_margin", "reduced flow", "measured"),
        (axes[0], "predicted_margin", "late law", "theory"),
        (axes[1], "share", "", "measured"),
        (axes[2], "size", "", "measured"),
    ):
        values = abs(ds[name])
        plotting.band(ax, ds.t, values.transpose(..., "t"), label, color)
    for ax, label in zip(axes, (r"margin $\Delta$", "weight of the sink", r"size of its value $\beta$"), strict=True):
        ax.set(xscale="log", xlabel="time", ylabel=label)


LAW = jd.Study(
    trial=trial,
    quick=jd.grid(Reduced, value=[0.3, 1.0], number=[16.0, 64.0]),
    paper=jd.grid(Reduced, value=[0.1, 0.3, 1.0, 2.0], number=[4.0, 16.0, 64.0, 256.0], others=[0.5, 1.0, 2.0]),
    seeds=8,
    paper_seeds=32,
    evidence="reduced",
    bounds=jd.tuned(on="0:8", confirmed_on="61000000:61000008"),
    source="derived here from the loss of an idle query; its two variables: arXiv:2410.13835, section 2",
    judge=judge,
    plot=plot,
    caption="Margin of the sink's score, its weight and the size of its value along the time of the reduced flow (band: central "
    "90% of the runs), and the late law.",
).claim(
    id="sink.reduced_log",
    title="In a reduced flow the sink's score grows like half the log of time",
    form="derived",
    statement=r"In the reduced flow of one query that has nothing to look for (cross-entropy as a function of the margin "
    r"$\Delta$ of the sink's score over $n$ keys of equal scores and of the size of the sink's value), the margin grows late "
    r"like $\ln n + \frac12 \ln(2\sigma^2 t)$, where $\sigma^2$ is the variance, under the next token's law and without what the "
    r"sink's value makes up for, of what the other keys write into the logits: with the slope $1/2$ in $\ln t$, each within 1.5 "
    r"times $(3E + 3\ln(nE) + n)/E^2$, $E = \sqrt{2\sigma^2 t}$, the size of the terms left out (for the slope, .1 at most).",
    tested="Random queries over {number} keys with a sink whose value starts at {value}; the reduced equations are integrated, "
    "and compared from time 10,000 to 1,000,000; {seeds} seeds.",
    controls={
        "the value is frozen": jd.Control({"rate": 0.0}, breaks="size of the sink's value"),
        "other keys write nothing": {"others": 0.0},
    },
    rivals={
        "nothing moves": jd.swap(predicted_margin="still"),
        "growth like the square root of time": jd.swap(predicted_margin="root"),
        "growth linear in time": jd.swap(predicted_margin="linear"),
    },
)

CLAIMS = (
    LAW,
    LAW.as_printed(
        id="sink.reduced_log_naive",
        title="In a reduced flow the sink's score grows like the whole log of time",
        form="heuristic",
        statement="By a heuristic of ours, in the reduced flow of one query that has nothing to look for the loss that is left "
        r"to gain falls like $e^{-\Delta}$ with the margin $\Delta$ of the sink's score, so that $\dot\Delta = c\,e^{-\Delta}$ "
        "and the margin grows late with slope 1 in the logarithm of time.",
    ),
)
