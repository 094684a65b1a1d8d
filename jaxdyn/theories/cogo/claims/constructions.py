r"""Claims on global solutions of modular addition: composed networks, run on every pair, have zero loss.

Nets without one of their parts stand beside them: their losses are known as well, and serve as controls. Letters as in
``dynamics/solutions.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, PRNGKeyArray
from matplotlib.ticker import NullFormatter

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.data.abelian import Abelian, parse
from jaxdyn.theories.cogo.dynamics import partial, semiring, solutions
from jaxdyn.theories.cogo.dynamics.semiring import Element

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "CLAIMS",
    "ZERO",
    "Memory",
    "Modular",
    "all_blocks",
    "checked_groups",
    "memory_trial",
    "nets",
    "replaced",
    "trial",
    "widened",
]

SOURCE = "arXiv:2410.01779, corollaries on composed solutions"
ZERO = 1e-20  # a loss that is the square of rounding: at most 1e-28 in all solutions here
NETS = ("F6", "F6, alpha beta", "F4/6", "F4/6, two carriers", "syn alone", "alpha beta, any nu", "F4/6 without bias", "F4 alone")
SIX, MIXED = NETS[:2], NETS[2:4]


@jd.setting
class Modular:
    """Random numbers in composed solutions of these groups of odd order."""

    groups: tuple[str, ...] = ("5", "7", "23", "71")

    def __post_init__(self) -> None:
        """Refuse names of no group, and groups whose frequencies do not all come in pairs or are a single pair."""
        for group in checked_groups(self.groups):
            if len(group.real) or len(group.pairs) < 2:
                raise jd.UsageError(f"groups={group} is not allowed here: groups have an odd order of at least 5")


def checked_groups(names: tuple[str, ...]) -> list[Abelian]:
    """The groups of these names.

    Raises:
        UsageError: if there are none, or one has a wrong name.
    """
    if not names:
        raise jd.UsageError("groups=() is not allowed: at least one group is needed, e.g. 5:7")
    return [parse(name) for name in names]


def all_blocks(n: solutions.Numbers) -> Array:
    """Blocks of six places at every pair: of order 6, of order 4, of order 6 with alpha and beta, z_syn alone, a wrong product."""
    sixes, fours = solutions.six(n.nu, n.phases), solutions.four(n.xi, n.phases)
    others = solutions.six_ab(n.alpha, n.beta, n.phases), _syn_blocks(n.phases), _wrong_blocks(n)
    return jnp.stack([sixes, jnp.pad(fours, ((0, 0), (0, 0), (0, 2))), *others])


def nets(blocks: Array, shift: Array, group: Abelian) -> Element:
    """Solutions, and nets that lack a part, stacked in the order of ``NETS``; carriers are the pairs from ``shift`` on."""
    sixes, fours, sixes_ab, syn, wrong = blocks = blocks[:, : len(group.pairs)]
    since = (jnp.arange(len(group.pairs)) + shift) % len(group.pairs)
    bare, exist = solutions.mixed(since < 1, sixes, fours[..., :4])
    plain = jnp.stack([sixes, sixes_ab, syn, wrong, bare, fours])
    places = jnp.arange(6) < jnp.asarray([6, 6, 3, 6, 6, 4])[:, None]
    there = jnp.broadcast_to(places[:, None], (6, len(group.pairs), 6)).at[4].set(exist)
    composed = jax.vmap(lambda *block: solutions.compose(group, *block))(plain, there)
    biased = jax.vmap(lambda carriers: solutions.carried(group, carriers, sixes, fours[..., :4]))(jnp.stack([since < 1, since < 2]))
    return jax.tree.map(lambda c, b: jnp.concatenate([c[:2], b, c[2:]]), composed, biased)


def _syn_blocks(phases: Array) -> Array:
    """Blocks of z_syn alone, at 3^(-1/3), in six places."""
    blocks = jax.vmap(lambda y: partial.multiply(partial.syn(), partial.unit(y)))(phases) / 3 ** (1 / 3)
    return jnp.pad(blocks, ((0, 0), (0, 0), (0, 3)))


def _wrong_blocks(n: solutions.Numbers) -> Array:
    """Blocks of z_syn,alpha,beta * z_nu with any nu."""

    def block(alpha: Array, beta: Array, nu: Array, y: Array) -> Array:
        return partial.multiply(partial.syn_ab(alpha, beta), partial.nu(nu), partial.unit(y))

    return jax.vmap(block)(n.alpha, n.beta, n.nu, n.phases) / 6 ** (1 / 3)


def widened(x: Element, width: int) -> Element:
    """The element with empty places at its end, up to the width."""
    more = width - x.nodes.size
    return Element(jnp.pad(x.z, ((0, 0), (0, 0), (0, more))), jnp.pad(x.nodes, (0, more)))


def trial(s: Modular, key: PRNGKeyArray) -> jd.Observables:
    """Loss, errors, order and norm of every net in every group."""
    groups = checked_groups(s.groups)
    k_numbers, k_carrier = jax.random.split(key)
    blocks = all_blocks(solutions.draw(k_numbers, max(groups, key=lambda g: len(g.pairs))))
    shift = jax.random.randint(k_carrier, (), 0, 2**16, dtype=jnp.int32)
    fits, orders, energies = [], [], []
    for group in groups:
        found = nets(blocks, shift, group)
        fits.append(jax.lax.map(lambda x, group=group: solutions.fit(x, group), found))
        orders.append(jax.vmap(semiring.order)(found))
        energies.append(jax.vmap(semiring.energy)(found)[: len(SIX + MIXED)])
    d = np.array([g.order for g in groups])
    pairs = np.array([len(g.pairs) for g in groups])
    loss, wrong = (jnp.stack(v) for v in zip(*fits, strict=True))
    bare, alone = (4 / d * count for count in (pairs - 1, pairs))
    energy = jnp.stack([solutions.energy(pairs, n6) for n6 in (pairs, pairs, 1, 2)], 1)
    nodes = np.stack([6 * pairs, 6 * pairs, 2 * d, 2 * d + 2], 1)
    return jd.observables(
        predicted={
            "energy": jd.named(energy, "group solution"),
            "nodes": jd.named(jnp.asarray(nodes, jnp.float64), "group solution"),
            "bare": jd.named(jnp.asarray(bare), "group"),
            "alone": jd.named(jnp.stack([jnp.asarray(alone), jnp.zeros(len(d), jnp.float64)]), "form group"),
        },
        measured={
            "energy": jd.named(jnp.stack(energies), "group solution"),
            "nodes": jd.named(jnp.stack(orders)[:, : len(SIX + MIXED)].astype(jnp.float64), "group solution"),
            "bare": jd.named(loss[:, NETS.index("F4/6 without bias")], "group"),
            "alone": jd.named(loss[:, NETS.index("F4 alone")], "group"),
        },
        recorded={
            "loss": jd.named(loss, "group net"),
            "wrong": jd.named(wrong, "group net"),
        },
        coords={"form": ("derived", "printed"), "group": s.groups, "net": NETS, "solution": SIX + MIXED},
    )


@jd.setting
class Memory:
    """The solution that memorises, with random phases; ``exponent`` and ``factors`` are breaches."""

    exponent: jd.Swept = 2 / 3  # the nodes' modulus is d to its negative
    factors: jd.Code = jd.code("both", "first alone")
    groups: tuple[str, ...] = ("5", "7", "23")

    def __post_init__(self) -> None:
        """Refuse names of no group."""
        checked_groups(self.groups)


def memory_trial(s: Memory, key: PRNGKeyArray) -> jd.Observables:
    """Loss, errors, order and norm of the memorising solution of every group."""
    groups = checked_groups(s.groups)
    fits, orders, energies = [], [], []
    for group, k in zip(groups, jax.random.split(key, len(groups)), strict=True):
        first, second = solutions.memory_factors(group)
        both, alone = semiring.multiply(first, second), widened(first, group.order**2)
        x = jax.tree.map(lambda *e: jnp.where(s.factors == 0, *e), both, alone)
        x = semiring.multiply(x, solutions.unit(group, solutions.draw(k, group).phases))
        x = x._replace(z=x.z * jnp.asarray(group.order, jnp.float64) ** -s.exponent)
        fits.append(solutions.fit(x, group))
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


def _solved(ds: xr.Dataset, names: tuple[str, ...]) -> list[jd.Check]:
    chosen = ds.sel(net=list(names))
    sizes = ds.sel(solution=list(names))
    return [
        jd.at_most("loss", chosen.loss, ZERO),
        jd.at_most("pairs whose largest output is not their sum", chosen.wrong, 0.0),
        jd.at_most("number of nodes", jd.relative_error(sizes, "nodes"), 0.0),
        jd.at_most("Fourier norm squared", jd.relative_error(sizes, "energy"), 1e-12),
    ]


def judge_six(ds: xr.Dataset) -> list[jd.Check]:
    """Both forms of the solution of order 6."""
    return _solved(ds, SIX)


def judge_mixed(ds: xr.Dataset) -> list[jd.Check]:
    """The solution of orders 4 and 6 with one and with two carriers; and its loss when the bias is taken away."""
    bare = jd.at_most("loss without bias against 4 (n - 1) / d", jd.relative_error(ds, "bare"), 1e-12)
    return [*_solved(ds, MIXED), bare]


def judge_alone(ds: xr.Dataset) -> list[jd.Check]:
    """The loss of blocks of order 4 at all frequencies."""
    return [jd.at_most("loss of order 4 alone, less the stated one", abs(ds.measured_alone - ds.predicted_alone), 1e-10)]


def judge_memory(ds: xr.Dataset) -> list[jd.Check]:
    """Loss, errors, order at every frequency, and norm."""
    return [
        jd.at_most("loss", ds.loss, ZERO),
        jd.at_most("pairs whose largest output is not their sum", ds.wrong, 0.0),
        jd.at_most("order at each frequency", jd.relative_error(ds, "nodes"), 0.0),
        jd.at_most("Fourier norm squared", jd.relative_error(ds, "energy"), 1e-12),
    ]


def replaced(net: str, by: str) -> Callable[[xr.Dataset], xr.Dataset]:
    """A breach: the loss and errors of one net are those of another."""

    def breach(ds: xr.Dataset) -> xr.Dataset:
        other = ds.sel(net=by, drop=True)
        return ds.assign({name: ds[name].where(ds.net != net, other[name]) for name in ("loss", "wrong")})

    return breach


def plot_losses(ds: xr.Dataset, fig: Figure) -> None:
    """Losses of solutions and of nets that lack a part, over runs, for each group."""
    ax = fig.subplots()
    marks = dict(zip(ds.net.values, ["o", "s", "o", "s", "x", "+", "x", "+"], strict=False))
    for row, net in enumerate(ds.net.values):
        values = ds.loss.sel(net=net).transpose("group", ...)
        values = np.maximum(values.values.reshape(ds.sizes["group"], -1), 1e-33)
        place = np.arange(len(values))[:, None] + 0.08 * (row - (ds.sizes["net"] - 1) / 2) + 0 * values
        color = plotting.CYCLE[row // 2 % len(plotting.CYCLE)]
        ax.plot(place.ravel(), values.ravel(), marks[net], color=color, alpha=0.6, label=net)
    ax.axhline(ZERO, color=plotting.COLORS["theory"], label="bound of a solution")
    ax.set_xticks(range(ds.sizes["group"]), [str(g) for g in ds.group.values])
    ax.set(yscale="log", xlabel="group", ylabel="loss over all pairs", ylim=(1e-33, 1e3))
    ax.legend(ncols=3, loc="center", bbox_to_anchor=(0.5, 0.68))


def plot_alone(ds: xr.Dataset, fig: Figure) -> None:
    """Loss of blocks of order 4 alone, and without bias beside one carrier, against their formulas and the printed zero."""
    ax = fig.subplots()
    d = np.array([parse(str(g)).order for g in ds.group.values], float)
    for name, count, label, color in (("alone", d - 1, "order 4 alone", "measured"), ("bare", d - 3, "no bias", "third")):
        values = ds[f"measured_{name}"].transpose("group", ...).values.reshape(len(d), -1)
        ax.plot(np.repeat(d, values.shape[1]), values.ravel(), "o", color=plotting.COLORS[color], label=label, alpha=0.5)
        ax.plot(d, 2 * count / d, "--", color=plotting.COLORS["theory"], label=f"2 (d - {int(d[0] - count[0])}) / d")
    ax.plot(d, 0 * d, color=plotting.COLORS["control"], label="as printed: zero loss")
    ax.set(xlabel="order of the group d", ylabel="loss over all pairs")
    _orders(ax, d)


def plot_memory(ds: xr.Dataset, fig: Figure) -> None:
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
    _orders(left, d)
    _orders(right, d)
    right.yaxis.set_minor_formatter(NullFormatter())


def _orders(ax: Axes, d: np.ndarray) -> None:
    """A logarithmic axis with the groups' orders as its ticks."""
    ax.set_xscale("log")
    ax.set_xticks(d, [f"{n:g}" for n in d])
    ax.xaxis.set_minor_formatter(NullFormatter())


