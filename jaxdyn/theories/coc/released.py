r"""Long trainings on generated ProsQA, judged by a released file; a run that is killed is resumed from its own file.

A decoder is trained from scratch by one of the methods of :mod:`jaxdyn.theories.coc.model` on graphs of
:func:`jaxdyn.data.prosqa.draw` (released variant), and answers the problems of a file it was not trained on. All problems have as
many stages as the longest path, 6.
Source: arXiv:2412.06769, section 4 (task, methods, stages); arXiv:2505.12514, section 5 (from scratch, symbolic tokens).
Letters: g problems, j inputs after the prompt.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from jaxdyn import train
from jaxdyn.data import prosqa, prosqa_tokens
from jaxdyn.data.prosqa_tokens import NAMES, VOCABULARY, Packed
from jaxdyn.data.reachability import token
from jaxdyn.errors import require
from jaxdyn.nn.decoder import Decoder, init
from jaxdyn.text import longrun
from jaxdyn.theories.coc import model

__all__ = ["HOPS", "Long", "accuracy", "inputs", "run", "stage"]

HOPS = 6  # the longest path of the released files
ASK, PAUSE = token(NAMES, "[A]"), token(NAMES, "<latent>")
HELD, WEIGHTS, TRAINING = 0, 1, 2  # numbers of the keys


@dataclasses.dataclass(frozen=True)
class Long:
    """A network and how long it is trained; hashable.

    ``first`` is the share of the steps in stage 0, later stages share the rest equally; ``base`` is that of the rotary positions,
    about twice the length of a prompt.
    """

    method: str = "coconut"
    width: int = 256
    layers: int = 2
    heads: int = 8
    hidden: int = 512
    base: float = 400.0
    std: float = 0.02
    lr: float = 1e-3
    warm: int = 500
    batch: int = 64
    problems: int = 10_000
    steps: int = 100_000
    every: int = 500
    first: float = 0.4
    mixing: float = 0.1

    def __post_init__(self) -> None:
        require(self, self.method in model.METHODS, f"method is one of {', '.join(model.METHODS)}", "method")
        for name in ("warm", "batch", "problems", "steps", "every"):
            require(self, getattr(self, name) >= 1, f"{name} is at least 1", name)
        for name in ("first", "mixing"):
            require(self, 0 <= getattr(self, name) <= 1, f"{name} is from 0 to 1", name)

    @property
    def shape(self) -> Decoder:
        """The decoder."""
        return Decoder(
            vocabulary=VOCABULARY,
            width=self.width,
            layers=self.layers,
            heads=self.heads,
            hidden=self.hidden,
            tied=True,
            base=self.base,
            std=self.std,
        )


def stage(s: Long, step: Int[Array, ""]) -> Int[Array, ""]:
    """The stage of a step: 0 for the first share of the steps, then 1 to 6 for equally long."""
    start = round(s.first * s.steps)
    later = (step - start) * HOPS // max(s.steps - start, 1)
    return jnp.where(step < start, 0, jnp.clip(1 + later, 1, HOPS)).astype(jnp.int32)


def accuracy(s: Long, params: PyTree, held: prosqa_tokens.Prompt) -> Float[Array, " j"]:
    """Share of right answers, the likeliest token of all, after 0 to 6 inputs."""
    number = model.FEEDS.index(model.FED.get(s.method, "hidden"))

    def feed(hidden: Float[Array, "g d"], _: Int[Array, ""]) -> Float[Array, "g d"]:
        text = params["embed"][jnp.argmax((hidden @ params["embed"].T)[:, :NAMES], -1)]
        return (hidden, jnp.broadcast_to(params["embed"][PAUSE], hidden.shape), text)[number]

    out = model.outputs(s.shape, params, held.tokens, feed, HOPS, ASK)
    return jnp.mean(jnp.argmax(out.answer, -1) == held.path[:, -1], -1, dtype=s.shape.dtype)


def inputs(s: Long) -> int:
    """Inputs before the answer in the last stage."""
    return int(model.method(s.method, HOPS).answer[-1].argmax())


def make_step(s: Long, tx: optax.GradientTransformation) -> Callable[..., train.State]:
    """``step(state, packed, key) -> state``: one step on random problems, rendered anew."""
    how = jax.tree.map(jnp.asarray, model.method(s.method, HOPS, s.mixing))

    def batch(i: Int[Array, ""], packed: Packed, key: PRNGKeyArray) -> tuple:
        k_pick, k_render = jax.random.split(jax.random.fold_in(key, i))
        pick = jax.random.randint(k_pick, (s.batch,), 0, len(packed.root), jnp.int32)
        chosen = jax.tree.map(lambda x: x[pick], packed)
        return i, jax.vmap(prosqa_tokens.render)(jax.random.split(k_render, s.batch), chosen)

    def loss(params: PyTree, data: tuple) -> Float[Array, ""]:
        i, prompt = data
        return model.objective(s.shape, params, how, stage(s, i), prompt.tokens, prompt.path, (ASK, PAUSE))

    return train.make_step(loss, tx, batch)


def run(path: Path, s: Long, seed: int, file: Path, *, save_seconds: float = 60.0) -> longrun.Run:
    """Train, or resume, the run in ``path``; records are accuracies on the problems of ``file``, ``accuracy`` [records, j].

    Training problems and their rendering, weights and those of the file depend on the seed; the problems of the file do not.
    """
    keys = jax.random.split(jax.random.key(seed), 3)
    problems = prosqa.load(file)
    held = jax.vmap(prosqa_tokens.render)(jax.random.split(keys[HELD], len(problems)), prosqa_tokens.pack(problems))
    tx = optax.chain(
        optax.clip_by_global_norm(1.0),
        optax.scale_by_adam(b2=0.95),
        optax.scale_by_schedule(lambda i: -s.lr * jnp.minimum(1, (i + 1) / s.warm)),
    )
    observe = jax.jit(lambda params: {"accuracy": accuracy(s, params, held)})
    about = dataclasses.asdict(s) | {"seed": seed, "file": hashlib.sha256(file.read_bytes()).hexdigest()}
    return longrun.run(
        path,
        about,
        make_step(s, tx),
        lambda: train.init(tx, init(s.shape, keys[WEIGHTS])),
        lambda state: observe(state.params),
        until=s.steps,
        every=s.every,
        data=(fitting(seed, s.problems), keys[TRAINING]),
        save_seconds=save_seconds,
    )


def fitting(seed: int, count: int) -> Packed:
    """Generated problems; the few whose target is farther than 6 steps, or that have more than 60 edges, are left out."""
    drawn = prosqa.draw(seed, count)
    kept = [p for p in drawn if len(p.edges) <= 60 and prosqa.statistics([p])["length"][0] <= HOPS]
    return prosqa_tokens.pack(kept)
