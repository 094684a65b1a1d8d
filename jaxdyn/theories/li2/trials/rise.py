r"""The trials of nodes over time: a network trained by gradient descent with momentum, beside it each node alone.

Predicted from the start and the training pairs alone, by ``dynamics/rise.py``: energy and purity of every node at the epochs at
which the network is recorded. Energy is :math:`E(w/\|w\|)` over all pairs, in parts of the maximum of the irrep that is largest in
the node; purity is the share of that irrep. ``outputs`` is the norm of the flow's outputs over that of the targets; from the epoch
on at which it would exceed ``rise.END`` it stays there, and so do the flow's nodes. ``curve_right`` is the share of the network's
nodes whose largest irrep is the one in which the flow, followed to its end, leaves them.

Until when, in training time, epochs times the rate: the theory's own end is where the flow's outputs are ``SMALL`` of the targets;
the network's nodes are independent until ``curve_right`` is largest. Letters as in ``trials/training.py``.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

import jaxdyn as jd
from jaxdyn.data.groups import parse
from jaxdyn.data.irreps import Irreps, decompose
from jaxdyn.theories.li2 import model
from jaxdyn.theories.li2.dynamics import energy, nodes, rise
from jaxdyn.theories.li2.trials.nodes import targets
from jaxdyn.theories.li2.trials.training import MOMENTUM, Data, Training, data, train

__all__ = ["QUANTITIES", "SMALL", "WORLDS", "crossed", "heights", "highest", "trial", "until"]

QUANTITIES = ("energy", "purity")
SMALL = 0.5  # outputs over targets up to which outputs count as small
SMOOTH = 5  # records of a running mean
WORLDS = ("flow", "other", "factor")  # the theory; on targets given to pairs in a random order; momentum as a factor of the rate


def heights(w: Float[Array, "D K"], irreps: Irreps) -> Float[Array, "quantity K"]:
    """Energy in parts of the maximum, and purity, of every node."""
    exact = jnp.asarray([peak.energy for peak in energy.peaks(irreps)], w.dtype)
    share = nodes.shares(w, irreps)
    unit = w / jnp.linalg.norm(w, axis=0)
    return jnp.stack([energy.energy(unit, irreps.group) / exact[jnp.argmax(share, 1)], jnp.max(share, 1)])


def flows(
    p: model.Params, y: Float[Array, "n M"], key: PRNGKeyArray, s: Training, worlds: int = len(WORLDS)
) -> tuple[Float[Array, "world t D K"], Float[Array, "world t"]]:
    """Weights w of all nodes, and outputs, at the records, in the first worlds; from a world's end on, those at its end."""
    epochs = jnp.arange(0, s.epochs + 1, s.every, dtype=jnp.float64)
    aims = jnp.stack([y, y[jax.random.permutation(key, len(y))], y])

    def one(world: tuple[Float[Array, "n M"], Array]) -> tuple[Array, Array]:
        aim, inertia = world
        by = rise.Trainer(s.lr, s.decay, MOMENTUM, inertia)
        sol = rise.rise(p, aim, epochs, by, s.activation)
        reached = jnp.isfinite(sol.ts)
        size = jax.vmap(lambda q: rise.outputs(q, aim, s.activation))(sol.ys[0])
        w = jnp.where(reached[:, None, None], sol.ys[0].w, sol.y_end[0].w)
        return w, jnp.where(reached, size, rise.END)

    asked = (aims[:worlds], jnp.array([True, True, False])[:worlds])
    return jax.lax.map(one, asked)  # not vmapped: each world has its own steps, and end


def crossed(x: Float[Array, " t"], y: Float[Array, " t"], level: float) -> Float[Array, ""]:
    """Where y first reaches a level, between records by a line in the logarithms of both; 0 if it never does, or from the start."""
    at = jnp.argmax(y >= level)
    a, b = jnp.maximum(at - 1, 1), jnp.maximum(at, 2)
    part = jnp.log(level / y[a]) / jnp.log(y[b] / y[a])
    return jnp.where((at >= 2) & (y[at] >= level), x[a] * (x[b] / x[a]) ** part, 0)


