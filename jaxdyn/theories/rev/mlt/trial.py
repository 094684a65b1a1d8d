r"""Training of GPT-2 style transformers on facts: all sequences are read along it, and logits between entities at the end.

The theory says of held-out sequences that they stay where a uniform guess is, and that the right answer is like any other among
those that are never asked for. Letters as in ``sentences.py``.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray, PyTree

import jaxdyn as jd
from jaxdyn import nn
from jaxdyn import train as loop
from jaxdyn.theories.rev.mlt import attention, logits, model, sentences

GROUPS = ("training, A to B", "training, B to A", "one-way, learned", "one-way, unseen")


@jd.setting
class Deep:
    """A task and a transformer; the defaults train in seconds on two cores.

    Args:
        task: reversals; chains ("cot"), also of tokens with a common index ("relevant"); reversals within a sequence ("context").
    """

    lr: jd.Swept = jd.field(1e-3, above=0)  # rate of AdamW
    decay: jd.Swept = jd.field(0.01, at_least=0)  # decoupled
    shown: jd.Swept = jd.field(1.0, above=0, at_most=1)  # share of the training facts that are shown at all
    validation: jd.Code = jd.code("unseen", "trained")  # whether validation sequences are in training
    loss: jd.Code = jd.code("entity", "sequence")  # cross-entropy of the last entity, or of every token after the first
    embeddings: jd.Code = jd.code("trained", "frozen")  # of tokens and positions
    readout: jd.Code = jd.code("network", "alone")  # alone: no blocks, a tied and nearly symmetric read-out of one token
    task: Literal["reversal", "cot", "relevant", "context"] = "reversal"
    vocabulary: int = 80  # tokens for entities
    word: int = 1  # tokens of an entity
    width: int = 64  # of the residual stream
    layers: int = 2  # blocks of the transformer
    heads: int = 4  # of attention in a block
    position: Literal["none", "learned", "rotary"] = "learned"  # encoding of the positions
    dropout: float = 0.0  # share of entries that is dropped in training
    batch: int = jd.field(32, at_least=1)  # the largest batch
    epochs: int = jd.field(400, at_least=1)  # passes over the training sequences
    every: int = jd.field(10, at_least=1)  # epochs between records
    dtype: str = "float32"

    def __post_init__(self) -> None:
        """Refuse sizes that a task or the network cannot have, and records that end before the run."""
        shape(self)
        jd.require(self, self.epochs % self.every == 0, "epochs is a multiple of every", "epochs", "every")


class Run(NamedTuple):
    """The weights at both ends, and the negative log-probability of the last entity of all sequences at every record."""

    start: PyTree
    params: PyTree
    nll: Float[Array, "record S"]


def sizes(s: Deep) -> sentences.Sizes:
    """Numbers of the setting's task."""
    return sentences.sizes(s.task, s.vocabulary, s.word)


def shape(s: Deep) -> nn.Transformer:
    """The transformer of a setting; the last token is never read."""
    size = sizes(s)
    options = {"width": s.width, "layers": s.layers, "heads": s.heads, "dropout": s.dropout, "position": s.position}
    return nn.gpt2(size.tokens, length=size.length - 1, dtype=s.dtype, **options)


def network(s: Deep) -> nn.Network:
    """``init`` and ``apply`` of the setting's transformer."""
    return nn.network(shape(s))


def shown_mask(s: Deep) -> Bool[Array, " S"]:
    """Which sequences are in training."""
    size, owner = sizes(s), sentences.owners(s.task, s.vocabulary, s.word)
    share = jnp.asarray(s.shown)
    shown = jnp.asarray(owner < 0) | (jnp.asarray(owner, share.dtype) < share * size.train_facts - 1e-3)
    validation = jnp.arange(len(owner)) >= size.train
    return jnp.where(validation, s.validation == "trained", shown)


