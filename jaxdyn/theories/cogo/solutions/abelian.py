r"""Finite Abelian groups: products of cyclic groups, and even orders with real characters.

Small groups only; their arrays are padded to one size, so that one program serves them all. Letters as in
``dynamics/solutions.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Bool, Complex, Float, Int, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.data.abelian import Abelian, parse
from jaxdyn.theories.cogo import model
from jaxdyn.theories.cogo.blocks import ZERO, all_blocks, checked_groups, most_pairs, replaced, widened
from jaxdyn.theories.cogo.dynamics import semiring, solutions
from jaxdyn.theories.cogo.dynamics.semiring import Element

NETS = ("F6", "F6, alpha beta", "F4/6", "syn alone", "F6 without real blocks", "memory")
SOLVED = ("F6", "F6, alpha beta", "F4/6", "memory")
SETS = ("R_g", "R_c", "R_n", "R_*")
BLOCKS = 5  # nets that are made of blocks


@jd.setting
class Small:
    """Random numbers in the solutions of these groups."""

    groups: tuple[str, ...] = ("4", "6", "8", "12", "15", "2x2", "2x4", "3x3", "2x3x2")  # orders of each group's cyclic factors

    def __post_init__(self) -> None:
        """Refuse names of no group, and a list in which no group has two pairs of frequencies or none a real character."""
        groups = checked_groups(self.groups)
        jd.require(self, max(len(g.pairs) for g in groups) > 1, "one of the groups has two pairs of frequencies", "groups")
        jd.require(self, any(len(g.real) for g in groups), "one of the groups has an even order", "groups")


class Tables(NamedTuple):
    """A group's tables with empty rows up to the largest group's order."""

    inside: Bool[Array, " d"]
    add: Int[Array, "d d"]
    negative: Int[Array, " d"]

    @classmethod
    def of(cls, group: Abelian, size: int) -> Tables:
        """The tables of one group."""
        d = group.order
        add = np.zeros((size, size), np.int32)
        add[:d, :d] = group.add
        return cls(jnp.arange(size) < d, jnp.asarray(add), jnp.asarray([*group.negative, *range(d, size)]))


def fit(w: Float[Array, "3 d q"], t: Tables) -> model.Fit:
    """:func:`model.fit` of weights with empty rows."""
    d = jnp.sum(t.inside).astype(w.dtype)
    o = model.output(w) / (2 * d)
    hit = t.add[..., None] == jnp.arange(len(t.inside))
    rest = o - jnp.sum(jnp.where(t.inside, o, 0), -1, keepdims=True) / d - (hit - 1 / d)
    every = t.inside[:, None] & t.inside
    wrong = (jnp.argmax(jnp.where(t.inside, o, -jnp.inf), -1) != t.add) & every
    loss = jnp.sum(jnp.where(every[..., None] & t.inside, jnp.square(rest), 0)) / d**2
    return model.Fit(loss, jnp.sum(wrong, dtype=jnp.int32))


def violations(z: Complex[Array, "3 d q"], t: Tables) -> Float[Array, "4"]:
    """Distance of the potentials from each of the sets of zeros and ones, in the order of ``SETS``."""
    r, auto = semiring.potentials(z), jnp.abs(semiring.autopotentials(z))
    row = jnp.arange(len(t.inside))
    same = (row[:, None, None] == row[:, None]) & (row[:, None] == row)
    out = t.inside & (row > 0)
    own = jnp.einsum("kkk->k", r)
    mean = (row == t.negative[:, None])[..., None] & out
    one = jnp.max(jnp.where(out, jnp.abs(own - 1), 0))
    cross = jnp.max(jnp.where(same | ~out, 0, jnp.abs(r)))
    each = [jnp.max(jnp.where(where & out, auto, 0)) for where in (mean, ~mean)]
    return jnp.stack([one, cross, *each])


def _nets(blocks: Complex[Array, "5 k 3 6"], group: Abelian) -> Element:
    """The nets that are made of blocks, in the order of ``NETS``."""
    sixes, fours, sixes_ab, syn, _ = blocks[:, : len(group.pairs)]
    places = jnp.arange(6) < jnp.asarray([6, 6, 3])[:, None]
    there = jnp.broadcast_to(places[:, None], (3, len(group.pairs), 6))
    x = jax.vmap(lambda *block: solutions.compose(group, *block))(jnp.stack([sixes, sixes_ab, syn]), there)
    mixed = solutions.carried(group, solutions.first(group, 1), sixes, fours[..., :4])
    bare = Element(x.z[0].at[:, group.real].set(0), x.nodes[0])
    return jax.tree.map(lambda c, m, b: jnp.concatenate([c[:2], m[None], c[2:], b[None]]), x, mixed, bare)


def _padded(
    x: Element, group: Abelian, size: int, width: int
) -> tuple[Float[Array, "3 size width"], Complex[Array, "3 size width"]]:
    """Weights and spectrum with empty rows and places."""
    x = widened(x, width)
    weights, spectrum = (jnp.pad(v, ((0, 0), (0, size - group.order), (0, 0))) for v in (semiring.weights(x, group), x.z))
    return weights, spectrum


def trial(s: Small, key: PRNGKeyArray) -> jd.Observables:
    """Loss of all nets, and the potentials of those that are made of blocks, in every group."""
    # nets of every group, padded to one size
    groups = checked_groups(s.groups)
    size = max(g.order for g in groups)
    width = max(6 * len(g.pairs) + 2 * len(g.real) for g in groups)
    blocks = all_blocks(solutions.sample(key, most_pairs(groups)))
    composed, stored = [], []
    for group in groups:
        nets = _nets(blocks, group)
        composed.append(jax.vmap(lambda x, group=group: _padded(x, group, size, width))(nets))
        stored.append(_padded(solutions.memory(group), group, size, size**2)[0])
    # their losses and errors, and the potentials' distances from the sets
    tables = jax.tree.map(lambda *t: jnp.stack(t), *(Tables.of(g, size) for g in groups))
    w, z = (jnp.stack(v) for v in zip(*composed, strict=True))
    fits = jax.vmap(jax.vmap(fit, (0, None)))(w, tables)
    memory = jax.vmap(fit)(jnp.stack(stored), tables)
    loss, wrong = (jnp.concatenate([f, m[:, None]], 1) for f, m in zip(fits, memory, strict=True))
    away = jax.vmap(jax.vmap(violations, (0, None)))(z, tables)
    # predicted: what is lost without real blocks, and what R_n misses
    pairs = np.array([len(g.pairs) for g in groups])
    omitted = np.array([len(g.real) / g.order for g in groups])
    return jd.observables(
        predicted={
            "omitted": jd.named(jnp.asarray(omitted), "group"),
            "hidden": jd.named(jnp.asarray(np.where(pairs > 1, 0.5**0.5, 0.0)), "group"),
        },
        measured={
            "omitted": jd.named(loss[:, NETS.index("F6 without real blocks")], "group"),
            "hidden": jd.named(away[:, NETS.index("F4/6"), SETS.index("R_n")], "group"),
        },
        recorded={
            "loss": jd.named(loss, "group net"),
            "wrong": jd.named(wrong, "group net"),
            "away": jd.named(away, "group block set"),
        },
        coords={"group": s.groups, "net": NETS, "block": NETS[:BLOCKS], "set": SETS},
    )


def judge_abelian(ds: xr.Dataset) -> list[jd.Check]:
    """Losses of all four solutions in all groups, and of the one without its real blocks."""
    chosen = ds.sel(net=list(SOLVED))
    return [
        jd.at_most("loss", chosen.loss, ZERO),
        jd.at_most("pairs whose largest output is not their sum", chosen.wrong, 0.0),
        jd.at_most("loss without real blocks minus 1/d for each of them", abs(ds.measured_omitted - ds.predicted_omitted), 1e-12),
    ]


def judge_sufficient(ds: xr.Dataset) -> list[jd.Check]:
    """All sets and zero loss for the solution of order 6; zero loss without R_n for that of orders 4 and 6."""
    six, mixed = (ds.away.sel(block=name) for name in ("F6", "F4/6"))
    return [
        jd.at_most("F6: distance from all four sets", six, 1e-12),
        jd.at_most("loss of both", ds.loss.sel(net=["F6", "F4/6"]), ZERO),
        jd.at_most("F4/6: distance from the other sets", mixed.sel(set=["R_g", "R_c", "R_*"]), 1e-12),
        jd.at_most("F4/6: distance from R_n minus 1/sqrt 2", abs(ds.measured_hidden - ds.predicted_hidden), 1e-12),
    ]


def one_more(ds: xr.Dataset) -> xr.DataArray:
    """What is lost without blocks if k = 0, too, needs one."""
    return ds.predicted_omitted + xr.DataArray([1 / parse(str(name)).order for name in ds.group.values], dims="group")


def _exchanged(block: str, by: str) -> Callable[[xr.Dataset], xr.Dataset]:
    """A breach: one net's distances and loss are those of another."""

    def breach(ds: xr.Dataset) -> xr.Dataset:
        away = ds.away.where(ds.block != block, ds.away.sel(block=by, drop=True))
        hidden = away.sel(block="F4/6", set="R_n", drop=True)
        return replaced(block, by)(ds).assign(away=away, measured_hidden=hidden)

    return breach


