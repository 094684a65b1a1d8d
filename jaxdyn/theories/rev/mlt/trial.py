"""Training of GPT-2 style transformers on facts, and the runs that the claims on reversal share.

How a transformer learns the facts: cross-entropy of the last entity or of every token, on shuffled epochs, by AdamW.

Letters as in ``logits.py``; b sequences per batch. The network itself is :func:`jaxdyn.nn.gpt2`.
Source: arXiv:2405.04669, section 5, and the defaults of its released code. Departure: the batches of an epoch are of (nearly) equal
size, so that none is small: at V = 800, six of at most 58 rather than five of 64 and one of 20.

Training of GPT-2 style transformers on facts: all sequences are read along it, and logits between entities at the end.

The theory says of held-out sequences that they stay where a uniform guess is, and that the right answer is like any other among
those that are never asked for. Letters as in ``logits.py``.

The runs that the claims on reversal in GPT-2 style transformers share, and when their training sequences are known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree

import jaxdyn as jd
from jaxdyn import nn
from jaxdyn import train as loop
from jaxdyn.theories.rev.mlt import logits

FROZEN = ("embed", "position")
SILENT = ("o", "o_bias", "down", "down_bias")  # what a block adds to the residual stream passes through these
Scalar = float | Float[Array, ""]


class Batch(NamedTuple):
    """Sequences of a step, which of them count, and the key of its dropout."""

    sequences: Int[Array, "b n"]
    present: Bool[Array, " b"]
    key: PRNGKeyArray


def token_loss(
    net: nn.Network, params: PyTree, sequences: Int[Array, "b n"], key: PRNGKeyArray | None = None
) -> Float[Array, "b n-1"]:
    """Negative log-probability of every token but the first, given all before it."""
    logits = net.apply(params, sequences[:, :-1], key=key)
    return -jnp.take_along_axis(jax.nn.log_softmax(logits, -1), sequences[:, 1:, None], -1)[..., 0]


def word_loss(net: nn.Network, params: PyTree, sequences: Int[Array, "b n"], word: int) -> Float[Array, " b"]:
    """Negative log-probability of the last entity: the sum over its tokens, each given the true ones before it."""
    return jnp.sum(token_loss(net, params, sequences)[:, -word:], -1)


def objective(
    net: nn.Network, params: PyTree, batch: Batch, *, word: int, whole: bool | Bool[Array, ""], dropout: bool
) -> Float[Array, ""]:
    """Mean cross-entropy over the tokens of the last entity, or (``whole``) of the whole sequence, of the batch's sequences."""
    each = token_loss(net, params, batch.sequences, batch.key if dropout else None)
    last = jnp.arange(each.shape[1]) >= each.shape[1] - word
    counted = (batch.present[:, None] & (last | whole)).astype(each.dtype)
    return jnp.sum(each * counted) / jnp.sum(counted)


