r"""Trials on Occam's razor: the path from a product y * z' to z', norms of products, and training under weight decay.

Letters as in ``dynamics/occam.py``; z' is one of two solutions, with six nodes at each pair of frequencies, or the memorising one.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import train
from jaxdyn.data.abelian import Abelian, parse
from jaxdyn.theories.cogo import gram, model
from jaxdyn.theories.cogo.dynamics import occam, semiring, solutions
from jaxdyn.theories.cogo.dynamics.semiring import Element

__all__ = ["LIVE", "Factored", "Pruned", "live", "path_trial", "prune_trial"]

SOLUTIONS = ("six nodes a pair", "memorising")
LIVE = 0.05  # a node is alive if its norm is above this share of the largest one's


@jd.setting
class Factored:
    """Random factors y of a solution z'; ``tilt``, ``base`` and ``route`` break assumptions."""

    tilt: jd.Swept = 1.0  # multiplies layer a of z' and divides its layer c
    base: jd.Code = jd.code("exact", "cancelling")  # z' meets every condition, or cancels the means of its blocks
    route: jd.Code = jd.code("legs", "straight")
    group: str = "5"
    order: int = 3  # nodes of y
    steps: int = 17  # points on each leg but its first
    draws: int = 16  # further factors whose norm is taken

    def __post_init__(self) -> None:
        """Refuse groups with fewer than two pairs of frequencies, empty factors and paths, and a layer a of zeros."""
        jd.require(self, len(parse(self.group).pairs) > 1, "the group has at least two pairs of conjugate characters", "group")
        for name in ("order", "steps", "draws"):
            jd.require(self, getattr(self, name) > 0, f"{name} is at least 1", name)
        jd.require(self, self.tilt > 0, "tilt is positive", "tilt")


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
        jd.require(self, len(parse(self.group).pairs) > 0, "the group has a pair of conjugate characters", "group")
        jd.require(self, self.samples > 0, "samples is at least 1", "samples")
        multiple = self.steps > 0 and self.steps % self.samples == 0
        jd.require(self, multiple, "steps is a positive multiple of samples", "steps", "samples")
        jd.require(self, self.lr > 0, "lr is positive", "lr")
        for name in ("decay", "second", "noise"):
            jd.require(self, getattr(self, name) >= 0, f"{name} is not negative", name)


def base(s: Factored, group: Abelian, key: PRNGKeyArray) -> tuple[Element, Element]:
    """The two solutions z'; the "cancelling" first one has a single block of six nodes, which carries the bias of the others."""
    n = solutions.draw(key, group)
    carriers = solutions.first(group, jnp.where(s.base == "exact", len(group.pairs), 1))
    unlike = jnp.stack([s.tilt, 1.0, 1 / s.tilt])[:, None, None]
    both = solutions.f46(group, carriers, n.nu, n.xi, n.phases), solutions.memory(group)
    return tuple(x._replace(z=x.z * unlike) for x in both)


def centred_output(x: Element, group: Abelian) -> Float[Array, "pair output"]:
    """P o / (2d), for every pair of elements."""
    o = model.output(semiring.weights(x, group)) * model.factor(group, "paper")
    return (o - jnp.mean(o, -1, keepdims=True)).reshape(-1, group.order)


def path_trial(s: Factored, key: PRNGKeyArray) -> jd.Observables:
    """Outputs along the path for both solutions, and norms of products with many factors with their bounds."""
    group = parse(s.group)
    k_base, k_start, k_draws, k_share = jax.random.split(key, 4)
    wholes = base(s, group, k_base)
    y = occam.leading(occam.normalized(semiring.random(k_start, group, s.order)), group)
    times = np.linspace(0, 3, 3 * s.steps + 1)

    def at(t: Float[Array, ""]) -> Element:
        return jax.tree.map(lambda a, b: jnp.where(s.route == "legs", a, b), occam.path(y, t), occam.straight(y, t))

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
    measured = [jnp.stack([_energy(semiring.multiply(e, x), group) for x in wholes]) for e in (y, occam.path(y, jnp.asarray(3.0)))]
    return jd.observables(
        predicted={
            "output": jd.named(jnp.asarray(target), "pair output"),
            "ends": jd.named(ends, "solution end"),
            "floor": jd.named(jnp.stack([printed, jnp.stack([occam.least_energy(x) for x in wholes])]), "form solution"),
        },
        measured={
            "output": jd.named(outputs, "solution t pair output"),
            "ends": jd.named(jnp.stack(measured, 1), "solution end"),
            "floor": jd.named(jnp.min(sizes, 1), "solution"),
        },
        recorded={"sizes_of_products": jd.named(sizes, "solution draw"), "norms": jd.named(norms, "solution t")},
        coords={"t": times, "solution": SOLUTIONS, "end": ("y * z'", "z'"), "form": ("printed", "derived")},
    )


def _energy(x: Element, group: Abelian) -> Float[Array, ""]:
    """Fourier norm squared, from the weights."""
    return jnp.sum(jnp.square(semiring.weights(x, group))) / group.order


def _near_identity(key: PRNGKeyArray, share: Float[Array, ""], order: int, group: Abelian) -> Element:
    """A random factor, at a share of its distance from the pseudo-identity."""
    y = semiring.random(key, group, order)
    return occam.normalized(y._replace(z=occam.pseudo_identity(y).z + share * y.z))


def live(sizes: Float[Array, "*n node"]) -> Int[Array, "*n"]:
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

    def observe(state: train.State) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, " node"]]:
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