def plot_abelian(ds: xr.Dataset, fig: Figure) -> None:
    """Losses of the solutions in all groups, and of the one whose real blocks are left out."""
    ax = fig.subplots()
    names = [str(g) for g in ds.group.values]
    for name, mark, color in zip(SOLVED, "osD^", ("measured", "third", "fourth", "fifth"), strict=True):
        values = ds.loss.sel(net=name).transpose("group", ...).values.reshape(len(names), -1)
        place = np.repeat(np.arange(len(names)), values.shape[1])
        ax.plot(place, np.maximum(values.ravel(), 1e-33), mark, color=plotting.COLORS[color], alpha=0.5, label=name)
    one, place = plotting.first_run(ds), np.arange(len(names))
    predicted = one.predicted_omitted.where(one.predicted_omitted > 0)
    omitted = one.measured_omitted.where(one.predicted_omitted > 0)
    ax.plot(place, predicted, "_", color=plotting.COLORS["theory"], markersize=20, label="s / d")
    ax.plot(place, omitted, "x", color=plotting.COLORS["control"], label="no real blocks")
    ax.axhline(ZERO, color=plotting.COLORS["control"], linewidth=0.8)
    ax.set_xticks(range(len(names)), names)
    ax.set(yscale="log", ylim=(1e-33, 1e3), xlabel="group", ylabel="loss over all pairs")
    ax.legend(ncols=3, loc="center", bbox_to_anchor=(0.5, 0.68))


