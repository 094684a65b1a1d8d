"""Students of one teacher: the shell of norms on which they generalise, and how the weight decay sets the delay until they do.

Some stay on the sphere of their first norm, others have weight decay. Losses are over the variance of the teacher's outputs. A
network has fitted its data, or generalises, when its training loss, or test loss, falls to ``LEVEL``; the delay is the time from
the one to the other. Letters as in ``dynamics.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting, train
from jaxdyn.theories.omnigrok import dynamics, model

LEVEL = 0.05
SPHERES = (0.3, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0)  # starts of the networks on spheres
SAMPLES = 100  # records of a run


@jd.setting
class Student:
    """Students of one teacher: some on spheres, some from ``alpha`` with each decay, one without decay, one from 1.

    They make one run together, since those on spheres predict what the others do.

    Args:
        alpha: size of the start over the standard one.
        lr: eta, of AdamW.
        decays: gamma of each decaying student, falling.
        horizon: length of the decaying runs, in units of 1 / (lr * decay).
        settle: steps on a sphere.
        inputs: i.
        hidden: nodes of each hidden layer.
        outputs: o.
        samples: n, for training.
        tests: samples of the test loss.
    """

    alpha: jd.Swept = jd.field(2.0, above=0)
    lr: jd.Swept = jd.field(1e-3, above=0)
    decays: tuple[float, ...] = (0.25, 0.125, 0.0625)
    horizon: float = jd.field(0.75, above=0)
    settle: int = jd.field(3000, at_least=SAMPLES, role="time")
    inputs: int = jd.field(5, at_least=1)
    hidden: int = jd.field(32, at_least=1)
    outputs: int = jd.field(3, at_least=1)
    samples: int = jd.field(60, at_least=1)
    tests: int = jd.field(500, at_least=1)

    def __post_init__(self) -> None:
        """Refuse decays that do not fall."""
        falling = all(a > b > 0 for a, b in zip(self.decays, self.decays[1:], strict=False))
        jd.require(self, len(self.decays) >= 2 and falling, "decays are two or more, positive and falling", "decays")


class Plan(NamedTuple):
    """How each student is trained: its start, its decay, whether it stays on its sphere, steps between records."""

    alpha: Float[Array, " r"]
    decay: Float[Array, " r"]
    sphere: Float[Array, " r"]
    every: Float[Array, " r"]


def plan(s: Student) -> Plan:
    """On spheres; then from alpha with every decay; then without one, as long as the longest; then from 1 with the first decay."""
    spheres, decays = len(SPHERES), jnp.asarray(s.decays, jnp.float32)
    steps = jnp.asarray(s.horizon, jnp.float32) / (jnp.asarray(s.lr, jnp.float32) * decays * SAMPLES)
    alpha = jnp.concatenate(
        [jnp.asarray(SPHERES, jnp.float32), jnp.full(len(s.decays) + 1, s.alpha, jnp.float32), jnp.ones(1, jnp.float32)]
    )
    zero = jnp.zeros(spheres, jnp.float32)
    decay = jnp.concatenate([zero, decays, zero[:1], decays[:1]])
    every = jnp.concatenate([zero + s.settle / SAMPLES, steps, steps[-1:], steps[:1]])
    return Plan(alpha, decay, jnp.where(jnp.arange(len(alpha)) < spheres, 1.0, 0.0).astype(jnp.float32), every)


def train_one(s: Student, data: model.Data, key: PRNGKeyArray, one: Plan) -> dict[str, Float[Array, " T"]]:
    """Losses and norm of one student at every record."""
    sizes = (s.inputs, s.hidden, s.hidden, s.outputs)
    start = model.init(key, sizes, one.alpha)
    size = model.norm(start)
    tx = optax.adamw(jnp.asarray(s.lr, jnp.float32), weight_decay=one.decay)
    free = train.make_step(model.error, tx)

    def step(state: train.State) -> train.State:
        new = free(state, data.x, data.y)
        goal = jnp.where(one.sphere > 0, size, model.norm(new.params))
        return new._replace(params=model.rescale(new.params, goal))

    def observe(state: train.State) -> dict[str, Array]:
        p = state.params
        losses = {"fit": model.error(p, data.x, data.y), "test": model.error(p, data.x_test, data.y_test)}
        return {k: v / data.variance for k, v in losses.items()} | {"norm": model.norm(p)}

    every = jnp.maximum(jnp.round(one.every), 1).astype(jnp.int32)
    curves = train.record(step, train.init(tx, start), observe, samples=SAMPLES, every=every)[1]
    steps = every * jnp.arange(SAMPLES + 1, dtype=jnp.int32)
    return jax.tree.map(lambda x: x.astype(jnp.float64), curves | {"steps": steps})


def trial(s: Student, key: PRNGKeyArray) -> jd.Observables:
    """Delays and norms of the decaying students, and those predicted from the students on spheres."""
    # all students along training
    k_data, k_student = jax.random.split(key)
    data = model.sample(k_data, (s.inputs, s.hidden, s.hidden, s.outputs), s.samples, s.tests)
    curves = jax.lax.map(lambda one: train_one(s, data, k_student, one), plan(s))
    count, spheres = len(s.decays), len(SPHERES)
    sphere = jax.tree.map(lambda x: x[:spheres, -1], curves)
    moving = jax.tree.map(lambda x: x[spheres:], curves)
    # when they fit and generalise, and what the spheres predict
    fitted, general = (jax.vmap(lambda t, v: dynamics.passage(t, v, LEVEL))(moving["steps"], moving[k]) for k in ("fit", "test"))
    reached = jax.vmap(jnp.interp)(general, moving["steps"], moving["norm"])
    edge = dynamics.edge(sphere["norm"], sphere["test"], LEVEL)
    rate = s.lr * jnp.asarray(s.decays, jnp.float64)
    delays = general - fitted
    predicted = dynamics.delay(moving["norm"][0, 0], edge, rate)
    return jd.observables(
        predicted={"delay": jd.named(predicted, "decay"), "edge": jd.named(jnp.full(count, edge), "decay")},
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


STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Student),
    paper=jd.grid(Student, decays=(0.25, 0.125, 0.0625, 0.03125), hidden=100, outputs=5, samples=100, settle=10_000),
    seeds=14,
    paper_seeds=16,
    tested="Tanh networks with two hidden layers of {hidden} nodes learn {samples} samples of a random teacher of the same "
    "shape by AdamW at rate {lr}: some from {alpha} times the standard weights with decay {decays}, others with their "
    "weights held on spheres of nine norms, from 0.3 to 2 times the standard one; {seeds} seeds. A network generalises when "
    "its test loss is 5% of the targets' variance.",
    source="arXiv:2210.01117, section 3",
    evidence="network",
)


def judge_shell(ds: xr.Dataset) -> list[jd.Check]:
    """The shapes of the reduced losses; the norm at which decaying students generalise, up to the step between spheres."""
    test, fit = ds.sphere_test, ds.sphere_fit
    best = np.maximum(test.isel(start=slice(1, -1)).min("start"), LEVEL / 10)  # as good as fitted: lower losses count as this
    ends = np.minimum(test.isel(start=0), test.isel(start=-1)) / best
    beyond = fit.where(ds.start >= 1).max("start")
    ratio = ds.measured_edge / ds.predicted_edge
    return [
        jd.gate("training loss at norms from the standard one on", beyond, at_most=LEVEL / 10),
        jd.at_least("test loss at either end / least test loss", ends, 3.0),
        jd.mean_within("norm at generalisation / predicted edge", ratio, over="seed", low=0.85, high=1.15),
        jd.within("norm at generalisation / predicted edge, each student, smallest decay", ratio.isel(decay=-1), 0.8, 1.25),
    ]


def at_norm(start: float) -> Callable[[xr.Dataset], xr.Dataset]:
    """Generalisation at one norm for all students, in units of the standard one."""
    return jd.swap(predicted_edge=lambda ds: 0 * ds.predicted_edge + ds.sphere_norm.sel(start=start, drop=True))


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


def judge_delay(ds: xr.Dataset) -> list[jd.Check]:
    """The power of the decay in the delay, and the length of the delay."""
    jd.need(ds, seed=8)
    ratio = np.log(ds.measured_delay / ds.predicted_delay).clip(-10, 10)  # finite for a prediction of no delay at all
    first, last = ratio.isel(decay=0, drop=True), ratio.isel(decay=-1, drop=True)
    power = (last - first) / np.log(float(ds.decay[-1] / ds.decay[0]))
    return [
        jd.mean_within("power of the decay in the delay, minus the predicted power", power, over="seed", low=-0.1, high=0.1),
        jd.mean_within("ln(delay / predicted), smallest decay", last, over="seed", low=np.log(0.8), high=np.log(1.25)),
    ]


def like(power: float) -> Callable[[xr.Dataset], xr.Dataset]:
    """A delay that goes like a power of the decay, right for the largest one."""
    return jd.swap(predicted_delay=lambda ds: ds.predicted_delay.isel(decay=0, drop=True) * (ds.decay / ds.decay[0]) ** power)


def plot_delay(ds: xr.Dataset, fig: Figure) -> None:
    """Losses of one seed's students against steps; delays against the decay."""
    left, right = fig.subplots(1, 2)
    first = plotting.first_run(ds)
    for i, color in zip(range(ds.sizes["decay"]), ("measured", "third", "fourth", "fifth"), strict=False):
        at = first.isel(student=i, record=slice(1, None))
        left.plot(at.steps, at.curve, color=plotting.COLORS[color], label=f"decay {float(ds.decay[i]):g}")
    still = first.isel(student=ds.sizes["decay"], record=slice(1, None))
    left.plot(still.steps, still.curve, color=plotting.COLORS["control"], label="no decay")
    left.axhline(LEVEL, color=plotting.COLORS["theory"], linewidth=0.8)
    left.set(xlabel="steps", ylabel="test loss", xscale="log", yscale="log")
    plotting.band(right, ds.decay, ds.measured_delay.transpose(..., "decay"), "measured", marker="o")
    plotting.band(right, ds.decay, ds.predicted_delay.transpose(..., "decay"), "predicted", "theory")
    right.set(xlabel="weight decay", ylabel="delay in steps", xscale="log", yscale="log")


