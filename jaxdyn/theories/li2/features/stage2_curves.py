r"""Nodes over time: energy and purity compared with the flow of each node alone, in the network's own epochs, and until when.

A network is trained by gradient descent with momentum. Predicted from the start and the training pairs alone, by
``dynamics/nodes.py``: energy and purity of every node at the epochs at which the network is recorded. Energy is
:math:`E(w/\|w\|)` over all pairs, in parts of the maximum of the irrep that is largest in the node; purity is the share of that
irrep. ``outputs`` is the norm of the flow's outputs over that of the targets; from the epoch on at which it would exceed
``nodes.END`` it stays there, and so do the flow's nodes. The window is the theory's own: as long as the flow's outputs are below
half of the targets, which it takes for the residual. ``curve_right`` is the share of the network's nodes whose largest irrep is
the one in which the flow, followed to its end, leaves them.

Until when, in training time, epochs times the rate: the theory's own end is where the flow's outputs are ``SMALL`` of the targets;
the network's nodes are independent until ``curve_right`` is largest. Letters as in ``training.py``.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.data.groups import parse
from jaxdyn.data.irreps import Irreps, decompose
from jaxdyn.theories.li2 import model
from jaxdyn.theories.li2.dynamics import energy, nodes
from jaxdyn.theories.li2.dynamics.nodes import END
from jaxdyn.theories.li2.features.single_nodes import targets
from jaxdyn.theories.li2.training import MOMENTUM, Data, Training, data, train

QUANTITIES = ("energy", "purity")
SMALL = 0.5  # outputs over targets up to which outputs count as small
SMOOTH = 5  # records of a running mean
WORLDS = ("flow", "other", "factor")  # the theory; on targets given to pairs in a random order; momentum as a factor of the rate


def heights(w: Float[Array, "D K"], irreps: Irreps) -> Float[Array, "quantity K"]:
    """Energy in parts of the maximum, and purity, of every node."""
    exact = jnp.asarray([peak.energy for peak in energy.peaks(irreps)], w.dtype)
    share = nodes.shares(w, irreps)
    unit = w / jnp.linalg.norm(w, axis=0)
    return jnp.stack([energy.energy(unit, irreps.group) / exact[jnp.argmax(share, 1)], jnp.max(share, 1)])


def flows(
    p: model.Params, y: Float[Array, "n M"], key: PRNGKeyArray, s: Training, worlds: int = len(WORLDS)
) -> tuple[Float[Array, "world t D K"], Float[Array, "world t"]]:
    """Weights w of all nodes, and outputs, at the records, in the first worlds; from a world's end on, those at its end."""
    epochs = jnp.arange(0, s.epochs + 1, s.every, dtype=jnp.float64)
    aims = jnp.stack([y, y[jax.random.permutation(key, len(y))], y])

    def one(world: tuple[Float[Array, "n M"], Array]) -> tuple[Array, Array]:
        aim, inertia = world
        by = nodes.Trainer(s.lr, s.decay, MOMENTUM, inertia)
        sol = nodes.rise(p, aim, epochs, by, s.activation)
        reached = jnp.isfinite(sol.ts)
        size = jax.vmap(lambda q: nodes.outputs(q, aim, s.activation))(sol.ys[0])
        w = jnp.where(reached[:, None, None], sol.ys[0].w, sol.y_end[0].w)
        return w, jnp.where(reached, size, nodes.END)

    asked = (aims[:worlds], jnp.array([True, True, False])[:worlds])
    return jax.lax.map(one, asked)  # not vmapped: each world has its own steps, and end


def crossed(x: Float[Array, " t"], y: Float[Array, " t"], level: float) -> Float[Array, ""]:
    """Where y first reaches a level, between records by a line in the logarithms of both; 0 if it never does, or from the start."""
    at = jnp.argmax(y >= level)
    a, b = jnp.maximum(at - 1, 1), jnp.maximum(at, 2)
    part = jnp.log(level / y[a]) / jnp.log(y[b] / y[a])
    return jnp.where((at >= 2) & (y[at] >= level), x[a] * (x[b] / x[a]) ** part, 0)


