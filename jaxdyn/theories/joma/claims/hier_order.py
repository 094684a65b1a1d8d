"""Claims on the order of learning: does attention find the near tokens of a latent tree first?"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
import scipy.stats
import xarray as xr

import jaxdyn as jd
from jaxdyn import train
from jaxdyn.data import trees
from jaxdyn.errors import UsageError
from jaxdyn.plotting import COLORS, RAMP, band
from jaxdyn.stats import mean_interval
from jaxdyn.theories.joma import hblt_model as net
from jaxdyn.theories.joma.dynamics import hblt as theory
from jaxdyn.theories.joma.model import ACTIVATIONS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CLAIMS", "Hierarchy", "rank_correlation", "trial"]

SNAPSHOTS = 50
GELU = ACTIVATIONS.index("gelu")


@jd.setting
class Hierarchy:
    """A JoMA block that learns the class of a latent tree.

    The choices below were made by reasoning before the first run, but for the batch (512 then) and the length of "wide" (400 steps
    then, which ran past the arrival of all pairs into a blow-up of the exponential).

    Data: as many classes as subtrees; class k turns the top latent of subtree k on and the others off. Leaves at depth 5 (16 of
    them a subtree, H = 1..4); rho = 0.8, so that co-occurrence falls from 0.77 at H = 1 to 0.48 at H = 4, clear of ties and of 0.
    "shallow": the same leaves' probabilities given the class, but no latents; H is then a label without meaning.

    Outputs: "wide" has more symbols than ever occur (a vocabulary), all equally likely at the start, so the outputs are far from
    the classes' prior and saliency falls with H. "exact" has the classes alone, and starts at their prior: there H cancels from
    the saliency (joma.hblt_cancellation), and what is learned next from the query makes far tokens the salient ones.

    Network: exp attention with the constant A = number of tokens, GELU, upper layer fixed (stationary gradient, assumption A1).
    ratio = number of tokens, since the logits of one query see 1/M of the samples: then z and v of a query move at one speed.
    lr = 4: the stationary theory then arrives after 106-125 steps, slow enough for a flow. Threshold ln 2: attention to the token
    has doubled. The run lasts 50 ``every`` steps: 200 for "wide", 400 for "exact", 1.6-1.8 times the theory's last arrival.

    Args:
        latents: whether the tree has latents.
        outputs: how many outputs there are.
        rho: polarity of an edge.
        lr: rate of the lower layer.
        ratio: rate of the attention logits over ``lr``.
        threshold: logit at which a token counts as learned.
        every: steps between snapshots (a whole number); there are 50.
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
    lr: jd.Swept = 4.0
    ratio: jd.Swept = 64.0
    threshold: jd.Swept = math.log(2)
    every: jd.Swept = 4.0
    init: jd.Swept = 0.01
    depth: int = 5
    subtrees: int = 4
    vocabulary: int = 32
    hidden: int = 32
    batch: int = 256
    dtype: str = "float32"

    def __post_init__(self) -> None:
        if not 0 < self.rho <= 1 or self.lr <= 0 or self.ratio <= 0 or self.threshold <= 0 or self.every < 1:
            raise UsageError("0 < rho <= 1, lr > 0, ratio > 0, threshold > 0 and every >= 1 are needed")
        if self.depth < 2 or self.subtrees < 2 or self.vocabulary < self.subtrees or min(self.hidden, self.batch) < 1:
            raise UsageError("depth and subtrees are >= 2, the vocabulary holds all classes, hidden and batch are >= 1")


def _tree(s: Hierarchy, dtype: str) -> trees.Tree:
    prior = jnp.full(s.subtrees, 1 / s.subtrees, dtype)
    polarity = 1 - 2 * jnp.eye(s.subtrees, dtype=dtype)
    return trees.Tree(prior, polarity, trees.symmetric(s.rho, s.depth - 1, dtype))


def _allowed(s: Hierarchy) -> jax.Array:
    return (jnp.arange(s.vocabulary) < s.subtrees) | (s.outputs == 0)


