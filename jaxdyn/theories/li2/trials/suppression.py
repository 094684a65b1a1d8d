r"""The trial of the claim on suppression: what the polar factor leaves of each node's gradient in irreps that other nodes hold.

.. math:: \text{gain}_S^2 = \frac{\sum_{(k, j) \in S} \|\Pi_j\, \mathrm{polar}(G)_k\|^2}{\sum_{(k, j) \in S} \|\Pi_j G_k\|^2}

over pairs of a node k and an irrep j that is not its main one; S is "held" where another node has most of its mass in j, "free"
where none has. Lemma 9 has a held part shrink beside a free one by :math:`\|v_\perp\| / (1 + \|v_\perp\|)`, at most a half
for a column of norm one. Letters as in ``trials/training.py``.
"""

from __future__ import annotations

import functools

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

import jaxdyn as jd
from jaxdyn.data.groups import parse
from jaxdyn.data.irreps import Irreps, decompose
from jaxdyn.optim.muon import polar
from jaxdyn.theories.li2 import model
from jaxdyn.theories.li2.dynamics import energy
from jaxdyn.theories.li2.trials.training import Data, Training, gradient, train

__all__ = ["HELD", "gains", "masses", "trial"]

HELD = 0.5  # share of a node's mass in an irrep from which on it holds it


def masses(w: Float[Array, "D K"], irreps: Irreps) -> Float[Array, "K irrep"]:
    """Squared norms of each column's parts in the irreps (conjugate pairs as one), the trivial one left out."""
    u, v = energy.split(w, irreps.group)
    mass = energy.masses(u, irreps) + energy.masses(v, irreps)
    return jnp.stack([jnp.sum(mass[:, list(numbers)], 1) for numbers in irreps.merged[1:]], 1)


def gains(w: Float[Array, "D K"], g: Float[Array, "D K"], irreps: Irreps) -> Float[Array, " 2"]:
    """What the polar factor of g multiplies the gradient's held and its free parts by."""
    share = masses(w / jnp.maximum(jnp.linalg.norm(w, axis=0), 1e-30), irreps)
    holds = share >= HELD
    held = jnp.sum(holds, 0) - holds > 0
    others = jnp.arange(share.shape[1]) != jnp.argmax(share, 1)[:, None]
    before, after = masses(g, irreps), masses(polar(g), irreps)

    def gain(where: Bool[Array, "K irrep"]) -> Float[Array, ""]:
        return jnp.sqrt(jnp.sum(jnp.where(where, after, 0)) / jnp.sum(jnp.where(where, before, 0)))

    return jnp.stack([gain(others & held), gain(others & ~held)])


def watch(s: Training, irreps: Irreps, now: model.Params, before: model.Params, d: Data) -> dict[str, Array]:
    """Both gains of the gradient at the recorded weights."""
    del before
    wide = (x.astype(jnp.float64) for x in (now.w, gradient(now, d, s).w))
    return {"gain": gains(*wide, irreps)}


def trial(s: Training, key: PRNGKeyArray) -> jd.Observables:
    """Both gains, and the test accuracy, at every record after the start."""
    run = train(s, key, functools.partial(watch, s, decompose(parse(s.group))))
    return jd.observables(
        measured={"gain": jd.named(run.curves["gain"][1:], "epoch part")},
        recorded={"test_accuracy": jd.named(run.curves["test_accuracy"][1:].astype(jnp.float64), "epoch")},
        coords={"epoch": range(s.every, s.epochs + 1, s.every), "part": ("held", "free")},
    )
