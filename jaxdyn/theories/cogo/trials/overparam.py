"""How fast networks of several widths are trained. All widths share a program: nodes beyond the width are zero."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

import jaxdyn as jd
from jaxdyn.data.abelian import parse
from jaxdyn.theories.cogo.dynamics import relax as theory
from jaxdyn.theories.cogo.training import Training, size, train

__all__ = ["SOLVED", "trial"]

SOLVED = 1e-3


def trial(s: Training, key: PRNGKeyArray) -> jd.Observables:
    """One over the epochs until the training loss falls below ``SOLVED``, where training ends; 0 if it never does."""
    loss = train(s, key, solved=SOLVED).curves["train_loss"].astype(jnp.float64)
    below, d = loss < SOLVED, parse(s.group).order
    first = jnp.argmax(below)
    return jd.observables(
        predicted={"rate": theory.start_rate(d, size(s)).astype(jnp.float64)},
        measured={"rate": jnp.where(jnp.any(below), 1 / jnp.maximum(first * s.every, 1), 0.0)},
        recorded={"loss": jd.named(loss, "epoch"), "enough": jnp.float64(3 * (d - 1)), "least": jnp.float64(2 * d)},
        coords={"epoch": range(0, s.epochs + 1, s.every)},
    )
