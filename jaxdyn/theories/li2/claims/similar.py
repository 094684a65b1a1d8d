r"""A rule of thumb on repulsion, along training: nodes with similar features push each other apart.

The authors' training (Adam, decay coupled into the gradient of both layers) on a random half of a small table; the sign of
:math:`B_{jl}` is compared with that of the two nodes' similarity. Letters as in ``dynamics/repulsion.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import plotting, train
from jaxdyn.data.groups import parse
from jaxdyn.errors import given
from jaxdyn.theories.li2 import model
from jaxdyn.theories.li2.dynamics import ridge

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CLAIMS", "Similar", "trial"]

KINDS = ("square", "relu")
WHICH = ("most similar", "random")


@jd.setting
class Similar:
    """A short training; ``counted`` pairs of each sort are looked at."""

    activation: jd.Code = jd.code(*KINDS)
    lr: jd.Swept = 0.005
    decay: jd.Swept = 2e-4
    group: str = "23"
    samples: int = 265
    hidden: int = 256
    every: int = 50
    records: int = 6
    counted: int = 200
    dtype: str = "float32"

    def __post_init__(self) -> None:
        """Refuse more pairs than there are, and trainings that do not move."""
        order, pairs = parse(self.group).order, self.hidden * (self.hidden - 1) // 2
        if not 1 <= self.counted <= pairs or not 2 <= self.samples <= order**2:
            allowed = f"counted from 1 to {pairs}, samples from 2 to {order**2}"
            raise jd.UsageError(f"{allowed}, {given(self, 'counted', 'samples', 'hidden')}")
        if min(self.lr, self.decay) <= 0 or min(self.every, self.records) < 1:
            found = given(self, "lr", "decay", "every", "records")
            raise jd.UsageError(f"lr and decay are positive, every and records at least 1, {found}")


def trial(s: Similar, key: PRNGKeyArray) -> jd.Observables:
    """Signs of similarity and of B for both sorts of pairs, along the training."""
    group = parse(s.group)
    k_rows, k_init, k_pairs = jax.random.split(key, 3)
    samples = jax.random.choice(k_rows, model.pairs(group.order), (s.samples,), replace=False)
    labels = model.products(group, samples)

    def loss(params: model.Params) -> Float[Array, ""]:
        return jax.lax.switch(s.activation, [lambda p, a=a: model.loss(p, samples, labels, a) for a in KINDS], params)

    tx = optax.chain(optax.add_decayed_weights(s.decay), optax.adam(s.lr))
    upper = jnp.triu_indices(s.hidden, 1)
    chosen = jax.random.choice(k_pairs, len(upper[0]), (s.counted,), replace=False)

    def observe(state: train.State) -> tuple[Array, Array]:
        w = state.params.w.astype(jnp.float64)
        f = jax.lax.switch(s.activation, [lambda w, a=a: model.features(w, samples, a) for a in KINDS], w)
        b = ridge.gram_inverse(f, s.samples * s.decay.astype(jnp.float64) / 2)[upper]
        unit = model.centred(f)
        unit = unit / jnp.maximum(jnp.linalg.norm(unit, axis=0), 1e-30)
        similar = (unit.T @ unit)[upper]
        most = jax.lax.top_k(jnp.abs(similar), s.counted)[1]
        at = jnp.stack([most, chosen])
        return -jnp.sign(similar[at]), jnp.sign(b[at])

    state = train.init(tx, model.init(k_init, group.order, s.hidden, s.dtype))
    state, (said, found) = train.record(train.make_step(loss, tx), state, observe, samples=s.records, every=s.every)
    epochs = tuple(s.every * i for i in range(s.records + 1))
    return jd.observables(
        predicted={"sign": jd.named(said, "epoch which pair")},
        measured={"sign": jd.named(found, "epoch which pair")},
        status=train.finite_status(state.params),
        coords={"epoch": epochs, "which": WHICH},
    )


def _rate(ds: xr.Dataset) -> xr.DataArray:
    """The share of pairs whose signs agree; NaN for runs that are not ok."""
    return (ds.measured_sign == ds.predicted_sign).mean("pair").where(ds.status == 0).mean("seed")


def _exchanged(ds: xr.Dataset) -> xr.Dataset:
    """Random pairs taken for the most similar ones."""
    return ds.isel(which=[1, 0]).assign_coords(which=list(WHICH))


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Shares of agreeing signs among the most similar pairs, means over seeds: at the end, their rise, and against random pairs."""
    most, random = (_rate(ds).sel(which=which) for which in WHICH)
    return [
        jd.at_least("share of the most similar pairs that repel, at the end", most.isel(epoch=-1), 0.5),
        jd.at_least("its rise after the first record", most.isel(epoch=-1) - most.isel(epoch=1), 0.0),
        jd.at_least("its excess over random pairs, at the end", (most - random).isel(epoch=-1), 0.0),
    ]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Shares of agreeing signs along training."""
    axes = fig.subplots(1, 2, sharey=True)
    for ax, kind in zip(axes, KINDS, strict=True):
        part = ds.sel(activation=kind) if kind in np.atleast_1d(ds.activation.values) else ds.isel(activation=0)
        agree = (part.measured_sign == part.predicted_sign).mean("pair")
        for which, color in zip(WHICH, ("measured", "control"), strict=True):
            plotting.band(ax, ds.epoch, agree.sel(which=which), which, color, marker="o")
        ax.set(xlabel="epoch", title=str(part.activation.values))
    axes[0].set(ylabel="share of pairs with the predicted sign")


CLAIMS = (
    jd.Claim(
        id="li2.repulsion_raw",
        statement=r"A rule of thumb, no identity: among the most similar pairs of nodes $B_{jl}$ has the sign of "
        r"$-\tilde f_j^\top \tilde f_l$, ever more so along training. How often?",
        source="arXiv:2509.21519, Theorem 6; arXiv:2605.08119",
        trial=trial,
        quick=jd.grid(Similar, activation=list(KINDS)),
        paper=jd.grid(Similar, activation=list(KINDS), group="71", samples=2016, hidden=2048),
        seeds=8,
        paper_seeds=15,
        judge=judge,
        expected="measured",
        controls={"random pairs": _exchanged},
        plot=plot,
    ),
)
