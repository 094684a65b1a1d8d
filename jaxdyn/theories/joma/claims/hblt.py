"""Claims on hierarchical latent trees: which tokens occur together (Theorem 5), and which are salient for a query."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

import jaxdyn as jd
from jaxdyn.data import trees
from jaxdyn.engine.claim import Named
from jaxdyn.errors import UsageError
from jaxdyn.plotting import COLORS, order, scatter
from jaxdyn.stats import bonferroni_z, loglog_slope
from jaxdyn.theories.joma.dynamics import hblt as theory

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CLAIMS"]

FAMILY = 0.999  # level at which all comparisons with the sampler hold together
BATCH = 2048  # sequences sampled at a time


@jd.setting
class Tokens:
    """A random latent tree and a query token.

    Args:
        rho: polarity of an edge.
        bias: centre of the top latents' polarities, which are drawn from bias +- (1 - |bias|) for every class and subtree.
        skew: breaks the symmetry of the channels: 0 flips (1 + skew) times, 1 flips (1 - skew) times as often.
        depth: L.
        subtrees, classes: how many.
        samples: sequences for the sampled side.
    """

    rho: jd.Swept = 0.8
    bias: jd.Swept = 0.4
    skew: jd.Swept = 0.0
    depth: int = 6
    subtrees: int = 2
    classes: int = 4
    samples: int = 16384

    def __post_init__(self) -> None:
        if not 0 < self.rho <= 1 or not -1 <= self.bias <= 1 or not -1 <= self.skew <= 1:
            raise UsageError(f"0 < rho <= 1 and -1 <= bias, skew <= 1 are needed, got {self.rho}, {self.bias}, {self.skew}")
        if self.depth < 2 or self.subtrees < 2 or self.classes < 2 or self.samples % BATCH:
            raise UsageError(f"depth, subtrees and classes are >= 2, samples a multiple of {BATCH}")


def _draw_tree(s: Tokens, key: jax.Array) -> trees.Tree:
    k_prior, k_polarity = jax.random.split(key)
    prior = 0.25 + jax.random.uniform(k_prior, (s.classes,), jnp.float64)
    spread = jax.random.uniform(k_polarity, (s.subtrees, s.classes), jnp.float64, -1.0, 1.0)
    flip = trees.symmetric(s.rho, s.depth - 1) * jnp.stack([1 + s.skew, 1 - s.skew])
    return trees.Tree(prior / jnp.sum(prior), s.bias + (1 - jnp.abs(s.bias)) * spread, flip)


def _group(values: jax.Array, height: jax.Array, count: int) -> jax.Array:
    """Means over the tokens of each height 1..count (last axis)."""
    member = height[:, None] == jnp.arange(1, count + 1)
    return values.astype(jnp.float64) @ (member / jnp.sum(member, 0))


def _sampled(s: Tokens, tree: trees.Tree, query: jax.Array, height: jax.Array, output: jax.Array, key: jax.Array) -> dict:
    """Means and standard errors over sequences in which the query is present, of what the formulas predict."""

    def batch(k: jax.Array) -> tuple[jax.Array, dict, dict]:
        label, leaves = trees.sample(tree, k, BATCH)
        kept = leaves[:, 0, query].astype(jnp.float64)
        same = _group(leaves[:, 0], height, s.depth - 1)
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


def _predictions(s: Tokens, tree: trees.Tree, token_height: jax.Array, output: jax.Array) -> dict:
    """All formulas, for every token (tree) and for every height (sampler)."""
    prior, polarity, heights = tree.prior, tree.polarity[0], jnp.arange(1, s.depth, dtype=jnp.float64)
    rho0 = theory.mean_polarity(prior, polarity)
    readings = jnp.stack([rho0, (1 + rho0) / 2])
    together = jax.vmap(lambda reading, h: theory.conditional(s.rho, reading, s.depth, h), (0, None))
    across = theory.across(prior, tree.polarity[1], polarity, s.rho, s.depth)
    at_prior = theory.saliency_at_prior(prior, polarity, s.rho, s.depth)
    at_posterior = theory.saliency_at_posterior(prior, polarity, s.rho, s.depth, token_height)
    return {
        "conditional": jd.named(together(readings, token_height), "form token"),
        "sampled": jd.named(together(readings, heights), "form height"),
        "across": across,
        "across_sampled": across,
        "saliency": jd.named(theory.saliency(prior, polarity, s.rho, s.depth, token_height, output), "class token"),
        "saliency_sampled": jd.named(theory.saliency(prior, polarity, s.rho, s.depth, heights, output), "class height"),
        "saliency_at_prior": jd.named(jnp.broadcast_to(at_prior[:, None], at_posterior.shape), "class token"),
        "saliency_at_posterior": jd.named(at_posterior, "class token"),
    }


def tokens_trial(s: Tokens, key: jax.Array) -> jd.Observables:
    """Formulas against the tree's own sum-product (every token) and against sampled sequences (means over tokens of a height)."""
    k_tree, k_query, k_output, k_sample = jax.random.split(key, 4)
    tree = _draw_tree(s, k_tree)
    query = jax.random.randint(k_query, (), 0, tree.leaves, jnp.int32)
    output = jax.nn.softmax(jax.random.normal(k_output, (s.classes,), jnp.float64))
    height = jnp.asarray(trees.cla_heights(s.depth - 1))[query]
    _, joint = trees.leaf_joint(tree, 0, query)
    same = joint[:, 0]
    sampled = _sampled(s, tree, query, height, output, k_sample)
    predicted = _predictions(s, tree, height.astype(jnp.float64), output)

    def seen(pi: jax.Array) -> Named:
        return jd.named(same - pi[:, None] * jnp.sum(same, 0), "class token")

    return jd.observables(
        predicted=predicted,
        measured={
            "conditional": jd.named(jnp.sum(same, 0), "token"),
            "sampled": jd.named(sampled["sampled"][0], "height"),
            "across": jnp.sum(joint[:, 1, 0]),
            "across_sampled": sampled["across"][0],
            "saliency": seen(output),
            "saliency_sampled": jd.named(sampled["saliency"][0], "class height"),
            "saliency_at_prior": seen(tree.prior),
            "saliency_at_posterior": seen(same[:, query]),  # the query as its own token: P(class | query)
        },
        recorded={
            "error_sampled": jd.named(sampled["sampled"][1], "height"),
            "error_across_sampled": sampled["across"][1],
            "error_saliency_sampled": jd.named(sampled["saliency"][1], "class height"),
            "token_height": jd.named(height, "token"),
            "misread": jd.named(predicted["conditional"].value[1], "token"),
            "misread_sampled": jd.named(predicted["sampled"].value[1], "height"),
            "output": jd.named(output, "class"),
        },
        coords={"form": ("derived", "printed"), "height": range(1, s.depth)},
    )


