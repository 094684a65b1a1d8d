r"""SGD over shuffled epochs: its mean follows a modified gradient flow with a gradient penalty for each batch.

One run is one problem (data and start); its mean is taken over ``shuffles`` independent orders of all epochs. Every order
comes with its reverse in each epoch: the mean stays that of uniformly shuffled epochs, but the fluctuation of order
:math:`\eta^2` in an epoch, :math:`\sum_{i<j}H_jg_i`, cancels within a pair.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import optax
import xarray as xr
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import flow, plotting, train
from jaxdyn.stats import richardson
from jaxdyn.theories.cal import dynamics as theory
from jaxdyn.theories.cal.model import Linear, Scalar, regression_loss
from jaxdyn.theories.cal.orders import VECTOR, distance, error_curve, halvings, order_check


@jd.setting
class Shuffled:
    """A two-layer linear network trained by SGD on mini-batches, averaged over runs with different orders of the batches."""

    eta: jd.Swept = jd.field(0.02, above=0)  # step size of SGD
    order: jd.Code = jd.code("shuffled", "cyclic")  # batches shuffled anew in each epoch, or in one fixed order
    batches: int = jd.field(4, at_least=1)  # m, mini-batches per epoch
    batch_size: int = jd.field(2, at_least=1)  # points in a mini-batch
    shuffles: int = jd.field(32, at_least=2)  # runs with different orders, over which the mean is taken
    inputs: int = jd.field(3, at_least=1)  # input dimension of the network
    hidden: int = jd.field(3, at_least=1)  # units of the hidden layer
    outputs: int = jd.field(2, at_least=1)  # output dimension
    horizon: float = jd.field(1.0, above=0)  # training time, step size times steps, up to rounding to whole epochs
    samples: int = jd.field(2, at_least=1)  # times after the start at which weights are compared

    def __post_init__(self) -> None:
        jd.require(self, self.shuffles % 2 == 0, "shuffles is even: each order comes with its reverse", "shuffles")


def _problem(s: Shuffled, key: PRNGKeyArray) -> tuple[Linear, Float[Array, "m b i"], Float[Array, "m b o"]]:
    """Start, inputs (m, b, i) and outputs (m, b, o) of all batches, from a random teacher with noise."""
    k_w1, k_w2, k_x, k_teacher, k_noise = jax.random.split(key, 5)

    def normal(k: PRNGKeyArray, *shape: int) -> Float[Array, "*shape"]:
        return jax.random.normal(k, shape, jnp.float64)

    start = Linear(normal(k_w1, s.hidden, s.inputs) / 2, normal(k_w2, s.outputs, s.hidden) / 2)
    x = normal(k_x, s.batches, s.batch_size, s.inputs) / s.inputs**0.5
    y = x @ normal(k_teacher, s.inputs, s.outputs) + normal(k_noise, s.batches, s.batch_size, s.outputs) / 4
    return start, x, y


def batch_order(
    key: PRNGKeyArray, epoch: Int[Array, ""], m: int, reverse: Bool[Array, ""] | bool, cyclic: Bool[Array, ""] | bool
) -> Int[Array, " m"]:
    """The order of the m batches in one epoch: a uniform permutation, or its reverse; 0, 1, … when cyclic."""
    order = jax.random.permutation(jax.random.fold_in(key, epoch), m)
    return jnp.where(cyclic, jnp.arange(m), jnp.where(reverse, order[::-1], order))


def _train(
    s: Shuffled,
    start: Linear,
    x: Float[Array, "m b i"],
    y: Float[Array, "m b o"],
    key: PRNGKeyArray,
    reverse: Bool[Array, ""],
    epochs: Int[Array, ""],
) -> Linear:
    """Weights of one SGD run at every ``epochs`` epochs."""

    def batch(step: Int[Array, ""]) -> tuple[Array, Array]:
        i = batch_order(key, step // s.batches, s.batches, reverse, s.order == "cyclic")[step % s.batches]
        return x[i], y[i]

    tx = optax.sgd(s.eta)
    step = train.make_step(regression_loss, tx, batch)
    first = train.init(tx, start)
    _, weights = train.record(step, first, lambda c: c.params, samples=s.samples, every=epochs * s.batches)
    return weights


def _vectors(weights: Linear) -> Float[Array, "*runs time entry"]:
    """All weights as one vector at each save time but the first, over any leading axes."""
    flat = [w.reshape(*w.shape[:-2], -1)[..., 1:, :] for w in weights]
    return jnp.concatenate(flat, -1)


def _three_flows(
    t: Scalar, weights: tuple[Linear, Linear, Linear], args: tuple[Float[Array, "m i i"], Float[Array, "m o i"], Scalar]
) -> tuple[Linear, ...]:
    """Fields of the modified loss of shuffled epochs, of the loss itself, and of the modified loss of full batches."""
    xx, yx, eta = args
    mean = theory.regression_field(jnp.mean(xx, 0), jnp.mean(yx, 0))
    fields = theory.shuffled_field(xx, yx, eta), mean, theory.modified_field(mean, eta)
    return tuple(field(w) for field, w in zip(fields, weights, strict=True))


def trial(s: Shuffled, key: PRNGKeyArray) -> jd.Observables:
    """Train all orders, average, and solve the flow of the modified loss."""
    k_problem, k_order = jax.random.split(key)
    start, x, y = _problem(s, k_problem)
    half = s.shuffles // 2
    # SGD over pairs of an order and its reverse
    epochs = jnp.maximum(1, jnp.round(s.horizon / (s.samples * s.batches * s.eta))).astype(jnp.int32)
    keys = jax.vmap(jax.random.fold_in, (None, 0))(k_order, jnp.arange(half))
    pair = jax.vmap(lambda k, back: _train(s, start, x, y, k, back, epochs), (None, 0))
    runs = _vectors(jax.vmap(pair, (0, None))(keys, jnp.array([False, True])))  # (half, 2, time, entry)
    pairs = jnp.mean(runs, 1)

    # the flows, at the times that SGD reaches
    ts = jnp.arange(s.samples + 1) * (epochs * s.batches * s.eta)
    xx = jnp.einsum("mbi,mbj->mij", x, x) / s.batch_size
    yx = jnp.einsum("mbo,mbi->moi", y, x) / s.batch_size
    sol = flow.solve(_three_flows, (start,) * 3, ts, (xx, yx, s.eta), rtol=1e-11, atol=1e-13)
    modified, plain, full_batch = (jd.named(_vectors(w), "time entry") for w in sol.ys)
    return jd.observables(
        predicted={"mean": modified},
        measured={"mean": jd.named(jnp.mean(pairs, 0), "time entry")},
        recorded={
            "standard_error": jd.named(jnp.std(pairs, 0, ddof=1) / half**0.5, "time entry"),
            "plain_flow": plain,
            "full_batch_flow": full_batch,
        },
        status=sol.status,
    )


COEFFICIENT = 0.005  # how far the coefficient of the penalty may be off


def judge(ds: xr.Dataset) -> list[jd.Check]:
    r"""Order 2 in the step size, and the coefficient of the predicted penalty.

    The part of the measured drift away from the flow of L that lies along the predicted one is :math:`1 + O(\eta)` times as long.
    """
    ds = halvings(ds)
    predicted, measured = ds.predicted_mean - ds.plain_flow, ds.measured_mean - ds.plain_flow
    product, square = ((predicted * other).sum(VECTOR[:2], skipna=False) for other in (measured, predicted))
    along = xr.where(square == 0, 0.0, product / square)  # a theory without a drift explains none
    limit = richardson(along.isel(eta=-2, drop=True), along.isel(eta=-1, drop=True), order=1)
    name = "drift from the flow of L along the predicted one / predicted, limit of small steps"
    return [
        order_check("fitted order in the step size", error_curve(ds, "mean"), 2, 0.15),
        jd.mean_within(name, limit, over="seed", low=1 - COEFFICIENT, high=1 + COEFFICIENT),
    ]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Distance of the mean from the modified flow and from the plain one."""
    ax = fig.subplots()
    plotting.order(ax, ds.eta, error_curve(ds, "mean"), 2, "mean of SGD minus modified flow")
    plotting.order(ax, ds.eta, distance(ds.measured_mean - ds.plain_flow), 1, "minus plain flow", "control")
    plotting.order(ax, ds.eta, distance(ds.standard_error), None, "standard error of the mean", "third")
    ax.set_ylabel("distance over the trajectory")


