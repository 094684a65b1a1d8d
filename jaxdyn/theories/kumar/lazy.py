"""The delay that laziness causes, and the lazy limit.

A network is trained on a square by gradient descent: when it fits, when it generalises, how far weights and kernel move.

Losses are over the mean square of the target on the test inputs. Letters as in ``model.py``.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting, stats, train
from jaxdyn.theories.kumar import dynamics, model

LEVEL = 0.2  # of the losses, at which a network has fitted or generalises
SAMPLES = 200  # records of a run


@jd.setting
class Regression:
    """One network and its samples.

    Args:
        alpha: output scale.
        epsilon: quadratic part of the nodes.
        centred: 1 subtracts the first output, 0 does not.
        size: of the first weights.
        rate: eta.
        every: steps between records.
        dimension: D.
        nodes: N.
        samples: p.
        tests: samples of the test loss.
    """

    alpha: jd.Swept = jd.field(1.0, above=0)
    epsilon: jd.Swept = jd.field(0.5, above=0)
    centred: jd.Swept = jd.field(0.0, at_least=0, at_most=1)
    size: jd.Swept = jd.field(1.0, above=0)
    rate: jd.Swept = jd.field(2.0, above=0)
    every: jd.Swept = jd.field(20, at_least=1, whole=True)
    dimension: int = jd.field(12, at_least=1)
    nodes: int = jd.field(48, at_least=1)
    samples: int = jd.field(60, at_least=1)
    tests: int = jd.field(500, at_least=1)
    dtype: str = "float64"


def lazy(
    net: model.Network, x: Float[Array, "p d"], z: Float[Array, "q d"], rate: Float[Array, ""], steps: Float[Array, ""]
) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, "p p"]]:
    """Test error and squared movement of the lazy limit, and the first kernel on training inputs."""
    inside, across = (dynamics.kernel(net.first, net.epsilon, a, x) for a in (x, z))
    missing = model.target(x) - model.outputs(net, net.first, x)
    added, squared = dynamics.frozen(inside, across, missing, rate, steps)
    return jnp.mean(jnp.square(model.outputs(net, net.first, z) + added - model.target(z))), squared, inside


def trial(s: Regression, key: PRNGKeyArray) -> jd.Observables:
    """Losses along training, delay, movement of weights and kernel, and the lazy limit."""
    # samples, and the network at its start
    k_train, k_test, k_first = jax.random.split(key, 3)
    x, z = (model.inputs(k, n, s.dimension, s.dtype) for k, n in ((k_train, s.samples), (k_test, s.tests)))
    alpha, epsilon, centred, size, rate = (jnp.asarray(v, s.dtype) for v in (s.alpha, s.epsilon, s.centred, s.size, s.rate))
    net = model.Network(alpha, epsilon, model.init(k_first, s.nodes, s.dimension, size, s.dtype), centred)
    unit = jnp.mean(jnp.square(model.target(z)))
    slope = jax.grad(lambda w: model.error(net, w, x) / 2)

    # the network along training
    def step(w: Float[Array, "N d"]) -> Float[Array, "N d"]:
        return train.learned(w, w - rate * s.nodes / alpha**2 * slope(w))

    def observe(w: Float[Array, "N d"]) -> dict[str, Float[Array, ""]]:
        return {"fit": model.error(net, w, x) / unit, "test": model.error(net, w, z) / unit}

    last, curves = train.record(step, net.first, observe, samples=SAMPLES, every=jnp.asarray(s.every).astype(jnp.int32))
    steps = jnp.asarray(s.every, s.dtype) * jnp.arange(SAMPLES + 1, dtype=s.dtype)
    # when it fits and generalises, and the lazy limit
    fitted, general = (dynamics.settled(steps, curves[name], LEVEL) for name in ("fit", "test"))
    kernel_test, squared, inside = lazy(net, x, z, rate, steps[-1])
    norm = jnp.linalg.norm(net.first)
    moved = dynamics.kernel(last, epsilon, x, x) - inside
    return jd.observables(
        predicted={
            "delay": alpha,
            "test": kernel_test / unit,
            "movement": dynamics.movement(squared, alpha, s.nodes, norm),
        },
        measured={
            "delay": general - fitted,
            "test": curves["test"][-1],
            "movement": jnp.linalg.norm(last - net.first) / norm,
        },
        recorded={
            "kernel_change": jnp.linalg.norm(moved) / jnp.linalg.norm(inside),
            "first_norm": norm,
            "fitted": fitted,
            "general": general,
            "fit_end": curves["fit"][-1],
            "fit_curve": jd.named(curves["fit"], "record"),
            "test_curve": jd.named(curves["test"], "record"),
            "at": jd.named(steps, "record"),
            "first_test": curves["test"][0],
        },
        status=train.finite_status(last),
    )


FITTED = 0.01  # training loss over the mean square of the target
FIT_SHARE = 0.75


RANK, DELAY = "rank correlation of the delay with the prediction", "power of alpha in the delay"
STRETCH = "power of alpha in time to generalise / time to fit"
MOVEMENT, KERNEL = "power of alpha in the movement of weights", "power of alpha in the change of the kernel"


def judge_rich(ds: xr.Dataset) -> list[jd.Check]:
    """Delay, movement of weights and change of the kernel against the output scale.

    Seeds of which a network does not fit its samples are passed over: they have no delay.
    """
    fitted = (ds.fit_end <= FITTED).all("alpha")
    share = fitted.mean("seed")
    ds = ds.isel(seed=np.flatnonzero(fitted))
    jd.need(ds, seed=8, alpha=3)
    ds = ds.assign(stretch=1 + ds.measured_delay / ds.fitted)
    rank = stats.spearman(ds.predicted_delay, ds.measured_delay, "alpha")
    return [
        jd.gate("share of seeds whose networks all fit their samples", share, at_least=FIT_SHARE),
        jd.gate("test loss at the end", ds.measured_test, at_most=LEVEL),
        jd.mean_within(RANK, rank, over="seed", low=0.95),
        jd.mean_within(DELAY, slope(ds, "measured_delay"), over="seed", low=0.8),
        jd.mean_within(STRETCH, slope(ds, "stretch"), over="seed", low=0.1),
        jd.mean_within(MOVEMENT, slope(ds, "measured_movement"), over="seed", high=-0.3),
        jd.mean_within(KERNEL, slope(ds, "kernel_change"), over="seed", high=-0.6),
    ]


def slope(ds: xr.Dataset, name: str) -> xr.DataArray:
    """Power of alpha in a positive quantity, of every seed."""
    return stats.loglog_slope(ds.alpha, ds[name], "alpha")


def apart(ds: xr.Dataset) -> dict[str, xr.DataArray]:
    """Relative differences between network and frozen kernel."""
    return {
        "test loss": abs(ds.predicted_test / ds.measured_test - 1),
        "movement": abs(ds.predicted_movement / ds.measured_movement - 1),
        "kernel": ds.kernel_change,
    }


def judge_limit(ds: xr.Dataset) -> list[jd.Check]:
    """Powers of alpha in what separates network and frozen kernel, and what is left at the largest alpha."""
    jd.need(ds, seed=8, alpha=3)
    last = ds.isel(alpha=-1)
    return [
        *(
            jd.mean_within(f"power of alpha in the difference, {k}", stats.loglog_slope(ds.alpha, v, "alpha"), over="seed", **BAND)
            for k, v in apart(ds).items()
        ),
        jd.mean_within("predicted / test loss, largest alpha", last.predicted_test / last.measured_test, over="seed", **CLOSE),
        jd.mean_within(
            "predicted / movement, largest alpha", last.predicted_movement / last.measured_movement, over="seed", **CLOSE
        ),
    ]


BAND, CLOSE = {"low": -1.03, "high": -0.97}, {"low": 0.985, "high": 1.015}


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Losses of one seed against steps for every alpha; delay against alpha."""
    left, right = fig.subplots(1, 2)
    first = ds.isel(seed=0)
    colors = ("measured", "third", "fourth", "fifth", "control")
    for alpha, color in zip(ds.alpha.values, colors, strict=False):
        at = first.sel(alpha=alpha).isel(record=slice(1, None))
        left.plot(at["at"], at.test_curve, color=plotting.COLORS[color], label=rf"$\alpha = {float(alpha):g}$")
        left.plot(at["at"], at.fit_curve, ":", color=plotting.COLORS[color])
    left.axhline(LEVEL, color=plotting.COLORS["theory"], linewidth=0.8)
    left.set(xlabel="steps", ylabel="test loss (dotted: training loss)", xscale="log", yscale="log")
    plotting.band(right, ds.alpha, ds.measured_delay.transpose(..., "alpha"), "delay", "measured", marker="o")
    right.set(xlabel=r"output scale $\alpha$", ylabel="delay in steps", xscale="log", yscale="log")


