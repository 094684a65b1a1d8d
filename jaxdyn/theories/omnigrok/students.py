"""Students of one teacher, shared by the topics: some on the sphere of their first norm, others with weight decay.

Losses are over the variance of the teacher's outputs. A network has fitted its data, or generalises, when its training loss, or
test loss, falls to ``LEVEL``; the delay is the time from the one to the other. Letters as in ``dynamics/shell.py``.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import train
from jaxdyn.theories.omnigrok import model
from jaxdyn.theories.omnigrok.dynamics import shell

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
    fitted, general = (jax.vmap(lambda t, v: shell.passage(t, v, LEVEL))(moving["steps"], moving[k]) for k in ("fit", "test"))
    reached = jax.vmap(jnp.interp)(general, moving["steps"], moving["norm"])
    edge = shell.edge(sphere["norm"], sphere["test"], LEVEL)
    rate = s.lr * jnp.asarray(s.decays, jnp.float64)
    delays = general - fitted
    predicted = shell.delay(moving["norm"][0, 0], edge, rate)
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
