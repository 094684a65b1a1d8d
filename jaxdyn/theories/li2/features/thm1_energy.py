r"""The energy of a single node: its gradient moves the features, it is a sum over irreps, and zero for a linear node (theorem 1).

Two trials: random weights on groups; a network's own back-propagated gradient on any inputs and on part of a group's table.
Letters as in ``dynamics/energy.py``.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, Int, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.data import irreps as fourier
from jaxdyn.data.groups import parse
from jaxdyn.data.irreps import Irreps, decompose
from jaxdyn.theories.li2 import model
from jaxdyn.theories.li2.dynamics import energy as theory

SOURCE = "arXiv:2509.21519"
KINDS = ("square", "relu", "silu", "tanh")


@jd.setting
class Weights:
    """Gaussian nodes on all pairs of these groups."""

    groups: tuple[str, ...] = ("7", "S3", "Q8", "A4", "F7:3")  # names of groups; a number M is the residues modulo M
    nodes: int = jd.field(4, at_least=1)  # Gaussian nodes on each group

    def __post_init__(self) -> None:
        """Refuse names that are no groups, and trivial groups."""
        orders = [parse(name).order for name in self.groups]
        jd.require(self, min(orders, default=0) >= 2, "there is at least one group, of at least two elements", "groups")


@jd.setting
class Gradients:
    """A small network on random inputs of unbalanced classes, and on part of a group's pairs; ``centred`` is a breach."""

    centred: jd.Swept = 1.0  # the factor of the targets' means that the energy subtracts
    group: str = "S3"  # of which a random part of the table is used, too
    samples: int = jd.field(20, at_least=2)  # random inputs, and as many random pairs of the group
    inputs: int = jd.field(8, at_least=1)  # dimensions of a random input
    classes: int = jd.field(4, at_least=1)  # classes of the random inputs, of falling frequency
    hidden: int = jd.field(3, at_least=1)  # nodes of the network

    def __post_init__(self) -> None:
        """Refuse more samples than the group has pairs."""
        pairs = parse(self.group).order ** 2
        jd.require(self, self.samples <= pairs, f"samples is at most {pairs}, the number of pairs", "samples", "group")


def decomposition_trial(s: Weights, key: PRNGKeyArray) -> jd.Observables:
    """The energy of each irrep from class sums over all pairs, and by Fourier blocks; the energy of linear nodes."""
    # the same weights for all groups, cut to their sizes
    decomposed = [decompose(parse(name)) for name in s.groups]
    m, c = max(i.group.order for i in decomposed), max(len(i) for i in decomposed) - 1
    normal = jax.random.normal(key, (2 * m, s.nodes), jnp.float64)

    def padded(x: Float[Array | np.ndarray, "K irreps"]) -> Float[Array, "K c"]:
        return jnp.pad(x[:, 1:], ((0, 0), (0, c + 1 - x.shape[1])))

    # energies of every group's nodes: by Fourier blocks, by projected class sums, by the definition
    predicted, measured, linear, square = [], [], [], []
    for irreps in decomposed:
        w = normal[: 2 * irreps.group.order] / m**0.5
        exact = theory.terms(w, irreps)
        predicted.append(jnp.stack([padded(exact), padded(_traces(w, irreps))]))
        measured.append(padded(_projected(w, irreps)))
        square.append(theory.energy(w, irreps.group))
        linear.append(theory.energy(w, irreps.group, "linear"))
    return jd.observables(
        predicted={
            "shares": jd.named(jnp.stack(predicted, 1), "form group node irrep"),
            "energy": jd.named(jnp.sum(jnp.stack(predicted, 1), -1), "form group node"),
            "linear": jd.named(jnp.zeros((len(decomposed), s.nodes), jnp.float64), "group node"),
        },
        measured={
            "shares": jd.named(jnp.stack(measured), "group node irrep"),
            "energy": jd.named(jnp.stack(square), "group node"),
            "linear": jd.named(jnp.stack(linear), "group node"),
        },
        coords={"form": ("derived", "printed"), "group": s.groups},
    )


def _projected(w: Float[Array, "D K"], irreps: Irreps) -> Float[Array, "K c"]:
    r""":math:`\frac12\|\Pi_k z\|^2` of the class sums z of x^2 over all pairs."""
    group = irreps.group
    samples = model.pairs(group.order)
    z = model.targets(group, samples).T @ model.features(w, samples)
    # numpy constants: the projectors come from the characters alone, not from the matrices that the transform is made of
    parts = jnp.asarray(np.stack([irreps.projector(k) for k in range(len(irreps))])) @ z
    return jnp.sum(jnp.square(parts.real) + jnp.square(parts.imag), 1).T / 2


