"""A small trained network with claims that are right, and claims with planted faults, for attacks that make new runs."""

import types

import jax
import jax.numpy as jnp
import optax

import jaxdyn as jd
from jaxdyn import train
from jaxdyn.attacks.case import Case
from jaxdyn.engine.verification.verify import make_tasks
from tests.attacks import toys


@jd.setting
class Fit:
    """A vector learns another one by gradient descent on half the squared distance."""

    lr: jd.Swept = jd.field(0.1, above=0)
    curvature: jd.Swept = jd.field(1.0, above=0)
    noise: jd.Swept = jd.field(0.0, at_least=0, role="treatment")
    doubled: jd.Swept = 0.0  # a switch: the theory's rate is twice as large
    steps: int = jd.field(40, at_least=1)
    width: int = jd.field(4, at_least=1)


def trial(s, key):
    """The distance along training, next to the law of plain descent."""
    k_aim, k_noise = jax.random.split(key)
    aim = 1 + jnp.abs(jax.random.normal(k_aim, (s.width,), jnp.float64))
    tx = optax.sgd(s.lr)

    def loss(w, i):
        shift = s.noise * jax.random.normal(jax.random.fold_in(k_noise, i), w.shape)
        return s.curvature / 2 * jnp.sum(jnp.square(w - aim - shift))

    step = train.make_step(loss, tx, lambda i: i)
    every = s.steps / 10
    last, path = train.record(
        step,
        train.init(tx, jnp.zeros_like(aim)),
        lambda t: jnp.linalg.norm(t.params - aim),
        samples=10,
        every=max(1, s.steps // 10),
    )
    rate = s.lr * s.curvature * (1 + s.doubled)
    law = jnp.linalg.norm(aim) * (1 - rate) ** (every * jnp.arange(11, dtype=jnp.float64))
    return jd.observables(
        predicted={"distance": jd.named(law, "record")},
        measured={"distance": jd.named(path, "record")},
        recorded={"luck": jax.random.uniform(k_aim, (), jnp.float64), "width": jnp.float64(s.width)},
        status=train.finite_status(last.params),
    )


def judge(ds):
    """The law, at every record."""
    error = abs(ds.measured_distance - ds.predicted_distance) / ds.predicted_distance.isel(record=0)
    return [jd.at_most("error", error, 0.01)]


def claim(**fields):
    """A right claim, with some fields of its own."""
    usual = {
        "id": "toy.fit",
        "title": "A vector approaches its aim at the rate of descent",
        "statement": "The distance falls like $(1 - \\eta a)^n$ at the rate $\\eta$ within 1% of its start.",
        "source": "nobody's",
        "evidence": "network",
        "trial": trial,
        "bounds": "derived",
        "quick": jd.grid(Fit),
        "seeds": 4,
        "judge": judge,
        "controls": {"twice the rate in the law": {"doubled": 1.0}},
        "rivals": {"nothing moves": jd.off(jd.initial("record", "predicted_distance"))},
    }
    return jd.Claim(**(usual | fields))


def measured(judge, recorded, **fields):
    """A measured claim on the same runs."""
    return claim(judge=judge, recorded=recorded, expected="measured", bounds=None, rivals={}, controls={}, **fields)


def unrun(**fields):
    """A case without runs, for what is asked before there are any."""
    nothing = types.SimpleNamespace(task=types.SimpleNamespace(load=()))
    return Case(fields.get("of") or claim(**fields), nothing, toys.run, 600.0, False)


def case(budget=600.0, **fields):
    """A case on :func:`claim`, or on a claim."""
    one = fields.get("of") or claim(**fields)
    return Case(one, toys.run(make_tasks([one]))[0], toys.run, budget, False)