def _predicted_times(s: Hierarchy) -> jax.Array:
    """Steps by height (all subtrees are alike), with the gradient of the start."""
    tree = _tree(s, "float64")
    tokens = tree.leaves * s.subtrees
    rho, lr, ratio, threshold, every = (jnp.asarray(x, jnp.float64) for x in (s.rho, s.lr, s.ratio, s.threshold, s.every))
    saliency = theory.start_saliencies(tree.prior, tree.polarity, rho, s.depth, _allowed(s), s.latents == 1)
    speeds = theory.Speeds(lr, ratio, 0.5, tokens)  # GELU has slope 1/2 at 0
    horizon = SNAPSHOTS * jnp.round(every)
    times = theory.arrival_times(saliency, speeds, threshold, horizon)[0]
    return jnp.minimum(times, horizon + 1)


def trial(s: Hierarchy, key: jax.Array) -> jd.Observables:
    """Train the block; the step at which each attention logit within a subtree reaches the threshold (horizon + 1: never)."""
    k_init, k_data = jax.random.split(key)
    tree, allowed = _tree(s, s.dtype), _allowed(s)
    tokens, height = tree.leaves * s.subtrees, jnp.asarray(trees.cla_heights(s.depth - 1))
    params, upper = net.init(k_init, tokens, s.hidden, s.vocabulary, s.init, s.dtype)
    mean_count = tree.leaves * jnp.sum(trees.leaf_rate(tree) @ tree.prior)

    def batch(step: jax.Array) -> net.Batch:
        u = jax.random.uniform(jax.random.fold_in(k_data, step), (s.batch, tokens + trees.draws(tree)), jnp.float32)
        label, deep = trees.grow(tree, u[:, tokens:])
        leaves = jnp.where(s.latents == 0, deep, trees.grow_shallow(tree, u[:, tokens:])[1])
        return net.pick_queries(u[:, :tokens], label, leaves.reshape(s.batch, tokens), mean_count)

    tx = net.descent(s.lr, s.ratio)
    step = train.make_step(lambda p, b: net.loss(p, b, upper, allowed, GELU), tx, batch)

    def advance(carry: tuple) -> tuple:
        state = step(carry[0])
        z = net.same_subtree(state.params.z, s.subtrees)
        return state, net.track(carry[1], z, state.step, s.threshold)

    def observe(carry: tuple) -> jax.Array:
        return net.height_means(net.same_subtree(carry[0].params.z, s.subtrees), height, s.depth - 1)

    every = jnp.round(s.every).astype(jnp.int32)
    never = (SNAPSHOTS * every + 1).astype(s.dtype)
    start = jnp.full((s.subtrees, *height.shape), jnp.inf, s.dtype)
    (state, arrival), logits = train.record(advance, (train.init(tx, params), start), observe, samples=SNAPSHOTS, every=every)
    arrival = jnp.minimum(arrival, never)
    return jd.observables(
        predicted={"time": jd.named(_predicted_times(s), "height")},
        measured={
            "time": jd.named(net.height_means(arrival, height, s.depth - 1), "height"),
            "arrival": jd.named(arrival, "subtree query token"),
        },
        recorded={
            "ancestor": jd.named(height, "query token"),
            "logit": jd.named(logits, "snapshot height"),
            "step": jd.named(every * jnp.arange(SNAPSHOTS + 1), "snapshot"),
            "reached": jd.named(net.height_means((arrival < never).astype(s.dtype), height, s.depth - 1), "height"),
        },
        status=train.finite_status(state.params),
        coords={"height": range(1, s.depth)},
    )


def rank_correlation(ds: xr.Dataset) -> xr.DataArray:
    """Spearman's correlation of arrival and H over all pairs (l, m) of a subtree, for every run.

    Pairs that never arrive share the last rank. With a dimension ``relabelling`` in H: the mean over it.
    """
    pair = ("subtree", "query", "token")
    arrival = ds.measured_arrival.transpose(..., *pair)
    size = arrival.shape[-1]
    self_pair = np.broadcast_to(np.eye(size, dtype=bool), arrival.shape[-3:]).ravel()
    flat = arrival.values.reshape(-1, self_pair.size)
    ranks = np.full(flat.shape, np.nan)
    ranks[:, ~self_pair] = scipy.stats.rankdata(flat[:, ~self_pair], axis=-1)
    rank = arrival.copy(data=ranks.reshape(arrival.shape))
    height = ds.ancestor.transpose(..., "query", "token")
    flat = height.values.reshape(-1, size * size)
    off = ~np.eye(size, dtype=bool).ravel()
    ranks = np.full(flat.shape, np.nan)
    ranks[:, off] = scipy.stats.rankdata(flat[:, off], axis=-1)
    order = height.copy(data=ranks.reshape(height.shape))
    x, y = (rank - rank.mean(pair)).fillna(0), (order - order.mean(pair[1:])).fillna(0)
    spread = np.sqrt((x**2).sum(pair) * (y**2).sum(pair[1:]) * arrival.sizes["subtree"])
    value = xr.dot(x.sum("subtree"), y, dim=pair[1:]) / spread
    return value.mean("relabelling") if "relabelling" in value.dims else value


