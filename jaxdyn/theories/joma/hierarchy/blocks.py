"""Networks of one to three JoMA blocks on latent trees: which latents each learns, what attention's return is worth.

The network and the trees are in ``stack.py``. Source: arXiv:2310.00535, sections on hierarchical data and on several layers
(qualitative there).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import train
from jaxdyn.plotting import COLORS, band
from jaxdyn.theories.joma.experiments.table1 import score
from jaxdyn.theories.joma.hierarchy import model as one_block
from jaxdyn.theories.joma.hierarchy.stack import (
    CLASSES,
    HIGH,
    KINDS,
    LOW,
    MOST,
    Blocks,
    Params,
    Sequences,
    apply,
    distances,
    entropy,
    grow,
    loss,
    of_tree,
    start,
)

TESTED = 256  # sequences of the loss, of the entropy and of the scores
TURN = 0.01  # nats above its minimum at which the entropy of a block's attention has turned


class Run(NamedTuple):
    """State of training, and of each block the least entropy so far, the logits at that point, and whether they are held."""

    state: train.State
    least: Float[Array, " S"]
    sparsest: Float[Array, "S M M"]
    held: Bool[Array, " S"]


def latent_scores(
    h: Float[Array, "S M B K"], data: Sequences, level: Int[Array, " N"], shift: Int[Array, ""]
) -> Float[Array, "S level"]:
    """Table 1's score of each block's nodes, for low and high latents; a sequence has the latents of the one ``shift`` before."""
    best = jnp.max(jnp.where(data.present.T[..., None], h, -jnp.inf), 1)
    best = jnp.where(jnp.isfinite(best), best, 0)  # no token at all
    once = jnp.ones(len(data.latents), jnp.int32)
    active = jnp.roll(data.latents, shift, 0)
    one = jax.vmap(lambda nodes, which: score.score(nodes, active & (level == which), once), (0, None))
    return jax.vmap(one, (None, 0), 1)(best, jnp.array([LOW, HIGH], jnp.int32))


def _nearness(z: Float[Array, "S M M"], apart: Float[Array, "leaf leaf"]) -> Float[Array, " S"]:
    """Minus the correlation of logits and distance over pairs of a subtree; 0 where all logits are the same."""
    own, leaves = jax.vmap(lambda block: one_block.same_subtree(block, CLASSES))(z), len(apart)
    others = ~jnp.eye(leaves, dtype=bool)
    x, y = (jnp.where(others, a, 0) for a in (own, jnp.broadcast_to(apart, own.shape)))
    count = CLASSES * leaves * (leaves - 1)
    x, y = (jnp.where(others, a - jnp.sum(a, (1, 2, 3), keepdims=True) / count, 0) for a in (x, y))
    size = jnp.sqrt(jnp.sum(x**2, (1, 2, 3)) * jnp.sum(y**2, (1, 2, 3)))
    return -jnp.sum(x * y, (1, 2, 3)) / jnp.where(size > 0, size, 1)


def _make_step(s: Blocks, upper: Array, key: PRNGKeyArray, tx: optax.GradientTransformation) -> Callable[[Run], Run]:
    """One step of training, after which held logits stand where they were."""
    step = train.make_step(
        lambda p, data: loss(p, data, upper, s.blocks), tx, lambda i: grow(jax.random.fold_in(key, i), s, s.batch)
    )

    def advance(run: Run) -> Run:
        state = step(run.state)
        z = jnp.where(run.held[:, None, None], run.sparsest, state.params.z)
        return run._replace(state=state._replace(params=state.params._replace(z=z)))

    return advance


def trial(s: Blocks, key: PRNGKeyArray) -> jd.Observables:
    """Train one network; entropy and loss along training, scores of the latents before and after."""
    k_start, k_data, k_test = jax.random.split(key, 3)
    params, upper = start(k_start, s)
    test = grow(k_test, s, TESTED)
    rates = Params._make((s.ratio, 1.0, 1.0, 1.0, 1.0))
    tx = optax.chain(
        optax.scale_by_adam(),
        optax.stateless(lambda u, _: jax.tree.map(lambda a, rate: (-s.lr * rate * a).astype(a.dtype), u, rates)),
    )
    step = _make_step(s, upper, k_data, tx)

    def advance(run: Run) -> Run:
        run = jax.lax.fori_loop(0, jnp.round(s.every).astype(jnp.int32), lambda _, r: step(r), run)
        now = entropy(run.state.params.z, test.present)
        sparsest = jnp.where((now < run.least)[:, None, None], run.state.params.z, run.sparsest)
        held = run.held | ((now > run.least + TURN) & (s.attention == "held"))
        return Run(run.state, jnp.minimum(now, run.least), sparsest, held)

    def observe(run: Run) -> dict[str, Array]:
        p = run.state.params
        return {"entropy": entropy(p.z, test.present), "loss": loss(p, test, upper, s.blocks)}

    first = Run(train.init(tx, params), jnp.full(MOST, jnp.inf, s.dtype), params.z, jnp.zeros(MOST, bool))
    last, curves = train.record(advance, first, observe, samples=s.samples, every=1)
    level = jnp.tile(of_tree(s, lambda tree: np.array(tree.levels), "int32"), CLASSES)

    both = jax.tree.map(lambda *ends: jnp.stack(ends), params, last.state.params)
    h = jax.lax.map(lambda p: apply(p, test.present), both)
    shifts = jnp.array([0, CLASSES])  # the latents of the sequence itself, and of the next one of its class
    before, after = jax.vmap(lambda nodes: jax.vmap(lambda by: latent_scores(nodes, test, level, by))(shifts))(h)
    near = _nearness(last.state.params.z, of_tree(s, distances, s.dtype))
    return jd.observables(
        measured={
            "score": jd.named(after[0], "block level"),
            "near": jd.named(near, "block"),
            "entropy": jd.named(curves["entropy"], "record block"),
            "loss": jd.named(curves["loss"], "record"),
        },
        recorded={
            "untrained": jd.named(before[0], "block level"),
            "shuffled": jd.named(after[1], "block level"),
            "untrained_shuffled": jd.named(before[1], "block level"),
            "held": jd.named(last.held.astype(s.dtype), "block"),
            "step": jd.named(jnp.round(s.every) * jnp.arange(s.samples + 1, dtype=s.dtype), "record"),
        },
        status=train.finite_status(last.state.params),
        coords={"block": range(1, MOST + 1), "level": ("low", "high")},
    )


LEVEL_BLOCK = {"low": 1, "high": MOST}  # the block in which layer-by-layer learning would have them
GAIN = {level: f"{level} latents: gain of their score in block {block}" for level, block in LEVEL_BLOCK.items()}
OWN = {level: f"{level} latents: the same, minus that of another sequence's" for level in LEVEL_BLOCK}
LAYERED = {kind: f"{kind}: gain of high minus low latents, last minus first block" for kind in KINDS}
NEAR = {block: f"correlation of logit and nearness, block {block}" for block in (1, MOST)}
RETURN = {1: "one block: rise of the entropy from its minimum", 3: "three blocks: the same, mean over blocks"}
COST = {1: "one block: rise of the loss if the entropy may not return", 3: "three blocks: the same"}
MORE = "the same, three blocks minus one"


def _mean(name: str, values: xr.DataArray) -> jd.Reading:
    """The mean over runs; those of one seed count once."""
    return jd.mean_reading(name, values, over=[str(d) for d in values.dims])


def judge_layers(ds: xr.Dataset) -> list[jd.Reading]:
    """Which latents gain in which block, and whether attention is to near tokens there."""
    jd.need(ds, tree=KINDS, seed=4)
    gain, other = ds.measured_score - ds.untrained, ds.shuffled - ds.untrained_shuffled
    rise = gain.sel(block=MOST, drop=True) - gain.sel(block=1, drop=True)
    layered = rise.sel(level="high", drop=True) - rise.sel(level="low", drop=True)
    at = LEVEL_BLOCK.items()
    return [
        *(_mean(GAIN[level], gain.sel(level=level, block=b, drop=True)) for level, b in at),
        *(_mean(OWN[level], (gain - other).sel(level=level, block=b, drop=True)) for level, b in at),
        *(_mean(LAYERED[kind], layered.sel(tree=kind, drop=True)) for kind in KINDS),
        *(_mean(name, ds.measured_near.sel(block=b, drop=True)) for b, name in NEAR.items()),
    ]


def judge_return(ds: xr.Dataset) -> list[jd.Reading]:
    """How far the entropy comes back, and what it costs to prevent that, with one block and with three."""
    jd.need(ds, blocks=(1.0, 3.0), attention=("free", "held"), seed=4)
    at = ds.measured_entropy.sel(attention="free", drop=True)
    back = at.isel(record=-1, drop=True) - at.min("record")
    final = ds.measured_loss.isel(record=-1, drop=True)
    cost = final.sel(attention="held", drop=True) - final.sel(attention="free", drop=True)
    one, three = (cost.sel(blocks=float(b), drop=True) for b in COST)
    values = [back.sel(blocks=1.0, block=1, drop=True), back.sel(blocks=3.0, drop=True).mean("block"), one, three, three - one]
    return [_mean(name, value) for name, value in zip((*RETURN.values(), *COST.values(), MORE), values, strict=True)]


def perfect(level: str) -> Callable[[xr.Dataset], float]:
    """The gain of a score that ends at 1, in the block in which layer-by-layer learning has the level."""
    return lambda ds: 1 - float(ds.untrained.sel(level=level, block=LEVEL_BLOCK[level]).mean())


LAYER_BY_LAYER = (
    {name[level]: perfect(level) for name in (GAIN, OWN) for level in LEVEL_BLOCK}
    | dict.fromkeys(LAYERED.values(), lambda ds: perfect("low")(ds) + perfect("high")(ds))
    | dict.fromkeys(NEAR.values(), 1.0)
)


def all_of_the_fall(blocks: int) -> Callable[[xr.Dataset], float]:
    """How far the entropy has fallen at its minimum, mean over runs and over the blocks in use."""

    def fall(ds: xr.Dataset) -> float:
        at = ds.measured_entropy.sel(attention="free", blocks=float(blocks), block=slice(1, blocks))
        return float((at.isel(record=0) - at.min("record")).mean())

    return fall


def all_that_is_learned(blocks: int) -> Callable[[xr.Dataset], float]:
    """By how much training lowers the loss, mean over runs."""

    def learned(ds: xr.Dataset) -> float:
        loss = ds.measured_loss.sel(attention="free", blocks=float(blocks))
        return float((loss.isel(record=0) - loss.isel(record=-1)).mean())

    return learned


def plot_layers(ds: xr.Dataset, fig: Figure) -> None:
    """Gain of the scores by block, for low and high latents, of the sequences themselves and of others of the class."""
    kinds = [str(kind) for kind in np.atleast_1d(ds.tree.values)]
    axes = np.atleast_1d(fig.subplots(1, len(kinds), sharey=True))
    scores = (("measured_score", "untrained"), ("shuffled", "untrained_shuffled"))
    for ax, kind in zip(axes, kinds, strict=True):
        one = ds.sel(tree=kind) if "tree" in ds.dims else ds
        for level, color in (("low", "measured"), ("high", "third")):
            own, other = ((one[a] - one[b]).sel(level=level) for a, b in scores)
            band(ax, ds.block.values, own.transpose(..., "block"), level, color, marker="o")
            ax.plot(ds.block.values, other.mean([d for d in other.dims if d != "block"]), "--", color=COLORS[color])
        ax.plot([], [], "--", color=COLORS["control"], label="of another")
        ax.set(xlabel="block", title=kind)
        ax.set_xticks(ds.block.values)
    axes[0].set_ylabel("gain of the score by training")
    axes[0].legend()


def plot_return(ds: xr.Dataset, fig: Figure) -> None:
    """Entropy of attention along training with one block and with three, and the loss with and without the return."""
    left, right = fig.subplots(1, 2)
    steps = ds.step.mean([d for d in ds.step.dims if d != "record"]).values
    for blocks, color in ((1.0, "measured"), (3.0, "third")):
        one = ds.sel(blocks=blocks)
        name = "one block" if blocks == 1 else "three blocks"
        shown = one.measured_entropy.sel(attention="free", block=slice(1, int(blocks))).mean("block")
        band(left, steps, shown.transpose(..., "record"), name, color)
        for attention, style in (("free", "-"), ("held", "--")):
            runs = one.measured_loss.sel(attention=attention)
            median = runs.median([d for d in runs.dims if d != "record"])
            right.plot(steps, median.values, style, color=COLORS[color], label=f"{name}, {attention}")
    left.set(xlabel="step", ylabel="entropy of attention")
    right.set(xlabel="step", ylabel="loss", yscale="log")
    left.legend()
    right.legend()


LARGER = {"leaves": 16, "hidden": 32, "batch": 64, "every": 200.0}  # ten times the steps

STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Blocks, tree=list(KINDS), attention="free", blocks=3.0),
    paper=jd.grid(Blocks, tree=list(KINDS), attention="free", blocks=3.0, **LARGER),
    evidence="network",
    seeds=12,
    paper_seeds=32,
    source="arXiv:2310.00535, section on hierarchical data (several layers: qualitative there)",
)
CLAIMS = (
    STUDY.claim(
        id="joma.blocks_hierarchy",
        talks=("training:joma-hierarchy-agnostic",),
        title="Do several blocks learn the latents of a tree layer by layer?",
        statement="Do networks of three JoMA blocks learn the latents of a tree from the bottom up, one level after the other, "
        "whatever the tree? A block's score for low or high latents is the correlation of a latent with the node that follows it "
        "best, mean over latents; its gain is over the untrained network. Readings: the gain of low latents in the first block and "
        "of high latents in the last; the same, minus the gain for latents of another sequence of the class; for each tree, by how "
        "much the gain of high latents rises from the first block to the last, minus that of low ones; and the correlation of "
        "attention logits with nearness in the tree in the first block and in the last.",
        tested="Networks of {blocks} blocks of softmax attention with {hidden} ReLU nodes each and a fixed upper layer learn "
        "which of two latent trees of {leaves} leaves is on: pairs of pairs, a chain with a leaf at each latent, or groups of "
        "unequal sizes (edges of polarity {rho}; low latents are those farther from the top). {samples} times {every} steps of "
        "Adam at the rate {lr}, logits {ratio} times as fast, fresh batches of {batch} sequences; seeds: {seeds}.",
        expected="measured",
        judge=judge_layers,
        controls={"latents of another sequence of the class": jd.swap(measured_score="shuffled", untrained="untrained_shuffled")},
        recorded={
            GAIN["low"]: (0.0036, 0.03637, 0.0691),
            GAIN["high"]: (0.119, 0.2133, 0.307),
            OWN["low"]: (-0.0904, -0.05902, -0.0277),
            OWN["high"]: (-0.0529, -0.01412, 0.0246),
            LAYERED["balanced"]: (-0.0281, 0.03309, 0.0942),
            LAYERED["chain"]: (-0.0261, 0.05601, 0.138),
            LAYERED["unequal"]: (-0.00496, 0.0497, 0.104),
            NEAR[1]: (-0.132, -0.04038, 0.0509),
            NEAR[MOST]: (-0.182, -0.09019, 0.00174),
        },
        rivals={
            "nothing moves": jd.off(dict.fromkeys((*GAIN.values(), *OWN.values(), *LAYERED.values(), *NEAR.values()), 0.0)),
            "layer by layer, with a node for each latent of the sequence": LAYER_BY_LAYER,
        },
        plot=plot_layers,
        caption="Gain of the score by training in each block, for low and high latents: medians and central 90% of the runs; "
        "dashed: mean gain for the latents of another sequence of the class. One panel per kind of tree.",
    ),
    STUDY.claim(
        id="joma.blocks_return",
        talks=("training:joma-bounce-useful",),
        title="Is attention's return of use, with one block and with three?",
        statement="Is the return of attention's entropy from its minimum useless in one layer and useful in several? Readings: how "
        "far the entropy rises from its minimum to the end, with one block and with three, and by how much the loss at the end "
        "rises, from the same start, if each block's logits are set to those at its attention's sparsest and held there as soon "
        "as the entropy rises by .01 nats.",
        tested="Networks of one and of three blocks of softmax attention with {hidden} ReLU nodes each and a fixed upper layer "
        "learn which of two balanced latent trees of {leaves} leaves is on (edges of polarity {rho}). {samples} times {every} "
        "steps of Adam at the rate {lr}, logits {ratio} times as fast, fresh batches of {batch} sequences; seeds: {seeds}.",
        quick=jd.grid(Blocks, tree="balanced", attention=["free", "held"], blocks=[1.0, 3.0]),
        paper=jd.grid(Blocks, tree="balanced", attention=["free", "held"], blocks=[1.0, 3.0], **LARGER),
        seeds=48,
        paper_seeds=48,
        expected="measured",
        judge=judge_return,
        recorded={
            RETURN[1]: (0.228, 0.26, 0.292),
            RETURN[3]: (0.00428, 0.00824, 0.0122),
            COST[1]: (0.00462, 0.0151, 0.0256),
            COST[3]: (-0.0127, -0.006394, -0.000127),
            MORE: (-0.0335, -0.02149, -0.00949),
        },
        rivals={
            "nothing moves": jd.off(dict.fromkeys((*RETURN.values(), *COST.values(), MORE), 0.0)),
            "the entropy returns to where it started": {RETURN[blocks]: all_of_the_fall(blocks) for blocks in RETURN},
            "without the return nothing is learned": {COST[blocks]: all_that_is_learned(blocks) for blocks in COST},
            "only three blocks need the return, to learn at all": {MORE: all_that_is_learned(3)},
        },
        plot=plot_return,
        caption="Left: entropy of attention along training with one block, and with three (mean over blocks): medians and central "
        "90% of the runs. Right: median loss with attention free, and held at its sparsest.",
    ),
)
