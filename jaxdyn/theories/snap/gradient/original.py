r"""The original parameters of a transformer layer and (Y, Z): the network, and its gradient flow.

Scan & Snap in its original parameters: embeddings, queries and keys, values.

.. math:: b_t = \text{softmax}_t\!\left(\frac{u_{x_T}^\top W_Q W_K^\top u_{x_t}}{\sqrt d}\right), \qquad
          \tilde u_T = U^\top \text{LN}(X^\top b), \qquad \text{logits} = U W_V \tilde u_T

In (Y, Z) it is :math:`Y = U W_V^\top U^\top`, :math:`Z = U W_Q W_K^\top U^\top/\sqrt d`. Source: arXiv:2305.16380, section 3.
Letters: M tokens, d dimensions; the embeddings are fixed here. ``width`` of the d stored dimensions are in use: the others hold
zeros in U, so that runs with any width share one program.

The original parameters: how embeddings, values, queries and keys train, compared with the flow of (Y, Z).

The network is trained by gradient flow with fixed embeddings. The theory is the flow of (Y, Z) by
the closed gradient, from the same Y(0) and Z(0), with eta_Z = eta_W / d for a single matrix W = W_Q W_K^T.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import flow, linalg, plotting, stats
from jaxdyn.errors import UsageError
from jaxdyn.theories.snap import model, tasks
from jaxdyn.theories.snap.dynamics import gradient as theory

Scalar = int | float | Float[Array, ""]


class Weights(NamedTuple):
    """What is trained. With ``w_k`` fixed at the identity, ``w_q`` is the single matrix W = W_Q W_K^T."""

    w_v: Float[Array, "d d"]
    w_q: Float[Array, "d d"]
    w_k: Float[Array, "d d"]


def embeddings(key: PRNGKeyArray, tokens: int, dim: int, width: Scalar, orthonormal: bool | Bool[Array, ""]) -> Float[Array, "M d"]:
    """Random rows of length one in the first ``width`` dimensions: orthonormal (width >= M), or of independent directions.

    Raises:
        UsageError: fewer stored dimensions than tokens, of which orthonormal rows are made.
    """
    if dim < tokens:
        raise UsageError(f"dim={dim} is not allowed: {tokens} orthonormal embeddings need at least as many dimensions")
    normal = jax.random.normal(key, (tokens, dim), jnp.float64) * (jnp.arange(dim) < width)
    apart = normal / jnp.linalg.norm(normal, axis=1, keepdims=True)
    return jnp.where(orthonormal, linalg.qr(normal.T)[0].T, apart)


def rotation(key: PRNGKeyArray, dim: int, width: Scalar) -> Float[Array, "d d"]:
    """A random orthogonal matrix of the first ``width`` dimensions, zero elsewhere."""
    used = jnp.arange(dim) < width
    normal = jax.random.normal(key, (dim, dim), jnp.float64)
    block = jnp.where(used[:, None] & used, normal, jnp.where(~used[:, None] & ~used, jnp.eye(dim, dtype=normal.dtype), 0.0))
    return linalg.qr(block)[0] * used * used[:, None]


def decoder(weights: Weights, u: Float[Array, "M d"]) -> Float[Array, "M M"]:
    """Y = U W_V^T U^T."""
    return u @ weights.w_v.T @ u.T


def pair_logits(
    weights: Weights, u: Float[Array, "M d"], queries: Int[Array | np.ndarray, " R"], width: Scalar
) -> Float[Array, "R M"]:
    """Rows of Z = U W_Q W_K^T U^T / sqrt(d) for these query tokens."""
    return (u[queries] @ weights.w_q) @ (u @ weights.w_k).T / jnp.sqrt(width)


def logits(
    weights: Weights, u: Float[Array, "M d"], contexts: Float[Array, "n M"], queries: Int[Array, " n"], width: Scalar
) -> Float[Array, "n M"]:
    """Logits of the next token for contexts (laws or frequencies) and query tokens."""
    attended = model.attend(pair_logits(weights, u, queries, width), contexts)
    return (model.normalized(attended) @ u) @ weights.w_v.T @ u.T


def loss(
    weights: Weights, u: Float[Array, "M d"], task: model.Task, queries: Int[Array | np.ndarray, " R"], width: Scalar
) -> Float[Array, ""]:
    """The loss -J at infinite length; ``queries`` are the tokens of the task's query rows."""
    log_alpha = jax.nn.log_softmax(logits(weights, u, jnp.asarray(task.p), jnp.asarray(queries)[task.query], width))
    return -jnp.dot(task.weight, jnp.take_along_axis(log_alpha, jnp.asarray(task.label)[:, None], 1)[:, 0])


