r"""The link from JoMA to low-rank training: the gradient's stable rank falls, returns as rows of V arrive, and falls again.

Attention makes rows with a large limit fast. While they move, the gradient is nearly theirs alone; once they have arrived, the
others are left, until the slowest moves alone. Two networks with many nodes that reach a critical point: the layer of ``layer.py``
in gradient flow under the upper gradient :math:`\mu - V` (``link_trial``), and blocks trained by gradient descent on squared
error, as in ``convergence.py`` (``trained_trial``). Letters as in ``dynamics/linear.py``.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import flow, metrics, plotting, stats, train
from jaxdyn.theories.joma import model
from jaxdyn.theories.joma.convergence import Converge, build
from jaxdyn.theories.joma.dynamics import linear as theory
from jaxdyn.theories.joma.extrapolation import extrapolated, halving_steps
from jaxdyn.theories.joma.linear import layer as net

RECORDS = 48  # of a run after its start


@jd.setting
class Link:
    """One layer with exp attention, whose upper gradient vanishes at a critical point.

    Args:
        attention: kind of attention.
        ratio: learning rate of z over that of V.
        low: norms of the rows of the critical point are spread evenly over [low, high].
        high: see low.
        horizon: time of the last record.
        tokens: m.
        nodes: k.
        samples: n.
    """

    attention: jd.Code = jd.code(*net.KINDS)
    ratio: jd.Swept = 1.0
    low: jd.Swept = jd.field(1.0, above=0)
    high: jd.Swept = 3.0
    horizon: jd.Swept = jd.field(2.4, above=0)
    tokens: int = 8
    nodes: int = 6
    samples: int = 32

    def __post_init__(self) -> None:
        """Refuse too few samples for the upper gradient, and norms that fall."""
        jd.require(self, self.samples >= self.tokens, "there are at least as many samples as tokens", "samples", "tokens")
        jd.require(self, self.low <= self.high, "low is at most high", "low", "high")


@jd.setting
class Trained(Converge):
    """A block trained on squared error; "one" token per sample with exp attention and linear nodes is the theory's world.

    Args:
        ratio: learning rate of the logits over that of V; 0: attention stays as it is.
    """

    context: jd.Code = jd.code("one", "many")
    attention: jd.Code = jd.code("exp", "softmax")
    activation: jd.Code = jd.code("id", "tanh")
    residual: jd.Swept = 0.0
    queries: jd.Swept = jd.field(1.0, at_least=1, whole=True)
    eta: jd.Swept = 0.05
    span: jd.Swept = 1.0
    start: jd.Swept = 0.05
    ratio: jd.Swept = 1.0
    nodes: int = 6


def link_trial(s: Link, key: PRNGKeyArray) -> jd.Observables:
    """V, its speed and their stable ranks along the flow, and in closed form."""
    # the layer: frequencies give the rows of E[gx] their norms
    x, g = model.normals(key, (s.samples, s.tokens), (s.samples, s.nodes))
    x = jax.nn.softmax(2 * x)
    norms = jnp.linspace(s.low, s.high, s.tokens, dtype=jnp.float64)
    x = x * norms / jnp.linalg.norm(x.T @ g / s.samples, axis=-1)
    even = jnp.full(s.tokens, 1 / s.tokens, jnp.float64)
    layer = net.Layer(x, g, s.attention, even, pull=net.pull(x, 1.0))
    mu = net.saliency(layer)
    # its flow, and the closed form
    start = net.Params(jnp.zeros(s.tokens, jnp.float64), jnp.zeros_like(mu))
    ts = s.horizon * jnp.arange(RECORDS + 1, dtype=jnp.float64) / RECORDS
    sol = flow.gradient_flow(net.loss, start, ts, layer, rate=net.rates(s.ratio), rtol=1e-10, atol=1e-13)
    speed = jax.vmap(lambda z, v: -jax.grad(net.loss)(net.Params(z, v), layer).v)(sol.ys.z, sol.ys.v)[1:]
    v, rate = theory.inserted(mu, ts[1:])
    rows = "time token node"
    relaxed = -jnp.expm1(-ts[1:])[:, None, None] * mu
    return jd.observables(
        predicted={"path": jd.named(v, rows)} | _ranks(v, rate),
        measured={"path": jd.named(sol.ys.v[1:], rows)} | _ranks(sol.ys.v[1:], speed),
        recorded={"relaxed": jd.named(relaxed, rows), "start_rank": metrics.stable_rank(mu), "t": jd.named(ts[1:], "time")},
        status=sol.status,
    )


def trained_trial(s: Trained, key: PRNGKeyArray) -> jd.Observables:
    """Stable ranks of V and its negative gradient along training, and by the ODE from the start (for one token per sample)."""
    # the block, and its training
    params, block, batch = build(s, key)
    every = jnp.round(s.span / s.eta).astype(jnp.int32)
    tx = model.make_tx(jd.Code.of("gd", model.OPTIMIZERS), s.eta, model.Params._make((1.0, s.ratio, None, None)))

    def loss(p: model.Params) -> Array:
        return model.squared_loss(p, block, batch)

    def observe(state: train.State) -> tuple[Array, Array, Array]:
        speed = -model.projected(jax.grad(loss)(state.params), block)
        return model.projected(state.params, block), speed, loss(state.params)

    last, (v, speed, losses) = train.record(
        train.make_step(loss, tx), train.init(tx, params), observe, samples=RECORDS, every=every
    )
    # the theory's ODE, and the same with attention that enters once
    p = batch.weight @ batch.x
    y = ((batch.weight[:, None] * batch.x).T @ batch.target) / p[:, None]
    ts = s.span * jnp.arange(RECORDS + 1, dtype=jnp.float64)
    sol, rate = theory.trained(v[0], y, p, ts)
    once = theory.inserted(theory.lowrank_limits(y), jnp.mean(p) * ts)[1]
    return jd.observables(
        predicted=_ranks(sol.ys, rate),
        measured=_ranks(v, speed),
        recorded={
            "unattended": jd.named(metrics.stable_rank(theory.unattended(v[0], y, p, ts)), "time"),
            "once": jd.named(metrics.stable_rank(once), "time"),
            "loss": jd.named(losses, "time"),
            "speed": jd.named(jnp.linalg.norm(speed, axis=(1, 2)), "time"),
            "t": jd.named(ts, "time"),
        },
        status=jnp.maximum(sol.status, train.finite_status(last.params)),
    )


def _ranks(v: Float[Array, "t m k"], rate: Float[Array, "t m k"]) -> dict:
    return {"srank_v": jd.named(metrics.stable_rank(v), "time"), "srank_rate": jd.named(metrics.stable_rank(rate), "time")}


RETURN = "logarithm of the factor by which srank(gradient) returns, learned minus fixed attention"
END = "srank(gradient) at the end, learned minus fixed attention"


def returned(rank: xr.DataArray) -> stats.Labelled:
    """The largest factor by which a later value lies above an earlier one."""
    rank = rank.transpose(..., "time")
    return (rank / rank.copy(data=np.minimum.accumulate(rank.values, -1))).max("time", skipna=False)


def judge_link(ds: xr.Dataset) -> list[jd.Check]:
    """V and both stable ranks against the closed form; how far the gradient's falls from the start, and how far it returns."""
    rank = ds.measured_srank_rate
    return [
        jd.at_most("error of V", jd.relative_error(ds, "path", "token node"), 1e-7),
        jd.at_most("error of srank(V)", jd.relative_error(ds, "srank_v"), 1e-7),
        jd.at_most("error of srank(dV/dt)", jd.relative_error(ds, "srank_rate"), 1e-7),
        jd.mean_within(
            "srank(dV/dt) at the start over its lowest value before it returns", turns(rank).before, over="seed", low=1.2
        ),
        jd.mean_within("factor by which srank(dV/dt) returns", returned(rank), over="seed", low=1.2),
    ]


