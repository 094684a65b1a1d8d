"""Runs behind the claims on latent trees: formulas beside the tree's own sum-product and beside sampled sequences."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

import jaxdyn as jd
from jaxdyn.data import trees
from jaxdyn.engine.claim import Named
from jaxdyn.theories.joma.dynamics import hblt as theory

__all__ = ["Limit", "Tokens", "limit_trial", "tokens_trial"]

BATCH = 2048  # sequences sampled at a time


@jd.setting
class Tokens:
    """A random latent tree and a query token.

    Args:
        rho: polarity of an edge.
        bias: centre of the top latents' polarities, which are uniform in bias +- (1 - |bias|) for each class and subtree.
        skew: asymmetry of the channels: 0 flips (1 + skew) times, 1 flips (1 - skew) times as often.
        depth: L, a whole number up to levels + 1.
        levels: edges from top to leaf of the tree that serves all depths.
        subtrees: number of top latents.
        classes: number of classes.
        samples: sequences of the sampler.
    """

    rho: jd.Swept = 0.8
    bias: jd.Swept = 0.4
    skew: jd.Swept = 0.0
    depth: jd.Swept = 6.0
    levels: int = 5
    subtrees: int = 2
    classes: int = 4
    samples: int = 16384

    def __post_init__(self) -> None:
        jd.require(self, 0 < self.rho <= 1, "0 < rho <= 1", "rho")
        for name in ("bias", "skew"):
            jd.require(self, -1 <= getattr(self, name) <= 1, f"{name} is from -1 to 1", name)
        jd.require(self, 2 <= self.depth <= self.levels + 1, f"depth is from 2 to {self.levels + 1}", "depth")
        for name in ("subtrees", "classes"):
            jd.require(self, getattr(self, name) >= 2, f"{name} is at least 2", name)
        jd.require(self, self.samples % BATCH == 0, f"samples is a multiple of {BATCH}", "samples")


def _flips(channel: Float[Array, "levels 2"], depth: jd.Swept, levels: int) -> Float[Array, "levels 2"]:
    """Channels of a tree of that depth: the edges above depth L - 1, counted from the leaves, carry their bit unchanged.

    So one tree serves all depths; tokens whose common ancestor lies higher than L - 1 edges have H = L - 1.
    """
    edge = jnp.arange(levels, 0, -1)
    return jnp.where(edge[:, None] < depth, channel, 0.0)


def _draw_tree(s: Tokens, key: PRNGKeyArray) -> trees.Tree:
    k_prior, k_polarity = jax.random.split(key)
    prior = 0.25 + jax.random.uniform(k_prior, (s.classes,), jnp.float64)
    spread = jax.random.uniform(k_polarity, (s.subtrees, s.classes), jnp.float64, -1.0, 1.0)
    flip = _flips(trees.symmetric(s.rho, s.levels) * jnp.stack([1 + s.skew, 1 - s.skew]), s.depth, s.levels)
    return trees.Tree(prior / jnp.sum(prior), s.bias + (1 - jnp.abs(s.bias)) * spread, flip)


def _group(values: Float[Array, "*n token"], height: Int[Array, " token"], count: int) -> Float[Array, "*n height"]:
    """Means over the tokens of each height 1..count (last axis)."""
    member = height[:, None] == jnp.arange(1, count + 1)
    return values.astype(jnp.float64) @ (member / jnp.sum(member, 0))


def _sampled(
    s: Tokens,
    tree: trees.Tree,
    query: Int[Array, ""],
    height: Int[Array, " token"],
    output: Float[Array, " class"],
    key: PRNGKeyArray,
) -> dict:
    """Means and standard errors, over sequences in which the query is present, of the predicted quantities."""

    def batch(k: PRNGKeyArray) -> tuple[Float[Array, ""], dict, dict]:
        label, leaves = trees.sample(tree, k, BATCH)
        kept = leaves[:, 0, query].astype(jnp.float64)
        same = _group(leaves[:, 0], height, s.levels)
        g = jax.nn.one_hot(label, s.classes, dtype=jnp.float64) - output
        values = {
            "sampled": same,
            "across": jnp.mean(leaves[:, 1], -1, dtype=jnp.float64),
            "saliency": g[:, :, None] * same[:, None],
        }
        first = {n: jnp.tensordot(kept, v, 1) for n, v in values.items()}
        second = {n: jnp.tensordot(kept, v**2, 1) for n, v in values.items()}
        return jnp.sum(kept), first, second

    count, first, second = jax.tree.map(lambda x: jnp.sum(x, 0), jax.lax.map(batch, jax.random.split(key, s.samples // BATCH)))
    mean = {n: v / count for n, v in first.items()}
    return {n: (mean[n], jnp.sqrt((second[n] / count - mean[n] ** 2) / count)) for n in mean}


def _predictions(s: Tokens, tree: trees.Tree, height: Int[Array, " token"], output: Float[Array, " class"]) -> dict:
    """All formulas, for every token (tree) and for every height (sampler)."""
    prior, polarity = tree.prior, tree.polarity[0]
    token, heights = (jnp.minimum(h.astype(jnp.float64), s.depth - 1) for h in (height, jnp.arange(1, s.levels + 1)))
    rho0 = theory.mean_polarity(prior, polarity)
    across = theory.across(prior, tree.polarity[1], polarity, s.rho, s.depth)
    at_prior = theory.saliency_at_prior(prior, polarity, s.rho, s.depth)
    at_posterior = theory.saliency_at_posterior(prior, polarity, s.rho, s.depth, token)
    return {
        "conditional": jd.named(theory.conditional(s.rho, rho0, s.depth, token), "token"),
        "sampled": jd.named(theory.conditional(s.rho, rho0, s.depth, heights), "height"),
        "across": across,
        "across_sampled": across,
        "saliency": jd.named(theory.saliency(prior, polarity, s.rho, s.depth, token, output), "class token"),
        "saliency_sampled": jd.named(theory.saliency(prior, polarity, s.rho, s.depth, heights, output), "class height"),
        "saliency_at_prior": jd.named(jnp.broadcast_to(at_prior[:, None], at_posterior.shape), "class token"),
        "saliency_at_posterior": jd.named(at_posterior, "class token"),
    }


def _others(s: Tokens, tree: trees.Tree, height: Int[Array, " token"]) -> dict:
    """Other theories of co-occurrence: rho0 taken as P(top = 0), the limit 1 - H/L, no latents below the top, independence."""
    prior, polarity, c = tree.prior, tree.polarity[0], s.rho ** (s.depth - 1)
    token, heights = (jnp.minimum(h.astype(jnp.float64), s.depth - 1) for h in (height, jnp.arange(1, s.levels + 1)))
    misread = (1 + theory.mean_polarity(prior, polarity)) / 2
    flat = theory.across(prior, polarity, polarity, s.rho, s.depth)
    alone = jnp.sum(prior * (1 - c * tree.polarity[1]) / 2)
    return {
        "misread": jd.named(theory.conditional(s.rho, misread, s.depth, token), "token"),
        "misread_sampled": jd.named(theory.conditional(s.rho, misread, s.depth, heights), "height"),
        "sparse": jd.named(theory.limit(s.depth, token), "token"),
        "sparse_sampled": jd.named(theory.limit(s.depth, heights), "height"),
        "flat": flat,
        "alone": alone,
    }


def tokens_trial(s: Tokens, key: PRNGKeyArray) -> jd.Observables:
    """Formulas, the tree's own sum-product (each token), and sampled sequences (means over the tokens of each height)."""
    k_tree, k_query, k_output, k_sample = jax.random.split(key, 4)
    tree = _draw_tree(s, k_tree)
    query = jax.random.randint(k_query, (), 0, tree.leaves, jnp.int32)
    output = jax.nn.softmax(jax.random.normal(k_output, (s.classes,), jnp.float64))
    height = jnp.asarray(trees.cla_heights(s.levels))[query]
    _, joint = trees.leaf_joint(tree, 0, query)
    same = joint[:, 0]
    sampled = _sampled(s, tree, query, height, output, k_sample)

    def exact(pi: Float[Array, " class"]) -> Named:
        return jd.named(same - pi[:, None] * jnp.sum(same, 0), "class token")

    return jd.observables(
        predicted=_predictions(s, tree, height, output),
        measured={
            "conditional": jd.named(jnp.sum(same, 0), "token"),
            "sampled": jd.named(sampled["sampled"][0], "height"),
            "across": jnp.sum(joint[:, 1, 0]),
            "across_sampled": sampled["across"][0],
            "saliency": exact(output),
            "saliency_sampled": jd.named(sampled["saliency"][0], "class height"),
            "saliency_at_prior": exact(tree.prior),
            "saliency_at_posterior": exact(same[:, query]),  # the query as its own token: P(class | query)
        },
        recorded={
            "error_sampled": jd.named(sampled["sampled"][1], "height"),
            "error_across_sampled": sampled["across"][1],
            "error_saliency_sampled": jd.named(sampled["saliency"][1], "class height"),
            "token_height": jd.named(jnp.minimum(height, s.depth - 1), "token"),
            "output": jd.named(output, "class"),
            **_others(s, tree, height),
        },
        coords={"height": range(1, s.levels + 1)},
    )


