r"""The order of events in training: the hidden layer's signal rises, the network generalises, it is gone; V moves before W.

Recorded are what each layer is pulled by, how far it moves, and how nodes overlap: the theory's independent nodes need
:math:`\tilde F^\top \tilde F` and :math:`P F F^\top` to be nearly diagonal. Adam's first steps have the size of the rate,
whatever the gradient: at rate .01 they are the largest of all, and the order of the layers is asked for at .002, where they are
not. Letters as in ``training.py``.
"""

from __future__ import annotations

import functools

import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, Int, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.li2 import model
from jaxdyn.theories.li2.published import OFF_DIAGONAL
from jaxdyn.theories.li2.training import Data, Training, gradient, train

SAMPLES = 256  # rows of the samples' Gram matrix that are used
NODES = 128  # of the nodes' one, for its quantile
HIGH = 0.95  # quantile of the moduli off the diagonal


def watch(s: Training, now: model.Params, before: model.Params, d: Data) -> dict[str, Array]:
    """Norms of the loss's derivatives, of the change since the last record and of G_F; overlaps in both Gram matrices."""
    samples, known = d.samples.reshape(-1, 2), (d.number.reshape(-1) < d.used)[:, None]
    labels = d.labels.reshape(-1)

    def centred(x: Float[Array, "n columns"]) -> Float[Array, "n columns"]:
        return jnp.where(known, x - jnp.sum(jnp.where(known, x, 0), 0) / d.used, 0)

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
        "samples": overlaps(rows, jnp.minimum(d.used, count)),
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


GENERAL = 0.95  # test accuracy that counts as generalising
RISE, FALL = "|G_F|, largest over first", "|G_F|, last over largest"
EARLIER = "how much earlier V's {} is largest than W's, in parts of the epochs to W's, mean"


def reached(ds: xr.Dataset, name: str, level: float) -> xr.DataArray:
    """The first epoch at which a curve is at the level; NaN if it never is."""
    hit = ds[f"curve_{name}"] >= level
    return ds.epoch.isel(epoch=hit.argmax("epoch")).drop_vars("epoch").where(hit.any("epoch"))


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Networks generalise and nodes hardly overlap; the signal rises, is largest before the network generalises, and vanishes."""
    sent, close = ds.curve_sent, ds.curve_high
    start, largest = sent.isel(epoch=0, drop=True), sent.max("epoch")
    peak = ds.epoch.isel(epoch=sent.fillna(-1).argmax("epoch")).drop_vars("epoch").where(sent.notnull().all("epoch"))
    return [
        jd.gate("test accuracy at the end", ds.curve_test_accuracy.isel(epoch=-1), at_least=GENERAL),
        jd.gate("nodes' Gram matrix, mean off diagonal over on it", ds.measured_nodes, at_most=OFF_DIAGONAL),
        jd.gate("its high quantile, largest over first", close.max("epoch") / close.isel(epoch=0, drop=True), at_most=1.25),
        jd.at_least(RISE, largest / start, 1.3),
        jd.at_least("epochs from the largest |G_F| to a test accuracy of one half", reached(ds, "test_accuracy", 0.5) - peak, 1.0),
        jd.at_most(FALL, sent.isel(epoch=-1, drop=True) / largest, 0.25),
    ]


def largest(ds: xr.Dataset, name: str) -> xr.DataArray:
    """The epoch at which a curve is largest, between records by a parabola through the largest and its neighbours."""

    def vertex(curve: np.ndarray) -> np.ndarray:
        at = np.clip(np.nan_to_num(curve, nan=-np.inf).argmax(-1), 1, curve.shape[-1] - 2)
        before, top, after = (np.take_along_axis(curve, (at + i)[..., None], -1)[..., 0] for i in (-1, 0, 1))
        bend = before - 2 * top + after
        return at + np.where(bend < 0, 0.5 * (before - after) / np.where(bend < 0, bend, 1), 0)

    place = xr.apply_ufunc(vertex, ds[f"curve_{name}"], input_core_dims=[["epoch"]])
    return float(ds.epoch[0]) + place * float(ds.epoch[1] - ds.epoch[0])


def judge_order(ds: xr.Dataset) -> list[jd.Check]:
    """Networks generalise, and Adam's first steps are not their largest; how much earlier gradient and change of V are largest."""
    first = xr.concat([ds[f"curve_change_{n}"].isel(epoch=1) / ds[f"curve_change_{n}"].max("epoch") for n in "vw"], "layer")
    earlier = {kind: 1 - largest(ds, f"{kind}_v") / largest(ds, f"{kind}_w") for kind in ("pull", "change")}
    return [
        jd.gate("test accuracy at the end", ds.curve_test_accuracy.isel(epoch=-1), at_least=0.9),
        jd.gate("change of a layer in the first epoch over its largest", first, at_most=0.97),
        jd.mean_within(EARLIER.format("gradient"), earlier["pull"], over="seed", low=0.05),
        jd.mean_within(EARLIER.format("change"), earlier["change"], over="seed", low=0.0),
    ]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """The signal that the hidden layer receives, and what pulls both layers, each over its maximum, with the test accuracy."""
    ax = fig.subplots()
    ds = ds.isel({axis: 0 for axis in ("lr", "decay") if axis in ds.dims})
    names = (("sent", "$|G_F|$"), ("pull_v", "gradient of V"), ("pull_w", "gradient of W"))
    for i, (name, label) in enumerate(names):
        part = (ds[f"curve_{name}"] / ds[f"curve_{name}"].max("epoch")).transpose("seed", "epoch")
        plotting.band(ax, ds.epoch, part, label, plotting.CYCLE[i])
    plotting.band(ax, ds.epoch, ds.curve_test_accuracy.transpose("seed", "epoch"), "test accuracy", plotting.CYCLE[3])
    ax.set(xlabel="epoch", ylabel="over its maximum; accuracy")


