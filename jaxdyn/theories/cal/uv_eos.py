r"""Two scalars with loss :math:`L = \tfrac12(uv-1)^2`: how sharp the minima are in which gradient flow and gradient descent end.

Both start from one point and run to the end. The theory gives the flow's final sharpness in closed form, and the leading change of
it that a finite step size makes; no end can be sharper than the edge :math:`2/\eta`.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from jaxtyping import PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import flow, plotting, train
from jaxdyn.status import DIVERGED, OK, UNCONVERGED
from jaxdyn.theories.cal.dynamics import pair as theory
from jaxdyn.theories.cal.model import pair_loss
from jaxdyn.theories.cal.orders import order_checks


@jd.setting
class Pair:
    """Gradient descent and gradient flow of two scalars with loss ``(uv - 1)^2 / 2`` from one start."""

    eta: jd.Swept = jd.field(0.1, above=0)  # step size
    optimizer: jd.Code = jd.code("gd", "adam")  # gradient descent (gd) or Adam
    start: jd.Code = jd.code("reference", "random")  # reference: the point (u, v), random: a point near (3, 0.2)
    u: jd.Swept = 3.0  # first number of the reference start
    v: jd.Swept = 0.2  # second number of the reference start
    horizon: jd.Swept = jd.field(20.0, above=0)  # time at which gradient flow ends
    steps: int = jd.field(3000, at_least=1)  # steps of the optimizer


SETTLED = 1e-10  # residual |uv - 1| at which a run has stopped


def trial(s: Pair, key: PRNGKeyArray) -> jd.Observables:
    """Gradient descent and gradient flow from one start, both to the end."""
    u0, v0 = jax.random.uniform(key, (2,), jnp.float64, jnp.array([2.5, 0.05]), jnp.array([3.0, 0.25]))
    drawn = s.start == "random"
    start = jnp.where(drawn, u0, s.u), jnp.where(drawn, v0, s.v)
    tx = train.switched(s.optimizer, {"gd": optax.sgd(s.eta), "adam": optax.adam(s.eta)})
    step = train.make_step(pair_loss, tx)
    last, _ = train.record(step, train.init(tx, start), lambda c: None, samples=1, every=s.steps)
    u, v = last.params
    sol = flow.gradient_flow(pair_loss, start, jnp.stack([0 * s.horizon, s.horizon]), rtol=1e-11, atol=1e-13)
    sharpness = u**2 + v**2
    flow_end = sol.ys[0][-1] ** 2 + sol.ys[1][-1] ** 2
    of_flow = theory.flow_sharpness(*start)
    settled = jnp.where(jnp.abs(u * v - 1) < SETTLED, OK, UNCONVERGED)
    ended = jnp.where(jnp.isfinite(sharpness), settled, DIVERGED)
    return jd.observables(
        predicted={"edge": theory.edge(s.eta), "flow": of_flow, "lead": of_flow + s.eta * theory.flattening(*start)},
        measured={"edge": sharpness, "flow": flow_end, "lead": sharpness},
        recorded={"start_sharpness": start[0] ** 2 + start[1] ** 2},
        status=jnp.where(sol.status == OK, ended, sol.status),
    )


SMALL = 0.03  # step sizes up to here are far below the edge for all starts, and serve the order in the step size


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """End of the flow; no end above the edge; and the end at small steps, to the order after the leading one."""
    small = ds.sel(eta=ds.eta[ds.eta <= SMALL]) if "eta" in ds.dims else ds
    return [
        jd.at_most("flow: relative error of the final sharpness", jd.relative_error(ds, "flow"), 1e-8),
        jd.at_most("final sharpness over 2 / step size", ds.measured_edge / ds.predicted_edge, 1.0),
        *order_checks(small, "lead", 2, 0.15),
    ]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Final sharpness against the step size, with the edge and the flow's; its change at small steps by order."""
    left, right = fig.subplots(1, 2)
    runs = ds.measured_edge.transpose("eta", ...).values.reshape(ds.sizes["eta"], -1)
    left.plot(ds.eta, runs, "o", color=plotting.COLORS["measured"], alpha=0.5, markeredgewidth=0)
    ends = np.unique(ds.predicted_flow.values[np.isfinite(ds.predicted_flow.values)])
    left.hlines(ends, ds.eta.min(), ds.eta.max(), color=plotting.COLORS["theory"], linewidth=0.8, label="where the flow stops")
    eta = np.geomspace(float(ds.eta.min()), float(ds.eta.max()), 100)
    left.plot(eta, 2 / eta, ":", color=plotting.COLORS["control"], label=r"edge $2/\eta$")
    left.set(xlabel=r"step size $\eta$", ylabel="final sharpness", xscale="log", ylim=(0, 14))
    small = ds.isel(eta=np.flatnonzero(ds.eta.values <= SMALL))
    plotting.order(right, small.eta, np.abs(small.measured_lead - small.predicted_flow), 1, "minus the flow's sharpness")
    plotting.order(right, small.eta, np.abs(small.measured_lead - small.predicted_lead), 2, "minus its leading change", "third")
    right.set_ylabel("final sharpness of gradient descent")