class Turns(NamedTuple):
    """Where a rank falls, around its largest return: by which factors before and after, and whether most of all after it."""

    before: xr.DataArray
    after: xr.DataArray
    largest_after: xr.DataArray


def turns(rank: xr.DataArray) -> Turns:
    """The start over the lowest value before the return's peak; the peak over the lowest value after it; which fall is larger."""
    rank = rank.transpose(..., "time")
    low = rank.copy(data=np.minimum.accumulate(rank.values, -1))
    peak = (rank / low).fillna(0).argmax("time")
    later = xr.DataArray(np.arange(rank.sizes["time"]), dims="time") >= peak
    before = rank.isel(time=0) / low.isel(time=peak)
    after = rank.isel(time=peak) / rank.where(later).min("time")
    return Turns(before, after, (after > before).where(before.notnull()))


DIP = {"low": 1.05, "high": 1.25}  # by which the gradient's stable rank first falls in trained blocks: little
SECOND = "factor by which srank(gradient) falls after its return"
LARGER = "share of runs in which it falls further after the return than before"


def judge_trained(ds: xr.Dataset) -> list[jd.Check]:
    """Both stable ranks against the ODE, by the order in the step size and extrapolated; how the gradient's falls and returns."""
    ds = halving_steps(ds)
    fine = ds.isel(eta=-1, drop=True)
    checks = []
    for name, label in (("srank_rate", "srank(gradient)"), ("srank_v", "srank(V)")):
        error = np.sqrt(((ds[f"measured_{name}"] - ds[f"predicted_{name}"]) ** 2).mean("time", skipna=False))
        order = stats.loglog_slope(ds.eta, error, "eta")
        left = abs(extrapolated(ds[f"measured_{name}"]) / fine[f"predicted_{name}"] - 1)
        checks += [
            jd.mean_within(f"{label}: order of the step error, mean over runs", order, over="seed", low=0.9, high=1.1),
            jd.at_most(f"{label}: error at any time, extrapolated to step 0", left, 0.03),
        ]
    rank = fine.measured_srank_rate
    falls = turns(rank)
    return [
        *checks,
        jd.mean_within("srank(gradient) at the start over its lowest value before it returns", falls.before, over="seed", **DIP),
        jd.mean_within("factor by which srank(gradient) returns", returned(rank), over="seed", low=1.3),
        jd.mean_within(SECOND, falls.after, over="seed", low=1.4),
        jd.share_within(LARGER, falls.largest_after, over="seed", low=0.5),
    ]


