"""When a network generalises: the trial of the claims on initialisation, on a ridge solution on top, and on shares of pairs."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

import jaxdyn as jd
from jaxdyn.theories.li2.training import Training, train

KNOWN = 0.95  # test accuracy that counts as generalising


def reached(curve: jnp.ndarray, every: int, level: float = KNOWN) -> jnp.ndarray:
    """The epoch at which a curve first reaches the level; twice the length of the training if it does not."""
    hit = curve >= level
    return jnp.where(jnp.any(hit), jnp.argmax(hit), 2 * (len(curve) - 1)).astype(jnp.float64) * every


def trial(s: Training, key: PRNGKeyArray) -> jd.Observables:
    """When one network generalises, where its training ends."""
    curves = train(s, key, known=KNOWN).curves
    return jd.observables(
        measured={"time": reached(curves["test_accuracy"], s.every)},
        recorded={"accuracy": jd.named(curves["test_accuracy"].astype(jnp.float64), "epoch")},
        coords={"epoch": range(0, s.epochs + 1, s.every)},
    )
