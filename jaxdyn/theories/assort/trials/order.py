r"""A small decoder trained from scratch on traces in which codes of a trained autoencoder replace the first tokens.

A run trains the autoencoder on chunks of traces, then the decoder on sequences of one kind, with codes of the trained encoder,
and lets it go on greedily after the prompts of problems that were not trained on. Kinds of sequences:

- "solution": the solution alone, no trace;
- "text": the trace as text, without delimiters;
- "all": all of the trace is replaced;
- "curriculum": m grows from 0 to all of the trace in equal stages, the last of which begins after ``ramp`` of the steps;
- "random": m is drawn for each example, one of 0, r, 2r, ... up to all of the trace;
- "permuted": as "random", with codes renamed at random in each example, so that they say nothing.

Source: arXiv:2502.03275, sections 3 and 4. Departure: sizes, tasks and the autoencoder are small; networks start from scratch.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

import jaxdyn as jd
from jaxdyn import nn, train
from jaxdyn.data import traces
from jaxdyn.nn import vq
from jaxdyn.theories.assort import model

__all__ = ["KINDS", "Assorted", "Coder", "fitted", "generate", "recode", "score", "trial"]

KINDS = ("solution", "text", "all", "curriculum", "random", "permuted")
BOOKS = ("gradient", "averages")


@jd.setting
class Assorted:
    """Task, autoencoder, decoder and their trainings.

    Args:
        kind: of the sequences, one of KINDS.
        book: how the codebook moves, by its gradient or as averages.
        lr: peak of the decoder's rate.
        vq_lr: rate of the autoencoder.
        beta: factor of its commitment.
        decay: of the averages.
        ramp: share of the steps before the curriculum's last stage.
        vq_steps: steps of the autoencoder; 0 leaves it as it starts.
    """

    kind: jd.Code = jd.code(*KINDS)
    book: jd.Code = jd.code(*BOOKS)
    lr: jd.Swept = 1e-2
    vq_lr: jd.Swept = 3e-3
    beta: jd.Swept = 0.25
    decay: jd.Swept = 0.95
    ramp: jd.Swept = 0.6
    vq_steps: jd.Swept = 300.0
    children: int = 1
    height: int = 4
    rate: int = 2
    codes: int = 32
    code_width: int = 16
    vq_hidden: int = 64
    vq_batch: int = 128
    width: int = 32
    layers: int = 2
    heads: int = 2
    hidden: int = 64
    batch: int = 32
    steps: int = 300
    samples: int = 1
    held_out: int = 64
    std: float = 0.1
    dtype: str = "float32"

    def __post_init__(self) -> None:
        jd.require(self, self.lr > 0 and self.vq_lr > 0, "both are positive", "lr", "vq_lr")
        jd.require(self, self.forest().trace % self.rate == 0, "the trace is a multiple of rate", "rate", "height", "children")
        jd.require(self, 0 <= self.ramp < 1 and 0 <= self.decay < 1, "both are at least 0 and below 1", "ramp", "decay")
        for name in ("batch", "vq_batch", "held_out", "samples"):
            jd.require(self, getattr(self, name) >= 1, f"{name} is at least 1", name)
        jd.require(
            self,
            self.steps >= 10 and self.steps % self.samples == 0,
            "steps is at least 10 and a multiple of samples",
            "steps",
            "samples",
        )
        self.chunks(), self.decoder()

    def forest(self) -> traces.Forest:
        """The task."""
        return traces.Forest(children=self.children, height=self.height)

    def chunks(self) -> vq.Chunks:
        """The autoencoder; its chunks are those of one code."""
        f = self.forest()
        return vq.Chunks(
            vocabulary=f.text,
            length=self.rate,
            rate=self.rate,
            codes=self.codes,
            width=self.code_width,
            hidden=self.vq_hidden,
            dtype=self.dtype,
        )

    def decoder(self) -> nn.Decoder:
        """The decoder, with the codes in its vocabulary."""
        f = self.forest()
        return nn.Decoder(
            vocabulary=f.text + self.codes,
            width=self.width,
            layers=self.layers,
            heads=self.heads,
            hidden=self.hidden,
            position="learned",
            length=model.longest(f),
            std=self.std,
            dtype=self.dtype,
        )


class Coder(NamedTuple):
    """An autoencoder along its training."""

    params: vq.Params
    averages: vq.Averages


def problems(s: Assorted, key: PRNGKeyArray, count: int) -> traces.Problem:
    """Problems, [count, ...] each."""
    return jax.vmap(lambda k: traces.draw(k, s.forest()))(jax.random.split(key, count))


def pieces(s: Assorted, key: PRNGKeyArray, count: int) -> tuple[Int[Array, "count r"], Int[Array, "count p"]]:
    """A chunk of each of ``count`` problems, at a random place, and the prompts."""
    k_draw, k_at = jax.random.split(key)
    some = problems(s, k_draw, count)
    parts = some.trace.reshape(count, -1, s.rate)
    at = jax.random.randint(k_at, (count,), 0, parts.shape[1], jnp.int32)
    return jnp.take_along_axis(parts, at[:, None, None], 1)[:, 0], some.prompt


def fitted(s: Assorted, key: PRNGKeyArray) -> vq.Params:
    """The autoencoder after its training."""
    shape = s.chunks()
    k_init, k_first, k_data = jax.random.split(key, 3)
    params = vq.spread(shape, vq.init(shape, k_init), pieces(s, k_first, s.codes)[0])
    moving = (s.book == "gradient").astype(s.dtype)
    tx = optax.adam(s.vq_lr)

    def step(i: Int[Array, ""], carry: tuple[Coder, PyTree]) -> tuple[Coder, PyTree]:
        (params, averages), opt = carry
        chunk, prompt = pieces(s, jax.random.fold_in(k_data, i), s.vq_batch)
        gradient = jax.grad(lambda p: vq.loss(shape, p, chunk, prompt, s.beta, moving))(params)
        updates, opt = tx.update(gradient, opt, params)
        new = optax.apply_updates(params, updates)
        x = vq.encode(shape, params, chunk).reshape(-1, s.code_width)
        averages, book = vq.averaged(averages, x, vq.nearest(x, params.codebook), s.decay)
        return Coder(new._replace(codebook=jnp.where(moving > 0, new.codebook, book)), averages), opt

    start = (Coder(params, vq.started(params.codebook)), tx.init(params))
    return jax.lax.fori_loop(0, jnp.round(s.vq_steps).astype(jnp.int32), step, start)[0].params


def recode(s: Assorted, coder: vq.Params, trace: Int[Array, "*b t"]) -> Int[Array, "*b c"]:
    """The codes of traces."""
    parts = trace.reshape(*trace.shape[:-1], -1, s.rate)
    return vq.nearest(vq.encode(s.chunks(), coder, parts)[..., 0, :], coder.codebook)


def sequences(s: Assorted, coder: vq.Params, i: Int[Array, ""], key: PRNGKeyArray) -> model.Sequence:
    """The batch of step i."""
    f, most = s.forest(), s.forest().trace // s.rate
    k_draw, k_m, k_code = jax.random.split(key, 3)
    some = problems(s, k_draw, s.batch)
    codes = recode(s, coder, some.trace)
    renamed = jax.vmap(lambda k, z: jax.random.permutation(k, s.codes).astype(jnp.int32)[z])(
        jax.random.split(k_code, s.batch), codes
    )
    codes = jnp.where(s.kind == "permuted", renamed, codes)
    stage = jnp.floor(i.astype(s.dtype) / (s.ramp * s.steps) * most)
    drawn = jax.random.randint(k_m, (s.batch,), 0, most + 1, jnp.int32)
    full = jnp.full(s.batch, most, jnp.int32)
    grown = jnp.minimum(full, stage.astype(jnp.int32))
    k = jnp.where(s.kind == "all", full, jnp.where(s.kind == "curriculum", grown, drawn))
    delimited, kept = s.kind != "text", s.kind != "solution"

    def one(prompt: Array, trace: Array, z: Array, target: Array, k: Array) -> model.Sequence:
        row, length = model.middle(f, trace, z, s.rate * k, s.rate, delimited, kept)
        return model.whole(f, prompt, row, length, target)

    return jax.vmap(one)(some.prompt, some.trace, codes, some.target, k)


def generate(s: Assorted, net: nn.Network, params: PyTree, prompt: Int[Array, "b p"]) -> Int[Array, "b T"]:
    """What the decoder says greedily after prompts."""
    size, total = prompt.shape[1], model.longest(s.forest())
    start = jnp.pad(prompt, ((0, 0), (0, total - size)), constant_values=s.forest().special("none"))

    def step(tokens: Int[Array, "b T"], at: Int[Array, ""]) -> tuple[Int[Array, "b T"], None]:
        x = net.trunk(params, tokens)
        logits = x[:, at - 1] @ params["head"].T
        return tokens.at[:, at].set(jnp.argmax(logits, -1).astype(jnp.int32)), None

    return jax.lax.scan(step, start, jnp.arange(size, total, dtype=jnp.int32))[0]


def score(s: Assorted, tokens: Int[Array, "b T"], target: Int[Array, " b"]) -> dict[str, Float[Array, ""]]:
    """Share of right solutions, tokens until the end of the solution, and codes among them."""
    f = s.forest()
    said = tokens[:, f.prompt :]
    at = jnp.argmax(said == f.special("answer"), 1)
    answer = jnp.take_along_axis(said, jnp.minimum(at + 1, said.shape[1] - 1)[:, None], 1)[:, 0]
    ended = said == f.special("end")
    length = jnp.where(jnp.any(ended, 1), jnp.argmax(ended, 1) + 1, said.shape[1])
    before = jnp.arange(said.shape[1]) < length[:, None]
    right = jnp.any(said == f.special("answer"), 1) & (answer == target)
    wide = jnp.dtype(s.dtype)
    return {
        "accuracy": jnp.mean(right.astype(wide)),
        "length": jnp.mean(length.astype(wide)),
        "used": jnp.mean(jnp.sum((said >= f.text) & before, 1).astype(wide)),
    }


def trial(s: Assorted, key: PRNGKeyArray) -> jd.Observables:
    """Train both networks, then generate."""
    k_code, k_init, k_data, k_held = jax.random.split(key, 4)
    coder = fitted(s, k_code)
    net = nn.decoder(s.decoder())
    shape = optax.schedules.warmup_cosine_decay_schedule(0.0, 1.0, s.steps // 10, s.steps, 0.1)
    tx = optax.chain(
        optax.clip_by_global_norm(1.0),
        optax.scale_by_adam(b2=0.98),
        optax.scale_by_schedule(lambda i: -s.lr * shape(i).astype(s.dtype)),
    )

    def loss(params: PyTree, batch: model.Sequence) -> Float[Array, ""]:
        table = jax.nn.log_softmax(net.apply(params, batch.tokens[:, :-1]))
        nats = -jnp.take_along_axis(table, batch.tokens[:, 1:, None], -1)[..., 0]
        due = batch.due[:, 1:].astype(nats.dtype)
        return jnp.sum(nats * due) / jnp.sum(due)

    step = train.make_step(loss, tx, lambda i: sequences(s, coder, i, jax.random.fold_in(k_data, i)))
    held = problems(s, k_held, s.held_out)

    def observe(state: train.State) -> dict[str, Array]:
        return score(s, generate(s, net, state.params, held.prompt), held.target)

    last, seen = train.record(step, train.init(tx, net.init(k_init)), observe, samples=s.samples, every=s.steps // s.samples)
    chunk, prompt = held.trace.reshape(-1, s.rate), jnp.repeat(held.prompt, s.forest().trace // s.rate, 0)
    codes = recode(s, coder, held.trace)
    back = jnp.argmax(vq.decode(s.chunks(), coder, coder.codebook[codes.reshape(-1, 1)], prompt), -1)
    return jd.observables(
        predicted={},
        measured={name: jd.named(seen[name], "step") for name in ("accuracy", "length")},
        recorded={
            "used": jd.named(seen["used"], "step"),
            "restored": jnp.mean((back == chunk).astype(s.dtype)),
            "perplexity": vq.perplexity(codes, s.codes, s.dtype),
        },
        status=train.finite_status(last.params),
    )