def highest(x: Float[Array, " t"], y: Float[Array, " t"]) -> Float[Array, ""]:
    """Where a curve is largest after two running means, between records by a parabola; 0 if that is at its first or last."""
    mean = jnp.full(SMOOTH, 1 / SMOOTH, y.dtype)
    smooth = jnp.convolve(jnp.convolve(y, mean, "valid"), mean, "valid")
    at = jnp.argmax(smooth)
    before, top, after = (smooth[jnp.clip(at + i, 0, len(smooth) - 1)] for i in (-1, 0, 1))
    shift = jnp.where(before - 2 * top + after < 0, 0.5 * (before - after) / (before - 2 * top + after), 0)
    return jnp.where((at > 0) & (at < len(smooth) - 1), x[at + SMOOTH - 1] + shift * (x[1] - x[0]), 0)


def _followed(s: Training, key: PRNGKeyArray, worlds: int) -> tuple[Array, Array, dict[str, Array]]:
    """Heights of all nodes [world, epoch, quantity, node] and outputs by the flow, and the records of the network."""
    # the start and the targets, as the trainer has them
    jd.require(s, s.optimizer == "sgd", "the flow is that of gradient descent with momentum", "optimizer")
    irreps = decompose(parse(s.group))
    k_data, k_init = jax.random.split(key)  # as in ``train``
    d, p = data(s, k_data), model.init(k_init, irreps.group.order, s.hidden, s.dtype)
    p = p._replace(v=p.v * jnp.asarray(s.top, s.dtype))
    y = targets(d, s).astype(jnp.float64)
    # the flow of each node: along training, and to its end
    w, size = flows(model.Params(*(leaf.astype(jnp.float64) for leaf in p)), y, jax.random.fold_in(key, 1), s, worlds)
    predicted = jax.lax.map(jax.vmap(lambda w: heights(w, irreps)), w)
    (end,) = nodes.follow(p, [("node", y)], s.activation)
    place = jnp.argmax(nodes.shares(end, irreps), 1)

    # the network along training
    def watch(now: model.Params, before: model.Params, d: Data) -> dict[str, Array]:
        right = jnp.mean(jnp.argmax(nodes.shares(now.w, irreps), 1) == place, dtype=jnp.float32)
        return {"heights": heights(now.w, irreps).astype(jnp.float64), "right": right}

    return predicted, size[0], train(s, key, watch).curves


def trial(s: Training, key: PRNGKeyArray) -> jd.Observables:
    """One trained network, and the flow of its nodes in all worlds, over time."""
    predicted, size, curves = _followed(s, key, len(WORLDS))
    return jd.observables(
        predicted={"height": jd.named(predicted[0], "epoch quantity node")},
        measured={"height": jd.named(curves["heights"], "epoch quantity node")},
        recorded={
            **{name: jd.named(jnp.mean(predicted[i], -1), "epoch quantity") for i, name in enumerate(WORLDS) if i},
            "outputs": jd.named(size, "epoch"),
            "curve_test": jd.named(curves["test_accuracy"], "epoch"),
        },
        coords={"quantity": QUANTITIES, "epoch": range(0, s.epochs + 1, s.every)},
    )