def _traces(w: Float[Array, "D K"], irreps: Irreps) -> Float[Array | np.ndarray, "K c"]:
    r"""As printed: :math:`\frac{M}{2 d_k} |\sum_r \mathrm{tr}\, \hat S_{k,r}|^2` of :math:`S = 2 u v^\top`, the node's cross terms.

    The blocks of S, summed over the copies r of an irrep, are :math:`2 \hat u_k \hat v_k^*`.
    """
    u, v = (fourier.blocks(fourier.transform(f.T, irreps), irreps) for f in theory.split(w, irreps.group))
    traces = jnp.stack([2 * jnp.sum(x * jnp.conj(y), (1, 2)) for x, y in zip(u, v, strict=True)], 1)
    return irreps.group.order / (2 * irreps.degrees) * (jnp.square(traces.real) + jnp.square(traces.imag))


def gradient_trial(s: Gradients, key: PRNGKeyArray) -> jd.Observables:
    """The network's gradient for W when V leaves zero, and the gradient of the nodes' energies by autodiff."""
    group = parse(s.group)
    k_x, k_labels, k_w, k_table = jax.random.split(key, 4)
    x = jax.random.normal(k_x, (s.samples, s.inputs), jnp.float64)
    labels = jnp.minimum(jax.random.geometric(k_labels, 0.5, (s.samples,)) - 1, s.classes - 1)
    w = jax.random.normal(k_w, (max(s.inputs, 2 * group.order), s.hidden), jnp.float64)
    samples = model.pairs(group.order)[jax.random.permutation(k_table, group.order**2)[: s.samples]]
    for_any = _sides(w[: s.inputs], lambda w: x @ w, (labels[:, None] == jnp.arange(s.classes)).astype(jnp.float64), s.centred)
    for_group = _sides(w[: 2 * group.order], lambda w: model.preactivations(w, samples), model.targets(group, samples), s.centred)
    return jd.observables(
        predicted={"any": jd.named(for_any[0], "activation input node"), "group": jd.named(for_group[0], "activation weight node")},
        measured={"any": jd.named(for_any[1], "activation input node"), "group": jd.named(for_group[1], "activation weight node")},
        coords={"activation": KINDS},
    )


def _sides(
    w: Float[Array, "D K"],
    inner: Callable[[Float[Array, "D K"]], Float[Array, "n K"]],
    y: Float[Array, "n C"],
    centred: Float[Array, ""],
) -> tuple[Float[Array, "A D K"], Float[Array, "A D K"]]:
    r"""For each activation: gradients of the energies, and the velocity of W per unit of V when V leaves zero.

    The top layer moves first, along :math:`\tilde F^\top \tilde Y`; the velocity is the loss's own gradient for W, differentiated
    in the size of V at V = 0.
    """
    # both sides for one activation
    target, zero = y - centred * jnp.mean(y, 0), jnp.zeros((), jnp.float64)

    def one(kind: Int[Array, ""]) -> tuple[Float[Array, "D K"], Float[Array, "D K"]]:
        def features(w: Float[Array, "D K"]) -> Float[Array, "n K"]:
            return model.activate(inner(w), jd.Code(kind, KINDS))

        first = model.centred(features(w)).T @ model.centred(y)

        def velocity(size: Float[Array, ""]) -> Float[Array, "D K"]:
            return -jax.grad(lambda w: model.theory_loss(size * first, features(w), y, zero))(w)

        gradient = jax.grad(lambda w: jnp.sum(jnp.square(target.T @ features(w))) / 2)(w)
        return gradient, jax.jvp(velocity, (zero,), (zero + 1,))[1]

    # one activation after another: one program
    return jax.lax.map(one, jnp.arange(len(KINDS)))


def judge_gradient(ds: xr.Dataset) -> list[jd.Check]:
    """The gradient on both kinds of data."""
    return [
        jd.at_most("any inputs, relative error", jd.relative_error(ds, "any", "input node"), 1e-10),
        jd.at_most("part of a group's table, relative error", jd.relative_error(ds, "group", "weight node"), 1e-10),
    ]


