"""Runs behind the claims on the order of learning: one JoMA block per query that learns the class of a latent tree."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import train
from jaxdyn.data import trees
from jaxdyn.status import OK
from jaxdyn.theories.joma import hblt_model as net
from jaxdyn.theories.joma.dynamics import hblt as theory
from jaxdyn.theories.joma.model import ACTIVATIONS

__all__ = ["GELU", "Hierarchy", "trial"]

SNAPSHOTS = 50
GELU = jd.Code.of("gelu", ACTIVATIONS)


@jd.setting
class Hierarchy:
    """A JoMA block that learns the class of a latent tree.

    The values below were chosen by reasoning before the first run, except the batch (512 then) and the length of "wide" (400 steps
    then, which continued after the arrival of all pairs into a blow-up of the exponential).

    Data: as many classes as subtrees; class k turns the top latent of subtree k on and the others off. Leaves at depth 5 (16 of
    them a subtree, H = 1..4); rho = 0.8, so that co-occurrence falls from 0.77 at H = 1 to 0.48 at H = 4, clear of ties and of 0.
    "shallow": the same leaves' probabilities given the class, but no latents; H is then a label without meaning.

    Outputs: "wide" has more symbols than ever occur (a vocabulary), all equally likely at the start, so the outputs are far from
    the classes' prior and saliency falls with H. "exact" has the classes alone, and starts at their prior: there H cancels from
    the saliency (joma.hblt_cancellation), and what is then learned from the query makes far tokens the salient ones.

    Network: exp attention with the constant A = number of tokens, GELU, upper layer fixed (stationary gradient, assumption A1).
    Rates: those of the lower layer and of the logits are in units of M, the number of tokens, and M^2. The constant A = M divides
    the first out, and the logits of one query get 1/M of the samples: at ratio 1, z and v of a query move at one speed for any M.
    lr = 1/16: the stationary theory then arrives after 106-125 steps, slow enough for a flow. Threshold ln 2: attention to the
    token has doubled. The stationary theory says when, for each upper layer, as long as the outputs and the nodes' slopes stay near
    those of the start. At ratio 1 they do not: logits reach ln(5/4) at the predicted step on average, but single runs are off by a
    tenth, which is the curvature of GELU (linear nodes: off by 1%, but 12% late, as the outputs learn). At ratio 256 the logits
    arrive before v has grown, and single runs are within 5%. Beyond ln(5/4) the theory's fastest subtree may blow up before the
    slowest arrives. The run lasts 50 snapshots at any rate: at lr = 1/16 200 steps for "wide", 400 for
    "exact", 1.6-1.8 times the theory's last arrival.

    Args:
        latents: whether the tree has latents.
        outputs: how many outputs there are.
        rho: polarity of an edge.
        lr: rate of the lower layer over the number of tokens.
        ratio: rate of the attention logits over that of the lower layer, over the number of tokens.
        threshold: logit at which a token counts as learned.
        spacing: of the snapshots, of which there are 50, in 1/(16 lr) steps; rounded to whole steps, at least one.
        init: standard deviation of the weights at the start.
        depth: L.
        subtrees: top latents, and classes.
        vocabulary: outputs of "wide".
        hidden: nodes.
        batch: fresh sequences a step.
        dtype: of the network.
    """

    latents: jd.Code = jd.code("deep", "shallow")
    outputs: jd.Code = jd.code("wide", "exact")
    rho: jd.Swept = 0.8
    lr: jd.Swept = 0.0625
    ratio: jd.Swept = 1.0
    threshold: jd.Swept = math.log(2)
    spacing: jd.Swept = 4.0
    init: jd.Swept = 0.01
    depth: int = 5
    subtrees: int = 4
    vocabulary: int = 32
    hidden: int = 32
    batch: int = 256
    dtype: str = "float32"

    def __post_init__(self) -> None:
        jd.require(self, 0 < self.rho <= 1, "0 < rho <= 1", "rho")
        for name in ("lr", "ratio", "threshold", "spacing"):
            jd.require(self, getattr(self, name) > 0, f"{name} is positive", name)
        for name, least in (("depth", 2), ("subtrees", 2), ("hidden", 1), ("batch", 1)):
            jd.require(self, getattr(self, name) >= least, f"{name} is at least {least}", name)
        jd.require(self, self.vocabulary >= self.subtrees, "the vocabulary holds all classes", "vocabulary", "subtrees")


def _tree(s: Hierarchy, dtype: str) -> trees.Tree:
    prior = jnp.full(s.subtrees, 1 / s.subtrees, dtype)
    polarity = 1 - 2 * jnp.eye(s.subtrees, dtype=dtype)
    return trees.Tree(prior, polarity, trees.symmetric(s.rho, s.depth - 1, dtype))


def _allowed(s: Hierarchy) -> Bool[Array, " output"]:
    return (jnp.arange(s.vocabulary) < s.subtrees) | (s.outputs == "wide")


def _tokens(s: Hierarchy) -> int:
    return s.subtrees * 2 ** (s.depth - 1)


def _every(s: Hierarchy) -> Int[Array, ""]:
    """Steps between snapshots."""
    return jnp.maximum(jnp.round(jnp.asarray(s.spacing / (16 * s.lr))), 1).astype(jnp.int32)


def _predicted_times(s: Hierarchy, upper: Float[Array, "K O"]) -> Float[Array, "2 height"]:
    """Steps by height, mean over the subtrees, with the gradient of the start: with this upper layer, and with U'U = 1."""
    tree = _tree(s, "float64")
    tokens = _tokens(s)
    rho, lr, ratio, threshold = (jnp.asarray(x, jnp.float64) for x in (s.rho, s.lr, s.ratio, s.threshold))
    saliency = theory.start_saliencies(tree.prior, tree.polarity, rho, s.depth, _allowed(s), s.latents == "shallow")
    speeds = theory.Speeds(lr * tokens, ratio * tokens, 0.5, tokens)  # GELU has slope 1/2 at 0
    horizon = SNAPSHOTS * _every(s).astype(jnp.float64)
    upper = upper.astype(jnp.float64)
    kernels = jnp.stack([upper.T @ upper, jnp.eye(s.vocabulary, dtype=jnp.float64)])
    times = jax.vmap(lambda kernel: theory.arrival_times(saliency, speeds, threshold, horizon, kernel))(kernels)
    return jnp.mean(jnp.minimum(times, horizon + 1), 1)


