"""Toy claims for the tests: loaded as a user's own file, so that spawned workers can import its trials."""

from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np

import jaxdyn as jd
from jaxdyn import flow

TRACES = []  # one entry whenever a trial is traced
STEPS = 20


@jd.setting
class Counted:
    """A swept number of steps between two records."""

    every: jd.Swept = jd.field(2.0, at_least=1, whole=True)
    dtype: str = "float64"


@jd.setting
class Toy:
    """Descent on rate x² / 2 from a random start; an absurd step size overflows."""

    rate: jd.Swept = 1.0
    lr: jd.Swept = 0.01
    optimizer: jd.Code = jd.code("gd", "sign")
    size: int = 3
    noisy: bool = False
    kind: Literal["plain", "fancy"] = "plain"
    weights: tuple[int, ...] = (1, 2)
    depth: int | None = None
    dtype: str = "float64"

    def __post_init__(self):
        jd.require(self, self.rate > 0, "rate is positive", "rate")
        jd.require(self, self.size >= 1, "size is at least 1", "size")


def decay(s, key):
    """The exact x0 (1 - lr rate)^n (derived) and a wrong exponential (printed) beside the steps themselves."""
    TRACES.append(s)
    x0 = 1 + jax.random.uniform(key, (s.size,), jnp.dtype(s.dtype))

    def step(_, x):
        slope = s.rate * x
        return x - s.lr * jnp.where(s.optimizer == "gd", slope, jnp.sign(slope))

    x = jax.lax.fori_loop(0, STEPS, step, x0)
    forms = jnp.stack([x0 * jnp.exp(-2 * STEPS * s.lr * s.rate), x0 * (1 - s.lr * s.rate) ** STEPS])
    return jd.observables(
        predicted={"x": jd.named(forms, "form entry")},
        measured={"x": jd.named(x, "entry")},
        recorded={"start": jd.named(x0, "entry"), "above": jd.named(x > 1, "entry"), "steps": jnp.int32(STEPS)},
        coords={"form": ("printed", "derived")},
    )


@jd.setting
class Net:
    """A tanh network in float32."""

    lr: jd.Swept = 0.1
    gain: jd.Swept = 1.0
    width: int = 8
    dtype: str = "float32"


def net(s, key):
    """Train on 16 random points; the whole trajectory of the loss, and the last hidden weights."""
    draw = jax.random.uniform(key, (16 + s.width + 1, 4 * s.width), jnp.float32, -1, 1)  # one draw, sliced: compiles faster
    x = draw[:16, :4]
    y = jnp.sin(3 * x.sum(1))
    params = (s.gain * draw[16:20, : s.width], draw[-1, : s.width])

    def loss(p):
        return jnp.mean((jnp.tanh(x @ p[0]) @ p[1] - y) ** 2)

    def step(p, _):
        value, g = jax.value_and_grad(loss)(p)
        return jax.tree.map(lambda a, b: a - s.lr * b, p, g), value

    params, losses = jax.lax.scan(step, params, None, 10)
    return jd.observables(measured={"loss": jd.named(losses, "step"), "hidden": jd.named(params[0], "input unit")})


@jd.setting
class Batches:
    """Steps of one matrix product each, on as many sampled numbers."""

    lr: jd.Swept = 0.1
    drawn: int = 0
    steps: int = 100
    dtype: str = "float32"


def batches(s, key):
    """Products of 64 x 64 matrices, with sampled numbers added."""

    def step(i, w):
        noise = jnp.sum(jax.random.uniform(jax.random.fold_in(key, i), (s.drawn,), jnp.float32))
        return w + s.lr * (w @ w + noise)

    w = jax.lax.fori_loop(0, s.steps, step, jnp.eye(64, dtype=jnp.float32))
    return jd.observables(measured={"w": jnp.sum(w)})


@jd.setting
class Flow:
    """An exponential decay, solved."""

    rate: jd.Swept = 1.0
    points: int = 5


def solved(s, key):
    """Dy/dt = -rate y by diffrax, beside its solution."""
    y0 = 1 + jax.random.uniform(key, (2,), jnp.float64)
    ts = np.linspace(0.0, 1.0, s.points)
    sol = flow.solve(lambda t, y, rate: -rate * y, y0, ts, s.rate)
    return jd.observables(
        predicted={"y": jd.named(jnp.exp(-s.rate * ts)[:, None] * y0, "time entry")},
        measured={"y": jd.named(sol.ys, "time entry")},
        status=sol.status,
        coords={"time": ts},
    )


def stiff(s, key):
    """The same by an implicit solver."""
    y0 = 1 + jax.random.uniform(key, (2,), jnp.float64)
    ts = np.linspace(0.0, 1.0, s.points)
    sol = flow.solve(lambda t, y, rate: -rate * y, y0, ts, s.rate, solver="kvaerno5")
    return jd.observables(measured={"y": jd.named(sol.ys, "time entry")}, status=sol.status)


