r"""The layer trained by SGD on prompts drawn anew at every step, in all entries of its matrices; then prompts of other laws.

Along training both blocks are read beside the theory's equations from the same start. The layer that is tested has the mean
weights of the second half of the records. It meets prompts of four laws, of which the theory's errors are those of
:math:`P = \Gamma^{-1}`, the limit of gradient flow: that of training; one whose inputs have the same eigenvalues in reverse order;
one whose tasks have the covariance :math:`\Omega \propto \Lambda`, of mean 1; one whose examples' labels have noise of variance 1.

Cost: about 30 s of CPU for 80 runs of 600 to 3000 steps, each on 64 new prompts: at two step sizes, and long, so that the bias of
the steps' noise can be taken out of the errors on other laws.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import linalg, train
from jaxdyn.data import prompts
from jaxdyn.engine.claim import Named
from jaxdyn.theories.icl import model
from jaxdyn.theories.icl.dynamics import merged
from jaxdyn.theories.icl.trials import starts

__all__ = ["LAWS", "LENGTHS", "Sgd", "trial"]

LAWS = ("training", "inputs", "tasks", "noise")
LENGTHS = (5, 20, 40)
TESTS = 4096  # prompts of every law


@jd.setting
class Sgd:
    """A layer, its training, and its test.

    Args:
        start: as in ``starts.first_weights``, with c = 0.
        attention: of training and test.
        lr: step size.
        span: time from one record to the next, at least ``lr``.
        size: of U at the start.
        first: largest eigenvalue of the inputs' covariance.
        ratio: of each eigenvalue to the one before.
        tails: of the tests' inputs, as in ``prompts.draw``.
        length: N.
        inputs: d.
        batch: prompts in a step.
        records: after the start.
        dtype: of training.
    """

    start: jd.Code = jd.code(*starts.STARTS)
    attention: jd.Code = jd.code("linear", "softmax")
    lr: jd.Swept = 0.01
    span: jd.Swept = 0.3
    size: jd.Swept = 0.5
    first: jd.Swept = 2.0
    ratio: jd.Swept = 0.6
    tails: jd.Swept = 0.0
    length: int = 20
    inputs: int = 3
    batch: int = 64
    records: int = 20
    dtype: str = "float32"

    def __post_init__(self) -> None:
        jd.require(self, 0 < self.lr <= self.span, "0 < lr <= span", "lr", "span")
        jd.require(self, self.size > 0 and self.first > 0, "size and first are positive", "size", "first")
        jd.require(self, 0 < self.ratio <= 1, "ratio is above 0 and at most 1", "ratio")
        jd.require(self, 0 <= self.tails <= 1, "tails is from 0 to 1", "tails")
        for name in ("length", "batch", "records"):
            jd.require(self, getattr(self, name) >= 1, f"{name} is at least 1", name)
        jd.require(self, self.inputs >= 2, "inputs is at least 2", "inputs")


def trained(
    s: Sgd, start: model.Params, root: Float[Array, "d d"], key: PRNGKeyArray
) -> tuple[model.Params, model.Params, Float[Array, " T"]]:
    """The weights at every record, their mean over the second half, and the times."""

    def batch(step: Array) -> prompts.Prompts:
        return prompts.draw(jax.random.fold_in(key, step), s.batch, s.length, root)

    tx = optax.sgd(s.lr.astype(s.dtype))
    step = train.make_step(lambda p, b: model.batch_loss(p, b, s.attention == "softmax"), tx, batch)
    every = jnp.round(s.span / s.lr).astype(jnp.int32)
    first = train.init(tx, jax.tree.map(lambda x: x.astype(s.dtype), start))
    _, path = train.record(step, first, lambda state: state.params, samples=s.records, every=every)
    mean = jax.tree.map(lambda x: jnp.mean(x[(s.records + 1) // 2 :], 0), path)
    return path, mean, (every * s.lr * jnp.arange(s.records + 1)).astype(jnp.float64)


def tests(s: Sgd, vectors: Array, values: Array) -> dict[str, tuple[Array, Array, float]]:
    """Roots of the covariances of inputs and of tasks, and the noise, of every law."""
    d = s.inputs
    root, turned = vectors * jnp.sqrt(values), vectors * jnp.sqrt(values[::-1])
    task, eye = vectors * jnp.sqrt(values / jnp.mean(values)), jnp.eye(d, dtype=jnp.float64)
    return {"training": (root, eye, 0.0), "inputs": (turned, eye, 0.0), "tasks": (root, task, 0.0), "noise": (root, eye, 1.0)}


def table(rows: dict[str, Array]) -> Named:
    """Errors by law and length."""
    return jd.named(jnp.stack([rows[law] for law in LAWS]).astype(jnp.float64), "law shown")


def trial(s: Sgd, key: PRNGKeyArray) -> jd.Observables:
    """Both blocks along training, the entries that the theory leaves at zero, and errors on prompts of every law."""
    k_basis, k_start, k_data, k_test = jax.random.split(key, 4)
    d, vectors = s.inputs, starts.basis(k_basis, s.inputs)
    values = starts.spectrum(s.first, s.ratio, d)
    lam = (vectors * values) @ vectors.T
    start = starts.first_weights(s.start, k_start, d, d, s.size, 0.0)
    path, mean, ts = trained(s, start, (vectors * jnp.sqrt(values)).astype(s.dtype), k_data)
    found, rest = starts.blocks(path.pv, path.kq)
    gamma = merged.gamma(lam, s.length)
    first = starts.blocks(start.pv, start.kq)[0]
    theory = merged.solve(first, lam, s.length, ts)
    long = merged.solve(first, lam, 1e12, ts)

    def strength(u: Array, block: Array) -> Array:
        return u * jnp.einsum("ij,tji->t", gamma, block) / d

    limit = linalg.inv(gamma)
    losses = jax.vmap(lambda p: model.population_loss(jax.tree.map(lambda x: x.astype(jnp.float64), p), lam, s.length))(path)
    exact, risk, endless, at_training = {}, {}, {}, {}
    for i, (law, (root, task, noise)) in enumerate(tests(s, vectors, values).items()):
        low = [x.astype(s.dtype) for x in (root, task)]
        sample = prompts.draw(
            jax.random.fold_in(k_test, i), TESTS, max(LENGTHS), low[0], task=low[1], noise=noise, tails=s.tails.astype(s.dtype)
        )
        risk[law] = model.risks(mean, sample, jnp.asarray(LENGTHS), s.attention == "softmax")
        laws = root @ root.T, task @ task.T, noise**2
        exact[law], endless[law] = (
            jnp.stack([merged.risk(p, laws[0], m, laws[1], laws[2]) for m in LENGTHS]) for p in (limit, linalg.inv(lam))
        )
        at_training[law] = jnp.full(len(LENGTHS), merged.risk(limit, laws[0], s.length, laws[1], laws[2]))

    blind = jnp.stack([jnp.sum((r @ r.T) * (t @ t.T)) for r, t, _ in tests(s, vectors, values).values()])
    wide = jnp.float64
    return jd.observables(
        predicted={
            "u": jd.named(theory.ys.u, "record"),
            "strength": jd.named(strength(theory.ys.u, theory.ys.block), "record"),
            "risk": table(exact),
        },
        measured={
            "u": jd.named(found.u.astype(wide), "record"),
            "strength": jd.named(strength(found.u.astype(wide), found.block.astype(wide)), "record"),
            "risk": table(risk),
        },
        recorded={
            "rest": jd.named(rest.astype(wide), "record"),
            "t": jd.named(ts, "record"),
            "loss": jd.named(losses, "record"),
            "u_long": jd.named(long.ys.u, "record"),
            "strength_long": jd.named(strength(long.ys.u, long.ys.block), "record"),
            "endless": table(endless),
            "blind": jd.named(jnp.broadcast_to(blind[:, None], (len(LAWS), len(LENGTHS))), "law shown"),
            "one_length": table(at_training),
            "one_law": jd.named(jnp.broadcast_to(exact["training"], (len(LAWS), len(LENGTHS))), "law shown"),
        },
        status=jnp.maximum(train.finite_status(path), theory.status),
        coords={"law": LAWS, "shown": LENGTHS},
    )