SAVES = 7  # times from 0 to the end
DEVIATIONS = ("deviation of the attention at the smallest d", "deviation of the attention at the largest d")
FROM_START = "deviation / distance from the start, mean over d"
MOVED = "distance that attention moves / that of the flow of (Y, Z), mean over d"


@jd.setting
class Layered:
    """Fixed embeddings of ``width`` dimensions; values and one or two matrices of queries and keys learn.

    The learning rate of W is ``eta_z`` times d, over 2 init^2 where there are two matrices.
    """

    product: jd.Code = jd.code("single", "factored")  # W = W_Q W_K^T is trained as one matrix, or as two
    frame: jd.Code = jd.code("orthonormal", "random")  # embeddings: orthonormal, or of random directions
    init: jd.Swept = jd.field(1.0, above=0)  # W_Q and W_K start as random rotations times this number, if there are two
    eta_z: jd.Swept = jd.field(2.0, above=0)  # learning rate of Z in the theory, over that of Y
    width: jd.Swept = jd.field(24.0, at_least=1)  # d, dimensions of an embedding
    misfit: jd.Swept = 1.0  # the theory's eta_Z over the right one
    horizon: jd.Swept = jd.field(60.0, above=0)  # eta_Y t at the end
    common: jd.Swept = jd.field(0.2, at_least=0, below=1)  # share of the common token in every context
    tokens: int = 20  # M, tokens of the vocabulary
    classes: int = 4  # K, next tokens, each with a law of the context
    distinct: int = 3  # D, tokens that one class alone shows
    queries: int = 2  # R; class n has query n modulo R
    dim: int = 24  # dimensions for which there is room
    weights: tuple[float, ...] | None = None  # of the distinct tokens of every class; none: random

    def __post_init__(self) -> None:
        """Refuse vocabularies that are too small, widths beyond the stored ones, and impossible orthonormal rows."""
        tasks.check(self)
        whole = self.width <= self.dim and self.width == int(self.width)
        jd.require(self, whole, f"width is a whole number from 1 to dim={self.dim}", "width")
        enough = self.frame == "random" or self.width >= self.tokens
        jd.require(self, enough, f"{self.tokens} orthonormal embeddings need as many dimensions", "width")


def start(s: Layered, key: PRNGKeyArray) -> tuple[Weights, Weights]:
    """Initial weights and their learning rates: the key matrix is a fixed identity where the product is a single matrix."""
    zero = jnp.zeros((s.dim, s.dim), jnp.float64)
    two = s.product == "factored"
    w_q, w_k = s.init * jax.vmap(rotation, (0, None, None))(jax.random.split(key), s.dim, s.width)
    identity = jnp.diag((jnp.arange(s.dim) < s.width).astype(jnp.float64))
    weights = Weights(zero, jnp.where(two, w_q, zero), jnp.where(two, w_k, identity))
    rate = s.width * s.eta_z / jnp.where(two, 2 * s.init**2, 1.0)
    return weights, Weights(jnp.ones_like(rate), rate, jnp.where(two, rate, 0.0))