@jd.setting
class Limit:
    """Strong edges and sparse classes: rho = 1 - eps, and rho0 the same.

    Args:
        eps: distance from the limit.
        depth: L, a whole number up to levels + 1.
        root: rho0 = 1 - eps ("sparse"), or 1/2 ("half").
        levels: edges from top to leaf of the tree that serves all depths.
    """

    eps: jd.Swept = 0.01
    depth: jd.Swept = 8.0
    root: jd.Code = jd.code("sparse", "half")
    levels: int = 9

    def __post_init__(self) -> None:
        jd.require(self, 0 < self.eps < 1, "0 < eps < 1", "eps")
        jd.require(self, 2 <= self.depth <= self.levels + 1, f"depth is from 2 to {self.levels + 1}", "depth")


def limit_trial(s: Limit, key: PRNGKeyArray) -> jd.Observables:
    """1 - H/L against the tree's own sum-product; heights above L - 1 repeat that of L - 1."""
    rho, rho0 = 1 - s.eps, jnp.where(s.root == "sparse", 1 - s.eps, 0.5)
    flip = _flips(trees.symmetric(rho, s.levels), s.depth, s.levels)
    tree = trees.Tree(jnp.stack([(1 + rho0) / 2, (1 - rho0) / 2]), jnp.array([[1.0, -1.0]], jnp.float64), flip)
    _, joint = trees.leaf_joint(tree, 0, 0)
    height = jnp.arange(1, s.levels + 1)
    cut = jnp.minimum(height, s.depth - 1)
    return jd.observables(
        predicted={"limit": jd.named(theory.limit(s.depth, cut), "height")},
        measured={"limit": jd.named(jnp.sum(joint[:, 0], 0)[2 ** (height - 1)], "height")},
        coords={"height": range(1, s.levels + 1)},
    )
