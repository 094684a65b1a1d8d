r"""Claims on the shell of norms where a student generalises, and on the delay until a large one gets there.

Losses are over the variance of the teacher's outputs. A network has fitted its data, or generalises, when its training loss, or
test loss, falls to ``LEVEL``; the delay is the time from the one to the other. Letters as in ``dynamics.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import plotting, train
from jaxdyn.errors import given
from jaxdyn.theories.omnigrok import dynamics, model

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CLAIMS", "Student", "trial"]

SOURCE = "arXiv:2210.01117, section 3"
LEVEL = 0.05
SPHERES = (0.3, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0)  # starts of the networks held at their norm
SAMPLES = 100  # records of a run


@jd.setting
class Student:
    """Students of one teacher: some held at their norm, some from ``alpha`` with every decay, one each without and from 1.

    They make one run together, since those on spheres predict what the others do.
    """

    alpha: jd.Swept = 2.0
    lr: jd.Swept = 1e-3
    decays: tuple[float, ...] = (0.25, 0.125, 0.0625)
    horizon: float = 0.75  # length of the decaying runs, in units of 1 / (lr * decay)
    settle: int = 3000  # steps on a sphere
    inputs: int = 5
    hidden: int = 32
    outputs: int = 3
    samples: int = 60
    tests: int = 500

    def __post_init__(self) -> None:
        """Refuse networks without layers, decays that do not fall, and runs shorter than their records."""
        if min(self.inputs, self.hidden, self.outputs, self.samples, self.tests) < 1 or self.settle < SAMPLES:
            found = given(self, "inputs", "hidden", "outputs", "samples", "tests", "settle")
            raise jd.UsageError(f"sizes are at least 1, and settle at least {SAMPLES}, {found}")
        falling = all(a > b > 0 for a, b in zip(self.decays, self.decays[1:], strict=False))
        if len(self.decays) < 2 or not falling or min(self.alpha, self.lr, self.horizon) <= 0:
            raise jd.UsageError(f"two or more falling decays, all positive, {given(self, 'decays', 'alpha', 'lr', 'horizon')}")


class Run(NamedTuple):
    """One student: its start, its decay, whether it is held at its norm, steps between records."""

    alpha: Float[Array, " r"]
    decay: Float[Array, " r"]
    held: Float[Array, " r"]
    every: Float[Array, " r"]


def _runs(s: Student) -> Run:
    """On spheres; then from alpha with every decay; then without one, as long as the longest; then from 1 with the first decay."""
    spheres, decays = len(SPHERES), jnp.asarray(s.decays, jnp.float32)
    steps = jnp.asarray(s.horizon, jnp.float32) / (jnp.asarray(s.lr, jnp.float32) * decays * SAMPLES)
    alpha = jnp.concatenate(
        [jnp.asarray(SPHERES, jnp.float32), jnp.full(len(s.decays) + 1, s.alpha, jnp.float32), jnp.ones(1, jnp.float32)]
    )
    zero = jnp.zeros(spheres, jnp.float32)
    decay = jnp.concatenate([zero, decays, zero[:1], decays[:1]])
    every = jnp.concatenate([zero + s.settle / SAMPLES, steps, steps[-1:], steps[:1]])
    return Run(alpha, decay, jnp.where(jnp.arange(len(alpha)) < spheres, 1.0, 0.0).astype(jnp.float32), every)


def _train(s: Student, data: model.Data, key: PRNGKeyArray, run: Run) -> dict[str, Float[Array, " T"]]:
    """Losses and norm of one student at every record."""
    sizes = (s.inputs, s.hidden, s.hidden, s.outputs)
    start = model.init(key, sizes, run.alpha)
    size = model.norm(start)
    tx = optax.adamw(jnp.asarray(s.lr, jnp.float32), weight_decay=run.decay)
    free = train.make_step(model.error, tx)

    def step(state: train.State) -> train.State:
        new = free(state, data.x, data.y)
        goal = jnp.where(run.held > 0, size, model.norm(new.params))
        return new._replace(params=model.rescale(new.params, goal))

    def observe(state: train.State) -> dict[str, Array]:
        p = state.params
        losses = {"fit": model.error(p, data.x, data.y), "test": model.error(p, data.x_test, data.y_test)}
        return {k: v / data.variance for k, v in losses.items()} | {"norm": model.norm(p)}

    every = jnp.maximum(jnp.round(run.every), 1).astype(jnp.int32)
    seen = train.record(step, train.init(tx, start), observe, samples=SAMPLES, every=every)[1]
    steps = every * jnp.arange(SAMPLES + 1, dtype=jnp.int32)
    return jax.tree.map(lambda x: x.astype(jnp.float64), seen | {"steps": steps})


def trial(s: Student, key: PRNGKeyArray) -> jd.Observables:
    """Delays and norms of the decaying students beside those that the students on spheres foretell."""
    k_data, k_student = jax.random.split(key)
    data = model.sample(k_data, (s.inputs, s.hidden, s.hidden, s.outputs), s.samples, s.tests)
    seen = jax.lax.map(lambda run: _train(s, data, k_student, run), _runs(s))
    count, spheres = len(s.decays), len(SPHERES)
    sphere = jax.tree.map(lambda x: x[:spheres, -1], seen)
    moving = jax.tree.map(lambda x: x[spheres:], seen)
    fitted, general = (jax.vmap(lambda t, v: dynamics.passage(t, v, LEVEL))(moving["steps"], moving[k]) for k in ("fit", "test"))
    reached = jax.vmap(jnp.interp)(general, moving["steps"], moving["norm"])
    edge = dynamics.edge(sphere["norm"], sphere["test"], LEVEL)
    rate = s.lr * jnp.asarray(s.decays, jnp.float64)
    delays = general - fitted
    foretold = dynamics.delay(moving["norm"][0, 0], edge, rate)
    return jd.observables(
        predicted={"delay": jd.named(foretold, "decay"), "edge": jd.named(jnp.full(count, edge), "decay")},
        measured={"delay": jd.named(delays[:count], "decay"), "edge": jd.named(reached[:count], "decay")},
        recorded={
            "still": delays[count],  # without decay, cut at the end of the run
            "small": delays[count + 1],
            "still_norm": reached[count],
            "sphere_norm": jd.named(sphere["norm"], "start"),
            "sphere_fit": jd.named(sphere["fit"], "start"),
            "sphere_test": jd.named(sphere["test"], "start"),
            "curve": jd.named(moving["test"], "student record"),
            "fit_curve": jd.named(moving["fit"], "student record"),
            "steps": jd.named(moving["steps"], "student record"),
        },
        coords={"decay": s.decays, "start": SPHERES},
    )


def judge_delay(ds: xr.Dataset) -> list[jd.Check]:
    """The delay's power of the decay, and its length."""
    if ds.sizes["seed"] < 8:
        raise jd.Inconclusive("a mean over students needs at least 8 seeds")
    measured, predicted = ds.measured_delay, ds.predicted_delay
    span = np.log(ds.decay[-1] / ds.decay[0])
    slope = np.log(measured.isel(decay=-1) / measured.isel(decay=0)) / span
    ratio = (measured / predicted).isel(decay=-1)
    return [
        jd.within("power of the decay in the delay", slope.mean("seed"), -1.1, -0.9),
        jd.within("delay over the predicted one, smallest decay, mean", np.exp(np.log(ratio).mean("seed")), 0.85, 1.15),
        jd.within("the same for every student", ratio, 0.6, 1.6),
    ]