def batch_size(total: int, largest: int) -> int:
    """Sequences of a batch: at most ``largest``, and an epoch of ``total`` sequences in as many batches as that needs."""
    return -(-total // -(-total // largest))


def make_batch(
    sequences: Int[Array, "S n"], shown: Bool[Array, " S"], size: int, key: PRNGKeyArray
) -> tuple[Callable[[Int[Array, ""]], Batch], Int[Array, ""]]:
    """``batch(step) -> Batch``, and the number of batches per epoch (traced): an epoch shows each sequence in ``shown`` once.

    The order of an epoch is a function of its number, the dropout of a step of the step's number.
    """
    total = len(sequences)
    k_order, k_drop = jax.random.split(key)
    used = jnp.sum(shown, dtype=jnp.int32)
    count = (used + size - 1) // size
    slots = jnp.arange(size, dtype=jnp.int32)

    def batch(step: Int[Array, ""]) -> Batch:
        scores = jax.random.uniform(jax.random.fold_in(k_order, step // count), (total,), jnp.float32)
        order = jnp.argsort(jnp.where(shown, scores, 2.0))  # those in training first, in random order
        place = step % count * size + slots
        return Batch(sequences[order[jnp.minimum(place, total - 1)]], place < used, jax.random.fold_in(k_drop, step))

    return batch, count


def optimizer(
    lr: Scalar, decay: Scalar, frozen: bool | Bool[Array, ""], alone: bool | Bool[Array, ""] = False
) -> optax.GradientTransformation:
    """AdamW; frozen embeddings (of tokens and positions) do not move, nor decay; ``alone``: only those of tokens do."""

    def freeze(updates: PyTree, params: PyTree) -> PyTree:
        def fixed(name: str) -> bool | Bool[Array, ""]:
            return frozen | (alone & (name != "embed")) if name in FROZEN else alone

        return {name: jax.tree.map(lambda x, name=name: jnp.where(fixed(name), 0, x), u) for name, u in updates.items()}

    return optax.chain(optax.adamw(lr, b1=0.9, b2=0.999, weight_decay=decay), optax.stateless(freeze))


def read_out_alone(params: PyTree, alone: bool | Bool[Array, ""]) -> PyTree:
    r"""The network's start or, where ``alone``, one whose blocks and positions do nothing: its tied read-out is all there is.

    Its last position's token x then has the logits :math:`N(e_x)^\top D\, e_y`, with embeddings e, the norm N and the norm's gain
    D, of alternating signs. Except for the norm they are symmetric in x and y: what raises y after x raises x after y.
    """

    def chosen(x: Array, other: Array) -> Array:
        return jnp.where(alone, other, x)

    gain = params["norm"]
    signs = jnp.where(jnp.arange(len(gain)) % 2 == 0, 1, -1).astype(gain.dtype)
    silent = {name: chosen(x, jnp.zeros_like(x)) for name, x in params["blocks"].items() if name in SILENT}
    changed = {"blocks": params["blocks"] | silent, "norm": chosen(gain, signs)}
    if "position" in params:
        changed["position"] = chosen(params["position"], jnp.zeros_like(params["position"]))
    return params | changed


def ordered(sequences: Int[Array, "S n"], word: int, swapped: bool | Bool[Array, ""]) -> Int[Array, "S n"]:
    """The sequences or, where ``swapped``, the same with the relation before the first entity."""
    places = np.arange(sequences.shape[1])
    places[: word + 1] = [word, *range(word)]
    return jnp.where(swapped, sequences[:, places], sequences)


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


def sizes(s: Deep) -> logits.Sizes:
    """Numbers of the setting's task."""
    return logits.sizes(s.task, s.vocabulary, s.word)


def shape(s: Deep) -> nn.Transformer:
    """The transformer of a setting; the last token is never read."""
    size = sizes(s)
    options: dict[str, Any] = {"width": s.width, "layers": s.layers, "heads": s.heads, "dropout": s.dropout, "position": s.position}
    return nn.gpt2(size.tokens, length=size.length - 1, dtype=s.dtype, **options)


def network(s: Deep) -> nn.Network:
    """``init`` and ``apply`` of the setting's transformer."""
    return nn.network(shape(s))


def shown_mask(s: Deep) -> Bool[Array, " S"]:
    """Which sequences are in training."""
    size, owner = sizes(s), logits.owners(s.task, s.vocabulary, s.word)
    share = jnp.asarray(s.shown)
    shown = jnp.asarray(owner < 0) | (jnp.asarray(owner, share.dtype) < share * size.train_facts - 1e-3)
    validation = jnp.arange(len(owner)) >= size.train
    return jnp.where(validation, s.validation == "trained", shown)


def train(s: Deep, facts: logits.Facts, key: PRNGKeyArray) -> Run:
    """Train one network from its start; read all sequences at every record."""
    k_init, k_batch = jax.random.split(key)
    net, word = network(s), sizes(s).word
    alone = s.readout == "alone"
    tx = optimizer(s.lr, s.decay, s.embeddings == "frozen", alone)
    sequences = ordered(facts.sequences, word, alone)
    size = batch_size(len(sequences), s.batch)
    batch, count = make_batch(sequences, shown_mask(s), size, k_batch)
    options: dict[str, Any] = {"word": word, "whole": s.loss == "sequence", "dropout": s.dropout > 0}
    step = loop.make_step(lambda params, b: objective(net, params, b, **options), tx, batch)
    start = read_out_alone(net.init(k_init), alone)
    state = loop.init(tx, start)

    def read(state: loop.State) -> Float[Array, " S"]:
        return word_loss(net, state.params, sequences, word)

    state, nll = loop.record(step, state, read, samples=s.epochs // s.every, every=s.every * count)
    return Run(start, state.params, nll)


def trial(s: Deep, key: PRNGKeyArray) -> jd.Observables:
    """Train; the mean NLL of training and held-out words, next to 0 and a uniform guess; and logits between entities."""
    k_facts, k_train = jax.random.split(key)
    facts = logits.sample(k_facts, s.task, s.vocabulary, s.word)
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
        "same_kind": jnp.mean(run.nll[-1, logits.same_kind(s.task, size)]),
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
            coords |= {"partner": logits.PARTNERS, "pairs": logits.PAIRS}
    return jd.observables(predicted=predicted, measured=measured, recorded=recorded, coords=coords)


def between_entities(s: Deep, facts: logits.Facts, run: Run) -> dict[str, Any]:
    """The asymmetry of the attention logits between entities at both ends, that of random matrices, and what tells direction."""
    forward = facts.forward
    before, _ = logits.entity_logits(shape(s), run.start, facts)
    z, inputs = logits.entity_logits(shape(s), run.params, facts)
    own, kind = logits.direction(z, forward)
    return {
        "asymmetry_before": jd.named(logits.asymmetry(before, forward)[0], "layer pairs"),
        "asymmetry": jd.named(logits.asymmetry(z, forward), "partner layer pairs"),
        "random_asymmetry": jd.named(logits.random_asymmetry(inputs, len(forward)), "layer pairs"),
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


SOURCE = "arXiv:2405.04669"
LEARNED = 0.05  # NLL below which training sequences are known
TRAINED = "NLL of training sequences at the end"


def known(ds: xr.Dataset) -> xr.DataArray:
    """NLL of training sequences at the end, compared with that of certainty."""
    return abs(ds.measured_train - ds.predicted_train)


NETWORK = (
    "A GPT-2 style transformer (width {width}, {layers} layers, learned positions, tied embeddings) trained by AdamW at the rate "
    "{lr} for {epochs} epochs on the last token of {facts}; {vocabulary} entities of one token each; {{seeds}} seeds."
)


def tested(facts: str) -> str:
    """The set-up of a claim on such facts."""
    fields = {name: f"{{{name}}}" for name in ("width", "layers", "lr", "epochs", "vocabulary")}
    return NETWORK.format(facts=facts, **fields)


SMALL = "GPT-2 style transformer of two layers with tied embeddings, trained for 400 epochs on the last entity of its facts,"
PAIRS = "pairs A, B: seven tenths of them asked for in both directions, the others in one that is drawn at random"

reversal = jd.Study(
    trial=trial,
    quick=jd.grid(Deep),
    paper=PAPER,
    seeds=20,
    max_seeds=80,
    paper_seeds=10,
    evidence="network",
    bounds=jd.tuned(on="0:20", confirmed_on="96000000:96000040"),
    source=f"{SOURCE}, section 5 and its heat maps of logits; thresholds ours",
    tested=tested(PAIRS),
)
