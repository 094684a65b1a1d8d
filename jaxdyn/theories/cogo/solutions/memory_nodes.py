r"""How many nodes memorisation needs: networks whose nodes each look up one pair of elements.

A node of the memorising solution is one-hot: of a pair :math:`(i, j)` it sees :math:`(\delta_{i,j_1} + \delta_{j,j_2})^2`. All
:math:`d^2` such functions are the matrix :math:`F = 2 + I \otimes J + J \otimes I`, J all ones, with eigenvalues 2, 2 + d and
2 + 2d; targets minus their mean over the outputs lie in the eigenspace of 2. So the weights behind are unique, none
vanishes, and n nodes explain at most the share :math:`n/d^2` of the targets. A node counts at every frequency, since a one-hot
vector's spectrum vanishes nowhere.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, Int, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import linalg, plotting
from jaxdyn.errors import UsageError
from jaxdyn.theories.cogo.blocks import ZERO

COUNTS = ("d", "half", "all but one", "all")


@jd.setting
class Lookup:
    """Nodes of a memorising network in random order; all kinds of ``nodes`` but the first are breaches."""

    nodes: jd.Code = jd.code("one pair each", "waves", "pairs with repeats")  # what a node reads; waves: cosines, not one-hot
    order: int = jd.field(7, at_least=3)  # d, odd

    def __post_init__(self) -> None:
        """Refuse an even order, which has a real character."""
        if self.order % 2 == 0:
            raise UsageError(f"order={self.order} is not allowed: it is odd")


def responses(a: Float[Array, "q d"], b: Float[Array, "q d"]) -> Float[Array, "n q"]:
    """What each node gives for every pair, :math:`(a_i + b_j)^2`."""
    return jnp.square(a[:, :, None] + b[:, None, :]).reshape(a.shape[0], -1).T


def targets(d: int) -> Float[Array, "n d"]:
    """One-hot sums of every pair, minus their mean over the outputs."""
    at = jnp.arange(d)
    return jax.nn.one_hot((at[:, None] + at) % d, d, dtype=jnp.float64).reshape(d * d, d) - 1 / d


def share_left(features: Float[Array, "n q"], y: Float[Array, "n d"], count: int) -> Float[Array, ""]:
    """Share of the targets' squares that the best weights behind the first ``count`` nodes leave."""
    weights = linalg.lstsq(features[:, :count], y, rcond=1e-12)
    return jnp.sum(jnp.square(y - features[:, :count] @ weights)) / jnp.sum(jnp.square(y))


def bound(d: int, count: int) -> float:
    """Least share that this many nodes leave, a pair each."""
    return 1 - count / d**2


def last_pair(d: int) -> float:
    r"""Share left by all nodes but one: its square in the unique solution over that of the inverse of F, :math:`(F^{-2})_{ee}`."""
    inverse = ((d - 1) ** 2 / 4 + 2 * (d - 1) / (2 + d) ** 2 + 1 / (2 + 2 * d) ** 2) / d**2
    return 1 / (4 * inverse) / d**2