def highest(x: Float[Array, " t"], y: Float[Array, " t"]) -> Float[Array, ""]:
    """Where a curve is largest after two running means, between records by a parabola; 0 if that is at its first or last."""
    mean = jnp.full(SMOOTH, 1 / SMOOTH, y.dtype)
    kept = jnp.convolve(jnp.convolve(y, mean, "valid"), mean, "valid")
    at = jnp.argmax(kept)
    before, top, after = (kept[jnp.clip(at + i, 0, len(kept) - 1)] for i in (-1, 0, 1))
    shift = jnp.where(before - 2 * top + after < 0, 0.5 * (before - after) / (before - 2 * top + after), 0)
    return jnp.where((at > 0) & (at < len(kept) - 1), x[at + SMOOTH - 1] + shift * (x[1] - x[0]), 0)


def _beside(s: Training, key: PRNGKeyArray, worlds: int) -> tuple[Array, Array, dict[str, Array]]:
    """Heights of all nodes [world, epoch, quantity, node] and outputs by the flow, and the records of the network."""
    jd.require(s, s.optimizer == "sgd", "the flow is that of gradient descent with momentum", "optimizer")
    irreps = decompose(parse(s.group))
    k_data, k_init = jax.random.split(key)  # as in ``train``
    d, p = data(s, k_data), model.init(k_init, irreps.group.order, s.hidden, s.dtype)
    p = p._replace(v=p.v * jnp.asarray(s.top, s.dtype))
    y = targets(d, s).astype(jnp.float64)
    w, size = flows(model.Params(*(leaf.astype(jnp.float64) for leaf in p)), y, jax.random.fold_in(key, 1), s, worlds)
    told = jax.lax.map(jax.vmap(lambda w: heights(w, irreps)), w)
    (end,) = nodes.follow(p, [("node", y)], s.activation)
    place = jnp.argmax(nodes.shares(end, irreps), 1)

    def watch(now: model.Params, before: model.Params, d: Data) -> dict[str, Array]:
        right = jnp.mean(jnp.argmax(nodes.shares(now.w, irreps), 1) == place, dtype=jnp.float32)
        return {"heights": heights(now.w, irreps).astype(jnp.float64), "right": right}

    return told, size[0], train(s, key, watch).curves


def trial(s: Training, key: PRNGKeyArray) -> jd.Observables:
    """One trained network, and the flow of its nodes in all worlds, over time."""
    told, size, seen = _beside(s, key, len(WORLDS))
    return jd.observables(
        predicted={"height": jd.named(told[0], "epoch quantity node")},
        measured={"height": jd.named(seen["heights"], "epoch quantity node")},
        recorded={
            **{name: jd.named(jnp.mean(told[i], -1), "epoch quantity") for i, name in enumerate(WORLDS) if i},
            "outputs": jd.named(size, "epoch"),
            "curve_test": jd.named(seen["test_accuracy"], "epoch"),
        },
        coords={"quantity": QUANTITIES, "epoch": range(0, s.epochs + 1, s.every)},
    )


def until(s: Training, key: PRNGKeyArray) -> jd.Observables:
    """One trained network, and until when its nodes are independent: by the theory's own end, and as seen."""
    told, size, seen = _beside(s, key, 1)
    time = jnp.arange(0, s.epochs + 1, s.every) * jnp.asarray(s.lr, jnp.float64)
    return jd.observables(
        predicted={"until": crossed(time, size, SMALL)},
        measured={"until": highest(time, seen["right"].astype(jnp.float64))},
        recorded={
            "last": time[-1],
            "flow_energy": jd.named(jnp.mean(told[0, :, 0], -1), "epoch"),
            "outputs": jd.named(size, "epoch"),
            "curve_energy": jd.named(jnp.mean(seen["heights"][:, 0], -1), "epoch"),
            "curve_right": jd.named(seen["right"], "epoch"),
            "curve_test": jd.named(seen["test_accuracy"], "epoch"),
        },
        coords={"epoch": range(0, s.epochs + 1, s.every)},
    )
