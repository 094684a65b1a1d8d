"""Long trainings on generated ProsQA, judged by a released file; a run that is killed is resumed from its own file.

A decoder is trained from scratch by one of the methods of :mod:`jaxdyn.theories.coc.model` on graphs of
:func:`jaxdyn.data.prosqa.draw` (released variant), and answers the problems of a file it was not trained on. All problems have as
many stages as the longest path, 6. A batch has problems of similar numbers of edges, so that little of it is padding; each size is
sampled as often as there are such problems. Before them come, whatever the method, single edges: from the source of one of six to
its target; then balanced trees (:mod:`jaxdyn.data.reachability`) under names of the full graphs, of three hops with the method's
stages one after the other, and wide ones of four hops. There and on the full graphs the loss is spread over all stages: with one
stage at a time what was learned on trees is lost. The published networks begin pretrained.
Source: arXiv:2412.06769, section 4 (task, methods, stages); arXiv:2505.12514, section 5 (from scratch, symbolic tokens).
Letters: g problems, j inputs after the prompt, c caps, p phases.

Figure of right answers along long trainings on ProsQA, as `experiments/coc_prosqa.py` records them.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree, Real
from matplotlib.axes import Axes

from jaxdyn import plotting, train
from jaxdyn.data import prosqa, prosqa_tokens, reachability
from jaxdyn.data.prosqa_tokens import NAMES, VOCABULARY, Packed
from jaxdyn.data.reachability import token
from jaxdyn.engine.base.progress import Progress
from jaxdyn.errors import require
from jaxdyn.nn import Transformer
from jaxdyn.nn.transformer import init
from jaxdyn.text import longrun
from jaxdyn.theories.coc import model

HOPS = 6  # the longest path of the released files
ASK, PAUSE = token(NAMES, "[A]"), token(NAMES, "<latent>")
RELEASED, WEIGHTS, TRAINING, FRESH_TREES, BALANCED = range(5)  # numbers of the keys
FRESH = 500  # trees, and problems of the balanced variant, that judge
APART = 2**31  # seed of those problems: graph i of both variants may be the same with the same seed, and no run has this one
CAPS = (32, 38, 44, 60)  # edges of a batch's full graphs, at most
TREES = {"trees": reachability.Sizes(hops=3, breadth=2), "wide": reachability.Sizes(hops=4, breadth=3)}
PART = 16  # problems whose gradient is computed at once: what it needs stays in the cache (saves a fifth to a third of the time)
FEW = 6  # edges to point along
HEAD, NARROW = 32, 64  # numbers in a head; the width at which rate and start are given
FALL = 0.25  # share of the steps in which the rate falls to a tenth
GRAPHS = ("edges", *TREES, "full")
render = jax.jit(jax.vmap(prosqa_tokens.render))  # many problems, each with a key


class Phase(NamedTuple):
    """A part of a training: its graphs, share of the steps, stages (equally long), and the share of the loss on those so far."""

    graphs: str
    share: float
    first: int
    last: int
    mixing: float = 0.0


SCHEDULE = (
    Phase("edges", 0.04, 0, 0),
    Phase("trees", 0.15, 0, 0),
    Phase("trees", 0.17, 1, 3, mixing=0.1),
    Phase("trees", 0.03, HOPS, HOPS, mixing=0.5),
    Phase("wide", 0.16, HOPS, HOPS, mixing=0.9),
    Phase("full", 0.45, HOPS, HOPS, mixing=0.9),
)


@dataclasses.dataclass(frozen=True)
class Long:
    """A network and how long it is trained; hashable.

    Heads have 32 numbers; ``lr`` and ``std`` are those of width 64, and fall with the root of the width. ``base`` is that of the
    rotary positions.
    """

    method: str = "coconut"
    width: int = 256
    layers: int = 2
    base: float = 64.0
    std: float = 0.05
    lr: float = 2e-3
    warm: int = 100
    batch: int = 128
    problems: int = 10_000
    steps: int = 100_000
    every: int = 500
    schedule: tuple[Phase, ...] = SCHEDULE

    def __post_init__(self) -> None:
        require(self, self.method in model.METHODS, f"method is one of {', '.join(model.METHODS)}", "method")
        for name in ("warm", "batch", "problems", "steps", "every"):
            require(self, getattr(self, name) >= 1, f"{name} is at least 1", name)
        require(self, self.width % HEAD == 0, f"width is a multiple of {HEAD}", "width")
        for one in self.schedule:
            known = one.graphs in GRAPHS and 0 <= one.first <= one.last <= HOPS and 0 <= one.mixing <= 1
            require(self, known, f"phases have graphs of {', '.join(GRAPHS)}, and stages from 0 to {HOPS}", "schedule")
        whole = abs(sum(one.share for one in self.schedule) - 1) < 1e-9 and all(one.share >= 0 for one in self.schedule)
        require(self, whole, "the shares of the phases sum to 1", "schedule")

    @property
    def shape(self) -> Transformer:
        """The decoder."""
        return Transformer(
            vocabulary=VOCABULARY,
            width=self.width,
            layers=self.layers,
            heads=self.width // HEAD,
            hidden=2 * self.width,
            tied=True,
            base=self.base,
            std=self.std * (NARROW / self.width) ** 0.5,
        )


def ends(s: Long) -> list[int]:
    """The steps with which the phases end."""
    return [round(x * s.steps) for x in np.cumsum([one.share for one in s.schedule])]


def phase(s: Long, step: Int[Array, ""]) -> Int[Array, ""]:
    """The number of a step's phase."""
    return jnp.minimum(jnp.sum(step >= jnp.asarray(ends(s), jnp.int32)), len(s.schedule) - 1)