CLAIMS = (
    STUDY.claim(
        id="omnigrok.shell",
        title="Networks generalise on a shell of weight norms",
        bounds=jd.tuned(on="0:12", confirmed_on="4000:4012"),
        statement="Tanh networks with two hidden layers of 32 nodes that learn 60 samples of a random teacher of their shape (100 "
        "nodes and samples at paper scale), trained with their weights held on a sphere, generalise best on a shell of norms: "
        "their test loss (at least 0.5% of the targets' variance is counted) is at least three times as high at 0.3 and at 2 "
        "times the standard norm as at the best norm between. A student with a weight decay from .25 to .0625 (.03125 at paper "
        "scale) that starts at twice the standard norm generalises when its norm has fallen to the outer edge of that shell, "
        "where the test loss is 5% of the variance: within 15% for each decay (mean over seeds), and for every student with the "
        "smallest decay at 0.8 to 1.25 times its norm.",
        decides={"best": ("test loss at either end / least test loss", "training loss for test loss")},
        judge=judge_shell,
        controls={
            "training loss for test loss": jd.swap(sphere_test="sphere_fit"),
            "no decay": jd.swap(measured_edge="still_norm"),
        },
        rivals={
            "the norm plays no part: students generalise where they start": jd.off(at_norm(2.0)),
            "at the standard norm": at_norm(1.0),
        },
        plot=plot_shell,
        caption="Left: losses over the variance of the teacher's outputs of networks trained on a sphere, against the sphere's "
        "norm in units of the standard start; lines and bands: median and central 90% of the seeds. Right: norm at which each "
        "decaying student generalises against the outer edge of the shell; one dot for each seed and decay, on the line both "
        "agree.",
    ),
    STUDY.claim(
        id="omnigrok.delay",
        title="The delay of generalisation is inverse to the weight decay",
        bounds=jd.tuned(on="0:12", confirmed_on="70000001:70000015"),
        statement="A tanh network with two hidden layers of 32 nodes that starts at twice the standard norm, $w_0$, and learns 60 "
        r"samples of a random teacher of its shape (100 nodes and samples at paper scale) by AdamW with learning rate $\eta$ = "
        r".001 and weight decay $\gamma$ from .25 to .0625 (.03125 at paper scale) generalises $\ln(w_0/w_c)/\eta\gamma$ steps "
        "after it has fitted its data, where $w_c$ is the largest norm at which networks trained on a sphere of weights "
        "generalise (a test loss of 5% of the variance): from the largest decay to the smallest, a quarter of it (an eighth at "
        r"paper scale), the delay goes like $1/\gamma$ (power within 0.1), and for the smallest its geometric mean over seeds is "
        "between 0.8 and 1.25 times the prediction.",
        judge=judge_delay,
        controls={"no decay": jd.swap(measured_delay="still"), "standard start": jd.swap(measured_delay="small")},
        rivals={"the decay plays no part": jd.off(like(0.0)), "the root of the decay": like(-0.5)},
        plot=plot_delay,
        caption="Left: test loss over the variance of the teacher's outputs against steps, students of the first seed with "
        "each weight decay and without; the horizontal line is the level at which they count as generalising. Right: steps "
        "from fitting to generalising against the weight decay; lines and bands: median and central 90% of the seeds.",
    ),
)