def _intervals(ds: xr.Dataset) -> tuple[xr.DataArray, xr.DataArray]:
    """99% intervals over seeds of the rank correlation, with and without latents: (ends, deep) and (ends, shallow)."""
    if set(ds.latents.values) != {"deep", "shallow"} or ds.sizes["seed"] < 3:
        raise jd.Inconclusive("the order needs runs with and without latents, and at least 3 seeds")
    _, low, high = mean_interval(rank_correlation(ds), "seed", 0.99)
    both = xr.concat([low, high], xr.IndexVariable("end", ["low", "high"]))
    return both.sel(latents="deep"), both.sel(latents="shallow")


def _no_order(shallow: xr.DataArray) -> jd.Check:
    return jd.within("no latents: ends of the interval of the rank correlation", shallow, -0.2, 0.2)


def judge_order(ds: xr.Dataset) -> list[jd.Check]:
    """Rank correlation of arrival and H: its interval above 0 with latents, inside +-0.2 without."""
    deep, shallow = _intervals(ds)
    return [jd.at_least("latents: lower end of the interval of the rank correlation", deep.sel(end="low"), 0.0), _no_order(shallow)]


def judge_reverse(ds: xr.Dataset) -> list[jd.Check]:
    """Rank correlation of arrival and H: its interval below 0 with latents, inside +-0.2 without."""
    deep, shallow = _intervals(ds)
    return [jd.at_most("latents: upper end of the interval of the rank correlation", deep.sel(end="high"), 0.0), _no_order(shallow)]


def judge_time(ds: xr.Dataset) -> list[jd.Check]:
    """Mean arrival at every height, averaged over seeds, within 10% of the stationary theory.

    Pairs that have not arrived at the end of a run count with its last step: 5% of them shift the mean by 1 to 2%.
    """
    mean = ds[["measured_time", "predicted_time", "reached"]].mean("seed")
    return [
        jd.at_most("arrival at each H: relative error", jd.relative_error(mean, "time"), 0.1),
        jd.at_least("share of pairs that arrive", mean.reached, 0.95),
    ]


def _relabelled(ds: xr.Dataset) -> xr.Dataset:
    """100 random relabellings of a subtree's tokens, other ones for every seed (else their remainder is common to all)."""
    size = ds.sizes["token"]
    height = trees.cla_heights(size.bit_length() - 1)

    def relabellings(seed: int) -> np.ndarray:
        rng = np.random.default_rng(seed)
        return np.stack([height[np.ix_(o, o)] for o in (rng.permutation(size) for _ in range(100))])

    return ds.assign(
        ancestor=(("seed", "relabelling", "query", "token"), np.stack([relabellings(int(seed)) for seed in ds.seed.values]))
    )


def _exchanged(ds: xr.Dataset) -> xr.Dataset:
    """Runs with and without latents taken for one another."""
    return ds.isel(latents=slice(None, None, -1)).assign_coords(latents=ds.latents.values)


def _prediction_exchanged(ds: xr.Dataset) -> xr.Dataset:
    """The prediction of the tree without latents for the tree with them, and the other way round."""
    return ds.assign(predicted_time=_exchanged(ds).predicted_time)


def _over(values: xr.DataArray, dim: str) -> xr.DataArray:
    """Mean over all runs, along ``dim``."""
    return values.mean([d for d in values.dims if d != dim])


