r"""Greedy choice of tokens by additions or by evictions, and the best choice, on submodular functions.

Greedy choice of k tokens of n, by additions or by evictions, and the best choice by enumeration.

.. math:: S \leftarrow S \cup \arg\max_v f(S \cup v) \ \text{(k additions)}, \qquad
   G = S_{i-1} \cup i,\ S_i = G \setminus \arg\max_v f(G \setminus v) \ \text{if } |G| > k \ \text{(evictions)}

A set is a vector of n truth values; f maps it to a number. Greedy additions reach :math:`1 - (1 - 1/k)^k` of the optimum if f is
monotone and submodular (Nemhauser, Wolsey, Fisher 1978); nothing of the kind holds for evictions in one pass, but for additive f.
Source: arXiv:2306.14048, definition 4.3 and theorem 4.4 (evictions).

Greedy choices of 4 of 12 tokens on random values of sets, next to the best choice among all 495.

Exact for scores that add up; a guarantee for submodular values, which evictions in one pass do not have.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting

Value = Callable[[Array], Array]


def subsets(n: int, k: int) -> Bool[np.ndarray, "sets n"]:
    """All sets of k of n tokens."""
    chosen = np.array(list(itertools.combinations(range(n), k)))
    table = np.zeros((len(chosen), n), bool)
    np.put_along_axis(table, chosen, True, 1)
    return table


def least_share(k: int) -> float:
    r"""The share :math:`1 - (1 - 1/k)^k` of the optimum that greedy additions reach; it falls to :math:`1 - 1/e`."""
    return 1 - (1 - 1 / k) ** k


def add(value: Value, n: int, k: int) -> Bool[Array, " n"]:
    """The set after k greedy additions."""
    one = jnp.eye(n, dtype=bool)

    def grow(_: int | Int[Array, ""], chosen: Array) -> Array:
        worth = jnp.where(chosen, -jnp.inf, jax.vmap(value)(chosen | one))
        return chosen | one[jnp.argmax(worth)]

    return jax.lax.fori_loop(0, k, grow, jnp.zeros((n,), bool))


def evict(value: Callable[[Array, Array], Array], n: int, k: int) -> Bool[Array, "n n"]:
    """The set after each token, in one pass with at most one eviction per step; ``value`` may also depend on the step."""
    one = jnp.eye(n, dtype=bool)

    def step(chosen: Array, i: Array) -> tuple[Array, Array]:
        grown = chosen | one[i]
        worth = jnp.where(grown, jax.vmap(lambda v: value(grown & ~v, i))(one), -jnp.inf)
        chosen = jnp.where(jnp.sum(grown) > k, grown & ~one[jnp.argmax(worth)], grown)
        return chosen, chosen

    return jax.lax.scan(step, jnp.zeros((n,), bool), jnp.arange(n, dtype=jnp.int32))[1]


def best(values: Float[Array, " sets"], table: Bool[Array, "sets n"]) -> Float[Array, " n"]:
    """After each token, the largest value of a set among the tokens so far; -inf before there are enough."""
    last = table.shape[1] - 1 - jnp.argmax(table[:, ::-1], 1)
    there = last[None] <= jnp.arange(table.shape[1])[:, None]
    return jnp.max(jnp.where(there, values[None], -jnp.inf), -1)


TOKENS, KEEP = 12, 4
GUARANTEE = least_share(KEEP)
OBJECTIVES = ("additive", "coverage", "logdet", "penalty")


@jd.setting
class Sets:
    r"""What a set of tokens is worth.

    - "additive": the sum of its tokens' scores, which come from random attention;
    - "coverage": :math:`\sum_u \max_{s \in S} A_{us}`, A uniform;
    - "logdet": :math:`\log\det(I + K_S^\top K_S)` of Gaussian keys with two entries;
    - "penalty": submodular but not monotone: a first token is worth most, and all others nothing next to it.
    """

    objective: jd.Code = jd.code(*OBJECTIVES)  # value of a set; additive: sum of scores, penalty: not monotone
    growing: jd.Swept = 0.0  # 1: scores are attention summed so far, 0: they are fixed

    def __post_init__(self) -> None:
        jd.require(self, self.growing in (0, 1), "growing is 0 or 1", "growing")


def hardest() -> Float[Array, "items tokens"]:
    """Weights of items by token: KEEP disjoint optimal tokens, and as many that greedy takes first, by a hair."""
    k = KEEP
    share = (1 / k) * (1 - 1 / k) ** jnp.arange(k, dtype=jnp.float64)
    rest = jnp.full((1,), (1 - 1 / k) ** k, jnp.float64)
    item = jnp.concatenate([share, rest])  # of every optimal token
    optimal = jnp.kron(jnp.eye(k, dtype=jnp.float64), item[:, None])  # [items, optimal]
    across = jnp.tile(jnp.concatenate([jnp.diag(share) * (1 + 1e-9), jnp.zeros((1, k), jnp.float64)]), (k, 1))
    return jnp.concatenate([optimal, across, jnp.zeros((k * (k + 1), TOKENS - 2 * k), jnp.float64)], 1)


def covered(chosen: Bool[Array, " tokens"], cover: Float[Array, "items tokens"]) -> Float[Array, ""]:
    """What a set covers of all items."""
    return jnp.sum(jnp.max(jnp.where(chosen, cover, 0), -1))


def share(value: Callable[[Array], Array], values: Float[Array, " sets"]) -> Float[Array, ""]:
    """What greedy additions reach of the largest of the values."""
    return value(add(value, TOKENS, KEEP)) / jnp.max(values)


def trial(s: Sets, key: PRNGKeyArray) -> jd.Observables:
    """What greedy additions and evictions reach, the optimum, and after every token the best so far."""
    # values of sets
    k_o, k_a, k_k, k_p = jax.random.split(key, 4)
    rows = jnp.tril(jnp.exp(2 * jax.random.normal(k_o, (TOKENS, TOKENS), jnp.float64)))
    so_far = jnp.cumsum(rows / jnp.sum(rows, -1, keepdims=True), 0)  # attention of each token, by step
    scores = jnp.where(s.growing > 0.5, so_far, so_far[-1])
    keys = jax.random.normal(k_k, (TOKENS, 2), jnp.float64)
    cover = jax.random.uniform(k_a, (TOKENS, TOKENS), jnp.float64)
    hard = hardest()[:, jax.random.permutation(k_p, TOKENS)]

    def value(chosen: Array, step: Array) -> Array:
        gram = jnp.eye(2, dtype=jnp.float64) + (keys * chosen[:, None]).T @ keys
        logdet = jnp.log(gram[0, 0] * gram[1, 1] - gram[0, 1] ** 2)
        penalty = jnp.where(chosen[0], 1.001, jnp.sum(chosen).astype(jnp.float64))
        return jnp.stack([jnp.sum(jnp.where(chosen, scores[step], 0)), covered(chosen, cover), logdet, penalty])[s.objective.index]

    # the best sets
    table, last = jnp.asarray(subsets(TOKENS, KEEP)), jnp.asarray(TOKENS - 1)
    fixed = jax.vmap(lambda chosen: value(chosen, last))(table)
    every = jnp.where(s.objective == "additive", table.astype(jnp.float64) @ scores.T, fixed[:, None])  # [sets, step]
    largest = jax.vmap(lambda column: best(column, table), 1)(every)  # [step of the values, last token of the sets]
    # what greedy choices reach, and the last tokens
    at = jnp.arange(TOKENS)
    reached = jax.vmap(value)(evict(value, TOKENS, KEEP), at)

    newest = jax.vmap(lambda i: value((at <= i) & (at > i - KEEP), i))(at)
    guarantee = jnp.asarray(least_share(KEEP), jnp.float64)
    of_hard = share(lambda c: covered(c, hard), jax.vmap(lambda c: covered(c, hard))(table))
    return jd.observables(
        predicted={"kept": jd.named(jnp.diagonal(largest)[KEEP - 1 :], "step"), "share": guarantee, "hardest": guarantee},
        measured={
            "kept": jd.named(reached[KEEP - 1 :], "step"),
            "share": share(lambda c: value(c, last), fixed),
            "hardest": of_hard,
        },
        recorded={
            "evicting": reached[-1] / jnp.max(fixed),
            "last_ones": jd.named(newest[KEEP - 1 :], "step"),
        },
        coords={"step": range(KEEP, TOKENS + 1)},
    )


def judge_kept(ds: xr.Dataset) -> list[jd.Check]:
    """What is kept after every token against the best choice among the tokens so far."""
    return [jd.at_most("score of what is kept: relative error", jd.relative_error(ds, "kept"), 1e-12)]


def judge_share(ds: xr.Dataset) -> list[jd.Check]:
    """The share of the optimum that additions reach, at least and on the hardest instance."""
    return [
        jd.at_least("share of the optimum minus the guarantee", ds.measured_share - ds.predicted_share, -1e-12),
        jd.at_most("the same on the hardest instance, absolutely", abs(ds.measured_hardest - ds.predicted_hardest), 1e-6),
    ]


def plot_kept(ds: xr.Dataset, fig: Figure) -> None:
    """Scores of what is kept, against the best."""
    ax = fig.subplots()
    plotting.scatter(ax, ds.predicted_kept, ds.measured_kept, label="a step of a run", color="measured", log=False)
    ax.set(xlabel="best score of 4 tokens so far", ylabel="score of what greedy evictions keep")


def plot_share(ds: xr.Dataset, fig: Figure) -> None:
    """Shares of the optimum by kind of value, additions and evictions."""
    axes = fig.subplots(1, 2, sharey=True)
    kinds = np.atleast_1d(ds.objective.values)
    for ax, name, title in zip(axes, ("measured_share", "evicting"), ("additions", "evictions in one pass"), strict=True):
        for i, kind in enumerate(kinds):
            part = ds[name].sel(objective=kind) if "objective" in ds.dims else ds[name]
            ax.plot(np.full(part.size, i), part.values.ravel(), ".", color=plotting.COLORS["measured"])
        ax.axhline(float(ds.predicted_share.max()), color=plotting.COLORS["theory"], linestyle="--")
        ax.set_xticks(range(len(kinds)), list(map(str, kinds)))
        ax.set(title=title, ylabel="share of the optimum")


STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Sets, objective=["coverage", "logdet"]),
    seeds=64,
    paper_seeds=1024,
    evidence="algebra",
    bounds="derived: float64 rounding of sums of up to 12 terms",
    source="arXiv:2306.14048, definition 4.3 and theorem 4.4; G. Nemhauser, L. Wolsey, M. Fisher 1978 (additions)",
)


CLAIMS = (
    STUDY.claim(
        id="h2o.greedy_opt",
        title="Evicting the lowest score keeps the best set if scores are fixed",
        statement="If every token has a fixed score and a set of tokens is worth the sum of its scores, then a cache that evicts "
        "the token with the lowest score whenever it is over its size holds, at every step, a set of the largest possible "
        "sum among all tokens so far. (An identity, by enumeration of all sets.)",
        decides={
            "best": ("score of what is kept: relative error", "scores are the attention accumulated so far"),
            "largest": ("score of what is kept: relative error", "scores are the attention accumulated so far"),
        },
        tested="Caches of 4 tokens reading 12, with scores from random attention; {seeds} seeds.",
        quick=jd.grid(Sets, objective="additive"),
        judge=judge_kept,
        controls={"scores are the attention accumulated so far": {"growing": 1.0}},
        rivals={
            "no more than the guarantee for submodular values": jd.swap(predicted_kept=lambda ds: GUARANTEE * ds.predicted_kept),
            "the last tokens are worth as much": jd.swap(predicted_kept="last_ones"),
        },
        plot=plot_kept,
        caption="Sum of scores of what greedy evictions keep against the largest sum, after every token; one "
        "point per step and run.",
    ),
    STUDY.claim(
        id="h2o.submodular",
        bounds="derived: float64 rounding, and on the hardest instance the 1e-9 of a value that breaks its ties",
        title="Greedy additions reach 1 - (1 - 1/k)^k of the best set of k tokens",
        statement=r"Let the value of a set $S$ of tokens be its coverage $\sum_u \max_{s \in S} A_{us}$, with $A_{us} \ge 0$ the "
        r"coverage of item $u$ by token $s$, or $\log\det(I + K_S^\top K_S)$, with $K_S$ the matrix of its tokens' keys. "
        r"Choosing $k$ tokens greedily, one by one, reaches at least $1 - (1 - 1/k)^k$ of the best value, and just that on the "
        "hardest instance of coverage. (A bound, by enumeration of all sets of $k = 4$ of 12 tokens.)",
        tested="$k = 4$ of 12 tokens, random $A$ and Gaussian keys of two entries, and the hardest instance; {seeds} seeds.",
        judge=judge_share,
        controls={"a value that is not monotone": jd.Control({"objective": "penalty"}, breaks="coverage")},
        rivals={
            "greedy additions are optimal": jd.swap(predicted_share=1.0, predicted_hardest=1.0),
            "no more than 1/2 is certain": jd.swap(predicted_share=0.5, predicted_hardest=0.5),
        },
        plot=plot_share,
        caption="Share of the optimum reached by greedy additions (left) and by evictions in one pass (right), by kind of value; "
        "dashed: the guarantee for additions. One point per run.",
    ),
)
