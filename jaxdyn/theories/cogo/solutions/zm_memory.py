r"""Solutions that memorise pair by pair: a composed one, and how many nodes memorisation needs.

The solution that memorises, with a node for each pair of elements: its order at a frequency, and its norm.

Letters as in ``dynamics/solutions.py``.

How many nodes memorisation needs: networks whose nodes each look up one pair of elements.

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
from matplotlib.ticker import NullFormatter

import jaxdyn as jd
from jaxdyn import linalg, plotting
from jaxdyn.data.abelian import parse
from jaxdyn.errors import UsageError
from jaxdyn.theories.cogo import model
from jaxdyn.theories.cogo.blocks import ZERO, checked_groups, widened
from jaxdyn.theories.cogo.dynamics import semiring, solutions
from jaxdyn.theories.cogo.figures import log_orders


@jd.setting
class Memory:
    """The solution that memorises, with random phases; ``exponent`` and ``factors`` are breaches."""

    exponent: jd.Swept = 2 / 3  # the nodes' modulus is d to its negative
    factors: jd.Code = jd.code("both", "first alone")  # product z_a * z_b, or z_a alone
    groups: tuple[str, ...] = ("5", "7", "23")  # groups, named by the orders of their cyclic factors

    def __post_init__(self) -> None:
        """Refuse names of no group."""
        checked_groups(self.groups)


def zm_trial(s: Memory, key: PRNGKeyArray) -> jd.Observables:
    """Loss, errors, order and norm of the memorising solution of every group."""
    groups = checked_groups(s.groups)
    fits, orders, energies = [], [], []
    for group, k in zip(groups, jax.random.split(key, len(groups)), strict=True):
        first, second = solutions.memory_factors(group)
        both, alone = semiring.multiply(first, second), widened(first, group.order**2)
        x = jax.tree.map(lambda *e: jnp.where(s.factors == "both", *e), both, alone)
        x = semiring.multiply(x, solutions.unit_element(group, solutions.sample(k, group).phases))
        x = x._replace(z=x.z * jnp.asarray(group.order, jnp.float64) ** -s.exponent)
        fits.append(model.fit(semiring.weights(x, group), group))
        orders.append(jnp.min(jnp.sum(jnp.abs(x.z[:, 1:]) > 0, -1)).astype(jnp.float64))
        energies.append(semiring.energy(x))
    d = jnp.asarray([float(g.order) for g in groups])
    loss, wrong = (jnp.stack(v) for v in zip(*fits, strict=True))
    return jd.observables(
        predicted={
            "energy": jd.named(jnp.asarray([solutions.memory_energy(g) for g in groups]), "group"),
            "nodes": jd.named(jnp.stack([d**2, d]), "form group"),
        },
        measured={"energy": jd.named(jnp.stack(energies), "group"), "nodes": jd.named(jnp.stack(orders), "group")},
        recorded={"loss": jd.named(loss, "group"), "wrong": jd.named(wrong, "group")},
        coords={"form": ("derived", "printed"), "group": s.groups},
    )


def judge_zm(ds: xr.Dataset) -> list[jd.Check]:
    """Loss, errors, order at every frequency, and norm."""
    return [
        jd.at_most("loss", ds.loss, ZERO),
        jd.at_most("pairs whose largest output is not their sum", ds.wrong, 0.0),
        jd.at_most("order at each frequency", jd.relative_error(ds, "nodes"), 0.0),
        jd.at_most("Fourier norm squared", jd.relative_error(ds, "energy"), 1e-12),
    ]


def plot_zm(ds: xr.Dataset, fig: Figure) -> None:
    """Order at each frequency and norm of the memorising solution against the order of the group."""
    left, right = fig.subplots(1, 2)
    d = np.array([parse(str(g)).order for g in ds.group.values], float)
    wide = np.geomspace(d.min(), d.max(), 50)
    for ax, name in ((left, "nodes"), (right, "energy")):
        values = ds[f"measured_{name}"].transpose("group", ...).values.reshape(len(d), -1)
        ax.plot(np.repeat(d, values.shape[1]), values.ravel(), "o", color=plotting.COLORS["measured"], label="zero-loss net")
    left.plot(wide, wide**2, color=plotting.COLORS["theory"], label=r"$d^2$")
    left.plot(wide, wide, "--", color=plotting.COLORS["control"], label="d, as printed")
    right.plot(wide, 3 * (wide - 1) * wide ** (2 / 3), color=plotting.COLORS["theory"], label=r"$3 (d-1) d^{2/3}$")
    right.plot(wide, 3 * 6 ** (1 / 3) * (wide - 1), "--", color=plotting.COLORS["third"], label=r"$z_{F6}$")
    left.set(yscale="log", xlabel="order of the group d", ylabel="nodes at each frequency")
    right.set(yscale="log", xlabel="order of the group d", ylabel="Fourier norm squared")
    log_orders(left, d)
    log_orders(right, d)
    right.yaxis.set_minor_formatter(NullFormatter())


COMPOSED = jd.Study(
    trial=zm_trial,
    source="arXiv:2410.01779, corollaries on composed solutions",
    quick=jd.grid(Memory),
    paper=jd.grid(Memory, groups=("5", "7", "9", "15", "23", "31")),
    seeds=8,
    paper_seeds=32,
    evidence="algebra",
    tested="The memorising network with random phases for the groups {groups}, on all pairs; {seeds} seeds. Nothing is trained.",
    bounds="derived: float64 rounding, squared in the loss; nodes and wrong pairs are counted",
    judge=judge_zm,
    plot=plot_zm,
    caption=r"Against the order $d$ of the group, one symbol per run: left the number of nodes at each frequency of the memorising "
    r"solution, with $d^2$ (line) and the printed $d$ (dashed); right its squared Fourier norm, with $3(d-1)d^{2/3}$ (line) and "
    r"that of $z_{F6}$ (dashed).",
)
ZM = COMPOSED.claim(
    id="cogo.zM",
    talks=("training:cogo-memorization",),
    title="Perfect memorisation is a composed solution, with large norm",
    statement=r"On $\mathbb{Z}_d$, perfect memorisation $z_M = d^{-2/3} z_a * z_b$, whose node of each pair $(g, g')$ of elements "
    r"has $d^{-2/3} (\omega^{kg}, \omega^{kg'}, \omega^{-k(g+g')})$, $\omega = e^{2\pi i/d}$, in the three layers at frequency $k "
    r"\ne 0$ (times three phases of product 1 that all nodes share), has zero loss and adds all pairs correctly. It has $d^2$ "
    r"nodes at each frequency and squared Fourier norm $3(d-1)\,d^{2/3}$.",
    decides={"all pairs": ("pairs whose largest output is not their sum", "z_a alone, of order d")},
    form="derived",
    controls={
        "normaliser d^(-1/3)": jd.Control({"exponent": 1 / 3}, breaks="d^{-2/3}"),
        "normaliser 1/d": jd.Control({"exponent": 1.0}, breaks="d^{-2/3}"),
        "z_a alone, of order d": jd.Control({"factors": "first alone"}, breaks="composed solution"),
    },
    rivals={},
)

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


def nodes_trial(s: Lookup, key: PRNGKeyArray) -> jd.Observables:
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


def judge_nodes(ds: xr.Dataset) -> list[jd.Check]:
    """No fewer nodes leave less than the bound, the last one leaves a known share, and all leave nothing."""
    few = (1 - ds.measured_least.sel(count="d", drop=True)) / (1 - ds.predicted_least.sel(count="d", drop=True))
    return [
        jd.at_most(EXPLAINED, few, 1 + 1e-9),
        jd.at_most(SHORT, ds.predicted_least - ds.measured_least, 1e-9),
        jd.at_most("share left by all nodes but one: relative error", jd.relative_error(ds, "last"), 1e-9),
        jd.at_most("share left by all nodes", ds.measured_least.sel(count="all"), ZERO),
        jd.at_most("spectrum of a node minus one, smallest modulus", abs(ds.measured_spectrum - ds.predicted_spectrum), 1e-9),
    ]


def plot_nodes(ds: xr.Dataset, fig: Figure) -> None:
    """Share left against the share of the pairs that have a node."""
    ax = fig.subplots()
    x = (1 - ds.predicted_least).transpose("count", ...).values.reshape(len(COUNTS), -1)
    y = ds.measured_least.transpose("count", ...).values.reshape(len(COUNTS), -1)
    ax.plot(x.ravel(), y.ravel(), "o", color=plotting.COLORS["measured"], label="best weights behind the nodes")
    ax.plot([0, 1], [1, 0], color=plotting.COLORS["theory"], label=r"least, $1 - n/d^2$")
    ax.set(xlabel=r"nodes over pairs, $n/d^2$", ylabel="share of the loss left")


PAIR_BY_PAIR = jd.Study(
    trial=nodes_trial,
    source="derived; the memorising solution is of arXiv:2410.01779",
    quick=jd.grid(Lookup, order=[5, 7, 11]),
    paper=jd.grid(Lookup, order=[5, 7, 11, 15, 23]),
    seeds=8,
    paper_seeds=32,
    evidence="algebra",
    tested="Nodes of one pair each, in random order, for addition modulo {order}; the best weights behind them by least squares on "
    "all pairs; {seeds} seeds.",
    bounds="derived: float64 rounding",
    judge=judge_nodes,
    plot=plot_nodes,
    caption=r"Share of the loss that the best output weights leave against the share of the pairs that have a node, one point per "
    r"run and number of nodes ($d$, half of the pairs, all but one, all); line: the least share, $1 - n/d^2$.",
)


CLAIMS = (
    ZM,
    ZM.as_printed(
        id="cogo.zM_order_as_printed",
        talks=("training:cogo-memorization",),
        title="The memorising solution has order d at each frequency",
        statement=r"On $\mathbb{Z}_d$, the memorising solution $z_M = d^{-2/3} z_a * z_b$ has order $d$ at each frequency.",
        form="printed",
        printed=r"talk training: perfect memorisation, $\mathbf{z}_M = d^{-2/3} \mathbf{z}_a * \mathbf{z}_b$, has order d per "
        r"frequency",
        source="talks on arXiv:2410.01779",
    ),
    PAIR_BY_PAIR.claim(
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
