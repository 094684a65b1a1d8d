r"""Training from a small start with separate keys and queries: the loss rests on plateaus, one eigenvalue after another.

Gradient flow, to t = 794, is by automatic differentiation of the exact population loss in all entries, of heads with separate keys
and queries or of merged ones. A plateau is sought between the levels of the theory: among the records whose loss is between the
middles of neighbouring levels, the one at which the loss falls most slowly in :math:`\ln t`. For the level of no learning it is the
start's side of the first middle.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, Int, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import flow, plotting
from jaxdyn.theories.icl import dynamics, model

TIMES = (0.0, *(10 ** (-0.5 + 3.4 * i / 100) for i in range(101)))


@jd.setting
class Plateaus:
    """A layer, and its flow from a small start.

    Args:
        keys: separate keys and queries, or merged ones.
        size: standard deviation of every entry at the start.
        first: largest eigenvalue of the inputs' covariance.
        ratio: of each eigenvalue to the one before.
        length: N.
        inputs: d.
        heads: of rank one.
    """

    keys: jd.Code = jd.code("separate", "merged")
    size: jd.Swept = jd.field(0.05, above=0)
    first: jd.Swept = jd.field(2.0, above=0)
    ratio: jd.Swept = jd.field(0.5, above=0, at_most=1)
    length: jd.Swept = jd.field(50.0, at_least=1)
    inputs: int = jd.field(3, at_least=2)
    heads: int = jd.field(3, at_least=1)


def separate_start(s: Plateaus, key: PRNGKeyArray) -> model.Params:
    """Gaussian entries in one of the two parts, and zeros, which no gradient moves, in the other."""
    d, keys = s.inputs, jax.random.split(key, 5)
    shapes = [(d + 1, d + 1)] * 2 + [(s.heads, d + 1)] * 3
    here = [s.keys == "merged"] * 2 + [s.keys == "separate"] * 3
    draws = [s.size * jax.random.normal(k, shape, jnp.float64) for k, shape in zip(keys, shapes, strict=True)]
    return model.Params(*(jnp.where(where, x, 0.0) for where, x in zip(here, draws, strict=True)))


def resting(
    losses: Float[Array, " T"], times: Float[Array, " T"], levels: Float[Array, " d1"]
) -> tuple[Int[Array, " d1"], Float[Array, " d1"]]:
    """Index of the record of every plateau, and how fast the loss falls there in ln t; times begin with 0, which is no plateau."""
    middle = (levels[1:] + levels[:-1]) / 2
    high, low = jnp.append(jnp.inf, middle), jnp.append(middle, -jnp.inf)
    log = jnp.log(jnp.maximum(times, 1e-9))
    fall = jnp.append(0.0, jnp.abs((losses[2:] - losses[:-2]) / (log[2:] - log[:-2])))
    fall = jnp.append(fall, fall[-1]).at[0].set(jnp.inf)
    inside = (losses[None] < high[:, None]) & (losses[None] >= low[:, None])
    at = jnp.argmin(jnp.where(inside, fall, jnp.inf), 1)
    nearest = jnp.argmin(jnp.abs(losses[None] - levels[:, None]), 1)  # where no record is inside
    at = jnp.where(jnp.any(inside & jnp.isfinite(fall), 1), at, nearest)
    return at, fall[at]


def trial(s: Plateaus, key: PRNGKeyArray) -> jd.Observables:
    """Losses and strengths of the eigenvalues on the plateaus; the whole curve is recorded."""
    k_basis, k_start = jax.random.split(key)
    ts, d = jnp.asarray(TIMES, jnp.float64), s.inputs
    # the layer's flow
    values, vectors = model.spectrum(s.first, s.ratio, d), model.basis(k_basis, d)
    lam = (vectors * values) @ vectors.T
    options = {"solver": "tsit5", "rtol": 1e-6, "atol": 1e-9, "max_steps": 50_000}
    solution = flow.gradient_flow(model.population_loss, separate_start(s, k_start), ts, lam, s.length, **options)
    # its loss and what it has learned of every eigenvalue, on the plateaus
    losses = jax.vmap(lambda p: model.population_loss(p, lam, s.length))(solution.ys)
    predictors = jax.vmap(model.effective)(solution.ys)
    learned = vectors.T @ (dynamics.gamma(lam, s.length) @ predictors) @ vectors
    strengths = jnp.diagonal(learned, axis1=1, axis2=2)
    levels = dynamics.levels(values, s.length)
    at, fall = resting(losses, ts, levels)
    return jd.observables(
        predicted={
            "level": jd.named(levels, "learned"),
            "strength": jd.named(dynamics.strengths(d), "learned eigenvalue"),
        },
        measured={
            "level": jd.named(losses[at], "learned"),
            "strength": jd.named(strengths[at], "learned eigenvalue"),
            "fall": jd.named(fall / levels[0], "learned"),
        },
        recorded={
            "loss": jd.named(losses, "time"),
            "strengths": jd.named(strengths, "time eigenvalue"),
            "rested": jd.named(ts[at], "learned"),
            "merged_level": jd.named(jnp.full(d + 1, levels[-1]).at[0].set(levels[0]), "learned"),
        },
        assumed={"waited": values[-1] ** 2 * s.size * TIMES[-1]},
        status=solution.status,
        coords={"time": TIMES},
    )


LEVEL, STRENGTH = 0.02, 0.05  # how near a level and the strengths of the eigenvalues on it must be
REST = 0.03  # of the level of no learning: how far the loss may fall on a plateau as t grows e-fold
SHARE = 0.5


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Runs that come near all levels, those that hardly fall there, and those that have learned there what they should."""
    off = jd.relative_error(ds, "level")
    wrong = abs(ds.measured_strength - ds.predicted_strength)
    near = (off.max("learned") <= LEVEL).where(off.notnull().all("learned"))
    rested = (ds.measured_fall.max("learned") <= REST).where(off.notnull().all("learned"))
    learned = (wrong.max(["learned", "eigenvalue"]) <= STRENGTH).where(wrong.notnull().all(["learned", "eigenvalue"]))
    return [
        jd.share_within("runs whose plateaus are within 2% of every level", near, over="seed", low=SHARE),
        jd.share_within("runs whose loss hardly falls on every plateau", rested, over="seed", low=SHARE),
        jd.share_within("runs whose strengths on every plateau are within 0.05", learned, over="seed", low=SHARE),
    ]