def plot_sufficient(ds: xr.Dataset, fig: Figure) -> None:
    """Distance of both solutions' potentials from the sets, in all groups."""
    axes = fig.subplots(1, 2, sharey=True)
    for ax, name in zip(axes, ("F6", "F4/6"), strict=True):
        for row, which in enumerate(SETS):
            values = np.ravel(ds.away.sel(block=name, set=which).values)
            place = row + 0.25 * np.linspace(-1, 1, values.size)
            color = plotting.CYCLE[row]
            ax.plot(
                place, np.maximum(values, 1e-18), "o", color=color, alpha=0.5, label="all groups and runs" if row == 0 else None
            )
        ax.axhline(0.5**0.5, color=plotting.COLORS["theory"], label=r"$1/\sqrt{2}$")
        ax.set_xticks(range(4), ["$R_g$", "$R_c$", "$R_n$", "$R_*$"])
        ax.set(yscale="log", title=f"{name}, L < {float(ds.loss.sel(net=name).max()):.0e}")
    axes[0].set_ylabel("largest distance of a potential")


STUDY = jd.Study(
    trial=trial,
    source="arXiv:2410.01779, corollaries on composed solutions",
    quick=jd.grid(Small),
    paper=jd.grid(Small, groups=("4", "6", "8", "9", "12", "15", "16", "2x2", "2x4", "3x3", "2x2x2", "2x3x2", "4x4")),
    seeds=8,
    paper_seeds=32,
    evidence="algebra",
    tested="Composed networks with random numbers of modulus one for the groups {groups}, on all pairs; {seeds} seeds. "
    "Nothing is trained.",
    bounds="derived: float64 rounding, squared in the loss; wrong pairs are counted",
)

