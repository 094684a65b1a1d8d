r"""Training on small reachability problems by every method, and what happens to answers if thoughts are changed.

A run trains one decoder from scratch: one program for all methods, stages and seeds. At the end, on graphs that were not trained
on:

- ``accuracy``: share of right answers, the likeliest token of all, after the method's own number of inputs; ``answered``: after
  0 to l inputs;
- ``ablated``: after l inputs of which none is changed; taken from another example; replaced by noise of the same size; replaced by
  the pause token; left out; or thoughts of which each has the place of the one before it (of two, the places are exchanged);
  ``lost_error``: standard error over graphs of what is lost compared with those;
- ``edited``: share of answers that follow an edit after which the other candidate is right;
- ``gaps``: over graphs, the mean of :math:`\langle t_i, u_v \rangle` over a group of nodes minus its mean over the next group, as
  mean and as Student's t: "optimal" is node i of the path, "frontier" the nodes at distance i from the root, "reachable" those
  within i steps, and "unreachable" all others; ``apart``: with disjoint groups, the frontier without the optimal node and the
  reachable nodes without both; ``shuffled``: with thoughts of other examples;
- ``looks``: the same for the last layer's attention to edges at step i, when i - 1 thoughts were read, and ``looks_shuffled``: with
  attention in other examples;
- ``walk``: inner products of thoughts 1 and 2 with a node two steps from the root, minus those with nodes of the other family, in
  the graph as it is and with a shortcut to this node; ``walk_t``: Student's t of this node minus the nodes one step away;
- ``products``: the inner products themselves, with ``nearest``, every node's distance from the root, ``path``, the other candidate
  ``negative``, and ``edges`` with the attention to them, ``seen``;
- ``entropy``: of the next node, among all names, after 0 to l inputs, and ``open``: among the nodes at distance i, by thought i,
  where hidden states are fed, whatever the method; ``fall``: of both, that of thought 1 minus that of thought 2, and ``fall_t``.

Groups are those of :mod:`jaxdyn.theories.coc.model`.
Source: arXiv:2412.06769, sections 4 and 5; arXiv:2505.12514, section 5. Sizes, ablations and edits are ours.
Letters: g graphs, l hops, n nodes, i thoughts, d width.

Which trained networks have learned the task: those that answer at least :data:`LEARNED` of all problems right.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

import jaxdyn as jd
from jaxdyn import metrics, train
from jaxdyn.data import reachability
from jaxdyn.nn import Transformer
from jaxdyn.nn.transformer import init, read
from jaxdyn.theories.coc import model
from jaxdyn.theories.coc.model import ORDERS, Posed, student

WAYS = ("kept", "another's", "noise", "pause", "left out", "places exchanged")
EDITS = ("redirected", "exchanged")
KINDS = ("as drawn", "with a shortcut")
AMONG = ("nodes at this distance", "all names")
FORCED = 4  # the block into which hidden states are fed; edited graphs follow
WARM = 50  # steps of a rising rate
Arrays = dict[str, Any]  # arrays with named axes
FALL = 0.25  # share of the steps in which the rate falls to a tenth


@jd.setting
class Training:
    """A network, its task, and how it is trained.

    Args:
        recipe: the method, one of :data:`model.METHODS`.
        lr: largest rate of Adam.
        every: steps between two records; 0: the network is not trained.
        first: share of the steps in stage 0; later stages share the rest equally.
        mixing: share of the loss that is spread over the stages so far.
        hops, breadth: sizes of graphs; a frontier has more than the optimal node.
        width, heads, hidden, layers, std, base: of the decoder; the base of the rotary positions is twice the length of a prompt.
        batch, samples, graphs, dtype: problems per step, records, held-out problems.
    """

    recipe: jd.Code = jd.code(*model.METHODS)
    lr: jd.Swept = jd.field(4e-3, above=0)
    every: jd.Swept = jd.field(100.0, at_least=0, whole=True)
    first: jd.Swept = jd.field(0.65, at_least=0, at_most=1)
    mixing: jd.Swept = jd.field(0.1, at_least=0, at_most=1)
    hops: int = jd.field(2, at_least=1)
    breadth: int = jd.field(2, at_least=2)
    width: int = 32
    heads: int = 2
    hidden: int = 64
    layers: int = 2
    std: float = 0.1
    base: float = 64.0
    batch: int = jd.field(64, at_least=1)
    samples: int = jd.field(15, at_least=1)
    graphs: int = jd.field(256, at_least=2)
    dtype: str = "float32"


def sizes(s: Training) -> reachability.Sizes:
    """Sizes of the graphs."""
    return reachability.Sizes(s.hops, s.breadth)


def shape(s: Training) -> Transformer:
    """The decoder; its read-out is the embedding, so that logits are inner products with embeddings."""
    return Transformer(
        vocabulary=sizes(s).vocabulary,
        width=s.width,
        layers=s.layers,
        heads=s.heads,
        hidden=s.hidden,
        tied=True,
        std=s.std,
        base=s.base,
        scan=False,
        dtype=s.dtype,
    )


def marks(s: Training) -> tuple[int, int]:
    """The numbers of [A] and of the pause token."""
    return reachability.token(sizes(s).nodes, "[A]"), reachability.token(sizes(s).nodes, "<latent>")


def chosen(s: Training) -> model.Method:
    """The tables of the method, by the traced switch."""
    tables = [[model.method(name, s.hops, mixing) for name in model.METHODS] for mixing in (0.0, 1.0)]
    plain, mixed = (jax.tree.map(lambda *a: jnp.stack([jnp.asarray(x) for x in a])[s.recipe.index], *t) for t in tables)

    def between(a: Array, b: Array) -> Array:
        return (1 - s.mixing) * a.astype(s.dtype) + s.mixing * b.astype(s.dtype)

    return model.Method(plain.feed, plain.shift, between(plain.node, mixed.node), between(plain.answer, mixed.answer))


def stage(s: Training, step: Int[Array, ""]) -> Int[Array, ""]:
    """The stage of a step: 0 for the first share of the steps, then 1 to l for equally long."""
    share = step.astype(s.dtype) / jnp.maximum(s.every * s.samples, 1)
    later = jnp.floor((share - s.first) / jnp.maximum(1 - s.first, 1e-6) * s.hops).astype(jnp.int32)
    return jnp.where(share < s.first, 0, jnp.clip(1 + later, 1, s.hops))


def rate(s: Training, step: Int[Array, ""]) -> Float[Array, ""]:
    """The rate of a step: it rises in the first 50 steps and falls in the last quarter of all."""
    left = 1 - step.astype(s.dtype) / jnp.maximum(s.every * s.samples, 1)
    return s.lr * jnp.minimum(1, (step + 1) / WARM).astype(s.dtype) * jnp.clip(left / FALL, 0.1, 1.0)


def sample_problems(s: Training, key: PRNGKeyArray, count: int) -> Posed:
    """Problems with their prompts."""
    return model.pose(jax.vmap(lambda k: reachability.draw(k, sizes(s)))(jax.random.split(key, count)), sizes(s))


def trained(s: Training, how: model.Method, key: PRNGKeyArray, params: PyTree) -> tuple[PyTree, Float[Array, " samples"]]:
    """The weights at the end, and the loss of the last step before each record."""
    tx = optax.chain(
        optax.clip_by_global_norm(1.0),
        optax.scale_by_adam(b2=0.95),
        optax.scale_by_schedule(lambda i: -rate(s, i)),
    )

    def step(state: tuple[train.State, Array]) -> tuple[train.State, Array]:
        now, _ = state
        posed = sample_problems(s, jax.random.fold_in(key, now.step), s.batch)

        def loss(params: PyTree) -> Float[Array, ""]:
            return model.objective(shape(s), params, how, stage(s, now.step), posed.tokens, posed.problem.path, marks(s))

        value, gradient = jax.value_and_grad(loss)(now.params)
        return train.descend(tx, now, gradient), value

    start = train.init(tx, params), jnp.zeros((), s.dtype)
    every = jnp.round(s.every).astype(jnp.int32)
    (last, _), losses = train.record(step, start, lambda state: state[1], samples=s.samples, every=every)
    return last.params, losses[1:]


def fed(s: Training, params: PyTree, how: model.Method, key: PRNGKeyArray) -> Callable[[Array, Int[Array, ""]], Array]:
    """What is fed to the prompts, a block of g for each of unchanged, another's, noise, pause, hidden states, and edited graphs."""

    def feed(hidden: Float[Array, "all d"], j: Int[Array, ""]) -> Float[Array, "all d"]:
        names = (hidden @ params["embed"].T)[:, : sizes(s).nodes]
        text = params["embed"][jnp.argmax(names, -1)]
        pause = jnp.broadcast_to(params["embed"][marks(s)[1]], hidden.shape)
        own = jax.lax.select_n(how.feed, hidden, pause, text).reshape(-1, s.graphs, s.width)
        noise = jax.random.normal(jax.random.fold_in(key, j), (s.graphs, s.width), s.dtype)
        noise = noise * (jnp.linalg.norm(own[2], axis=-1) / jnp.linalg.norm(noise, axis=-1))[:, None]
        forced = hidden.reshape(own.shape)[FORCED]
        blocks = (own[0], jnp.roll(own[1], 1, 0), noise, pause[: s.graphs], forced, *own[FORCED + 1 :])
        return jnp.concatenate(blocks)

    return feed


