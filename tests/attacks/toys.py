"""Small claims for tests of the referee: laws that are right, and faults that are planted."""

import jax
import jax.numpy as jnp
import numpy as np

import jaxdyn as jd
from jaxdyn import train
from jaxdyn.attacks.case import Case
from jaxdyn.engine.verification.verify import make_tasks, plan_tasks, run_plan


@jd.setting
class Decay:
    """Descent on a quadratic."""

    lr: jd.Swept = jd.field(0.01, above=0)
    curvature: jd.Swept = jd.field(1.0, above=0)
    steps: int = jd.field(40, at_least=1)


def trial(s, key):
    """A weight along descent, and the theory's exponential, with a factor that the judge of a right claim reads."""
    start = 1 + jnp.abs(jax.random.normal(key, (), jnp.float64))

    def step(w, _):
        return w - s.lr * s.curvature * w, w

    _, path = jax.lax.scan(step, start, None, s.steps)
    rate = s.curvature * s.lr
    times = jnp.arange(s.steps, dtype=jnp.float64)
    law = start * jnp.exp(-rate * times)
    return jd.observables(
        predicted={"path": jd.named(law, "time"), "late": law[-1]},
        measured={"path": jd.named(path, "time"), "late": path[-1]},
        recorded={"start": start},
        coords={"time": range(s.steps)},
    )


def judge(ds):
    """Both curves agree."""
    return [jd.at_most("relative error", abs(ds.measured_path / ds.predicted_path - 1), 0.05)]


def judge_start(ds):
    """A judge that looks at the first record alone, where no rate shows."""
    return [jd.at_most("error at the start", abs(ds.measured_path / ds.predicted_path - 1).isel(time=0), 0.05)]


def judge_sign(ds):
    """A judge that a rate of any size passes."""
    return [
        jd.at_least(
            "fall", (ds.predicted_path.isel(time=0) - ds.predicted_path.isel(time=-1)) * np.sign(ds.measured_path.isel(time=0)), 0
        )
    ]


def claim(**fields):
    """A right claim, with some fields of its own."""
    usual = {
        "id": "toy.decay",
        "title": "A weight decays as the exponential",
        "statement": "Descent on a quadratic follows $w_0 e^{-\\eta a t}$ at a curvature $a$ within 5%.",
        "source": "nobody's",
        "evidence": "algebra",
        "trial": trial,
        "bounds": "derived: the error of Euler's method",
        "quick": jd.grid(Decay, lr=[0.005, 0.01]),
        "seeds": 4,
        "judge": judge,
        "controls": {"twice the curvature": lambda ds: ds.assign(measured_path=ds.measured_path**2)},
        "rivals": {"nothing moves": jd.off(jd.initial("time", "predicted_path"))},
    }
    return jd.Claim(**(usual | fields))


def run(tasks):
    """The results of some tasks, nothing kept."""
    return run_plan(plan_tasks(list(tasks), scale="quick", store=None), None)


def case(**fields):
    """A case on :func:`claim`."""
    one = claim(**fields)
    return Case(one, run(make_tasks([one]))[0], run, 10.0, True)


__all__ = ["Decay", "case", "claim", "judge", "judge_sign", "judge_start", "run", "train", "trial"]
