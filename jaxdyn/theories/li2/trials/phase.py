"""The trial of the claims on how many pairs a network needs: accuracies along its training, beside its group's critical share."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

import jaxdyn as jd
from jaxdyn.data.groups import parse
from jaxdyn.theories.li2.dynamics.critical import critical_share
from jaxdyn.theories.li2.trials.training import Training, train

__all__ = ["trial"]


def trial(s: Training, key: PRNGKeyArray) -> jd.Observables:
    """The accuracies of one network along its training, which ends when all pairs are right, and its group's critical share."""
    curves = train(s, key, known=1.0).curves
    group = parse(s.group)
    return jd.observables(
        predicted={"critical": jnp.float64(critical_share(group))},
        measured={"critical": jnp.asarray(s.pairs, jnp.float64)},
        recorded={name: jd.named(curve.astype(jnp.float64), "epoch") for name, curve in curves.items()}
        | {"order": jnp.float64(group.order)},
        coords={"epoch": range(0, s.epochs + 1, s.every)},
    )
