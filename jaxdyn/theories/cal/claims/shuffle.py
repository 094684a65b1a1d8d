r"""Claim on SGD over shuffled epochs: its mean follows a modified gradient flow with a gradient penalty of every batch.

One run is one problem (data and start); its mean is taken over ``shuffles`` independent orders of all epochs. Every order
comes with its reverse in each epoch: the mean stays that of uniformly shuffled epochs, but the fluctuation of order
:math:`\eta^2` in an epoch, :math:`\sum_{i<j}H_jg_i`, cancels within a pair.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from jaxtyping import Array, Float, Int, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import flow, plotting, train
from jaxdyn.stats import richardson
from jaxdyn.theories.cal.claims.orders import distance, error_curve, halvings, limit_ratio, order_check
from jaxdyn.theories.cal.dynamics import steps as theory
from jaxdyn.theories.cal.model import Linear, regression_loss
from jaxdyn.theories.cal.setting import Shuffled

__all__ = ["CLAIMS", "batch_order", "trial"]


def _problem(s: Shuffled, key: PRNGKeyArray) -> tuple[Linear, Array, Array]:
    """Start, inputs (m, b, i) and outputs (m, b, o) of all batches, from a random teacher with noise."""
    k_w1, k_w2, k_x, k_teacher, k_noise = jax.random.split(key, 5)

    def draw(k: PRNGKeyArray, *shape: int) -> Array:
        return jax.random.normal(k, shape, jnp.float64)

    start = Linear(draw(k_w1, s.hidden, s.inputs) / 2, draw(k_w2, s.outputs, s.hidden) / 2)
    x = draw(k_x, s.batches, s.batch_size, s.inputs) / s.inputs**0.5
    y = x @ draw(k_teacher, s.inputs, s.outputs) + draw(k_noise, s.batches, s.batch_size, s.outputs) / 4
    return start, x, y


def batch_order(key: PRNGKeyArray, epoch: Int[Array, ""], m: int, reverse: Array, cyclic: Array) -> Int[Array, " m"]:
    """The order of the m batches in one epoch: a uniform permutation, or its reverse; 0, 1, … when cyclic."""
    order = jax.random.permutation(jax.random.fold_in(key, epoch), m)
    return jnp.where(cyclic, jnp.arange(m), jnp.where(reverse, order[::-1], order))


def _train(s: Shuffled, start: Linear, x: Array, y: Array, key: PRNGKeyArray, reverse: Array, epochs: Array) -> Linear:
    """Weights of one SGD run at every ``epochs`` epochs."""

    def batch(step: Int[Array, ""]) -> tuple[Array, Array]:
        i = batch_order(key, step // s.batches, s.batches, reverse, s.order == 1)[step % s.batches]
        return x[i], y[i]

    tx = optax.sgd(s.eta)
    step = train.make_step(regression_loss, tx, batch)
    first = train.init(tx, start)
    _, weights = train.record(step, first, lambda c: c.params, samples=s.samples, every=epochs * s.batches)
    return weights


def _vectors(weights: Linear) -> Float[Array, "... t e"]:
    flat = [w.reshape(*w.shape[:-2], -1)[..., 1:, :] for w in weights]
    return jnp.concatenate(flat, -1)


def _three_flows(t: Array, weights: tuple[Linear, Linear, Linear], args: tuple[Array, Array, Array]) -> tuple[Linear, ...]:
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
    epochs = jnp.maximum(1, jnp.round(s.horizon / (s.samples * s.batches * s.eta))).astype(jnp.int32)
    keys = jax.vmap(jax.random.fold_in, (None, 0))(k_order, jnp.arange(half))
    pair = jax.vmap(lambda k, back: _train(s, start, x, y, k, back, epochs), (None, 0))
    runs = _vectors(jax.vmap(pair, (0, None))(keys, jnp.array([False, True])))  # (half, 2, time, entry)
    pairs = jnp.mean(runs, 1)

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


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Order 2 in the step size, and a Richardson limit within 3 (standard error + error estimate)."""
    ds = halvings(ds)
    noise = distance(ds.standard_error)
    coarse, fine = noise.isel(eta=-2, drop=True), noise.isel(eta=-1, drop=True)
    limit_noise = np.hypot(richardson(0 * coarse, fine, order=2), richardson(coarse, 0 * fine, order=2))
    ratio = limit_ratio(ds.measured_mean - ds.predicted_mean, 2, limit_noise)
    return [
        order_check("fitted order in the step size", error_curve(ds, "mean"), 2, 0.15),
        jd.at_most("Richardson limit against the prediction, in standard errors + error estimates", ratio, 3.0),
    ]


def _predict(name: str):
    """The control that puts another flow in the place of the prediction."""

    def breach(ds: xr.Dataset) -> xr.Dataset:
        return ds.assign(predicted_mean=ds[name])

    return breach


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Distance of the mean from the modified flow and from the plain one."""
    ax = fig.subplots()
    plotting.order(ax, ds.eta, error_curve(ds, "mean"), 2, "mean of SGD minus modified flow")
    plotting.order(ax, ds.eta, distance(ds.measured_mean - ds.plain_flow), 1, "minus plain flow", "control")
    plotting.order(ax, ds.eta, distance(ds.standard_error), None, "standard error of the mean", "third")
    ax.set_ylabel("distance over the trajectory")


CLAIMS = (
    jd.Claim(
        id="cal.sgd_mean",
        statement=r"The mean of SGD over shuffled epochs of $m$ batches follows the gradient flow of "
        r"$L + \tfrac{\eta}{4m}\sum_i\|\nabla L_i\|^2$ up to $O(\eta^2)$.",
        source="arXiv:2101.12176, modified loss of SGD",
        trial=trial,
        quick=jd.grid(Shuffled, eta=[1 / 16, 1 / 32, 1 / 64, 1 / 128]),
        paper=jd.grid(Shuffled, eta=[1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256], shuffles=256),
        seeds=8,
        paper_seeds=64,
        judge=judge,
        controls={
            "fixed order of the batches": {"order": "cyclic"},
            "flow of L alone": _predict("plain_flow"),
            r"flow of $L + \tfrac\eta4\|\nabla L\|^2$": _predict("full_batch_flow"),
        },
        plot=plot,
    ),
)