def plot_order(ds: xr.Dataset, fig: Figure) -> None:
    """Logits over training by H (with latents), and how much later than the nearest pairs each H arrives."""
    left, right = fig.subplots(1, 2)
    deep, heights = ds.sel(latents="deep"), ds.height.values
    for i, h in enumerate(heights):
        logit = deep.logit.isel(height=i).transpose(..., "snapshot")
        band(left, _over(deep.step, "snapshot").values, logit, f"H = {h}", RAMP(i / max(len(heights) - 1, 1)))
    left.axhline(math.log(2), color=COLORS["control"], linewidth=0.9, linestyle=":", label="ln 2")
    left.set(xlabel="step", ylabel="attention logit (mean over pairs)", title="with latents")
    left.set_ylim(bottom=max(left.get_ylim()[0], -2.0))
    for latents, name, color in (("deep", "with latents", "measured"), ("shallow", "without", "third")):
        times = ds.sel(latents=latents)[["measured_time", "predicted_time"]].transpose(..., "height")
        late = times - times.isel(height=0)
        band(right, heights, late.measured_time, name, color, marker="o")
        right.plot(heights, _over(late.predicted_time, "height"), "--", color=COLORS["theory"])
    right.plot([], [], "--", color=COLORS["theory"], label="stationary theory")
    right.set(xlabel="H", ylabel="steps later than H = 1", title="arrival at the threshold")
    right.set_xticks(heights)
    for ax in (left, right):
        ax.legend()


WIDE = jd.grid(Hierarchy, latents=["deep", "shallow"], outputs="wide", every=4.0)
EXACT = jd.grid(Hierarchy, latents=["deep", "shallow"], outputs="exact", every=8.0)
FINE = {"lr": 1.0, "batch": 1024}
TO_EXACT = {"outputs": "exact", "every": 8.0}
TO_WIDE = {"outputs": "wide", "every": 4.0}
# a run may end in the blow-up of exp attention after all that is judged has happened
SHARED = {"trial": trial, "seeds": 10, "paper_seeds": 64, "plot": plot_order, "min_ok": 0.9}

CLAIMS = (
    jd.Claim(
        id="joma.hier_order",
        statement=r"A JoMA block whose outputs are far from the classes' prior learns to attend to near tokens first: the step at "
        r"which $z_{lm}$ arrives at $\ln 2$ grows with $H$. Without latents there is no such order.",
        source="arXiv:2310.00535, section on hierarchical data (qualitative there)",
        quick=WIDE,
        paper=WIDE.replace(**FINE, every=16.0),
        judge=judge_order,
        controls={
            "tokens relabelled": _relabelled,
            "with and without latents exchanged": _exchanged,
            "outputs at the classes' prior": TO_EXACT,
        },
        **SHARED,
    ),
    jd.Claim(
        id="joma.hier_order_balanced",
        statement=r"Where the outputs start at the classes' prior, $H$ cancels from the saliency; then the query's own path learns "
        r"what the query says, and far tokens are learned first: the order is reversed.",
        source="derived here: joma.hblt_cancellation",
        quick=EXACT,
        paper=EXACT.replace(**FINE, every=32.0),
        judge=judge_reverse,
        controls={
            "tokens relabelled": _relabelled,
            "with and without latents exchanged": _exchanged,
            "outputs far from the classes' prior": TO_WIDE,
        },
        **SHARED,
    ),
    jd.Claim(
        id="joma.hier_time",
        statement=r"The stationary dynamics $\dot v_l = \frac{\eta\phi'}{A} \sum_m P(m) e^{z_{ml}} \Delta_{lm}$, "
        r"$\dot z_{ml} = \frac{\eta r\phi'}{A} P(m) e^{z_{ml}} \Delta_{lm} \cdot v_l$ with the tree's saliencies say when: within "
        r"10% at every $H$, with and without latents.",
        source="arXiv:2310.00535, exp attention with a stationary gradient; many queries and the tree's saliency derived here",
        quick=WIDE,
        paper=WIDE.replace(**FINE, every=16.0),
        judge=judge_time,
        controls={
            "predictions with and without latents exchanged": _prediction_exchanged,
            "outputs at the classes' prior": TO_EXACT,
        },
        **SHARED,
    ),
)
