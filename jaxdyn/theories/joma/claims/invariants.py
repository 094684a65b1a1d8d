r"""Claims on Theorem 1 for exp and linear attention: the laws along flow and descent, their exact discrete forms, many queries.

Letters as in ``model.py`` and ``dynamics/invariants.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import flow, plotting, stats, train
from jaxdyn.theories.joma import model
from jaxdyn.theories.joma.dynamics import invariants as theory

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CLAIMS", "OneBlock", "build", "identity_trial", "invariant_trial", "judge_identity", "judge_law"]

SAMPLES = 10  # recorded times of a run after its start
REFINEMENTS = (1, 2, 4)  # the step size is divided by these


@jd.setting
class OneBlock:
    """One block with a trained upper layer on a random regression task; ``law`` says what is compared with the weights."""

    attention: jd.Code = jd.code(*model.ATTENTIONS)
    phi: jd.Code = jd.code(*model.ACTIVATIONS)
    optimizer: jd.Code = jd.code(*model.OPTIMIZERS)
    law: jd.Code = jd.code("query", "sum")  # the logits of the first query, or the sum over all queries
    ratio: jd.Swept = 1.0  # learning rate of z over that of w
    tau: jd.Swept = 1.0
    lr: jd.Swept = 0.005  # the larger of the two learning rates
    horizon: jd.Swept = 0.7  # training time: steps x lr
    weight_decay: jd.Swept = 0.0
    noise: jd.Swept = 0.0  # standard deviation of what is added to the entries of orthonormal embeddings
    queries: jd.Swept = 1.0  # queries in the batch, at most max_queries
    nodes: jd.Swept = 2.0  # hidden nodes in use, at most hidden
    fraction: jd.Swept = 1.0  # chance of a sample to be in a mini-batch
    tokens: int = 4
    hidden: int = 2
    outputs: int = 2
    samples: int = 8
    max_queries: int = 3
    dim: int = 8

    def __post_init__(self) -> None:
        """Refuse sizes that the arrays cannot hold."""
        for name, value, most in (("queries", self.queries, self.max_queries), ("nodes", self.nodes, self.hidden)):
            if not 1 <= value <= most:
                raise jd.UsageError(f"{name}={value} is not allowed: it is a number from 1 to {most}")
        if self.dim < self.tokens + self.max_queries:
            least = self.tokens + self.max_queries
            raise jd.UsageError(f"dim={self.dim} is not allowed: orthonormal columns need at least {least}")


def build(s: OneBlock, key: PRNGKeyArray) -> tuple[model.Params, model.Block, model.Batch]:
    """Network and data of one run: each node starts active on average; nodes beyond ``s.nodes`` are zero and stay so."""
    k_embed, k_rest = jax.random.split(key)
    tokens, queries = model.embed(k_embed, s.dim, s.tokens, s.max_queries, s.noise)
    w, z, a, x, y = model.normals(
        k_rest,
        (s.dim, s.hidden),
        (s.max_queries, s.tokens),
        (s.hidden, s.outputs),
        (s.samples, s.tokens),
        (s.samples, s.outputs),
    )
    used = (jnp.arange(s.hidden) < s.nodes).astype(jnp.float64)
    query = jnp.arange(s.samples) % s.queries.astype(jnp.int32)
    weight = jnp.full(s.samples, 1 / s.samples, jnp.float64)
    block = model.Block(tokens, queries, s.attention, s.phi, s.tau)
    batch = model.Batch(jax.nn.softmax(2 * x), query, 0.5 * y, weight)
    params = model.Params(w * used, 0.5 + 0.3 * z, a * used[:, None] / s.hidden**0.5)
    mean_pre = batch.weight @ model.pre_activations(params, block, batch.x, batch.query)
    return params._replace(w=params.w * jnp.where(mean_pre < 0, -1.0, 1.0)), block, batch


def rates(s: OneBlock) -> model.Params:
    """Learning rates over ``s.lr``: those of z and w have the ratio ``s.ratio``, and the larger of them is 1."""
    fastest = jnp.maximum(s.ratio, 1.0)
    return model.Params(1 / fastest, s.ratio / fastest, 1 / fastest)


def sides(s: OneBlock, block: model.Block, params: model.Params) -> tuple[Array, Array]:
    """The law's weights v and its logits' side, for the first query or summed over the queries in use."""
    side = theory.conserved_side(params.z, s.attention)
    used = jnp.arange(s.max_queries) < jnp.where(s.law == 1, s.queries, 1)
    return model.projected(params, block), jnp.sum(side * used[:, None], 0)


def law(s: OneBlock, v: Array, side: Array) -> Array:
    """The logits' side along a run as the weights along it predict it."""
    return theory.invariant(v, v[0], side[0], s.ratio, s.tau, s.attention)