def even(ds: xr.Dataset) -> xr.DataArray:
    """A control: from the first record after the start to the last the loss falls by as much in every e-fold of the time."""
    first, last = ds.loss.isel(time=1, drop=True), ds.loss.isel(time=-1, drop=True)
    return (first - last) / np.log(float(ds.time[-1] / ds.time[1])) / first


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Losses of all runs along time over the levels."""
    ax = fig.subplots()
    runs = ds.loss.isel(time=slice(1, None)).stack(every=ds.status.dims).transpose("time", "every")
    lines = ax.semilogx(ds.time.values[1:], runs, color=plotting.COLORS["measured"], linewidth=1)
    lines[0].set_label("flow")
    for level in ds.predicted_level.values.reshape(-1, ds.sizes["learned"])[0]:
        ax.axhline(level, linestyle="--", color=plotting.COLORS["theory"], linewidth=1)
    ax.plot([], [], "--", color=plotting.COLORS["theory"], label="levels")
    ax.set(xlabel="t", ylabel="loss")


STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Plateaus),
    seeds=32,
    paper_seeds=32,
    evidence="flow",
    source="arXiv:2501.16265, section 4; bounds ours",
    plot=plot,
    caption=r"Loss along the flow from small random starts, one line per run, and the levels $L_m$ of the theory (dashed).",
)

CLAIMS = (
    STUDY.claim(
        id="icl.plateaus",
        title="In-context regression is learned in steps, one eigenvalue at a time",
        statement="In the gradient flow of linear attention with separate keys and queries and at least as many heads as the "
        r"$d$ inputs, from random starts of standard deviation $a$ of .04 to .05 until $\lambda_d^2\,a\,t$ is above 7.5, in "
        r"more than half of the runs the loss rests within 2% of every level $L_m = \frac12[\sum_i\lambda_i - \sum_{i\le "
        r"m}\lambda_i^2/\Gamma_i]$, $m = 0, \dots, d$ (in more than half it falls there by less than 3% of $L_0$ as $t$ grows "
        "e-fold), and in more than half the $m$ largest eigenvalues have been learned on the $m$-th plateau and the others "
        r"have not, within .05 of 1 and 0. Here $\lambda_1 > \dots > \lambda_d$, each .5 to .55 times the one before, are the "
        r"eigenvalues of the inputs' covariance, $\Gamma_i = (1 + \tfrac1N)\lambda_i + \tfrac1N\sum_j \lambda_j$ for $N$ "
        r"examples per prompt, and an eigenvalue is learned as the layer's linear predictor reaches $1/\Gamma_i$ there.",
        tested="Gradient flow of {heads} heads of linear attention with key and query vectors, in all entries, on the exact "
        "population loss in float64 until $t = 794$, from Gaussian entries of standard deviation {size}. In-context "
        "regression with {inputs} inputs and {length} examples; the inputs' covariance has random eigenvectors, the largest "
        "eigenvalue {first}, and each further one {ratio} times the one before; {seeds} seeds.",
        bounds=jd.tuned(on="0:32", confirmed_on="61000000:61000032"),
        judge=judge,
        assumes=(jd.above("waited", 7.5),),
        holds={"ratio": (0.5, 0.55), "size": (0.04, 0.05), "heads": (3, 6)},
        controls={
            "merged keys and queries": {"keys": "merged"},
            "equal eigenvalues": {"ratio": 1.0},
            r"the loss falls evenly in $\ln t$": jd.swap(measured_fall=even),
        },
        rivals={
            "nothing moves": jd.off(jd.initial("learned", "predicted_level", predicted_strength=0.0)),
            "one drop to the least loss": jd.swap(predicted_level="merged_level"),
            "all eigenvalues are learned alike": jd.swap(predicted_strength=lambda ds: ds.predicted_strength.mean("eigenvalue")),
        },
    ),
)
