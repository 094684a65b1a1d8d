"""The spectral contrastive loss of linear encoders: its minimum, and which bits its flow from a random or aligned start selects.

"Measured" is the flow of the loss by automatic differentiation, over the distribution of views. The factors' law enters by its two
moments: 1/2 and 1/3 for uniform ones, 1 and 1 where nothing shrinks.
"""

from __future__ import annotations

import jax.numpy as jnp
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import flow, plotting, sampling
from jaxdyn.theories.hyper import dynamics as theory

TIMES = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 400.0)


@jd.setting
class Spectral:
    """A linear encoder of the hypercube, and the augmentation."""

    relevant: jd.Swept = jd.field(3.0, at_least=1)  # k, bits that augmentation keeps
    dim: jd.Swept = jd.field(3.0, at_least=1)  # d, outputs in use
    mean: jd.Swept = 0.5  # mean of the factor that shrinks irrelevant bits
    second: jd.Swept = jd.field(1 / 3, at_most=1)  # second moment of that factor
    inputs: int = 8  # bits of the hypercube
    width: int = 8  # outputs that there is room for

    def __post_init__(self) -> None:
        jd.require(self, self.relevant <= self.inputs, "relevant is at most inputs", "relevant", "inputs")
        jd.require(self, self.dim <= self.width, "dim is at most width", "dim", "width")
        jd.require(self, 0 < self.mean**2 <= self.second, "second is from mean squared, which is not 0", "mean", "second")


def loss(w: Float[Array, "d D"], plus: Float[Array, " D"], both: Float[Array, " D"]) -> Float[Array, ""]:
    """The spectral loss over the distribution of views."""
    gram = (w * both) @ w.T
    return -2 * jnp.sum(w * w * plus) + jnp.sum(gram * gram)


def trial(s: Spectral, key: PRNGKeyArray) -> jd.Observables:
    """The loss and the energy of irrelevant bits at the end from a random start; the path of an aligned one."""
    # both starts
    plus, both = theory.correlations(s.inputs, s.relevant, s.mean, s.second)
    ts, rows = jnp.asarray(TIMES, jnp.float64), jnp.arange(s.width)[:, None]
    random = 0.3 * sampling.normal(key, (s.width, s.inputs)) * (rows < s.dim)
    size = 0.01 * (1 + jnp.arange(min(s.width, s.inputs), dtype=jnp.float64))
    aligned = jnp.zeros((s.width, s.inputs), jnp.float64).at[jnp.arange(size.size), jnp.arange(size.size)].set(jnp.sqrt(size))
    both_starts = jnp.stack([random, aligned])
    relevant = jnp.arange(s.inputs) < s.relevant

    def total(w: Float[Array, "two d D"], plus: Array, both: Array) -> Float[Array, ""]:
        return loss(w[0], plus, both) + loss(w[1], plus, both)

    # the flow
    path = flow.gradient_flow(total, both_starts, ts, plus, both, rtol=1e-10, atol=1e-12, max_steps=40_000)
    last, diagonal = path.ys[-1, 0], path.ys[:, 1, jnp.arange(size.size), jnp.arange(size.size)] ** 2
    energy = jnp.sum(last**2 * both, 0)
    return jd.observables(
        predicted={
            "least": theory.minimum(s.inputs, s.relevant, s.dim, s.mean, s.second),
            "path": jd.named(theory.logistic(size, plus[: size.size], both[: size.size], ts), "time coordinate"),
        },
        measured={
            "least": loss(last, plus, both),
            "path": jd.named(diagonal, "time coordinate"),
            "irrelevant": jnp.sum(jnp.where(relevant, 0, energy)) / jnp.sum(energy),
        },
        recorded={
            "unlearned": loss(random, plus, both),
            "start": jd.named(size, "coordinate"),
            "unselected": jnp.asarray(1 - s.relevant / s.inputs, jnp.float64),
        },
        status=path.status,
        coords={"time": TIMES},
    )


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """The loss at the end and the aligned path."""
    return [
        jd.at_most("loss at t = 400 minus the minimum", abs(ds.measured_least - ds.predicted_least), 1e-8),
        jd.at_most("squared weights along the aligned flow, against the logistic", abs(ds.measured_path - ds.predicted_path), 1e-6),
    ]