def steps_between(s: OneBlock) -> Array:
    """Steps from one record to the next at the largest step size."""
    return jnp.maximum(1, jnp.round(s.horizon / (SAMPLES * s.lr))).astype(jnp.int32)


def invariant_trial(s: OneBlock, key: PRNGKeyArray) -> jd.Observables:
    """The law along the gradient flow of the loss, and along descent at three step sizes over the same time."""
    params, block, batch = build(s, key)
    args = (block, batch, s.weight_decay)
    ts = jnp.linspace(0.0, s.horizon, SAMPLES + 1, dtype=jnp.float64)
    solution = flow.gradient_flow(model.squared_loss, params, ts, *args, rate=rates(s), max_steps=1024)
    v_flow, side_flow = jax.vmap(lambda p: sides(s, block, p))(solution.ys)

    def descend(refinement: Array) -> tuple[Array, Array]:
        tx = model.make_tx(s.optimizer, s.lr / refinement, rates(s))
        step = train.make_step(lambda p: model.squared_loss(p, *args), tx)
        observe = lambda state: sides(s, block, state.params)  # noqa: E731
        return train.record(step, train.init(tx, params), observe, samples=SAMPLES, every=steps_between(s) * refinement)[1]

    v, side = jax.vmap(descend)(jnp.asarray(REFINEMENTS, jnp.int32))
    return jd.observables(
        predicted={
            "flow": jd.named(law(s, v_flow, side_flow), "time token"),
            "descent": jd.named(jax.vmap(lambda v, side: law(s, v, side))(v, side), "refinement time token"),
        },
        measured={"flow": jd.named(side_flow, "time token"), "descent": jd.named(side, "refinement time token")},
        recorded={"solver_steps": solution.steps},
        status=solution.status,
        coords={"refinement": REFINEMENTS, "time": tuple(i / SAMPLES for i in range(SAMPLES + 1))},
    )


def identity_trial(s: OneBlock, key: PRNGKeyArray) -> jd.Observables:
    """Both sides of the discrete identity along (S)GD: the drift of the law, and what the increments of every step add up to."""
    k_build, k_batch = jax.random.split(key)
    params, block, data = build(s, k_build)

    def batch(step: Array) -> model.Batch:
        drawn = jax.random.uniform(jax.random.fold_in(k_batch, step), s.samples, jnp.float64) < s.fraction
        weight = drawn.astype(jnp.float64)
        return data._replace(weight=weight / jnp.maximum(jnp.sum(weight), 1.0))

    tx = model.make_tx(s.optimizer, s.lr, rates(s))
    advance = train.make_step(lambda p, b: model.squared_loss(p, block, b, s.weight_decay), tx, batch)

    def step(carry: tuple[train.State, Array, Array]) -> tuple[train.State, Array, Array]:
        state, dv2, dz2 = carry
        new = advance(state)
        dv = model.projected(new.params, block) - model.projected(state.params, block)
        return new, dv2 + dv**2, dz2 + (new.params.z - state.params.z) ** 2

    v0 = model.projected(params, block)
    start = (train.init(tx, params), jnp.zeros_like(v0), jnp.zeros_like(params.z))

    def observe(carry: tuple[train.State, Array, Array]) -> tuple[Array, Array, Array]:
        state, dv2, dz2 = carry
        return *sides(s, block, state.params), theory.discrete_drift(dv2, dz2, s.ratio, s.tau, s.attention)

    _, (v, side, drift) = train.record(step, start, observe, samples=SAMPLES, every=steps_between(s))
    return jd.observables(
        predicted={"drift": jd.named(drift, "time token")},
        measured={"drift": jd.named(side - law(s, v, side), "time token")},
        recorded={"side": jd.named(side, "time token")},
        coords={"time": tuple(i / SAMPLES for i in range(SAMPLES + 1))},
    )


