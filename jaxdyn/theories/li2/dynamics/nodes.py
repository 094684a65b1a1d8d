r"""Nodes that climb alone, and for how long they can.

Independent nodes: every hidden node climbs towards the targets as if it were alone, from its own start.

While the outputs are small the residual is the centred targets, and one node with weights w and top weights v has

.. math:: \dot v = \tilde Y^\top \sigma(Xw), \qquad \dot w = X^\top\bigl(\sigma'(Xw) \circ \tilde Y v\bigr),

the early part of Stage I followed by Stage II. Two forms of the prediction:

- ``node``: this flow, both layers from where they start;
- ``energy``: the top layer already is :math:`v = \tilde Y^\top \sigma(Xw)`, so that w climbs :math:`E(w) = \tfrac12 \|v\|^2`.

Both are homogeneous for homogeneous activations and may blow up in finite time; :func:`follow` integrates directions alone, each
node in a time of its own in which it moves by its own norm per unit. Weight decay, equal for both layers, changes no direction. The
flow in the network's time is below. Source: arXiv:2509.21519, section 4 and appendix C. Letters: M elements,
D = 2M, n = M^2 pairs, K nodes, p irreps (with their conjugates; not the trivial one).

Independent nodes in the network's own time: when they rise, and for how long they can be independent.

Every node with weights :math:`p = (w, v)` follows the pull of the targets alone, the velocities above, with the
trainer's rate :math:`\ell`, momentum :math:`\mu` and decay :math:`\lambda`. Time is in epochs, n is the number of training pairs:

.. math:: \dot p = \ell\, m, \qquad \dot m = \tfrac2n\,\mathrm{pull}(p) - \lambda p - (1 - \mu)\, m

the flow of heavy-ball descent. Where nodes hardly change within :math:`1 / (1 - \mu)` epochs it is the gradient flow in the time
:math:`\ell / (1 - \mu)` per epoch, the usual reading of momentum. The flow takes the residual to be the targets, and so tells its
own end: when the norm of its outputs on the training pairs is no longer small compared with that of the targets.
Source: arXiv:2509.21519, section 4. Departure: momentum. Letters: M elements, D = 2M, n pairs, K nodes, T save times.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jaxdyn import flow
from jaxdyn.data.irreps import Irreps
from jaxdyn.theories.li2 import model
from jaxdyn.theories.li2.dynamics import energy

Form = Literal["node", "energy"]
FORMS: tuple[Form, ...] = ("node", "energy")


def aims(labels: Int[Array, " n"], known: Bool[Array, " n"], order: int) -> Float[Array, "n M"]:
    r""":math:`\tilde Y`: one-hot labels, centred over the known pairs; zero on the others. Pairs are in the order of the table."""
    y = jnp.where(known[:, None], labels[:, None] == np.arange(order), 0).astype(jnp.float32)
    return jnp.where(known[:, None], y - jnp.sum(y, 0) / jnp.sum(known), 0)


def pulls(p: model.Params, targets: Float[Array, "n M"], activation: model.Activation) -> model.Params:
    """The velocities of both layers of all nodes, each on its own."""
    order = targets.shape[1]
    a = (p.w[:order, None] + p.w[None, order:]).reshape(order**2, -1)
    f, back = jax.vjp(lambda a: model.activate(a, activation), a)
    (change,) = back(targets @ p.v.T)
    table = change.reshape(order, order, -1)
    return model.Params(jnp.concatenate([jnp.sum(table, 1), jnp.sum(table, 0)]), f.T @ targets)


def follow(
    p: model.Params,
    landscapes: Sequence[tuple[Form, Float[Array, "n M"]]],
    activation: model.Activation = "square",
    length: float = 15.0,
    tolerance: float = 1e-2,
) -> list[Float[Array, "D K"]]:
    """Directions of w, of norm 1, in which all nodes end: for each form of the flow, with its targets.

    Args:
        p: the start.
        landscapes: forms and centred targets; all are one solve.
        activation: sigma.
        length: how far each node goes, in parts of its norm.
        tolerance: of a step, in each entry of a node of norm 1.
    """

    def field(_: Any, states: tuple[model.Params, ...], targets: Sequence[Float[Array, "n M"]]) -> tuple[model.Params, ...]:
        return tuple(_turn(q, y, form, activation) for q, y, (form, _) in zip(states, targets, landscapes, strict=True))

    # all landscapes from the same start, each node scaled to norm 1
    wide = model.Params(*(leaf.astype(jnp.float64) for leaf in p))
    alone = wide._replace(v=wide.v[:, :0])  # its top layer follows from w
    starts = tuple(_scaled(q, 1 / _sizes(q)) for q in (alone if form == "energy" else wide for form, _ in landscapes))
    targets = [y.astype(jnp.float64) for _, y in landscapes]
    ends = flow.solve(field, starts, jnp.array([0.0, length]), targets, rtol=tolerance, atol=tolerance).y_end
    return [end.w / (jnp.linalg.norm(end.w, axis=0) + 1e-30) for end in ends]


def _turn(p: model.Params, targets: Float[Array, "n M"], form: Form, activation: model.Activation) -> model.Params:
    """How nodes of norm 1 turn when each moves by its norm per unit of time."""
    whole = p
    if form == "energy":
        whole = p._replace(v=pulls(p._replace(v=jnp.zeros((p.w.shape[1], targets.shape[1]), p.w.dtype)), targets, activation).v)
    pull = pulls(whole, targets, activation)
    pull = model.Params(pull.w, pull.v[:, : p.v.shape[1]])
    pull = _scaled(pull, 1 / _sizes(pull))
    along = jnp.sum(p.w * pull.w, 0) + jnp.sum(p.v * pull.v, 1)
    return jax.tree.map(jnp.subtract, pull, _scaled(p, along))


def _scaled(p: model.Params, by: Float[Array, " K"]) -> model.Params:
    return model.Params(p.w * by, p.v * by[:, None])


def _sizes(p: model.Params) -> Float[Array, " K"]:
    return jnp.sqrt(jnp.sum(jnp.square(p.w), 0) + jnp.sum(jnp.square(p.v), 1)) + 1e-30


def shares(w: Float[Array, "D K"], irreps: Irreps) -> Float[Array, "K p"]:
    """The share of each irrep, with its conjugate, in the squared norm of a node; the trivial irrep is left out."""
    each: Any = sum(energy.masses(f, irreps) for f in energy.split(w, irreps.group))
    mass = jnp.stack([jnp.sum(each[:, list(numbers)], 1) for numbers in irreps.merged[1:]], 1)
    return mass / (jnp.sum(mass, 1, keepdims=True) + 1e-30)


def lots(
    p: model.Params, irreps: Irreps, activation: model.Activation = "square"
) -> tuple[Float[Array, "K p"], Float[Array, "K p"]]:
    r"""How fast each irrep of a node grows at the start, and the cosine of the misalignment of its two layers.

    .. math:: \langle v, \Pi_k z \rangle, \qquad \cos D_k = \frac{\langle v, \Pi_k z \rangle}{\|\Pi_k v\| \|\Pi_k z\|},

    with z the sums of a node's outputs over the pairs of each product: for cyclic groups and :math:`\sigma = x^2`, up to a factor,
    the product of the three magnitudes and the cosine, and :math:`D_k` is the sum of the phases of both operands minus that of v.
    Source: arXiv:2602.16849, where both operands share their weights: the frequency with the smallest misalignment wins where all
    have one magnitude, else magnitude and alignment decide. The irreps are those of :func:`shares`; all pairs count.
    """
    order = irreps.group.order
    samples = model.pairs(order)
    z = model.targets(irreps.group, samples, str(p.w.dtype)).T @ model.features(p.w, samples, activation)
    projectors = np.stack([np.sum([irreps.projector(k) for k in numbers], 0).real for numbers in irreps.merged[1:]])
    sent, held = (jnp.einsum("kab,bn->kan", projectors.astype(p.w.dtype), x) for x in (z, p.v.T))
    rate = jnp.sum(sent * held, 1).T
    return rate, rate / (jnp.linalg.norm(sent, axis=1) * jnp.linalg.norm(held, axis=1) + 1e-30).T


END = 2.0  # outputs over targets at which the solve stops, soon before nodes escape to infinity


class Trainer(NamedTuple):
    """What moves the weights.

    Args:
        rate: the learning rate.
        decay: of all weights, added to the gradient.
        momentum: of heavy-ball descent.
        inertia: whether momentum is inertia, or the factor 1 / (1 - momentum) of the rate.
    """

    rate: Float[Array, ""]
    decay: Float[Array, ""]
    momentum: float = 0.0
    inertia: Bool[Array, ""] | bool = True


def outputs(p: model.Params, targets: Float[Array, "n M"], activation: model.Activation) -> Float[Array, ""]:
    """The norm of the outputs on the training pairs, centred over outputs, over that of the targets."""
    order = targets.shape[1]
    out = model.features(p.w, model.pairs(order), activation) @ (p.v - jnp.mean(p.v, 1, keepdims=True))
    out = jnp.where(jnp.any(targets != 0, 1, keepdims=True), out, 0)
    return jnp.linalg.norm(out) / jnp.linalg.norm(targets)


def rise(
    p: model.Params,
    targets: Float[Array, "n M"],
    epochs: Float[Array, " T"],
    trainer: Trainer,
    activation: model.Activation = "square",
    tolerance: float = 1e-3,
) -> flow.Solution:
    """All nodes from their start, each on its own, at the epochs given, until outputs are ``END`` times the targets.

    States of the solution are pairs of weights and momenta; the start is float64.
    """

    def field(_: Any, state: tuple[model.Params, model.Params], given: Any) -> tuple[model.Params, model.Params]:
        (at, moving), (y, by) = state, given
        pull = force(at, y, by.decay, activation)
        speed = jax.tree.map(lambda m, g: by.rate * jnp.where(by.inertia, m, g / (1 - by.momentum)), moving, pull)
        return speed, jax.tree.map(lambda m, g: g - (1 - by.momentum) * m, moving, pull)

    def full(_: Any, state: tuple[model.Params, model.Params], given: Any) -> Float[Array, ""]:
        return outputs(state[0], given[0], activation) - END

    start = (p, jax.tree.map(jnp.zeros_like, p))
    return flow.solve(field, start, epochs, (targets, trainer), rtol=tolerance, atol=tolerance / 100, event=full)


def force(
    p: model.Params, targets: Float[Array, "n M"], decay: float | Float[Array, ""], activation: model.Activation
) -> model.Params:
    """Minus the gradient of the training loss where outputs vanish, and decay."""
    pull, count = pulls(p, targets, activation), jnp.sum(jnp.any(targets != 0, 1))
    return jax.tree.map(lambda g, a: 2 / count * g - decay * a, pull, p)
