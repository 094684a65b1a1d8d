r"""Global solutions of modular addition: composed networks, evaluated on all pairs, have zero loss.

Nets without one of their parts have known losses, too, and serve as controls. Letters as in
``dynamics/solutions.py``.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Complex, Int, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.data.abelian import Abelian, parse
from jaxdyn.theories.cogo import model
from jaxdyn.theories.cogo.blocks import ZERO, all_blocks, checked_groups, most_pairs, replaced
from jaxdyn.theories.cogo.dynamics import semiring, solutions
from jaxdyn.theories.cogo.dynamics.semiring import Element
from jaxdyn.theories.cogo.figures import log_orders

NETS = ("F6", "F6, alpha beta", "F4/6", "F4/6, two carriers", "syn alone", "alpha beta, any nu", "F4/6 without bias", "F4 alone")
SIX, MIXED = NETS[:2], NETS[2:4]


@jd.setting
class Modular:
    """Random numbers in composed solutions of these groups of odd order."""

    groups: tuple[str, ...] = ("5", "7", "23", "71")  # groups, named by the orders of their cyclic factors

    def __post_init__(self) -> None:
        """Refuse names of no group, and groups whose frequencies do not all come in pairs or are a single pair."""
        groups = checked_groups(self.groups)
        odd = all(not len(group.real) and len(group.pairs) > 1 for group in groups)
        jd.require(self, odd, "every group has an odd order of at least 5", "groups")


def nets(blocks: Complex[Array, "5 k 3 6"], shift: Int[Array, ""], group: Abelian) -> Element:
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


def trial(s: Modular, key: PRNGKeyArray) -> jd.Observables:
    """Loss, errors, order and norm of every net in every group."""
    groups = checked_groups(s.groups)
    k_numbers, k_carrier = jax.random.split(key)
    blocks = all_blocks(solutions.sample(k_numbers, most_pairs(groups)))
    shift = jax.random.randint(k_carrier, (), 0, 2**16, dtype=jnp.int32)
    # all nets of every group
    fits, sizes, energies = [], [], []
    for group in groups:
        composed = nets(blocks, shift, group)
        fits.append(jax.lax.map(lambda x, group=group: model.fit(semiring.weights(x, group), group), composed))
        sizes.append(jax.vmap(semiring.order)(composed))
        energies.append(jax.vmap(semiring.energy)(composed)[: len(SIX + MIXED)])
    # predicted losses, norms and numbers of nodes
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
            "nodes": jd.named(jnp.stack(sizes)[:, : len(SIX + MIXED)].astype(jnp.float64), "group solution"),
            "bare": jd.named(loss[:, NETS.index("F4/6 without bias")], "group"),
            "alone": jd.named(loss[:, NETS.index("F4 alone")], "group"),
        },
        recorded={
            "loss": jd.named(loss, "group net"),
            "wrong": jd.named(wrong, "group net"),
        },
        coords={"form": ("derived", "naive"), "group": s.groups, "net": NETS, "solution": SIX + MIXED},
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
    """The solution of orders 4 and 6 with one and with two carriers, and its loss without bias."""
    bare = jd.at_most("loss without bias against 4 (n - 1) / d", jd.relative_error(ds, "bare"), 1e-12)
    return [*_solved(ds, MIXED), bare]


def orders(ds: xr.Dataset) -> xr.DataArray:
    """D of every group."""
    return xr.DataArray([float(parse(str(g)).order) for g in ds.group.values], dims="group", coords={"group": ds.group})


# A network of zero loss memorises, with a node for each pair of elements.
MEMORISED = jd.swap(
    predicted_nodes=lambda ds: orders(ds) ** 2, predicted_energy=lambda ds: 3 * (orders(ds) - 1) * orders(ds) ** (2 / 3)
)


def judge_alone(ds: xr.Dataset) -> list[jd.Check]:
    """The loss of blocks of order 4 at all frequencies."""
    return [jd.at_most("loss of order 4 alone, minus the stated one", abs(ds.measured_alone - ds.predicted_alone), 1e-10)]


def plot_losses(ds: xr.Dataset, fig: Figure) -> None:
    """Losses of solutions and of nets that lack a part, for each group and run."""
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
    """Loss of blocks of order 4 alone, and without bias with one carrier, against their formulas and zero."""
    ax = fig.subplots()
    d = np.array([parse(str(g)).order for g in ds.group.values], float)
    for name, count, label, color in (("alone", d - 1, "order 4 alone", "measured"), ("bare", d - 3, "no bias", "third")):
        values = ds[f"measured_{name}"].transpose("group", ...).values.reshape(len(d), -1)
        ax.plot(np.repeat(d, values.shape[1]), values.ravel(), "o", color=plotting.COLORS[color], label=label, alpha=0.5)
        ax.plot(d, 2 * count / d, "--", color=plotting.COLORS["theory"], label=f"2 (d - {int(d[0] - count[0])}) / d")
    ax.plot(d, 0 * d, color=plotting.COLORS["control"], label="a solution")
    ax.set(xlabel="order of the group d", ylabel="loss over all pairs")
    log_orders(ax, d)


STUDY = jd.Study(
    trial=trial,
    source="arXiv:2410.01779, corollaries on composed solutions",
    form="derived",
    evidence="algebra",
    tested="Composed networks with random numbers of modulus one for the groups {groups}, on all pairs; {seeds} seeds. "
    "Nothing is trained.",
    bounds="derived: float64 rounding, squared in the loss; nodes and wrong pairs are counted",
    rivals={"zero loss takes memorising": MEMORISED},
    quick=jd.grid(Modular),
    paper=jd.grid(Modular, groups=("5", "7", "9", "15", "23", "71", "127")),
    seeds=8,
    paper_seeds=32,
    plot=plot_losses,
    caption=r"Loss over all pairs of composed nets, one symbol for each net, group and run; the groups are on the horizontal axis. "
    r"The line is the bound below which a loss is the square of rounding errors; values below $10^{-33}$ are drawn there. "
    r"Nets that lack a part have losses of order one.",
)

CLAIMS = (
    STUDY.claim(
        id="cogo.zF6",
        talks=(
            "training:cogo-composition",
            "training:cogo-order-6",
        ),
        title="Six nodes at every pair of frequencies solve modular addition",
        statement=r"On $\mathbb{Z}_d$ with odd $d \ge 5$ and the partial solutions $z$ of cogo.partial, $z_{F6} = 6^{-1/3} \sum_k "
        r"z_{syn} * z_\nu * y_k$ has zero loss and adds correctly, for random $\nu$ of modulus one and nodes $y_k$ of three "
        r"random phases of product 1 at each of the $n = (d-1)/2$ pairs of frequencies; so does the sum with "
        r"$z_{syn,\alpha\beta} * "
        r"z_{\nu=i}$, for random $\alpha$ and $\beta$ of modulus one. Both have $q = 3(d-1)$ nodes and squared Fourier norm $6 "
        r"\cdot 6^{1/3}\,n$.",
        judge=judge_six,
        decides={"every pair": ("number of nodes", "zero loss takes memorising")},
        controls={
            "z_syn without its second factor": jd.Control(replaced("F6", "syn alone"), breaks="z_{syn}"),
            "z_syn,alpha,beta with any nu": jd.Control(replaced("F6, alpha beta", "alpha beta, any nu"), breaks=r"z_{\nu=i}"),
        },
    ),
    STUDY.claim(
        id="cogo.zF46",
        talks=("training:cogo-order-4",),
        title="One block of six nodes carries the bias of blocks of four",
        statement=r"On $\mathbb{Z}_d$ with odd $d \ge 5$, $z_{F4/6}$, one block of order 6 as in cogo.zF6 that carries, by a "
        r"constant in layer c of its nodes, the bias of blocks of order 4, $4^{-1/3} z_{\nu=i} * z_\xi * y_k$, at the other "
        "frequencies $k$, has zero loss with $q = 2d$ nodes and adds correctly; so does the solution in which two blocks of "
        "order 6 share the bias, with two nodes more. With $n_6 = 1$ or 2 of them and $n = (d-1)/2$ the squared Fourier norm is "
        r"$6 \cdot 6^{1/3} n_6 + 6 \cdot 4^{1/3} (n - n_6) + 6^{1/3} (n - n_6)/n_6$. With one block of order 6 that does not "
        r"carry the bias $L = (4/d)\,(n - 1)$.",
        judge=judge_mixed,
        controls={
            "bias removed": replaced("F4/6", "F4/6 without bias"),
            "no carrier": replaced("F4/6", "F4 alone"),
        },
        rivals={"zero loss takes memorising": MEMORISED, "blocks of order 4 need no bias": jd.swap(predicted_bare=0.0)},
    ),
    STUDY.claim(
        id="cogo.zF4_naive",
        title="Four nodes at every pair of frequencies solve modular addition",
        statement=r"On $\mathbb{Z}_d$ with odd $d \ge 5$, blocks of order 4, $4^{-1/3} z_{\nu=i} * z_\xi * y_k$ of partial "
        "solutions $z$ and nodes $y_k$ of frequency $k$, at all frequencies are a solution of zero loss, since each of them "
        "solves its own pair of frequencies up to a mean.",
        source="nobody's; the composed solution of arXiv:2410.01779 has a block of order 6 as well",
        form="naive",
        counterpart="derived",
        expected="refuted",
        judge=judge_alone,
        rivals={},
        plot=plot_alone,
        caption=r"Loss over all pairs against the order of the group, one symbol per run: blocks of order 4 at all frequencies, "
        r"and blocks of order 4 without bias and one block of order 6. Dashed: the derived losses, $2(d-1)/d$ for the former, "
        r"since each block leaves a mean in the output that no other node cancels; grey: zero.",
    ),
)