def factored_rate(
    weights: Weights,
    u: Float[Array, "M d"],
    push: Float[Array, "R M"],
    queries: Int[Array, " R"],
    rate: Weights,
    width: Float[Array, ""],
) -> Float[Array, "R M"]:
    r"""Velocity of Z where it is a product, from the gradient G of J in Z.

    .. math:: \dot Z = \frac{\eta}{d}\, U \bigl(U^\top G U\, W_K W_K^\top + W_Q W_Q^\top\, U^\top G U\bigr) U^\top
    """
    g = u[queries].T @ push @ u
    inner = rate.w_q * g @ weights.w_k @ weights.w_k.T + rate.w_k * weights.w_q @ weights.w_q.T @ g
    return u[queries] @ inner @ u.T / width


def closed_flow(one: model.Task, initial: model.Params, ts: Float[Array, " T"], eta_z: Float[Array, ""]) -> flow.Solution:
    """The flow of (Y, Z) by the closed gradient, at learning rates 1 and ``eta_z``."""
    task = jax.tree.map(jnp.asarray, one)

    def field(t: Any, state: model.Params, eta_z: Float[Array, ""]) -> model.Params:
        y, z = theory.ascent(*state, *task)
        return model.Params(y, eta_z * z)

    return flow.solve(field, initial, ts, eta_z, solver="dopri8")


def trial(s: Layered, key: PRNGKeyArray) -> jd.Observables:
    """Both flows, the velocity of the product, and the tokens' attention."""
    # the network in its original parameters, and its flow
    k_task, k_embed, k_start = jax.random.split(key, 3)
    one = tasks.random_task(k_task, s.tokens, s.classes, s.distinct, s.common, queries=s.queries, weights=s.weights)
    queries = 1 + s.classes * s.distinct + jnp.arange(s.queries)
    u = embeddings(k_embed, s.tokens, s.dim, s.width, s.frame == "orthonormal")
    first, rate = start(s, k_start)
    ts = s.horizon * jnp.linspace(0.0, 1.0, SAVES, dtype=jnp.float64)
    trained = flow.gradient_flow(loss, first, ts, u, one, queries, s.width, rate=rate, solver="dopri8")

    # the flow of (Y, Z) from the same point
    def reparametrised(weights: Weights) -> model.Params:
        return model.Params(decoder(weights, u), pair_logits(weights, u, queries, s.width))

    closed = closed_flow(one, reparametrised(first), ts, s.eta_z * s.misfit)

    # the velocity of Z along the trained path, with the factors and by the chain rule
    def velocities(weights: Weights) -> tuple[Float[Array, "R M"], Float[Array, "R M"]]:
        slope = jax.grad(loss)(weights, u, one, queries, s.width)
        move = jax.tree.map(lambda r, g: -r * g, rate, slope)
        by_chain = jax.jvp(lambda w: reparametrised(w).z, (weights,), (move,))[1]
        push = theory.ascent(*reparametrised(weights), *(jnp.asarray(a) for a in one))[1]
        return factored_rate(weights, u, push, queries, rate, s.width), by_chain

    by_factors, by_chain = jax.vmap(velocities)(trained.ys)
    path = jax.vmap(reparametrised)(trained.ys)
    dims = {"y": "time input output", "z": "time query token", "velocity": "time query token", "gain": "after class own"}
    dims["attention"] = "time class own"
    predicted = {"y": closed.ys.y, "z": closed.ys.z, "velocity": by_factors, **on_support(s, one, closed.ys.z)}
    measured = {"y": path.y, "z": path.z, "velocity": by_chain, **on_support(s, one, path.z)}
    return jd.observables(
        predicted={n: jd.named(v, dims[n]) for n, v in predicted.items()},
        measured={n: jd.named(v, dims[n]) for n, v in measured.items()},
        recorded={"t": jd.named(ts, "time"), "steps": trained.steps},
        status=jnp.maximum(trained.status, closed.status),
    )


def on_support(s: Layered, one: model.Task, z: Float[Array, "T R M"]) -> dict[str, Float[Array, "t K S"]]:
    """Gains of the logits since the start, and attention, of the tokens that each class may show."""
    rows = np.arange(s.classes)
    own = 1 + s.distinct * rows[:, None] + np.arange(s.distinct)
    support = np.concatenate([np.zeros((s.classes, 1), int), own], 1)
    attention = jax.vmap(lambda z: theory.attention(z[one.query], one.p)[rows[:, None], support])(z)
    return {"gain": (z - z[0])[1:, one.query[:, None], support], "attention": attention}