def until(s: Training, key: PRNGKeyArray) -> jd.Observables:
    """One trained network, and until when its nodes are independent: by the theory's own end, and as measured."""
    predicted, size, curves = _followed(s, key, 1)
    time = jnp.arange(0, s.epochs + 1, s.every) * jnp.asarray(s.lr, jnp.float64)
    return jd.observables(
        predicted={"until": crossed(time, size, SMALL)},
        measured={"until": highest(time, curves["right"].astype(jnp.float64))},
        recorded={
            "last": time[-1],
            "flow_energy": jd.named(jnp.mean(predicted[0, :, 0], -1), "epoch"),
            "outputs": jd.named(size, "epoch"),
            "curve_energy": jd.named(jnp.mean(curves["heights"][:, 0], -1), "epoch"),
            "curve_right": jd.named(curves["right"], "epoch"),
            "curve_test": jd.named(curves["test_accuracy"], "epoch"),
        },
        coords={"epoch": range(0, s.epochs + 1, s.every)},
    )


GENERAL = 0.95  # test accuracy that counts as generalising
AXES = ("hidden", "lr")  # of the law of until when
WIDTH = "power of K in the time, mean"
RATE = "power of the rate in the time, beyond that in the flow's end, mean"
RATIO = "logarithm of the time over the flow's end, mean"


def window(ds: xr.Dataset) -> xr.DataArray:
    """The records until the flow's outputs first are no longer small."""
    return (ds.outputs >= SMALL).cumsum("epoch") == 0


def _mean(height: xr.DataArray) -> xr.DataArray:
    return height.mean("node") if "node" in height.dims else height


def _growth(ds: xr.Dataset, name: str) -> xr.DataArray:
    """How much a height has grown at the end of the window, since the network's start."""
    last = window(ds).sum("epoch") - 1
    return ds[name].isel(epoch=last) - ds.measured_height.isel(epoch=0)


def apart(ds: xr.Dataset) -> xr.DataArray:
    """Largest error of the mean over nodes within the window, in parts of the network's change in it, [seed, quantity]."""
    error = abs(_mean(ds.predicted_height) - _mean(ds.measured_height)).where(window(ds)).max("epoch")
    return error / abs(_mean(_growth(ds, "measured_height")))


def explained(ds: xr.Dataset) -> xr.DataArray:
    """The share of the variance over a network's nodes of their growth in the window that the prediction explains."""
    own, predicted = _growth(ds, "measured_height"), _growth(ds, "predicted_height")
    return 1 - ((own - predicted) ** 2).sum("node", min_count=1) / ((own - own.mean("node")) ** 2).sum("node", min_count=1)


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Networks generalise in the end; in the window the mean curves agree, and so does the growth of single nodes."""
    return [
        jd.gate("final test accuracy, mean", float(ds.curve_test.isel(epoch=-1).mean()), at_least=GENERAL),
        jd.gate("records in the window", window(ds).sum("epoch"), at_least=5),
        jd.mean_within("largest error of the mean over nodes, in parts of its change, mean", apart(ds), over="seed", high=0.1),
        jd.mean_within("share of the nodes' differences in growth explained, mean", explained(ds), over="seed", low=0.9),
    ]


def steady(ds: xr.Dataset) -> xr.DataArray:
    """Linear in time: each node at constant speed from its start to where the flow is at the end of the window."""
    last = window(ds).sum("epoch") - 1
    height, part = ds.predicted_height, ds.epoch / ds.epoch.isel(epoch=last).drop_vars("epoch")
    return height.isel(epoch=0, drop=True) * (1 - part) + height.isel(epoch=last).drop_vars("epoch") * part


def power(time: xr.DataArray, field: str) -> xr.DataArray:
    """The slope of the logarithm of a time over that of a field, averaged over the other one; a number for each seed."""
    slope = jd.stats.loglog_slope(time[field], time.where(time > 0), field)
    return slope.mean([axis for axis in AXES if axis in slope.dims])


def judge_until(ds: xr.Dataset) -> list[jd.Check | jd.Reading]:
    """How long nodes are independent: over width, over the rate compared with the theory's own end, and against that end."""
    jd.need(ds, seed=2, hidden=3, lr=3)
    predicted, measured = ds.predicted_until, ds.measured_until
    excess = power(measured, "lr") - power(predicted, "lr")
    ratio = np.log(measured.where(measured > 0) / predicted.where(predicted > 0)).mean(AXES)
    return [
        jd.gate("share of runs with both times", float(((predicted > 0) & (measured > 0)).mean()), at_least=0.8),
        jd.mean_reading(WIDTH, power(measured, "hidden"), over="seed"),
        jd.mean_reading(RATE, excess, over="seed"),
        jd.mean_reading(RATIO, ratio, over="seed"),
    ]


