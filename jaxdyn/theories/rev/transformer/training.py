r"""How a transformer is trained on the facts: AdamW on shuffled epochs, cross-entropy of the last entity or of every token.

Source: arXiv:2405.04669, section 5, and the defaults of its released code: GPT-2 blocks, 24 layers, 12 heads, width 768, dropout
.1, rate .01, decay .01, betas (.9, .999), batch 64, 3000 epochs, V = 800. Letters as in :mod:`data`; b sequences a batch.
Departure: the batches of an epoch are of (nearly) one size, so that none is small: at V = 800, six of at most 58 rather than five
of 64 and one of 20.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree

import jaxdyn as jd
from jaxdyn import nn
from jaxdyn import train as training_loop
from jaxdyn.errors import UsageError, given
from jaxdyn.theories.rev.transformer import data

__all__ = [
    "PUBLISHED",
    "Batch",
    "Deep",
    "Run",
    "make_batch",
    "network",
    "objective",
    "shown_mask",
    "sizes",
    "token_loss",
    "train",
    "word_loss",
]

PUBLISHED: dict[str, Any] = {
    "vocabulary": 800,
    "width": 768,
    "layers": 24,
    "heads": 12,
    "dropout": 0.1,
    "lr": 0.01,
    "batch": 64,
    "epochs": 3000,
    "every": 20,
}
FROZEN = ("embed", "position")


@jd.setting
class Deep:
    """A task and a transformer; the defaults train in seconds on two cores."""

    lr: jd.Swept = 1e-3
    decay: jd.Swept = 0.01  # decoupled
    shown: jd.Swept = 1.0  # share of the training facts that are shown at all
    validation: jd.Code = jd.code("unseen", "trained")  # whether validation sequences are kept out of training
    loss: jd.Code = jd.code("entity", "sequence")  # cross-entropy of the last entity, or of every token after the first
    embeddings: jd.Code = jd.code("trained", "frozen")  # of tokens and positions
    task: Literal["reversal", "cot", "relevant", "context"] = "reversal"
    vocabulary: int = 80  # tokens for entities
    word: int = 1  # tokens of an entity
    width: int = 64
    layers: int = 2
    heads: int = 4
    position: Literal["none", "learned", "rotary"] = "learned"
    dropout: float = 0.0
    batch: int = 32  # most sequences in one
    epochs: int = 400
    every: int = 10  # epochs between records
    dtype: str = "float32"

    def __post_init__(self) -> None:
        """Refuse sizes that a task or the network cannot have, rates that are none, and records that end before the run."""
        size = data.sizes(self.task, self.vocabulary, self.word)
        shape(self)
        if self.lr <= 0 or self.decay < 0 or not 0 < self.shown * size.train_facts <= size.train_facts:
            raise UsageError("lr > 0, decay >= 0 and 0 < shown <= 1, " + given(self, "lr", "decay", "shown"))
        if self.batch < 1 or self.every < 1 or self.epochs < self.every or self.epochs % self.every:
            found = given(self, "batch", "epochs", "every")
            raise UsageError(f"batch is positive, and epochs a positive multiple of every, {found}")


class Batch(NamedTuple):
    """Sequences of a step, which of them count, and the key of its dropout."""

    sequences: Int[Array, "b n"]
    present: Bool[Array, " b"]
    key: PRNGKeyArray


class Run(NamedTuple):
    """The weights at the end, and :func:`word_loss` of all sequences at every record."""

    params: PyTree
    nll: Float[Array, "record S"]


def sizes(s: Deep) -> data.Sizes:
    """Numbers of the setting's task."""
    return data.sizes(s.task, s.vocabulary, s.word)


def shape(s: Deep) -> nn.Shape:
    """The transformer of a setting; the last token is never read."""
    size = sizes(s)
    options = {"width": s.width, "layers": s.layers, "heads": s.heads, "dropout": s.dropout, "position": s.position}
    return nn.gpt2(size.tokens, length=size.length - 1, dtype=s.dtype, **options)


def network(s: Deep) -> nn.Network:
    """``init`` and ``apply`` of the setting's transformer."""
    return nn.network(shape(s))


