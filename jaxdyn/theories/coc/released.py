r"""Long trainings on generated ProsQA, judged by a released file; a run that is killed is resumed from its own file.

A decoder is trained from scratch by one of the methods of :mod:`jaxdyn.theories.coc.model` on graphs of
:func:`jaxdyn.data.prosqa.draw` (released variant), and answers the problems of a file it was not trained on. All problems have as
many stages as the longest path, 6. A batch has problems of similar numbers of edges, so that little of it is padding; each size is
drawn as often as there are such problems. Whatever the method, training begins with chains of thought on graphs of 12 nodes, where
every step of the path is a target: the published networks begin pretrained.
Source: arXiv:2412.06769, section 4 (task, methods, stages); arXiv:2505.12514, section 5 (from scratch, symbolic tokens).
Letters: g problems, j inputs after the prompt, c caps.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
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
CAPS = (18, 32, 38, 44, 60)  # edges of a batch's problems, at most; the first are the small graphs
NODES = 12  # of a small graph
FALL = 0.25  # share of the steps in which the rate falls to a tenth


@dataclasses.dataclass(frozen=True)
class Long:
    """A network and how long it is trained; hashable.

    ``small`` is the share of the steps on chains of thought on small graphs, ``first`` that before stage 1; later stages share the
    rest equally. ``base`` is that of the rotary positions, about twice the length of a prompt.
    """

    method: str = "coconut"
    width: int = 256
    layers: int = 2
    heads: int = 8
    hidden: int = 512
    base: float = 400.0
    std: float = 0.03
    lr: float = 1e-3
    warm: int = 500
    batch: int = 64
    problems: int = 10_000
    steps: int = 100_000
    every: int = 500
    small: float = 0.25
    first: float = 0.45
    mixing: float = 0.1

    def __post_init__(self) -> None:
        require(self, self.method in model.METHODS, f"method is one of {', '.join(model.METHODS)}", "method")
        for name in ("warm", "batch", "problems", "steps", "every"):
            require(self, getattr(self, name) >= 1, f"{name} is at least 1", name)
        for name in ("small", "first", "mixing"):
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


def accuracy(s: Long, params: PyTree, held: prosqa_tokens.Prompt) -> dict[str, Float[Array, " j"]]:
    """Shares of right answers, ``accuracy``, and of right next nodes on the path, ``next``, after 0 to 6 inputs.

    Both are the likeliest of all tokens; after 6 inputs the next node is the target.
    """
    number = model.FEEDS.index(model.FED.get(s.method, "hidden"))

    def feed(hidden: Float[Array, "g d"], _: Int[Array, ""]) -> Float[Array, "g d"]:
        text = params["embed"][jnp.argmax((hidden @ params["embed"].T)[:, :NAMES], -1)]
        return (hidden, jnp.broadcast_to(params["embed"][PAUSE], hidden.shape), text)[number]

    out = model.outputs(s.shape, params, held.tokens, feed, HOPS, ASK)
    after = held.path[:, jnp.minimum(1 + jnp.arange(HOPS + 1), HOPS)].T
    right = {"accuracy": jnp.argmax(out.answer, -1) == held.path[:, -1], "next": jnp.argmax(out.logits, -1) == after}
    return {name: jnp.mean(value, -1, dtype=s.shape.dtype) for name, value in right.items()}


def inputs(s: Long) -> int:
    """Inputs before the answer in the last stage."""
    return int(model.method(s.method, HOPS).answer[-1].argmax())


class Sorted(NamedTuple):
    """Problems by number of edges, and where those of each cap begin; the last number is that of all problems."""

    packed: Packed
    begins: Int[Array, " c1"]


def by_edges(packed: Packed) -> Sorted:
    """Problems sorted into :data:`CAPS`."""
    count = jnp.sum(packed.edges[:, :, 0] >= 0, -1)
    order = jnp.argsort(count, stable=True)
    begins = jnp.searchsorted(count[order], jnp.asarray((0, *CAPS[:-1]), count.dtype), side="right")
    return Sorted(jax.tree.map(lambda x: x[order], packed), jnp.append(begins, len(order)).astype(jnp.int32))


def cut(prompt: prosqa_tokens.Prompt, cap: int) -> prosqa_tokens.Prompt:
    """Prompts without the padding that problems of at most ``cap`` edges do not need."""
    return prompt._replace(tokens=prompt.tokens[..., -prosqa_tokens.prompt_length(cap) :])


def rate(s: Long, step: Int[Array, ""]) -> Float[Array, ""]:
    """The rate of a step: it rises in the first ones and falls in the last quarter of all."""
    return s.lr * jnp.minimum(1.0, (step + 1) / s.warm) * jnp.clip((1 - step / s.steps) / FALL, 0.1, 1.0)


def tables(s: Long) -> tuple[model.Method, model.Method]:
    """The method's tables for stage 0 and for the later ones, without the inputs after the last one that has a loss there."""
    how = model.method(s.method, HOPS, s.mixing)

    def used(stages: slice) -> model.Method:
        loss = how.node[stages].any((0, 2)) | how.answer[stages].any(0)
        count = 1 + int(np.flatnonzero(loss)[-1])
        return jax.tree.map(jnp.asarray, how._replace(node=how.node[:, :count], answer=how.answer[:, :count]))

    return used(slice(0, 1)), used(slice(1, None))


