r"""Claim on the order of events in training: first the top layer changes, then the hidden one, while nodes hardly overlap.

The norm of an epoch's change of V has its maximum before that of W. The theory's independent nodes need
:math:`\tilde F^\top \tilde F` and :math:`P F F^\top` to be nearly diagonal. Letters as in ``trials/training.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax.numpy as jnp
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.li2 import model
from jaxdyn.theories.li2.published import OFF_DIAGONAL
from jaxdyn.theories.li2.trials.training import Data, Training, train

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CLAIMS", "overlaps", "trial", "watch"]

SAMPLES = 256  # rows of the samples' Gram matrix that are used


def watch(now: model.Params, before: model.Params, d: Data) -> dict[str, Array]:
    """Norms of the change since the last record and of G_F, and how far both Gram matrices are from diagonal."""
    samples, known = d.samples.reshape(-1, 2), (d.number.reshape(-1) < d.count)[:, None]
    labels = d.labels.reshape(-1)

    def centred(x: Array) -> Array:
        return jnp.where(known, x - jnp.sum(jnp.where(known, x, 0), 0) / d.count, 0)

    plain = jnp.where(known, model.features(now.w, samples), 0)
    f, y = centred(plain), centred((labels[:, None] == jnp.arange(now.v.shape[1])).astype(now.v.dtype))
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
    """The mean modulus off the diagonal over that on it."""
    diagonal = jnp.sum(jnp.abs(jnp.diag(gram)))
    return (jnp.sum(jnp.abs(gram)) - diagonal) / diagonal / (gram.shape[0] - 1)


def trial(s: Training, key: PRNGKeyArray) -> jd.Observables:
    """One network, recorded after each epoch: when V and W change most."""
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
    """V's change peaks before W's in each run; both Gram matrices stay nearly diagonal."""
    return [
        jd.at_least("epochs by which V's largest change precedes W's", ds.peak_w - ds.peak_v, 1.0),
        jd.at_most("nodes' Gram matrix, off diagonal over on it", ds.measured_nodes - ds.predicted_nodes, OFF_DIAGONAL),
        jd.at_most("samples' Gram matrix, off diagonal over on it", ds.measured_samples - ds.predicted_samples, OFF_DIAGONAL),
    ]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Changes of both layers and the gradient that the hidden one receives, each over its maximum."""
    ax = fig.subplots()
    for i, (name, label) in enumerate((("change_v", "change of V"), ("change_w", "change of W"), ("sent", "$|G_F|$"))):
        part = ds[f"curve_{name}"].isel({axis: 0 for axis in ("lr", "decay") if axis in ds.dims})
        part = (part / part.max("epoch")).transpose("seed", "epoch")
        plotting.band(ax, ds.epoch, part, label, plotting.CYCLE[i])
    ax.set(xlabel="epoch", ylabel="over its maximum")


STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Training, share=0.4, epochs=80, every=1),
    paper=jd.grid(Training, group="71", share=0.4, lr=[5e-4, 2e-3], hidden=2048, epochs=300, every=1),
    seeds=8,
    paper_seeds=15,
    source="arXiv:2509.21519, figure 3",
)

CLAIMS = (
    STUDY.claim(
        id="li2.stages",
        statement=r"In networks with $\sigma = x^2$ trained by Adam, the top layer moves first: in each run an epoch's change "
        r"$\|\Delta V\|$ is largest before $\|\Delta W\|$ is; meanwhile the off-diagonal entries of $\tilde F^\top \tilde F$ and "
        r"of $P F F^\top$ are on average at most 8% of the diagonal ones, as independent nodes require.",
        judge=judge,
        controls={"V is the ridge solution from the start": {"ridge": True}, "16 nodes": {"hidden": 16}},
        plot=plot,
        caption=r"Norms of an epoch's change of V and of W and of the gradient $G_F$ that the hidden layer receives, each over its "
        "maximum, along training; median and central 90% of the runs.",
    ),
)