def judge_shares(ds: xr.Dataset) -> list[jd.Check]:
    """The share of each irrep, and the whole."""
    return [
        jd.at_most("energy of each irrep, relative error", jd.relative_error(ds, "shares"), 1e-10),
        jd.at_most("whole energy, relative error", jd.relative_error(ds, "energy"), 1e-10),
    ]


def judge_printed(ds: xr.Dataset) -> list[jd.Check]:
    """The share of each irrep, of commutative groups and of others."""
    tables = [np.asarray(parse(str(name)).table) for name in ds.group.values]
    commute = xr.DataArray([bool(np.all(t == t.T)) for t in tables], dims="group")
    error = jd.relative_error(ds, "shares")
    return [
        jd.at_most("energy of each irrep of a commutative group, relative error", error.where(commute), 1e-10),
        jd.at_most("energy of each irrep of another group, relative error", error.where(~commute), 1e-10),
    ]


def judge_linear(ds: xr.Dataset) -> list[jd.Check]:
    """The energy of linear nodes is zero."""
    return [jd.at_most("energy of a linear node", abs(ds.measured_linear - ds.predicted_linear), 1e-20)]


def plot_shares(ds: xr.Dataset, fig: Figure) -> None:
    """Energies of irreps by class sums against both formulas."""
    ax = fig.subplots()
    for group, color in zip(ds.group.values, plotting.CYCLE, strict=False):
        predicted, measured = (ds[f"{side}_shares"].sel(group=group) for side in ("predicted", "measured"))
        if "form" in predicted.dims:
            predicted = predicted.isel(form=0)
        plotting.scatter(ax, predicted.where(measured > 0), measured.where(measured > 0), str(group), color)
    ax.set(xlabel="energy of an irrep by its Fourier blocks", ylabel="by class sums over all pairs")


def plot_linear(ds: xr.Dataset, fig: Figure) -> None:
    """Energies of linear and of square nodes."""
    ax = fig.subplots()
    for name, color, label in (("linear", "measured", "linear"), ("energy", "control", r"$x^2$")):
        values = np.maximum(ds[f"measured_{name}"].transpose("group", ...).values.reshape(ds.sizes["group"], -1), 1e-34)
        x = np.arange(len(values))[:, None] + np.linspace(-0.3, 0.3, values.shape[1])
        ax.plot(x.ravel(), values.ravel(), ".", color=plotting.COLORS[color], label=label)
    ax.axhline(1e-20, color=plotting.COLORS["theory"], label="bound")
    ax.set_xticks(range(ds.sizes["group"]), [str(g) for g in ds.group.values])
    ax.set(yscale="log", xlabel="group", ylabel="energy of random nodes")


def plot_gradient(ds: xr.Dataset, fig: Figure) -> None:
    """Velocity of the network against the gradient of the energies."""
    for ax, name, title in zip(fig.subplots(1, 2), ("any", "group"), ("any inputs", "part of a group's table"), strict=True):
        for kind, color in zip(ds.activation.values, plotting.CYCLE, strict=False):
            predicted, measured = (ds[f"{side}_{name}"].sel(activation=kind) for side in ("predicted", "measured"))
            plotting.scatter(ax, predicted, measured, str(kind), color, log=False)
        ax.set(title=title, xlabel=r"$\nabla E$", ylabel="velocity of W per unit of V")


GRADIENT = jd.Study(
    trial=gradient_trial,
    quick=jd.grid(Gradients),
    paper=jd.grid(Gradients, group="S4", samples=300, inputs=40, classes=10, hidden=16),
    seeds=8,
    paper_seeds=32,
    source=f"{SOURCE}, theorem 1",
    tested="{hidden} nodes with activations x^2, relu, silu and tanh, on {samples} Gaussian inputs with {classes} unbalanced "
    "classes and on {samples} random pairs of the group {group}; both gradients by automatic differentiation; {seeds} seeds.",
)
ENERGY = jd.Study(
    trial=decomposition_trial,
    quick=jd.grid(Weights),
    paper=jd.grid(Weights, groups=("7", "8", "15", "2x2x2", "S3", "D4", "D5", "Q8", "A4", "Q12", "S4", "SL2:3", "F7:3"), nodes=16),
    seeds=8,
    source=SOURCE,
    form="derived",
    evidence="algebra",
    bounds="derived: float64 rounding, squared where the energy is 0",
    tested="{nodes} nodes with Gaussian weights on all pairs of several groups, commutative and not; {seeds} seeds.",
)

