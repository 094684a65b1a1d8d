r"""Long trainings on generated ProsQA, judged by a released file; a run that is killed is resumed from its own file.

A decoder is trained from scratch by one of the methods of :mod:`jaxdyn.theories.coc.model` on graphs of
:func:`jaxdyn.data.prosqa.draw` (released variant), and answers the problems of a file it was not trained on. All problems have as
many stages as the longest path, 6. A batch has problems of similar numbers of edges, so that little of it is padding; each size is
drawn as often as there are such problems. Whatever the method, training begins with pointing: from the source of one of six edges
to its target. Graphs of 12 nodes follow, with the method's stages one after the other, the first of them by far the longest, then
the full graphs, in its last stage. The published networks begin pretrained.
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
HELD, WEIGHTS, TRAINING, SMALL = range(4)  # numbers of the keys
UNSEEN, HELD_SMALL = 10**6, 500  # first seed of the small graphs that judge, and their number
CAPS = (18, 32, 38, 44, 60)  # edges of a batch's problems, at most; the first are the small graphs
NODES = 12  # of a small graph
FEW = 6  # edges to point along
FALL = 0.25  # share of the steps in which the rate falls to a tenth


@dataclasses.dataclass(frozen=True)
class Long:
    """A network and how long it is trained; hashable.

    ``pointing`` is the share of the steps on single edges, ``first`` that before stage 1, ``small`` that before the full graphs;
    ``mixing`` and ``review`` are those of the loss which is spread over the stages so far, on small graphs and on full ones.
    ``base`` is that of the rotary positions, about twice the length of a prompt.
    """

    method: str = "coconut"
    width: int = 256
    layers: int = 2
    heads: int = 8
    hidden: int = 512
    base: float = 400.0
    std: float = 0.03
    lr: float = 1e-3
    warm: int = 100
    batch: int = 64
    problems: int = 10_000
    steps: int = 100_000
    every: int = 500
    pointing: float = 0.08
    first: float = 0.41
    small: float = 0.64
    mixing: float = 0.1
    review: float = 0.5

    def __post_init__(self) -> None:
        require(self, self.method in model.METHODS, f"method is one of {', '.join(model.METHODS)}", "method")
        for name in ("warm", "batch", "problems", "steps", "every"):
            require(self, getattr(self, name) >= 1, f"{name} is at least 1", name)
        for name in ("mixing", "review"):
            require(self, 0 <= getattr(self, name) <= 1, f"{name} is from 0 to 1", name)
        ordered = 0 <= self.pointing <= self.first <= self.small <= 1
        require(self, ordered, "0 <= pointing <= first <= small <= 1", "pointing", "first", "small")

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


def ends(s: Long) -> tuple[int, int, int]:
    """The steps with which pointing, stage 0 and the small graphs end."""
    return round(s.pointing * s.steps), round(s.first * s.steps), round(s.small * s.steps)


def stage(s: Long, step: Int[Array, ""]) -> Int[Array, ""]:
    """The stage of a step: 0, then 1 to 6 for equally long on small graphs, 6 on the full ones."""
    _, begin, end = ends(s)
    later = 1 + (step - begin) * HOPS // max(end - begin, 1)
    return jnp.where(step < begin, 0, jnp.clip(later, 1, HOPS)).astype(jnp.int32)


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


def point(key: PRNGKeyArray, problem: Packed) -> Packed:
    """A few of a problem's edges, at random; the root is the source of one, the path is its target."""
    order = jnp.where(problem.edges[:, 0] >= 0, jax.random.uniform(key, problem.edges.shape[:1], jnp.float32), 2.0)
    first = jnp.argsort(order)[:FEW]
    edges = jnp.full_like(problem.edges, -1).at[first].set(problem.edges[first])
    root, target = problem.edges[first[0]]
    return problem._replace(edges=edges, root=root, path=jnp.full_like(problem.path, target).at[0].set(root))


class Kind(NamedTuple):
    """What a step trains on: the block of problems and its cap, single edges or whole graphs, and the tables of the method."""

    number: int
    edges: int
    pointing: bool
    how: model.Method


def kinds(s: Long) -> list[Kind]:
    """Pointing; small graphs in stage 0, and in later stages; full graphs, a kind for each further cap."""
    how, whole, next_node = (
        model.method(name, HOPS, x) for name, x in ((s.method, s.mixing), (s.method, s.review), ("coconut", 0))
    )
    early = [Kind(0, FEW, True, brief(next_node)), Kind(0, CAPS[0], False, brief(how)), Kind(0, CAPS[0], False, how)]
    return early + [Kind(number, cap, False, whole) for number, cap in enumerate(CAPS) if number > 0]


def brief(how: model.Method) -> model.Method:
    """Stage 0 alone, without inputs after the last one that has a loss."""
    used = 1 + np.flatnonzero(how.node[0].any(-1) | (how.answer[0] != 0)).max()
    return how._replace(node=how.node[:1, :used], answer=how.answer[:1, :used])


