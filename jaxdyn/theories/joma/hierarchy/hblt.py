"""Hierarchical latent trees: which tokens occur together (Theorem 5), and which are salient for a query.

The formulas of ``dynamics/hblt.py`` compared with the tree's own sum-product, and with sampled sequences.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting, stats
from jaxdyn.data import trees
from jaxdyn.engine.claims.observables import Named
from jaxdyn.plotting import COLORS, order, scatter
from jaxdyn.stats import loglog_slope
from jaxdyn.theories.joma.dynamics import hblt as theory

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

    rho: jd.Swept = jd.field(0.8, above=0, at_most=1)
    bias: jd.Swept = jd.field(0.4, at_least=-1, at_most=1)
    skew: jd.Swept = jd.field(0.0, at_least=-1, at_most=1)
    depth: jd.Swept = jd.field(6.0, at_least=2)
    levels: int = 5
    subtrees: int = jd.field(2, at_least=2)
    classes: int = jd.field(4, at_least=2)
    samples: int = 16384

    def __post_init__(self) -> None:
        """Refuse leaves below the tree's, and parts of a batch."""
        jd.require(self, self.depth <= self.levels + 1, "depth is at most levels + 1", "depth", "levels")
        jd.require(self, self.samples % BATCH == 0, f"samples is a multiple of {BATCH}", "samples")


def _flips(channel: Float[Array, "levels 2"], depth: jd.Swept, levels: int) -> Float[Array, "levels 2"]:
    """Channels of a tree of that depth: the edges above depth L - 1, counted from the leaves, carry their bit unchanged.

    So one tree serves all depths; tokens whose common ancestor lies higher than L - 1 edges have H = L - 1.
    """
    edge = jnp.arange(levels, 0, -1)
    return jnp.where(edge[:, None] < depth, channel, 0.0)


def _sample_tree(s: Tokens, key: PRNGKeyArray) -> trees.Tree:
    k_prior, k_polarity = jax.random.split(key)
    prior = 0.25 + jax.random.uniform(k_prior, (s.classes,), jnp.float64)
    spread = jax.random.uniform(k_polarity, (s.subtrees, s.classes), jnp.float64, -1.0, 1.0)
    flip = _flips(trees.symmetric(s.rho, s.levels) * jnp.stack([1 + s.skew, 1 - s.skew]), s.depth, s.levels)
    return trees.Tree(prior / jnp.sum(prior), s.bias + (1 - jnp.abs(s.bias)) * spread, flip)


def _group(
    values: Float[Array, "*n token"] | Bool[Array, "*n token"], height: Int[Array, " token"], count: int
) -> Float[Array, "*n height"]:
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

    # sums of the quantities and of their squares over a batch
    def batch(k: PRNGKeyArray) -> tuple[Float[Array, ""], dict, dict]:
        label, leaves = trees.sample(tree, k, BATCH)
        present = leaves[:, 0, query].astype(jnp.float64)
        same = _group(leaves[:, 0], height, s.levels)
        g = jax.nn.one_hot(label, s.classes, dtype=jnp.float64) - output
        values = {
            "sampled": same,
            "across": jnp.mean(leaves[:, 1], -1, dtype=jnp.float64),
            "saliency": g[:, :, None] * same[:, None],
        }
        first = {n: jnp.tensordot(present, v, 1) for n, v in values.items()}
        second = {n: jnp.tensordot(present, v**2, 1) for n, v in values.items()}
        return jnp.sum(present), first, second

    # means and their errors over all batches
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
    # a tree, a query, and the outputs' probabilities
    k_tree, k_query, k_output, k_sample = jax.random.split(key, 4)
    tree = _sample_tree(s, k_tree)
    query = jax.random.randint(k_query, (), 0, tree.leaves, jnp.int32)
    output = jax.nn.softmax(jax.random.normal(k_output, (s.classes,), jnp.float64))
    # exact probabilities, and those of sampled sequences
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

    eps: jd.Swept = jd.field(0.01, above=0, below=1)
    depth: jd.Swept = jd.field(8.0, at_least=2)
    root: jd.Code = jd.code("sparse", "half")
    levels: int = 9

    def __post_init__(self) -> None:
        """Refuse leaves below the tree's."""
        jd.require(self, self.depth <= self.levels + 1, "depth is at most levels + 1", "depth", "levels")


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


SAMPLED = 0.015  # by how much sampled probabilities may differ from the formula, root mean square over trees
SALIENCY = 0.01  # the same for sampled saliencies
SLOPE = 0.1  # by how much the slope of sampled saliencies in the formula's may differ from 1