def _standardised(ds: xr.Dataset, name: str) -> xr.DataArray:
    return np.abs(ds[f"measured_{name}"] - ds[f"predicted_{name}"]) / ds[f"error_{name}"]


def _sampler_check(ds: xr.Dataset, names: tuple[str, ...]) -> list[jd.Check]:
    scores = {name: _standardised(ds, name) for name in names}
    bound = bonferroni_z(sum(int(v.count()) for v in scores.values()) or 1, FAMILY)
    return [jd.at_most(f"{name.replace('_', ' ')}: standard errors", v, bound) for name, v in scores.items()]


def judge_conditional(ds: xr.Dataset) -> list[jd.Check]:
    """Tree against formula to 1e-12, sampler within standard errors corrected for their number."""
    return [
        jd.at_most("same subtree: relative error", jd.relative_error(ds, "conditional"), 1e-12),
        jd.at_most("different subtrees: relative error", jd.relative_error(ds, "across"), 1e-12),
        *_sampler_check(ds, ("sampled", "across_sampled")),
    ]


def judge_saliency(ds: xr.Dataset) -> list[jd.Check]:
    """Tree against formula to 1e-12 of its size, sampler within corrected standard errors."""
    error = jd.relative_error(ds, "saliency", ("class", "token"))
    return [jd.at_most("saliency: relative error", error, 1e-12), *_sampler_check(ds, ("saliency_sampled",))]


def judge_cancellation(ds: xr.Dataset) -> list[jd.Check]:
    """Both closed forms against the tree, to 1e-12 of their size."""
    names = {"saliency_at_prior": "outputs at the prior", "saliency_at_posterior": "outputs at the query's posterior"}
    return [
        jd.at_most(f"{text}: relative error", jd.relative_error(ds, name, ("class", "token")), 1e-12)
        for name, text in names.items()
    ]


