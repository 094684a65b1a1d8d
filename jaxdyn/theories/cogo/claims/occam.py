r"""Claims on Occam's razor: the path of zero loss from y * z' to z', their norms, and pruning under weight decay.

Letters as in ``dynamics/occam.py``; z' is one of two solutions, with six nodes at each pair of frequencies, or the memorising one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import plotting, train
from jaxdyn.data.abelian import Abelian, parse
from jaxdyn.errors import given
from jaxdyn.theories.cogo import gram, model
from jaxdyn.theories.cogo.dynamics import occam, semiring, solutions
from jaxdyn.theories.cogo.dynamics.semiring import Element

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CLAIMS", "Factored", "Pruned", "live", "loss_along", "path_trial", "prune_trial"]

SOURCE = "arXiv:2410.01779, Theorem on Occam's razor"
SOLUTIONS = ("six nodes a pair", "memorising")
LIVE = 0.05  # a node is alive if its norm is above this share of the largest one's


@jd.setting
class Factored:
    """Random factors y of a solution z'; ``tilt``, ``base`` and ``route`` are breaches."""

    tilt: jd.Swept = 1.0  # multiplies layer a of z' and divides its layer c
    base: jd.Code = jd.code("exact", "cancelling")  # z' meets every condition, or cancels the means of its blocks
    route: jd.Code = jd.code("legs", "straight")
    group: str = "5"
    order: int = 3  # nodes of y
    steps: int = 17  # points on each leg but its first
    draws: int = 16  # further factors whose norm is taken

    def __post_init__(self) -> None:
        """Refuse groups with fewer than two pairs of frequencies, empty factors and paths, and a layer a of zeros."""
        if len(parse(self.group).pairs) < 2:
            raise jd.UsageError("group has at least two pairs of conjugate characters, " + given(self, "group"))
        if min(self.order, self.steps, self.draws) < 1 or self.tilt <= 0:
            found = given(self, "order", "steps", "draws", "tilt")
            raise jd.UsageError(f"order, steps and draws are at least 1 and tilt is positive, {found}")


@jd.setting
class Pruned:
    """Training from y * z' with y = (1, second), normalised, and small noise in the weights."""

    decay: jd.Swept = 1e-3  # coupled: decay * w is added to the gradient
    lr: jd.Swept = 0.5
    second: jd.Swept = 0.8
    noise: jd.Swept = 1e-3
    group: str = "5"
    steps: int = 20_000
    samples: int = 40

    def __post_init__(self) -> None:
        """Refuse groups without pairs of frequencies, records that do not end with the run, and rates that are not positive."""
        if len(parse(self.group).pairs) < 1:
            raise jd.UsageError("group has a pair of conjugate characters, " + given(self, "group"))
        if self.samples < 1 or self.steps < 1 or self.steps % self.samples:
            raise jd.UsageError("steps is a positive multiple of samples, " + given(self, "steps", "samples"))
        if self.lr <= 0 or min(self.decay, self.second, self.noise) < 0:
            raise jd.UsageError("lr > 0 and no negative number are needed, " + given(self, "lr", "decay", "second", "noise"))


def base(s: Factored, group: Abelian, key: PRNGKeyArray) -> tuple[Element, Element]:
    """The two solutions z'. As a breach the first one has a single block of six nodes, which carries the bias of the others."""
    n = solutions.draw(key, group)
    every = len(group.pairs)
    carriers = solutions.first(group, jnp.where(s.base == 0, every, 1))
    unlike = jnp.stack([s.tilt, 1.0, 1 / s.tilt])[:, None, None]
    found = solutions.f46(group, carriers, n.nu, n.xi, n.phases), solutions.memory(group)
    return tuple(x._replace(z=x.z * unlike) for x in found)


def centred_output(x: Element, group: Abelian) -> Float[Array, "pair output"]:
    """P o / (2d), for every pair of elements."""
    o = model.output(semiring.weights(x, group)) * model.factor(group, "paper")
    return (o - jnp.mean(o, -1, keepdims=True)).reshape(-1, group.order)