def waves(key: PRNGKeyArray, d: int, count: int) -> tuple[Float[Array, "q d"], Float[Array, "q d"]]:
    """Cosines of random phases, the frequencies in turn, in place of one-hot vectors."""
    k = 1 + jnp.arange(count) % (d // 2)
    phase = jax.random.uniform(key, (2, count, 1), jnp.float64, maxval=2 * np.pi)
    a, b = jnp.cos(2 * np.pi * k[:, None] * jnp.arange(d) / d + phase)
    return a, b


def pairs(order: Int[Array, " n"], d: int) -> tuple[Float[Array, "n d"], Float[Array, "n d"]]:
    """One-hot vectors of both elements of each pair."""
    return jax.nn.one_hot(order // d, d, dtype=jnp.float64), jax.nn.one_hot(order % d, d, dtype=jnp.float64)


def trial(s: Lookup, key: PRNGKeyArray) -> jd.Observables:
    """What is left of the targets by d nodes, half of the nodes, all but one and all, in random order."""
    d, (k_order, k_phase, k_repeat) = s.order, jax.random.split(key, 3)
    many = d * d
    looked, waved = pairs(jax.random.permutation(k_order, many), d), waves(k_phase, d, many)
    repeated = pairs(jax.random.randint(k_repeat, (many,), 0, many), d)
    a, b = (
        jnp.where(s.nodes == "waves", w, jnp.where(s.nodes == "pairs with repeats", r, x))
        for x, w, r in zip(looked, waved, repeated, strict=True)
    )
    counts = (d, many // 2, many - 1, many)
    left = jnp.stack([share_left(responses(a, b), targets(d), count) for count in counts])
    return jd.observables(
        predicted={
            "least": jd.named(jnp.asarray([bound(d, c) for c in counts], jnp.float64), "count"),
            "last": jnp.float64(last_pair(d)),
            "spectrum": jnp.float64(1.0),
        },
        measured={
            "least": jd.named(left, "count"),
            "last": left[COUNTS.index("all but one")],
            "spectrum": jnp.min(jnp.abs(jnp.fft.fft(a))),
        },
        coords={"count": COUNTS},
    )


SHORT = "predicted least share left minus the share left"
EXPLAINED = "d times the share of the loss that d nodes remove"


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """No fewer nodes leave less than the bound, the last one leaves a known share, and all leave nothing."""
    few = (1 - ds.measured_least.sel(count="d", drop=True)) / (1 - ds.predicted_least.sel(count="d", drop=True))
    return [
        jd.at_most(EXPLAINED, few, 1 + 1e-9),
        jd.at_most(SHORT, ds.predicted_least - ds.measured_least, 1e-9),
        jd.at_most("share left by all nodes but one: relative error", jd.relative_error(ds, "last"), 1e-9),
        jd.at_most("share left by all nodes", ds.measured_least.sel(count="all"), ZERO),
        jd.at_most("spectrum of a node minus one, smallest modulus", abs(ds.measured_spectrum - ds.predicted_spectrum), 1e-9),
    ]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Share left against the share of the pairs that have a node."""
    ax = fig.subplots()
    x = (1 - ds.predicted_least).transpose("count", ...).values.reshape(len(COUNTS), -1)
    y = ds.measured_least.transpose("count", ...).values.reshape(len(COUNTS), -1)
    ax.plot(x.ravel(), y.ravel(), "o", color=plotting.COLORS["measured"], label="best weights behind the nodes")
    ax.plot([0, 1], [1, 0], color=plotting.COLORS["theory"], label=r"least, $1 - n/d^2$")
    ax.set(xlabel=r"nodes over pairs, $n/d^2$", ylabel="share of the loss left")


STUDY = jd.Study(
    trial=trial,
    source="derived; the memorising solution is of arXiv:2410.01779",
    quick=jd.grid(Lookup, order=[5, 7, 11]),
    paper=jd.grid(Lookup, order=[5, 7, 11, 15, 23]),
    seeds=8,
    paper_seeds=32,
    evidence="algebra",
    tested="Nodes of one pair each, in random order, for addition modulo {order}; the best weights behind them by least squares on "
    "all pairs; {seeds} seeds.",
    bounds="derived: float64 rounding",
    judge=judge,
    plot=plot,
    caption=r"Share of the loss that the best output weights leave against the share of the pairs that have a node, one point per "
    r"run and number of nodes ($d$, half of the pairs, all but one, all); line: the least share, $1 - n/d^2$.",
)

CLAIMS = (
    STUDY.claim(
        id="cogo.memory_nodes",
        talks=("training:cogo-memorization", "grokking:li2-memorisation-nodes"),
        title="Memorisation pair by pair needs all d² nodes at every frequency",
        statement=r"In networks with quadratic activation whose nodes each look up one pair modulo an odd $d$ (one-hot input "
        r"weights), $n$ nodes leave at least $1 - n/d^2$ of the loss, whatever the output weights, and $d^2$ nodes leave none; "
        r"without one of them, the share $1/((d-1)^2 + 8(d-1)/(d+2)^2 + 1/(d+1)^2)$ is left. Such a node has modulus 1 at every "
        r"frequency, so that memorisation is of order $d^2$ there and no less; $d$ nodes leave at least $1 - 1/d$.",
        decides={
            "all d² nodes": (EXPLAINED, "d nodes are enough"),
            "every frequency": ("spectrum of a node minus one, smallest modulus", "waves in place of one-hot weights"),
        },
        controls={
            "waves in place of one-hot weights": {"nodes": "waves"},
            "pairs drawn with repeats, so that some have no node": {"nodes": "pairs with repeats"},
        },
        rivals={
            "d nodes are enough": {EXPLAINED: 5.0},  # the least d
            "each of the nodes removes as much": jd.swap(predicted_last=lambda ds: ds.predicted_least.sel(count="all but one")),
        },
    ),
)
