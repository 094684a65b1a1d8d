"""Claim on the edge of stability: the sharpness of a trained tanh network settles at 2 over the step size."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray, PyTree
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting, train
from jaxdyn.theories.cal.model import Tanh, tanh_init, tanh_loss
from jaxdyn.theories.cal.setting import Network

__all__ = ["CLAIMS", "target", "trial"]


def target(x: Float[Array, "n i"]) -> Float[Array, " n"]:
    r"""The smooth target :math:`2(\sin 2x_1 + x_2x_3 + \cos x_4)`; inputs that are missing count as 0."""
    z = jnp.pad(x, ((0, 0), (0, max(0, 4 - x.shape[1]))))
    return 2 * (jnp.sin(2 * z[:, 0]) + z[:, 1] * z[:, 2] + jnp.cos(z[:, 3]))


def _hvp(params: PyTree, v: PyTree, x: Array, y: Array) -> PyTree:
    return jax.jvp(lambda p: jax.grad(tanh_loss)(p, x, y), (params,), (v,))[1]


def _power(params: PyTree, v: PyTree, x: Array, y: Array, shift: Array, count: int) -> tuple[PyTree, Array]:
    """``count`` power iterations on H + shift from v, and the Rayleigh quotient of H that they reach."""

    def unit(w: PyTree) -> PyTree:
        return optax.tree.scale(1 / optax.tree.norm(w), w)

    def body(_: Any, w: PyTree) -> PyTree:
        return unit(jax.tree.map(lambda h, z: h + shift * z, _hvp(params, w, x, y), w))

    v = jax.lax.fori_loop(0, count, body, unit(v))
    return v, optax.tree.vdot(v, _hvp(params, v, x, y))


def _follow(s: Network, eta: Array, params: Tanh, v: Tanh, x: Array, y: Array) -> tuple[Array, Array]:
    """Sharpness and loss along gradient descent; every power iteration starts from the last direction."""
    tx = optax.sgd(eta)
    step = train.make_step(tanh_loss, tx)
    shift = 0.25 / eta  # an eighth of the edge: moves the negative end of the spectrum out of the way

    def segment(carry: tuple) -> tuple:
        state, v, _ = carry
        state = jax.lax.fori_loop(0, s.steps // s.samples, lambda _, c: step(c, x, y), state)
        return state, *_power(state.params, v, x, y, shift, s.iterations)

    first = train.init(tx, params), *_power(params, v, x, y, shift, s.iterations)
    return train.record(segment, first, lambda c: (c[2], tanh_loss(c[0].params, x, y)), samples=s.samples, every=1)[1]


def trial(s: Network, key: PRNGKeyArray) -> jd.Observables:
    """Train at the step size, and once more at a small one (the same for all cells of a seed), which stands for the flow."""
    k_x, k_init, k_v = jax.random.split(key, 3)
    x = jax.random.normal(k_x, (s.points, s.inputs), jnp.float64)
    y = target(x)
    sizes = (s.inputs, s.hidden, s.hidden, 1)
    params, v = tanh_init(k_init, sizes), tanh_init(k_v, sizes)
    sharpness, loss = _follow(s, s.eta, params, v, x, y)
    flow, _ = _follow(s, jnp.float64(s.reference), params, v, x, y)
    quarter = s.samples // 4
    return jd.observables(
        predicted={"sharpness": 2 / s.eta},
        measured={"sharpness": jnp.mean(sharpness[-quarter:])},
        recorded={
            "flow": jnp.max(flow[-quarter:]),
            "before": jnp.mean(sharpness[-2 * quarter : -quarter]),
            "curve": jd.named(sharpness, "sample"),
            "loss": jd.named(loss, "sample"),
            "step": jd.named(jnp.arange(s.samples + 1) * (s.steps // s.samples), "sample"),
        },
    )


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Last quarter's sharpness over 2 / step size, and that it has settled.

    Runs whose flow (the run at the small reference step) stays below the edge are outside the claim and passed over; where
    that holds for all of them, they are judged nevertheless, and the claim fails.
    """
    ratio = ds.measured_sharpness / ds.predicted_sharpness
    moved = np.abs(ds.measured_sharpness - ds.before) / ds.predicted_sharpness
    reached = ds.flow > ds.predicted_sharpness
    if bool(reached.any()):
        ratio, moved = ratio.where(reached), moved.where(reached)
    return [
        jd.within("sharpness in the last quarter over 2 / step size", ratio, 0.9, 1.1),
        jd.at_most("its change since the third quarter, over 2 / step size", moved, 0.05),
    ]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Sharpness in units of the edge along training, a band over seeds for every step size."""
    ax = fig.subplots()
    runs = ds if "eta" in ds.dims else ds.expand_dims("eta")
    colors = ("measured", "third", "fourth", "fifth")
    for i, eta in enumerate(runs.eta.values):
        part = runs.isel(eta=i)
        step = part.step.isel({d: 0 for d in part.step.dims if d != "sample"})
        plotting.band(ax, step.values, part.curve.transpose(..., "sample") * eta / 2, rf"$\eta = {eta:g}$", colors[i % len(colors)])
    ax.axhline(1, color=plotting.COLORS["theory"], linestyle="--", label=r"edge: sharpness $2/\eta$")
    ax.set(xlabel="step", ylabel=r"sharpness $\cdot\,\eta/2$")


CLAIMS = (
    jd.Claim(
        id="cal.eos_mlp",
        statement=r"Full-batch gradient descent on a tanh network 5-24-24-1 settles at the sharpness $2/\eta$, where that of "
        r"gradient flow grows beyond it (target $2(\sin 2x_1 + x_2x_3 + \cos x_4)$ on 40 points).",
        source="arXiv:2103.00065",
        trial=trial,
        quick=jd.grid(Network, eta=[0.1, 0.2, 0.4]),
        paper=jd.grid(Network, eta=[0.05, 0.1, 0.2, 0.3, 0.4], steps=20000, samples=100, iterations=40),
        seeds=8,
        paper_seeds=64,
        judge=judge,
        min_ok=0.9,  # a start far sharper than the edge may be thrown to infinity before it settles
        controls={
            r"$\eta = 0.02$: below the edge": {"eta": 0.02},
            "the flow's sharpness": lambda ds: ds.assign(measured_sharpness=ds.flow),
        },
        plot=plot,
    ),
)