def stage(s: Long, step: Int[Array, ""]) -> Int[Array, ""]:
    """The stage of a step."""
    at, last = phase(s, step), np.asarray(ends(s), np.int32)
    begin = np.append(0, last[:-1]).astype(np.int32)
    first, count = np.asarray([(one.first, one.last - one.first + 1) for one in s.schedule], np.int32).T
    columns = begin, np.maximum(last - begin, 1), first, count
    start, length, stage, stages = (jnp.asarray(x)[at] for x in columns)
    return stage + jnp.clip((step - start) * stages // length, 0, stages - 1)


def accuracy(s: Long, params: PyTree, prompts: prosqa_tokens.Prompt) -> dict[str, Float[Array, " j"]]:
    """Shares of right answers, ``accuracy``, and of right next nodes on the path, ``next``, after 0 to 6 inputs.

    Both are the likeliest of all tokens; after 6 inputs the next node is the target.
    """
    number = model.FEEDS.index(model.FED.get(s.method, "hidden"))

    def feed(hidden: Float[Array, "g d"], _: Int[Array, ""]) -> Float[Array, "g d"]:
        text = params["embed"][jnp.argmax((hidden @ params["embed"].T)[:, :NAMES], -1)]
        return (hidden, jnp.broadcast_to(params["embed"][PAUSE], hidden.shape), text)[number]

    out = model.outputs(s.shape, params, prompts.tokens, feed, HOPS, ASK)
    after = prompts.path[:, jnp.minimum(1 + jnp.arange(HOPS + 1), HOPS)].T
    right = {"accuracy": jnp.argmax(out.answer, -1) == prompts.path[:, -1], "next": jnp.argmax(out.logits, -1) == after}
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


def rate(s: Long, step: Real[Array, ""]) -> Float[Array, ""]:
    """The rate of a step: it rises in the first ones and falls in the last quarter of all."""
    most = s.lr * (NARROW / s.width) ** 0.5
    return most * jnp.minimum(1.0, (step + 1) / s.warm) * jnp.clip((1 - step / s.steps) / FALL, 0.1, 1.0)


def point(key: PRNGKeyArray, problem: Packed) -> Packed:
    """A few of a problem's edges, at random; the root is the source of one, the path is its target."""
    order = jnp.where(problem.edges[:, 0] >= 0, jax.random.uniform(key, problem.edges.shape[:1], jnp.float32), 2.0)
    first = jnp.argsort(order)[:FEW]
    edges = jnp.full_like(problem.edges, -1).at[first].set(problem.edges[first])
    root, target = problem.edges[first[0]]
    return problem._replace(edges=edges, root=root, path=jnp.full_like(problem.path, target).at[0].set(root))


def brief(how: model.Method, last: int) -> model.Method:
    """The stages up to ``last``, without inputs after the last one that has a loss in them."""
    used = 1 + np.flatnonzero((how.node[: last + 1].any(-1) | (how.answer[: last + 1] != 0)).any(0)).max()
    return how._replace(node=how.node[: last + 1, :used], answer=how.answer[: last + 1, :used])


@functools.partial(jax.jit, static_argnums=(1, 2))
def trees(key: PRNGKeyArray, count: int, sizes: reachability.Sizes = TREES["trees"]) -> Packed:
    """Balanced trees as problems with as much room as the full graphs."""
    p = jax.vmap(lambda k: reachability.draw(k, sizes))(jax.random.split(key, count))
    room = jnp.full((count, CAPS[-1] - sizes.edges, 2), -1, jnp.int32)
    rest = jnp.repeat(p.path[:, -1:], HOPS - sizes.hops, 1)
    return Packed(jnp.concatenate([p.edges, room], 1), p.roots[:, 0], p.candidates, jnp.concatenate([p.path, rest], 1))


def sample_prompts(s: Long, graphs: str, cap: int, problems: Sorted, key: PRNGKeyArray) -> prosqa_tokens.Prompt:
    """The prompts of a step; ``cap`` is the number of a block of full graphs."""
    k_pick, k_render = jax.random.split(key)
    keys = jax.random.split(k_render, s.batch)
    if graphs == "full":
        pick = jax.random.randint(k_pick, (s.batch,), problems.begins[cap], problems.begins[cap + 1], jnp.int32)
        chosen, edges = jax.tree.map(lambda x: x[pick], problems.packed), CAPS[cap]
    else:
        sizes = TREES.get(graphs, TREES["trees"])
        chosen, edges = trees(k_pick, s.batch, sizes), sizes.edges
    if graphs == "edges":
        chosen, edges = jax.vmap(point)(jax.vmap(jax.random.fold_in, (0, None))(keys, 0), chosen), FEW
    return cut(render(keys, chosen), edges)


def make_step(s: Long, tx: optax.GradientTransformation) -> Callable[..., train.State]:
    """``step(state, problems, key) -> state``: one step on random problems of one kind and size, rendered anew."""
    # kinds of steps: graphs and the last stage
    kinds = list(dict.fromkeys((one.graphs, one.last) for one in s.schedule))

    def step_of(graphs: str, last: int, cap: int) -> Callable[..., train.State]:
        name = "coconut" if graphs == "edges" else s.method
        tables = [brief(model.method(name, HOPS, one.mixing), last) for one in s.schedule]
        whole = jax.tree.map(lambda *x: jnp.stack([jnp.asarray(y) for y in x]), *tables)  # [p, ...]

        def loss(params: PyTree, data: tuple) -> Float[Array, ""]:
            i, prompt = data[0][0], data[1]
            how = jax.tree.map(lambda x: x[phase(s, i)], whole)
            return model.objective(s.shape, params, how, stage(s, i), prompt.tokens, prompt.path, (ASK, PAUSE))

        def batch(i: Int[Array, ""], problems: Sorted, key: PRNGKeyArray) -> tuple:
            return jnp.broadcast_to(i, (s.batch,)), sample_prompts(s, graphs, cap, problems, jax.random.fold_in(key, i))

        return train.make_step(loss, tx, batch, parts=s.batch // math.gcd(s.batch, PART))

    # a step of every kind, of full graphs one for every cap, and where those of a phase begin
    counts = [len(CAPS) if graphs == "full" else 1 for graphs, _ in kinds]
    steps = [step_of(*kind, cap) for kind, count in zip(kinds, counts, strict=True) for cap in range(count)]
    begins = np.cumsum([0, *counts])
    offset = jnp.asarray([begins[kinds.index((one.graphs, one.last))] for one in s.schedule], jnp.int32)
    full = jnp.asarray([one.graphs == "full" for one in s.schedule])

    def step(state: train.State, problems: Sorted, key: PRNGKeyArray) -> train.State:
        k_cap, k_batch = jax.random.split(key)
        one = jax.random.randint(jax.random.fold_in(k_cap, state.step), (), 0, problems.begins[-1], jnp.int32)
        cap = jnp.searchsorted(problems.begins[1:-1], one, side="right")
        at = phase(s, state.step)
        return jax.lax.switch(offset[at] + jnp.where(full[at], cap, 0), steps, state, problems, k_batch)

    return step


def run(path: Path, s: Long, seed: int, file: Path, *, save_seconds: float = 60.0) -> longrun.Run:
    """Train, or resume, the run in ``path``, with a progress bar.

    Records are those of :func:`accuracy` on the problems of ``file``, [records, j]. ``balanced_*`` are those on problems of the
    balanced variant, in which rules that look for no path are of no use, and ``tree_*`` those on trees; none of them is trained on.
    Training problems and their rendering, weights and those of the file depend on the seed; the problems of the file and the
    balanced ones do not.
    """
    # the problems that judge
    keys = [jax.random.fold_in(jax.random.key(seed), number) for number in range(5)]
    blocks = rendered(keys[RELEASED], prosqa_tokens.pack(prosqa.load(file)))
    balanced = rendered(keys[BALANCED], fitting(APART, FRESH, "balanced"))
    fresh = cut(
        render(jax.random.split(keys[FRESH_TREES], FRESH), trees(keys[FRESH_TREES], FRESH)),
        TREES["trees"].edges,
    )
    # training and its records
    tx = optax.chain(
        optax.clip_by_global_norm(1.0),
        optax.scale_by_adam(b2=0.95),
        optax.scale_by_schedule(lambda i: -rate(s, i)),
    )

    @jax.jit
    def observe(params: PyTree) -> dict[str, Array]:
        shares = {"": judged(s, params, blocks), "balanced_": judged(s, params, balanced), "tree_": accuracy(s, params, fresh)}
        return {prefix + name: value for prefix, group in shares.items() for name, value in group.items()}

    about = dataclasses.asdict(s) | {"seed": seed, "balanced": APART, "file": hashlib.sha256(file.read_bytes()).hexdigest()}
    with Progress(path.stem, unit="steps") as bar:
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
            progress=bar,
        )


def rendered(key: PRNGKeyArray, packed: Packed) -> list[prosqa_tokens.Prompt]:
    """Prompts of all problems, a block for each of :data:`CAPS` that has some."""
    problems = by_edges(packed)
    prompts = render(jax.random.split(key, len(packed.root)), problems.packed)
    ends = problems.begins.tolist()
    blocks = zip(ends[:-1], ends[1:], CAPS, strict=True)
    return [cut(jax.tree.map(lambda x, a=a, b=b: x[a:b], prompts), cap) for a, b, cap in blocks if b > a]


def judged(s: Long, params: PyTree, blocks: list[prosqa_tokens.Prompt]) -> dict[str, Float[Array, " j"]]:
    """:func:`accuracy` on all blocks together."""
    weights = jnp.asarray([len(one.tokens) for one in blocks], s.shape.dtype)
    shares = [accuracy(s, params, one) for one in blocks]
    return jax.tree.map(lambda *parts: weights @ jnp.stack(parts) / weights.sum(), *shares)


def fitting(seed: int, count: int, variant: str = "released") -> Packed:
    """Generated problems; those with a target farther than 6 steps, or with too many edges, are left out."""
    problems = prosqa.draw(seed, count, variant)
    return prosqa_tokens.pack([p for p in problems if len(p.edges) <= CAPS[-1] and prosqa.statistics([p])["length"][0] <= HOPS])


FIRST = ("coconut", "cot", "no_cot")
COLOR = dict(zip(dict.fromkeys((*FIRST, *model.METHODS)), 2 * plotting.CYCLE, strict=False))


def along(ax: Axes, courses: Sequence[Mapping[str, Any]], rules: Mapping[str, Mapping[str, float]]) -> None:
    """Right answers in percent, one line per run: on the released file, and dotted on balanced problems.

    Args:
        ax: where.
        courses: runs with ``method``, ``steps``, ``accuracy`` and ``balanced``; one without steps has no line.
        rules: right answers on the released file (``file``) and on balanced problems (``balanced``) of rules that look for no path,
            or for short ones; the best on the file is drawn across.
    """
    seen = set()
    for one in courses:
        if not one.get("steps"):
            continue
        name, color = one["method"].replace("_", " "), COLOR[one["method"]]
        label = {"label": name} if name not in seen else {}
        ax.plot(one["steps"], one["accuracy"], color=color, **label)
        label = {"label": f"{name}, balanced problems"} if label else {}
        ax.plot(one["steps"], one["balanced"], linestyle=":", color=color, **label)
        seen.add(name)
    best = max(rules, key=lambda k: rules[k]["file"])
    ax.axhline(rules[best]["file"], linestyle="--", color="0.5", label=f"best rule, released problems ({best})")
    ax.set(xlabel="steps", ylabel="right answers (%)", ylim=(-3, 103))