def final(s: Training, answered: Float[Array, " j"]) -> Float[Array, ""]:
    """Accuracy after as many inputs as the answer has in the last stage."""
    ends = jnp.asarray([int(model.method(name, s.hops).answer[-1].argmax()) for name in model.METHODS])
    return answered[ends[s.recipe.index]]


def grouped(s: Training, products: Float[Array, "j g names"], seen: Float[Array, "i g m"], posed: Posed) -> tuple[Arrays, Arrays]:
    """Differences of neighbouring groups, means and Student's t; the same with thoughts and attention of other graphs."""
    products = products[: s.hops]
    (gap, apart), (mixed, _) = (model.gaps(p, posed) for p in (products, jnp.roll(products, 1, 1)))
    edges = model.edge_groups(posed, s.hops)
    looks, other = (model.between(x, edges) for x in (seen, jnp.roll(seen, 1, 1)))

    def named(kinds: dict[str, Float[Array, "i order g"]]) -> Arrays:
        means = {name: jd.named(jnp.mean(x, -1), "thought order") for name, x in kinds.items()}
        return means | {f"{name}_t": jd.named(student(x), "thought order") for name, x in kinds.items()}

    return named({"gaps": gap, "apart": apart, "looks": looks}), named({"shuffled": mixed, "looks_shuffled": other})


