r"""Independent nodes: every hidden node climbs towards the targets as if it were alone, from its own start.

While the outputs are small the residual is the centred targets, and one node with weights w and top weights v has

.. math:: \dot v = \tilde Y^\top \sigma(Xw), \qquad \dot w = X^\top\bigl(\sigma'(Xw) \circ \tilde Y v\bigr),

the early part of Stage I followed by Stage II. Two forms of the prediction:

- ``node``: this flow, both layers from where they start;
- ``energy``: the top layer already is :math:`v = \tilde Y^\top \sigma(Xw)`, so that w climbs :math:`E(w) = \tfrac12 \|v\|^2`.

Both are homogeneous for homogeneous activations: they blow up in finite time, and only directions are followed, by steps of a fixed
size relative to the node. Source: arXiv:2509.21519, section 4 and appendix C. Letters: M elements, D = 2M, n = M^2 pairs, K nodes,
p irreps (with their conjugates; not the trivial one).
"""

from __future__ import annotations

from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jaxdyn.data.irreps import Irreps
from jaxdyn.theories.li2 import model
from jaxdyn.theories.li2.dynamics import energy

__all__ = ["FORMS", "aims", "follow", "pulls", "shares"]

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
    targets: Float[Array, "n M"],
    form: Form,
    activation: model.Activation = "square",
    steps: int = 300,
    step: float = 0.05,
) -> Float[Array, "D K"]:
    """Directions of w, of norm 1, after ``steps`` steps, each of size ``step`` relative to the node, whose norm is kept at 1."""

    def scaled(p: model.Params, by: Float[Array, " K"]) -> model.Params:
        return model.Params(p.w * by, p.v * by[:, None])

    def sizes(p: model.Params) -> Float[Array, " K"]:
        return jnp.sqrt(jnp.sum(jnp.square(p.w), 0) + jnp.sum(jnp.square(p.v), 1)) + 1e-30

    def top(p: model.Params) -> model.Params:
        if form == "node":
            return p
        w = p.w / (jnp.linalg.norm(p.w, axis=0) + 1e-30)
        v = pulls(model.Params(w, jnp.zeros_like(p.v)), targets, activation).v
        return model.Params(w, v)

    def advance(p: model.Params, _: None) -> tuple[model.Params, None]:
        p = top(p)
        change = pulls(p, targets, activation)
        change = change if form == "node" else change._replace(v=jnp.zeros_like(p.v))
        change = scaled(change, step / sizes(change))
        p = model.Params(p.w + change.w, p.v + change.v)
        return scaled(p, 1 / sizes(p)) if form == "node" else p, None

    end = jax.lax.scan(advance, scaled(p, 1 / sizes(p)), None, steps)[0]
    return end.w / (jnp.linalg.norm(end.w, axis=0) + 1e-30)


def shares(w: Float[Array, "D K"], irreps: Irreps) -> Float[Array, "K p"]:
    """The share of each irrep, with its conjugate, in the squared norm of a node; the trivial irrep is left out."""
    mass = sum(energy.masses(f, irreps) for f in energy.split(w, irreps.group))
    mass = jnp.stack([jnp.sum(mass[:, list(numbers)], 1) for numbers in irreps.merged[1:]], 1)
    return mass / (jnp.sum(mass, 1, keepdims=True) + 1e-30)