def judge_single(ds: xr.Dataset) -> list[jd.Check]:
    """Both flows at every time after the start."""
    after = ds.isel(time=slice(1, None))
    return [
        jd.at_most("Y against the flow of (Y, Z), relative", jd.relative_error(after, "y", "input output"), 1e-8),
        jd.at_most("Z against the flow of (Y, Z), relative", jd.relative_error(after, "z", "query token"), 1e-8),
    ]


def ordering(ds: xr.Dataset) -> xr.DataArray:
    """Spearman's rank correlation of the tokens' gains in logits at the end, class by class; 0 where none is predicted."""
    predicted, measured = (ds[f"{side}_gain"].isel(after=-1) for side in ("predicted", "measured"))
    return stats.spearman(predicted, measured, "own").where(predicted.std("own") != 0, 0.0)


def judge_factored(ds: xr.Dataset) -> list[jd.Check]:
    """The velocity of the product exactly; against the flow of (Y, Z) the order of the tokens only."""
    jd.need(ds, seed=2)
    apart = jd.relative_error(ds, "gain", "class own").isel(after=-1)
    return [
        jd.at_most(
            "velocity of Z with the factors, relative",
            jd.relative_error(ds.isel(time=slice(1, None)), "velocity", "query token"),
            1e-8,
        ),
        jd.mean_within(
            "rank correlation of the gains with the flow of (Y, Z), mean", ordering(ds).mean("class"), over="seed", low=0.8
        ),
        jd.at_least("gains against the flow of (Y, Z), relative difference", apart, 0.02),
    ]


def deviation(ds: xr.Dataset, time: int = -1) -> xr.DataArray:
    """L1 distance of the attention at the end from that of the flow of (Y, Z) at one of its times, mean over classes."""
    apart = abs(ds.measured_attention.isel(time=-1) - ds.predicted_attention.isel(time=time, drop=True))
    return apart.sum("own", min_count=1).mean("class")


def movement(attention: xr.DataArray) -> xr.DataArray:
    """L1 distance of the attention at the end from that at the start, mean over classes."""
    return abs(attention.isel(time=-1) - attention.isel(time=0)).sum("own", min_count=1).mean("class")


def judge_narrow(ds: xr.Dataset) -> list[jd.Reading]:
    """The deviation at the ends of the range of d, over the distance from an attention that has not moved, and the movement."""
    jd.need(ds, seed=2)
    at_ends, share = deviation(ds.isel(width=[0, -1])), deviation(ds) / deviation(ds, time=0)
    ends = {name: at_ends.isel(width=i) for name, i in zip(DEVIATIONS, (0, 1), strict=True)}
    moved = movement(ds.measured_attention) / movement(ds.predicted_attention)
    return [
        *(jd.mean_reading(name, values, over="seed") for name, values in ends.items()),
        jd.mean_reading(FROM_START, share.mean("width", skipna=False), over="seed"),
        jd.mean_reading(MOVED, moved.mean("width", skipna=False), over="seed"),
    ]


def plot_flows(ds: xr.Dataset, fig: Figure) -> None:
    """Gains of the tokens' logits over time in one run, and of all runs at the end."""
    left, right = fig.subplots(1, 2)
    one = plotting.first_run(ds).isel({"class": 0})
    names = ["common token", *(f"distinct token {i}" for i in range(1, one.sizes["own"]))]
    for i, name in enumerate(names):
        color = plotting.CYCLE[i % len(plotting.CYCLE)]
        left.plot(one.t[1:], one.measured_gain.isel(own=i), "o", color=color, label=name)
        left.plot(one.t[1:], one.predicted_gain.isel(own=i), color=color)
    left.set(xlabel=r"$\eta_Y t$", ylabel="change of the logit (lines: flow of Z)")
    for i, init in enumerate(np.atleast_1d(ds.init) if "init" in ds.dims else [None]):
        part = (ds if init is None else ds.sel(init=init)).isel(after=-1)
        label = "all runs, at the end" if init is None else f"start of the factors {init:g}"
        plotting.scatter(right, part.predicted_gain, part.measured_gain, label, plotting.CYCLE[(0, 2, 3)[i % 3]], log=False)
    right.set(xlabel="change of the logit, flow of Z", ylabel="original parameters")