def judge_shell(ds: xr.Dataset) -> list[jd.Check]:
    """The reduced losses' shapes; the norm at which decaying students generalise, for every decay, to the step between spheres."""
    test, fit = ds.sphere_test, ds.sphere_fit
    best = test.isel(start=slice(1, -1)).min("start")
    ends = np.minimum(test.isel(start=0), test.isel(start=-1)) / best
    beyond = fit.where(ds.start >= 1).max("start")
    ratio = ds.measured_edge / ds.predicted_edge
    return [
        jd.at_least("test loss at either end over the least", ends, 3.0),
        jd.at_least("training loss at the least norm", fit.isel(start=0), LEVEL),
        jd.at_most("training loss at norms from the standard one on", beyond, LEVEL / 10),
        jd.within("norm at generalisation over the predicted edge, mean", ratio.mean("seed"), 0.85, 1.15),
        jd.within("the same for every student, smallest decay", ratio.isel(decay=-1), 0.8, 1.25),
    ]


def _as_delay(name: str) -> Callable[[xr.Dataset], xr.Dataset]:
    """The delays of another student in place of those with decay."""
    return lambda ds: ds.assign(measured_delay=xr.ones_like(ds.measured_delay) * ds[name])


def plot_delay(ds: xr.Dataset, fig: Figure) -> None:
    """Losses of one seed's students against steps; delays against the decay."""
    left, right = fig.subplots(1, 2)
    one = ds.isel(seed=0)
    for i, color in zip(range(ds.sizes["decay"]), ("measured", "third", "fourth", "fifth"), strict=False):
        at = one.isel(student=i, record=slice(1, None))
        left.plot(at.steps, at.curve, color=plotting.COLORS[color], label=f"decay {float(ds.decay[i]):g}")
    still = one.isel(student=ds.sizes["decay"], record=slice(1, None))
    left.plot(still.steps, still.curve, color=plotting.COLORS["control"], label="no decay")
    left.axhline(LEVEL, color=plotting.COLORS["theory"], linewidth=0.8)
    left.set(xlabel="steps", ylabel="test loss", xscale="log", yscale="log")
    plotting.band(right, ds.decay, ds.measured_delay.transpose(..., "decay"), "measured", marker="o")
    plotting.band(right, ds.decay, ds.predicted_delay.transpose(..., "decay"), "predicted", "theory")
    right.set(xlabel="weight decay", ylabel="delay in steps", xscale="log", yscale="log")