def same_at_all_rates(ds: xr.Dataset) -> float:
    """The power of the rate that a constant time has beyond the flow's own end."""
    return -float(power(ds.predicted_until, "lr").mean())


def to_the_last(ds: xr.Dataset) -> float:
    """The logarithm of the whole training time over that of the flow's end."""
    return float(np.log(ds["last"] / ds.predicted_until.where(ds.predicted_until > 0)).mean())


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Mean energy and purity of the nodes along the window and beyond: network, flow, and momentum as a factor."""
    ds = ds.isel(epoch=slice(0, int((ds.outputs < END).sum("epoch").max())))
    last = float(ds.epoch.isel(epoch=window(ds).sum("epoch") - 1).mean())
    for ax, name in zip(fig.subplots(1, 2), ds["quantity"].values, strict=True):
        predicted, measured = (_mean(ds[key]).sel(quantity=name) for key in ("predicted_height", "measured_height"))
        plotting.band(ax, ds.epoch, measured.transpose("seed", "epoch"), "network", plotting.COLORS["measured"])
        within = ds.outputs < END
        flow = predicted.where(within).transpose("seed", "epoch")
        plotting.band(ax, ds.epoch, flow, "flow of each node", plotting.COLORS["theory"])
        other = ds.factor.sel(quantity=name)
        other = other.where(other.diff("epoch", label="lower") != 0).median("seed")  # until its end
        ax.plot(other.epoch, other, ":", color=plotting.COLORS["control"], label="momentum a factor")
        ax.axvline(last, color="0.5", linewidth=0.8)
        ax.set(xlabel="epoch", ylabel={"energy": "energy over its maximum", "purity": "purity"}[str(name)])


def plot_until(ds: xr.Dataset, fig: Figure) -> None:
    """Left: until when, against the number of nodes, at each rate; right: the share of nodes in the irrep forecast over time."""
    left, right = fig.subplots(1, 2)
    for i, lr in enumerate(ds.lr.values):
        part, color = ds.sel(lr=lr), plotting.CYCLE[i % len(plotting.CYCLE)]
        until_when = part.measured_until.where(part.measured_until > 0)
        plotting.band(left, ds.hidden, until_when.transpose("seed", "hidden"), f"rate {lr:g}", color)
        left.plot(ds.hidden, part.predicted_until.median("seed"), ":", color=color)
        curve = part.curve_right.isel(hidden=-1).transpose("seed", "epoch")
        plotting.band(right, ds.epoch * lr, curve, f"rate {lr:g}", color)
    left.set(xlabel="nodes K", ylabel="epochs times rate", xscale="log", yscale="log")
    right.set(xlabel="epochs times rate", ylabel="share of nodes in the irrep forecast")


GRID = jd.grid(Training, share=0.8, lr=1.0, decay=1e-4, hidden=64, epochs=120, every=3, optimizer="sgd")
LARGE = GRID.replace(group="41", hidden=512, epochs=600, every=5)

CURVES = jd.Study(
    trial=trial,
    quick=GRID,
    paper=LARGE,
    seeds=16,
    paper_seeds=32,
    judge=judge,
    evidence="network",
    tested="Networks of {hidden} nodes on {share} of the pairs of residues modulo {group}, rate {lr}, decay {decay}, {epochs} "
    "epochs; {seeds} seeds. Energy: that of a node's direction over the maximum in its largest irrep; purity: that irrep's "
    "share of the squared weights.",
    source="arXiv:2509.21519, section 4",
).claim(
    id="li2.stage2_curves",
    talks=(
        "grokking:li2-figure-emergence",
        "grokking:li2-component-dynamics",
    ),
    title="While outputs are small, each node follows its own flow",
    statement=r"In networks of 64 nodes with $\sigma = x^2$ that gradient descent with momentum trains at a rate of 1 on .8 of "
    "the pairs of residues modulo 23 (512 nodes and modulo 41 at paper scale) until they generalise, the energies and purities of "
    "the hidden nodes follow the flow of each node alone, with the trainer's rate and decay and with momentum as inertia, as long "
    "as that flow's outputs are below half of the targets. Means over a network's nodes agree within 10% of their change in that "
    "time, and the flow explains over 90% of the variance between nodes in how much they grow, on average over networks.",
    bounds=jd.tuned(on="0:16", confirmed_on="31000000:31000016"),
    controls={"the nodes of another network": jd.rolled(measured_height="seed")},
    rivals={
        "nothing moves": jd.off(jd.initial("epoch", "predicted_height")),
        "the flow on targets of permuted pairs": jd.swap(predicted_height="other"),
        "momentum is a factor of the rate": jd.swap(predicted_height="factor"),
        "linear in time, to where the flow is at the end": jd.swap(predicted_height=steady),
    },
    plot=plot,
    caption="Energy of nodes on the unit sphere over the maximum in their irrep, and share of that irrep, means over the nodes "
    "of a network and of the flow of each node alone, until its outputs are twice the targets; dotted: the flow with momentum "
    "as a factor of the rate. Vertical: end of the window. Median and central 90% of the runs.",
)
UNTIL_WHEN = jd.Study(
    trial=until,
    quick=GRID.replace(hidden=[32, 96, 256], lr=[0.4, 0.7, 1.2]),
    paper=LARGE.replace(hidden=[32, 64, 128, 256, 512], lr=[0.4, 0.7, 1.2]),
    seeds=6,
    paper_seeds=8,
    judge=judge_until,
    evidence="network",
    tested="Networks of {hidden} nodes on {share} of the pairs of residues modulo {group}, rates {lr}, decay {decay}, {epochs} "
    "epochs; {seeds} seeds. Nodes are independent until the share of them in the irrep forecast is largest; runs in which that is "
    "at the first or last record are left out.",
    source="arXiv:2509.21519, section 4",
).claim(
    id="li2.stage2_until",
    title="For how long nodes move independently of each other",
    statement=r"In networks with $\sigma = x^2$ that gradient descent with momentum trains, nodes turn to the irrep in which "
    "the flow of the node alone ends, until they interact. Measured: that training time, epochs times rate, compared with the "
    "time at which the flow's own outputs are half of the targets, and how both depend on the number of nodes K and on the "
    "rate.",
    expected="measured",
    rivals={
        "outputs are sums over nodes: inverse in K": {WIDTH: -1.0},
        "momentum is a factor: the same training time at all rates": {RATE: same_at_all_rates},
        "nodes stay independent to the last epoch": jd.off({RATIO: to_the_last}),
        "nodes are independent until the flow's own end": {RATIO: 0.0},
    },
    recorded={
        "power of K in the time, mean": (-0.157, -0.05785, 0.0405),
        "power of the rate in the time, beyond that in the flow's end, mean": (-0.0408, 0.03143, 0.104),
        "logarithm of the time over the flow's end, mean": (0.202, 0.3571, 0.512),
    },
    plot=plot_until,
    caption="Left: training time at which most nodes are in the irrep forecast for them, against the number of nodes, of the "
    "runs in which there is one; dotted: median of the time at which the flow's outputs are half of the targets. Right: share "
    "of nodes in the irrep forecast along training, at the largest K. Median and central 90% of the runs.",
)

CLAIMS = (CURVES, UNTIL_WHEN)
