"""Inner products of every layer with its gradient, and losses at other scales of the weights, of networks that are not trained."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

import jaxdyn as jd
from jaxdyn.theories.prieto import model
from jaxdyn.theories.prieto.dynamics import scale

__all__ = ["FACTORS", "Identities", "trial"]

FACTORS = (0.5, 2.0, 3.0)  # of the scale of the weights


@jd.setting
class Identities:
    """A random network on all pairs, in float64.

    Args:
        size: of the weights over the standard start.
        shift: biases of the hidden nodes, a breach.
        modulus: p.
        nodes: m.
    """

    size: jd.Swept = 3.0
    shift: jd.Swept = 0.0
    modulus: int = 7
    nodes: int = 16

    def __post_init__(self) -> None:
        """Refuse empty sizes."""
        jd.require(self, self.modulus >= 2, "modulus is at least 2", "modulus")
        jd.require(self, self.nodes >= 1, "nodes is at least 1", "nodes")
        jd.require(self, self.size > 0, "size is positive", "size")


def trial(s: Identities, key: PRNGKeyArray) -> jd.Observables:
    """By automatic differentiation of the whole network and from its logits alone; softmax first, then StableMax."""
    weights = tuple(s.size * w for w in model.init(key, s.modulus, s.nodes, "float64"))
    a, b, answers = model.pairs(s.modulus)
    z = model.outputs(weights, a, b, s.shift)

    def loss(w: model.Weights, stable: bool) -> Float[Array, ""]:
        out = model.outputs(w, a, b, s.shift)
        return jnp.mean(model.losses(model.signed_log(out) if stable else out, answers))

    def along(stable: bool) -> Float[Array, " layer"]:
        return jnp.stack([jnp.vdot(g, w) for g, w in zip(jax.grad(loss)(weights, stable), weights, strict=True)])

    def scaled(stable: bool) -> Float[Array, " factor"]:
        return jnp.stack([loss(tuple(c * w for w in weights), stable) for c in FACTORS])

    def powers(stable: bool, degree: int) -> Float[Array, " factor"]:
        right = (jnp.arange(z.shape[0]), answers)
        return jnp.stack([-jnp.mean(jnp.log(scale.probabilities(c**degree * z, stable)[right])) for c in FACTORS])

    def both(values: list[Array], axes: str) -> jd.Named:
        return jd.named(jnp.stack(values), f"kind {axes}")

    kinds = (False, True)
    inner = [jnp.broadcast_to(scale.along_weights(z, answers, k), (3,)) for k in kinds]
    other = [jnp.broadcast_to(scale.along_weights(z, answers, not k), (3,)) for k in kinds]
    return jd.observables(
        predicted={"along": both(inner, "layer"), "scaled": both([powers(k, 3) for k in kinds], "factor")},
        measured={"along": both([along(k) for k in kinds], "layer"), "scaled": both([scaled(k) for k in kinds], "factor")},
        recorded={
            "squares": both([powers(k, 2) for k in kinds], "factor"),
            "exchanged": both(other, "layer"),
            "exchanged_scaled": both([powers(not k, 3) for k in kinds], "factor"),
        },
        coords={"kind": ("softmax", "stablemax"), "layer": (1, 2, 3), "factor": FACTORS},
    )
