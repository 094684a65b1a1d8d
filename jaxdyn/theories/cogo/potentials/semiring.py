r"""The algebra itself: the axioms of a commutative semi-ring, and that sum potentials are its homomorphisms.

Elements are random, and count as equal if they agree once their nodes are sorted. Letters as in ``dynamics/semiring.py``.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Bool, Complex, Float, Int, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.data.abelian import Abelian, parse
from jaxdyn.theories.cogo.dynamics import semiring
from jaxdyn.theories.cogo.dynamics.semiring import Element, add, multiply

AXIOMS = (
    "x + y = y + x",
    "(x + y) + z = x + (y + z)",
    "x y = y x",
    "(x y) z = x (y z)",
    "x (y + z) = x y + x z",
    "x + 0 + 0 x = x",
    "1 x = x",
    "x y is Hermitian",
)
BREACHES = ("none", "inverse", "mean", "unordered", "correlation", "complex")


@jd.setting
class Ring:
    """Random elements of every group.

    Args:
        breach: what violates some of the axioms. inverse: x + (-x) is taken for the empty network; mean: a sum is halved, as the
            outputs of an ensemble are averaged; unordered: nodes are compared in the order in which they come; correlation: the
            second factor of a product is conjugated; complex: the weights of x are complex.
        nodes: of each random element.
        groups: named by the orders of their cyclic factors.
    """

    breach: jd.Code = jd.code(*BREACHES)
    nodes: int = jd.field(3, at_least=1)
    groups: tuple[str, ...] = ("5", "6", "2x4")

    def __post_init__(self) -> None:
        """Refuse names of no group."""
        for name in self.groups:
            parse(name)


def axioms(
    x: Element, y: Element, z: Element, one: Element, negated: Int[Array, " d"], breach: jd.Code
) -> list[tuple[Element, Element]]:
    """Both sides of every axiom."""

    def plus(x: Element, y: Element) -> Element:
        return semiring.scaled(add(x, y), jnp.where(breach == "mean", 0.5, 1.0))

    def times(x: Element, y: Element) -> Element:
        return multiply(x, y._replace(z=jnp.where(breach == "correlation", jnp.conj(y.z), y.z)))

    x = x._replace(z=jnp.where(breach == "complex", 1j, 1.0) * x.z)
    difference = add(y, semiring.negative(y))
    none = jax.tree.map(lambda e: jnp.where(breach == "inverse", e, jnp.zeros_like(e)), difference)
    product = times(x, y)
    return [
        (plus(x, y), plus(y, x)),
        (plus(plus(x, y), z), plus(x, plus(y, z))),
        (product, times(y, x)),
        (times(product, z), times(x, times(y, z))),
        (times(x, plus(y, z)), plus(product, times(x, z))),
        (plus(plus(x, none), times(none, x)), x),
        (times(one, x), x),
        (product, product._replace(z=jnp.conj(product.z[:, negated]))),
    ]


def rules(
    x: Element, y: Element, one: Element, inside: Bool[Array, " d"]
) -> tuple[Complex[Array, "3 potential"], Complex[Array, "3 potential"]]:
    """Predicted by the homomorphism, and the potentials themselves: of the sum, the product and one (at the rows inside)."""
    elements = [semiring.compact(e, x.nodes.size**2) for e in (x, y, add(x, y), multiply(x, y), one)]
    each = jax.vmap(_every)(jnp.stack([e.z for e in elements]))
    ones = _every(jnp.where(inside[:, None], jnp.ones_like(one.z), 0))
    return jnp.stack([each[0] + each[1], each[0] * each[1], ones]), each[2:]


def _every(z: Complex[Array, "3 d q"]) -> Complex[Array, " n"]:
    """All sum potentials without the zero mode."""
    z = z[:, 1:]
    return jnp.concatenate([semiring.potentials(z).ravel(), semiring.autopotentials(z).ravel()])


def _parts(x: Complex[Array, "*m n"]) -> Float[Array, "*m 2 n"]:
    return jnp.stack([x.real, x.imag], -2)


def _sampled(
    key: PRNGKeyArray, group: Abelian, nodes: int, size: int
) -> tuple[Complex[Array, "3 size q"], Int[Array, " size"], Bool[Array, " size"]]:
    """Three random elements and one of a group, with empty rows up to the size; the group's -k; and which rows are its own."""
    z = semiring.random(key, group, 3 * nodes).z
    z = jnp.concatenate([z, semiring.one(group).z], -1)
    rows = np.arange(size)
    negated = np.concatenate([group.negative, rows[group.order :]])
    return jnp.pad(z, ((0, 0), (0, size - group.order), (0, 0))), jnp.asarray(negated), jnp.asarray(rows < group.order)