def reread(
    s: Training, params: PyTree, posed: Posed, hidden: Float[Array, "j g d"]
) -> tuple[Int[Array, " g"], Float[Array, "i g m"]]:
    """Answers if each thought has the place of the one before it, the first the last one's; the last layer's attention to edges."""
    prompt, mark = params["embed"][posed.tokens], jnp.broadcast_to(params["embed"][marks(s)[0]], hidden.shape[1:])
    thoughts = hidden[: s.hops]
    both = [jnp.concatenate([jnp.moveaxis(x, 0, 1), mark[:, None]], 1) for x in (thoughts, jnp.roll(thoughts, -1, 0))]
    x = jnp.concatenate([jnp.concatenate([prompt, tail], 1) for tail in both])
    out, maps = model.passed(shape(s), params, x)
    answer = jnp.argmax(read(shape(s), params, out[s.graphs :, -1]), -1)
    return answer, model.edges_seen(maps[-1][: s.graphs], sizes(s).edges, s.hops)


def walked(
    s: Training, plain: Float[Array, "j g names"], cut: Float[Array, "j g names"], posed: Posed, node: Int[Array, " g"]
) -> Arrays:
    """The shortcut's node minus the other family's nodes, [kind, thought]; Student's t of this node minus those one step away."""

    def at(products: Float[Array, "i g names"]) -> tuple[Float[Array, "i g"], ...]:
        own = jnp.take_along_axis(products, node[None, :, None], -1)[..., 0]
        far, near = posed.away == s.hops + 1, posed.away == 1
        mean = [jnp.sum(jnp.where(group, products, 0), -1) / jnp.sum(group, -1).astype(s.dtype) for group in (far, near)]
        return own - mean[0], own - mean[1]

    away, nearer = zip(*(at(p[:2]) for p in (plain, cut)), strict=True)
    walk, t = jnp.mean(jnp.stack(away), -1), student(jnp.stack(nearer))
    return {"walk": jd.named(walk, "kind early"), "walk_t": jd.named(t, "kind early")}


def openness(s: Training, logits: Float[Array, "j g names"], posed: Posed) -> Arrays:
    """Entropies of the next node, and how far they fall from thought 1 to thought 2."""
    names = metrics.entropy(jax.nn.softmax(logits, -1))
    children = model.open_children(logits[: s.hops], posed)
    fall = jnp.stack([children[0] - children[min(1, s.hops - 1)], names[0] - names[1]])
    return {
        "entropy": jd.named(jnp.mean(names, -1), "inputs"),
        "open": jd.named(jnp.mean(children, -1), "thought"),
        "fall": jd.named(jnp.mean(fall, -1), "among"),
        "fall_t": jd.named(student(fall), "among"),
    }


