"""Attention while a language model learns a text: its entropy in each layer along training."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

import jaxdyn as jd
from jaxdyn import train
from jaxdyn.text import reading
from jaxdyn.text.reading import Reading

__all__ = ["trial"]


def trial(s: Reading, key: PRNGKeyArray) -> jd.Observables:
    """Train on the text; entropy of each layer's attention along training, beside that of uniform attention."""
    built = reading.build(s, key)
    columns, k_drop = built.data
    data = jnp.asarray(columns), k_drop
    state, records = train.record(
        lambda state: built.step(state, *data), built.start, built.observe, samples=s.steps // s.every, every=s.every
    )
    uniform = jnp.full(s.layers, reading.uniform_entropy(s.length), s.dtype)
    return jd.observables(
        predicted={"start": jd.named(uniform, "layer")},
        measured={"start": jd.named(records.entropy[0], "layer")},
        recorded={
            "entropy": jd.named(records.entropy, "record layer"),
            "stable_rank": jd.named(records.stable_rank, "record layer"),
            "loss": jd.named(records.loss, "record"),
        },
        status=train.finite_status(state.params),
        coords={"record": range(0, s.steps + 1, s.every)},
    )