def _sampler_check(ds: xr.Dataset, name: str, high: float) -> jd.Check:
    """Distance of sampled means from the formula at every height, root mean square over trees, sampling error taken out."""
    squares = (ds[f"measured_{name}"] - ds[f"predicted_{name}"]) ** 2 - ds[f"error_{name}"] ** 2
    trees = [d for d in squares.dims if d not in ("seed", "height")]  # those of one seed share their random numbers
    words = f"{name.replace('_', ' ')} minus formula, root mean square"
    return jd.rms_within(words, squares.mean(trees, skipna=False), over="seed", high=high)


def judge_conditional(ds: xr.Dataset) -> list[jd.Check]:
    """Tree against formula to 1e-12, sampler against formula to .015."""
    return [
        jd.at_most("same subtree: relative error", jd.relative_error(ds, "conditional"), 1e-12),
        jd.at_most("different subtrees: relative error", jd.relative_error(ds, "across"), 1e-12),
        *(_sampler_check(ds, name, SAMPLED) for name in ("sampled", "across_sampled")),
    ]


def judge_saliency(ds: xr.Dataset) -> list[jd.Check]:
    """Tree against formula to 1e-12 of its size, sampler against formula to a hundredth."""
    error = jd.relative_error(ds, "saliency", ("class", "token"))
    measured, predicted = ds.measured_saliency_sampled, ds.predicted_saliency_sampled
    trees = [d for d in measured.dims if d != "seed"]
    slope = (measured * predicted).mean(trees, skipna=False) / (predicted**2).mean(trees, skipna=False)
    return [
        jd.at_most("saliency: relative error", error, 1e-12),
        _sampler_check(ds, "saliency_sampled", SALIENCY),
        jd.mean_within("slope of sampled saliencies in the formula's", slope, over="seed", low=1 - SLOPE, high=1 + SLOPE),
    ]


def judge_cancellation(ds: xr.Dataset) -> list[jd.Check]:
    """Both closed forms against the tree, to 1e-12 of their size."""
    names = {"saliency_at_prior": "outputs at the prior", "saliency_at_posterior": "outputs at the query's posterior"}
    return [
        jd.at_most(f"{text}: relative error", jd.relative_error(ds, name, ("class", "token")), 1e-12)
        for name, text in names.items()
    ]


def judge_limit(ds: xr.Dataset) -> list[jd.Check]:
    """First order in eps at every height and depth, except H = L/2 where there is no error."""
    jd.need(ds, eps=3)
    middle = 2 * np.minimum(ds.height, ds.depth - 1) == ds.depth
    error = np.abs(ds.measured_limit - ds.predicted_limit)
    return [
        jd.within("order in eps", loglog_slope(ds.eps, error.where(~middle), "eps"), 0.94, 1.06),
        jd.at_most("distance from 1/2 at H = L/2", error.where(middle), 1e-12),
    ]


def plot_conditional(ds: xr.Dataset, fig: Figure) -> None:
    """Formula and sampler over H, and the tree against the formula."""
    left, right = fig.subplots(1, 2)
    one = plotting.first_run(ds, "rho")
    below = one.height < np.max(one.depth)
    one = one.isel(height=np.flatnonzero(below))
    for i, rho in enumerate(np.atleast_1d(one.rho.values)):
        run = one.sel(rho=rho) if "rho" in one.dims else one
        color = list(COLORS.values())[i % 5]
        left.plot(run.height, run.predicted_sampled, "-", color=color, label=rf"$\rho$ = {rho:g}")
        left.errorbar(run.height, run.measured_sampled, 2 * run.error_sampled, fmt="o", color=color, capsize=2)
    left.set(xlabel="H", ylabel=r"$P(y_l=1\,|\,y_m=1)$", title="formula (lines), sampler (points)")
    scatter(right, ds.predicted_conditional, ds.measured_conditional, "tokens of all runs", "measured")
    right.set_title("sum-product on the tree")


def plot_saliency(ds: xr.Dataset, fig: Figure) -> None:
    """Formula against the tree and against the sampler."""
    left, right = fig.subplots(1, 2)
    scatter(left, ds.predicted_saliency, ds.measured_saliency, "sum-product")
    scatter(right, ds.predicted_saliency_sampled, ds.measured_saliency_sampled, "sampler")
    left.set_title(r"saliency $\Delta_{lm}^{(k)}$")