def train(s: Deep, facts: sentences.Facts, key: PRNGKeyArray) -> Run:
    """Train one network from its start; read all sequences at every record."""
    k_init, k_batch = jax.random.split(key)
    net, word = network(s), sizes(s).word
    alone = s.readout == "alone"
    tx = model.optimizer(s.lr, s.decay, s.embeddings == "frozen", alone)
    sequences = model.ordered(facts.sequences, word, alone)
    size = model.batch_size(len(sequences), s.batch)
    batch, count = model.make_batch(sequences, shown_mask(s), size, k_batch)
    options = {"word": word, "whole": s.loss == "sequence", "dropout": s.dropout > 0}
    step = loop.make_step(lambda params, b: model.objective(net, params, b, **options), tx, batch)
    start = model.read_out_alone(net.init(k_init), alone)
    state = loop.init(tx, start)

    def read(state: loop.State) -> Float[Array, " S"]:
        return model.word_loss(net, state.params, sequences, word)

    state, nll = loop.record(step, state, read, samples=s.epochs // s.every, every=s.every * count)
    return Run(start, state.params, nll)


def trial(s: Deep, key: PRNGKeyArray) -> jd.Observables:
    """Train; the mean NLL of training and held-out words, next to 0 and a uniform guess; and logits between entities."""
    k_facts, k_train = jax.random.split(key)
    facts = sentences.sample(k_facts, s.task, s.vocabulary, s.word)
    # losses along training, and those of a uniform guess
    run, size = train(s, facts, k_train), sizes(s)
    shown = shown_mask(s)[: size.train].astype(run.nll.dtype)
    training, validation = run.nll[:, : size.train] @ shown / jnp.sum(shown), jnp.mean(run.nll[:, size.train :], 1)
    guess = jnp.full((), size.word * np.log(s.vocabulary), s.dtype)
    predicted: dict[str, Any] = {"train": jnp.zeros_like(guess), "validation": guess}
    measured: dict[str, Any] = {"train": training[-1], "validation": validation[-1]}
    recorded = {
        "train": jd.named(training, "epoch"),
        "validation": jd.named(validation, "epoch"),
        "lowest": jnp.min(validation),
        "same_kind": jnp.mean(run.nll[-1, sentences.same_kind(s.task, size)]),
    }
    # logits between entities
    coords: dict[str, Any] = {"epoch": range(0, s.epochs + 1, s.every)}
    if s.task in logits.MAPS:
        maps = logits.heat_maps(network(s), run.params, facts, s.task, s.vocabulary, s.readout == "alone")
        scores, same = logits.held_out(maps, facts.forward, s.task)
        wins, excess = logits.among(scores, same)
        anew = logits.among(scores[0][..., logits.reassigned(same)], same)  # the same answers, reassigned to other questions
        predicted |= {"wins": jd.named(jnp.full_like(wins[0], 0.5), "read"), "excess": jd.named(jnp.zeros_like(excess[0]), "read")}
        measured |= {"wins": jd.named(wins[0], "read"), "excess": jd.named(excess[0], "read")}
        z = logits.diagonal_z(maps)
        recorded |= {
            "learned_excess": jd.named(excess[1], "read"),
            "reassigned_wins": jd.named(anew[0], "read"),
            "reassigned_excess": jd.named(anew[1], "read"),
            "logits": jd.named(maps, "read map given answer"),
            "z": jd.named(z, "read map given"),
            "forward": jd.named(facts.forward, "held"),
            "cosine": jd.named(logits.cosines(run.params, facts), "given answer"),
        }
        coords |= {"read": logits.READS, "map": tuple(logits.MAPS[s.task])}
        if s.task == "reversal":
            recorded["group_z"], coords["group"] = jd.named(grouped(z, facts.forward), "read group"), GROUPS
            recorded |= between_entities(s, facts, run)
            coords |= {"partner": attention.PARTNERS, "pairs": attention.PAIRS}
    return jd.observables(predicted=predicted, measured=measured, recorded=recorded, coords=coords)


def between_entities(s: Deep, facts: sentences.Facts, run: Run) -> dict[str, Any]:
    """The asymmetry of the attention logits between entities at both ends, that of random matrices, and what tells direction."""
    forward = facts.forward
    before, _ = attention.entity_logits(shape(s), run.start, facts)
    z, inputs = attention.entity_logits(shape(s), run.params, facts)
    own, kind = attention.direction(z, forward)
    return {
        "asymmetry_before": jd.named(attention.asymmetry(before, forward)[0], "layer pairs"),
        "asymmetry": jd.named(attention.asymmetry(z, forward), "partner layer pairs"),
        "random_asymmetry": jd.named(attention.random_asymmetry(inputs, len(forward)), "layer pairs"),
        "direction": jd.named(own, "layer pairs"),
        "kind": jd.named(kind, "layer"),
    }


def grouped(z: Float[Array, "read 2 m"], forward: Bool[Array, " T"]) -> Float[Array, "read group"]:
    """Mean z-score of each group in ``GROUPS``; of a one-way pair the learned direction is A to B if ``forward``."""
    p = z.shape[-1] - len(forward)
    there, back = z[:, 0, p:], z[:, 1, p:]
    one_way = jnp.where(forward, there, back), jnp.where(forward, back, there)
    return jnp.stack([jnp.mean(x, -1) for x in (z[:, 0, :p], z[:, 1, :p], *one_way)], -1)


# arXiv:2405.04669, section 5, and the defaults of its released code
PAPER = jd.grid(Deep, vocabulary=800, width=768, layers=24, heads=12, dropout=0.1, lr=0.01, batch=64, epochs=3000, every=20)