def residual(ds: xr.Dataset) -> xr.DataArray:
    """Largest difference of the law's sides along the flow, over the largest size of the logits' side."""
    axes = ["time", "token"]
    return abs(ds.measured_flow - ds.predicted_flow).max(axes) / abs(ds.measured_flow).max(axes)


def descent_drift(ds: xr.Dataset) -> xr.DataArray:
    """Root mean square over times and tokens of what descent adds to the law's difference."""
    return np.sqrt(((ds.measured_descent - ds.predicted_descent) ** 2).mean(["time", "token"]))


def judge_law(ds: xr.Dataset) -> list[jd.Check]:
    """The law holds along the flow to the solver's error, and descent leaves it at first order in the step size."""
    order = stats.loglog_slope(1 / ds.refinement, descent_drift(ds), "refinement")
    return [
        jd.at_most("residual along the flow / size", residual(ds), 1e-8),
        jd.within("order of the drift in the step size", order, 0.85, 1.15),
    ]


def judge_identity(ds: xr.Dataset) -> list[jd.Check]:
    """Both sides of the discrete identity agree to rounding, for logits of size one."""
    difference = abs(ds.measured_drift - ds.predicted_drift).max(["time", "token"])
    return [jd.at_most("difference of the two sides", difference, 1e-11)]


def plot_law(ds: xr.Dataset, fig: Figure) -> None:
    """Left: the logits' side against the law along the flow; right: the drift of descent against its step size."""
    left, right = fig.subplots(1, 2)
    change = [ds[f"{side}_flow"] - ds.predicted_flow.isel(time=0) for side in ("predicted", "measured")]
    plotting.scatter(left, change[0].isel(time=-1), change[1].isel(time=-1), label="gradient flow, end of run")
    left.set_xlabel("change predicted from the weights")
    left.set_ylabel("change of the logits' side")
    plotting.order(right, 1 / ds.refinement, descent_drift(ds), slope=1.0, label="descent, all runs")
    right.set_xlabel("step size / largest step size")
    right.set_ylabel("drift of the law")


def plot_identity(ds: xr.Dataset, fig: Figure) -> None:
    """Drift of the law against what the increments add up to."""
    ax = fig.subplots()
    plotting.scatter(ax, abs(ds.predicted_drift).isel(time=-1), abs(ds.measured_drift).isel(time=-1), label="end of run", log=True)
    ax.set_xlabel("|sum of squared increments|")
    ax.set_ylabel("|drift of the law|")


def one_law_a_query(ds: xr.Dataset) -> xr.Dataset:
    """The single-query law for every query: the sum over queries would move as often as there are queries."""
    moved = {}
    for name in ("predicted_flow", "predicted_descent"):
        start = ds[name].isel(time=0)
        moved[name] = (start + ds.queries * (ds[name] - start)).transpose(*ds[name].dims)
    return ds.assign(moved)


def wrong_ratio(ds: xr.Dataset) -> xr.Dataset:
    """The law with a ratio of learning rates (or an inverse temperature) that is 10% too large."""
    starts = {n: ds[n].isel(time=0) for n in ("predicted_flow", "predicted_descent")}
    return ds.assign({n: (start + 1.1 * (ds[n] - start)).transpose(*ds[n].dims) for n, start in starts.items()})


