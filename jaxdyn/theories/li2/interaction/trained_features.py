r"""Features of trained nodes: the irreps that they hold, their energy and purity.

A node's direction is its weights over their norm; it holds the irrep with most of its mass, if that is :data:`PURE` of it. Nodes
below a tenth of the largest norm are not counted. Letters as in ``training.py`` and ``dynamics/energy.py``.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

import jaxdyn as jd
from jaxdyn.data.groups import parse
from jaxdyn.data.irreps import Irreps, decompose
from jaxdyn.theories.li2.dynamics import energy
from jaxdyn.theories.li2.training import Training, train

PURE = 0.8
ALIVE = 0.1  # of the largest norm


class Nodes(NamedTuple):
    """Number of irreps (or conjugate pairs) held; means over the live nodes: energy of the directions, mass of the main irrep."""

    held: Float[Array, ""]
    energy: Float[Array, ""]
    purity: Float[Array, ""]
    alive: Float[Array, ""]


def nodes(w: Float[Array, "D K"], irreps: Irreps) -> Nodes:
    """The irreps that the nodes of a network hold, their mean energy and purity, and the number of live nodes."""
    size = jnp.linalg.norm(w, axis=0)
    w = w / jnp.maximum(size, 1e-30)
    alive = size > ALIVE * jnp.max(size)
    u, v = energy.split(w, irreps.group)
    mass = energy.masses(u, irreps) + energy.masses(v, irreps)
    mass = jnp.stack([jnp.sum(mass[:, list(numbers)], 1) for numbers in irreps.merged[1:]], 1)
    purity, which, count = jnp.max(mass, 1), jnp.argmax(mass, 1), jnp.sum(alive).astype(w.dtype)
    held = jnp.zeros(mass.shape[1], bool).at[which].max(alive & (purity >= PURE))

    def mean(x: Float[Array, " K"]) -> Float[Array, ""]:
        return jnp.sum(jnp.where(alive, x, 0)) / count

    return Nodes(jnp.sum(held).astype(w.dtype), mean(energy.energy(w, irreps.group)), mean(purity), count)


def trial(s: Training, key: PRNGKeyArray) -> jd.Observables:
    """One network: the irreps that its nodes hold at the end, and its losses and accuracies along training."""
    run, irreps = train(s, key), decompose(parse(s.group))
    held = nodes(run.params.w.astype(jnp.float64), irreps)
    return jd.observables(
        measured={"held": held.held, "loss": run.curves["test_loss"][-1].astype(jnp.float64)},
        recorded={name: getattr(held, name) for name in ("energy", "purity", "alive")}
        | {"irreps": jnp.float64(len(irreps.merged) - 1)}
        | {name: jd.named(run.curves[name].astype(jnp.float64), "epoch") for name in ("test_accuracy", "test_loss")},
        coords={"epoch": range(0, s.epochs + 1, s.every)},
    )