def path_trial(s: Factored, key: PRNGKeyArray) -> jd.Observables:
    """Outputs along the path for both solutions, and norms of products with many factors beside their bounds."""
    group = parse(s.group)
    k_base, k_start, k_draws, k_share = jax.random.split(key, 4)
    wholes = base(s, group, k_base)
    y = occam.leading(occam.normalized(semiring.random(k_start, group, s.order)), group)
    times = np.linspace(0, 3, 3 * s.steps + 1)

    def at(t: Array) -> Element:
        return jax.tree.map(lambda a, b: jnp.where(s.route == 0, a, b), occam.path(y, t), occam.straight(y, t))

    factors = jax.vmap(at)(jnp.asarray(times))
    outputs = jnp.stack([jax.lax.map(lambda y, x=x: centred_output(semiring.multiply(y, x), group), factors) for x in wholes])
    norms = jnp.stack([jax.vmap(lambda y, x=x: occam.product_energy(y, x))(factors) for x in wholes])
    draws = jax.vmap(lambda k, u: _near_identity(k, u, s.order, group))(
        jax.random.split(k_draws, s.draws), jax.random.uniform(k_share, (s.draws,), jnp.float64)
    )
    sizes = jnp.stack([jax.lax.map(lambda y, x=x: _energy(semiring.multiply(y, x), group), draws) for x in wholes])
    printed = jnp.stack([semiring.energy(x) for x in wholes])
    ends = jnp.stack([jnp.stack([occam.product_energy(y, x) for x in wholes]), printed], 1)
    target = np.eye(group.order)[group.add].reshape(-1, group.order) - 1 / group.order
    felt = [jnp.stack([_energy(semiring.multiply(e, x), group) for x in wholes]) for e in (y, occam.path(y, jnp.asarray(3.0)))]
    return jd.observables(
        predicted={
            "output": jd.named(jnp.asarray(target), "pair output"),
            "ends": jd.named(ends, "solution end"),
            "floor": jd.named(jnp.stack([printed, jnp.stack([occam.least_energy(x) for x in wholes])]), "form solution"),
        },
        measured={
            "output": jd.named(outputs, "solution t pair output"),
            "ends": jd.named(jnp.stack(felt, 1), "solution end"),
            "floor": jd.named(jnp.min(sizes, 1), "solution"),
        },
        recorded={"sizes_of_products": jd.named(sizes, "solution draw"), "norms": jd.named(norms, "solution t")},
        coords={"t": times, "solution": SOLUTIONS, "end": ("y * z'", "z'"), "form": ("printed", "derived")},
    )


def _energy(x: Element, group: Abelian) -> Float[Array, ""]:
    return jnp.sum(jnp.square(semiring.weights(x, group))) / group.order


def _near_identity(key: PRNGKeyArray, share: Float[Array, ""], order: int, group: Abelian) -> Element:
    """A random factor at any distance from the pseudo-identity."""
    y = semiring.random(key, group, order)
    return occam.normalized(y._replace(z=occam.pseudo_identity(y).z + share * y.z))


def live(sizes: Array) -> Array:
    """How many of the nodes (last axis) are alive."""
    return (sizes > LIVE * sizes.max(-1, keepdims=True)).sum(-1)