SHARE = "share of irrelevant bits in the energy of outputs at t = 400"


def judge_selection(ds: xr.Dataset) -> list[jd.Check]:
    """Share of irrelevant bits at the end."""
    return [jd.at_most(SHARE, ds.measured_irrelevant, 1e-8)]


# Nothing moves.
STILL = jd.swap(predicted_least="unlearned", predicted_path="start")


# All bits are worth the same, and grow like relevant ones.
ALIKE = jd.swap(predicted_least=lambda ds: -ds.dim, predicted_path=lambda ds: ds.predicted_path.isel(coordinate=0))


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Squared weights along the aligned flow, and the loss at the end."""
    left, right = fig.subplots(1, 2)
    run = plotting.first_run(ds)
    half = run.isel(time=slice(0, -1))
    left.plot(half.time, half.measured_path.transpose("time", "coordinate"), "o", color=plotting.COLORS["measured"])
    left.plot(half.time, half.predicted_path.transpose("time", "coordinate"), "-", color=plotting.COLORS["theory"], linewidth=1)
    left.set(xlabel="t", ylabel="squared weight")
    plotting.scatter(right, ds.predicted_least, ds.measured_least, label="runs", color="measured", log=False)
    right.set(xlabel="minimum", ylabel="loss at the end")


STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Spectral, dim=[2.0, 5.0]),
    seeds=4,
    paper_seeds=16,
    evidence="flow",
    judge=judge,
    bounds="derived: the solver's tolerance, a relative 1e-10 a step, and what is left of the way at t = 400",
    tested="Gradient flow of a linear encoder of the hypercube with {dim} outputs, {relevant} relevant bits of {inputs}, "
    "whose loss is taken over the whole distribution of views (factors uniform), from random weights and from weights "
    "aligned with the coordinates; seeds: {seeds}.",
    source="arXiv:2202.14037, analysis of the spectral loss; minimum and logistic derived",
    plot=plot,
    caption="Left: squared weights of a flow that starts aligned (points) and the logistic (lines), one line a coordinate. Right: "
    "loss at the end of the flow from a random start against the minimum; one point per run.",
)

CLAIMS = (
    STUDY.claim(
        id="hyper.spectral",
        title="The least spectral contrastive loss of linear encoders, and the path",
        statement="In the gradient flow of the spectral contrastive loss of a linear encoder with $d$ outputs, no more than there "
        r"are bits, $k$ of them relevant, and augmentations that multiply the others by a factor $\tau$ uniform in (0, 1], the "
        r"loss "
        r"from a random start reaches $-\min(d, k) - \mu^2 \max(d - k, 0)$ with $\mu = (E\tau)^2/E\tau^2 = 3/4$ by $t = 400$, to "
        r"$10^{-8}$; from a start aligned with the coordinates "
        r"the squared weights follow the logistic $\dot p = 8(c_+ p - c^2 p^2)$, to $10^{-6}$ ($c_+$, $c$: "
        "correlation of a bit between two views, and its second moment).",
        controls={"coordinates exchanged": jd.rolled(measured_path="coordinate")},
        rivals={"nothing moves": jd.off(STILL), "all bits are worth the same": ALIKE},
    ),
    STUDY.claim(
        id="hyper.spectral_selects",
        title="As many outputs as relevant bits: a linear encoder reads only those",
        statement="In the gradient flow of the spectral contrastive loss of a linear encoder with as many outputs as relevant "
        "bits, from a random start, the irrelevant bits, which augmentations multiply by a factor uniform in (0, 1], end with a "
        "share below $10^{-8}$ of the energy of the outputs.",
        decides={"only": (SHARE, "augmentation leaves all bits alone")},
        quick=jd.grid(Spectral, dim=3.0),
        judge=judge_selection,
        controls={
            "augmentation leaves all bits alone": jd.Control(
                {"mean": 1.0, "second": 1.0}, why="factors that are all 1 have 1 as both moments"
            ),
            "more outputs than relevant bits": {"dim": 5.0},
            "fewer relevant bits than outputs": {"relevant": 2.0},
        },
        rivals={"nothing is selected: every bit has its share": jd.off({SHARE: lambda ds: float(ds.unselected.mean())})},
    ),
)