def plot_cancellation(ds: stats.Labelled, fig: Figure) -> None:
    """Size of the saliency over H at the three outputs, relative to the largest height."""
    ax = fig.subplots()
    names = {"saliency": "random outputs", "saliency_at_prior": "outputs = prior", "saliency_at_posterior": "outputs = posterior"}
    for (name, text), color in zip(names.items(), ("control", "measured", "third"), strict=True):
        size = np.sqrt((ds[f"measured_{name}"] ** 2).sum("class"))
        expected = np.sqrt((ds[f"predicted_{name}"] ** 2).sum("class"))
        levels = [size.where(ds.token_height == h).mean() for h in ds.height.values]
        theory_levels = [expected.where(ds.token_height == h).mean() for h in ds.height.values]
        ax.plot(ds.height, theory_levels, "-", color=COLORS[color], label=text)
        ax.plot(ds.height, levels, "o", color=COLORS[color])
    ax.set(xlabel="H", ylabel=r"mean of $\|\Delta_{lm}\|$ over runs", title="formulas (lines), sum-product (points)")
    ax.set_xticks(ds.height.values)


def plot_limit(ds: xr.Dataset, fig: Figure) -> None:
    """Error of 1 - H/L over eps, and the curve at the smallest eps."""
    left, right = fig.subplots(1, 2)
    cut = np.minimum(ds.height, ds.depth - 1)
    error = np.abs(ds.measured_limit - ds.predicted_limit).where(2 * cut != ds.depth)
    order(left, ds.eps, error, 1.0, "all L and H")
    left.set(xlabel=r"$\epsilon$", ylabel=r"$|P(y_l=1|y_m=1) - (1-H/L)|$")
    scatter(right, ds.predicted_limit, ds.measured_limit, "all runs")
    right.set(xlabel=r"$1-H/L$", ylabel=r"$P(y_l=1|y_m=1)$")


GRID = jd.grid(Tokens, rho=[0.6, 0.8, 0.93], bias=[0.0, 0.6], depth=[3, 4, 6])
TREE = jd.Study(
    trial=tokens_trial,
    quick=GRID,
    paper=GRID.replace(samples=2**20),
    seeds=4,
    paper_seeds=32,
    evidence="algebra",
    bounds="derived: float64 rounding of the tree's sum-product",
    tested=r"Random trees of depth $L$ = {depth} with edges of polarity $\rho$ = {rho}, {subtrees} top latents and {classes} "
    "classes, evaluated exactly by sum-product, and {samples} sampled sequences from each; seeds: {seeds}.",
    source="arXiv:2310.00535, section on hierarchical data; formula derived here",
)
LIMIT = jd.Study(
    trial=limit_trial,
    quick=jd.grid(Limit, eps=[0.03, 0.01, 0.003], depth=[3, 4, 5, 6, 7, 8, 9, 10]),
    evidence="algebra",
    bounds="derived: the term of second order in eps, a few percent of the first up to eps = .03",
    tested=r"One tree for each depth $L$ = {depth} and each $\epsilon$ = {eps}, evaluated exactly by sum-product, at every "
    "distance $H$.",
    source="arXiv:2310.00535, Theorem 5 and the remark on its limit",
)
SKEWED = {"asymmetric channels": jd.Control({"skew": 0.3}, breaks="polarity of an edge")}