CLAIMS = (
    STUDY.claim(
        id="cogo.abelian",
        title="The solutions extend to products of cyclic groups",
        statement=r"On the finite Abelian groups tested, cyclic ones and products, $z_M$ has zero loss and adds all pairs "
        r"correctly, and so do $z_{F6}$ and $z_{F4/6}$ if each real character ($2k = 0$, $k \ne 0$) gets a block of two nodes, "
        r"$2^{-1/3}(1, 1; 1, -1; 1, -1)$. Without these blocks $z_{F6}$ has $L = s/d$ with $s$ such characters.",
        source="arXiv:2410.01779 for Abelian groups; blocks for real characters: derived",
        judge=judge_abelian,
        decides={"all pairs": ("pairs whose largest output is not their sum", "real characters left out")},
        controls={
            "real characters left out": replaced("F6", "F6 without real blocks"),
            "z_syn without its second factor": jd.Control(replaced("F6", "syn alone"), breaks="z_{F6}"),
        },
        rivals={
            "real characters need no block": jd.swap(predicted_omitted=0.0),
            "the trivial character counts as a real one": jd.swap(predicted_omitted=one_more),
        },
        plot=plot_abelian,
        caption=r"Loss over all pairs for each group on the horizontal axis, one symbol for each solution and run (values below "
        r"$10^{-33}$ are drawn there); the grey line is the bound for a zero. Crosses: $z_{F6}$ without its blocks at the $s$ real "
        r"characters, with the predicted $s/d$ as bars.",
    ),
    STUDY.claim(
        id="cogo.sufficient",
        talks=("training:cogo-sufficient", "training:cogo-better-solution"),
        title="A solution of zero loss need not meet all sufficient conditions",
        statement="On the finite Abelian groups tested, the solution $z_{F6}$ meets all four conditions of the theorem ($R_g$: "
        "$r_{kkk} = 1$; $R_c$: the other $r_{k_1k_2k}$ are 0; $R_n$: $r_{p,k',-k',k} = 0$; $R_*$: $r_{p,k',m-k',k} = 0$ for $m "
        r"\ne 0$) and has zero loss. $z_{F4/6}$ has zero loss and meets all but $R_n$: in groups with more than one pair of "
        r"conjugate frequencies its largest $r_{p,k',-k',k}$ has the modulus $1/\sqrt 2$, so that $R_n$ is not necessary. That "
        "the four are sufficient is the theorem, not tested here beyond this.",
        source="arXiv:2410.01779, sufficient conditions; the modulus: derived",
        judge=judge_sufficient,
        decides={
            "all four conditions": ("F6: distance from all four sets", "z_syn in place of z_F6"),
            "all but": ("F4/6: distance from the other sets", "z_syn in place of z_F4/6"),
        },
        controls={
            "z_F6 in place of z_F4/6": jd.Control(_exchanged("F4/6", "F6"), breaks="z_{F4/6}"),
            "z_syn in place of z_F6": jd.Control(_exchanged("F6", "syn alone"), breaks="z_{F6}"),
            "z_syn in place of z_F4/6": jd.Control(_exchanged("F4/6", "syn alone"), breaks="z_{F4/6}"),
        },
        rivals={
            "zero loss needs R_n": jd.swap(predicted_hidden=0.0),
            "R_n is missed with a single pair of frequencies, too": jd.swap(predicted_hidden=0.5**0.5),
        },
        plot=plot_sufficient,
        caption=r"Largest distance of a potential from its value in each of the four sets, for $z_{F6}$ (left) and $z_{F4/6}$ "
        r"(right); one point for each group and run (values below $10^{-18}$ are drawn there). The line is $1/\sqrt{2}$.",
    ),
)