def trial(s: Ring, key: PRNGKeyArray) -> jd.Observables:
    """Both sides of every axiom and of every rule for potentials, in each group."""
    # random elements of every group, of one size
    groups = [parse(name) for name in s.groups]
    size, width, n = max(g.order for g in groups), s.nodes**3, s.nodes
    sampled = [_sampled(k, g, n, size) for g, k in zip(groups, jax.random.split(key, len(groups)), strict=True)]

    def of_group(
        z: Complex[Array, "3 size q"], negated: Int[Array, " size"], inside: Bool[Array, " size"]
    ) -> tuple[Float[Array, "..."], ...]:
        x, y, other, one = (Element(part, jnp.ones(part.shape[-1], bool)) for part in jnp.split(z, [n, 2 * n, 3 * n], -1))
        pairs = axioms(x, y, other, one, negated, s.breach)
        elements = [semiring.compact(e, width) for pair in pairs for e in pair]
        stacked = jax.tree.map(lambda *e: jnp.stack(e), *elements)
        flat = jnp.where(s.breach == "unordered", stacked.z, jax.vmap(semiring.ordered)(stacked).z)
        return _parts(flat.reshape(len(AXIOMS), 2, -1)), *map(_parts, rules(x, y, one, inside))

    # axioms and rules in all groups
    sides, predicted, measured = jax.vmap(of_group)(*(jnp.stack(v) for v in zip(*sampled, strict=True)))
    # sums over k' in the first one
    x, y = (semiring.element(sampled[0][0][:, : groups[0].order, i * n : (i + 1) * n]) for i in range(2))
    sums = jnp.stack([_parts(_sums(e, groups[0])) for e in (x, y, add(x, y), multiply(x, y))])
    s_x, s_y = (v[0] + 1j * v[1] for v in sums[:2])
    return jd.observables(
        predicted={
            "axioms": jd.named(sides[:, :, 0], "group axiom part entry"),
            "rules": jd.named(predicted, "group rule part potential"),
            "sums": jd.named(sums[0] + sums[1], "part sum"),
        },
        measured={
            "axioms": jd.named(sides[:, :, 1], "group axiom part entry"),
            "rules": jd.named(measured, "group rule part potential"),
            "sums": jd.named(sums[2], "part sum"),
        },
        recorded={"multiplied": jd.named(jnp.stack([_parts(s_x * s_y), sums[3]]), "side part sum")},
        coords={"group": s.groups, "axiom": AXIOMS, "rule": ("sum", "product", "one")},
    )


def _sums(x: Element, group: Abelian) -> Complex[Array, " n"]:
    """The sums over k' of the autopotentials."""
    return semiring.sums(semiring.autopotentials(x.z), group)[..., 1:].ravel()


def judge_axioms(ds: xr.Dataset) -> list[jd.Check]:
    """Both sides of every axiom, with nodes in order."""
    return [jd.at_most("difference of both sides", jd.relative_error(ds, "axioms", "part entry"), 1e-12)]


def judge_rules(ds: xr.Dataset) -> list[jd.Check]:
    """Potentials of sums, products and one; sums over k' of sums."""
    return [
        jd.at_most("potentials of composed elements", jd.relative_error(ds, "rules", "part potential"), 1e-10),
        jd.at_most("sums over k' of a sum", jd.relative_error(ds, "sums", "part sum"), 1e-10),
    ]