def _misread(ds: xr.Dataset) -> xr.Dataset:
    """rho0 taken as P(top = 0)."""
    return ds.assign(predicted_conditional=ds.misread, predicted_sampled=ds.misread_sampled)


def _bias_left_out(ds: xr.Dataset) -> xr.Dataset:
    """The gradient taken as 1[y0 = k], without the outputs' probabilities."""
    everywhere = ds.predicted_saliency + ds.output * ds.predicted_conditional
    sampled = ds.predicted_saliency_sampled + ds.output * ds.predicted_sampled
    return ds.assign(
        predicted_saliency=everywhere.transpose(*ds.measured_saliency.dims),
        predicted_saliency_sampled=sampled.transpose(*ds.measured_saliency_sampled.dims),
    )


def _constant_discriminancy(ds: xr.Dataset) -> xr.Dataset:
    """E[g | l, m] taken as the same for all tokens: saliency in proportion to co-occurrence."""
    names = ("predicted_saliency_at_prior", "predicted_saliency_at_posterior")
    return ds.assign({n: (ds[n] * ds.predicted_conditional).transpose(*ds[n].dims) for n in names})


@jd.setting
class Limit:
    """Strong edges and sparse classes: rho = 1 - eps, and rho0 the same.

    Args:
        eps: distance from the limit.
        depth: L, a whole number up to levels + 1.
        root: rho0 = 1 - eps ("sparse"), or 1/2 ("half").
        levels: edges of the tree that serves all depths.
    """

    eps: jd.Swept = 0.01
    depth: jd.Swept = 8.0
    root: jd.Code = jd.code("sparse", "half")
    levels: int = 9

    def __post_init__(self) -> None:
        if not 0 < self.eps < 1 or not 2 <= self.depth <= self.levels + 1:
            raise UsageError(f"0 < eps < 1 and 2 <= depth <= {self.levels + 1} are needed, got {self.eps} and {self.depth:g}")


def limit_trial(s: Limit, key: jax.Array) -> jd.Observables:
    """1 - H/L against the tree's own sum-product.

    The edges above depth L - 1 are made to carry their bit unchanged, so that one tree serves all depths; heights above L - 1
    are then those of L - 1 once more.
    """
    rho, rho0 = 1 - s.eps, jnp.where(s.root == 0, 1 - s.eps, 0.5)
    edge = jnp.arange(s.levels, 0, -1)  # counted from the leaves
    flip = jnp.where(edge[:, None] < s.depth, trees.symmetric(rho, s.levels), 0.0)
    tree = trees.Tree(jnp.stack([(1 + rho0) / 2, (1 - rho0) / 2]), jnp.array([[1.0, -1.0]], jnp.float64), flip)
    _, joint = trees.leaf_joint(tree, 0, 0)
    height = jnp.arange(1, s.levels + 1)
    cut = jnp.minimum(height, s.depth - 1)
    return jd.observables(
        predicted={"limit": jd.named(theory.limit(s.depth, cut), "height")},
        measured={"limit": jd.named(jnp.sum(joint[:, 0], 0)[2 ** (height - 1)], "height")},
        coords={"height": range(1, s.levels + 1)},
    )


def judge_limit(ds: xr.Dataset) -> list[jd.Check]:
    """First order in eps at every height and depth, except H = L/2 where the first order cancels."""
    if ds.sizes.get("eps", 1) < 3:
        raise jd.Inconclusive("the order in eps needs at least 3 values of eps")
    cut = np.minimum(ds.height, ds.depth - 1)
    error = np.abs(ds.measured_limit - ds.predicted_limit).where(2 * cut != ds.depth)
    return [jd.within("order in eps", loglog_slope(ds.eps, error, "eps"), 0.94, 1.06)]


def plot_conditional(ds: xr.Dataset, fig: Figure) -> None:
    """Formula and sampler over H, and the tree against the formula."""
    left, right = fig.subplots(1, 2)
    one = ds[["predicted_sampled", "measured_sampled", "error_sampled"]]
    one = one.isel({d: 0 for d in one.dims if d not in ("rho", "height")})
    for i, rho in enumerate(np.atleast_1d(one.rho.values)):
        run = one.sel(rho=rho) if "rho" in one.dims else one
        color = list(COLORS.values())[i % 5]
        left.plot(run.height, run.predicted_sampled, "-", color=color, label=rf"$\rho$ = {rho:g}")
        left.errorbar(run.height, run.measured_sampled, 2 * run.error_sampled, fmt="o", color=color, capsize=2)
    left.set(xlabel="H", ylabel=r"$P(y_l=1\,|\,y_m=1)$", title="formula (lines), sampler (points)")
    scatter(right, ds.predicted_conditional, ds.measured_conditional, "all runs and tokens")
    right.set_title("sum-product on the tree")