PAPER = jd.grid(Training, group="71", share=0.4, lr=[5e-4, 2e-3], hidden=2048, epochs=300, every=1)
STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Training, share=0.8, lr=0.01, decay=1e-4, epochs=200, every=1),
    paper=PAPER,
    seeds=6,
    paper_seeds=15,
    source="arXiv:2509.21519, figure 3",
    evidence="network",
    tested="Networks of {hidden} nodes on {share} of the pairs of residues modulo {group}, Adam at rate {lr}, decay {decay}, "
    "{epochs} epochs, recorded after each; {seeds} seeds.",
)
EXCHANGED = jd.swap(  # W's curves as V's, and V's as W's
    curve_pull_v="curve_pull_w", curve_pull_w="curve_pull_v", curve_change_v="curve_change_w", curve_change_w="curve_change_v"
)

CLAIMS = (
    STUDY.claim(
        id="li2.stages",
        talks=("grokking:li2-figure-stages",),
        title="The hidden layer's signal peaks before the network generalises",
        statement=r"In networks of 256 nodes with $\sigma = x^2$ that Adam trains on squared errors of residues modulo 23 (2,048 "
        r"nodes and modulo 71 at paper scale) until they generalise, their nodes hardly overlapping, the signal $\|G_F\|$ that "
        "the hidden layer receives rises by at least 30% from its start, is largest before the test accuracy reaches one half, "
        "and ends at a quarter of its maximum at most.",
        judge=judge,
        decides={
            "largest": (
                "epochs from the largest |G_F| to a test accuracy of one half",
                "accuracy on the training pairs for that on the others",
            ),
        },
        bounds=jd.tuned(on="0:8", confirmed_on="5000:5008"),
        holds={"lr": (0.005, 0.02), "decay": (1e-4, 3e-4)},
        controls={"accuracy on the training pairs for that on the others": jd.swap(curve_test_accuracy="curve_train_accuracy")},
        rivals={"the signal stays as it is at the start": jd.off({RISE: 1.0, FALL: 1.0})},
        plot=plot,
        caption="Norms of the signal $G_F$ that the hidden layer receives and of the loss's gradients for V and W, each over "
        "its maximum, and test accuracy, along training; median and central 90% of the runs.",
    ),
    STUDY.claim(
        id="li2.layer_order",
        talks=("grokking:li2-figure-stages",),
        title="The top layer's gradient peaks before the hidden layer's",
        statement=r"In networks of 256 nodes with $\sigma = x^2$ that Adam trains on squared errors of residues modulo 23 (2,048 "
        "nodes and modulo 71 at paper scale) until they generalise, at a rate of .002 (.0005 at paper scale), at which its first "
        "steps are not the largest, the top layer V moves before the hidden layer W: on average the loss's gradient for V is "
        "largest earlier than that for W by at least 5% of the epochs until then, and V changes most before W does.",
        quick=STUDY.quick.replace(lr=0.002),
        paper=PAPER.replace(lr=5e-4),
        seeds=10,
        judge=judge_order,
        decides={"largest": (EARLIER.format("gradient"), "V and W exchanged")},
        bounds=jd.tuned(on="0:10", confirmed_on="70000001:70000011"),
        holds={"share": (0.8, 0.9)},
        controls={"V and W exchanged": jd.Control(EXCHANGED, breaks="the top layer V moves before")},
        rivals={"both layers move together": jd.off({EARLIER.format("gradient"): 0.0, EARLIER.format("change"): 0.0})},
        plot=plot,
        caption="Norms of the signal $G_F$ that the hidden layer receives and of the loss's gradients for V and W, each over "
        "its maximum, and test accuracy, along training; median and central 90% of the runs.",
    ),
)