def make_step(s: Long, tx: optax.GradientTransformation) -> Callable[..., train.State]:
    """``step(state, problems, key) -> state``: one step on random problems of one cap, rendered anew."""

    def step_of(kind: Kind) -> Callable[..., train.State]:
        how = jax.tree.map(jnp.asarray, kind.how)

        def loss(params: PyTree, data: tuple) -> Float[Array, ""]:
            i, prompt = data
            at = jnp.minimum(stage(s, i), len(how.node) - 1)
            return model.objective(s.shape, params, how, at, prompt.tokens, prompt.path, (ASK, PAUSE))

        def batch(i: Int[Array, ""], problems: Sorted, key: PRNGKeyArray) -> tuple:
            k_pick, k_render = jax.random.split(jax.random.fold_in(key, i))
            begin, end = (problems.begins[kind.number + j] for j in (0, 1))
            pick = jax.random.randint(k_pick, (s.batch,), begin, end, jnp.int32)
            chosen, keys = jax.tree.map(lambda x: x[pick], problems.packed), jax.random.split(k_render, s.batch)
            chosen = jax.vmap(point)(jax.vmap(jax.random.fold_in, (0, None))(keys, 0), chosen) if kind.pointing else chosen
            return i, cut(jax.vmap(prosqa_tokens.render)(keys, chosen), kind.edges)

        return train.make_step(loss, tx, batch)

    steps = [step_of(kind) for kind in kinds(s)]
    reached = jnp.asarray(ends(s))

    def step(state: train.State, problems: Sorted, key: PRNGKeyArray) -> train.State:
        k_cap, k_batch = jax.random.split(key)
        one = jax.random.randint(jax.random.fold_in(k_cap, state.step), (), problems.begins[1], problems.begins[-1], jnp.int32)
        cap = jnp.searchsorted(problems.begins[2:-1], one, side="right")
        which = jnp.sum(state.step >= reached)  # 0: pointing, 1: stage 0, 2: later stages on small graphs, 3: full ones
        return jax.lax.switch(which + jnp.where(which == 3, cap, 0), steps, state, problems, k_batch)

    return step


def run(path: Path, s: Long, seed: int, file: Path, *, save_seconds: float = 60.0) -> longrun.Run:
    """Train, or resume, the run in ``path``; records are those of :func:`accuracy` on the problems of ``file``, [records, j].

    ``small_accuracy`` and ``small_next`` are those on small graphs that are not trained on. Training problems and their rendering,
    weights and those of the file depend on the seed; the problems of the file do not.
    """
    keys = jax.random.split(jax.random.key(seed), 4)
    held, fresh = prosqa_tokens.pack(prosqa.load(file)), prosqa_tokens.pack(tiny(UNSEEN + seed, HELD_SMALL))
    tx = optax.chain(
        optax.clip_by_global_norm(1.0),
        optax.scale_by_adam(b2=0.95),
        optax.scale_by_schedule(lambda i: -rate(s, i)),
    )

    blocks, small = rendered(keys[HELD], held), rendered(keys[SMALL], fresh)

    @jax.jit
    def observe(params: PyTree) -> dict[str, Array]:
        return judged(s, params, blocks) | {f"small_{name}": value for name, value in judged(s, params, small).items()}

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


def rendered(key: PRNGKeyArray, packed: Packed) -> list[prosqa_tokens.Prompt]:
    """Prompts of all problems, a block for each of :data:`CAPS` that has some."""
    problems = by_edges(packed)
    prompts = jax.vmap(prosqa_tokens.render)(jax.random.split(key, len(packed.root)), problems.packed)
    ends = problems.begins.tolist()
    blocks = zip(ends[:-1], ends[1:], CAPS, strict=True)
    return [cut(jax.tree.map(lambda x, a=a, b=b: x[a:b], prompts), cap) for a, b, cap in blocks if b > a]


def judged(s: Long, params: PyTree, blocks: list[prosqa_tokens.Prompt]) -> dict[str, Float[Array, " j"]]:
    """:func:`accuracy` on all blocks together."""
    weights = jnp.asarray([len(one.tokens) for one in blocks], s.shape.dtype)
    shares = [accuracy(s, params, one) for one in blocks]
    return jax.tree.map(lambda *parts: weights @ jnp.stack(parts) / weights.sum(), *shares)


def tiny(seed: int, count: int) -> list[prosqa.Problem]:
    """Generated problems on small graphs; those with more edges than their cap are left out."""
    return [p for p in prosqa.draw(seed, count, nodes=NODES) if fits(p, CAPS[0])]


def fits(p: prosqa.Problem, cap: int) -> bool:
    """Whether a problem has no more edges, and no longer path, than there is room for."""
    return len(p.edges) <= cap and prosqa.statistics([p])["length"][0] <= HOPS


def fitting(seed: int, count: int) -> Packed:
    """Generated problems, as many small ones; those with a target farther than 6 steps, or with too many edges, are left out."""
    return prosqa_tokens.pack(tiny(seed, count) + [p for p in prosqa.draw(seed, count) if fits(p, CAPS[-1])])