SHARES = ENERGY.claim(
    id="li2.energy_decomp",
    talks=("grokking:li2-energy-group",),
    title="A node's energy splits into one term per irrep",
    statement=r"An identity for all pairs and $\sigma = x^2$: a node's energy is a sum over the irreps k of the group, of "
    r"degrees $d_k$, $E = \sum_{k \ne 0} \frac{M}{2 d_k} \|2 \hat u_k \hat v_k^*\|_F^2$ for M elements, where $\hat u_k$, "
    r"$\hat v_k$ are the blocks, by the unitary Fourier transform, of the weights u for the first operand and v for the inverse "
    "of the second; each term is the energy of the class sums projected on irrep k.",
    source=f"corrected from {SOURCE}, equations 20 and 21",
    judge=judge_shares,
    controls={"the energies of another node": jd.rolled(measured_shares="node", measured_energy="node")},
    rivals={"cross term without its factor 2": jd.scaled(predicted_shares=0.25, predicted_energy=0.25)},
    plot=plot_shares,
    caption="Energy of each irrep for random nodes, from class sums over all pairs, against the formula by Fourier blocks; a "
    "colour per group. The line is equality.",
)

CLAIMS = (
    GRADIENT.claim(
        id="li2.thm1",
        talks=(
            "grokking:li2-component-dynamics",
            "grokking:li2-theorem-1",
        ),
        title="Early on each hidden node climbs the gradient of an energy",
        statement=r"An identity (the chain rule): when the top layer leaves zero along $\tilde F^\top \tilde Y$, the features and "
        r"targets minus their means, a hidden node w moves along $\nabla E(w)$ to first order in the top layer, with the energy "
        r"$E(w) = \frac12 \|\tilde Y^\top \sigma(Xw)\|^2$ of inputs X and activation $\sigma$.",
        judge=judge_gradient,
        evidence="algebra",
        bounds="derived: float64 rounding of two gradients",
        controls={"targets not centred, unbalanced classes": {"centred": 0.0}},
        rivals={"nothing moves": jd.swap(predicted_any=0.0, predicted_group=0.0)},
        plot=plot_gradient,
        caption=r"Velocity of the entries of W per unit of V, by differentiation of the network's loss, against $\nabla E$; a "
        "colour per activation. Left: Gaussian inputs; right: part of a group's pairs. The line is equality.",
    ),
    SHARES,
    SHARES.as_printed(
        id="li2.energy_decomp_as_printed",
        talks=("grokking:li2-energy-group",),
        title="Printed: an irrep's energy is a squared trace",
        statement="As printed: with S the matrix whose products with the permutations $R_h$ of the regular representation, "
        r"but for the trivial irrep, give the energy $\frac12 \sum_h \langle \tilde R_h, S \rangle^2$ (for all pairs "
        r"and $\sigma = x^2$ the node's cross terms $2 u v^\top$ of the weights $u$ for the first operand and $v$ for the inverse "
        r"of the second), that energy is $\frac{M}{2} \sum_{k \neq 0} \frac{1}{d_k} |\sum_r \mathrm{tr}\, \hat S_{k,r}|^2$, with "
        "the blocks of S in the copies r of the irreps k, of degrees $d_k$. A squared trace stands for the squared norm "
        "of a block, which is right for commutative groups.",
        printed=r"talk grokking, energy for group input: $\frac{1}{2} \sum_{h} \langle \tilde{R}_h, S \rangle_F^2 = \frac{M}{2} "
        r"\sum_{k \neq 0} \frac{1}{d_k} \left| \sum_{r} \operatorname{tr}(\hat{S}_{k,r}) \right|^2$",
        source=f"{SOURCE}, equations 20 and 21",
        form="printed",
        judge=judge_printed,
    ),
    ENERGY.claim(
        id="li2.linear_none",
        title="A linear node has no energy to climb",
        statement="An identity: on all pairs a node with linear activation has the energy 0, whatever its weights.",
        judge=judge_linear,
        controls={"x^2": jd.Control(jd.swap(measured_linear="measured_energy"), breaks="linear activation")},
        rivals={},
        plot=plot_linear,
        caption="Energy of random nodes on each group, linear and with $x^2$, one dot per node and run; the line is the bound.",
    ),
)