study = jd.Study(
    evidence="network",
    bounds=jd.tuned(on="0:8", confirmed_on="45000000:45000008"),
    trial=trial,
    quick=jd.grid(Pair, eta=[0.025, 0.0125, 0.00625, 0.003125, 0.1, 0.2, 0.3], start=["reference", "random"]),
    seeds=8,
    paper_seeds=256,
    source="arXiv:2103.00065 (edge of stability); final sharpness and its leading change derived here",
    tested="Gradient descent ({steps} steps) and gradient flow from $(u_0, v_0) = (3, 0.2)$ and from random points near it, at "
    "step sizes {eta}; {seeds} seeds. The small-step law is judged on the step sizes up to 0.03.",
)

CLAIMS = (
    study.claim(
        id="cal.uv_eos",
        title="How sharp a minimum gradient descent ends in on a two-factor loss",
        statement=r"For the loss $\tfrac12(uv-1)^2$, whose minima have the sharpness $u^2+v^2$, gradient flow from $(u_0, v_0)$ "
        r"ends at the sharpness $\sqrt{d^2+4}$ with $d = u_0^2-v_0^2$. From random starts with $2.5 \le u_0 \le 3$ and "
        r"$.05 \le v_0 \le .25$, and from $(3, .2)$, gradient descent with step size $\eta$ ends only where "
        r"$u^2+v^2 \le 2/\eta$, and for small $\eta$ at the flow's sharpness minus $\eta\,d^2J/\sqrt{d^2+4} + O(\eta^2)$, where "
        r"$J = \int_{u_0v_0}^1(1-p)/\sqrt{d^2+4p^2}\,dp$.",
        decides={"only": ("final sharpness over 2 / step size", r"an edge at $1/\eta$, as in the descent lemma")},
        judge=judge,
        controls={
            r"$\eta = 0.6$ diverges": jd.Control({"eta": 0.6, "start": "reference"}, diverges=True),
            "Adam": jd.Control({"optimizer": "adam"}, breaks="Gradient descent"),
        },
        rivals={
            "nothing moves": jd.off(predicted_flow="start_sharpness", predicted_lead="start_sharpness"),
            "the flow ends at the flattest minimum, u = v": jd.swap(predicted_flow=2.0),
            "the flow's end at any step": jd.swap(predicted_lead="predicted_flow"),
            r"an edge at $1/\eta$, as in the descent lemma": jd.scaled(predicted_edge=0.5),
        },
        plot=plot,
        caption=r"Left: final sharpness $u^2+v^2$ against the step size, one point per run; lines: where the flow stops from "
        r"each start; dotted: the edge $2/\eta$. Right, at small steps: final sharpness minus the flow's, and minus its leading "
        "change, median and range over runs; dashed: slopes 1 and 2.",
    ),
)