def plot_axioms(ds: xr.Dataset, fig: Figure) -> None:
    """The relative difference of both sides of each axiom, over runs and groups."""
    ax = fig.subplots()
    error = jd.relative_error(ds, "axioms", "part entry").transpose("axiom", ...).values.reshape(len(AXIOMS), -1)
    ax.plot(np.maximum(error, 1e-18), np.arange(len(AXIOMS)), "o", color=plotting.COLORS["measured"], alpha=0.5)
    ax.axvline(1e-12, color=plotting.COLORS["theory"], label="bound")
    ax.set_yticks(range(len(AXIOMS)), AXIOMS)
    ax.set(xscale="log", xlabel="relative difference of both sides (0 drawn at 1e-18)", xlim=(5e-19, 1e-10))
    ax.legend()


def plot_rules(ds: xr.Dataset, fig: Figure) -> None:
    """Potentials of composed elements; and the sums over k', which are not multiplicative."""
    left, right = fig.subplots(1, 2)
    one = plotting.first_run(ds).isel(group=-1)
    for rule, color in (("sum", "measured"), ("product", "third")):
        plotting.scatter(left, one.predicted_rules.sel(rule=rule), one.measured_rules.sel(rule=rule), rule, color)
    plotting.scatter(right, one.multiplied.isel(side=0), one.multiplied.isel(side=1), "sums over k', product", "control")
    left.set(title="sum potentials", xlabel="from both elements' potentials", ylabel="of the composed element")
    right.set(title="their sums S", xlabel=r"$S(x)\,S(y)$", ylabel=r"$S(x * y)$")


STUDY = jd.Study(
    trial=trial,
    source="arXiv:2410.01779, semi-ring of solutions",
    quick=jd.grid(Ring),
    paper=jd.grid(Ring, groups=("5", "6", "9", "2x4", "3x3", "2x3x2")),
    seeds=8,
    paper_seeds=64,
    evidence="algebra",
    tested="Random networks of {nodes} nodes for the groups {groups}; {seeds} seeds.",
    bounds="derived: float64 rounding",
)

CLAIMS = (
    STUDY.claim(
        id="cogo.semiring",
        talks=("training:cogo-semiring",),
        title="Networks for one group form a commutative semi-ring",
        statement=r"Networks for the same finite Abelian group form a commutative semi-ring: + (nodes side by side) and $*$ "
        r"(Kronecker product at each layer and frequency) are associative and commutative up to the order of nodes, $*$ "
        r"distributes over +, the empty network is zero, a node of ones is one, and products of real networks are real. "
        r"Identities, at random networks.",
        judge=judge_axioms,
        controls={
            "a network minus itself as zero": {"breach": "inverse"},
            "mean of two networks as their sum": {"breach": "mean"},
            "nodes compared in the order in which they come": {"breach": "unordered"},
            "correlation: the second factor conjugated": jd.Control({"breach": "correlation"}, breaks="commutative"),
            "complex weights": jd.Control({"breach": "complex"}, breaks="real networks"),
        },
        rivals={},
        plot=plot_axioms,
        caption=r"Relative difference between both sides of each axiom, one point for each group and run, for random elements "
        r"whose nodes are sorted (exact agreement is drawn at $10^{-18}$). The line is the bound.",
    ),
    STUDY.claim(
        id="cogo.sp_hom",
        talks=(
            "training:cogo-homomorphism",
            "training:cogo-composition",
        ),
        title="Sum potentials are ring homomorphisms",
        statement="On finite Abelian groups, sum potentials of networks without zero modes are ring homomorphisms for the "
        r"operations of cogo.semiring: $r(1) = 1$, $r(x+y) = r(x) + r(y)$, $r(x*y) = r(x)\,r(y)$. Their sums $\sum_{k'} "
        "r_{p,k',m-k',k}$ are additive.",
        judge=judge_rules,
        controls={"the potentials of another run": jd.rolled(measured_rules="seed", measured_sums="seed")},
        rivals={
            "a product's potentials add up": jd.rolled(predicted_rules="rule"),
        },
        plot=plot_rules,
        caption=r"Real and imaginary parts for one run and group. Left: sum potentials of a sum and of a product of two random "
        r"elements against the sum and the product of their potentials. Right: the sums over $k'$ of a product against the "
        r"product of the sums, which they are not equal to. Line: equality.",
    ),
)