def broken(s, key):
    """A trial that raises while it is traced."""
    raise ValueError("this trial is broken")


def no_observables(s, key):
    """A trial that returns something else."""
    return {"x": s.rate}


def clashing(s, key):
    """A trial one of whose axes is called like a field of the grid."""
    x = jnp.ones(3, jnp.float64) * s.rate
    return jd.observables(predicted={"x": jd.named(x, "rate")}, measured={"x": jd.named(x, "rate")})


def close(ds):
    """The prediction is exact: 20 steps round by less than 1e-14."""
    return [jd.at_most("relative error", jd.relative_error(ds, "x", "entry"), 1e-9)]


def ratio(ds):
    """What a measured claim reads."""
    return [jd.mean_reading("measured over predicted", (ds.measured_x / ds.predicted_x).mean("entry"), over=["rate", "lr", "seed"])]


def halves(ds):
    """Needs two step sizes."""
    ratio = ds.measured_x.isel(lr=1) / ds.measured_x.isel(lr=0)
    return [jd.at_most("a larger step shrinks x more", ratio, 1.0), *close(ds)]


def two_seeds(ds):
    """Needs two seeds."""
    return [jd.at_least("seeds differ", abs(ds.measured_x.isel(seed=1) - ds.measured_x.isel(seed=0)).max(), 1e-6), *close(ds)]


def raises(ds):
    """A judge with a bug."""
    raise RuntimeError("the judge stumbled\nover several lines")


def loose(ds):
    """A judge that accepts nearly anything."""
    return [jd.at_most("relative error", jd.relative_error(ds, "x", "entry"), 1e3)]


def flow_close(ds):
    """Within the solver's tolerance, ten times over."""
    return [jd.at_most("relative error", jd.relative_error(ds, "y", "entry"), 1e-9)]


GRID = jd.grid(Toy, rate=[0.5, 1.0], lr=[0.01, 0.02])
OFF = {"10% off": lambda ds: ds.assign(predicted_x=1.1 * ds.predicted_x)}
EXCHANGED = {"step sizes exchanged": lambda ds: ds.assign(measured_x=ds.measured_x.copy(data=ds.measured_x.isel(lr=[1, 0]).values))}
ALIKE = {"all seeds alike": lambda ds: ds.assign(measured_x=ds.measured_x.isel(seed=0, drop=True) + 0 * ds.measured_x)}
COMMON = {"source": "textbook", "trial": decay, "quick": GRID, "seeds": 4, "form": "derived", "evidence": "algebra"}
COMMON |= {"bounds": "derived"}

CLAIMS = [
    jd.Claim(
        id="toy.decay",
        title="Descent on a parabola shrinks geometrically",
        statement=r"Descent on $\tfrac{a}{2}x^2$ gives $x_n=x_0(1-\eta a)^n$.",
        judge=close,
        controls={**OFF, "sign descent": {"optimizer": "sign"}},
        paper=jd.grid(Toy, rate=[0.5, 1.0, 2.0], lr=[0.01, 0.02]),
        paper_seeds=8,
        **COMMON,
    ),
    jd.Claim(
        id="toy.decay_as_printed",
        title="Descent on a parabola decays with twice the rate",
        statement=r"Descent gives $x_n=x_0e^{-2\eta an}$.",
        judge=close,
        expected="refuted",
        counterpart="derived",
        printed="eq. (2)",
        **COMMON | {"form": "printed"},
    ),
    jd.Claim(
        id="toy.wrong",
        title="The printed form holds",
        statement="The printed form holds.",
        judge=close,
        controls=OFF,
        **COMMON | {"form": "printed"},
    ),
    jd.Claim(
        id="toy.open",
        title="How far descent goes",
        statement="How far it goes is open.",
        judge=ratio,
        controls=OFF,
        expected="measured",
        **COMMON,
    ),
    jd.Claim(
        id="toy.toothless", title="Descent shrinks roughly geometrically", statement="Roughly.", judge=loose, controls=OFF, **COMMON
    ),
    jd.Claim(
        id="toy.halves",
        title="A larger step shrinks more",
        statement="A larger step shrinks more.",
        judge=halves,
        controls=OFF | EXCHANGED,
        **COMMON,
    ),
    jd.Claim(id="toy.seeds", title="Seeds differ", statement="Seeds differ.", judge=two_seeds, controls=OFF | ALIKE, **COMMON),
    jd.Claim(id="toy.raises", title="Nobody knows", statement="Nobody knows.", judge=raises, controls=OFF, **COMMON),
    jd.Claim(
        id="solver.decay",
        title="The solver follows an exponential decay",
        statement=r"$\dot y=-ay$ is solved by $y_0e^{-at}$.",
        source="textbook",
        trial=solved,
        quick=jd.grid(Flow, rate=[0.5, 1.0, 2.0]),
        seeds=2,
        evidence="algebra",
        bounds="derived",
        judge=flow_close,
        controls={"10% off": lambda ds: ds.assign(predicted_y=1.1 * ds.predicted_y)},
    ),
]
