"""The answering layer learns to read the thought and the candidates in a fixed proportion, whatever the learning rates.

Its two full matrices are trained by gradient flow to t = 1e12, and by SGD with names sampled anew. Measured are the matrices' mean
diagonals minus their mean entries off it (adding a constant to all entries of a matrix only shifts all logits, so that nothing else
shows in them): mu_A from the one that reads the thought, mu_R from the one that reads the token with both candidates. The flow is
that of the loss averaged over names, by automatic differentiation. A rate k of the theory is rate/(n - 1).

Numbers to compare with: of the paper, and of an independent integration of its equations where it has pictures only.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import optax
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import flow, plotting, train
from jaxdyn.theories.emer import dynamics as theory
from jaxdyn.theories.emer import model
from jaxdyn.theories.emer.search import off_structure

DECADES, EACH = 12, 2
TIMES = (0.0, *(10.0 ** (i / EACH) for i in range(DECADES * EACH + 1)))
SPAN, RECORDS = 10.0, 100  # time between two records of SGD, and their number
MOMENTS = (1e2, 1e3)  # at which SGD is compared
NUMBERS = ("mu_A", "mu_R")


@jd.setting
class Reply:
    """An answer and its training.

    Args:
        label: the candidate that is to be answered.
        inside: K, vertices in the thought, the reachable candidate among them.
        rate_a: learning rate of the matrix that reads the thought.
        rate_r: learning rate of the matrix that reads the candidates.
        lr: step size of SGD, times either rate; a divisor of 10.
        vertices: a prime.
        batch: names per step of SGD.
    """

    label: jd.Code = jd.code("reachable", "unreachable")
    inside: jd.Swept = jd.field(4.0, at_least=2)
    rate_a: jd.Swept = jd.field(1.0, above=0)
    rate_r: jd.Swept = jd.field(1.0, above=0)
    lr: jd.Swept = jd.field(0.5, above=0)
    vertices: int = jd.field(7, above=4)
    batch: int = jd.field(8, at_least=1)
    dtype: str = "float32"  # of SGD

    def __post_init__(self) -> None:
        n = self.vertices
        jd.require(self, all(n % i for i in range(2, n)), "vertices is a prime", "vertices")
        jd.require(self, self.inside <= n - 2, f"inside is at most vertices - 2 = {n - 2}", "inside", "vertices")
        jd.require(self, abs(SPAN / self.lr - round(SPAN / self.lr)) < 1e-6, f"lr divides {SPAN:g}", "lr")


def case(s: Reply, dtype: Any) -> tuple[Float[Array, " n"], Float[Array, " n"], Float[Array, " n"]]:
    """The thought, both candidates and the label: the first vertex is reachable, the last one is not."""
    vertex = jnp.arange(s.vertices)
    first, last = vertex == 0, vertex == s.vertices - 1
    thought = jnp.where(vertex < s.inside, jnp.sqrt(1 / s.inside), 0.0)
    label = jnp.where(s.label == "reachable", first, last)
    return thought.astype(dtype), (first | last).astype(dtype), label.astype(dtype)


def read(m: model.Answer) -> Float[Array, " two"]:
    """mu_A and mu_R: the mean diagonal minus the mean entry off it."""
    numbers = [off_structure(part)[:2] for part in m]
    return jnp.stack([mu - nu for mu, nu in numbers])


def average_loss(m: model.Answer, parts: tuple[Array, Array, Array], orders: Array) -> Float[Array, ""]:
    """The loss averaged over names."""
    return jnp.mean(jax.vmap(lambda order: model.answer_loss(m, *(model.relabel(part, order) for part in parts)))(orders))


def by_flow(s: Reply, ts: Float[Array, " T"]) -> tuple[Float[Array, "T two"], Any]:
    """mu_A and mu_R along the gradient flow of both matrices."""
    n = s.vertices

    def field(t: Any, m: model.Answer, args: tuple) -> model.Answer:
        (rate_a, rate_r), parts = args
        g = jax.grad(average_loss)(m, parts, model.relabellings(n))
        return model.Answer(-rate_a * g.thought, -rate_r * g.candidates)

    rates = jnp.asarray(s.rate_a, jnp.float64), jnp.asarray(s.rate_r, jnp.float64)
    start = model.Answer(*(jnp.zeros((n, n), jnp.float64) for _ in range(2)))
    args = (rates, case(s, jnp.float64))
    sol = flow.solve(flow.log_time(field), start, jnp.log1p(ts), args, rtol=1e-9, atol=1e-11, max_steps=20_000)
    return jax.vmap(read)(sol.ys), sol.status


def by_sgd(s: Reply, key: PRNGKeyArray) -> tuple[Float[Array, "record two"], Any]:
    """mu_A and mu_R along SGD, with names sampled anew at every step."""
    n, parts = s.vertices, case(s, s.dtype)

    def orders(step: Any) -> Array:
        return jnp.argsort(jax.random.uniform(jax.random.fold_in(key, step), (s.batch, n)), -1)

    rates = model.Answer(s.rate_a, s.rate_r)
    scaled = optax.stateless(lambda g, _: jax.tree.map(lambda x, r: (-s.lr * r * x).astype(s.dtype), g, rates))
    step = train.make_step(lambda m, orders: average_loss(m, parts, orders), scaled, orders)
    start = train.init(scaled, model.Answer(*(jnp.zeros((n, n), s.dtype) for _ in range(2))))
    every = jnp.round(SPAN / s.lr).astype(jnp.int32)
    last, path = train.record(step, start, lambda state: read(state.params), samples=RECORDS, every=every)
    return path.astype(jnp.float64), train.finite_status(last.params)


def trial(s: Reply, key: PRNGKeyArray) -> jd.Observables:
    """mu_A and mu_R along the flow and along SGD, next to the theory's path, leading terms and slopes."""
    # the theory
    ts = jnp.asarray(TIMES, jnp.float64)
    law = theory.AnswerLaw(s.vertices, s.inside, s.rate_a / (s.vertices - 1), s.rate_r / (s.vertices - 1), s.label == "reachable")
    path, leading = theory.solve_answer(law, ts), theory.asymptote(law, ts)
    # both trainings, and the slope over the last decade of the flow
    late, status = by_flow(s, ts)
    sgd, trained = by_sgd(s, key)
    moments = jnp.asarray([round(t / SPAN) for t in MOMENTS]), jnp.asarray([TIMES.index(t) for t in MOMENTS])
    slope = (late[-1] - late[-1 - EACH]) / jnp.log(10.0)
    return jd.observables(
        predicted={
            "path": jd.named(path.ys, "time number"),
            "late": jd.named(leading[:, -1], "number"),
            "ratio": jnp.sqrt(jnp.asarray(s.inside, jnp.float64)),
            "sgd": jd.named(path.ys[moments[1]], "moment number"),
        },
        measured={
            "path": jd.named(late, "time number"),
            "late": jd.named(late[-1], "number"),
            "ratio": slope[0] / slope[1],
            "sgd": jd.named(sgd[moments[0]], "moment number"),
        },
        recorded={
            "rates": law.rate_a / law.rate_r,
            "lam": jnp.sqrt(1 / jnp.asarray(s.inside, jnp.float64)),
            "now": late[-1, 0] / late[-1, 1],
            "trained": jd.named(sgd, "record number"),
        },
        status=jnp.maximum(jnp.maximum(status, path.status), trained),
        coords={"number": NUMBERS, "time": TIMES, "moment": MOMENTS},
    )


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """The path, the slopes over the last decade, and both numbers at the end."""
    error = abs(ds.measured_path - ds.predicted_path) / (1 + abs(ds.predicted_path))
    return [
        jd.at_most("both numbers against the equations, at all times, over 1 + their size", error, 1e-5),
        jd.at_most("dmu_A/dmu_R over the last decade, against the root of K, relative", jd.relative_error(ds, "ratio"), 1e-5),
        jd.at_most("both numbers at t = 1e12 against their leading terms, relative", jd.relative_error(ds, "late"), 1e-5),
    ]


