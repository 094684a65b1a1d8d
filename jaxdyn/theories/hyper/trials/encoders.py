r"""Encoders of the hypercube trained by the contrastive loss; losses on new batches and downstream accuracy along training.

Every run differs in traced numbers alone: kind of encoder, dimensions, optimizer, weight decay, relevant bits. Batches are new at
every step. "Predicted" are the loss of the code of the k relevant bits and that of the uniform law on the sphere.
The paper's scale (constants reconstructed from its losses): k = 10, D = 50, d = 20, B = 512, T = 0.5, hidden 512.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import train
from jaxdyn.data import hypercube
from jaxdyn.theories.hyper import model
from jaxdyn.theories.hyper.dynamics import codes

__all__ = ["Contrastive", "trial"]

BATCHES = 64  # new ones for every record of the loss


@jd.setting
class Contrastive:
    """An encoder and its training.

    Args:
        encoder: linear, or one hidden layer of ReLUs.
        optimizer: of the training.
        factor: one number a view, or one a coordinate, shrinks the irrelevant bits.
        lr: rate, constant.
        decoupled: weight decay times the rate, beside the gradient (AdamW).
        coupled: weight decay in the gradient.
        relevant: k, bits that augmentation keeps.
        dim: d, outputs in use, at most width.
        normalised: 1 puts outputs on the unit sphere, 0 leaves them as they are.
        temperature: T.
        every: steps between two records.
        records: after the start.
        inputs, width, hidden, batch: sizes.
        tasks, examples: of the probe; so many draws of labels, so many examples for training and for testing.
    """

    encoder: jd.Code = jd.code("linear", "mlp")
    optimizer: jd.Code = jd.code("adam", "sgd")
    factor: jd.Code = jd.code("scalar", "coordinate")
    lr: jd.Swept = 3e-3
    decoupled: jd.Swept = 0.0
    coupled: jd.Swept = 0.0
    relevant: jd.Swept = 5.0
    dim: jd.Swept = 10.0
    normalised: jd.Swept = 1.0
    temperature: jd.Swept = 0.5
    every: jd.Swept = 750.0
    records: int = 4
    inputs: int = 10
    width: int = 32
    hidden: int = 64
    batch: int = 32
    tasks: int = 16
    examples: int = 500
    dtype: str = "float32"

    def __post_init__(self) -> None:
        jd.require(self, 1 <= self.relevant <= self.inputs, "relevant is from 1 to inputs", "relevant", "inputs")
        jd.require(self, 1 <= self.dim <= self.width, "dim is from 1 to width", "dim", "width")
        jd.require(self, self.normalised in (0, 1), "normalised is 0 or 1", "normalised")
        for name in ("lr", "temperature", "every"):
            jd.require(self, getattr(self, name) > 0, f"{name} is positive", name)
        for name in ("decoupled", "coupled"):
            jd.require(self, getattr(self, name) >= 0, f"{name} is not negative", name)
        for name in ("records", "hidden", "tasks"):
            jd.require(self, getattr(self, name) >= 1, f"{name} is at least 1", name)
        jd.require(self, self.batch >= 2 and self.examples >= 2, "both are at least 2", "batch", "examples")


def represent(s: Contrastive, params: model.Params, x: Float[Array, "*n D"]) -> Float[Array, "*n d"]:
    """The representation of views."""
    h = model.encode(params, x, s.encoder == "mlp", s.dim)
    return jnp.where(s.normalised > 0, model.on_sphere(h), h)


def new_batch(s: Contrastive, key: PRNGKeyArray) -> Float[Array, "two B D"]:
    """Both views of the points of one batch."""
    return hypercube.pair(key, s.batch, s.inputs, s.relevant, s.factor == "scalar", s.dtype)


def optimizer(s: Contrastive) -> optax.GradientTransformation:
    """Adam or SGD with both kinds of weight decay."""
    scaled = train.switched(s.optimizer, {"adam": optax.scale_by_adam(), "sgd": optax.identity()})
    tail = optax.stateless(lambda u, p: jax.tree.map(lambda g, w: (-s.lr * (g + s.decoupled * w)).astype(g.dtype), u, p))
    head = optax.stateless(lambda u, p: jax.tree.map(lambda g, w: g + (s.coupled * w).astype(g.dtype), u, p))
    return optax.chain(head, scaled, tail)


def downstream(s: Contrastive, params: model.Params, key: PRNGKeyArray) -> Float[Array, ""]:
    """Accuracy of linear probes on one view of new points, mean over tasks."""
    k_points, k_view, k_task = jax.random.split(key, 3)
    x = hypercube.points(k_points, 2 * s.examples, s.inputs, s.dtype)
    z = represent(s, params, hypercube.view(k_view, x, s.relevant, s.factor == "scalar"))
    y = hypercube.labels(k_task, x, s.relevant, s.tasks)
    n = s.examples
    return jnp.mean(model.accuracy(z[:n], y[:, :n], z[n:], y[:, n:]))


def irrelevant_share(s: Contrastive, params: model.Params, key: PRNGKeyArray) -> Float[Array, ""]:
    """Share of the squared change of the representation, over single bits turned, that is due to irrelevant bits."""
    x = hypercube.points(key, 64, s.inputs, s.dtype)
    turned = x[:, None, :] * (1 - 2 * jnp.eye(s.inputs, dtype=x.dtype))
    change = jnp.sum((represent(s, params, turned) - represent(s, params, x)[:, None]) ** 2, -1).mean(0)
    return jnp.sum(jnp.where(jnp.arange(s.inputs) < s.relevant, 0, change)) / jnp.sum(change)


def observe(s: Contrastive, params: model.Params, key: PRNGKeyArray) -> dict[str, Array]:
    """Loss on new batches, downstream accuracy, and what the representation depends on."""
    k_loss, k_probe, k_share = jax.random.split(key, 3)

    def one(k: PRNGKeyArray) -> Array:
        return model.nt_xent(represent(s, params, new_batch(s, k)), s.temperature)

    losses = jax.lax.map(one, jax.random.split(k_loss, BATCHES))
    return {
        "loss": jnp.mean(losses),
        "error": jnp.std(losses, ddof=1) / BATCHES**0.5,
        "accuracy": downstream(s, params, k_probe),
        "irrelevant": irrelevant_share(s, params, k_share),
    }


def trial(s: Contrastive, key: PRNGKeyArray) -> jd.Observables:
    """Training from scratch."""
    k_init, k_data, k_watch = jax.random.split(key, 3)
    tx = optimizer(s)

    def loss(params: model.Params, views: Array) -> Array:
        return model.nt_xent(represent(s, params, views), s.temperature)

    step = train.make_step(loss, tx, lambda i: new_batch(s, jax.random.fold_in(k_data, i)))
    start = train.init(tx, model.init(k_init, s.inputs, s.hidden, s.width, s.dtype))
    every = jnp.round(s.every).astype(jnp.int32)
    last, curves = train.record(step, start, lambda t: observe(s, t.params, k_watch), samples=s.records, every=every)
    negatives = jnp.float64(2 * s.batch - 2)
    temperature, bits = jnp.asarray(s.temperature, jnp.float64), jnp.asarray(s.relevant, jnp.float64)
    moment = codes.bit_moment(bits, temperature)
    code = codes.loss(negatives, moment, temperature)
    code -= codes.jensen(negatives, moment, codes.bit_variance(bits, temperature), temperature)
    names = {name: jd.named(curve, "step") for name, curve in curves.items()}
    return jd.observables(
        predicted={"final": code, "least": codes.loss(negatives, codes.sphere_moment(s.dim, temperature), temperature)},
        measured={
            "final": curves["loss"][-1].astype(jnp.float64),
            "least": curves["loss"][-1].astype(jnp.float64),
            "accuracy": names["accuracy"],
            "loss": names["loss"],
        },
        recorded={
            "error": names["error"],
            "irrelevant": names["irrelevant"],
            "steps": jd.named((every * jnp.arange(s.records + 1)).astype(s.dtype), "step"),
        },
        assumed={"critical": codes.critical(bits, temperature)},
        status=train.finite_status(last.params),
    )