def plot_narrow(ds: xr.Dataset, fig: Figure) -> None:
    """Deviation of the attention against the number of dimensions, and attention against attention."""
    left, right = fig.subplots(1, 2)
    plotting.order(left, ds.width, deviation(ds).transpose(..., "width"), label="runs (median, range)")
    left.set(xlabel="dimensions d", ylabel="L1 distance of the attention at the end")
    for width, color in zip(ds.width.values, plotting.CYCLE, strict=False):
        part = ds.sel(width=width).isel(time=-1)
        plotting.scatter(right, part.predicted_attention, part.measured_attention, f"d = {width:g}", color, log=False)
    right.set(xlabel="attention, flow of (Y, Z)", ylabel="original parameters")
    right.legend(loc="lower right")


# Fewer dimensions than tokens change nothing, and the attention is that of the flow of (Y, Z).
AS_WITHOUT_OVERLAP = dict.fromkeys((*DEVIATIONS, FROM_START), 0.0) | {MOVED: 1.0}
STILL = jd.swap(predicted_y=0.0, predicted_z=0.0, predicted_velocity=0.0, predicted_gain=0.0)

study = jd.Study(
    trial=trial,
    evidence="flow",
    bounds="derived: the solver's tolerance, a relative 1e-10 a step",
    quick=jd.grid(Layered),
    seeds=16,
    paper_seeds=64,
    tested=r"Gradient flow in float64 from $\eta_Y t = 0$ to {horizon}: {classes} classes with {distinct} distinct tokens each "
    "and one common token (share {common} of every context), {queries} queries, {tokens} tokens, {frame} embeddings of "
    r"{width} dimensions; $\eta_Z = {eta_z}\,\eta_Y$; {seeds} seeds.",
    source="arXiv:2305.16380, section 3 (reparametrisation)",
    plot=plot_flows,
    caption=r"Left: change of the logits of one class's tokens along $\eta_Y t$, dots for the original parameters, lines for "
    "the flow of $(Y, Z)$; one run, a colour for each token. Right: the changes at the end against each other, all tokens "
    "and runs, with the line of equality.",
)