def prune_trial(s: Pruned, key: PRNGKeyArray) -> jd.Observables:
    """Gradient descent on the loss over all pairs from the weights of y * z', and z' at equilibrium with the decay."""
    group = parse(s.group)
    k_base, k_noise = jax.random.split(key)
    n = solutions.draw(k_base, group)
    x = solutions.f6(group, n.nu, n.phases)
    columns = jnp.stack([jnp.ones((), jnp.float64), s.second]) / jnp.cbrt(1 + s.second**3)
    y = semiring.element(jnp.broadcast_to(columns, (3, group.order, 2)).astype(jnp.complex128))
    w = semiring.weights(semiring.multiply(y, x), group)
    w = w + s.noise * jax.random.normal(k_noise, w.shape, jnp.float64)
    tx = optax.chain(optax.add_decayed_weights(s.decay), optax.sgd(s.lr))
    step = train.make_step(lambda w: gram.loss(w, group, "paper"), tx)

    def observe(state: train.State) -> tuple[Array, Array, Array]:
        square = jnp.sum(jnp.square(state.params), (0, 1)) / group.order
        return gram.loss(state.params, group, "paper"), jnp.sum(square), jnp.sort(jnp.sqrt(square))[::-1]

    every = s.steps // s.samples
    _, (loss, energy, sizes) = train.record(step, train.init(tx, w), observe, samples=s.samples, every=every)
    whole = semiring.energy(x)
    factor = occam.at_equilibrium(whole, s.decay, group)
    return jd.observables(
        predicted={
            "nodes": semiring.order(x).astype(jnp.float64),
            "energy": whole * factor**2,
            "loss": (group.order - 1) / group.order * jnp.square(1 - factor**3),
        },
        measured={"nodes": live(sizes[-1]).astype(jnp.float64), "energy": energy[-1], "loss": loss[-1]},
        recorded={
            "whole": whole,
            "losses": jd.named(loss, "step"),
            "energies": jd.named(energy, "step"),
            "sizes_of_nodes": jd.named(sizes, "step node"),
        },
        status=train.finite_status((loss, energy)),
        coords={"step": np.arange(s.samples + 1) * every},
    )


def loss_along(ds: xr.Dataset) -> xr.DataArray:
    """L over all pairs at every point of the path: the squared distance of the centred outputs from their targets."""
    return ((ds.measured_output - ds.predicted_output) ** 2).sum("output", min_count=1).mean("pair", skipna=False)


def judge_path(ds: xr.Dataset) -> list[jd.Check]:
    """The largest loss on the path; and that the path leads from the product's norm to that of z' alone."""
    return [
        jd.at_most("largest loss on the path", loss_along(ds).max("t", skipna=False), 1e-18),
        jd.at_most("norm squared at both ends, relative error", jd.relative_error(ds, "ends"), 1e-12),
    ]


def judge_norm(ds: xr.Dataset) -> list[jd.Check]:
    """The smallest product of all draws against the bound."""
    return [jd.at_least("norm squared of y * z' / bound, smallest", ds.measured_floor / ds.predicted_floor, 1 - 1e-12)]


def judge_prune(ds: xr.Dataset) -> list[jd.Check]:
    """As many live nodes as z' has, with its norm, and at the loss of its equilibrium with the decay."""
    return [
        jd.at_most("live nodes above or below those of z'", abs(ds.measured_nodes - ds.predicted_nodes), 0),
        jd.at_most("norm squared over that of z'", ds.measured_energy / ds.whole, 1.01),
        jd.at_most("norm squared at equilibrium, relative error", jd.relative_error(ds, "energy"), 1e-4),
        jd.at_most("loss at equilibrium, relative error", jd.relative_error(ds, "loss"), 1e-4),
    ]


def plot_path(ds: xr.Dataset, fig: Figure) -> None:
    """The loss along the path, for both solutions."""
    ax = fig.subplots()
    loss = loss_along(ds).clip(1e-34)
    for name, color in zip(ds.solution.values, ("measured", "third"), strict=True):
        plotting.band(ax, ds.t, loss.sel(solution=name), str(name), color)
    ax.axhline(1e-18, color=plotting.COLORS["theory"], linestyle="--", label="bound")
    ax.set(yscale="log", xlabel="place on the path (three legs)", ylabel="loss")


def plot_norm(ds: xr.Dataset, fig: Figure) -> None:
    """Norms of products over that of z', in rising order."""
    panels = np.ravel(fig.subplots(1, ds.sizes.get("tilt", 1), sharey=True, squeeze=False))
    floor = ds.predicted_floor
    printed = floor.sel(form="printed") if "form" in floor.dims else floor
    for i, ax in enumerate(panels):
        pick = {"tilt": i} if "tilt" in ds.dims else {}
        values = np.sort(np.ravel((ds.sizes_of_products / printed).isel(pick).isel(solution=0)))  # the other's ratios are the same
        ax.plot((np.arange(values.size) + 0.5) / values.size, values, ".", color=plotting.COLORS["measured"], label="y * z'")
        ax.axhline(1, color=plotting.COLORS["theory"], linestyle="--", label="z' alone")
        ax.set(yscale="log", xlabel="share of the draws below")
        if pick:
            ax.set_title(f"layer a of z' times {float(ds.tilt[i]):g}, c over it")
    panels[0].set_ylabel("norm squared of y * z' over that of z'")