def judge_learned(ds: xr.Dataset) -> list[jd.Check | jd.Reading]:
    """Networks whose attention learns, compared with the same networks with attention as at the start."""
    jd.need(ds, ratio=[0.0, 1.0])
    ratio = np.log(returned(ds.measured_srank_rate))
    last = ds.measured_srank_rate.isel(time=-1)
    return [
        jd.gate("loss at the end over that at the start", ds.loss.isel(time=-1) / ds.loss.isel(time=0), at_most=0.8),
        jd.mean_reading(RETURN, ratio.sel(ratio=1.0) - ratio.sel(ratio=0.0), over="seed"),
        jd.mean_reading(END, last.sel(ratio=1.0) - last.sel(ratio=0.0), over="seed"),
    ]


EXCHANGED = jd.rolled(measured_srank_rate="ratio")  # learned and fixed attention


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Stable ranks of V and of the gradient over time: three runs with their prediction, and all runs."""
    left, right = fig.subplots(1, 2)
    fine = ds.isel({dim: 0 if dim == "low" else -1 for dim in ("eta", "low") if dim in ds.dims})
    t = np.ravel(plotting.first_run(fine).t)
    for seed, color in zip(range(min(3, fine.sizes["seed"])), ("measured", "third", "control"), strict=False):
        one = fine.isel(seed=seed)
        left.plot(t, one.measured_srank_rate, color=plotting.COLORS[color], label=f"run {seed + 1}", linewidth=4, alpha=0.5)
        left.plot(t, one.predicted_srank_rate, "--", color=plotting.COLORS["theory"], label="theory" if seed == 0 else None)
    left.set(xlabel="time", ylabel=r"stable rank of $\dot V$")
    left.legend()
    plotting.band(right, t, fine.measured_srank_rate.transpose(..., "time"), r"$\dot V$", "measured")
    plotting.band(right, t, fine.measured_srank_v.transpose(..., "time"), r"$V$", "third")
    right.set(xlabel="time", ylabel="stable rank")


def plot_learned(ds: xr.Dataset, fig: Figure) -> None:
    """Stable rank of the gradient along training with learned and with fixed attention."""
    axes = fig.subplots(1, 2, sharey=True)
    t = np.ravel(plotting.first_run(ds.isel(ratio=0)).t)
    for ax, ratio, title in zip(axes, (1.0, 0.0), ("attention learns", "attention stays as at the start"), strict=True):
        rank = ds.measured_srank_rate.sel(ratio=ratio).transpose(..., "time")
        plotting.band(ax, t, rank, "all runs", "measured")
        ax.plot(t, rank.values.reshape(-1, t.size)[:3].T, color=plotting.COLORS["third"], linewidth=0.8)
        ax.set(title=title, xlabel="steps × step size")
    axes[0].set_ylabel("stable rank of the gradient of $V$")


LINK = jd.Study(
    trial=link_trial,
    quick=jd.grid(Link, low=[0.5, 1.0, 2.0]),
    paper=jd.grid(Link, low=[0.5, 1.0, 2.0], tokens=[8, 20], nodes=[3, 6, 20], samples=64),
    seeds=32,
    paper_seeds=128,
    evidence="flow",
    bounds=jd.tuned(on="0:32", confirmed_on="4000:4032"),
    tested="Gradient flow from zero of a layer with exp attention and {nodes} linear nodes, {tokens} tokens and {samples} "
    r"samples; the upper gradient $\mu - V$ is inserted, rows of $\mu$ with norms from {low} to {high}. The flow ends "
    "at the time {horizon}; seeds: {seeds}.",
    source="arXiv:2310.00535, sections 3 and 4 for K nodes; closed form and the return of the rank: derived here",
)
ETAS = [0.1, 0.05, 0.025]
TRAINED = jd.Study(
    trial=trained_trial,
    quick=jd.grid(Trained, eta=ETAS, span=0.4),
    paper=jd.grid(Trained, eta=ETAS, span=0.4, tokens=[8, 20], nodes=[3, 6, 20], samples=480),
    seeds=32,
    paper_seeds=128,
    evidence="network",
    bounds=jd.tuned(on="0:32", confirmed_on="21000000:21000032"),
    tested="A block with {attention} attention and {nodes} {activation} nodes, {tokens} tokens, {context} of them in each of "
    "{samples} samples, no residual path, trained by gradient descent on squared error from weights of size {start}; targets "
    "of a block whose rows of weights have norms from {low} to {high}, plus noise of size {noise}; steps of {eta}, 48 "
    "records {span} apart; seeds: {seeds}.",
    source="arXiv:2310.00535, Theorem 1 (exp attention); the ODE under squared error: derived here",
)
MANY = {"context": "many", "attention": "softmax", "activation": "tanh", "residual": 1.0, "queries": 2.0}

CLAIMS = (
    LINK.claim(
        id="joma.lowrank_link",
        talks=("training:joma-low-rank",),
        title="Near a minimum the gradient's rank falls and returns",
        statement=r"Near a critical point $\mu$ with curvature one, the gradient flow from zero of the weights $V$ of a layer "
        r"with exp attention and several linear nodes, at equal rates of weights and logits, follows $\dot V_l = "
        r"e^{\|V_l\|^2/2}(\mu_l - V_l)$ for row $l$: $V_l = a_l\mu_l$ with the exact solution of Theorem 4 for $\kappa_l = "
        r"\|\mu_l\|^2/2$. Where the norms $\|\mu_l\|$ of eight tokens are spread evenly from .5, 1 or 2 up to 3 or 3.5, the "
        r"stable rank of $\dot V$ first falls, by a factor of at least 1.2 on average, and then returns, by a factor of at least "
        "1.2 on average.",
        holds={"high": (3.0, 3.5)},
        judge=judge_link,
        controls={
            "no attention (the stable rank is constant)": {"attention": "none"},
            "attention learns half as fast": jd.Control({"ratio": 0.5}, breaks="equal rates"),
            "attention learns 1.5 times as fast": jd.Control({"ratio": 1.5}, breaks="equal rates"),
        },
        rivals={
            "attention does not learn": jd.off(
                predicted_path="relaxed", predicted_srank_v="start_rank", predicted_srank_rate="start_rank"
            )
        },
        plot=plot,
        caption=r"Left: stable rank of $\dot V$ along gradient flow with the smallest first norm, three runs, and the closed "
        r"form (dashed). Right: stable ranks of $\dot V$ and $V$ there, medians and central 90% of the runs.",
    ),
    TRAINED.claim(
        id="joma.lowrank_link_trained",
        talks=("training:joma-low-rank",),
        title="In trained blocks the gradient's rank dips, returns and falls again",
        statement="In a block with exp attention and linear nodes, trained on squared error with one token $l$ a sample at "
        "equal rates of weights and logits, the latter from zero, the stable ranks of the weights $V$ and of their gradient "
        r"follow those of $\dot V_l = p_l e^{z_l}(y_l - e^{z_l} V_l)$, $z_l = \frac12(\|V_l\|^2 - \|V_l(0)\|^2)$ ($p_l$: "
        "share of the token, $y_l$: its mean target), with an error of first order in the step size, and to 3% when "
        "extrapolated to step size 0. With eight tokens, six nodes, small weights at the start and targets of a block whose rows "
        "of weights have norms spread from .5 to 1.6, on average the gradient's stable rank first falls by a factor of 1.05 to "
        "1.25, returns by at least 1.3 and then falls again by at least 1.4; in most runs this last fall is the larger one.",
        decides={
            "first": (
                "srank(gradient) at the start over its lowest value before it returns",
                "attention stays as at the start (the gradient's stable rank is constant)",
            )
        },
        holds={
            "noise": (0.3, 0.6),
            "start": (0.05, 0.1),
            "tokens": (8, 8),
            "nodes": (6, 6),
            "low": (0.5, 0.5),
            "high": (1.6, 1.6),
        },
        judge=judge_trained,
        controls={
            "attention stays as at the start (the gradient's stable rank is constant)": {"ratio": 0.0},
            "attention learns half as fast": jd.Control({"ratio": 0.5}, breaks="equal rates"),
            "attention learns twice as fast": jd.Control({"ratio": 2.0}, breaks="equal rates"),
            "all tokens in each sample": {"context": "many"},
        },
        rivals={
            "attention does not learn": jd.off(predicted_srank_rate="unattended"),
            "attention enters once, as in Theorem 4's dynamics": jd.swap(predicted_srank_rate="once"),
            "low rank only for a while: no fall after the return": {SECOND: 1.0, LARGER: 0.0},
        },
        plot=plot,
        caption=r"Left: stable rank of the gradient of $V$ along training at the smallest step size, three runs, and by the ODE "
        r"(dashed); time: steps times step size. Right: stable ranks of the gradient and of $V$, medians and central 90% of the "
        r"runs.",
    ),
    dataclasses.replace(TRAINED, bounds=None, source="ours; the question: arXiv:2310.00535, section 3.3").claim(
        id="joma.lowrank_link_many",
        talks=("training:joma-low-rank",),
        title="What learned attention does to the gradient's rank in full blocks",
        statement="In blocks with softmax self-attention, tanh nodes and all tokens in each sample, trained by gradient "
        "descent on squared error, how much further does the stable rank of the gradient of the MLP's weights return, and "
        "how much higher is it at the end, than in the same blocks with attention as at the start?",
        tested="Blocks with softmax self-attention, {nodes} tanh nodes, {tokens} tokens in each of {samples} samples and "
        "{queries} queries, trained by gradient descent on squared error; steps of {eta}, 48 records {span} apart, "
        "learning rate of the logits {ratio} times that of the weights; seeds: {seeds}.",
        expected="measured",
        recorded={RETURN: (0.0534, 0.1356, 0.218), END: (0.282, 0.5188, 0.756)},
        quick=jd.grid(Trained, **MANY, eta=1.0, span=20.0, ratio=[0.0, 1.0]),
        paper=jd.grid(Trained, **MANY, eta=1.0, span=20.0, ratio=[0.0, 1.0], tokens=[8, 20], nodes=[3, 6, 20]),
        judge=judge_learned,
        controls={"learned and fixed attention exchanged": EXCHANGED},
        rivals={"attention that learns changes nothing": jd.off({RETURN: 0.0, END: 0.0})},
        plot=plot_learned,
        caption="Stable rank of the gradient of $V$ along training, with attention that learns (left) and that stays as at the "
        "start (right): median and central 90% of the runs, and three runs.",
    ),
)