def trial(s: Hierarchy, key: PRNGKeyArray) -> jd.Observables:
    """Train the block; the step at which each logit within a subtree reaches the threshold (horizon + 1 if it does not).

    A run in which all have arrived is ok, also if it then ends in the blow-up of exp attention.
    """
    k_init, k_data = jax.random.split(key)
    tree, allowed = _tree(s, s.dtype), _allowed(s)
    tokens, height = _tokens(s), jnp.asarray(trees.cla_heights(s.depth - 1))
    params, upper = net.init(k_init, tokens, s.hidden, s.vocabulary, s.init, s.dtype)
    mean_count = tree.leaves * jnp.sum(trees.leaf_rate(tree) @ tree.prior)

    def batch(step: Int[Array, ""]) -> net.Batch:
        u = jax.random.uniform(jax.random.fold_in(k_data, step), (s.batch, tokens + trees.draws(tree)), jnp.float32)
        label, deep = trees.grow(tree, u[:, tokens:])
        leaves = jnp.where(s.latents == "deep", deep, trees.grow_shallow(tree, u[:, tokens:])[1])
        return net.pick_queries(u[:, :tokens], label, leaves.reshape(s.batch, tokens), mean_count)

    tx = net.descent(s.lr * tokens, s.ratio * tokens)
    step = train.make_step(lambda p, b: net.loss(p, b, upper, allowed, GELU), tx, batch)

    def advance(carry: tuple) -> tuple:
        state = step(carry[0])
        z = net.same_subtree(state.params.z, s.subtrees)
        return state, net.track(carry[1], z, state.step, s.threshold)

    def observe(carry: tuple) -> Float[Array, " height"]:
        return net.height_means(net.same_subtree(carry[0].params.z, s.subtrees), height, s.depth - 1)

    every = _every(s)
    never = (SNAPSHOTS * every + 1).astype(s.dtype)
    start = jnp.full((s.subtrees, *height.shape), jnp.inf, s.dtype)
    (state, arrival), logits = train.record(advance, (train.init(tx, params), start), observe, samples=SNAPSHOTS, every=every)
    arrival = jnp.minimum(arrival, never)
    arrived = jnp.sum(arrival < never) == s.subtrees * height.size - tokens  # all but each token with itself
    own, alike = _predicted_times(s, upper)
    return jd.observables(
        predicted={"time": jd.named(own, "height")},
        measured={
            "time": jd.named(net.height_means(arrival, height, s.depth - 1), "height"),
            "arrival": jd.named(arrival, "subtree query token"),
        },
        recorded={
            "ancestor": jd.named(height, "query token"),
            "mean_time": jd.named(alike, "height"),  # with the mean of U'U over random upper layers
            "logit": jd.named(logits, "snapshot height"),
            "step": jd.named(every * jnp.arange(SNAPSHOTS + 1), "snapshot"),
            "reached": jd.named(net.height_means((arrival < never).astype(s.dtype), height, s.depth - 1), "height"),
        },
        status=jnp.where(arrived, jnp.int32(OK), train.finite_status(state.params)),
        coords={"height": range(1, s.depth)},
    )