def token_loss(
    net: nn.Network, params: PyTree, sequences: Int[Array, "b n"], key: PRNGKeyArray | None = None
) -> Float[Array, "b n-1"]:
    """Negative log-probability of every token but the first, given all before it."""
    logits = net.apply(params, sequences[:, :-1], key=key)
    return -jnp.take_along_axis(jax.nn.log_softmax(logits, -1), sequences[:, 1:, None], -1)[..., 0]


def word_loss(net: nn.Network, params: PyTree, sequences: Int[Array, "b n"], word: int) -> Float[Array, " b"]:
    """Negative log-probability of the last entity: the sum over its tokens, each given the true ones before it."""
    return jnp.sum(token_loss(net, params, sequences)[:, -word:], -1)


def objective(s: Deep, net: nn.Network, params: PyTree, batch: Batch) -> Float[Array, ""]:
    """Mean cross-entropy over the tokens of the last entity, or of the whole sequence, of the batch's sequences."""
    each = token_loss(net, params, batch.sequences, batch.key if s.dropout else None)
    last = jnp.arange(each.shape[1]) >= each.shape[1] - sizes(s).word
    whole = s.loss == 1
    counted = (batch.present[:, None] & (last | whole)).astype(each.dtype)
    return jnp.sum(each * counted) / jnp.sum(counted)


def shown_mask(s: Deep) -> Bool[Array, " S"]:
    """Which sequences are in training."""
    size, owner = sizes(s), data.owners(s.task, s.vocabulary, s.word)
    share = jnp.asarray(s.shown)
    shown = jnp.asarray(owner < 0) | (jnp.asarray(owner, share.dtype) < share * size.train_facts - 1e-3)
    held = jnp.arange(len(owner)) >= size.train
    return jnp.where(held, s.validation == 1, shown)


def batch_size(s: Deep) -> int:
    """Sequences of a batch: at most ``batch``, and an epoch of all sequences in as many batches as that needs."""
    total = sizes(s).train + sizes(s).validation
    return -(-total // -(-total // s.batch))


def make_batch(s: Deep, sequences: Int[Array, "S n"], shown: Bool[Array, " S"], key: PRNGKeyArray) -> Any:
    """``batch(step) -> Batch``, and the number of batches an epoch (traced): each epoch shows every sequence in ``shown`` once.

    The order of an epoch comes from its number, the dropout of a step from its number.
    """
    size, total = batch_size(s), len(sequences)
    k_order, k_drop = jax.random.split(key)
    used = jnp.sum(shown, dtype=jnp.int32)
    count = (used + size - 1) // size
    slots = jnp.arange(size, dtype=jnp.int32)

    def batch(step: Int[Array, ""]) -> Batch:
        draws = jax.random.uniform(jax.random.fold_in(k_order, step // count), (total,), jnp.float32)
        order = jnp.argsort(jnp.where(shown, draws, 2.0))  # those in training first, in random order
        place = step % count * size + slots
        return Batch(sequences[order[jnp.minimum(place, total - 1)]], place < used, jax.random.fold_in(k_drop, step))

    return batch, count


def optimizer(s: Deep) -> optax.GradientTransformation:
    """AdamW; frozen embeddings are moved by nothing, decay included."""

    def hold(updates: PyTree, params: PyTree) -> PyTree:
        moves = 1 - jnp.asarray(s.embeddings, s.dtype)
        return {name: x * moves if name in FROZEN else x for name, x in updates.items()}

    return optax.chain(optax.adamw(s.lr, b1=0.9, b2=0.999, weight_decay=s.decay), optax.stateless(hold))


def train(s: Deep, facts: data.Facts, key: PRNGKeyArray) -> Run:
    """Train one network from its start; read all sequences at every record."""
    k_init, k_batch = jax.random.split(key)
    net, tx = network(s), optimizer(s)
    batch, count = make_batch(s, facts.sequences, shown_mask(s), k_batch)
    step = training_loop.make_step(lambda params, b: objective(s, net, params, b), tx, batch)
    state = training_loop.init(tx, net.init(k_init))
    word = sizes(s).word

    def read(state: training_loop.State) -> Float[Array, " S"]:
        return word_loss(net, state.params, facts.sequences, word)

    state, nll = training_loop.record(step, state, read, samples=s.epochs // s.every, every=s.every * count)
    return Run(state.params, nll)