def plot_shell(ds: xr.Dataset, fig: Figure) -> None:
    """Losses against the norm on spheres; norms at generalisation against the predicted edge."""
    left, right = fig.subplots(1, 2)
    plotting.band(left, ds.start, ds.sphere_test.transpose(..., "start"), "test loss", marker="o")
    plotting.band(left, ds.start, ds.sphere_fit.transpose(..., "start"), "training loss", "third", marker="o")
    left.set(xlabel=r"norm over the standard one, $\alpha$", ylabel="loss on the sphere", yscale="log")
    for i, color in zip(range(ds.sizes["decay"]), ("measured", "third", "fourth", "fifth"), strict=False):
        at = ds.isel(decay=i)
        plotting.scatter(right, at.predicted_edge, at.measured_edge, f"decay {float(at.decay):g}", color)
    right.set(xlabel="edge of the shell, from spheres", ylabel="norm at generalisation")


_SHARED = {
    "trial": trial,
    "quick": jd.grid(Student),
    "paper": jd.grid(Student, decays=(0.25, 0.125, 0.0625, 0.03125), hidden=100, outputs=5, samples=100, settle=10_000),
    "seeds": 8,
    "paper_seeds": 16,
    "source": SOURCE,
}

CLAIMS = (
    jd.Claim(
        id="omnigrok.delay",
        statement=r"From a start of twice the standard size, AdamW with learning rate $\eta$ and decay $\gamma$ generalises "
        r"$\ln(w_0/w_c)/\eta\gamma$ steps after it has fitted: $w_c$ is the largest norm at which networks held on a sphere "
        "generalise.",
        judge=judge_delay,
        controls={"no decay": _as_delay("still"), "standard start": _as_delay("small")},
        plot=plot_delay,
        **_SHARED,
    ),
    jd.Claim(
        id="omnigrok.shell",
        statement="On spheres of weights the least training loss falls to nothing with the norm, and the test loss that goes with "
        "it is lowest on a shell and higher on both sides. A decaying student generalises when its norm reaches the "
        "shell's outer edge, whatever the decay.",
        judge=judge_shell,
        controls={
            "training loss for test loss": lambda ds: ds.assign(sphere_test=ds.sphere_fit),
            "no decay": lambda ds: ds.assign(measured_edge=xr.ones_like(ds.measured_edge) * ds.still_norm),
        },
        plot=plot_shell,
        **_SHARED,
    ),
)
