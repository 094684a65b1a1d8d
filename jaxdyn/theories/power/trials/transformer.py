r"""A transformer that learns the table of a group from a share of its pairs: when it knows them, and when all others.

It reads the tokens :math:`(a, b, =)` and gives :math:`ab` after the last; AdamW on random batches of the pairs it is trained on,
with a rate that rises in the first ten steps.
Source: arXiv:2201.02177, section 2 and appendix A.1 (causal decoder with two layers, width 128 and 4 heads, about 4e5 weights;
batches of 512, rate 1e-3, decay 1). Departures: a gated MLP and RMS norms (:mod:`jaxdyn.nn.decoder`), no token for the operation.
Letters: M elements, n pairs.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

import jaxdyn as jd
from jaxdyn import train as loop
from jaxdyn.data.groups import parse
from jaxdyn.nn.decoder import Decoder, init, read
from jaxdyn.nn.thoughts import think
from jaxdyn.theories.li2 import model
from jaxdyn.theories.li2.trials.training import along
from jaxdyn.theories.li2.trials.zero_init import KNOWN, reached

__all__ = ["Transformer", "answers", "shape", "trial"]

WARM = 10  # steps of a rising rate


@jd.setting
class Transformer:
    """A network and its training; it is trained no further once it generalises.

    Args:
        share: of all pairs, to train on.
        lr: largest rate of AdamW.
        decay: its decoupled weight decay.
        group: whose table is learned.
        width, heads, hidden, layers, std: of the decoder; ``std`` is that of its weights at the start.
        batch: pairs in a step.
        steps, every: of training, and between two records.
        dtype: of the network.
    """

    share: jd.Swept = 0.5
    lr: jd.Swept = 3e-3
    decay: jd.Swept = 1.0
    group: str = "31"
    width: int = 32
    heads: int = 4
    hidden: int = 64
    layers: int = 2
    std: float = 0.1
    batch: int = 128
    steps: int = 4000
    every: int = 50
    dtype: str = "float32"

    def __post_init__(self) -> None:
        """Refuse names that are no groups, shares without pairs to train or test on, records that do not end with the run."""
        pairs = parse(self.group).order ** 2
        jd.require(self, 1 <= round(self.share * pairs) < pairs, "share leaves a pair to train on and one to test on", "share")
        jd.require(self, self.batch >= 1, "batch is at least 1", "batch")
        whole = 1 <= self.every <= self.steps and self.steps % self.every == 0
        jd.require(self, whole, "steps is a positive multiple of every", "steps", "every")


def shape(s: Transformer) -> Decoder:
    """The decoder; its last token is "="."""
    return Decoder(
        vocabulary=parse(s.group).order + 1,
        width=s.width,
        layers=s.layers,
        heads=s.heads,
        hidden=s.hidden,
        position="learned",
        length=3,
        std=s.std,
        scan=False,
        dtype=s.dtype,
    )


def answers(s: Transformer, params: PyTree, pairs: Int[Array, "n 2"]) -> Float[Array, "n M"]:
    """Logits of the product of each pair."""
    order = parse(s.group).order
    tokens = jnp.concatenate([pairs, jnp.full((len(pairs), 1), order, pairs.dtype)], 1)
    return read(shape(s), params, think(shape(s), params, tokens, 0)[0])[:, :order]  # the last layer for the last token alone


def trial(s: Transformer, key: PRNGKeyArray) -> jd.Observables:
    """The steps until the accuracy on the pairs of training, and on all others, is .95; twice all steps if it never is."""
    k_pairs, k_init, k_batch = jax.random.split(key, 3)
    every = parse(s.group).order ** 2
    number = jax.random.permutation(k_pairs, jnp.arange(every, dtype=jnp.int32))
    pairs = jnp.stack(jnp.divmod(number, parse(s.group).order), -1)  # the first ones are trained on
    right = model.products(parse(s.group), pairs)
    count = jnp.round(jnp.asarray(s.share) * every).astype(jnp.int32)
    known = jnp.arange(every, dtype=jnp.int32) < count
    tx = optax.adamw(lambda i: s.lr * jnp.minimum(1.0, (i + 1) / WARM), b1=0.9, b2=0.98, weight_decay=s.decay)

    def batch(i: Int[Array, ""]) -> Int[Array, " b"]:
        return jax.random.randint(jax.random.fold_in(k_batch, i), (s.batch,), 0, count, jnp.int32)

    def loss(params: PyTree, at: Int[Array, " b"]) -> Float[Array, ""]:
        return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(answers(s, params, pairs[at]), right[at]))

    def record(params: PyTree, _: PyTree) -> dict[str, Array]:
        hit = jnp.argmax(answers(s, params, pairs), -1) == right
        shares = {"train_accuracy": known, "test_accuracy": ~known}
        return {name: jnp.sum(hit & only) / jnp.sum(only) for name, only in shares.items()}

    start = loop.init(tx, init(shape(s), k_init))
    state, curves = along(loop.make_step(loss, tx, batch), start, record, s.steps // s.every, s.every, KNOWN)
    return jd.observables(
        measured={"fitted": reached(curves["train_accuracy"], s.every), "time": reached(curves["test_accuracy"], s.every)},
        recorded={name: jd.named(curve.astype(jnp.float64), "step") for name, curve in curves.items()},
        coords={"step": range(0, s.steps + 1, s.every)},
        status=loop.finite_status(state.params),
    )