CLAIMS = (
    TREE.claim(
        id="joma.hblt",
        talks=("training:joma-theorem-5",),
        title="How often two tokens of a latent tree occur together",
        statement=r"In hierarchical binary latent trees of depth $L$, all of whose edges have the polarity $\rho$, two tokens "
        r"whose closest common ancestor is $H$ edges up occur together with $P(y_l=1|y_m=1) = \frac12 (1 + \rho^{2H} - "
        r"2\rho^{L-1}\rho_0)/(1 - \rho^{L-1}\rho_0)$, where $\rho_0 = 2P(\mathrm{top}=0) - 1$; tokens under different top "
        "latents are independent given the class. Sampled sequences agree within .015 (root mean square over trees, sampling "
        "error removed).",
        source="arXiv:2310.00535, Theorem 5",
        bounds=jd.tuned(on="0:8", confirmed_on="33000000:33000008"),
        seeds=8,
        judge=judge_conditional,
        controls=SKEWED,
        rivals={
            "no latents below the class": jd.swap(predicted_conditional="flat", predicted_sampled="flat"),
            "tokens of different top latents are independent": jd.swap(predicted_across="alone", predicted_across_sampled="alone"),
            "$1 - H/L$, the sparse limit": jd.swap(predicted_conditional="sparse", predicted_sampled="sparse_sampled"),
            r"$\rho_0$ taken as P(top = 0)": jd.swap(predicted_conditional="misread", predicted_sampled="misread_sampled"),
        },
        plot=plot_conditional,
        caption=r"Left: $P(y_l=1|y_m=1)$ over $H$ for the first tree of each $\rho$: formula (lines) and sampled sequences (points "
        r"with bars of two standard errors). Right: sum-product on the tree against the formula; one point per token and run, the "
        r"line is equality.",
    ),
    TREE.claim(
        id="joma.hblt_saliency",
        title="How salient a token of a latent tree is for a query",
        statement="In hierarchical binary latent trees of depth $L$, for the query $m$ and a token $l$ in the same subtree, $H$ "
        r"edges below their closest common ancestor, the saliency $\Delta_{lm}^{(k)}$, the mean over samples with $m$ of label "
        r"minus output of class $k$ where $l$ occurs and of 0 elsewhere, is $p^0_k (1 + \rho^{2H} - 2\rho^{L-1}p_k) / (2 - "
        r"2\rho^{L-1}\rho_0) - \pi_k P(y_l=1|y_m=1)$ for outputs $\pi_k$ that are the same for all samples ($p^0_k$, $p_k$: "
        r"prior and polarity of class $k$, $\rho$: polarity of all edges, $\rho_0 = \sum_k p^0_k p_k$). Sampled sequences agree "
        "within .01 (root mean square over trees and classes, sampling error removed) and, as a slope, within 10%.",
        bounds=jd.tuned(on="0:8", confirmed_on="33000000:33000008"),
        seeds=8,
        judge=judge_saliency,
        controls=SKEWED,
        rivals={
            "outputs left out of the gradient": jd.swap(  # 1[y0 = k] alone
                predicted_saliency=lambda ds: ds.predicted_saliency + ds.output * ds.predicted_conditional,
                predicted_saliency_sampled=lambda ds: ds.predicted_saliency_sampled + ds.output * ds.predicted_sampled,
            )
        },
        plot=plot_saliency,
        caption=r"Saliency $\Delta_{lm}^{(k)}$ by sum-product on the tree (left; one point per token, class and run) and over "
        r"sampled sequences (right; one point per height, class and run), against the formula; the lines are equality.",
    ),
    TREE.claim(
        id="joma.hblt_cancellation",
        title="At the classes' prior, distance in the tree drops out of saliency",
        statement="In hierarchical binary latent trees of depth $L$, for the query $m$ and a token $l$ in the same subtree, $H$ "
        r"edges below their closest common ancestor: the saliency $\Delta_{lm}^{(k)}$, the mean over samples with $m$ of label "
        "minus output of class $k$ where $l$ occurs and of 0 elsewhere, is, for outputs at the classes' prior, $p^0_k "
        r"\rho^{L-1}(\rho_0-p_k)/(1-\rho^{L-1}\rho_0)$, from which $H$ cancels; for outputs at the classes' posterior given the "
        r"query it is $p^0_k \rho^{L-1}(\rho_0-p_k)(1-\rho^{2H}) / (2(1-\rho^{L-1}\rho_0)^2)$, whose size grows with $H$ "
        r"($p^0_k$, $p_k$: prior and polarity of class $k$, $\rho$: polarity of all edges, $\rho_0 = \sum_k p^0_k p_k$).",
        source="derived here from the saliency of joma.hblt_saliency",
        tested=r"Random trees of depth $L$ = {depth} with edges of polarity $\rho$ = {rho}, {subtrees} top latents and {classes} "
        "classes, evaluated exactly by sum-product; seeds: {seeds}.",
        judge=judge_cancellation,
        controls=SKEWED,
        rivals={
            "saliency in proportion to co-occurrence": jd.scaled(  # E[g | l, m] the same for all tokens
                predicted_saliency_at_prior="predicted_conditional", predicted_saliency_at_posterior="predicted_conditional"
            )
        },
        plot=plot_cancellation,
        caption=r"Norm over classes of the saliency, mean over the tokens of each height $H$ and over runs, for three kinds of "
        r"outputs: formulas (lines) and sum-product on the tree (points).",
    ),
    LIMIT.claim(
        id="joma.hblt_limit",
        talks=("training:joma-theorem-5",),
        title="In sparse trees with strong edges, co-occurrence falls linearly",
        statement=r"In hierarchical binary latent trees of depth $L$ with strong edges and sparse classes, $\rho = \rho_0 = "
        r"1-\epsilon$, the probability that two tokens occur together tends to $1 - H/L$, where $H$ is their distance from the "
        r"closest common ancestor, with an error of first order in $\epsilon$; at $H = L/2$ it is $\frac12$ at every $\epsilon$.",
        judge=judge_limit,
        controls={"rho0 fixed at 1/2": jd.Control({"root": "half"}, breaks=r"\rho = \rho_0 = 1-\epsilon")},
        rivals={"no latents below the class: $1/L$ at every $H$": jd.swap(predicted_limit=lambda ds: 1 / ds.depth)},
        plot=plot_limit,
        caption=r"Left: distance of $P(y_l=1|y_m=1)$ from $1-H/L$ against $\epsilon$; medians over all $L$ and $H$ but $H = L/2$, "
        r"bars over their full range; dashed: slope 1. Right: $P(y_l=1|y_m=1)$ against $1-H/L$, a point per $\epsilon$, $L$, $H$.",
    ),
)
