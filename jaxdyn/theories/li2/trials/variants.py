r"""Two variants of the network in training: complex weights, and residual blocks between the hidden layer and the top.

.. math:: \hat Y = \mathrm{Re}\bigl((XW)^2 V\bigr), \; W, V \text{ complex}; \qquad
    \hat Y = F_L V, \; F_0 = \sigma(XW), \; F_{l} = \sigma(F_{l-1} + F_{l-1} W_l), \; \sigma = \text{relu}

Complex numbers are kept as pairs of real ones. A real network is the complex one whose imaginary parts start at zero and get no
gradient; a network of fewer blocks skips the others: all of a kind are one program. Weights start uniform within one over the root
of the fan-in, real and imaginary parts within that over the root of 2, so that both kinds start with the same mean square.
Full batch, Adam with coupled decay, the loss of :mod:`jaxdyn.theories.li2.trials.training`.
Source: arXiv:2509.21519, figures 9-13 and 17. Letters: M elements, K hidden nodes, D = 2M, n pairs, L blocks.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import train as training_loop
from jaxdyn.data.groups import parse
from jaxdyn.data.irreps import decompose
from jaxdyn.linalg import dense
from jaxdyn.theories.li2 import model
from jaxdyn.theories.li2.trials import diversity, training
from jaxdyn.theories.li2.trials.zero_init import KNOWN, reached

__all__ = ["MOST", "Deep", "Plane", "Variant", "features", "init", "predict", "trial"]

MOST = 2  # residual blocks


class Plane(NamedTuple):
    """Real and imaginary parts of the weights."""

    w: Float[Array, "2 D K"]
    v: Float[Array, "2 K M"]


class Deep(NamedTuple):
    """A network with residual blocks."""

    w: Float[Array, "D K"]
    blocks: Float[Array, "L K K"]
    v: Float[Array, "K M"]


@jd.setting
class Variant:
    """A network and its training."""

    share: jd.Swept = 0.8  # of all pairs, to train on
    lr: jd.Swept = 0.005
    decay: jd.Swept = 5e-5  # coupled, of all weights
    top: jd.Swept = 1.0  # factor of V at the start
    imaginary: jd.Swept = 0.0  # 1 for complex weights, 0 for real ones
    blocks: jd.Swept = 0.0  # residual blocks in use
    kind: Literal["complex", "residual"] = "complex"
    group: str = "23"
    hidden: int = 256
    epochs: int = 400
    every: int = 5  # epochs between records
    dtype: str = "float32"

    def __post_init__(self) -> None:
        """Refuse shares without a pair to train or test on, records that do not end with the run, and blocks that are not there."""
        pairs = parse(self.group).order ** 2
        jd.require(self, 1 <= round(self.share * pairs) < pairs, "share leaves a pair to train on and one to test on", "share")
        jd.require(self, self.hidden >= 1, "a network has at least one hidden node", "hidden")
        jd.require(self, self.every >= 1 and self.epochs % self.every == 0, "epochs is a multiple of every", "epochs", "every")
        jd.require(self, self.imaginary in (0, 1), "imaginary is 0 or 1", "imaginary")
        jd.require(self, self.blocks in range(MOST + 1), f"blocks is a whole number from 0 to {MOST}", "blocks")

    @property
    def pairs(self) -> float:
        """The share of all pairs that is trained on."""
        return self.share


def init(s: Variant, key: PRNGKeyArray) -> Plane | Deep:
    """Weights at the start."""
    order = parse(s.group).order
    top = jnp.asarray(s.top, s.dtype)
    if s.kind == "complex":
        both = jax.vmap(lambda k: model.init(k, order, s.hidden, s.dtype))(jax.random.split(key))
        part = jnp.stack([1 - s.imaginary / 2, s.imaginary / 2]).astype(s.dtype)[:, None, None] ** 0.5
        return Plane(both.w * part, both.v * part * top)
    k_ends, k_blocks = jax.random.split(key)
    ends = model.init(k_ends, order, s.hidden, s.dtype)
    blocks = jax.random.uniform(k_blocks, (MOST, s.hidden, s.hidden), s.dtype, -1, 1) / jnp.sqrt(jnp.array(s.hidden, s.dtype))
    return Deep(ends.w, blocks, ends.v * top)


def features(s: Variant, p: Plane | Deep, samples: Int[Array, "n 2"]) -> Float[Array, "... n K"]:
    """What the top layer reads: for complex weights the real and imaginary parts, [2, n, K]."""
    if isinstance(p, Plane):
        a, b = (model.preactivations(w, samples) for w in p.w)
        return jnp.stack([a * a - b * b, 2 * a * b])
    x = jax.nn.relu(model.preactivations(p.w, samples))
    for number, block in enumerate(p.blocks):
        # not jnp.where: the products of a block that is not in use would be most of the work
        x = jax.lax.cond(number < s.blocks, lambda x, block: jax.nn.relu(x + dense(x, block)), lambda x, _: x, x, block)
    return x


def predict(s: Variant, p: Plane | Deep, samples: Int[Array, "n 2"]) -> Float[Array, "n M"]:
    """The network's outputs, without their mean over elements."""

    def both(p: Plane) -> Float[Array, "n M"]:
        f = features(s, p, samples)
        return dense(f[0], p.v[0]) - dense(f[1], p.v[1])

    def real(p: Plane) -> Float[Array, "n M"]:
        return dense(jnp.square(model.preactivations(p.w[0], samples)), p.v[0])

    o = jax.lax.cond(s.imaginary > 0, both, real, p) if isinstance(p, Plane) else dense(features(s, p, samples), p.v)
    return o - jnp.mean(o, 1, keepdims=True)