def plot_limit(ds: xr.Dataset, fig: Figure) -> None:
    """What separates network and frozen kernel, against alpha."""
    ax = fig.subplots()
    for (name, values), color in zip(apart(ds).items(), ("measured", "third", "fourth"), strict=True):
        plotting.band(ax, ds.alpha, values.transpose(..., "alpha"), name, color, marker="o")
    guide = float(ds.kernel_change.isel(alpha=0).median()) * ds.alpha[0] / ds.alpha
    ax.plot(ds.alpha, guide, ":", color=plotting.COLORS["theory"], label=r"$1/\alpha$")
    ax.set(xlabel=r"output scale $\alpha$", ylabel="relative difference", xscale="log", yscale="log")


ALPHAS = [0.5, 1.0, 2.0, 4.0]
LIMIT = [128.0, 256.0, 512.0, 1024.0]
STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Regression, alpha=ALPHAS),
    paper=jd.grid(Regression, alpha=ALPHAS, dimension=50, nodes=500, samples=500, tests=2000, every=200),
    seeds=12,
    paper_seeds=12,
    evidence="network",
    tested=r"A network $\frac{\alpha}{N}\sum_i (h_i + \frac{\epsilon}{2}h_i^2)$, $h_i = w_i\cdot x$, with {nodes} nodes, "
    r"$\epsilon$ = {epsilon} and $\alpha$ = {alpha}, learns the square of one of {dimension} normal inputs from {samples} "
    r"samples by gradient descent at a rate in proportion to $1/\alpha^2$, 200 times {every} steps, without weight decay; "
    r"{seeds} seeds.",
    source="arXiv:2310.06110, polynomial regression",
)