BREACHES = {
    "embeddings not orthonormal": {"noise": 0.3},
    "weight decay": {"weight_decay": 0.1},
    "Adam": {"optimizer": "adam"},
    "two queries, law of one": {"queries": 2},
    "ratio 10% too large": wrong_ratio,
}
AXES = {"phi": list(model.ACTIVATIONS), "ratio": [0.1, 1.0, 10.0], "nodes": [1, 2]}
SOURCE = "arXiv:2310.00535, Theorem 1"
SLIDING = 0.95  # the gradient flow of ReLU can slide along a kink, where it is not defined: such runs end at the step limit

CLAIMS = (
    jd.Claim(
        id="joma.exp_invariant",
        statement=r"With exp attention, joint training keeps $z - \frac{r}{2\tau}\sum_k v_k^2$ constant, for any activation, upper "
        r"layer, data and ratio $r$ of learning rates: exactly along gradient flow, to first order in the step size along descent.",
        source=f"{SOURCE}, exp attention",
        trial=invariant_trial,
        quick=jd.grid(OneBlock, attention="exp", **AXES),
        seeds=8,
        paper_seeds=64,
        judge=judge_law,
        controls=BREACHES,
        min_ok=SLIDING,
        plot=plot_law,
    ),
    jd.Claim(
        id="joma.linear_invariant",
        statement=r"With linear attention, joint training keeps $z^2 - r\sum_k v_k^2$ constant, for any activation, upper layer, "
        r"data and ratio $r$ of learning rates: exactly along gradient flow, to first order in the step size along descent.",
        source=f"{SOURCE}, linear attention",
        trial=invariant_trial,
        quick=jd.grid(OneBlock, attention="linear", **AXES),
        seeds=8,
        paper_seeds=64,
        judge=judge_law,
        controls=BREACHES,
        min_ok=SLIDING,
        plot=plot_law,
    ),
    jd.Claim(
        id="joma.multi_query",
        statement=r"When samples of several queries share the weights, no query keeps the law, but the sum does: "
        r"$\sum_m z_m = \frac{r}{2\tau}\sum_k v_k^2 + c$ (exp) and $\sum_m z_m^2 = r\sum_k v_k^2 + c$ (linear).",
        source=f"derived from {SOURCE} (sum over queries)",
        trial=invariant_trial,
        quick=jd.grid(OneBlock, attention=["exp", "linear"], phi=["relu", "tanh"], ratio=[0.1, 10.0], queries=[2, 3], law="sum"),
        seeds=8,
        paper_seeds=64,
        judge=judge_law,
        controls={
            "law of one query": {"law": "query"},
            "law of one query, for each": one_law_a_query,
            "embeddings not orthonormal": {"noise": 0.3},
        },
        min_ok=SLIDING,
        plot=plot_law,
    ),
    jd.Claim(
        id="joma.discrete_identity",
        statement=r"Plain (S)GD moves the law by exactly $-\frac{r}{2\tau}\sum_s\sum_k(\Delta v_{k,s})^2$ (exp) or "
        r"$\sum_s(\Delta z_s)^2 - r\sum_s\sum_k(\Delta v_{k,s})^2$ (linear), whatever the mini-batches.",
        source=f"derived from {SOURCE}, no step-size limit",
        trial=identity_trial,
        quick=jd.grid(
            OneBlock,
            attention=["exp", "linear"],
            phi=list(model.ACTIVATIONS),
            ratio=[0.1, 1.0, 10.0],
            fraction=[0.4, 1.0],
            lr=0.05,
            horizon=10.0,
        ),
        seeds=8,
        paper_seeds=64,
        judge=judge_identity,
        controls={"momentum": {"optimizer": "momentum"}, "Adam": {"optimizer": "adam"}, "weight decay": {"weight_decay": 0.1}},
        plot=plot_identity,
    ),
)