def plot_prune(ds: xr.Dataset, fig: Figure) -> None:
    """Norms of all nodes of one run, and live nodes and norms squared of all runs."""
    left, right = fig.subplots(1, 2)
    one = ds.isel({dim: 0 for dim in ds.status.dims})
    plotting.lines(left, one.step, one.sizes_of_nodes)
    left.set(xlabel="step", ylabel="norm of each node")
    plotting.band(right, ds.step, ds.energies, "trained", "measured")
    right.axhline(float(ds.whole.mean()), color=plotting.COLORS["control"], linestyle=":", label="z'")
    right.axhline(float(ds.predicted_energy.mean()), color=plotting.COLORS["theory"], linestyle="--", label="z' at equilibrium")
    right.set(xlabel="step", ylabel="norm squared")


_PATH = {"trial": path_trial, "seeds": 8, "paper_seeds": 32}

CLAIMS = (
    jd.Claim(
        id="cogo.occam_path",
        statement=r"If y * z' and z' are solutions, z' because all its other potentials vanish, a path of zero loss joins them: "
        r"first c of y goes to $(1/(a_1b_1), 0, \dots)$, then $a_j, b_j$ shrink, then $a_1, b_1$ go to 1 through their powers.",
        source=f"{SOURCE}; the path is ours",
        quick=jd.grid(Factored),
        paper=jd.grid(Factored, group="9", order=[2, 3]),
        judge=judge_path,
        form="derived",
        controls={"z' optimal through cancellation": {"base": "cancelling"}, "straight line": {"route": "straight"}},
        plot=plot_path,
        **_PATH,
    ),
    jd.Claim(
        id="cogo.occam_norm",
        statement=r"The simpler network is the smaller one, $\|e * z'\| \le \|y * z'\|$ for every y with $r_{kkk}(y) = 1$, where "
        r"the three layers of z' have equal norms at every frequency.",
        source="talks on arXiv:2410.01779; the condition is ours",
        quick=jd.grid(Factored),
        paper=jd.grid(Factored, group="9", order=[1, 2, 3], draws=64),
        judge=judge_norm,
        form="printed",
        controls={"layer a of z' doubled, c halved": {"tilt": 2.0}},
        plot=plot_norm,
        **_PATH,
    ),
    jd.Claim(
        id="cogo.occam_norm_as_printed",
        statement=r"$\|e * z'\| \le \|y * z'\|$ for any solution z'. If its layers have unequal norms, a y that balances them "
        r"makes the product smaller; the bound for any z' is $3 \sum_k \prod_p \|z'_{pk}\|^{2/3}$.",
        source="talks on arXiv:2410.01779",
        quick=jd.grid(Factored, tilt=[1.0, 2.0]),
        paper=jd.grid(Factored, tilt=[0.5, 1.0, 2.0], order=[1, 2, 3], draws=64),
        judge=judge_norm,
        expected="refuted",
        form="printed",
        counterpart="derived",
        plot=plot_norm,
        **_PATH,
    ),
    jd.Claim(
        id="cogo.occam_wd",
        statement=r"Weight decay finds the simpler network: from y * z' with 24 nodes gradient descent ends at the 12 nodes of z', "
        r"shrunk by s with $6\frac{d-1}{d} s(1-s^3) = \lambda d \|z'\|^2$.",
        source=f"{SOURCE}; talks; the equilibrium is ours",
        trial=prune_trial,
        quick=jd.grid(Pruned),
        paper=jd.grid(Pruned, second=[0.6, 0.8, 0.9], steps=40_000),
        seeds=8,
        paper_seeds=32,
        judge=judge_prune,
        controls={"no weight decay": {"decay": 0.0}, "both nodes of y equal, no noise": {"second": 1.0, "noise": 0.0}},
        plot=plot_prune,
    ),
)