def trial(s: Training, key: PRNGKeyArray) -> jd.Observables:
    """Training from scratch, and everything that is read from the trained network.

    A run takes about 10 s: pointing from an edge's source to its target is learned after some 400 to 700 steps of 64 problems, one
    token of each, and only then can a second step be. A network that has not learned it when the first stage ends stays at a coin
    between the candidates, so this stage has two thirds of all steps.
    """
    k_init, k_data, k_problems, k_noise = jax.random.split(key, 4)
    # training
    how = chosen(s)
    params, losses = trained(s, how, k_data, init(shape(s), k_init))
    # problems that are not trained on, blocks of them with changed inputs, and edited graphs
    posed = sample_problems(s, k_problems, s.graphs)
    cut, node = model.shortcut(posed)
    edits = [*(jax.vmap(edit)(posed.problem) for edit in (reachability.redirected, reachability.exchanged)), cut]
    tokens = [posed.tokens] * (FORCED + 1) + [jax.vmap(lambda p: reachability.render(p, sizes(s)))(p) for p in edits]
    right = jnp.stack([p.candidates[:, 0] for p in [posed.problem] * (FORCED + 1) + edits])
    out = model.outputs(shape(s), params, jnp.concatenate(tokens), fed(s, params, how, k_noise), s.hops, marks(s)[0])
    # answers of every block, values of nodes, and attention
    answer = jnp.argmax(out.answer, -1).reshape(s.hops + 1, len(tokens), s.graphs)
    hits = (answer == right).astype(s.dtype)  # [j, block, g]
    blocks = out.logits[..., : sizes(s).nodes].reshape(*answer.shape, -1)
    hidden = out.hidden.reshape(*answer.shape, -1)[:, FORCED]
    moved, seen = reread(s, params, posed, hidden)
    ways = jnp.stack([*hits[-1, :FORCED], hits[0, 0], (moved == right[0]).astype(s.dtype)])
    groups, shuffled = grouped(s, blocks[:, 0], seen, posed)
    return jd.observables(
        predicted={},
        measured={
            "accuracy": final(s, hits[:, 0].mean(-1)),
            "answered": jd.named(hits[:, 0].mean(-1), "inputs"),
            "ablated": jd.named(ways.mean(-1), "way"),
            "lost_error": jd.named(jnp.std(ways[0] - ways, -1, ddof=1) / s.graphs**0.5, "way"),
            "edited": jd.named(hits[-1, FORCED + 1 : FORCED + 3].mean(-1), "edit"),
        }
        | groups
        | walked(s, blocks[:, 0], blocks[:, -1], posed, node)
        | openness(s, blocks[:, FORCED], posed),
        recorded={
            "loss": jd.named(losses, "sample"),
            "products": jd.named(blocks[: s.hops, 0], "thought graph node"),
            "nearest": jd.named(posed.away.astype(s.dtype), "graph node"),
            "path": jd.named(posed.problem.path[:, 1:].astype(s.dtype), "graph thought"),
            "negative": jd.named(posed.problem.candidates[:, 1].astype(s.dtype), "graph"),
            "edges": jd.named(posed.problem.edges.astype(s.dtype), "graph edge end"),
            "seen": jd.named(seen, "thought graph edge"),
        }
        | shuffled,
        coords={"way": WAYS, "edit": EDITS, "order": ORDERS, "thought": range(1, s.hops + 1), "inputs": range(s.hops + 1)}
        | {"kind": KINDS, "early": (1, 2), "among": AMONG, "end": ("source", "target")},
        status=train.finite_status(params),
    )


LEARNED = 0.8
STARTS = f"starts from which Coconut answers at least {LEARNED:.0%} right"
THREE_HOPS = {"hops": 3, "width": 64, "heads": 4, "hidden": 128, "lr": 2e-3, "samples": 60, "first": 0.6}  # 7 of 8 learned it
SETUP = (
    "Decoders of {layers} layers and width {width} learn from scratch which of two candidates can be reached from a root: two "
    "trees of random names, with a candidate {hops} steps from the root of each. Training: {samples} times {every} steps of "
    "Adam, each on {batch} new problems, at peak rate {lr}. Then {graphs} new problems are asked; {seeds} seeds."
)
COUNTED = f" Networks that answer fewer than {LEARNED:.0%} right do not count."
BY_COCONUT = f"{SETUP} Training is by Coconut, with {{hops}} thoughts.{COUNTED}"


def starts(accuracy: xr.DataArray, level: float) -> jd.Reading:
    """The share of starts from which a network learns the task: means over few starts hang on a single one that fails."""
    return jd.share_reading(STARTS, (accuracy >= LEARNED).where(accuracy.notnull()), over="seed", level=level)


def learners(ds: xr.Dataset) -> xr.DataArray:
    """Whether each run answers with all its thoughts."""
    return ds.measured_answered.isel(inputs=-1, drop=True) >= LEARNED


def able(ds: xr.Dataset) -> tuple[jd.Check, xr.DataArray]:
    """The gate, and which runs answer with all their thoughts; the others do not count."""
    flags = learners(ds)
    return jd.gate("networks that learned the task", flags.sum("seed"), at_least=2), flags


def among_learners(values: xr.DataArray, flags: xr.DataArray) -> xr.DataArray:
    """The values of networks that learned; of all of them if fewer than two did, so that a control is judged by what it shows."""
    return values.where(flags | (flags.sum("seed") < 2))


def shown(ds: xr.Dataset) -> xr.Dataset:
    """For figures and tables: the networks that learned the task; all of them if none did."""
    learned = np.flatnonzero(learners(ds).values.ravel())
    return ds.isel(seed=learned) if learned.size else ds