CLAIMS = (
    study.claim(
        id="snap.original_single",
        talks=("training:snap-reparameterisation",),
        title="A single key-query matrix trains like the attention logits",
        statement="With fixed orthonormal embeddings in $d$ dimensions, gradient flow of the values and of a single matrix "
        r"$W = W_Q W_K^\top$ gives the decoder $Y(t)$ and attention logits $Z(t)$ of gradient flow in $(Y, Z)$ at $\eta_Z = "
        r"\eta_W/d$: the factor $1/\sqrt{d}$ of the attention enters twice.",
        source=f"{study.source}; the factor 1/d is ours",
        paper=jd.grid(Layered, width=[20, 24], eta_z=[0.2, 2.0], horizon=[60.0, 600.0]),
        judge=judge_single,
        rivals={"nothing moves": jd.off(STILL)},
        controls={
            "1/sqrt(d) counted once": jd.Control({"misfit": 24**0.5}, breaks="enters twice"),
            "embeddings not orthogonal": {"frame": "random"},
            "two matrices": {"product": "factored"},
        },
    ),
    study.claim(
        id="snap.original_factored",
        talks=("training:snap-reparameterisation",),
        title="With two key-query matrices only the order of tokens survives",
        bounds=jd.tuned(on="0:16", confirmed_on="31000000:31000016"),
        statement=r"With fixed orthonormal embeddings $U$ in $d$ dimensions and separate matrices, $W = W_Q W_K^\top$ moves by "
        r"$\dot W = \eta\,(G\, W_K W_K^\top + W_Q W_Q^\top G)$ with $G = U^\top \partial_Z J\, U/\sqrt{d}$. If the two start "
        "as random rotations times .1 to 1, there are two queries and four classes with three distinct tokens each, the "
        r"common token's share is .2 to .4 and $\eta_Z$ is 1 to 20 times $\eta_Y$, the gains of a class's logits from $\eta_Y "
        "t = 30$ to 600 are in the order of gradient flow in $(Y, Z)$, with a mean rank correlation of at least .8, but not "
        "of its sizes, which differ by 2% or more in every run.",
        holds={
            "init": (0.1, 1.0),
            "common": (0.2, 0.4),
            "eta_z": (1.0, 20.0),
            "horizon": (30.0, 600.0),
            "classes": (4, 4),
            "distinct": (3, 3),
            "queries": (2, 2),
        },
        tested=r"Gradient flow in float64 from $\eta_Y t = 0$ to {horizon}, key and query factors starting as random "
        "rotations times {init}: {classes} classes with {distinct} distinct tokens each and one common token (share {common} "
        "of every context), {queries} queries, {tokens} tokens, {frame} embeddings of {width} dimensions; the flow in $(Y, "
        r"Z)$ has $\eta_Z = {eta_z}\,\eta_Y$; {seeds} seeds.",
        source=f"{study.source}; ours",
        quick=jd.grid(Layered, product="factored"),
        paper=jd.grid(Layered, product="factored", init=[0.1, 0.3, 1.0]),
        judge=judge_factored,
        decides={
            "only": ("gains against the flow of (Y, Z), relative difference", "single matrix"),
            "order": ("rank correlation of the gains with the flow of (Y, Z), mean", "gains of other tokens"),
        },
        rivals={"nothing moves": jd.off(STILL)},
        controls={
            "embeddings not orthogonal": {"frame": "random", "init": 1.0},
            "single matrix": {"product": "single"},
            "gains of other tokens": jd.rolled(measured_gain="own"),
        },
    ),
    study.claim(
        id="snap.original_narrow",
        talks=("training:snap-reparameterisation",),
        title="Where attention ends with fewer dimensions than tokens",
        statement="With fewer dimensions $d$ than tokens random embeddings overlap. How far from the attention of gradient "
        "flow in $(Y, Z)$ does attention end ($L_1$ distance, mean over classes), and is this flow closer than an attention "
        "that does not move? The readings are the distance at the smallest and at the largest $d$, the quotient with the "
        "distance from the start, mean over $d$, which does not tell the flow from an attention that does not move, and how far "
        "attention moves over how far it does in the flow of $(Y, Z)$.",
        source=f"{study.source}, d < M",
        quick=jd.grid(Layered, frame="random", width=[4, 8, 16]),
        paper=jd.grid(Layered, frame="random", width=[4, 8, 16, 24, 48, 96], dim=96),
        judge=judge_narrow,
        expected="measured",
        rivals={
            "attention does not move": jd.off({FROM_START: 1.0, MOVED: 0.0}),
            "the flow of (Y, Z) for any d": AS_WITHOUT_OVERLAP,
        },
        controls={
            "orthonormal embeddings": jd.Control(
                {"frame": "orthonormal", "width": [24.0]}, why="Orthonormal embeddings need as many dimensions as there are tokens."
            )
        },
        recorded={
            DEVIATIONS[0]: (0.569, 0.6971, 0.825),
            DEVIATIONS[1]: (0.282, 0.3864, 0.491),
            FROM_START: (0.919, 0.9713, 1.03),
            MOVED: (3.55, 4.342, 5.13),
        },
        plot=plot_narrow,
        caption=r"Left: L1 distance of the final attention from that of the flow of $(Y, Z)$, mean over classes, against the "
        r"number of dimensions $d$; dots and bars are the median and the range over runs. Right: final attention on each token "
        r"against that of the flow of $(Y, Z)$, with the line of equality, a colour for each $d$.",
    ),
)
