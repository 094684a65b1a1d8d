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

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

import jaxdyn as jd
from jaxdyn import nn, train
from jaxdyn.nn import vq
from jaxdyn.theories.assort import model
from jaxdyn.theories.assort.coder import Coding, fitted, problems, recode, restored

__all__ = ["KINDS", "Assorted", "generate", "score", "sequences", "trial"]

KINDS = ("solution", "text", "all", "curriculum", "random", "permuted")


@jd.setting
class Assorted(Coding):
    """A kind of sequences, the decoder, and its training.

    Args:
        kind: of the sequences, one of KINDS.
        lr: peak of the decoder's rate.
        ramp: share of the steps before the curriculum's last stage.
        width, layers, heads, hidden, std: of the decoder.
        batch, steps: of its training.
        samples: how often it generates along it.
        held_out: problems that it is asked.
    """

    kind: jd.Code = jd.code(*KINDS)
    lr: jd.Swept = 5e-3
    ramp: jd.Swept = 0.6
    width: int = 32
    layers: int = 2
    heads: int = 2
    hidden: int = 64
    batch: int = 12
    steps: int = 1000
    samples: int = 1
    held_out: int = 128
    std: float = 0.2

    def __post_init__(self) -> None:
        Coding.__post_init__(self)
        jd.require(self, self.lr > 0, "lr is positive", "lr")
        jd.require(self, 0 <= self.ramp < 1, "ramp is at least 0 and below 1", "ramp")
        for name in ("batch", "held_out", "samples"):
            jd.require(self, getattr(self, name) >= 1, f"{name} is at least 1", name)
        whole = self.steps >= 10 and self.steps % self.samples == 0
        jd.require(self, whole, "steps is at least 10 and a multiple of samples", "steps", "samples")
        self.decoder()

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
    """Train both networks, then generate.

    Eighteen runs take over 20 s: with far fewer steps the task is not learned, even with text alone.
    """
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

    every = s.steps // s.samples
    last, seen = train.record(step, train.init(tx, net.init(k_init)), observe, samples=s.samples, every=every)
    codes = recode(s, coder, held.trace)
    return jd.observables(
        predicted={},
        measured={name: jd.named(value, "step") for name, value in seen.items()},
        recorded={
            "steps": jd.named(every * jnp.arange(s.samples + 1, dtype=jnp.float64), "step"),
            "asked": jnp.asarray(s.held_out, jnp.float64),
            "restored": jnp.mean(restored(s, coder, held.trace, held.prompt, codes).astype(s.dtype)),
            "perplexity": vq.perplexity(codes, s.codes, s.dtype),
        },
        status=train.finite_status(last.params),
    )