study = jd.Study(
    evidence="network",
    bounds=jd.tuned(on="0:8", confirmed_on="43000000:43000008"),
    trial=trial,
    quick=jd.grid(Shuffled, eta=[1 / 16, 1 / 32, 1 / 64, 1 / 128]),
    paper=jd.grid(Shuffled, eta=[1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256], shuffles=256),
    seeds=8,
    paper_seeds=64,
    source="arXiv:2101.12176, modified loss of SGD",
    tested="A linear network with {inputs} inputs, {hidden} hidden units and {outputs} outputs, regression on {batches} batches "
    "of {batch_size} points with step sizes {eta} until time {horizon}; the mean is over {shuffles} orders of the batches, in "
    "pairs of an order and its reverse. {seeds} random problems.",
)

CLAIMS = (
    study.claim(
        id="cal.sgd_mean",
        title="The mean of SGD follows a flow with a penalty on batch gradients",
        statement=r"For regression with a two-layer linear network, the mean of SGD with step size $\eta$ over shuffled epochs "
        r"of $m$ batches follows the gradient flow of $L + \tfrac{\eta}{4m}\sum_i\|\nabla L_i\|^2$ up to $O(\eta^2)$, where "
        r"$L_i$ is the loss of batch $i$. In the limit of small steps, with four batches, the mean's displacement from "
        r"the flow of $L$, projected on the predicted displacement, is as long as predicted to 0.5% on average over problems.",
        judge=judge,
        controls={"fixed order of the batches": {"order": "cyclic"}},
        rivals={
            "flow of L alone": jd.off(predicted_mean="plain_flow"),
            r"flow of $L + \tfrac\eta4\|\nabla L\|^2$": jd.swap(predicted_mean="full_batch_flow"),
        },
        plot=plot,
        caption="Distance over the trajectory between the mean of SGD over shuffled orders and two flows, and the standard error "
        "of that mean, against the step size: median and range over random problems; dashed: slopes 2 and 1.",
    ),
)