def judge_sgd(ds: xr.Dataset) -> list[jd.Check]:
    """Both numbers along SGD against the theory's."""
    error = (ds.measured_sgd - ds.predicted_sgd) / (1 + abs(ds.predicted_sgd))
    return [jd.mean_within("both numbers of SGD minus the theory's, over 1 + their size", error, over="seed", low=-0.01, high=0.01)]


def first_proportion(ds: xr.Dataset) -> xr.DataArray:
    """mu_A over mu_R at the first time after the start, where the learning rates set it."""
    first = ds.predicted_path.isel(time=1, drop=True)
    return first.sel(number="mu_A", drop=True) / first.sel(number="mu_R", drop=True)


# Both numbers stay zero, and grow, if at all, alike.
STILL = jd.swap(predicted_path=0.0, predicted_late=0.0, predicted_sgd=0.0, predicted_ratio=1.0)
BY_RATES = jd.swap(
    predicted_ratio=first_proportion,
    predicted_sgd=lambda ds: (
        ds.predicted_sgd.sel(number="mu_R", drop=True) * xr.where(ds.number == "mu_A", first_proportion(ds), 1)
    ),
)


def exchanged(ds: xr.Dataset) -> xr.Dataset:
    """A control: both matrices exchanged."""
    turned = jd.rolled(measured_path="number", measured_late="number", measured_sgd="number")
    return turned(ds).assign(measured_ratio=1 / ds.measured_ratio)


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Both numbers of every run in their plane, and the slope against the root of K."""
    left, right = fig.subplots(1, 2)
    first = ds.isel(seed=0) if "seed" in ds.dims else ds
    dims = list(first.status.dims)
    for kind, color, style, label in (
        ("measured", "measured", "-", "flow of the matrices"),
        ("predicted", "theory", "--", "equations"),
    ):
        path = first[f"{kind}_path"].stack(every=dims) if dims else first[f"{kind}_path"].expand_dims("every")
        x, y = (path.sel(number=name).transpose("time", "every").values for name in ("mu_R", "mu_A"))
        lines = left.plot(x, y, style, color=plotting.COLORS[color], linewidth=1.2, alpha=0.7)
        lines[0].set_label(label)
    left.set(xlabel=r"$\mu_R$", ylabel=r"$\mu_A$")
    plotting.scatter(right, ds.predicted_ratio, ds.measured_ratio, label="runs", color="measured", log=False)
    right.set(xlabel=r"$\sqrt{K}$", ylabel=r"$d\mu_A/d\mu_R$ at $t = 10^{12}$")


RATES = {"inside": [2.0, 5.0], "rate_a": [0.1, 1.0], "rate_r": 0.3}
STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Reply, **RATES),
    seeds=8,
    paper_seeds=32,
    evidence="flow",
    source="arXiv:2509.23365, Theorem 3; the offsets of the leading terms are derived",
    plot=plot,
    tested="Two full matrices, from zero, of an answering layer that reads a thought over {inside} of {vertices} vertices, "
    "averaged over names of the vertices: gradient flow to $t = 10^{12}$ at the rates {rate_a} (the matrix that reads the "
    "thought) and {rate_r} (the one that reads both candidates).",
    caption=r"Left: $\mu_A$ over $\mu_R$ along the flow of both matrices and by the two equations, one line per setting. Right: "
    r"$d\mu_A/d\mu_R$ over the last decade of time against $\sqrt K$.",
)
UNREACHABLE = {"the unreachable candidate is the label": {"label": "unreachable"}}

# The ratio mu_A / mu_R by time, unit rates, by an independent integration for K of n vertices.
RATIO_SIZE = {"inside": 9.0, "vertices": 23}
RATIOS = {1e2: 1.03, 1e4: 1.86, 1e6: 2.19, 1e12: 2.57}

# arXiv:2509.23365, experiments with a GPT-2 of two layers: test accuracy, and the logit of frontier edges minus that of others, at
# which Coconut's training saturates (at about epoch 125); it keeps growing with the loss of Coconut-BFS.
ACCURACY = 0.962
SATURATED = (60.0, 125)


CLAIMS = (
    STUDY.claim(
        id="emer.direction",
        title="Readings of thought and candidates grow in a proportion of root K",
        bounds=jd.tuned(on="0:8", confirmed_on="61000000:61000008"),
        statement="An answering layer learns from zero to name the one of two candidates that is in a thought over K of n "
        r"vertices; it reads the thought with strength $\mu_A$ and the candidates with strength $\mu_R$ (mean diagonals of two "
        r"matrices minus their means off it). Both follow $\dot\mu_A = k_A K^{-1/2}(1 - P(V))$ and $\dot\mu_R = k_R(1 - P(c))$ "
        "within $10^{-5}$, relative to 1 plus their size, P the output on the thought's vertices and on the candidates, $k$ the "
        r"rates over $n-1$; at $t = 10^{12}$ they are $\sqrt K \ln(k_A t/K)$ and $\ln(k_R (K-1) t)$, and their growth "
        r"$d\mu_A/d\mu_R$ over the last decade of time is $\sqrt K$, whether $k_A$ is a third of $k_R$ or 10/3 of it, all to a "
        "relative $10^{-5}$.",
        judge=judge,
        controls={**UNREACHABLE, "both matrices exchanged": exchanged},
        rivals={
            "nothing moves": jd.off(STILL),
            "the learning rates set the proportion": BY_RATES,
            "the proportion is that of the numbers so far": jd.swap(predicted_ratio="now"),
        },
    ),
    STUDY.claim(
        id="emer.direction_sgd",
        title="SGD with random names reads thought and candidates as the flow does",
        tested="SGD at the step size {lr} on two full matrices, from zero, of an answering layer that reads a thought over "
        "{inside} of {vertices} vertices, {batch} random namings of the vertices a step, at the rates {rate_a} (the matrix that "
        "reads the thought) and {rate_r} (the one that reads both candidates); {seeds} seeds.",
        statement="At t = 100 and 1000 (step size times steps) of SGD with step size 0.5 and 8 random namings a step, at a rate "
        r"of .1 or 1 of the matrix that reads the thought and .3 of the one that reads the candidates, the strengths $\mu_A$ "
        r"and $\mu_R$ with which an answering layer reads both are those of the two equations of `emer.direction` within 1% of "
        "1 plus their size, on average over runs.",
        evidence="network",
        holds={"rate_a": (0.1, 1.0), "rate_r": (0.3, 0.3), "lr": (0.5, 0.5)},
        bounds=jd.tuned(on="0:8", confirmed_on="7000:7008"),
        judge=judge_sgd,
        controls={"both matrices exchanged": exchanged},
        rivals={"nothing moves": jd.off(STILL), "the learning rates set the proportion": BY_RATES},
    ),
)