def plot_saliency(ds: xr.Dataset, fig: Figure) -> None:
    """Formula against the tree and against the sampler."""
    left, right = fig.subplots(1, 2)
    scatter(left, ds.predicted_saliency, ds.measured_saliency, "sum-product")
    scatter(right, ds.predicted_saliency_sampled, ds.measured_saliency_sampled, "sampler")
    left.set_title(r"saliency $\Delta_{lm}^{(k)}$")


def plot_cancellation(ds: xr.Dataset, fig: Figure) -> None:
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


GRID = jd.grid(Tokens, rho=[0.6, 0.8, 0.93], bias=[0.0, 0.4, 0.8])
PAPER = GRID.replace(samples=2**20)
SHARED = {"trial": tokens_trial, "quick": GRID, "paper": PAPER, "seeds": 8, "paper_seeds": 32}
SKEWED = {"asymmetric channels": {"skew": 0.3}}

CLAIMS = (
    jd.Claim(
        id="joma.hblt",
        statement=r"In a hierarchical binary latent tree two tokens whose closest common ancestor is $H$ edges up occur together "
        r"with $P(y_l=1|y_m=1) = \frac12 (1 + \rho^{2H} - 2\rho^{L-1}\rho_0)/(1 - \rho^{L-1}\rho_0)$, where "
        r"$\rho_0 = 2P(\mathrm{top}=0) - 1$; tokens under different top latents are independent given the class.",
        source="arXiv:2310.00535, Theorem 5",
        judge=judge_conditional,
        form="derived",
        controls={**SKEWED, "rho0 taken as P(top = 0)": _misread},
        plot=plot_conditional,
        **SHARED,
    ),
    jd.Claim(
        id="joma.rho0_as_printed",
        statement=r"The same formula with $\rho_0$ read as the probability $P(\mathrm{top}=0)$ itself.",
        source="arXiv:2310.00535, Theorem 5 (reading of its constant)",
        judge=judge_conditional,
        form="printed",
        counterpart="derived",
        expected="refuted",
        plot=plot_conditional,
        **SHARED,
    ),
    jd.Claim(
        id="joma.hblt_saliency",
        statement=r"Saliency in the tree, for outputs $\pi$: $\Delta_{lm}^{(k)} = p^0_k (1 + \rho^{2H} - 2\rho^{L-1}p_k) / "
        r"(2 - 2\rho^{L-1}\rho_0) - \pi_k P(y_l=1|y_m=1)$.",
        source="arXiv:2310.00535, section on hierarchical data; formula derived here",
        judge=judge_saliency,
        form="derived",
        controls={**SKEWED, "outputs left out of the gradient": _bias_left_out},
        plot=plot_saliency,
        **SHARED,
    ),
    jd.Claim(
        id="joma.hblt_cancellation",
        statement=r"Near tokens are the salient ones through the class bias only. Once the outputs are the prior, $H$ cancels: "
        r"$\Delta_{lm}^{(k)} = p^0_k \rho^{L-1}(\rho_0-p_k)/(1-\rho^{L-1}\rho_0)$; once they are what the query says of the class, "
        r"saliency grows with $H$, as $1-\rho^{2H}$.",
        source="derived here from the saliency of joma.hblt_saliency",
        judge=judge_cancellation,
        form="derived",
        controls={**SKEWED, "saliency in proportion to co-occurrence": _constant_discriminancy},
        plot=plot_cancellation,
        **SHARED,
    ),
    jd.Claim(
        id="joma.hblt_limit",
        statement=r"With strong edges and sparse classes, $\rho = \rho_0 = 1-\epsilon$, co-occurrence tends to $1 - H/L$ with an "
        r"error of first order in $\epsilon$.",
        source="arXiv:2310.00535, Theorem 5 and the remark on its limit",
        trial=limit_trial,
        quick=jd.grid(Limit, eps=[0.03, 0.01, 0.003], depth=[3, 4, 5, 6, 7, 8, 9, 10]),
        judge=judge_limit,
        controls={"rho0 fixed at 1/2": {"root": "half"}},
        plot=plot_limit,
    ),
)