CLAIMS = (
    STUDY.claim(
        id="kumar.lazy_rich",
        title="The larger the output scale, the later a network generalises",
        seeds=18,
        max_seeds=72,
        bounds=jd.tuned(on="0:18", confirmed_on="70000001:70000019"),
        statement=r"A network $\frac{\alpha}{N}\sum_i (h_i + h_i^2/4)$, $h_i = w_i\cdot x$, with $N$ = 48 nodes whose weights "
        r"start standard normal learns the square of one of 12 inputs from 60 samples, at the rate $2N/\alpha^2$. The larger its "
        r"output scale $\alpha$ from 1/2 to 4, the later it generalises after it has fitted its samples (losses below a fifth of "
        r"the target's mean square for good): the delay ranks with $\alpha$, grows with a power of at least 0.8 and faster than "
        "the time to fit, while the movement of the weights and the change of the tangent kernel fall with powers of at least 0.3 "
        "and 0.6. These are means over the seeds, at least three quarters, in which the networks of all scales fit to 1% of the "
        "mean square.",
        judge=judge_rich,
        controls={
            "output scales exchanged": jd.rolled(measured_delay="alpha", measured_movement="alpha", kernel_change="alpha"),
        },
        rivals={
            "the output scale plays no part": jd.off({RANK: 0.0, DELAY: 0.0, STRETCH: 0.0, MOVEMENT: 0.0, KERNEL: 0.0}),
            "the delay is in proportion to the time to fit": {STRETCH: 0.0},
            "the delay grows with the root of the output scale": {DELAY: 0.5},
        },
        plot=plot,
        caption="Left: test loss (lines) and training loss (dotted) over the mean square of the target, against steps, first "
        "seed; the horizontal line is the level at which networks count as fitted and as generalising. Right: steps between "
        "the two, against the output scale; line and band: median and central 90% of the seeds.",
    ),
    STUDY.claim(
        id="kumar.lazy_limit",
        title="At a large output scale a network is its first kernel, up to 1/scale",
        quick=jd.grid(Regression, alpha=LIMIT, centred=1.0),
        paper=jd.grid(Regression, alpha=LIMIT, centred=1.0, dimension=50, nodes=500, samples=500, tests=2000, every=200),
        bounds=jd.tuned(on="0:12", confirmed_on="70000001:70000013"),
        statement=r"A network $\frac{\alpha}{N}\sum_i (h_i + \frac{\epsilon}{2}h_i^2)$, $h_i = w_i\cdot x$ with weights $w_i$ and "
        r"inputs $x$, minus its first output is, in the limit of a large output scale $\alpha$ and trained on 60 samples for "
        r"4,000 steps (500 samples, 40,000 steps at paper scale) at a rate $\eta N/\alpha^2$, regression with the tangent kernel "
        "of its first weights: its test loss and the movement of its weights differ relatively from those of gradient descent "
        r"with that kernel, and its last kernel from the first one, by amounts that fall like $1/\alpha$ from 128 to 1024 (powers "
        "within 0.03, means over seeds); at 1024 both predictions are within 1.5% on average.",
        holds={"epsilon": (0.25, 1.0), "rate": (1.0, 2.0)},
        source="arXiv:2310.06110; arXiv:1812.07956 (lazy training)",
        judge=judge_limit,
        controls={"first output kept": jd.Control({"centred": 0.0}, every_seed=True)},
        rivals={
            "nothing moves": jd.off(predicted_test="first_test", predicted_movement=0.0),
            "the target is learned": jd.swap(predicted_test=0.0),
        },
        plot=plot_limit,
        caption=r"Relative difference between network and frozen kernel against $\alpha$: in the test loss, in the movement "
        r"of the weights, and of the last kernel from the first; dotted: $1/\alpha$. Lines and bands: median and central 90% "
        r"of the "
        "seeds.",
    ),
)