def loss(s: Variant, p: Plane | Deep, d: training.Data) -> Float[Array, ""]:
    """Mean over the pairs that are trained on of the squared centred residual."""
    order = parse(s.group).order
    o = predict(s, p, d.samples.reshape(-1, 2))
    aim = (d.labels.reshape(-1, 1) == jnp.arange(order)).astype(o.dtype) - 1 / order
    each = jnp.sum(jnp.square(o - aim), 1)
    return jnp.sum(jnp.where(d.number.ravel() < d.count, each, 0)) / d.count.astype(o.dtype)


def trial(s: Variant, key: PRNGKeyArray) -> jd.Observables:
    """When one network generalises, where its training ends, and how pure the nodes of its hidden layer are then and before.

    The purity of a node is the largest share that one irrep (or conjugate pair) has of its squared weights, for complex weights
    of both parts together; live nodes alone count.
    """
    k_data, k_init = jax.random.split(key)
    d, start = training.data(s, k_data), init(s, k_init)
    moved = jnp.stack([1.0, s.imaginary]).astype(s.dtype)[:, None, None]

    def held(slope: Plane | Deep) -> Plane | Deep:
        return jax.tree.map(lambda x: x * moved, slope) if s.kind == "complex" else slope

    adam = optax.chain(optax.add_decayed_weights(s.decay), optax.scale_by_adam(), optax.scale_by_learning_rate(s.lr))
    tx = optax.chain(optax.stateless(lambda slope, _: held(slope)), adam)
    step = training_loop.make_step(lambda p: loss(s, p, d), tx)

    def record(now: Plane | Deep, _: Plane | Deep) -> dict[str, Array]:
        o = predict(s, now, d.samples.reshape(-1, 2))
        return training.scores(o.reshape(*d.labels.shape, -1), d)

    state, curves = training.along(step, training_loop.init(tx, start), record, s.epochs // s.every, s.every, KNOWN)
    irreps = decompose(parse(s.group))

    def pure(p: Plane | Deep) -> Float[Array, ""]:
        w = jnp.concatenate(list(p.w), 1) if s.kind == "complex" else p.w
        return diversity.nodes(w.astype(jnp.float64), irreps).purity

    return jd.observables(
        measured={"time": reached(curves["test_accuracy"], s.every), "purity": pure(state.params)},
        recorded={"random_purity": pure(start)}
        | {name: jd.named(curves[name].astype(jnp.float64), "epoch") for name in ("train_accuracy", "test_accuracy")},
        status=training_loop.finite_status(state.params),
        coords={"epoch": range(0, s.epochs + 1, s.every)},
    )