def make_step(s: Long, tx: optax.GradientTransformation) -> Callable[..., train.State]:
    """``step(state, problems, key) -> state``: one step on random problems of one cap, rendered anew."""

    def step_of(how: model.Method, number: int) -> Callable[..., train.State]:
        def loss(params: PyTree, data: tuple) -> Float[Array, ""]:
            i, prompt = data
            return model.objective(s.shape, params, how, stage(s, i), prompt.tokens, prompt.path, (ASK, PAUSE))

        def batch(i: Int[Array, ""], problems: Sorted, key: PRNGKeyArray) -> tuple:
            k_pick, k_render = jax.random.split(jax.random.fold_in(key, i))
            pick = jax.random.randint(k_pick, (s.batch,), problems.begins[number], problems.begins[number + 1], jnp.int32)
            chosen = jax.tree.map(lambda x: x[pick], problems.packed)
            return i, cut(jax.vmap(prosqa_tokens.render)(jax.random.split(k_render, s.batch), chosen), CAPS[number])

        return train.make_step(loss, tx, batch)

    start = jax.tree.map(jnp.asarray, model.method("cot", HOPS))
    steps = [step_of(start, 0), *(step_of(how, number) for how in tables(s) for number in range(1, len(CAPS)))]

    def step(state: train.State, problems: Sorted, key: PRNGKeyArray) -> train.State:
        k_cap, k_batch = jax.random.split(key)
        one = jax.random.randint(jax.random.fold_in(k_cap, state.step), (), problems.begins[1], problems.begins[-1], jnp.int32)
        which = 1 + jnp.searchsorted(problems.begins[2:-1], one, side="right") + (len(CAPS) - 1) * (stage(s, state.step) > 0)
        which = jnp.where(state.step < round(s.small * s.steps), 0, which)
        return jax.lax.switch(which, steps, state, problems, k_batch)

    return step


def run(path: Path, s: Long, seed: int, file: Path, *, save_seconds: float = 60.0) -> longrun.Run:
    """Train, or resume, the run in ``path``; records are those of :func:`accuracy` on the problems of ``file``, [records, j].

    Training problems and their rendering, weights and those of the file depend on the seed; the problems of the file do not.
    """
    keys = jax.random.split(jax.random.key(seed), 3)
    asked = by_edges(prosqa_tokens.pack(prosqa.load(file)))
    prompts = jax.vmap(prosqa_tokens.render)(jax.random.split(keys[HELD], len(asked.packed.root)), asked.packed)
    ends = asked.begins.tolist()
    held = [
        cut(jax.tree.map(lambda x, a=a, b=b: x[a:b], prompts), cap) for a, b, cap in zip(ends[:-1], ends[1:], CAPS, strict=True)
    ]
    tx = optax.chain(
        optax.clip_by_global_norm(1.0),
        optax.scale_by_adam(b2=0.95),
        optax.scale_by_schedule(lambda i: -rate(s, i)),
    )

    @jax.jit
    def observe(params: PyTree) -> dict[str, Array]:
        shares = [(len(one.tokens) / ends[-1], accuracy(s, params, one)) for one in held if len(one.tokens)]
        return jax.tree.map(lambda *parts: sum(parts), *(jax.tree.map(lambda x, w=w: w * x, part) for w, part in shares))

    about = dataclasses.asdict(s) | {"seed": seed, "file": hashlib.sha256(file.read_bytes()).hexdigest()}
    return longrun.run(
        path,
        about,
        make_step(s, tx),
        lambda: train.init(tx, init(s.shape, keys[WEIGHTS])),
        lambda state: observe(state.params),
        until=s.steps,
        every=s.every,
        data=(by_edges(fitting(seed, s.problems)), keys[TRAINING]),
        save_seconds=save_seconds,
    )


def fitting(seed: int, count: int) -> Packed:
    """Generated problems, as many small ones; those with a target farther than 6 steps, or with too many edges, are left out."""
    drawn = [(p, CAPS[0]) for p in prosqa.draw(seed, count, nodes=NODES)] + [(p, CAPS[-1]) for p in prosqa.draw(seed, count)]
    return prosqa_tokens.pack([p for p, cap in drawn if len(p.edges) <= cap and prosqa.statistics([p])["length"][0] <= HOPS])
