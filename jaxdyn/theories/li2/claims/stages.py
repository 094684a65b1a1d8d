r"""Claims on the order of events in training: the top layer first, then the hidden one, with nodes hardly overlapping.

The norm of an epoch's change of V reaches its maximum before that of W does. The theory's independent nodes need
:math:`\tilde F^\top \tilde F` and :math:`P F F^\top` to be nearly diagonal. Letters as in ``training.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax.numpy as jnp
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.li2 import model
from jaxdyn.theories.li2.training import Data, Training, train

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CLAIMS", "overlaps", "trial", "watch"]

SAMPLES = 256  # rows of the samples' Gram matrix that are looked at


def watch(now: model.Params, before: model.Params, d: Data) -> dict[str, Array]:
    """Norms of the change since the last record and of G_F, and how far both Gram matrices are from diagonal."""
    samples, known = d.samples.reshape(-1, 2), (d.number.reshape(-1) < d.count)[:, None]
    labels = d.labels.reshape(-1)

    def seen(x: Array) -> Array:
        return jnp.where(known, x - jnp.sum(jnp.where(known, x, 0), 0) / d.count, 0)

    plain = jnp.where(known, model.features(now.w, samples), 0)
    f, y = seen(plain), seen((labels[:, None] == jnp.arange(now.v.shape[1])).astype(now.v.dtype))
    sent = (y - f @ now.v) @ now.v.T
    count = min(SAMPLES, len(samples))
    return {
        "change_v": jnp.linalg.norm(now.v - before.v),
        "change_w": jnp.linalg.norm(now.w - before.w),
        "sent": jnp.linalg.norm(sent),
        "nodes": overlaps(f.T @ f),
        "samples": overlaps(f[:count] @ plain[:count].T),
    }


def overlaps(gram: Float[Array, "n n"]) -> Float[Array, ""]:
    """The mean size off the diagonal over that on it."""
    diagonal = jnp.sum(jnp.abs(jnp.diag(gram)))
    return (jnp.sum(jnp.abs(gram)) - diagonal) / diagonal / (gram.shape[0] - 1)


def trial(s: Training, key: PRNGKeyArray) -> jd.Observables:
    """One network, looked at after every epoch: when V and W change most."""
    curves = train(s, key, watch).curves
    when = {name: jnp.argmax(curves[f"change_{name}"]).astype(jnp.float64) * s.every for name in ("v", "w")}
    return jd.observables(
        predicted={"nodes": jnp.zeros((), jnp.float64), "samples": jnp.zeros((), jnp.float64)},
        measured={name: jnp.max(curves[name]).astype(jnp.float64) for name in ("nodes", "samples")},
        recorded={f"peak_{name}": at for name, at in when.items()}
        | {f"curve_{name}": jd.named(curve.astype(jnp.float64), "epoch") for name, curve in curves.items()},
        coords={"epoch": range(0, s.epochs + 1, s.every)},
    )


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """In every run V's change peaks before W's; both Gram matrices stay near diagonal."""
    return [
        jd.at_least("epochs by which V's largest change precedes W's", ds.peak_w - ds.peak_v, 1.0),
        jd.at_most("nodes' Gram matrix, off diagonal over on it", ds.measured_nodes - ds.predicted_nodes, 0.08),
        jd.at_most("samples' Gram matrix, off diagonal over on it", ds.measured_samples - ds.predicted_samples, 0.08),
    ]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Changes of both layers and the gradient that the hidden one receives, each over its maximum."""
    ax = fig.subplots()
    for i, (name, label) in enumerate((("change_v", "change of V"), ("change_w", "change of W"), ("sent", "$|G_F|$"))):
        part = ds[f"curve_{name}"].isel({axis: 0 for axis in ("lr", "decay") if axis in ds.dims})
        part = (part / part.max("epoch")).transpose("seed", "epoch")
        plotting.band(ax, ds.epoch, part, label, plotting.CYCLE[i])
    ax.set(xlabel="epoch", ylabel="over its maximum")


CLAIMS = (
    jd.Claim(
        id="li2.stages",
        statement=r"The top layer moves first: an epoch's change $\|\Delta V\|$ is largest before $\|\Delta W\|$ is, in every run; "
        r"all the while the off-diagonal entries of $\tilde F^\top \tilde F$ and of $P F F^\top$ are at most 8% of the diagonal "
        r"ones, as independent nodes need.",
        source="arXiv:2509.21519, figure 3",
        trial=trial,
        quick=jd.grid(Training, share=0.4, epochs=80, every=1),
        paper=jd.grid(Training, group="71", share=0.4, lr=[5e-4, 2e-3], hidden=2048, epochs=300, every=1),
        seeds=8,
        paper_seeds=15,
        judge=judge,
        controls={"V is the ridge solution from the start": {"ridge": True}, "16 nodes": {"hidden": 16}},
        plot=plot,
    ),
)