_SHARED = {
    "source": SOURCE,
    "trial": trial,
    "form": "derived",
    "quick": jd.grid(Modular),
    "paper": jd.grid(Modular, groups=("5", "7", "9", "15", "23", "71", "127")),
    "seeds": 8,
    "paper_seeds": 32,
}
_MEMORY = {
    "trial": memory_trial,
    "quick": jd.grid(Memory),
    "paper": jd.grid(Memory, groups=("5", "7", "9", "15", "23", "31")),
    "judge": judge_memory,
    "plot": plot_memory,
    "seeds": 8,
    "paper_seeds": 32,
}

CLAIMS = (
    jd.Claim(
        id="cogo.zF6",
        statement=r"$z_{F6} = 6^{-1/3} \sum_k z_{syn} * z_\nu * y_k$ has zero loss and adds all pairs correctly, for any $\nu$ of "
        r"modulus one and any phases at each of the $n = (d-1)/2$ pairs of frequencies; so has "
        r"$z_{syn,\alpha\beta} * z_{\nu=i}$. It has $q = 3(d-1)$ nodes and norm$^2$ $6 \cdot 6^{1/3}\,n$.",
        judge=judge_six,
        controls={
            "z_syn without its second factor": replaced("F6", "syn alone"),
            "z_syn,alpha,beta with any nu": replaced("F6, alpha beta", "alpha beta, any nu"),
        },
        plot=plot_losses,
        **_SHARED,
    ),
    jd.Claim(
        id="cogo.zF46",
        statement=r"$z_{F4/6}$, a block of order 6 that carries the bias of blocks of order 4 at all other frequencies, has zero "
        r"loss with $q = 2d$ nodes; so has any number of carriers that share it. Without the bias $L = (4/d)\,((d-1)/2 - 1)$.",
        judge=judge_mixed,
        controls={
            "bias removed": replaced("F4/6", "F4/6 without bias"),
            "no carrier": replaced("F4/6", "F4 alone"),
        },
        plot=plot_losses,
        **_SHARED,
    ),
    jd.Claim(
        id="cogo.zF4_as_printed",
        statement=r"As printed: blocks of order 4, $z_{\nu=i} * z_\xi * y_k$, at all frequencies are a solution of zero loss. They "
        r"have $L = 2(d-1)/d$, since each block leaves a mean that nothing takes away.",
        judge=judge_alone,
        expected="refuted",
        counterpart="derived",
        plot=plot_alone,
        **(_SHARED | {"form": "printed", "source": "talks on arXiv:2410.01779"}),
    ),
    jd.Claim(
        id="cogo.zM",
        statement=r"Perfect memorisation $z_M = d^{-2/3} z_a * z_b$ has zero loss; it has $d^2$ nodes at every frequency and "
        r"norm$^2$ $3(d-1)\,d^{2/3}$, more than $z_{F6}$ with its $3(d-1)\,6^{1/3}$.",
        source=SOURCE,
        form="derived",
        controls={
            "normaliser d^(-1/3)": {"exponent": 1 / 3},
            "z_a alone, of order d": {"factors": "first alone", "exponent": 1 / 3},
        },
        **_MEMORY,
    ),
    jd.Claim(
        id="cogo.zM_order_as_printed",
        statement=r"As printed: $z_M$ has order d at each frequency. Its two factors have; the product has $d^2$.",
        source="talks on arXiv:2410.01779",
        form="printed",
        expected="refuted",
        counterpart="derived",
        **_MEMORY,
    ),
)
