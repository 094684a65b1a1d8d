r"""The trial of the claim on the order of events in training: what each layer is pulled by, how far it moves, how nodes overlap.

The theory's independent nodes need :math:`\tilde F^\top \tilde F` and :math:`P F F^\top` to be nearly diagonal. Letters as in
``trials/training.py``.
"""

from __future__ import annotations

import functools

import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

import jaxdyn as jd
from jaxdyn.theories.li2 import model
from jaxdyn.theories.li2.trials.training import Data, Training, gradient, train

__all__ = ["HIGH", "overlaps", "trial", "watch"]

SAMPLES = 256  # rows of the samples' Gram matrix that are used
NODES = 128  # of the nodes' one, for its quantile
HIGH = 0.95  # quantile of the moduli off the diagonal


def watch(s: Training, now: model.Params, before: model.Params, d: Data) -> dict[str, Array]:
    """Norms of the loss's derivatives, of the change since the last record and of G_F; overlaps in both Gram matrices."""
    samples, known = d.samples.reshape(-1, 2), (d.number.reshape(-1) < d.count)[:, None]
    labels = d.labels.reshape(-1)

    def centred(x: Float[Array, "n columns"]) -> Float[Array, "n columns"]:
        return jnp.where(known, x - jnp.sum(jnp.where(known, x, 0), 0) / d.count, 0)

    plain = jnp.where(known, model.features(now.w, samples, s.activation), 0)
    f, y = centred(plain), centred((labels[:, None] == jnp.arange(now.v.shape[1])).astype(now.v.dtype))
    sent = (y - f @ now.v) @ now.v.T
    pull = gradient(now, d, s)
    count = min(SAMPLES, len(samples))
    nodes, rows = f.T @ f, f[:count] @ plain[:count].T
    return {
        "pull_v": jnp.linalg.norm(pull.v),
        "pull_w": jnp.linalg.norm(pull.w),
        "change_v": jnp.linalg.norm(now.v - before.v),
        "change_w": jnp.linalg.norm(now.w - before.w),
        "sent": jnp.linalg.norm(sent),
        "nodes": overlaps(nodes, nodes.shape[0]),
        "samples": overlaps(rows, jnp.minimum(d.count, count)),
        "high": high(nodes[:NODES, :NODES]),
    }


def overlaps(gram: Float[Array, "n n"], rows: int | Int[Array, ""]) -> Float[Array, ""]:
    """The mean modulus off the diagonal over that on it; of the first rows and columns, all others are zero."""
    diagonal = jnp.sum(jnp.abs(jnp.diag(gram)))
    return (jnp.sum(jnp.abs(gram)) - diagonal) / diagonal / (rows - 1)


def high(gram: Float[Array, "n n"]) -> Float[Array, ""]:
    """A high quantile of the moduli off the diagonal, over the mean on it."""
    first, second = jnp.triu_indices(gram.shape[0], 1)
    return jnp.quantile(jnp.abs(gram[first, second]), HIGH) / jnp.mean(jnp.abs(jnp.diag(gram)))


def trial(s: Training, key: PRNGKeyArray) -> jd.Observables:
    """One network, recorded after each epoch: what pulls both layers, how they change, and when they change most."""
    curves = train(s, key, functools.partial(watch, s)).curves
    when = {name: jnp.argmax(curves[name]).astype(jnp.float64) * s.every for name in ("change_v", "change_w")}
    rise = curves["pull_w"] / curves["pull_w"][0]
    return jd.observables(
        measured={name: jnp.max(curves[name]).astype(jnp.float64) for name in ("nodes", "samples")},
        recorded={f"peak_{name.removeprefix('change_')}": at for name, at in when.items()}
        | {f"curve_{name}": jd.named(curve.astype(jnp.float64), "epoch") for name, curve in curves.items()}
        | {"rise": jnp.max(rise).astype(jnp.float64)},
        coords={"epoch": range(0, s.epochs + 1, s.every)},
    )
