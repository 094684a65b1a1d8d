r"""Independent nodes in the network's own time: when they rise, and for how long they can be independent.

Every node with weights :math:`p = (w, v)` follows the pull of the targets alone, the velocities of ``dynamics/nodes.py``, with the
trainer's rate :math:`\ell`, momentum :math:`\mu` and decay :math:`\lambda`. Time is in epochs, n is the number of training pairs:

.. math:: \dot p = \ell\, m, \qquad \dot m = \tfrac2n\,\mathrm{pull}(p) - \lambda p - (1 - \mu)\, m

the flow of heavy-ball descent. Where nodes hardly change within :math:`1 / (1 - \mu)` epochs it is the gradient flow in the time
:math:`\ell / (1 - \mu)` per epoch, the usual reading of momentum. The flow takes the residual to be the targets, and so tells its
own end: when the norm of its outputs on the training pairs is no longer small compared with that of the targets.
Source: arXiv:2509.21519, section 4. Departure: momentum. Letters: M elements, D = 2M, n pairs, K nodes, T save times.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from jaxdyn import flow
from jaxdyn.theories.li2 import model
from jaxdyn.theories.li2.dynamics import nodes

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
    pull, count = nodes.pulls(p, targets, activation), jnp.sum(jnp.any(targets != 0, 1))
    return jax.tree.map(lambda g, a: 2 / count * g - decay * a, pull, p)
